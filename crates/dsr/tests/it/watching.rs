//! Alarms, indicators, traces, pages.

use std::process::{Command, Stdio};

use diameter::proto::ResultCode;
use diameter::proto::known::command;
use dsr::{Config, Event, Running};

use crate::support::{MME, answered, client, config, one_list, read, run, ulr, until, world};

const HSS: [&str; 1] = ["hss1.example"];

fn severity(dsr: &Running, number: u32) -> Option<&'static str> {
    let active = dsr.handle().alarms().active();
    active
        .iter()
        .find(|alarm| alarm.number == number)
        .map(|alarm| alarm.severity.as_str())
}

#[test]
fn traffic_is_measured_against_the_named_profile() {
    run(async {
        // A fiftieth of a percent of 5,000 is one message per second; two for each request.
        // The client of this test may be faster than such a machine: no request is to be discarded for that.
        let settings = "overload: {profile: \"vm:5k mps\", hardLimitPercent: 10000}\n\
                        indicators: {interval: 1s, trafficMinor: 0.01%, trafficMajor: 0.02%}\n";
        let (dsr, _servers, mut peers) = world(read(config(), settings), HSS, &one_list(&HSS)).await;
        // Other programs may use the cores: their load must not cause requests of this test to be discarded.
        dsr.drive_load(0, Some(0.0));
        let mut mme = client(&dsr, MME).await;
        while severity(&dsr, 10501) != Some("major") {
            mme.send(ulr("1").as_bytes()).await;
            answered(&mut mme, &mut peers[0]).await;
        }
        let alarm = dsr
            .handle()
            .alarms()
            .active()
            .into_iter()
            .find(|alarm| alarm.number == 10501);
        let detail = alarm.unwrap().detail;
        assert!(detail.contains("(5K_MPS)"), "{detail}");
        // Rows follow the alarms.
        until(|| !dsr.indicators().is_empty()).await;
        let rows = dsr.indicators();
        let profiles = rows.iter().filter_map(|row| Some((row.id, row.profile?)));
        assert_eq!(profiles.collect::<Vec<_>>(), [(10_501, "5K_MPS")]);
        let page = dsr.handle().registry().render();
        assert!(
            page.contains("signalbox_dsr_profile_messages_per_second{profile=\"5K_MPS\"} 5000"),
            "{page}"
        );
        until(|| severity(&dsr, 10501).is_none()).await;
        // No profile is configured: there is no gauge.
        let next = Config {
            overload: config().overload,
            ..Config::clone(&dsr.snapshot().config)
        };
        dsr.reload(&next).unwrap();
        let page = dsr.handle().registry().render();
        assert!(!page.contains("profile=\"5K_MPS\""), "{page}");
    });
}

#[test]
fn alarms_are_raised_and_cleared() {
    run(async {
        let settings = "indicators: {interval: 1s, messageSize: 100B, connectionMps: 2, connectionMinor: 10%, \
                        connectionMajor: 99.9%, systemMemory: 100%}\n";
        let (dsr, servers, mut peers) = world(read(config(), settings), HSS, &one_list(&HSS)).await;
        let mut mme = client(&dsr, MME).await;
        dsr.drive_load(0, Some(55.0));
        until(|| severity(&dsr, 22200) == Some("minor")).await;
        dsr.drive_load(0, Some(61.0));
        until(|| severity(&dsr, 22200) == Some("major")).await;
        dsr.drive_load(0, Some(80.0));
        until(|| severity(&dsr, 22200) == Some("critical")).await;
        while severity(&dsr, 22215).is_none() {
            mme.send(ulr("1").as_bytes()).await;
            let (discarded, relayed) = tokio::join!(async {}, async {
                tokio::select! {
                    biased;
                    _ = mme.expect(command::UPDATE_LOCATION) => None,
                    request = peers[0].expect(command::UPDATE_LOCATION) => Some(request),
                }
            });
            let () = discarded;
            if let Some(request) = relayed {
                peers[0].answer(&request, ResultCode::SUCCESS).await;
                mme.expect_result(command::UPDATE_LOCATION, ResultCode::SUCCESS)
                    .await;
            }
        }
        dsr.drive_load(0, Some(1.0));
        until(|| severity(&dsr, 22200).is_none() && severity(&dsr, 22215).is_none()).await;
        // Messages above 100 bytes, more than a tenth of two per second.
        while severity(&dsr, 10133).is_none() || severity(&dsr, 10500).is_none() {
            mme.send(ulr("1").as_bytes()).await;
            answered(&mut mme, &mut peers[0]).await;
        }
        let rows = dsr.indicators();
        for name in [
            "MpCPUAvg",
            "RxMsgSizeAvg",
            "RxConnAvgMPS",
            "CPU_UtilPct_Average",
            "RAM_UtilPct_Average",
            "Transaction Hold Time",
        ] {
            assert!(rows.iter().any(|row| row.name == name), "{name} in {rows:?}");
        }
        peers.remove(0).break_off();
        until(|| severity(&dsr, 22051) == Some("critical") && severity(&dsr, 22101) == Some("major")).await;
        let _back = servers[0].connected(&dsr).await;
        until(|| severity(&dsr, 22051).is_none() && severity(&dsr, 22101).is_none()).await;
        assert!(
            dsr.handle()
                .alarms()
                .cleared()
                .iter()
                .any(|alarm| alarm.number == 22051)
        );
        let page = dsr.handle().registry().render();
        assert!(
            page.contains("signalbox_dsr_peers{state=\"available\"}"),
            "{page}"
        );
    });
}

#[test]
fn a_traced_transaction_is_written_whole_and_tshark_decodes_it() {
    run(async {
        let folder = tempfile::tempdir().unwrap();
        let settings = format!(
            "trace:
  directory: {}
  points:
    - {{name: one, when: {{imsi: {{equals: ['001010000000007']}}}}, messages: 8}}
    - {{name: peer, when: {{commands: [316]}}, peers: [other.example]}}
",
            folder.path().display()
        );
        let (dsr, _servers, mut peers) = world(read(config(), &settings), HSS, &one_list(&HSS)).await;
        let mut mme = client(&dsr, MME).await;
        let mut other = client(&dsr, "other.example").await;
        for user in ["001010000000006", "001010000000007", "001010000000008"] {
            mme.send(ulr(user).as_bytes()).await;
            answered(&mut mme, &mut peers[0]).await;
        }
        other.send(ulr("001010000000006").as_bytes()).await;
        answered(&mut other, &mut peers[0]).await;
        assert_eq!(dsr.count(Event::Traced), 8);
        dsr.stop().unwrap();
        let log = std::fs::read_to_string(folder.path().join("one.log")).unwrap();
        for what in [
            "request in mme.example",
            "request out hss1.example",
            "answer in hss1.example",
            "answer out mme.example",
        ] {
            assert!(log.contains(what), "{what} in {log}");
        }
        assert!(log.contains("User-Name = \"001010000000007\"") && !log.contains("001010000000006"));
        for name in ["one", "peer"] {
            let file = folder.path().join(format!("{name}.pcapng"));
            let mut tshark = Command::new("tshark");
            tshark.arg("-r").arg(&file).stderr(Stdio::null());
            let Some(output) = testpeer::skip::output(&mut tshark) else {
                return;
            };
            let text = String::from_utf8_lossy(&output.stdout).into_owned();
            assert_eq!(text.lines().count(), 4, "{text}");
            assert!(
                !text.contains("Malformed") && text.contains("Update-Location"),
                "{text}"
            );
        }
    });
}

#[test]
fn rules_lists_groups_points_and_results_are_measured() {
    run(async {
        let directory = tempfile::tempdir().unwrap();
        let mut base = config();
        base.measurements = dsr::config::Measurements {
            directory: Some(directory.path().to_owned()),
            interval: settings::Period::from_secs(1),
            keep: 3,
        };
        base.throttle_groups = vec![dsr::config::ThrottleGroup {
            name: "hsss".to_owned(),
            peers: vec![HSS[0].to_owned()],
            rate: 1000,
            ..dsr::config::ThrottleGroup::default()
        }];
        let rules = "  peerRouteTables:
    - name: default
      rules:
        - {name: location, when: {commands: [316]}, action: {routeList: all}}
        - {name: refused, when: {commands: [318]}, action: {answer: {resultCode: 5001, vendorId: 10415}}}
  routeLists: [{name: all, groups: [all]}]
  routeGroups: [{name: all, peers: [{host: hss1.example}]}]
";
        let (dsr, _servers, mut peers) = world(base, [HSS[0]], rules).await;
        let mut mme = client(&dsr, MME).await;
        for _ in 0..3 {
            mme.send(ulr("1").as_bytes()).await;
            crate::support::answered(&mut mme, &mut peers[0]).await;
        }
        mme.send_text("AIR app=16777251 { Session-Id = \"x\" }").await;
        mme.expect(318).await;
        let count = |kind: &str, name: &str| {
            let rows = dsr.measurements();
            let row = rows.iter().find(|row| row.kind == kind && row.name == name);
            row.map_or(0, |row| row.count)
        };
        until(|| count("rule", "refused") == 1 && count("rule", "location") == 3).await;
        assert_eq!(
            (count("route_list", "all"), count("throttle_group", "hsss")),
            (3, 3)
        );
        let transaction = |command: u32, vendor: u32, result: u32| {
            let name = format!("application 16777251 command {command} vendor {vendor} result {result}");
            count("transaction", &name)
        };
        assert_eq!(
            (transaction(316, 0, 2001), transaction(318, 10_415, 5001)),
            (3, 1)
        );
        let rows = dsr.measurements();
        let meaning = |result: &str| rows.iter().any(|row| row.meaning == result);
        assert!(
            meaning("S6a Update-Location: DIAMETER_SUCCESS (2001)"),
            "{rows:?}"
        );
        let text = telemetry::metrics::render(&[dsr.handle().registry().clone()]);
        for line in [
            "signalbox_dsr_measured_requests_total{kind=\"rule\",name=\"location\"} 3",
            "signalbox_dsr_transactions_total{application=\"16777251\",command=\"316\",vendor=\"0\",result=\"2001\"} 3",
            "signalbox_dsr_peer_requests_total{peer=\"hss1.example\"",
        ] {
            assert!(text.contains(line), "{line}: {text}");
        }
        // A reload keeps the counts of what it keeps.
        let mut next = dsr.snapshot().config.as_ref().clone();
        crate::support::routing(&mut next, &rules.replace("name: refused, ", ""));
        dsr.reload(&next).unwrap();
        until(|| count("rule", "refused") == 0).await;
        assert_eq!(count("rule", "location"), 3);
        // Files: each interval has what came in it, all together what came in all.
        let written = || -> u64 {
            let files = std::fs::read_dir(directory.path()).unwrap();
            let text = files.filter_map(|file| std::fs::read_to_string(file.ok()?.path()).ok());
            let lines = text.flat_map(|text| text.lines().map(str::to_owned).collect::<Vec<_>>());
            lines
                .filter_map(|line| line.split_once(",,rule,location,")?.1.parse::<u64>().ok())
                .sum()
        };
        mme.send(ulr("1").as_bytes()).await;
        crate::support::answered(&mut mme, &mut peers[0]).await;
        until(|| written() >= 1).await;
    });
}

#[test]
fn the_severity_of_a_level_and_all_messages_that_are_read_are_shown() {
    run(async {
        let settings = "overload: {levels: [{name: DOC, discard: 0%, severity: critical}, {name: CL1, discard: 0%, \
                        severity: minor}]}\n";
        let mut config = read(config(), settings);
        config.indicators.interval = settings::Period::from_secs(1);
        let (dsr, _servers, mut peers) = world(config, HSS, &one_list(&HSS)).await;
        let mut mme = client(&dsr, MME).await;
        for (load, expected) in [(55.0, "critical"), (61.0, "minor")] {
            dsr.drive_load(0, Some(load));
            until(|| severity(&dsr, 22_200) == Some(expected)).await;
        }
        // A request and its answer, each read once; and what comes of peer control.
        let ingress = || {
            let rows = dsr.indicators();
            let row = rows.iter().find(|row| row.name == "Ingress Message Rate");
            row.map_or(0.0, |row| row.value)
        };
        while ingress() < 2.0 {
            mme.send(ulr("1").as_bytes()).await;
            answered(&mut mme, &mut peers[0]).await;
        }
    });
}

#[test]
fn requests_that_take_much_memory_raise_an_alarm() {
    run(async {
        let mut config = config();
        config.indicators.interval = settings::Period::from_secs(1);
        config.limits.pending_bytes = settings::ByteSize(12_000);
        config.routing.transaction.answer = settings::Period::from_secs(60);
        let list = format!(
            "{}  transaction: {{answer: 60s, lifetime: 90s}}\n",
            one_list(&HSS)
        );
        let (dsr, _servers, mut peers) = world(config, HSS, &list).await;
        let mut mme = client(&dsr, MME).await;
        // As many as fit, the server answers none.
        let request = ulr("1");
        let count = 11_500 / request.as_bytes().len();
        let mut waiting = Vec::new();
        for _ in 0..count {
            mme.send(request.as_bytes()).await;
            waiting.push(peers[0].expect(command::UPDATE_LOCATION).await);
        }
        until(|| severity(&dsr, 10_503) == Some("minor")).await;
        for request in waiting {
            peers[0].answer(&request, ResultCode::SUCCESS).await;
        }
        until(|| severity(&dsr, 10_503).is_none()).await;
    });
}

#[test]
fn a_mate_lowers_the_limit_of_a_message_processor() {
    run(async {
        let mut config = config();
        config.indicators.interval = settings::Period::from_millis(100);
        let mate = crate::support::Waiting::new("mate.example").await;
        config.peers.push(dsr::config::Peer {
            mate: true,
            ..mate.peer()
        });
        let dsr = dsr::start(config).unwrap();
        let peer = mate.connected(&dsr).await;
        // Of the guide: above 30 % with an active mate, above 60 % without.
        dsr.drive_load(0, Some(40.0));
        until(|| severity(&dsr, 10_204) == Some("minor")).await;
        peer.break_off();
        until(|| severity(&dsr, 10_204).is_none()).await;
        dsr.drive_load(0, Some(61.0));
        until(|| severity(&dsr, 10_204) == Some("minor")).await;
        dsr.drive_load(0, Some(50.0));
        until(|| severity(&dsr, 10_204).is_none()).await;
    });
}

#[test]
fn slow_answers_raise_an_alarm() {
    run(async {
        let mut config = config();
        config.indicators.interval = settings::Period::from_secs(1);
        config.indicators.hold_time = settings::Period::from_millis(20);
        let (dsr, _servers, mut peers) = world(config, HSS, &one_list(&HSS)).await;
        let mut mme = client(&dsr, MME).await;
        mme.send(ulr("1").as_bytes()).await;
        let request = peers[0].expect(command::UPDATE_LOCATION).await;
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
        peers[0].answer(&request, ResultCode::SUCCESS).await;
        mme.expect_result(command::UPDATE_LOCATION, ResultCode::SUCCESS)
            .await;
        until(|| severity(&dsr, 10_502) == Some("minor")).await;
        until(|| severity(&dsr, 10_502).is_none()).await;
    });
}

#[test]
fn a_busy_connection_raises_an_alarm_by_its_share() {
    run(async {
        let with_major = |percent: f64| {
            let mut config = config();
            config.indicators.interval = settings::Period::from_secs(1);
            // A ten-thousandth of a percent is one message per second.
            config.indicators.connection_mps = 1_000_000;
            config.indicators.connection_minor = settings::Percent::new(0.000_1);
            config.indicators.connection_major = settings::Percent::new(percent);
            config
        };
        let (dsr, _servers, mut peers) = world(with_major(100.0), HSS, &one_list(&HSS)).await;
        let mut mme = client(&dsr, MME).await;
        while severity(&dsr, 10_500) != Some("minor") {
            mme.send(ulr("1").as_bytes()).await;
            answered(&mut mme, &mut peers[0]).await;
        }
        let mut next = dsr.snapshot().config.as_ref().clone();
        next.indicators = with_major(0.000_2).indicators;
        dsr.reload(&next).unwrap();
        while severity(&dsr, 10_500) != Some("major") {
            mme.send(ulr("1").as_bytes()).await;
            answered(&mut mme, &mut peers[0]).await;
        }
        until(|| severity(&dsr, 10_500).is_none()).await;
    });
}

#[test]
fn indicators_of_the_machine_are_alarms() {
    run(async {
        let with = |percent: f64| {
            let mut config = config();
            config.indicators.interval = settings::Period::from_millis(100);
            config.indicators.system_cpu = settings::Percent::new(percent);
            config.indicators.system_memory = settings::Percent::new(percent);
            config
        };
        let dsr = dsr::start(with(0.001)).unwrap();
        let active = |number: u32| {
            let alarms = dsr.handle().alarms().active();
            alarms.iter().any(|alarm| alarm.number == number)
        };
        // Of the guide: CPU_UtilPct_Average, RAM_UtilPct_Average.
        let numbers = [31_052, 31_056];
        until(|| numbers.iter().all(|number| active(*number))).await;
        // A limit of 0 means none: no machine is below another limit when other tests keep it busy.
        dsr.reload(&with(0.0)).unwrap();
        until(|| !numbers.iter().any(|number| active(*number))).await;
    });
}
