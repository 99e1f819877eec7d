//! Short runs of the models of a signal transfer point.

use std::time::Duration;

use lab::callmodel::Found;
use lab::report::{Report, Series};
use lab::run::{Options, Progress, Rate};

use crate::{failed, program};

/// A model with as many numbers as an unoptimised STP reads in no time.
fn small(name: &str) -> Found {
    let mut found = lab::callmodel::find(name).unwrap();
    let stp = found.model.stp.as_mut().unwrap();
    stp.translations = stp.translations.min(1_000);
    stp.numbers = stp.numbers.min(1_000);
    if let Some(lists) = &mut stp.equipment {
        (lists.ranges, lists.imeis) = (1_000, 1_000);
    }
    found
}

fn run(found: &Found, options: Options) -> (Report, Series) {
    let folder = tempfile::tempdir().unwrap();
    let options = Options {
        out: folder.path().to_owned(),
        program: Some(program()),
        ..options
    };
    let made = lab::run::run(found, &options, &mut Progress::default());
    let (report, series) = made.unwrap_or_else(|error| panic!("{}: {error}", found.name));
    let failed = failed(&report);
    assert!(
        failed.is_empty(),
        "{}: {failed:#?}\n{:#?}",
        found.name,
        series.examples
    );
    (report, series)
}

fn options(rate: f64) -> Options {
    Options {
        rate: Rate::Tps(rate),
        duration: Duration::from_secs(3),
        warmup: Duration::from_secs(1),
        connections: Some(6),
        ..Options::default()
    }
}

#[test]
fn messages_arrive_where_each_model_says() {
    for (name, operations) in [
        ("dsr/vstp", &["translation", "MTP routing"][..]),
        ("dsr/vstp-screening", &["translation", "MTP routing", "screened"]),
        (
            "dsr/vstp-mnp",
            &[
                "translation",
                "home number",
                "ported, sendRoutingInfo",
                "ported, other",
            ],
        ),
        ("dsr/vstp-gflex", &["translation", "IMSI"]),
        ("dsr/vstp-eir", &["checkIMEI"]),
        ("dsr/vstp-inpq", &["translation", "InitialDP, query"]),
        ("dsr/vstp-tif", &["translation", "IAM"]),
    ] {
        let (report, _) = run(&small(name), options(100.0));
        let names: Vec<&str> = report.operations.iter().map(|one| one.name.as_str()).collect();
        assert_eq!(names, operations, "{name}");
        assert!(report.checks.iter().any(|check| check.name == "delivery"));
        assert!(report.functions[0].connections_in >= 7, "{name}");
    }
}

#[test]
fn a_hundred_associations_are_shared_out_among_threads() {
    let options = Options {
        connections: Some(92),
        generators: 3,
        ..options(100.0)
    };
    let (report, _) = run(&small("dsr/vstp"), options);
    assert_eq!(report.functions[0].connections_in, 100);
}

#[test]
fn an_stp_passes_its_drills() {
    for (name, own) in [
        ("dsr/vstp-lose-hlr", "messages for the lost HLR"),
        ("dsr/vstp-oscillation", "messages for the lost HLR"),
        ("dsr/vstp-kill", "the STP died and came back"),
        ("dsr/vstp-links", "links are cut"),
        ("dsr/vstp-mixed", "links are cut"),
        ("dsr/vstp-lose-mate", "the mate died and came back"),
        ("dsr/vstp-reload", "translations are replaced"),
    ] {
        let options = Options {
            duration: Duration::from_secs(8),
            ..options(100.0)
        };
        let (report, _) = run(&small(name), options);
        assert!(report.checks.iter().any(|check| check.name == own), "{name}");
    }
}
