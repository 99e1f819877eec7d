//! From what was counted to what it means: the report.

use std::time::{Duration, Instant};

use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

use super::drill::Judgement;
use super::figure;
use super::rig::{Place, Rig};
use ::report::{
    Check, Conditions, FunctionFigures, GuideFigures, GuideRow, Knee, LabProcess, Latency, MessageFigures,
    OperationFigures, Point, Report, RoleFigures, Series, Spread, Step, Verdict,
};
use callmodel::{Bounds, CallModel, Found, Guide};
use loadgen::{FailureKind, Record};
use report::measure::{Connections, Machine, Usage, clock};
use simulators::Stats;

/// A generator thread that uses more of its core than this is at its limit.
const BUSY: f64 = 0.9;
/// A function that uses more of its cores than this is at its limit.
const FULL: f64 = 0.9;
/// A generator that was later than this did not send when it should have.
const LATE: Duration = Duration::from_millis(100);
/// Others that took more than this of the function's cores disturbed the run.
const DISTURBED: f64 = 0.05;
/// The least share of the schedule that must be achieved.
const ACHIEVED: f64 = 0.99;

/// What was used up to a moment.
#[derive(Clone, Debug)]
pub(super) struct Mark {
    pub(super) at: Instant,
    pub(super) usage: Option<Usage>,
    /// What anybody used of the function's cores.
    pub(super) busy: Option<Duration>,
    /// What anybody used of all cores that the lab may use.
    pub(super) busy_everywhere: Option<Duration>,
    /// What a hypervisor took away from all of those.
    pub(super) stolen: Option<Duration>,
    pub(super) simulators: Vec<(Stats, Usage)>,
    /// Requests that each kind of outgoing traffic must have come to.
    pub(super) expected: Vec<u64>,
    pub(super) databases: Vec<(String, Usage)>,
    pub(super) generator_cpu: Vec<Duration>,
    pub(super) generator_bytes: (u64, u64),
}

/// A part of a run that was looked at.
#[derive(Clone, Debug)]
pub(super) struct Window {
    pub(super) tps: f64,
    pub(super) record: Record,
    pub(super) before: Mark,
    pub(super) after: Mark,
    pub(super) lateness: Duration,
}

impl Window {
    pub(super) fn seconds(&self) -> f64 {
        self.after
            .at
            .duration_since(self.before.at)
            .as_secs_f64()
            .max(1e-3)
    }

    fn cores(&self) -> f64 {
        let used = |mark: &Mark| mark.usage.map_or(Duration::ZERO, |usage| usage.cpu);
        used(&self.after).saturating_sub(used(&self.before)).as_secs_f64() / self.seconds()
    }

    /// Whether others took so much of the function's cores that a failure says nothing of the function.
    pub(super) fn is_disturbed(&self, place: &Place) -> bool {
        self.others(place) > DISTURBED
    }

    /// Cores that others took of those the function is kept to.
    fn others(&self, place: &Place) -> f64 {
        match (self.before.busy, self.after.busy) {
            (Some(before), Some(after)) if !place.function_cpus.is_empty() && self.after.usage.is_some() => {
                (after.saturating_sub(before).as_secs_f64() / self.seconds() - self.cores()).max(0.0)
            }
            _ => 0.0,
        }
    }

    /// Cores that a hypervisor took away, and cores that processes of neither the function nor the lab used.
    fn disturbances(&self) -> (f64, f64) {
        let cores = |of: &dyn Fn(&Mark) -> Option<Duration>| match (of(&self.before), of(&self.after)) {
            (Some(before), Some(after)) => after.saturating_sub(before).as_secs_f64() / self.seconds(),
            _ => 0.0,
        };
        let own = |mark: &Mark| {
            let lab = mark.simulators.iter().map(|(_, usage)| usage.cpu);
            let databases = mark.databases.iter().map(|(_, usage)| usage.cpu);
            let function = mark.usage.map(|usage| usage.cpu);
            let all = lab.chain(databases).chain(function);
            Some(all.chain(mark.generator_cpu.iter().copied()).sum())
        };
        let stolen = cores(&|mark| mark.stolen);
        let foreign = cores(&|mark| mark.busy_everywhere) - stolen - cores(&own);
        (stolen, foreign.max(0.0))
    }

    /// The share of its core that the busiest generator thread used.
    fn generator_busy(&self) -> f64 {
        let pairs = self.after.generator_cpu.iter().zip(&self.before.generator_cpu);
        pairs
            .map(|(after, before)| after.saturating_sub(*before).as_secs_f64())
            .fold(0.0, f64::max)
            / self.seconds()
    }
}

/// Why a window is beyond the knee; `None` when it is not.
pub(super) fn beyond_knee(window: &Window, bounds: &Bounds) -> Option<String> {
    let total = window.record.total();
    let success = total.succeeded as f64 / (total.offered as f64).max(1.0);
    let p99 = total.latency.value_at_quantile(0.99) as f64 / 1000.0;
    let bound = bounds.knee_p99.duration().as_secs_f64() * 1000.0;
    if success < bounds.knee_success.fraction() {
        let most = FailureKind::ALL
            .into_iter()
            .max_by_key(|kind| total.failed[*kind as usize]);
        let most = most.map_or("", FailureKind::name);
        return Some(format!("success {:.3}% (mostly {most})", success * 100.0));
    }
    if p99 > bound {
        return Some(format!("p99 {} ms over {} ms", figure(p99), figure(bound)));
    }
    let offered = total.offered as f64 / window.seconds();
    if offered < window.tps * 0.97 {
        return Some(format!("the generator offered only {} TPS", figure(offered)));
    }
    None
}

/// A step of the search as data.
pub(super) fn step(window: &Window, place: &Place, failed: Option<String>) -> Step {
    let total = window.record.total();
    Step {
        tps: window.tps,
        achieved_tps: total.succeeded as f64 / window.seconds(),
        success_ratio: total.succeeded as f64 / (total.offered as f64).max(1.0),
        p99_ms: total.latency.value_at_quantile(0.99) as f64 / 1000.0,
        cpu_cores: window.cores(),
        other_cores: window.others(place),
        generator_busy: window.generator_busy(),
        failed,
    }
}

/// A step of the search for people.
pub(super) fn step_in_words(step: &Step) -> String {
    let held = if step.failed.is_none() { "held  " } else { "failed" };
    let mut words = format!(
        "{:>9} TPS  {held}  p99 {} ms, function {:.2} cores",
        figure(step.tps),
        figure(step.p99_ms),
        step.cpu_cores
    );
    if step.other_cores > DISTURBED {
        words += &format!(" (others {:.2})", step.other_cores);
    }
    words += &format!(", generator {:.0}% busy", step.generator_busy * 100.0);
    if let Some(why) = &step.failed {
        words += &format!(" ({why})");
    }
    words
}

/// What kept the search from a higher rate, judged by the lowest step that failed.
pub(super) fn limit(steps: &[Step], place: &Place, seen: bool) -> String {
    let failed = steps
        .iter()
        .filter(|s| s.failed.is_some())
        .min_by(|a, b| a.tps.total_cmp(&b.tps));
    let Some(step) = failed else {
        return "nothing: the search ended before a rate failed".to_owned();
    };
    let why = step.failed.clone().unwrap_or_default();
    let cores = place.function_cpus.len() as f64;
    if seen && cores > 0.0 && step.cpu_cores >= cores * FULL {
        return format!("function: its {cores} core(s) are full ({why})");
    }
    if seen && cores > 0.0 && step.cpu_cores + step.other_cores >= cores * FULL {
        return format!(
            "the machine: others took {:.2} of the function's {cores} core(s), which used {:.2} itself ({why})",
            step.other_cores, step.cpu_cores
        );
    }
    if step.generator_busy >= BUSY {
        return format!(
            "generator: {:.0}% of a core in use; the function may carry more ({why})",
            step.generator_busy * 100.0
        );
    }
    if seen && cores == 0.0 {
        return format!(
            "the machine: function and lab share its cores (function {:.2} cores; {why})",
            step.cpu_cores
        );
    }
    format!("function: {why}, with {:.2} of its cores in use", step.cpu_cores)
}

/// All that a report is made from.
pub(super) struct Facts<'a> {
    pub(super) found: &'a Found,
    pub(super) place: &'a Place,
    pub(super) rig: &'a Rig,
    pub(super) names: &'a [String],
    pub(super) started: OffsetDateTime,
    pub(super) window: &'a Window,
    /// The part at the rate that the window offers a multiple of.
    pub(super) reference: Option<&'a Window>,
    /// What the drill says.
    pub(super) judgement: Judgement,
    /// Where outgoing traffic counts from; none: the start.
    pub(super) baseline: Option<&'a Mark>,
    pub(super) end: &'a Mark,
    pub(super) rss_max: u64,
    pub(super) rss_avg: f64,
    pub(super) roles: Vec<RoleFigures>,
    pub(super) connections: Connections,
    pub(super) connections_asked: u32,
    pub(super) timeline: Vec<Point>,
    pub(super) steps: Vec<Step>,
    pub(super) limited_by: Option<String>,
}

/// The program, its clock, and what else the machine did while the figures were measured.
fn conditions(facts: &Facts<'_>) -> Conditions {
    let version = std::process::Command::new(&facts.place.program)
        .arg("--version")
        .output();
    let program = version.map(|output| String::from_utf8_lossy(&output.stdout).trim().to_owned());
    let (clock_source, cpu_mhz) = clock();
    let (stolen, foreign) = facts.window.disturbances();
    Conditions {
        // A function that ran already may be of another program.
        program: program
            .ok()
            .filter(|_| facts.rig.function.is_some())
            .unwrap_or_default(),
        clock_source,
        cpu_mhz: round(cpu_mhz, 0),
        stolen_cores: round(stolen, 2),
        foreign_cores: round(foreign, 2),
    }
}

/// Makes the report.
pub(super) fn report(facts: Facts<'_>) -> (Report, Series) {
    let checks = checks(&facts);
    let pass = checks.iter().all(|check| check.pass);
    let window = facts.window;
    let total = window.record.total();
    let seconds = window.seconds();
    let achieved = total.succeeded as f64 / seconds;
    let named = || {
        facts
            .names
            .iter()
            .zip(&window.record.operations)
            .filter(|(_, o)| o.offered > 0)
    };
    let model = &facts.found.model;
    let functions = facts
        .rig
        .function
        .iter()
        .map(|_| function(&facts, achieved))
        .collect();
    let report = Report {
        model: facts.found.name.clone(),
        started: facts.started.format(&Rfc3339).unwrap_or_default(),
        duration_s: round(seconds, 3),
        machine: Machine::this(),
        conditions: conditions(&facts),
        offered_tps: round(total.offered as f64 / seconds, 1),
        achieved_tps: round(achieved, 1),
        success_ratio: round(total.succeeded as f64 / (total.offered as f64).max(1.0), 6),
        latency_ms: Latency::of(&total.latency),
        operations: named()
            .map(|(name, record)| OperationFigures {
                name: name.clone(),
                count: record.offered,
                errors: record.failures(),
                latency_ms: Latency::of(&record.latency),
            })
            .collect(),
        functions,
        guide: model.guide.as_ref().map_or_else(GuideFigures::default, |one| {
            guide(one, &model.source.guide, facts.rig.name)
        }),
        checks,
        knee: facts.limited_by.as_ref().map(|by| Knee {
            tps: round(facts.reference.unwrap_or(window).tps, 0),
            limited_by: by.clone(),
        }),
        messages: messages(model, achieved, window.cores()),
        store: facts.rig.store.clone(),
        destinations: facts.judgement.destinations.clone(),
        verdict: if pass { Verdict::Pass } else { Verdict::Fail },
    };
    let spreads = named()
        .filter(|(_, o)| !o.latency.is_empty())
        .map(|(name, o)| Spread::of(name, &o.latency))
        .collect();
    let series = Series {
        title: model.title.clone(),
        summary: model.summary.clone(),
        spreads,
        failures: FailureKind::ALL
            .into_iter()
            .map(|kind| (kind.name().to_owned(), total.failed[kind as usize]))
            .filter(|(_, count)| *count > 0)
            .collect(),
        examples: window.record.examples.clone(),
        lab: lab(&facts),
        guide_cpu: model
            .guide
            .iter()
            .flat_map(|guide| &guide.cpu)
            .map(|c| (c.service.clone(), c.arithmetic(), c.cores_used()))
            .collect(),
        guide_cpu_excludes: model
            .guide
            .as_ref()
            .and_then(|guide| guide.cpu_excludes.clone())
            .unwrap_or_default(),
        choices: model
            .choices
            .iter()
            .map(|c| (c.about.clone(), c.printed.clone(), c.taken.clone()))
            .collect(),
        notes: notes(&facts, report.messages.as_ref()),
        timeline: facts.timeline,
        steps: facts.steps,
    };
    (report, series)
}

fn checks(facts: &Facts<'_>) -> Vec<Check> {
    let window = facts.window;
    let bounds = &facts.found.model.bounds;
    let searched = facts.limited_by.is_some();
    let success_bound = if searched {
        bounds.knee_success
    } else {
        bounds.success
    };
    let p99_bound = if searched { bounds.knee_p99 } else { bounds.p99 };
    let total = window.record.total();
    let success = total.succeeded as f64 / (total.offered as f64).max(1.0);
    let p99 = total.latency.value_at_quantile(0.99) as f64 / 1000.0;
    let seconds = window.seconds();
    let offered = total.offered as f64 / seconds;
    let mut checks = Vec::new();
    if !facts.judgement.spares_bounds {
        checks.extend([
            Check::new(
                "success",
                format!("at least {success_bound}"),
                format!(
                    "{:.4}% ({} of {} failed)",
                    success * 100.0,
                    total.failures(),
                    total.offered
                ),
                success >= success_bound.fraction(),
            ),
            Check::new(
                "achieved rate",
                format!("at least {}% of what was offered", ACHIEVED * 100.0),
                format!("{} TPS", figure(total.succeeded as f64 / seconds)),
                total.succeeded as f64 >= total.offered as f64 * ACHIEVED,
            ),
            Check::new(
                "latency",
                format!("p99 of all transactions up to {p99_bound}"),
                format!("{} ms", figure(p99)),
                p99 <= p99_bound.duration().as_secs_f64() * 1000.0,
            ),
        ]);
    }
    checks.extend([
        Check::new(
            "offered rate",
            format!("{} TPS ± 1%", figure(window.tps)),
            format!("{} TPS", figure(offered)),
            // A Poisson schedule of n arrivals varies by its root.
            (offered / window.tps - 1.0).abs() < 0.01 + 4.0 / (window.tps * seconds).sqrt(),
        ),
        Check::new(
            "generator on time",
            format!("never more than {} ms late", LATE.as_millis()),
            format!(
                "{} ms late at most",
                figure(window.lateness.as_secs_f64() * 1000.0)
            ),
            window.lateness <= LATE,
        ),
    ]);
    checks.extend(outgoing(facts));
    checks.extend(facts.rig.probes.iter().map(|probe| probe()));
    checks.extend(facts.judgement.checks.iter().cloned());
    checks
}

/// Requests of one kind that the function has sent to a simulator, up to a moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Sent {
    /// As many as the answers imply.
    expected: u64,
    received: u64,
    /// Those that made no sense to the simulator.
    invalid: u64,
}

impl Sent {
    /// Those of kind `index`, which the simulator `simulator` receives.
    fn of(mark: &Mark, index: usize, simulator: usize) -> Self {
        let stats = mark.simulators.get(simulator).map(|(stats, _)| stats);
        Self {
            expected: mark.expected.get(index).copied().unwrap_or(0),
            received: stats.map_or(0, |stats| stats.requests),
            invalid: stats.map_or(0, |stats| stats.bad_requests),
        }
    }

    /// Those after an earlier moment.
    fn since(self, earlier: Self) -> Self {
        Self {
            expected: self.expected.saturating_sub(earlier.expected),
            received: self.received.saturating_sub(earlier.received),
            invalid: self.invalid.saturating_sub(earlier.invalid),
        }
    }
}

/// Whether the function has sent its peers what the answers imply.
fn outgoing(facts: &Facts<'_>) -> Vec<Check> {
    // At a knee some requests fail half-way: their outgoing requests were sent without being expected.
    let slack = match facts.limited_by {
        Some(_) => 0.10,
        None => facts.found.model.bounds.outgoing.fraction(),
    };
    let mut checks = Vec::new();
    for (index, outgoing) in facts.rig.outgoing.iter().enumerate() {
        let of = |mark| Sent::of(mark, index, outgoing.simulator);
        let whole = of(facts.end);
        let counted = facts.baseline.map_or(whole, |baseline| whole.since(of(baseline)));
        let period = match facts.baseline {
            Some(_) => "since the search",
            None => "in the whole run",
        };
        checks.extend(sent_as_implied(outgoing.name, counted, slack, period));
        if whole.invalid > 0 {
            checks.push(Check::new(
                format!("{} well formed", outgoing.name),
                "every request made sense to the simulator",
                format!("{} did not", figure(whole.invalid as f64)),
                false,
            ));
        }
    }
    checks
}

/// The check of one kind of outgoing traffic; `None` where there is none.
fn sent_as_implied(name: &str, counted: Sent, slack: f64, period: &str) -> Option<Check> {
    let Sent {
        expected, received, ..
    } = counted;
    if expected == 0 && received == 0 {
        return None;
    }
    let slack = (expected as f64 * slack)
        .max(3.0 * (expected as f64).sqrt())
        .max(50.0);
    Some(Check::new(
        name,
        format!(
            "{} ± {} {period}, as the answers imply",
            figure(expected as f64),
            figure(slack)
        ),
        figure(received as f64),
        (received as f64 - expected as f64).abs() <= slack,
    ))
}

fn function(facts: &Facts<'_>, achieved: f64) -> FunctionFigures {
    let window = facts.window;
    let cores = window.cores();
    let measured = facts.timeline.iter().filter(|point| point.measured);
    let cores_max = measured.map(|point| point.cpu).fold(0.0, f64::max);
    // What the function's peers sent is what it received.
    let (mut bytes_in, mut bytes_out) = (0, 0);
    let generator = |mark: &Mark| mark.generator_bytes;
    let (before, after) = (generator(&window.before), generator(&window.after));
    bytes_out += after.0.saturating_sub(before.0);
    bytes_in += after.1.saturating_sub(before.1);
    for ((before, _), (after, _)) in window.before.simulators.iter().zip(&window.after.simulators) {
        bytes_out += after.bytes_in.saturating_sub(before.bytes_in);
        bytes_in += after.bytes_out.saturating_sub(before.bytes_out);
    }
    FunctionFigures {
        name: facts.rig.name.to_owned(),
        pinned_cpus: facts.place.function_cpus.clone(),
        cpu_cores_avg: round(cores, 3),
        cpu_cores_max: round(cores_max, 3),
        cpu_us_per_transaction: round(cores * 1e6 / achieved.max(1e-9), 2),
        rss_mb_max: round(facts.rss_max as f64 / f64::from(1 << 20), 1),
        rss_mb_avg: round(facts.rss_avg / f64::from(1 << 20), 1),
        roles: facts.roles.clone(),
        connections_in: facts.connections.incoming,
        connections_out: facts.connections.outgoing,
        bytes_in,
        bytes_out,
    }
}

fn guide(guide: &Guide, source: &str, function: &str) -> GuideFigures {
    let ms = |period: Option<settings::Period>| period.map(|p| round(p.duration().as_secs_f64() * 1000.0, 3));
    GuideFigures {
        source: source.to_owned(),
        duration_s: guide.duration.duration().as_secs_f64(),
        offered_tps: guide.target_tps,
        achieved_tps: guide.achieved_tps,
        operations: guide
            .latency
            .iter()
            .map(|row| GuideRow {
                name: row.operation.clone().unwrap_or_else(|| row.stretch.clone()),
                stretch: row.stretch.clone(),
                latency_ms: Latency {
                    mean: ms(row.mean),
                    p50: ms(row.p50),
                    p90: ms(row.p90),
                    p95: ms(row.p95),
                    p99: ms(row.p99),
                    p999: None,
                    max: ms(row.max),
                },
            })
            .collect(),
        functions: vec![FunctionFigures {
            name: function.to_owned(),
            cpu_cores_avg: round(guide.cores_used(), 3),
            cpu_us_per_transaction: round(guide.cpu_us_per_transaction().unwrap_or(0.0), 1),
            connections_in: guide.connections_in.unwrap_or(0),
            connections_out: guide.connections_out.unwrap_or(0),
            ..FunctionFigures::default()
        }],
    }
}

/// The same figures in messages, where the guide counts those.
fn messages(model: &CallModel, achieved: f64, cores: f64) -> Option<MessageFigures> {
    let each = model.messages_per_transaction()?;
    let guide = model.guide.as_ref();
    let guide_cpu = guide.and_then(Guide::cpu_us_per_transaction).unwrap_or(0.0);
    Some(MessageFigures {
        per_transaction: each,
        mps: round(achieved * each, 1),
        cpu_us_per_message: round(cores * 1e6 / (achieved * each).max(1e-9), 3),
        guide_mps: guide.map_or(0.0, |guide| guide.ingress_tps * each),
        guide_cpu_us_per_message: round(guide_cpu / each, 1),
    })
}

fn lab(facts: &Facts<'_>) -> Vec<LabProcess> {
    let window = facts.window;
    let cores =
        |after: Duration, before: Duration| after.saturating_sub(before).as_secs_f64() / window.seconds();
    let sum = |mark: &Mark| mark.generator_cpu.iter().sum::<Duration>();
    let mut lab = vec![LabProcess {
        name: "generator".to_owned(),
        cpu_cores_avg: round(cores(sum(&window.after), sum(&window.before)), 3),
        requests: window.record.total().offered,
    }];
    for (at, simulator) in facts.rig.simulators.iter().enumerate() {
        let (Some(before), Some(after), Some(end)) = (
            window.before.simulators.get(at),
            window.after.simulators.get(at),
            facts.end.simulators.get(at),
        ) else {
            continue;
        };
        lab.push(LabProcess {
            name: simulator.name().to_owned(),
            cpu_cores_avg: round(cores(after.1.cpu, before.1.cpu), 3),
            requests: end.0.requests,
        });
    }
    for (name, usage) in &window.after.databases {
        let before = window.before.databases.iter().find(|(other, _)| other == name);
        lab.push(LabProcess {
            name: name.clone(),
            cpu_cores_avg: round(
                cores(usage.cpu, before.map_or(Duration::ZERO, |(_, usage)| usage.cpu)),
                3,
            ),
            requests: 0,
        });
    }
    lab
}

fn notes(facts: &Facts<'_>, messages: Option<&MessageFigures>) -> Vec<String> {
    let mut notes = facts.rig.notes.clone();
    notes.extend(facts.judgement.notes.iter().cloned());
    if let Some(messages) = messages.filter(|messages| messages.guide_mps > 0.0) {
        notes.push(format!(
            "in the guide's messages: {} MPS at {} µs of processor time each; the guide: {} MPS at {} µs",
            figure(messages.mps),
            figure(messages.cpu_us_per_message),
            figure(messages.guide_mps),
            figure(messages.guide_cpu_us_per_message)
        ));
    }
    notes.extend(predicted(facts));
    notes.push(format!("{} connections to the function", facts.connections_asked));
    let guide = facts
        .found
        .model
        .guide
        .as_ref()
        .and_then(|guide| guide.connections_in)
        .unwrap_or(facts.connections_asked);
    if guide != facts.connections_asked {
        notes.push(format!("the guide counts {guide} connections into its gateway"));
    }
    if facts.rig.function.is_none() {
        notes.push("the function ran already: nothing is known of its processor time".to_owned());
    } else if facts.place.function_cpus.is_empty() {
        notes.push("not pinned: function, generator and simulators shared the cores".to_owned());
    }
    let others = facts.window.others(facts.place);
    if others > DISTURBED {
        notes.push(format!(
            "disturbed: other processes took {others:.2} of the function's {} core(s) while it was measured",
            facts.place.function_cpus.len()
        ));
    }
    let busy = facts.window.generator_busy();
    if busy >= BUSY {
        notes.push(format!(
            "the generator's busiest thread used {:.0}% of a core: latencies include its own",
            busy * 100.0
        ));
    }
    notes
}

/// What the model's full rate would take, by the processor time that a transaction took here.
fn predicted(facts: &Facts<'_>) -> Option<String> {
    let (window, full) = (facts.window, facts.found.model.ingress_tps());
    let achieved = window.record.total().succeeded as f64 / window.seconds();
    let known = facts.rig.function.is_some() && achieved > 0.0 && full > 0.0;
    known.then(|| {
        let cores = window.cores() / achieved * full;
        // A core beside those, and a fifth of each, is left free.
        let wanted = (cores / 0.8).ceil() + 1.0;
        format!(
            "at the full rate of {} TPS this processor time is that of {} cores: plan {} to stay below 80%",
            figure(full),
            figure(cores),
            figure(wanted)
        )
    })
}

fn round(number: f64, digits: i32) -> f64 {
    let factor = 10_f64.powi(digits);
    (number * factor).round() / factor
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A step of the search that failed has sent requests whose answers nobody waited for.
    #[test]
    fn leftovers_of_a_failed_step_do_not_fail_the_run() {
        let baseline = Sent {
            expected: 100_000,
            received: 114_700,
            invalid: 0,
        };
        let end = Sent {
            expected: 137_488,
            received: 152_248,
            invalid: 0,
        };
        let check = |counted| sent_as_implied("forwarded discoveries", counted, 0.10, "").unwrap();
        assert!(!check(end).pass);
        let since = check(end.since(baseline));
        assert!(since.pass, "{since:?}");
        // Too few or too many since then fail as before.
        let lost = Sent {
            received: baseline.received + 30_000,
            ..end
        };
        assert!(!check(lost.since(baseline)).pass);
        assert!(sent_as_implied("none", Sent::default(), 0.1, "").is_none());
    }
}
