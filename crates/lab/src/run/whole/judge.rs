//! The report of a run of calls: legs, what functions counted, what is left.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use serde_json::Value;
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

use super::calls::Made;
use super::functions::Core;
use crate::call::LEGS;
use crate::run::rig::Place;
use crate::run::{Options, admin, figure};
use ::report::{
    Check, Conditions, FunctionFigures, GuideFigures, Latency, OperationFigures, Report, Series, Spread,
    Verdict,
};
use callmodel::Found;
use callmodel::whole::CoreModel;
use loadgen::{FailureKind, OperationRecord};
use report::measure::Machine;

/// How long BSF and PCF may take until nothing is left.
const PATIENCE: Duration = Duration::from_secs(10);
/// The least share of the schedule that must be made in time.
const ON_TIME: f64 = 0.9;

/// All that the report is made from.
pub(super) struct Facts<'a> {
    pub(super) found: &'a Found,
    pub(super) model: &'a CoreModel,
    pub(super) options: &'a Options,
    pub(super) place: &'a Place,
    pub(super) core: &'a Core,
    pub(super) started: OffsetDateTime,
    /// Calls per second.
    pub(super) rate: f64,
    pub(super) made: &'a Made,
}

/// Makes the report.
pub(super) fn report(facts: &Facts<'_>) -> (Report, Series) {
    let Facts { found, made, .. } = facts;
    let total = made.calls.total();
    let checks = checks(facts, &total);
    let (conditions, machine) = (conditions(facts), Machine::this());
    let verdict = Verdict::of(&checks, &conditions, machine.cores);
    let functions = functions(facts, total.succeeded);
    let named = || {
        LEGS.iter()
            .map(|(_, name)| *name)
            .zip(&made.legs.record().operations)
    };
    let report = Report {
        model: found.name.clone(),
        started: facts.started.format(&Rfc3339).unwrap_or_default(),
        duration_s: round(made.seconds, 3),
        machine,
        conditions,
        offered_tps: round(total.offered as f64 / made.seconds, 2),
        achieved_tps: round(total.succeeded as f64 / made.seconds, 2),
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
        functions,
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
    let series = Series {
        title: found.model.title.clone(),
        summary: found.model.summary.clone(),
        spreads: named()
            .filter(|(_, record)| !record.latency.is_empty())
            .map(|(name, record)| Spread::of(name, &record.latency))
            .collect(),
        failures: match total.failures() {
            0 => Vec::new(),
            failed => vec![(FailureKind::Wrong.name().to_owned(), failed)],
        },
        examples: made.calls.examples.clone(),
        choices: found
            .model
            .choices
            .iter()
            .map(|one| (one.about.clone(), one.printed.clone(), one.taken.clone()))
            .collect(),
        notes: notes(facts, &report),
        timeline: made.timeline.clone(),
        ..Series::default()
    };
    (report, series)
}

fn conditions(facts: &Facts<'_>) -> Conditions {
    let version = std::process::Command::new(&facts.place.program)
        .arg("--version")
        .output();
    let program = version.map(|output| String::from_utf8_lossy(&output.stdout).trim().to_owned());
    let (clock_source, cpu_mhz) = report::measure::clock();
    let (stolen_cores, foreign_cores) = disturbances(facts.made).unzip();
    Conditions {
        program: program.unwrap_or_default(),
        clock_source,
        cpu_mhz: round(cpu_mhz, 0),
        stolen_cores,
        foreign_cores,
    }
}

/// Cores that a hypervisor took away, and cores that processes outside of the run used; `None` where the system does not
/// report them.
fn disturbances(made: &Made) -> Option<(f64, f64)> {
    let (before, after) = (made.before.machine?, made.after.machine?);
    let cores = |after: Duration, before: Duration| after.saturating_sub(before).as_secs_f64() / made.seconds;
    let stolen = cores(after.1, before.1);
    let foreign = cores(after.0, before.0) - stolen - cores(after.2, before.2);
    Some((round(stolen, 2), round(foreign.max(0.0), 2)))
}

/// Processor time and memory of each function; a transaction is a call.
fn functions(facts: &Facts<'_>, calls: u64) -> Vec<FunctionFigures> {
    let made = facts.made;
    let usages = made.before.usage.iter().zip(&made.after.usage);
    let functions = facts.core.functions.iter().zip(usages);
    functions
        .map(|(function, (before, after))| {
            let cpu = after.cpu.saturating_sub(before.cpu).as_secs_f64();
            FunctionFigures {
                name: function.name.to_owned(),
                pinned_cpus: facts.place.function_cpus.clone(),
                cpu_cores_avg: round(cpu / made.seconds, 3),
                cpu_us_per_transaction: round(cpu * 1e6 / (calls as f64).max(1.0), 1),
                rss_mb_max: round(after.rss as f64 / f64::from(1 << 20), 1),
                ..FunctionFigures::default()
            }
        })
        .collect()
}

fn notes(facts: &Facts<'_>, report: &Report) -> Vec<String> {
    let each: Vec<String> = report
        .functions
        .iter()
        .map(|one| format!("{} {} µs", one.name, figure(one.cpu_us_per_transaction)))
        .collect();
    let sum: f64 = report
        .functions
        .iter()
        .map(|one| one.cpu_us_per_transaction)
        .sum();
    let mut notes = vec![
        format!(
            "processor time per call: {} µs ({})",
            figure(sum),
            each.join(", ")
        ),
        format!(
            "a call has {} legs; latencies are those of each leg from its first byte sent, the call's from its intended time",
            LEGS.len()
        ),
        format!(
            "a UDR that takes {} to answer, a CHF that takes {}; {} callers",
            facts.model.udr.latency, facts.model.chf.latency, facts.made.callers
        ),
    ];
    if facts.options.pin.is_empty() {
        notes.push("not pinned: functions, callers and simulators shared the cores".to_owned());
    }
    notes
}

fn checks(facts: &Facts<'_>, total: &OperationRecord) -> Vec<Check> {
    let (made, bounds) = (facts.made, &facts.found.model.bounds);
    let success = total.succeeded as f64 / (total.offered as f64).max(1.0);
    let p99 = total.latency.value_at_quantile(0.99) as f64 / 1000.0;
    let mut checks = vec![
        Check::new(
            "success",
            format!("at least {} of the calls", bounds.success),
            format!(
                "{:.4}% ({} of {} failed)",
                success * 100.0,
                total.failures(),
                total.offered
            ),
            total.offered > 0 && success >= bounds.success.fraction(),
        ),
        Check::new(
            "latency",
            format!("p99 of whole calls up to {}", bounds.p99),
            format!("{} ms", figure(p99)),
            p99 <= bounds.p99.duration().as_secs_f64() * 1000.0,
        )
        .of_time(),
        Check::new(
            "calls on time",
            format!(
                "at least {}% of {} calls a second",
                ON_TIME * 100.0,
                figure(facts.rate)
            ),
            format!("{} a second", figure(total.offered as f64 / made.seconds)),
            total.offered as f64 / made.seconds >= facts.rate * ON_TIME,
        )
        .of_time(),
    ];
    let legs = &made.legs.record().operations;
    checks.extend(LEGS.iter().zip(legs).map(|((_, name), record)| {
        Check::new(
            *name,
            "every one of its calls",
            format!("{} right, {} wrong", record.succeeded, record.failures()),
            record.failures() == 0 && record.succeeded > 0,
        )
    }));
    checks.extend(counts(facts));
    checks.push(notified(facts));
    checks.extend(leftovers(facts.core));
    checks
}

/// Whether the functions counted what the legs were.
fn counts(facts: &Facts<'_>) -> Vec<Check> {
    let made = facts.made;
    let legs = &made.legs.record().operations;
    let of = |names: &[&str]| -> u64 {
        let named = LEGS.iter().zip(legs);
        let fitting = named.filter(|((_, name), _)| names.contains(name));
        fitting.map(|(_, record)| record.succeeded).sum()
    };
    let rows: [(&str, &str, &[&str]); 13] = [
        ("nrf", "signalbox_nrf_discoveries_total", &["nrf.discoverPcf"]),
        ("pcf", "signalbox_pcf_am_created_total", &["scp.amCreate"]),
        ("pcf", "signalbox_pcf_ue_created_total", &["scp.ueCreate"]),
        ("pcf", "signalbox_pcf_sm_created_total", &["scp.smCreate"]),
        (
            "pcf",
            "signalbox_pcf_af_created_total",
            &["dsr.aar", "scp.afCreate"],
        ),
        (
            "pcf",
            "signalbox_pcf_af_deleted_total",
            &["dsr.str", "scp.afDelete"],
        ),
        ("pcf", "signalbox_pcf_sm_deleted_total", &["scp.smDelete"]),
        ("pcf", "signalbox_pcf_ue_deleted_total", &["scp.ueDelete"]),
        ("pcf", "signalbox_pcf_am_deleted_total", &["scp.amDelete"]),
        ("bsf", "signalbox_bsf_registrations_total", &["scp.smCreate"]),
        ("bsf", "signalbox_bsf_deregistrations_total", &["scp.smDelete"]),
        ("bsf", "signalbox_bsf_rx_requests_total", &["dsr.aar", "dsr.str"]),
        ("dsr", "signalbox_dsr_requests_total", &["dsr.aar", "dsr.str"]),
    ];
    let scp = ("scp", "signalbox_scp_requests_total");
    let through_scp = LEGS.iter().map(|(_, name)| *name);
    let through_scp: Vec<&str> = through_scp
        .filter(|name| name.starts_with("scp.") || *name == "pcf.sessionRemoved")
        .collect();
    let mut wanted: Vec<(&str, &str, u64)> = rows
        .iter()
        .map(|(function, metric, names)| (*function, *metric, of(names)))
        .collect();
    wanted.push((scp.0, scp.1, of(&through_scp)));
    let names: Vec<&str> = facts.core.functions.iter().map(|one| one.name).collect();
    wanted
        .into_iter()
        .map(|(function, metric, expected)| {
            let at = names.iter().position(|name| *name == function);
            let read = |moment: &super::calls::Moment| {
                let metrics = at.and_then(|at| moment.metrics.get(at));
                metrics.map_or(f64::NAN, |metrics| metrics.sum(metric, &[]))
            };
            let counted = read(&made.after) - read(&made.before);
            // Functions also ask the NRF on their own.
            let (words, holds) = match function {
                "nrf" => ("at least ", counted >= expected as f64),
                _ => ("", counted == expected as f64),
            };
            Check::new(
                format!("{function} counts {}", metric.trim_start_matches("signalbox_")),
                format!("{words}{expected}, as the legs"),
                figure(counted),
                holds,
            )
        })
        .collect()
}

/// Whether the SMF received one notification for each change of rules.
fn notified(facts: &Facts<'_>) -> Check {
    let legs = LEGS.iter().zip(&facts.made.legs.record().operations);
    let of_smf = legs.filter(|((_, name), _)| name.starts_with("smf."));
    let expected: u64 = of_smf.map(|(_, record)| record.succeeded).sum();
    Check::new(
        "notifications",
        format!("{expected}, one for each change of the rules at the SMF"),
        facts.made.notified.to_string(),
        facts.made.notified == expected,
    )
}

/// Whether BSF and PCF have nothing left; the last deletions reach the BSF after their answers.
fn leftovers(core: &Core) -> Vec<Check> {
    let rows = [
        ("bsf", "/bsf/bindings", "no binding at the BSF"),
        ("pcf", "/pcf/sessions", "no association at the PCF"),
    ];
    let checks = rows.into_iter().filter_map(|(name, path, about)| {
        let admin = core.functions.iter().find(|one| one.name == name)?.admin;
        let end = Instant::now() + PATIENCE;
        let mut left = count(admin, path);
        while left != Some(0) && Instant::now() < end {
            std::thread::sleep(Duration::from_millis(50));
            left = count(admin, path);
        }
        let got = left.map_or("no answer".to_owned(), |left| left.to_string());
        Some(Check::new(
            about,
            "0 when all calls have ended",
            got,
            left == Some(0),
        ))
    });
    checks.collect()
}

/// The length of the list at a page of an admin endpoint.
fn count(admin: SocketAddr, path: &str) -> Option<usize> {
    let (status, body) = admin::ask(admin, "GET", path)?;
    if status != 200 {
        return None;
    }
    let listed: Value = serde_json::from_str(&body).ok()?;
    listed.as_array().map(Vec::len)
}

fn round(number: f64, digits: i32) -> f64 {
    let factor = 10_f64.powi(digits);
    (number * factor).round() / factor
}
