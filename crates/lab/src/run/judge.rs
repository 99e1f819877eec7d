//! From what was counted to what it means: the report.

use std::time::Duration;

use ::report::{
    Conditions, EgressFigures, FunctionFigures, GuideFigures, GuideRow, Knee, LabProcess, Latency,
    MessageFigures, OperationFigures, Point, Report, RoleFigures, Series, Spread, Step, Verdict,
};
use callmodel::{CallModel, Found, Guide};
use loadgen::FailureKind;
use report::measure::{Connections, Machine, clock};
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

use super::checks::checks;
use super::drill::Judgement;
use super::figure;
use super::knee::BUSY;
use super::rig::{Place, Rig};
use super::services;
use super::window::{DISTURBED, Mark, Window};

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
        stolen_cores: Some(round(stolen, 2)),
        foreign_cores: Some(round(foreign, 2)),
    }
}

/// Makes the report.
pub(super) fn report(facts: Facts<'_>) -> (Report, Series) {
    let checks = checks(&facts);
    let (conditions, machine) = (conditions(&facts), Machine::this());
    let verdict = Verdict::of(&checks, &conditions, machine.cores);
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
        machine,
        conditions,
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
        egress: egress(&facts, achieved),
        services: services::figures(&facts, achieved),
        store: facts.rig.store.clone(),
        destinations: facts.judgement.destinations.clone(),
        verdict,
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

/// What the function sent to others, as those counted it, and its processor time per transaction in or out.
fn egress(facts: &Facts<'_>, achieved: f64) -> Option<EgressFigures> {
    let window = facts.window;
    let counts = window.after.egress.iter().zip(&window.before.egress);
    let receivers: Vec<(String, f64)> = facts
        .rig
        .egress
        .iter()
        .zip(counts)
        .map(|(one, (after, before))| {
            let rate = after.saturating_sub(*before) as f64 / window.seconds();
            (one.name.to_owned(), round(rate, 1))
        })
        .collect();
    if receivers.is_empty() {
        return None;
    }
    let tps: f64 = receivers.iter().map(|(_, rate)| rate).sum();
    let guide = facts.found.model.guide.as_ref();
    let guide_tps = guide.map_or(0.0, |guide| guide.achieved_tps);
    let guide_cores = guide.map_or(0.0, Guide::cores_used);
    Some(EgressFigures {
        receivers,
        tps: round(tps, 1),
        cpu_us_per_transaction: round(window.cores() * 1e6 / (achieved + tps).max(1e-9), 2),
        guide_tps,
        guide_cpu_us_per_transaction: round(guide_cores * 1e6 / guide_tps.max(1e-9), 1),
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

/// The rate with what the function sends on its own, where the guide counts that into the rate that it achieved.
fn rate_of_guide(facts: &Facts<'_>) -> Option<String> {
    let guide = facts.found.model.guide.as_ref()?;
    let window = facts.window;
    let received = |mark: &Mark, simulator: usize| {
        let stats = mark.simulators.get(simulator).map(|(stats, _)| stats);
        stats.map_or(0, |stats| stats.requests)
    };
    let counted: Vec<_> = facts.rig.outgoing.iter().filter(|one| one.in_rate).collect();
    let sent: u64 = counted
        .iter()
        .map(|one| {
            received(&window.after, one.simulator).saturating_sub(received(&window.before, one.simulator))
        })
        .sum();
    let names: Vec<&str> = counted.iter().map(|one| one.name).collect();
    let achieved = window.record.total().succeeded + sent;
    (!counted.is_empty()).then(|| {
        format!(
            "with {}, which the guide counts as well: {} TPS; the guide: {} TPS",
            names.join(" and "),
            figure(achieved as f64 / window.seconds()),
            figure(guide.achieved_tps)
        )
    })
}

fn notes(facts: &Facts<'_>, messages: Option<&MessageFigures>) -> Vec<String> {
    let mut notes = facts.rig.notes.clone();
    notes.extend(facts.judgement.notes.iter().cloned());
    if let Some((own, Some(guide))) = messages.map(MessageFigures::words) {
        notes.push(format!(
            "in the guide's messages, with its processor time for each: {own}; the guide: {guide}"
        ));
    }
    notes.extend(rate_of_guide(facts));
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
    if facts.rig.function.is_none() && facts.rig.drill.is_some() {
        // The drill holds its process.
    } else if facts.rig.function.is_none() {
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

pub(super) fn round(number: f64, digits: i32) -> f64 {
    let factor = 10_f64.powi(digits);
    (number * factor).round() / factor
}
