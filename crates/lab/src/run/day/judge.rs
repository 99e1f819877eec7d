//! The report of a bad day: for each incident what failed, who reported it, and when all was as before.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

use super::incidents::{name, reported, unserved};
use super::kinds::Kind;
use super::load::{Failure, Load};
use super::network::Network;
use crate::run::figure;
use crate::run::rig::Place;
use ::report::{
    Check, Conditions, FunctionFigures, GuideFigures, Latency, OperationFigures, Report, Series, Spread,
    Verdict,
};
use callmodel::Found;
use callmodel::bad_day::{BadDayModel, Incident};
use report::measure::Machine;

/// Failures of an incident that the report shows in words.
const EXAMPLES: usize = 3;

/// An incident that has passed.
pub(super) struct Passed {
    pub(super) incident: Incident,
    pub(super) begun: Instant,
    /// When its cause had ended.
    pub(super) ended: Instant,
    /// When the next one could begin.
    pub(super) over: Instant,
    /// After how long the alarm was active.
    pub(super) alarm: Option<Duration>,
    /// After how long readiness differed.
    pub(super) readiness: Option<Duration>,
    /// How long after the end alarms and readiness were as before; `None`: they were not.
    pub(super) cleared: Option<Duration>,
    /// What was different, where they were not.
    pub(super) differences: Vec<String>,
}

/// All that the report is made from.
pub(super) struct Facts<'a> {
    pub(super) found: &'a Found,
    pub(super) model: &'a BadDayModel,
    pub(super) place: &'a Place,
    pub(super) started: OffsetDateTime,
    pub(super) network: &'a Network,
    pub(super) load: &'a Load,
    pub(super) passed: &'a [Passed],
    pub(super) seconds: f64,
    /// Requests per second.
    pub(super) rate: f64,
}

/// Makes the report.
pub(super) fn report(facts: &Facts<'_>) -> (Report, Series) {
    let (found, record) = (facts.found, facts.load.record());
    let total = record.total();
    let checks: Vec<Check> = facts
        .passed
        .iter()
        .flat_map(|passed| checks(facts, passed))
        .collect();
    let (conditions, machine) = (conditions(facts.place), Machine::this());
    let verdict = Verdict::of(&checks, &conditions, machine.cores);
    let named = || {
        Kind::ALL
            .iter()
            .map(|(kind, _)| kind.name())
            .zip(&record.operations)
    };
    let report = Report {
        model: found.name.clone(),
        started: facts.started.format(&Rfc3339).unwrap_or_default(),
        duration_s: round(facts.seconds, 3),
        machine,
        conditions,
        offered_tps: round(total.offered as f64 / facts.seconds, 2),
        achieved_tps: round(total.succeeded as f64 / facts.seconds, 2),
        success_ratio: round(total.succeeded as f64 / (total.offered as f64).max(1.0), 6),
        latency_ms: Latency::of(&total.latency),
        operations: named()
            .map(|(name, record)| OperationFigures {
                name: name.to_owned(),
                count: record.offered,
                errors: record.failures(),
                latency_ms: Latency::of(&record.latency),
            })
            .collect(),
        functions: functions(facts, total.succeeded),
        guide: GuideFigures::default(),
        checks,
        knee: None,
        messages: None,
        egress: None,
        services: Vec::new(),
        store: None,
        destinations: None,
        verdict,
    };
    let failures = facts.passed.iter().map(|passed| {
        let failed = facts.load.failures(passed.begun, passed.over).len();
        (name(passed.incident).to_owned(), failed as u64)
    });
    let choices = found.model.choices.iter();
    let series = Series {
        title: found.model.title.clone(),
        summary: found.model.summary.clone(),
        spreads: named()
            .filter(|(_, record)| !record.latency.is_empty())
            .map(|(name, record)| Spread::of(name, &record.latency))
            .collect(),
        failures: failures.filter(|(_, failed)| *failed > 0).collect(),
        examples: facts
            .passed
            .iter()
            .flat_map(|passed| examples(facts, passed))
            .collect(),
        choices: choices
            .map(|one| (one.about.clone(), one.printed.clone(), one.taken.clone()))
            .collect(),
        notes: notes(facts),
        ..Series::default()
    };
    (report, series)
}

/// The three checks of an incident.
fn checks(facts: &Facts<'_>, passed: &Passed) -> Vec<Check> {
    let failures = facts.load.failures(passed.begun, passed.over);
    let (spared, lost): (Vec<Failure>, Vec<Failure>) = failures
        .into_iter()
        .partition(|failure| unserved(passed.incident).contains(&failure.kind));
    let about = name(passed.incident);
    let mut checks = vec![Check::new(
        format!("{about}: requests"),
        "none fails that could be served",
        format!(
            "{} failed{}; {} that could not be served{}",
            lost.len(),
            by_kind(&lost),
            spared.len(),
            by_kind(&spared)
        ),
        lost.is_empty(),
    )];
    checks.extend(punctual(facts, passed, about));
    checks.push(recovered(facts, passed, about, lost.iter().chain(&spared)));
    checks
}

/// Whether the incident was reported; `None` where there is nothing to report.
fn punctual(facts: &Facts<'_>, passed: &Passed, about: &str) -> Option<Check> {
    let wanted = reported(passed.incident)?;
    let bound = facts.model.reported_within;
    let within = |when: Option<Duration>| when.is_some_and(|when| when <= bound.duration());
    let words =
        |when: Option<Duration>| when.map_or("never".to_owned(), |when| format!("after {}", seconds(when)));
    let readiness = match wanted.readiness {
        true => format!(", readiness {}", words(passed.readiness)),
        false => String::new(),
    };
    let came = passed.alarm.is_some() && (!wanted.readiness || passed.readiness.is_some());
    let in_time = within(passed.alarm) && (!wanted.readiness || within(passed.readiness));
    let check = Check::new(
        format!("{about}: reported"),
        format!("alarm {} of the {} within {bound}", wanted.alarm, wanted.by),
        format!("alarm {}{readiness}", words(passed.alarm)),
        in_time,
    );
    // A report that did not come at all is a failure on any machine.
    Some(check.of_time_if(came))
}

fn recovered<'f>(
    facts: &Facts<'_>,
    passed: &Passed,
    about: &str,
    failures: impl Iterator<Item = &'f Failure>,
) -> Check {
    let bound = facts.model.recovered_within;
    let after = failures.filter_map(|failure| failure.sent.checked_duration_since(passed.ended));
    let last = after.max().unwrap_or_default();
    let cleared = match passed.cleared {
        Some(cleared) => format!("alarms and readiness as before {} after it", seconds(cleared)),
        None => format!("not as before: {}", passed.differences.join("; ")),
    };
    let check = Check::new(
        format!("{about}: as before"),
        format!("requests within {bound} of the end of the cause; alarms cleared"),
        format!("the last request failed {} after it; {cleared}", seconds(last)),
        last <= bound.duration() && passed.cleared.is_some(),
    );
    check.of_time_if(passed.cleared.is_some())
}

/// How many failures there were of each kind.
fn by_kind(failures: &[Failure]) -> String {
    let mut counts = BTreeMap::<&str, u64>::new();
    for failure in failures {
        *counts.entry(failure.kind.name()).or_default() += 1;
    }
    if counts.is_empty() {
        return String::new();
    }
    let words: Vec<String> = counts
        .iter()
        .map(|(kind, count)| format!("{count} {kind}"))
        .collect();
    format!(" ({})", words.join(", "))
}

/// The first failures that should not have been.
fn examples(facts: &Facts<'_>, passed: &Passed) -> Vec<String> {
    let failures = facts.load.failures(passed.begun, passed.over);
    let lost = failures
        .iter()
        .filter(|failure| !unserved(passed.incident).contains(&failure.kind));
    lost.take(EXAMPLES)
        .map(|failure| {
            let at = failure.ended.duration_since(passed.begun);
            let about = name(passed.incident);
            format!(
                "{about}, {} after its begin: {} {}",
                seconds(at),
                failure.kind.name(),
                failure.why
            )
        })
        .collect()
}

fn conditions(place: &Place) -> Conditions {
    let version = std::process::Command::new(&place.program)
        .arg("--version")
        .output();
    let program = version.map(|output| String::from_utf8_lossy(&output.stdout).trim().to_owned());
    let (clock_source, cpu_mhz) = report::measure::clock();
    Conditions {
        program: program.unwrap_or_default(),
        clock_source,
        cpu_mhz: round(cpu_mhz, 0),
        stolen_cores: None,
        foreign_cores: None,
    }
}

/// Memory and processor time of each function; that of the NRF since it was started again.
fn functions(facts: &Facts<'_>, requests: u64) -> Vec<FunctionFigures> {
    let functions = facts.network.functions();
    functions
        .iter()
        .map(|function| {
            let usage = function
                .process
                .as_ref()
                .and_then(|process| process.process().usage());
            let usage = usage.unwrap_or_default();
            FunctionFigures {
                name: function.name.to_owned(),
                pinned_cpus: facts.place.function_cpus.clone(),
                cpu_cores_avg: round(usage.cpu.as_secs_f64() / facts.seconds, 3),
                cpu_us_per_transaction: round(usage.cpu.as_secs_f64() * 1e6 / (requests as f64).max(1.0), 1),
                rss_mb_max: round(usage.rss as f64 / f64::from(1 << 20), 1),
                ..FunctionFigures::default()
            }
        })
        .collect()
}

fn notes(facts: &Facts<'_>) -> Vec<String> {
    let left_out = facts.load.left_out.load(std::sync::atomic::Ordering::Relaxed);
    let mut notes = vec![format!(
        "{} requests a second; {left_out} were left out because their consumer was still pending",
        figure(facts.rate)
    )];
    let impossible = facts.network.impossible.iter();
    notes.extend(impossible.map(|(incident, why)| format!("{} was left out: {why}", name(*incident))));
    notes
}

fn seconds(duration: Duration) -> String {
    format!("{} s", figure(round(duration.as_secs_f64(), 2)))
}

fn round(number: f64, digits: i32) -> f64 {
    let factor = 10_f64.powi(digits);
    (number * factor).round() / factor
}
