//! Calls through all functions of this project, in a small dose.

use std::time::Duration;

use lab::run::{Options, Rate};

use crate::bsf::{options, run};
use crate::program;

#[test]
fn a_call_passes_every_function_and_leaves_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let options = Options {
        program: Some(program()),
        rate: Rate::Tps(4.0),
        duration: Duration::from_secs(4),
        warmup: Duration::ZERO,
        ..options(&folder)
    };
    let (report, failed) = run("core/voice-call", &options);
    assert!(failed.is_empty(), "{failed:#?}");
    assert_eq!(report.operations.len(), 18);
    assert!(
        report
            .operations
            .iter()
            .all(|leg| leg.count == 16 && leg.errors == 0),
        "{:#?}",
        report.operations
    );
    let names: Vec<&str> = report.functions.iter().map(|one| one.name.as_str()).collect();
    assert_eq!(names, ["nrf", "bsf", "pcf", "scp", "dsr"]);
}
