//! The equipment identity register at the wire (TS 29.272 §6, §7.2.19, §7.2.20).

use std::path::{Path, PathBuf};

use diameter::proto::check::{Strictness, check};
use diameter::proto::known::{self, command};
use diameter::proto::{Dictionary, MessageMut, ResultCode};
use dsr::{Config, Running};
use dsr_eir::{Eir, Event};
use testpeer::diameter::Peer;

use crate::support::{DSR, MME, REALM, config, run, until};

const LISTS: &str = "white,35000000,35009999
grey,350100001
black,35209900176148
pair,35209900176148,001010000000001,white
";

/// A file beside which a test can write another.
fn written(directory: &Path, text: &str) -> PathBuf {
    let path = directory.join("equipment.csv");
    let part = directory.join("part");
    std::fs::write(&part, text).unwrap();
    std::fs::rename(&part, &path).unwrap();
    path
}

fn register(file: &Path, more: &str) -> Config {
    let yaml = format!(
        "applications: [{{name: register, eir: {{file: {}{more}}}}}]
routing: {{applicationRouteTables: [{{name: default, rules: [{{when: {{applications: [16777252]}}, \
         action: {{application: register}}}}]}}]}}",
        file.display()
    );
    crate::support::read(config(), &yaml)
}

async fn mme(dsr: &Running) -> Peer {
    let s13 = diameter::proto::peer::ApplicationId::tgpp(known::application::S13);
    let mut peer = Peer::connect(dsr.addresses()[0]).await;
    peer.capabilities(MME, &[s13]).await;
    crate::support::available(dsr, MME).await;
    peer
}

/// An ME-Identity-Check-Request about this terminal, to our realm.
fn ecr(terminal: &str, more: &str) -> String {
    format!(
        "ME-Identity-Check-Request app=16777252 flags=RP {{ Session-Id = \"{MME};1;2\" \
         Vendor-Specific-Application-Id = {{ Vendor-Id = 10415 Auth-Application-Id = 16777252 }} \
         Auth-Session-State = 1 Origin-Host = \"{MME}\" Origin-Realm = \"{REALM}\" Destination-Realm = \"{REALM}\" \
         {terminal} {more} }}"
    )
}

fn imei(digits: &str) -> String {
    format!("Terminal-Information = {{ IMEI = \"{digits}\" Software-Version = \"12\" }}")
}

async fn asked(mme: &mut Peer, request: &str) -> MessageMut {
    mme.send_text(request).await;
    let answer = mme.expect(command::ME_IDENTITY_CHECK).await;
    if !answer.flags().contains(diameter::proto::CommandFlags::ERROR) {
        check(&answer, Dictionary::standard(), Strictness::Pedantic).unwrap();
    }
    assert_eq!(answer.require(known::ORIGIN_HOST).unwrap(), DSR);
    answer
}

/// The Equipment-Status of an answer; none: DIAMETER_ERROR_EQUIPMENT_UNKNOWN.
fn status(answer: &MessageMut) -> Option<i32> {
    let status = answer.get(known::EQUIPMENT_STATUS).unwrap();
    let group = answer.get(known::EXPERIMENTAL_RESULT).unwrap();
    match status {
        Some(_) => {
            assert_eq!(answer.require(known::RESULT_CODE).unwrap(), 2001);
            assert!(group.is_none());
        }
        None => {
            let group = group.unwrap();
            assert_eq!(group.clone().require(known::VENDOR_ID).unwrap(), 10_415);
            assert_eq!(group.require(known::EXPERIMENTAL_RESULT_CODE).unwrap(), 5422);
        }
    }
    assert_eq!(answer.require(known::AUTH_SESSION_STATE).unwrap(), 1);
    status
}

#[test]
fn lists_decide_on_the_status_of_equipment() {
    run(async {
        let directory = tempfile::tempdir().unwrap();
        let dsr = dsr::start(register(&written(directory.path(), LISTS), "")).unwrap();
        let mut mme = mme(&dsr).await;
        for (digits, user, expected) in [
            ("35001234567890", "", Some(0)),
            ("350099999999990", "", Some(0)),
            ("3501000019999923", "", Some(2)),
            ("352099001761481", "", Some(1)),
            // The subscriber to whom the black equipment belongs.
            ("35209900176148", "001010000000001", Some(0)),
            ("35209900176148", "001010000000002", Some(1)),
            ("35010000200000", "", None),
        ] {
            let more = match user {
                "" => String::new(),
                user => format!("User-Name = \"{user}\""),
            };
            let answer = asked(&mut mme, &ecr(&imei(digits), &more)).await;
            assert_eq!(status(&answer), expected, "{digits} {user}");
        }
        let kinds = [Event::White, Event::Grey, Event::Black, Event::Unknown];
        assert_eq!(kinds.map(|event| dsr.count_of::<Eir>(event)), [3, 1, 2, 1]);
        assert_eq!(dsr.count(dsr::Event::Served), 7);
        // For this node by name and without the P flag, which a relay may not forward.
        let named = ecr(&imei("35001234567890"), &format!("Destination-Host = \"{DSR}\""));
        let answer = asked(&mut mme, &named.replace("flags=RP", "flags=R")).await;
        assert_eq!(status(&answer), Some(0));
        // Pages and metrics.
        let known = dsr.look_up("352099001761481-001010000000001");
        assert_eq!(
            (&known[0]["status"], &known[0]["application"]),
            (&"white".into(), &"register".into())
        );
        assert_eq!(dsr.look_up("352099001761481")[0]["by"], "the IMEI");
        let rows = dsr.applications();
        let rows = rows.iter().map(|row| (row.table, row.entries, row.bytes));
        assert_eq!(
            rows.collect::<Vec<_>>(),
            [("ranges", 4, 64), ("imeis", 1, 8), ("pairs", 1, 13)]
        );
        let page = dsr.handle().registry().render();
        let line = "signalbox_dsr_application_entries{application=\"register\",table=\"imeis\"} 1";
        assert!(page.contains(line), "{page}");
        let transaction = "application 16777252 command 324 vendor 10415 result 5422";
        until(|| {
            dsr.measurements()
                .iter()
                .any(|row| row.name == transaction && row.count == 1)
        })
        .await;
        let why = dsr.why(MME, &ecr(&imei("35209900176148"), ""));
        let outcome = why["route"]["outcome"].as_str().unwrap();
        assert!(outcome.contains("Equipment-Status = BLACKLISTED"), "{outcome}");
    });
}

#[test]
fn requests_without_an_imei_are_refused() {
    run(async {
        let directory = tempfile::tempdir().unwrap();
        let dsr = dsr::start(register(&written(directory.path(), LISTS), "")).unwrap();
        let mut mme = mme(&dsr).await;
        for (terminal, expected) in [
            ("", 5005),
            ("Terminal-Information = { Software-Version = \"12\" }", 5005),
            ("Terminal-Information = { IMEI = \"3500123456789\" }", 5004),
            ("Terminal-Information = { IMEI = \"3500123456789x\" }", 5004),
        ] {
            let answer = asked(&mut mme, &ecr(terminal, "")).await;
            assert_eq!(
                answer.require(known::RESULT_CODE).unwrap(),
                expected,
                "{terminal}"
            );
            assert!(answer.get(known::FAILED_AVP).unwrap().is_some(), "{terminal}");
        }
        assert_eq!(dsr.count_of::<Eir>(Event::Invalid), 4);
        // Another command of the application.
        let other = ecr(&imei("35001234567890"), "").replace("ME-Identity-Check-Request", "ULR");
        mme.send_text(&other).await;
        mme.expect_result(command::UPDATE_LOCATION, ResultCode::COMMAND_UNSUPPORTED)
            .await;
    });
}

#[test]
fn lists_are_replaced_beside_the_traffic() {
    run(async {
        let directory = tempfile::tempdir().unwrap();
        let path = written(directory.path(), LISTS);
        let dsr = dsr::start(register(&path, ", onUnlisted: white, onOtherSubscriber: black")).unwrap();
        let mut mme = mme(&dsr).await;
        let of = |digits: &str| ecr(&imei(digits), "User-Name = \"001010000000002\"");
        let answer = asked(&mut mme, &of("11111111111111")).await;
        assert_eq!(status(&answer), Some(0), "onUnlisted");
        let answer = asked(&mut mme, &of("35209900176148")).await;
        assert_eq!(status(&answer), Some(1), "onOtherSubscriber");
        // A mistake changes nothing; what is right is in effect without a lost request.
        written(directory.path(), "black,1");
        for _ in 0..100 {
            assert_eq!(status(&asked(&mut mme, &of("35001234567890")).await), Some(0));
        }
        let mut text = String::from("black,35001234567890\n");
        for tac in 40_000_000..40_050_000 {
            text.push_str(&format!("grey,{tac}\n"));
        }
        written(directory.path(), &text);
        while status(&asked(&mut mme, &of("35001234567890")).await) != Some(1) {}
        assert_eq!(status(&asked(&mut mme, &of("40049999000000")).await), Some(2));
        assert_eq!(status(&asked(&mut mme, &of("40050000000000")).await), Some(0));
        // More than a bound permits is refused by a reload.
        let next = register(&path, ", maxRanges: 10");
        let error = dsr.reload(&next).unwrap_err().to_string();
        assert!(error.contains("maxRanges (10)"), "{error}");
        assert_eq!(status(&asked(&mut mme, &of("40049999000000")).await), Some(2));
    });
}

/// The body of the answer to a request at the admin endpoint, with its status line.
pub(crate) async fn admin(address: std::net::SocketAddr, request: &str, body: &str) -> String {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    let mut stream = tokio::net::TcpStream::connect(address).await.unwrap();
    let length = body.len();
    let head = format!(
        "{request} HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: {length}\r\n\r\n{body}"
    );
    stream.write_all(head.as_bytes()).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    answer
}

/// A change at the admin endpoint is answered with this status code.
pub(crate) async fn is_answered(address: std::net::SocketAddr, (request, body): (&str, &str), code: &str) {
    let answer = admin(address, request, body).await;
    assert!(
        answer.starts_with(&format!("HTTP/1.1 {code}")),
        "{request}: {answer}"
    );
}

#[test]
fn entries_are_changed_one_by_one_beside_the_traffic_and_are_kept() {
    run(async {
        let folder = tempfile::tempdir().unwrap();
        let file = written(folder.path(), LISTS);
        let more = format!(", changes: {}", folder.path().join("changes.csv").display());
        let (imei_of, other) = ("35209900176148", "35209900176149");
        let status = async |mme: &mut Peer, number: &str, user: &str| {
            let user = format!("User-Name = \"{user}\"");
            let answer = asked(mme, &ecr(&imei(number), &user)).await;
            answer.get(known::EQUIPMENT_STATUS).unwrap()
        };
        {
            let dsr = dsr::start(register(&file, &more)).unwrap();
            let (listener, address) = crate::support::admin();
            crate::support::serve(listener, &dsr);
            let mut mme = mme(&dsr).await;
            assert_eq!(status(&mut mme, other, "001010000000009").await, None);
            let path = |subject: &str| format!("/dsr/applications/register/equipment/{subject}");
            for (request, body, code) in [
                (format!("PUT {}", path(other)), "black", "200"),
                (
                    format!("PUT {}", path(&format!("{other}-001010000000009"))),
                    "white",
                    "200",
                ),
                (format!("DELETE {}", path(imei_of)), "", "200"),
                (format!("PUT {}", path("352099")), "black", "409"),
                (format!("PUT {}", path(other)), "red", "409"),
                (
                    "POST /dsr/change-equipment/register:35209900176150=grey".to_owned(),
                    "",
                    "200",
                ),
                (
                    "PUT /dsr/applications/nowhere/equipment/35209900176150".to_owned(),
                    "grey",
                    "409",
                ),
            ] {
                is_answered(address, (&request, body), code).await;
            }
            assert_eq!(status(&mut mme, other, "001010000000001").await, Some(1));
        }
        // After a restart, and with other lists, the changes are the same.
        written(folder.path(), "grey,35209900176148\n");
        let dsr = dsr::start(register(&file, &more)).unwrap();
        let mut mme = mme(&dsr).await;
        assert_eq!(status(&mut mme, other, "001010000000001").await, Some(1));
        assert_eq!(status(&mut mme, other, "001010000000009").await, Some(0));
        assert_eq!(status(&mut mme, imei_of, "001010000000001").await, None);
        assert_eq!(
            status(&mut mme, "35209900176150", "001010000000001").await,
            Some(2)
        );
    });
}
