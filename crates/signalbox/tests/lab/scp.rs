//! Drills and models of an SCP, short and at a low rate: what is right, not how fast.

use std::path::PathBuf;
use std::time::Duration;

use lab::report::{Check, Report, Series};
use lab::run::{Options, Progress, Rate};

use crate::{failed, program};

/// Settings of a function that does not refuse by waiting time: a debug build that shares its cores with a generator and
/// simulators lets requests wait longer than admission accepts, however few they are.
pub(crate) fn patient(folder: &tempfile::TempDir, settings: &str) -> PathBuf {
    let file = folder.path().join("patient.yaml");
    std::fs::write(&file, settings).unwrap();
    file
}

pub(crate) fn options(folder: &tempfile::TempDir, program: PathBuf) -> Options {
    Options {
        rate: Rate::Tps(150.0),
        duration: Duration::from_secs(6),
        warmup: Duration::from_secs(1),
        connections: Some(4),
        out: folder.path().to_owned(),
        program: Some(program),
        latency: 0.1,
        function_config: Some(patient(folder, "scp: {protection: {waiting: {target: 0s}}}\n")),
        ..Options::default()
    }
}

fn run(model: &str, change: impl FnOnce(&mut lab::callmodel::scp::ScpModel, &mut Options)) -> Report {
    run_and_note(model, change).0
}

/// As [`run`], with what a reader of the report should know.
fn run_and_note(
    model: &str,
    change: impl FnOnce(&mut lab::callmodel::scp::ScpModel, &mut Options),
) -> (Report, Vec<String>) {
    let program = program();
    let folder = tempfile::tempdir().unwrap();
    let mut found = lab::callmodel::find(model).unwrap();
    let mut options = options(&folder, program);
    change(found.model.scp.as_mut().unwrap(), &mut options);
    let (report, series) =
        lab::run::run(&found, &options, &mut Progress::default()).unwrap_or_else(|error| panic!("{error}"));
    if is_without_broker(&series.notes) {
        let copies = report
            .checks
            .iter()
            .filter(|check| check.name.starts_with("copies"));
        let not_run = copies.filter(|check| !check.pass && check.got.starts_with("not run"));
        assert_eq!(not_run.count(), 2, "{:#?}", report.checks);
    } else {
        holds(&report, &series);
    }
    (report, series.notes)
}

/// Whether a run had to go without the broker that its model copies messages to.
fn is_without_broker(notes: &[String]) -> bool {
    notes
        .iter()
        .any(|note| note.contains("ran without its copy of messages"))
}

/// Every check of content holds.
pub(crate) fn holds(report: &Report, series: &Series) {
    let failed = failed(report);
    assert!(
        failed.is_empty(),
        "{failed:#?}\n{:#?}\n{:#?}",
        series.notes,
        series.examples
    );
}

fn check<'a>(report: &'a Report, name: &str) -> &'a Check {
    let found = report.checks.iter().find(|check| check.name == name);
    found.unwrap_or_else(|| panic!("no check {name:?}: {:#?}", report.checks))
}

#[test]
fn a_killed_producer_is_no_error_and_comes_back() {
    let report = run("scp/kill-producer", |_, options| {
        options.duration = Duration::from_secs(10);
    });
    assert!(
        check(&report, "idempotent and repeatable requests")
            .got
            .starts_with("0 of ")
    );
    assert!(
        check(&report, "traffic when it is back")
            .got
            .contains("first request")
    );
    assert!(
        report
            .operations
            .iter()
            .any(|one| one.name == "N15 POST (D)" && one.count > 50)
    );
    assert!(report.guide.functions.is_empty());
}

#[test]
fn a_lost_site_is_gone_round_by_the_nearest_and_comes_back() {
    let report = run("scp/lose-site", |_, options| {
        options.duration = Duration::from_secs(16);
    });
    let destinations = report.destinations.as_ref().expect("where requests went");
    let regions = destinations.regions();
    let names: Vec<&str> = regions.iter().map(|(name, _)| *name).collect();
    assert_eq!(names, ["region-0", "region-1"]);
    assert!(destinations.seconds.len() >= 12, "{destinations:#?}");
    // The other region serves when the other site of the own region refuses as well, and not before.
    let far = |second: &lab::report::Second| regions[1].1.iter().map(|at| second.served[*at]).sum::<u64>();
    let by_far = destinations.seconds.iter().filter(|second| far(second) > 10);
    let phases: Vec<&str> = by_far.map(|second| second.phase.as_str()).collect();
    assert!(phases.len() >= 2, "{destinations:#?}");
    let is_due = |phase: &&str| phase.contains("site-1 answers 503") || phase.contains("back");
    assert!(phases.iter().all(is_due), "{phases:?}");
    assert!(destinations.seconds.iter().any(|second| second.refused[0] > 0));
}

#[test]
fn without_its_nrf_an_scp_goes_on_from_what_it_knows() {
    let report = run("scp/nrf-gone", |model, options| {
        model.validity = settings::Period::from_secs(1);
        options.duration = Duration::from_secs(8);
    });
    assert!(check(&report, "what is known is used").pass);
}

#[test]
fn what_is_too_much_is_shed_by_priority() {
    let program = program();
    let folder = tempfile::tempdir().unwrap();
    let mut found = lab::callmodel::find("scp/overload-3x").unwrap();
    // What is carried does not depend on how fast the build is: twenty requests under way, a tenth of a second each.
    let scp = found.model.scp.as_mut().unwrap();
    scp.producer_latency = settings::Period::from_millis(100);
    let file = folder.path().join("scp-over.yaml");
    std::fs::write(
        &file,
        "scp: {workers: 1, protection: {targetLoad: null, maxInFlight: 20}}\n",
    )
    .unwrap();
    let options = Options {
        rate: Rate::Tps(200.0),
        duration: Duration::from_secs(4),
        function_config: Some(file),
        latency: 1.0,
        ..options(&folder, program)
    };
    let (report, series) =
        lab::run::run(&found, &options, &mut Progress::default()).unwrap_or_else(|error| panic!("{error}"));
    let shares: Vec<f64> = [0, 8, 16, 24]
        .map(|priority| {
            let name = format!("N7, priority {priority} (C)");
            let one = report.operations.iter().find(|one| one.name == name).unwrap();
            (one.count - one.errors) as f64 / one.count as f64
        })
        .to_vec();
    assert!(
        shares[0] > shares[2] && shares[1] > shares[3],
        "{shares:?} {:?}",
        series.notes
    );
    for name in ["what is shed is refused", "memory"] {
        assert!(check(&report, name).pass, "{:#?}", report.checks);
    }
}

#[test]
fn a_competitor_takes_of_the_core_and_the_report_says_so() {
    let cpu = *lab::report::measure::cpus().unwrap().first().unwrap();
    let (report, notes) = run_and_note("scp/model-c-1", |model, options| {
        model.profiles = 20;
        model.nf_counts.clear();
        options.rate = Rate::Tps(20.0);
        options.duration = Duration::from_secs(3);
        options.pin = vec![cpu];
        options.contend = true;
    });
    assert!(
        notes.iter().any(|note| note.starts_with("--contend")),
        "{notes:#?}"
    );
    // Whatever else runs, the core has no idle time.
    assert!(
        report.conditions.foreign_cores.is_some_and(|cores| cores > 0.05),
        "{:?}",
        report.conditions
    );
}

#[test]
fn consumers_and_producers_speak_tls() {
    for model in ["scp/model-c-1", "scp/model-d-2"] {
        let report = run(model, |model, options| {
            model.profiles = 60;
            model.nf_counts.clear();
            model.producer_latency = settings::Period::from_millis(20);
            options.duration = Duration::from_secs(3);
            options.tls = Some(true);
        });
        assert!(report.operations.iter().map(|one| one.count).sum::<u64>() > 300);
    }
}

#[test]
fn changes_of_the_network_and_what_producers_tell_disturb_nothing() {
    let report = run("scp/model-c-2", |model, options| {
        model.profiles = 120;
        model.nf_counts.clear();
        model.producer_latency = settings::Period::from_millis(20);
        model.oci.as_mut().unwrap().every = settings::Period::from_secs(1);
        model.lci.as_mut().unwrap().every = settings::Period::from_secs(1);
        let changes = model.notifications.as_mut().unwrap();
        (changes.per_second, changes.bursts) = (10.0, vec![40.0]);
        options.duration = Duration::from_secs(6);
    });
    for name in [
        "load information of producers",
        "overload information of producers",
    ] {
        let got: f64 = check(&report, name).got.replace(',', "").parse().unwrap();
        assert!(got > 5.0, "{:#?}", report.checks);
    }
}

#[test]
fn tokens_are_fetched_and_failing_producers_are_gone_round() {
    let report = run("scp/model-d-1", |model, options| {
        model.profiles = 60;
        model.nf_counts.clear();
        model.consumers = 3;
        model.producer_latency = settings::Period::from_millis(20);
        options.duration = Duration::from_secs(4);
    });
    assert!(check(&report, "access tokens").got.contains(" from the cache"));
    assert!(check(&report, "alternate routed").pass);
}

/// With ejection and circuit breakers on: a producer that answers 503 is soon not tried again, and requests that name it
/// are served all the same.
#[test]
fn producers_that_fail_are_ejected_and_requests_for_them_go_elsewhere() {
    let report = run("scp/model-d-2", |model, options| {
        model.profiles = 21;
        model.nf_counts.clear();
        model.alternate_routed = settings::Percent::new(20.0);
        options.tls = Some(false);
        options.duration = Duration::from_secs(5);
    });
    assert!(check(&report, "alternate routed").pass);
}

#[test]
fn traffic_to_other_regions_goes_through_their_scps() {
    let (report, notes) = run_and_note("scp/model-c-1", |model, options| {
        model.profiles = 84;
        model.nf_counts.clear();
        options.duration = Duration::from_secs(4);
        options.connections = None;
    });
    let share: f64 = check(&report, "through SCPs of other regions")
        .got
        .split('%')
        .next()
        .and_then(|number| number.parse().ok())
        .unwrap();
    assert!((30.0..50.0).contains(&share), "{share}");
    // 190 at 75,000 requests a second are fewer than two at 150.
    assert!(report.functions[0].connections_in >= 2, "{:?}", report.functions);
    assert!(
        notes
            .iter()
            .any(|note| note.starts_with("2 connections to the function")),
        "{notes:#?}"
    );
    assert!(
        notes
            .iter()
            .any(|note| note == "consumers come from addresses of 4 subnets"),
        "{notes:#?}"
    );
    assert!(
        notes
            .iter()
            .any(|note| note.contains("15 ms more on the way within the region or 30 ms to another")),
        "{notes:#?}"
    );
}

#[test]
fn messages_are_copied_to_a_broker_or_the_report_says_why_not() {
    let (report, notes) = run_and_note("scp/model-d-10", |model, options| {
        model.profiles = 60;
        model.nf_counts.clear();
        options.duration = Duration::from_secs(4);
        options.rate = Rate::Tps(100.0);
        // The guide's times are those of machines with time: here copies may be late, and none may be lost.
        let feed = &mut model.feed.as_mut().unwrap().settings;
        for time in [
            &mut feed.request_timeout,
            &mut feed.delivery_timeout,
            &mut feed.max_block,
            &mut feed.blocking_send_timeout,
        ] {
            *time = settings::Period::from_secs(60);
        }
    });
    if is_without_broker(&notes) {
        return testpeer::skip::missing("Java, or the jars of Kafka (scripts/kafka.sh fetch),");
    }
    assert!(notes.iter().any(|note| note.contains("over TLS")), "{notes:#?}");
    let got = &check(&report, "copies lost").got;
    assert!(
        got.starts_with("0 lost") && !got.contains(", 0 delivered"),
        "{got}"
    );
}

/// The models of the guide, each with its mix of methods, discoveries and features: every answer is right, and producers
/// have received exactly the requests that were answered. Of a machine that stands still for seconds the test asks only that
/// what was answered is right.
#[test]
fn every_model_of_the_guide_is_answered_right() {
    let models = ["c-1", "c-2"].map(str::to_owned).into_iter();
    for name in models.chain((1..=10).map(|number| format!("d-{number}"))) {
        let folder = tempfile::tempdir().unwrap();
        let mut found = lab::callmodel::find(&format!("scp/model-{name}")).unwrap();
        let model = found.model.scp.as_mut().unwrap();
        model.profiles = 84;
        model.nf_counts.clear();
        // Brokers, changes by the hundred and TLS have tests of their own.
        model.feed = None;
        model.notifications = None;
        let options = Options {
            rate: Rate::Tps(60.0),
            duration: Duration::from_secs(3),
            latency: 0.02,
            tls: Some(false),
            ..options(&folder, program())
        };
        let (report, series) = lab::run::run(&found, &options, &mut Progress::default())
            .unwrap_or_else(|error| panic!("{name}: {error}"));
        let late = |example: &String| example.contains("504") || example.contains("no answer in time");
        assert!(series.examples.iter().all(late), "{name}: {:#?}", series.examples);
        if check(&report, "success").pass {
            holds(&report, &series);
            assert!(check(&report, "requests at producers").pass, "{name}");
        }
        let roles: Vec<&str> = report.functions[0]
            .roles
            .iter()
            .map(|role| role.name.as_str())
            .collect();
        assert!(
            roles.contains(&"scp"),
            "{name}: the workers are not among {roles:?}"
        );
        let served = |method: &str| {
            let of = |one: &&lab::report::OperationFigures| one.name.contains(method);
            let figures = report.operations.iter().filter(of);
            figures.map(|one| one.count - one.errors).sum::<u64>()
        };
        for method in [" POST", " GET", " PUT", " PATCH", " DELETE"] {
            assert!(served(method) > 0, "{name}: {method}");
        }
    }
}
