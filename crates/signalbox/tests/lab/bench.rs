//! Comparisons, short and at the pace of a debug build: that each subject is measured under each load, not how fast it is.

use std::time::Duration;

use lab::bench::{Comparison, Loads, Row, Turns};
use lab::run::{Progress, RunError};

use crate::scp::patient;
use crate::site;

const SHARES: [Option<f64>; 5] = [None, Some(0.10), Some(0.25), Some(0.50), Some(0.75)];

fn loads() -> Loads {
    Loads {
        rounds: 1,
        duration: Duration::from_millis(700),
        connections: 2,
        streams: 4,
        clients: 12,
        burst: Duration::ZERO,
        // What the slowest build carries on a busy machine.
        most: Some(40.0),
    }
}

/// Each subject has a row for each load, with figures or with a collapse.
fn holds(result: &Comparison, names: &[&str]) {
    for section in &result.sections {
        let rows = section.saturated.len() + section.open.len();
        assert_eq!(rows, names.len() * SHARES.len(), "{}", section.title);
        for (name, share) in names.iter().flat_map(|name| SHARES.map(|share| (name, share))) {
            let row = section.row(name, share).unwrap();
            assert_eq!(row.offered_rps.is_some(), share.is_some(), "{row:?}");
            assert_eq!(row.rounds.len(), 1, "{row:?}");
            assert_eq!(
                row.collapsed_rounds == 0,
                row.cpu_us_per_request.is_some(),
                "{row:?}"
            );
            // A closed loop offers no more than is answered; on a busy machine some may be refused that would wait for long.
            if share.is_none() {
                assert_eq!((row.collapsed_rounds, row.failed), (0, row.refused), "{row:?}");
                figures(row);
            }
        }
        assert_eq!(section.most_rps, 40.0);
        // At this rate the reference may use less than a tick of processor time; then there is no ratio to it.
        let reference = section.row(&section.reference, None).unwrap();
        assert!(
            reference.cpu_ratio.is_none_or(|ratio| ratio == 1.0),
            "{reference:?}"
        );
    }
    let text = result.to_string() + &result.markdown();
    for name in names {
        assert!(text.matches(name).count() >= 2 * SHARES.len(), "{text}");
    }
    let json = serde_json::to_value(result).unwrap();
    let row = &json["sections"][0]["saturated"][0];
    for field in [
        "cpu_us_per_request",
        "cpu_user_us_per_request",
        "cpu_kernel_us_per_request",
        "rps",
        "p50_ms",
        "p99_ms",
        "generator_us_per_request",
    ] {
        assert!(row[field].is_number(), "{field}: {row}");
    }
}

/// Processor time comes in ticks of ten milliseconds: a program of a debug build shows some.
fn figures(row: &Row) {
    let (all, user, kernel) = (
        row.cpu_us_per_request.unwrap(),
        row.cpu_user_us_per_request.unwrap(),
        row.cpu_kernel_us_per_request.unwrap(),
    );
    let is_ours = ["scp-model-c", "scp-model-d", "nrf", "pcf"].contains(&&*row.name);
    assert!(if is_ours { all > 0.0 } else { all >= 0.0 }, "{row:?}");
    assert!((user + kernel - all).abs() < 0.1, "{row:?}");
    assert!(row.rps.unwrap() > 1.0 && row.p99_ms.unwrap() > 0.0, "{row:?}");
    assert!(row.generator_us_per_request.unwrap() > 0.0, "{row:?}");
}

#[test]
fn proxies_relay_the_same_loads_to_one_producer_and_to_many() {
    let folder = tempfile::tempdir().unwrap();
    // A debug build on a busy machine lets requests wait longer than admission accepts.
    let patient = patient(&folder, "scp: {protection: {targetLoad: null}}\n");
    let settings = lab::bench::scp::Settings {
        loads: Loads {
            burst: Duration::from_millis(500),
            ..loads()
        },
        producers: vec![1, 5],
        function_config: Some(patient),
        site: site(&folder),
    };
    let result = match lab::bench::scp::compare(&settings, &mut Progress::default()) {
        Ok(result) => result,
        Err(RunError::Missing { program, .. }) => return testpeer::skip::missing(program),
        Err(error) => panic!("{error}"),
    };
    let titles: Vec<&str> = result.sections.iter().map(|one| one.title.as_str()).collect();
    assert_eq!(titles, ["1 producer", "5 producers"]);
    holds(
        &result,
        &["scp-model-c", "scp-model-d", "haproxy", "nghttpx", "direct"],
    );
    for section in &result.sections {
        let bursts: Vec<&str> = section.bursts.iter().map(|burst| &*burst.name).collect();
        assert_eq!(bursts, ["scp-model-c", "scp-model-d", "haproxy", "nghttpx"]);
        for burst in &section.bursts {
            assert_eq!((burst.base_rps, burst.burst_rps), (20.0, 120.0));
            assert_eq!(burst.after.len(), 10);
            assert!(
                burst.after.iter().map(|window| window.served).sum::<u64>() > 0,
                "{burst:?}"
            );
        }
    }
    assert_eq!(result.checks.len(), 2 * 8, "{:#?}", result.checks);
}

#[test]
fn our_nrf_and_nginx_answer_the_same_loads() {
    let folder = tempfile::tempdir().unwrap();
    let settings = lab::bench::nrf::Settings {
        loads: loads(),
        others: Vec::new(),
        function_config: Some(patient(&folder, "nrf: {overload: {waiting: {target: 0s}}}\n")),
        site: site(&folder),
    };
    let result = match lab::bench::nrf::compare(&settings, &mut Progress::default()) {
        Ok(result) => result,
        Err(RunError::Missing { program, .. }) => return testpeer::skip::missing(program),
        Err(error) => panic!("{error}"),
    };
    holds(&result, &["nrf", "nginx"]);
    assert!(result.bytes.1 > 3_000, "{:?}", result.bytes);
}

#[test]
fn pcfs_create_and_delete_the_same_policies() {
    let folder = tempfile::tempdir().unwrap();
    // A program that ends with its first connection stays out, and the result says why.
    let stranger = free_ports::address().unwrap();
    let command = format!(
        "python3 -c 'import socket; socket.create_server((\"127.0.0.1\", {})).accept()'",
        stranger.port()
    );
    let has_python = testpeer::skip::output(std::process::Command::new("python3").arg("--version")).is_some();
    let other = lab::bench::Other {
        name: "stranger".to_owned(),
        address: stranger,
        command,
    };
    let settings = lab::bench::policy::Settings {
        // A policy asks more of a debug build than a relayed request: on a busy machine the first takes a second.
        loads: Loads {
            duration: Duration::from_secs(2),
            ..loads()
        },
        others: if has_python { vec![other] } else { Vec::new() },
        nrf: free_ports::address().unwrap(),
        function_config: Some(patient(&folder, "pcf: {overload: {enabled: false}}\n")),
        site: site(&folder),
    };
    // An NRF that runs already is not taken for that of the comparison.
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let occupied = lab::bench::policy::Settings {
        nrf: taken.local_addr().unwrap(),
        ..settings.clone()
    };
    let refused = lab::bench::policy::compare(&occupied, &mut Progress::default()).unwrap_err();
    assert!(refused.to_string().contains("--nrf-address"), "{refused}");
    let result = lab::bench::policy::compare(&settings, &mut Progress::default()).unwrap();
    let titles: Vec<&str> = result.sections.iter().map(|one| one.title.as_str()).collect();
    assert_eq!(
        titles,
        [
            "AM policies, created and deleted",
            "SM policies, created and deleted"
        ]
    );
    holds(&result, &["pcf"]);
    for section in &result.sections {
        let absent = section
            .notes
            .iter()
            .filter(|note| note.starts_with("stranger takes no part"));
        assert_eq!(absent.count() == 1, has_python, "{:?}", section.notes);
    }
    // A context of a session, and a policy in answer.
    assert!(result.bytes.0 > 500 && result.bytes.1 > 200, "{:?}", result.bytes);
}

#[test]
fn instructions_are_counted_under_callgrind() {
    let folder = tempfile::tempdir().unwrap();
    let settings = lab::bench::instructions::Settings {
        // What a function does by itself meanwhile differs from run to run, by millions of instructions.
        requests: 300,
        translations: 1_000,
        only: Vec::new(),
        site: site(&folder),
    };
    let counts = match lab::bench::instructions::count(&settings, &mut Progress::default()) {
        Ok(counts) => counts,
        Err(RunError::Missing { program, .. }) => return testpeer::skip::missing(program),
        Err(error) => panic!("{error}"),
    };
    let names: Vec<&str> = counts.rows.iter().map(|row| row.name.as_str()).collect();
    assert_eq!(
        names,
        [
            "dsr-relay",
            "dsr-rbar",
            "dsr-fabr",
            "dsr-relay-roaming",
            "dsr-dsa",
            "dsr-relay-gx",
            "dsr-pdra",
            "scp-model-c",
            "scp-model-d",
            "haproxy",
            "nghttpx",
            "nrf",
            "nginx",
            "pcf",
            "stp"
        ]
    );
    for row in &counts.rows {
        assert!(row.instructions_per_request > 1_000.0, "{row:?}");
    }
    assert!(
        counts
            .to_string()
            .contains("user instructions per relayed request")
    );
}

/// Those of the router need no program but valgrind.
#[test]
fn rows_are_counted_alone() {
    let folder = tempfile::tempdir().unwrap();
    let count = |only: &str| {
        let settings = lab::bench::instructions::Settings {
            requests: 50,
            translations: 1_000,
            only: vec![only.to_owned()],
            site: site(&folder),
        };
        lab::bench::instructions::count(&settings, &mut Progress::default())
    };
    match count("dsr-nothing") {
        Err(RunError::Missing { program, .. }) => return testpeer::skip::missing(program),
        refused => assert!(refused.unwrap_err().to_string().contains("dsr-fabr, ")),
    }
    let counts = count("dsr-rb").unwrap_or_else(|error| panic!("{error}"));
    let [row] = &counts.rows[..] else {
        panic!("{counts}")
    };
    assert_eq!((row.name.as_str(), row.ratio), ("dsr-rbar", None));
    assert!(counts.checks.is_empty(), "{counts}");
}

/// One round at a rate that a debug build carries.
fn turns(duration: Duration) -> Turns {
    Turns {
        rounds: 1,
        duration,
        rate: Some(100.0),
    }
}

#[test]
fn our_stp_and_osmo_stp_route_the_same_messages() {
    let folder = tempfile::tempdir().unwrap();
    let settings = lab::bench::stp::Settings {
        turns: turns(Duration::from_millis(700)),
        connections: 5,
        site: site(&folder),
    };
    let result = match lab::bench::stp::compare(&settings, &mut Progress::default()) {
        Ok(result) => result,
        Err(RunError::Missing { program, .. }) => return testpeer::skip::missing(program),
        Err(error) => panic!("{error}"),
    };
    for rows in [&result.rows, &result.equal_rate] {
        let names: Vec<&str> = rows.iter().map(|row| row.name.as_str()).collect();
        assert_eq!(names, ["stp", "stp-screened", "osmo-stp"]);
        for row in rows {
            assert!(row.rps > 0.0, "{row:?} {:?}", result.notes);
        }
    }
    assert_eq!(result.checks.len(), 3);
    assert!(result.to_string().contains("| at one rate | osmo-stp |"));
}

#[test]
fn a_policy_dra_keeps_sessions_together_that_rules_of_free_diameter_spread() {
    let folder = tempfile::tempdir().unwrap();
    let settings = lab::bench::pdra::Settings {
        turns: turns(Duration::from_secs(1)),
        connections: 4,
        site: site(&folder),
    };
    let result = match lab::bench::pdra::compare(&settings, &mut Progress::default()) {
        Ok(result) => result,
        Err(RunError::Missing { program, .. }) => return testpeer::skip::missing(program),
        Err(error) => panic!("{error}"),
    };
    for rows in [&result.rows, &result.equal_rate] {
        let names: Vec<&str> = rows.iter().map(|row| row.name.as_str()).collect();
        assert_eq!(names, ["dsr-pdra", "dsr-relay", "freediameter"]);
        for row in rows {
            assert!(row.rps > 0.0, "{row:?} {:?}", result.notes);
        }
    }
    let [ours, relay, theirs] = &result.placements[..] else {
        panic!("{:?}", result.placements);
    };
    for placement in [ours, relay, theirs] {
        assert!(placement.sessions > 10 && placement.media > 10, "{placement:?}");
    }
    assert_eq!((ours.stray_sessions, ours.stray_media, ours.wrong), (0, 0, 0));
    // Every request of a session is where its Session-Id leads, and that is another PCRF for each.
    assert!(
        theirs.stray_sessions > 0 && theirs.stray_media > 0 && theirs.wrong == 0,
        "{theirs:?}"
    );
    assert_eq!(result.checks.len(), 3);
    assert!(result.to_string().contains("| at one rate | freediameter |"));
}

#[test]
fn a_router_starts_with_the_sessions_that_were_written() {
    let folder = tempfile::tempdir().unwrap();
    let settings = lab::bench::sbr::Settings {
        bindings: 300,
        site: site(&folder),
    };
    let made = lab::bench::sbr::preload(&settings, &mut Progress::default())
        .unwrap_or_else(|error| panic!("{error}"));
    assert_eq!((made.bindings, made.sessions), (300, 600));
    // A record has more than its Session-Id, and each of its six keys a slot.
    assert!(
        made.live_bytes > 600 * 100 && made.disk_bytes >= made.live_bytes,
        "{made:?}"
    );
    assert!(made.index_bytes > 600 * 6, "{made:?}");
    assert!(
        made.empty_bytes > 1 << 20 && made.resident_bytes > 1 << 20,
        "{made:?}"
    );
    let names: Vec<&str> = made.checks.iter().map(|check| check.name.as_str()).collect();
    assert_eq!(names, ["memory of a binding", "ready"]);
    assert!(made.markdown().contains("| bindings | 300 |"));
    // Directories that the settings do not name are there.
    let processes = folder.path().join("processes");
    for name in ["sbr-empty", "sbr-filled"] {
        assert!(processes.join(format!("{name}.cwd")).is_dir(), "{name}");
    }
}

#[test]
fn an_scef_with_many_contexts_is_measured() {
    let folder = tempfile::tempdir().unwrap();
    let settings = lab::bench::scef::Settings {
        contexts: 200,
        site: site(&folder),
    };
    let made = lab::bench::scef::preload(&settings, &mut Progress::default())
        .unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(made.contexts, 200);
    // A device has a configuration and a connection, each with its identities.
    assert!(made.disk_bytes > 200 * 200, "{made:?}");
    assert!(
        made.empty_bytes > 1 << 20 && made.resident_bytes > 1 << 20,
        "{made:?}"
    );
    let names: Vec<&str> = made.checks.iter().map(|check| check.name.as_str()).collect();
    assert_eq!(names, ["memory of a context", "ready"]);
    assert!(made.markdown().contains("| contexts | 200 |"));
}
