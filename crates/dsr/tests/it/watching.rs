//! Alarms, indicators, traces, pages.

use std::process::{Command, Stdio};

use diameter::proto::ResultCode;
use diameter::proto::known::command;
use dsr::{Config, Event, Running};

use crate::support::{MME, answered, client, config, one_list, read, run, ulr, until, world};

const HSS: [&str; 1] = ["hss1.example"];

fn severity(dsr: &Running, number: u32) -> Option<&'static str> {
    let active = dsr.alarms().active();
    active
        .iter()
        .find(|alarm| alarm.number == number)
        .map(|alarm| alarm.severity.as_str())
}

#[test]
fn a_profile_by_name_is_what_traffic_is_measured_by() {
    run(async {
        // A fiftieth of a percent of 5,000 is one message per second; two for each request.
        let settings = "overload: {profile: \"vm:5k mps\"}\n\
                        indicators: {interval: 1s, trafficMinor: 0.01%, trafficMajor: 0.02%}\n";
        let (dsr, _servers, mut peers) = world(read(config(), settings), HSS, &one_list(&HSS)).await;
        // Other programs may use the cores: their load must not have requests of this test discarded.
        dsr.drive_load(0, Some(0.0));
        let mut mme = client(&dsr, MME).await;
        while severity(&dsr, 10501) != Some("major") {
            mme.send(ulr("1").as_bytes()).await;
            answered(&mut mme, &mut peers[0]).await;
        }
        let alarm = dsr
            .alarms()
            .active()
            .into_iter()
            .find(|alarm| alarm.number == 10501);
        let detail = alarm.unwrap().detail;
        assert!(detail.contains("(5K_MPS)"), "{detail}");
        let rows = dsr.indicators();
        let profiles = rows.iter().filter_map(|row| Some((row.id, row.profile?)));
        assert_eq!(profiles.collect::<Vec<_>>(), [(10_501, "5K_MPS")]);
        let page = dsr.metrics().render();
        assert!(
            page.contains("signalbox_dsr_profile_messages_per_second{profile=\"5K_MPS\"} 5000"),
            "{page}"
        );
        until(|| severity(&dsr, 10501).is_none()).await;
        // Nobody plans for anything: there is nothing to tell.
        let next = Config {
            overload: config().overload,
            ..Config::clone(&dsr.snapshot().config)
        };
        dsr.reload(&next).unwrap();
        let page = dsr.metrics().render();
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
        assert!(dsr.alarms().cleared().iter().any(|alarm| alarm.number == 22051));
        let page = dsr.metrics().render();
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
            let output = Command::new("tshark")
                .arg("-r")
                .arg(&file)
                .stderr(Stdio::null())
                .output();
            let Ok(output) = output else {
                return eprintln!("skipped: tshark is not installed");
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
