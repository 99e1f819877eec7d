//! A short run of a call model against the real function.

use std::time::Duration;

use lab::run::{Options, Progress, Rate, RunError};

use crate::scp::patient;
use crate::{failed, program, site};

fn options(folder: &tempfile::TempDir, program: std::path::PathBuf) -> Options {
    Options {
        rate: Rate::Tps(200.0),
        duration: Duration::from_secs(3),
        warmup: Duration::from_secs(1),
        connections: Some(4),
        generators: 2,
        out: folder.path().to_owned(),
        program: Some(program),
        ..Options::default()
    }
}

#[test]
fn the_smallest_nrf_mix_at_a_low_rate_passes() {
    let program = program();
    let folder = tempfile::tempdir().unwrap();
    let found = lab::callmodel::find("nrf/5k").unwrap();
    let options = Options {
        function_config: Some(patient(&folder, "nrf: {overload: {waiting: {target: 0s}}}\n")),
        ..options(&folder, program)
    };
    let (report, series) =
        lab::run::run(&found, &options, &mut Progress::default()).unwrap_or_else(|error| panic!("{error}"));
    let failed = failed(&report);
    assert!(failed.is_empty(), "{failed:#?}\n{:#?}", series.examples);
    assert!(
        report
            .operations
            .iter()
            .any(|o| o.name == "nfDiscover.slf" && o.count > 300)
    );
    assert!(report.functions[0].rss_mb_max > 1.0 && report.functions[0].connections_in >= 4);
}

/// Discoveries find the functions of both sets, so they fail where one set does not have the state of the other.
#[test]
fn two_nrf_sets_answer_for_the_functions_of_both() {
    let program = program();
    let folder = tempfile::tempdir().unwrap();
    let found = lab::callmodel::find("nrf/38k").unwrap();
    let options = Options {
        function_config: Some(patient(&folder, "nrf: {overload: {waiting: {target: 0s}}}\n")),
        ..options(&folder, program)
    };
    let (report, series) =
        lab::run::run(&found, &options, &mut Progress::default()).unwrap_or_else(|error| panic!("{error}"));
    let failed = failed(&report);
    assert!(failed.is_empty(), "{failed:#?}\n{:#?}", series.examples);
    let growth = report.checks.iter().find(|check| check.name == "growth").unwrap();
    assert!(growth.got.contains("125 profiles"), "{growth:?}");
}

#[test]
fn a_router_relays_between_mmes_and_hsss() {
    let program = program();
    for (model, generators) in [
        ("dsr/da-mp-relay", 2),
        ("dsr/da-mp-large-rbar", 2),
        ("dsr/x9-2-relay", 1),
        ("dsr/small-rbar", 1),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let found = lab::callmodel::find(model).unwrap();
        let options = Options {
            generators,
            ..options(&folder, program.clone())
        };
        let (report, series) = lab::run::run(&found, &options, &mut Progress::default())
            .unwrap_or_else(|error| panic!("{error}"));
        let failed = failed(&report);
        assert!(failed.is_empty(), "{failed:#?}\n{:#?}", series.examples);
        // With one message processor no message crosses.
        let crosses = report.checks.iter().any(|check| check.name == "cross-routed");
        assert_eq!(crosses, model != "dsr/small-rbar");
        assert!(report.operations[0].name == "updateLocation" && report.operations[0].count > 300);
        let messages = report.messages.unwrap();
        assert!((messages.mps / report.achieved_tps - 2.0).abs() < 0.01);
        assert!(messages.guide_cpu_us_per_message > 200.0);
        assert_eq!(
            (
                report.functions[0].connections_in,
                report.functions[0].connections_out
            ),
            // A message processor has a connection of its own with each HSS.
            (4, if crosses { 8 } else { 4 })
        );
    }
}

#[test]
fn a_front_end_spreads_connections_over_siblings() {
    let program = program();
    for (model, has_egress) in [("dsr/ipfe", false), ("dsr/ipfe-egress", true)] {
        let folder = tempfile::tempdir().unwrap();
        let found = lab::callmodel::find(model).unwrap();
        let options = options(&folder, program.clone());
        let (report, series) = lab::run::run(&found, &options, &mut Progress::default())
            .unwrap_or_else(|error| panic!("{model}: {error}"));
        let failed = failed(&report);
        assert!(failed.is_empty(), "{model}: {failed:#?}\n{:#?}", series.examples);
        let has = |name: &str| report.checks.iter().any(|check| check.name == name);
        assert!(has("connections are spread"), "{model}");
        assert_eq!(has("servers are behind the front end"), has_egress, "{model}");
        assert!(report.operations[0].count > 300, "{:?}", report.operations);
    }
}

#[test]
fn a_register_answers_by_its_lists() {
    let program = program();
    let folder = tempfile::tempdir().unwrap();
    let mut found = lab::callmodel::find("dsr/eir").unwrap();
    // As many as an unoptimised router reads in no time.
    let lists = found
        .model
        .dsr
        .as_mut()
        .and_then(|dsr| dsr.equipment.as_mut())
        .unwrap();
    (lists.ranges, lists.imeis, lists.pairs) = (2000, 2000, 10_000);
    let (report, series) = lab::run::run(&found, &options(&folder, program), &mut Progress::default())
        .unwrap_or_else(|error| panic!("{error}"));
    let failed = failed(&report);
    assert!(failed.is_empty(), "{failed:#?}\n{:#?}", series.examples);
    let names: Vec<&str> = report
        .operations
        .iter()
        .map(|operation| operation.name.as_str())
        .collect();
    let kinds = ["range", "IMEI", "pair"].map(|kind| format!("checkEquipment by {kind}"));
    assert_eq!(names[..3], kinds);
    assert_eq!(names[3], "checkEquipment unlisted");
    assert!(
        report.operations.iter().all(|operation| operation.count > 5),
        "{names:?}"
    );
    assert!(report.messages.is_some());
}

#[test]
fn a_router_resolves_subscribers_one_by_one_beside_provisioning() {
    let program = program();
    for model in ["dsr/fabr-sds", "dsr/fabr-udr-30"] {
        let folder = tempfile::tempdir().unwrap();
        let mut found = lab::callmodel::find(model).unwrap();
        // As many as an unoptimised program imports in no time.
        let fabr = found.model.dsr.as_mut().and_then(|dsr| dsr.fabr.as_mut());
        fabr.unwrap().subscribers = 3000;
        let (report, series) = lab::run::run(
            &found,
            &options(&folder, program.clone()),
            &mut Progress::default(),
        )
        .unwrap_or_else(|error| panic!("{error}"));
        let failed = failed(&report);
        assert!(failed.is_empty(), "{failed:#?}\n{:#?}", series.examples);
        let count = |name: &str| {
            let operation = report.operations.iter().find(|one| one.name == name);
            operation.map_or(0, |one| one.count)
        };
        let is_provisioned = model == "dsr/fabr-sds";
        for (name, is_there) in [
            ("updateLocation by IMSI", true),
            ("locationInfo by MSISDN", is_provisioned),
            ("locationInfo by name", is_provisioned),
            ("updateLocation to a host", !is_provisioned),
        ] {
            assert_eq!(count(name) > 20, is_there, "{name}: {:?}", report.operations);
        }
        let provisioning = report
            .checks
            .iter()
            .any(|one| one.name == "provisioning beside the load");
        assert_eq!(provisioning, is_provisioned);
    }
}

#[test]
fn honest_roamers_have_no_findings_and_every_attack_is_found() {
    let program = program();
    for model in ["dsr/dsa", "dsr/dsa-attacks"] {
        let folder = tempfile::tempdir().unwrap();
        let mut found = lab::callmodel::find(model).unwrap();
        let is_attacked = model == "dsr/dsa-attacks";
        if is_attacked {
            let dsa = found.model.dsr.as_mut().and_then(|dsr| dsr.dsa.as_mut());
            dsa.unwrap().attacks = settings::Percent::new(30.0);
        }
        let options = Options {
            // Four MMEs are in two networks of two countries each.
            generators: 1,
            ..options(&folder, program.clone())
        };
        let (report, series) = lab::run::run(&found, &options, &mut Progress::default())
            .unwrap_or_else(|error| panic!("{error}"));
        let failed = failed(&report);
        assert!(failed.is_empty(), "{failed:#?}\n{:#?}", series.examples);
        let operations = report.operations.iter();
        let attacks = operations.filter(|one| one.name.starts_with("attack: ") && one.count > 0);
        assert_eq!(attacks.count(), if is_attacked { 11 } else { 0 });
        assert!(report.checks.iter().any(|check| check.name == "findings"));
    }
}

#[test]
fn a_security_application_that_has_learned_blocks_attacks_alone() {
    let folder = tempfile::tempdir().unwrap();
    let mut found = lab::callmodel::find("dsr/dsa-learning").unwrap();
    let dsa = found.model.dsr.as_mut().and_then(|dsr| dsr.dsa.as_mut());
    dsa.unwrap().attacks = settings::Percent::new(30.0);
    let options = Options {
        generators: 1,
        ..options(&folder, program())
    };
    let (report, series) =
        lab::run::run(&found, &options, &mut Progress::default()).unwrap_or_else(|error| panic!("{error}"));
    let failed = failed(&report);
    assert!(failed.is_empty(), "{failed:#?}\n{:#?}", series.examples);
    for name in [
        "nothing is found while it learns",
        "honest requests while it is learning",
        "honest requests while it is blocking",
        "attacks when it blocks",
    ] {
        assert!(report.checks.iter().any(|check| check.name == name), "{name}");
    }
}

/// A CCR-I that a PCRF answers too late goes to another one, as it should, and the late one takes the session as well: what has to
/// hold, holds where the machine has answered in time. A kill explains failures of its own, so that its own check has to hold alone.
#[test]
fn a_policy_dra_and_its_pcrfs_are_judged() {
    are_judged(
        &[
            ("dsr/pdra", "RARs reach their session"),
            ("dsr/pdra-kill-pcrfs", "sessions begin at the others"),
            ("dsr/pdra-kill-router", "sessions that were acknowledged"),
        ],
        None,
    );
}

#[test]
fn a_policy_dra_whose_database_loses_a_node_is_judged() {
    let programs = ["/usr/sbin/mariadbd", "/usr/lib/galera/libgalera_smm.so"];
    if !programs
        .iter()
        .all(|program| std::path::Path::new(program).exists())
    {
        return testpeer::skip::missing("MariaDB or Galera (apt-get install mariadb-server galera-4)");
    }
    are_judged(
        &[("dsr/pdra-kill-database", "sessions that were acknowledged")],
        None,
    );
}

#[test]
fn a_policy_dra_of_two_sites_that_are_cut_off_is_judged() {
    if !std::path::Path::new("/usr/sbin/mariadbd").exists() {
        return testpeer::skip::missing("MariaDB (apt-get install mariadb-server)");
    }
    are_judged(&[("dsr/pdra-cut-sites", "conflicts that are left")], None);
}

/// As for PCRFs: an OCS that answers too late has its sessions moved.
#[test]
fn an_online_charging_dra_and_its_ocss_are_judged() {
    are_judged(
        &[
            ("dsr/ocdra", "each request number at one OCS"),
            ("dsr/ocdra-kill-ocs", "refused are those of the dead"),
        ],
        Some(200),
    );
}

/// Each of these models passes, and its own check above all; with this number of sessions that stand before the load.
fn are_judged(models: &[(&str, &str)], sessions: Option<u64>) {
    let program = program();
    for (model, own) in models.iter().copied() {
        let folder = tempfile::tempdir().unwrap();
        let found = lab::callmodel::find(model).unwrap();
        let options = Options {
            sessions,
            ..options(&folder, program.clone())
        };
        let (report, series) = lab::run::run(&found, &options, &mut Progress::default())
            .unwrap_or_else(|error| panic!("{error}"));
        let own = report.checks.iter().find(|check| check.name == own);
        let own = own.unwrap_or_else(|| panic!("{model}"));
        let failed = failed(&report);
        let is_right = own.pass && (found.model.sets_rates() || failed.is_empty());
        // The router waits 4 s for an answer.
        let mut latencies = report.operations.iter().filter_map(|one| one.latency_ms.max);
        let is_late = latencies.any(|max| max > 2000.0);
        assert!(
            is_right || is_late,
            "{model}: {own:?} {failed:#?}\n{:#?}",
            series.examples
        );
    }
}

#[test]
fn a_suite_says_which_models_passed() {
    let program = program();
    let folder = tempfile::tempdir().unwrap();
    let options = Options {
        duration: Duration::from_secs(2),
        ..options(&folder, program)
    };
    let results = lab::suite::run("dsr/small", &options, &mut Progress::default()).unwrap();
    let [row] = &results.rows[..] else {
        panic!("{results}")
    };
    assert_eq!(row.model, "dsr/small-rbar");
    assert!(row.passed.iter().any(|check| check == "success"), "{row:?}");
    assert!(row.report.join("report.json").exists(), "{row:?}");
    let text = results.to_string();
    assert!(
        text.contains("dsr/small-rbar") && text.contains("of 1 passed"),
        "{text}"
    );
    // A model that cannot be run has failed, and its name is there.
    let broken = Options {
        program: Some("/nothing/to/start".into()),
        ..options
    };
    let results = lab::suite::run("dsr/kill", &broken, &mut Progress::default()).unwrap();
    assert!(!results.passed() && results.rows.len() == 4, "{results}");
    assert!(results.rows.iter().all(|row| row.failed.len() == 1), "{results}");
    let none = lab::suite::run("nothing", &broken, &mut Progress::default()).unwrap_err();
    assert!(none.to_string().contains("signalbox lab list"), "{none}");
}

#[test]
fn a_router_passes_its_drills() {
    let program = program();
    for (model, own) in [
        ("dsr/kill-peers", "re-sent with the T flag"),
        ("dsr/kill-router", "alarms of the others"),
        ("dsr/kill-mate", "clients are served elsewhere"),
        ("dsr/kill-front-end", "the standby took over"),
        ("dsr/reconnect", "answers follow their client"),
        ("dsr/overload-3x", "goodput"),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let found = lab::callmodel::find(model).unwrap();
        let options = Options {
            rate: Rate::Tps(800.0),
            duration: Duration::from_secs(8),
            ..options(&folder, program.clone())
        };
        let (report, series) = lab::run::run(&found, &options, &mut Progress::default())
            .unwrap_or_else(|error| panic!("{error}"));
        let failed = failed(&report);
        assert!(failed.is_empty(), "{failed:#?}\n{:#?}", series.examples);
        assert!(report.checks.iter().any(|check| check.name == own), "{model}");
        let dead = Options {
            rate: Rate::Max,
            ..options
        };
        let error = lab::run::run(&found, &dead, &mut Progress::default()).unwrap_err();
        assert!(error.to_string().contains("--rate max"), "{error}");
    }
}

#[test]
fn routers_and_haproxy_relay_the_same_load() {
    let folder = tempfile::tempdir().unwrap();
    let options = lab::bench::dsr::Settings {
        turns: lab::bench::Turns {
            rounds: 2,
            duration: Duration::from_secs(1),
            rate: Some(200.0),
        },
        connections: 4,
        message_bytes: 2000,
        site: site(&folder),
    };
    let result = match lab::bench::dsr::compare(&options, &mut Progress::default()) {
        Ok(result) => result,
        Err(RunError::Missing { program, .. }) => return testpeer::skip::missing(program),
        Err(error) => panic!("{error}"),
    };
    for rows in [&result.rows, &result.equal_rate] {
        let names: Vec<&str> = rows.iter().map(|row| row.requests.name.as_str()).collect();
        assert_eq!(names, ["dsr", "freediameter", "haproxy-tcp"]);
        for row in rows {
            assert!(
                (row.requests.success - 1.0).abs() < 1e-9,
                "{row:?}\n{:?}",
                result.notes
            );
            assert!(row.requests.rps > 50.0 && row.requests.p99_ms > 0.0, "{row:?}");
        }
    }
    let text = serde_json::to_value(&result).unwrap();
    assert!(text["rows"][1]["cpu_us_per_request"].is_number(), "{text}");
    assert!(result.to_string().contains("messages/core-s"));
}

#[test]
fn an_scp_relays_between_consumers_and_producers() {
    let program = program();
    for model in ["scp/model-c-1", "scp/model-d-3"] {
        let folder = tempfile::tempdir().unwrap();
        let mut found = lab::callmodel::find(model).unwrap();
        // As many as a busy machine registers in no time.
        let scp = found.model.scp.as_mut().unwrap();
        scp.profiles = 60;
        scp.nf_counts.clear();
        scp.producer_latency = settings::Period::from_millis(20);
        let (report, series) = lab::run::run(
            &found,
            &Options {
                function_config: Some(patient(&folder, "scp: {protection: {waiting: {target: 0s}}}\n")),
                ..options(&folder, program.clone())
            },
            &mut Progress::default(),
        )
        .unwrap_or_else(|error| panic!("{error}"));
        let failed = failed(&report);
        assert!(failed.is_empty(), "{failed:#?}\n{:#?}", series.examples);
        // An operation is an interface, a method and a model: `N7 POST (C)`.
        let of_n7 = |model: &str| -> u64 {
            let operations = report.operations.iter();
            let named = operations.filter(|o| o.name.starts_with("N7 ") && o.name.ends_with(model));
            named.map(|o| o.count).sum()
        };
        assert!(of_n7("(C)") > 50, "{:?}", report.operations);
        assert_eq!(of_n7("(D)") > 5, model == "scp/model-d-3");
        assert!(report.messages.unwrap().guide_cpu_us_per_message > 100.0);
    }
}
