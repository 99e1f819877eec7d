//! One incident after the other, under a little traffic.

use std::time::Duration;

use lab::run::{Options, Rate};

use crate::bsf::{options, run};
use crate::program;

/// Nothing fails that could be served; each incident is reported and passes. How fast is a matter of the machine.
#[test]
fn a_bad_day_costs_only_what_cannot_be_served() {
    let folder = tempfile::tempdir().unwrap();
    let options = Options {
        program: Some(program()),
        rate: Rate::Tps(200.0),
        duration: Duration::from_secs(8),
        ..options(&folder)
    };
    let (report, failed) = run("core/bad-day", &options);
    assert!(failed.is_empty(), "{failed:#?}");
    let requests = report
        .checks
        .iter()
        .filter(|check| check.name.ends_with(": requests"));
    // Not every machine has a database server, or lets this process mount a disk.
    assert!(requests.count() >= 6, "{:#?}", report.checks);
}
