//! Full address based resolution at the wire.

use std::path::Path;

use diameter::proto::known::{self, command};
use diameter::proto::{CommandFlags, ResultCode};
use dsr_fabr::{Event, Fabr};
use numbers::csv::{self, Options};

use crate::eir::{admin, is_answered};
use crate::support::{MME, client, config, is_led, read, run, ulr, until, world};

const HSS: [&str; 2] = ["hss1.example", "hss2.example"];

/// Subscribers of a file, and a resolution by it of all ULRs.
fn resolution(folder: &Path, more: &str) -> String {
    let (file, changes) = (folder.join("s.csv"), folder.join("changes.csv"));
    format!(
        "applications:
  - name: resolve
    fabr:
      lookups:
        - {{applications: [16777251], commands: [316], service: lte-hss, \
         entities: [{{entity: imsi, avps: [userName]}}, {{entity: nai, avps: [userName]}}]}}
      destinations:
        - {{name: one, host: hss1.example}}
        - {{name: two, host: hss2.example, realm: two.example}}
      file: {}
      changes: {}
      onNoValidAddress: {{answer: {{resultCode: 5001, vendorId: 10415, message: who}}}}
      onNoMatch: {{answer: {{resultCode: 3002, message: where}}}}
{more}routing:
  applicationRouteTables:
    - name: default
      rules: [{{when: {{applications: [16777251]}}, action: {{application: resolve}}}}]
",
        file.display(),
        changes.display()
    )
}

fn written(folder: &Path, text: &str) {
    let part = folder.join("part");
    std::fs::write(&part, text).unwrap();
    std::fs::rename(&part, folder.join("s.csv")).unwrap();
}

fn found(dsr: &dsr::Running, subject: &str) -> String {
    let rows = dsr.look_up(subject);
    rows[0]["destinations"].as_str().unwrap_or_default().to_owned()
}

#[test]
fn a_subscriber_leads_to_its_server_and_why_says_how() {
    run(async {
        let folder = tempfile::tempdir().unwrap();
        written(
            folder.path(),
            "imsi,001010000000001,one\nimsi,001010000000002,one,lte-hss=two\nnai,*@iot.example,two\n",
        );
        let (dsr, _servers, mut peers) = world(read(config(), &resolution(folder.path(), "")), HSS, "").await;
        let mut mme = client(&dsr, MME).await;
        for (user, server, realm) in [
            ("001010000000001", 0, "epc.example"),
            (
                "0001010000000001@nai.epc.mnc001.mcc001.3gppnetwork.org",
                0,
                "epc.example",
            ),
            ("001010000000002", 1, "two.example"),
            ("meter7@iot.example", 1, "two.example"),
        ] {
            let request = is_led(&mut mme, user, &mut peers[server], HSS[server]).await;
            assert_eq!(
                request.require(known::DESTINATION_REALM).unwrap(),
                realm,
                "{user}"
            );
            assert_eq!(request.require(known::USER_NAME).unwrap(), user);
            assert!(request.flags().contains(CommandFlags::PROXIABLE));
        }
        for (user, expected) in [("001010000000003", (0, 3002)), ("alice", (10_415, 5001))] {
            mme.send(ulr(user).as_bytes()).await;
            let answer = mme.expect(command::UPDATE_LOCATION).await;
            let routing = diameter::proto::Routing::scan(&answer, b"").unwrap();
            let result = routing.result_code.map(|code| (0, code));
            assert_eq!(result.or(routing.experimental_result()), Some(expected), "{user}");
        }
        let count = |event| dsr.count_of::<Fabr>(event);
        let all = [
            Event::Requests,
            Event::Queries,
            Event::Exact,
            Event::Ranged,
            Event::NoMatch,
            Event::NoValidAddress,
        ];
        assert_eq!(all.map(count), [6, 5, 3, 1, 1, 1]);
        let request =
            "ULR app=16777251 flags=RP { User-Name = \"meter7@iot.example\" Destination-Realm = \"x\" }";
        let why = dsr.why(MME, request);
        assert_eq!(
            why["application"]["outcome"],
            "fabr: to host `hss2.example`, realm `two.example`"
        );
        let reasons = [
            "imsi: User-Name `meter7@iot.example` is not one",
            "nai: User-Name meter7@iot.example",
            "destination two by the realm",
        ];
        let findings = why["application"]["findings"].as_array().unwrap();
        assert!(
            reasons.iter().all(|reason| findings.contains(&(*reason).into())),
            "{why}"
        );
        assert_eq!(count(Event::Requests), 6, "nothing is counted");
        until(|| dsr.indicators().iter().any(|row| row.id == 4170)).await;
    });
}

#[test]
fn subscribers_are_changed_beside_the_traffic_and_are_kept() {
    run(async {
        let folder = tempfile::tempdir().unwrap();
        written(folder.path(), "imsi,001010000000001,one\n");
        let yaml = resolution(folder.path(), "");
        {
            let (dsr, _servers, mut peers) = world(read(config(), &yaml), HSS, "").await;
            let (listener, address) = crate::support::admin();
            crate::support::serve(listener, &dsr);
            let mut mme = client(&dsr, MME).await;
            let path = |rest: &str| format!("/dsr/applications/resolve/subscribers/{rest}");
            for (request, body, code) in [
                (format!("PUT {}", path("imsi/001010000000001")), "two", "200"),
                (
                    format!("PUT {}", path("imsi/001010000000002")),
                    "one,pcrf=two",
                    "200",
                ),
                (format!("PUT {}", path("nai/Meter7@iot.example")), "one", "200"),
                (format!("PUT {}", path("impu/sip:a@x")), "one", "200"),
                (format!("DELETE {}", path("impu/sip:a@x")), "", "200"),
                (format!("PUT {}", path("imsi/0010100000000012")), "one", "409"),
                (format!("PUT {}", path("imsi/00101x")), "one", "409"),
                (format!("PUT {}", path("imsi/001010000000003")), "three", "409"),
                (format!("PUT {}", path("imsi/001010000000003")), "", "409"),
                (format!("PUT {}", path("imei/35209900176148")), "one", "409"),
                (
                    "POST /dsr/change-subscriber/resolve:imsi:001010000000004=one,pcrf=two".to_owned(),
                    "",
                    "200",
                ),
                ("POST /dsr/change-subscriber/resolve:imsi:1".to_owned(), "", "400"),
            ] {
                is_answered(address, (&request, body), code).await;
            }
            for (user, server) in [
                ("001010000000001", 1),
                ("001010000000002", 0),
                ("meter7@iot.example", 0),
            ] {
                is_led(&mut mme, user, &mut peers[server], HSS[server]).await;
            }
            let page = admin(address, "GET /dsr/subscribers/imsi:001010000000004", "").await;
            assert!(page.contains("one by changes, pcrf=two by changes"), "{page}");
            let other = admin(address, "GET /dsr/ranges/imsi:001010000000004", "").await;
            assert!(other.ends_with("[]"), "{other}");
        }
        // After a restart, and with another file, the changes are the same.
        written(
            folder.path(),
            "imsi,001010000000001,one\nimsi,001010000000009,one\n",
        );
        let dsr = dsr::start(read(config(), &yaml)).unwrap();
        assert_eq!(found(&dsr, "imsi:001010000000001"), "two by changes");
        assert_eq!(found(&dsr, "imsi:001010000000009"), "one by file");
        assert_eq!(found(&dsr, "impu:sip:a@x"), "");
    });
}

#[test]
fn a_file_is_replaced_as_a_whole_or_not_at_all() {
    run(async {
        let folder = tempfile::tempdir().unwrap();
        written(folder.path(), "imsi,001010000000001,one\n");
        let numbers = folder.path().join("s.num");
        let imported = |text: &str| {
            let options = Options {
                sort: false,
                sort_memory: 0,
            };
            csv::import(text.as_bytes(), &numbers, options, |_| Ok(())).unwrap();
        };
        imported("imsi,001010000000002,one\n");
        let more = format!("      numbers: {}\n", numbers.display());
        let dsr = dsr::start(read(config(), &resolution(folder.path(), &more))).unwrap();
        assert_eq!(found(&dsr, "imsi:001010000000002"), "one by numbers");
        // Cut, twice, sixteen digits, letters: refused by a reload with the line; what was there serves.
        let same = dsr.snapshot().config.as_ref().clone();
        for (text, wanted) in [
            (
                "imsi,001010000000001,two\nimsi,00101",
                "line 2: the line has no end",
            ),
            ("imsi,001010000000001,two\nimsi,001010000000001,one\n", "line 2: "),
            (
                "imsi,001010000000001,two\nimsi,0010100000000012,two\n",
                "line 2: ",
            ),
            ("imsi,001010000000001,two\nimsi,00101000000000x,two\n", "line 2: "),
        ] {
            written(folder.path(), text);
            let wrong = dsr.reload(&same).unwrap_err();
            assert!(wrong.contains(wanted), "{text}: {wrong}");
            assert_eq!(found(&dsr, "imsi:001010000000001"), "one by file");
        }
        // Either file is reloaded when another takes its place.
        written(folder.path(), "imsi,001010000000001,two\n");
        until(|| found(&dsr, "imsi:001010000000001") == "two by file").await;
        imported("imsi,001010000000002,two\nimsi,001010000000003,one\n");
        until(|| found(&dsr, "imsi:001010000000003") == "one by numbers").await;
        assert_eq!(found(&dsr, "imsi:001010000000002"), "two by numbers");
    });
}

#[test]
fn a_reload_reads_changed_files_at_once() {
    run(async {
        let folder = tempfile::tempdir().unwrap();
        written(folder.path(), "imsi,001010000000001,one\n");
        let dsr = dsr::start(read(config(), &resolution(folder.path(), ""))).unwrap();
        assert_eq!(dsr.reread(), Ok(false), "no file has changed");
        // In place, so that the router itself would wait until the file has settled.
        let file = folder.path().join("s.csv");
        std::fs::write(&file, "imsi,001010000000001,two,ocs=one\n").unwrap();
        assert_eq!(dsr.reread(), Ok(true));
        assert_eq!(
            found(&dsr, "imsi:001010000000001"),
            "two by file, ocs=one by file"
        );
        // One that cannot be used, or is missing, is refused with the reason; what was there serves.
        std::fs::write(&file, "imsi,001010000000001,three\n").unwrap();
        let wrong = dsr.reread().unwrap_err();
        assert!(
            wrong.contains("application resolve") && wrong.contains("line 1"),
            "{wrong}"
        );
        std::fs::remove_file(&file).unwrap();
        let wrong = dsr.reread().unwrap_err();
        assert!(wrong.contains("s.csv"), "{wrong}");
        assert_eq!(
            found(&dsr, "imsi:001010000000001"),
            "two by file, ocs=one by file"
        );
    });
}

#[test]
fn congestion_raises_the_alarm_of_the_guide_and_ends() {
    run(async {
        let folder = tempfile::tempdir().unwrap();
        written(folder.path(), "imsi,001010000000001,one\n");
        let more = "      queriesPerSecond: 1\n      onDatabaseCongested: {answer: {resultCode: 3004}}\n";
        let (dsr, _servers, mut peers) =
            world(read(config(), &resolution(folder.path(), more)), HSS, "").await;
        let mut mme = client(&dsr, MME).await;
        let raised = |number: u32| {
            let active = dsr.handle().alarms().active();
            active.iter().any(|alarm| alarm.number == number)
        };
        // Requests until one is beyond the first of its second.
        while dsr.count_of::<Fabr>(Event::DatabaseCongested) == 0 || !raised(19822) {
            mme.send(ulr("001010000000001").as_bytes()).await;
            tokio::select! {
                request = peers[0].expect(command::UPDATE_LOCATION) => {
                    peers[0].answer(&request, ResultCode::SUCCESS).await;
                    mme.expect_result(command::UPDATE_LOCATION, ResultCode::SUCCESS).await;
                }
                answer = mme.expect(command::UPDATE_LOCATION) => {
                    assert_eq!(answer.require(known::RESULT_CODE).unwrap(), 3004);
                }
            }
        }
        until(|| !raised(19822)).await;
    });
}
