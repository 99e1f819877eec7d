//! How many requests a worker begins, and which of the others it begins first.

use std::net::SocketAddr;

use http::{Method, StatusCode};
use pcf::Config;
use sbi::Response;
use serde_json::{Value, json};
use testpeer::http2::Peer;
use testpeer::http2::frame::{self, Frame, kind};
use testpeer::sbi::{Seen, Server, no_content};

use crate::authorization::{APP_SESSIONS, call};
use crate::policies::{AM, UE, association};
use crate::support::{
    Pcf, SM_POLICIES, ask_sources, client, context, local, path_of, request, send, start, until,
};

const PRIORITY: &str = "3gpp-sbi-message-priority";
const LIMIT: &str = "3gpp-sbi-max-rsp-time";

/// A PCF whose worker begins few requests.
fn few(begun: usize, change: impl FnOnce(&mut Config)) -> Pcf {
    start(|config| {
        config.request_queue.max_begun = begun;
        change(config);
    })
}

fn address(pcf: &Pcf) -> SocketAddr {
    let origin = pcf.origin.to_string();
    origin.trim_start_matches("http://").parse().unwrap()
}

/// A POST on a stream.
fn post(stream: u32, path: &str, headers: &[(&'static str, &str)], body: &Value) -> Vec<u8> {
    let mut fields = frame::request_fields("POST", path);
    fields.push(("content-type", "application/json"));
    fields.extend(headers);
    let body = body.to_string();
    [
        frame::headers(stream, &fields, false),
        frame::data(stream, body.as_bytes(), true),
    ]
    .concat()
}

fn session(number: u32) -> Value {
    context(
        &json!({"supi": format!("imsi-00101{number:010}"), "pduSessionId": 1,
        "ipv4Address": format!("10.9.{}.{}", number / 250, number % 250 + 1), "ipv6AddressPrefix": null}),
    )
}

/// Sends requests at one moment: the status of each by its stream, in the order of the answers.
async fn at_once(pcf: &Pcf, requests: &[Vec<u8>]) -> Vec<(u32, u16)> {
    let mut peer = Peer::client(address(pcf)).await.unwrap();
    peer.send(&requests.concat()).await.unwrap();
    answers(&mut peer, requests.len()).await
}

/// The next answers on a connection.
async fn answers(peer: &mut Peer, number: usize) -> Vec<(u32, u16)> {
    let mut answers = Vec::new();
    while answers.len() < number {
        let is_head = |frame: &Frame| frame.kind == kind::HEADERS;
        let head = peer.wait_for("an answer", is_head).await.unwrap();
        answers.push((head.stream, head.status().unwrap_or_default()));
    }
    answers
}

fn gauge(pcf: &Pcf, name: &str) -> f64 {
    let page = pcf.running().handle().registry().render();
    let prefix = format!("signalbox_pcf_{name}{{worker=\"0\"}} ");
    let value = page.lines().find_map(|line| line.strip_prefix(&prefix));
    value.unwrap_or_else(|| panic!("{name}: {page}")).parse().unwrap()
}

fn answer_of_udr(seen: &Seen) -> Response {
    match seen.method {
        Method::GET => sbi::json::response(StatusCode::OK, &json!({"smPolicySnssaiData": {}})),
        _ => no_content(),
    }
}

#[test]
fn sessions_over_two_hundred_connections_at_once_are_all_served() {
    local(async {
        let pcf = few(4, |_| {});
        let tasks: Vec<_> = (0..200)
            .map(|number| {
                let (own, origin) = (client(), pcf.origin.clone());
                tokio::task::spawn_local(async move {
                    let ask = async |path: &str, body: &Value| {
                        let asked = request(Method::POST, path, "application/json", body.to_string());
                        send(&own, &origin, asked).await.unwrap()
                    };
                    let path = path_of(&ask(SM_POLICIES, &session(number)).await);
                    let updated = ask(&format!("{path}/update"), &json!({"ratType": "EUTRA"})).await;
                    assert_eq!(updated.status, StatusCode::OK, "{}", updated.json);
                    let deleted = ask(&format!("{path}/delete"), &json!({})).await;
                    assert_eq!(deleted.status, StatusCode::NO_CONTENT);
                })
            })
            .collect();
        for task in tasks {
            task.await.unwrap();
        }
        assert_eq!(pcf.running().count(pcf::Event::SmDeleted), 200);
        until(|| gauge(&pcf, "requests_begun") == 0.0).await;
        assert_eq!(gauge(&pcf, "requests_queued"), 0.0);
    });
}

#[test]
fn queued_requests_are_begun_by_what_they_do_then_priority_then_deadline() {
    local(async {
        let pcf = few(1, |_| {});
        let path = path_of(&pcf.post(SM_POLICIES, &session(1)).await);
        let other = path_of(&pcf.post(SM_POLICIES, &session(2)).await);
        let create =
            |stream, headers: &[(&'static str, &str)]| post(stream, SM_POLICIES, headers, &session(stream));
        let requests = [
            create(101, &[]),
            create(103, &[(PRIORITY, "31")]),
            create(105, &[]),
            create(107, &[(LIMIT, "60000")]),
            create(109, &[(LIMIT, "2500")]),
            create(111, &[(PRIORITY, "9")]),
            post(113, &format!("{path}/update"), &[], &json!({"ratType": "EUTRA"})),
            post(115, &format!("{other}/delete"), &[], &json!({})),
            post(117, AM, &[(PRIORITY, "3")], &association(&json!({}))),
            post(119, UE, &[(PRIORITY, "30")], &association(&json!({}))),
        ];
        let answers = at_once(&pcf, &requests).await;
        assert!(
            answers.iter().all(|(_, status)| (200..300).contains(status)),
            "{answers:?}"
        );
        let order: Vec<u32> = answers.iter().map(|(stream, _)| *stream).collect();
        assert_eq!(order, [101, 117, 115, 111, 113, 109, 105, 107, 119, 103]);
    });
}

#[test]
fn a_full_queue_refuses_the_least_important_and_no_deletion() {
    local(async {
        let pcf = few(1, |config| config.request_queue.max_queued = 2);
        let mut paths = Vec::new();
        for number in 1..=6 {
            paths.push(path_of(&pcf.post(SM_POLICIES, &session(number)).await));
        }
        let am = path_of(&pcf.post(AM, &association(&json!({}))).await);
        let af = path_of(
            &pcf.post(
                APP_SESSIONS,
                &call("http://127.0.0.1:9", &json!({"ueIpv4": "10.9.0.7"})),
            )
            .await,
        );
        let create = |stream| post(stream, SM_POLICIES, &[], &session(stream));
        let mut requests = vec![create(101), create(103), create(105), create(107)];
        let update = |stream, path: &str| {
            post(
                stream,
                &format!("{path}/update"),
                &[],
                &json!({"ratType": "EUTRA"}),
            )
        };
        requests.push(update(109, &paths[5]));
        for (stream, path) in (111..).step_by(2).zip(&paths[..5]) {
            requests.push(post(stream, &format!("{path}/delete"), &[], &json!({})));
        }
        requests.push(frame::headers(131, &frame::request_fields("DELETE", &am), true));
        requests.push(post(133, &format!("{af}/delete"), &[], &json!({})));
        let mut answers = at_once(&pcf, &requests).await;
        answers.sort_unstable();
        // One is begun, the update and the create that came first are queued.
        let expected = [
            (101, 201),
            (103, 201),
            (105, 503),
            (107, 503),
            (109, 200),
            (111, 204),
            (113, 204),
            (115, 204),
            (117, 204),
            (119, 204),
            (131, 204),
            (133, 204),
        ];
        assert_eq!(answers, expected);
        assert_eq!(pcf.running().count(pcf::Event::Discarded), 2);
        assert_eq!(gauge(&pcf, "queue_refusals_total"), 2.0);
    });
}

#[test]
fn the_queue_has_a_bound_in_bytes() {
    local(async {
        let pcf = few(1, |config| {
            config.request_queue.max_bytes = settings::ByteSize::kib(40);
        });
        let large = context(&json!({"vendorExtra": "x".repeat(30_000)}));
        let requests: Vec<_> = [1, 3, 5]
            .map(|stream| post(stream, SM_POLICIES, &[], &large))
            .into();
        let statuses: Vec<u16> = at_once(&pcf, &requests)
            .await
            .into_iter()
            .map(|(_, status)| status)
            .collect();
        // How much of them comes at once is the system's to say.
        assert!(
            statuses.iter().all(|status| [201, 503].contains(status)),
            "{statuses:?}"
        );
        let small = pcf.post(SM_POLICIES, &session(9)).await;
        assert_eq!(small.status, StatusCode::CREATED);
    });
}

/// Creations that wait for a UDR that hangs take no slot of what needs none, however many they are.
#[test]
fn a_udr_that_hangs_does_not_delay_what_needs_no_udr() {
    local(async {
        let udr = Server::start(answer_of_udr);
        let pcf = few(2, |config| {
            ask_sources(config, Some(&udr), None);
            config.pds.udr.subscribe = false;
            config.pds.cache.age = settings::Period::from_secs(600);
            config.pds.deadline = settings::Period::from_secs(600);
        });
        let standing = path_of(&pcf.post(SM_POLICIES, &session(1)).await);
        let ended = path_of(&pcf.post(SM_POLICIES, &session(2)).await);
        udr.holds();
        let before = udr.count();
        let mut smf = Peer::client(address(&pcf)).await.unwrap();
        let creates: Vec<u32> = (0..100).map(|number| 2 * number + 1).collect();
        for stream in &creates {
            let sent = post(*stream, SM_POLICIES, &[], &session(1_000 + stream));
            smf.send(&sent).await.unwrap();
        }
        // 16 times as many as may be begun wait for it, the others in the queue.
        until(|| gauge(&pcf, "requests_elsewhere") == 32.0 && gauge(&pcf, "requests_queued") == 68.0).await;
        let late = post(999, SM_POLICIES, &[(LIMIT, "200")], &session(5_000));
        smf.send(&late).await.unwrap();
        until(|| udr.count() - before >= 32).await;
        assert_eq!(udr.count() - before, 32);
        for _ in 0..3 {
            assert_eq!(pcf.get(&standing).await.status, StatusCode::OK);
            let updated = pcf
                .post(&format!("{standing}/update"), &json!({"ratType": "EUTRA"}))
                .await;
            assert_eq!(updated.status, StatusCode::OK, "{}", updated.json);
            let call = call("http://127.0.0.1:9", &json!({"ueIpv4": "10.9.0.2"}));
            let af = path_of(&pcf.post(APP_SESSIONS, &call).await);
            let gone = pcf.post(&format!("{af}/delete"), &json!({})).await;
            assert_eq!(gone.status, StatusCode::NO_CONTENT);
        }
        let deleted = pcf.post(&format!("{ended}/delete"), &json!({})).await;
        assert_eq!(deleted.status, StatusCode::NO_CONTENT);
        // The queue answers the one whose consumer waits no longer.
        let (status, body) = smf.answer(999).await.unwrap();
        let problem: Value = serde_json::from_slice(&body).unwrap();
        assert_eq!((status, &problem["cause"]), (504, &json!("TIMED_OUT_REQUEST")));
        udr.releases();
        let made = answers(&mut smf, creates.len()).await;
        assert!(made.iter().all(|(_, status)| *status == 201), "{made:?}");
        assert_eq!(udr.count() - before, 100);
        until(|| gauge(&pcf, "requests_elsewhere") == 0.0).await;
    });
}
