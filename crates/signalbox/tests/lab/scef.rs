//! Short runs of the models of an SCEF.

use std::time::Duration;

use lab::callmodel::Found;
use lab::report::Report;
use lab::run::{Options, Progress, Rate};

use crate::{failed, program};

/// A model with fewer devices, which an unoptimised SCEF connects in no time.
fn small(name: &str) -> Found {
    let mut found = lab::callmodel::find(name).unwrap();
    let scef = found.model.scef.as_mut().unwrap();
    scef.devices = 200;
    scef.monitoring.standing = 100;
    // Answers are late beside a compiler.
    found.model.load.timeout = settings::Period::from_secs(30);
    found
}

/// Runs a model at this rate for some seconds; every check of content holds.
fn run(name: &str, rate: f64, seconds: u64) -> Report {
    let folder = tempfile::tempdir().unwrap();
    let options = Options {
        rate: Rate::Tps(rate),
        duration: Duration::from_secs(seconds),
        warmup: Duration::from_secs(1),
        connections: Some(4),
        out: folder.path().to_owned(),
        program: Some(program()),
        ..Options::default()
    };
    let made = lab::run::run(&small(name), &options, &mut Progress::default());
    let (report, series) = made.unwrap_or_else(|error| panic!("{name}: {error}"));
    let failed = failed(&report);
    assert!(
        failed.is_empty(),
        "{name}: {failed:#?}\n{:#?}\n{:#?}",
        series.failures,
        series.examples
    );
    report
}

#[test]
fn what_is_accepted_arrives_once() {
    let report = run("dsr/scef", 200.0, 3);
    let names: Vec<&str> = report.operations.iter().map(|one| one.name.as_str()).collect();
    assert_eq!(
        names,
        [
            "mtData",
            "subscribe",
            "unsubscribe",
            "trigger",
            "moData",
            "report"
        ]
    );
    let messages = report.messages.unwrap();
    assert!((2.5..2.7).contains(&messages.per_transaction), "{messages:?}");
}

#[test]
fn a_killed_scef_loses_nothing() {
    let report = run("dsr/scef-kill", 100.0, 8);
    assert!(
        report
            .checks
            .iter()
            .any(|check| check.name == "the SCEF died and came back")
    );
}

#[test]
fn an_scef_without_its_hss_serves_what_needs_none() {
    let report = run("dsr/scef-lose-hss", 100.0, 8);
    assert!(report.checks.iter().any(|check| check.name == "readiness"));
}

#[test]
fn one_slow_server_does_not_hold_up_the_others() {
    let report = run("dsr/scef-slow-as", 200.0, 10);
    let others = "notifications of the other SCS/AS";
    assert!(report.checks.iter().any(|check| check.name == others));
}
