//! Database processors and the subscriber database server that they follow: beside a router, in drills, and under look-ups alone.

use std::time::Duration;

use lab::report::{Check, Report, Series};
use lab::run::{Options, Progress, Rate};

use crate::{failed, program, site};

fn options(folder: &tempfile::TempDir) -> Options {
    Options {
        rate: Rate::Tps(200.0),
        duration: Duration::from_secs(3),
        warmup: Duration::from_secs(1),
        connections: Some(4),
        out: folder.path().to_owned(),
        program: Some(program()),
        ..Options::default()
    }
}

/// A run of a model with these numbers of subscribers and of addresses provisioned a second, all of whose checks of content hold.
fn passes(model: &str, (subscribers, writes): (u64, u32), duration: Duration) -> (Report, Series) {
    let folder = tempfile::tempdir().unwrap();
    let mut found = lab::callmodel::find(model).unwrap();
    let fabr = found
        .model
        .dsr
        .as_mut()
        .and_then(|dsr| dsr.fabr.as_mut())
        .unwrap();
    (fabr.subscribers, fabr.writes) = (subscribers, writes);
    let options = Options {
        duration,
        ..options(&folder)
    };
    let (report, series) =
        lab::run::run(&found, &options, &mut Progress::default()).unwrap_or_else(|error| panic!("{error}"));
    let failed = failed(&report);
    assert!(failed.is_empty(), "{model}: {failed:#?}\n{:#?}", series.examples);
    (report, series)
}

fn check<'r>(report: &'r Report, name: &str) -> &'r Check {
    let check = report.checks.iter().find(|check| check.name == name);
    check.unwrap_or_else(|| panic!("{name}: {:#?}", report.checks))
}

#[test]
fn a_router_asks_processors_that_follow_a_server() {
    let (report, series) = passes("dsr/fabr-dp", (3000, 60), Duration::from_secs(3));
    for name in [
        "updateLocation by IMSI",
        "locationInfo by MSISDN",
        "locationInfo by name",
    ] {
        let operation = report.operations.iter().find(|one| one.name == name);
        assert!(
            operation.is_some_and(|one| one.count > 20),
            "{:?}",
            report.operations
        );
    }
    assert_eq!(check(&report, "share found").got, "100.000%");
    let lost = check(&report, "acknowledged writes are found afterwards");
    assert_eq!(lost.got, "missing: 0 at the server, 0 at dp-0, 0 at dp-1");
    let visible = check(&report, "writes are visible");
    assert!(
        visible.got.contains("dp-0: p50") && visible.got.contains("dp-1: p50"),
        "{visible:?}"
    );
    check(&report, "provisioning beside the load");
    let beside: Vec<&str> = series.lab.iter().map(|one| one.name.as_str()).collect();
    assert!(
        ["sds", "dp-0", "dp-1"].iter().all(|name| beside.contains(name)),
        "{beside:?}"
    );
}

#[test]
fn a_router_goes_on_when_a_processor_or_the_server_dies() {
    for (model, own) in [
        ("dsr/fabr-dp-lose", "it catches up by the journal"),
        ("dsr/fabr-sds-kill", "writes go on"),
    ] {
        let (report, series) = passes(model, (3000, 60), Duration::from_secs(8));
        assert!(check(&report, own).pass);
        assert!(check(&report, "acknowledged writes are found afterwards").pass);
        for part in ["all live", "it is back"] {
            check(&report, &format!("{part}: requests are answered"));
        }
        let words = series
            .notes
            .iter()
            .any(|note| note.contains("was killed (SIGKILL)"));
        assert!(words, "{:?}", series.notes);
    }
}

#[test]
fn numbers_of_a_damaged_block_are_answered_by_the_other_processor() {
    let (report, _) = passes("dsr/fabr-damaged", (12_000, 60), Duration::from_secs(4));
    let named = check(&report, "the damage is named or mended");
    assert!(
        named.got.contains("block at byte") || named.got.starts_with("mended after "),
        "{named:?}"
    );
    let own = check(&report, "its numbers are answered");
    assert!(
        own.got.starts_with("0 of ") && own.got.contains(" 0 of "),
        "{own:?}"
    );
}

#[test]
fn look_ups_are_judged_beside_changes() {
    let folder = tempfile::tempdir().unwrap();
    let settings = lab::bench::dp::Settings {
        rate: 1000.0,
        // A disk that others write to takes some time for each change.
        duration: Duration::from_secs(3),
        connections: 2,
        numbers: 5000,
        writes: 40,
        site: site(&folder),
    };
    let made =
        lab::bench::dp::load(&settings, &mut Progress::default()).unwrap_or_else(|error| panic!("{error}"));
    let names: Vec<&str> = made.parts.iter().map(|part| part.name.as_str()).collect();
    assert_eq!(names, ["without changes", "minute 1"]);
    for part in &made.parts {
        assert!(part.rps > 100.0 && part.failed == 0, "{part:?} {:?}", made.notes);
        assert!(
            part.p99_ms >= part.p50_ms && part.p999_ms >= part.p99_ms,
            "{part:?}"
        );
    }
    let writes = made.writes.as_ref().unwrap();
    assert!(writes.acknowledged > 5 && writes.lost == 0, "{writes:?}");
    assert!(made.resident_bytes > 1 << 20, "{made:?}");
    let wrong = made.checks.iter().find(|check| !check.pass && !check.of_time);
    assert!(wrong.is_none(), "{wrong:?}");
    assert!(made.markdown().contains("| minute 1 |"), "{made}");
    // Without changes there is one part, and nothing to compare.
    let settings = lab::bench::dp::Settings {
        writes: 0,
        ..settings
    };
    let made =
        lab::bench::dp::load(&settings, &mut Progress::default()).unwrap_or_else(|error| panic!("{error}"));
    assert!(made.writes.is_none() && made.parts.len() == 1, "{made:?}");
}
