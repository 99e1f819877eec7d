//! Sessions that are established again while the one before still lives.

use http::{Method, StatusCode};
use pcf::Event;
use sbi::client::Origin;
use serde_json::{Value, json};
use testpeer::page;
use testpeer::sbi::Got;

use crate::authorization::{APP_SESSIONS, call, listener, notification};
use crate::databases::Servers;
use crate::diameter::{AAR, CCR_I, ask, peer, received};
use crate::process::Process;
use crate::support::{Pcf, SM_POLICIES, client, config, context, judged, local, path_of, request, start};

fn detecting() -> Pcf {
    start(|config| config.collision_detection = true)
}

/// Associations of the test's subscriber.
async fn found(pcf: &Pcf) -> usize {
    let (_, text) = page(pcf.running().handle().routes(), "/pcf/find/imsi-001010000000001").await;
    let found: Value = serde_json::from_str(&text).unwrap();
    found.as_array().unwrap().len()
}

#[test]
fn a_pdu_session_that_is_established_again_replaces_the_one_before_with_its_af_sessions() {
    local(async {
        // An SMF that takes what it gets: its AF hears of nothing else.
        let (pcf, af, smf) = (detecting(), listener(), listener());
        let old = pcf.session(&json!({"notificationUri": smf.root()})).await;
        let app = pcf.post(APP_SESSIONS, &call(&af.root(), &json!({}))).await;
        let app = path_of(&app);
        // Another address: the identity of the session decides.
        let new = pcf
            .session(&json!({"ipv4Address": "10.0.0.7", "ipv6AddressPrefix": null}))
            .await;
        assert_eq!(pcf.get(&old).await.status, StatusCode::NOT_FOUND);
        assert_eq!(pcf.get(&new).await.status, StatusCode::OK);
        assert_eq!((found(&pcf).await, pcf.running().count(Event::Collided)), (1, 1));
        let (uri, body) = notification(&af, 1).await;
        assert_eq!(uri, "/af/terminate");
        assert!(body["resUri"].as_str().unwrap().ends_with(&app), "{body}");
        assert_eq!(pcf.get(&app).await.status, StatusCode::NOT_FOUND);
        // Another session of the subscriber replaces nothing.
        pcf.session(&json!({"pduSessionId": 6, "ipv4Address": "10.0.0.8", "ipv6AddressPrefix": null}))
            .await;
        assert_eq!((found(&pcf).await, pcf.running().count(Event::Collided)), (2, 1));
    });
}

/// Without `collisionDetection`: networks may reuse addresses, the identity of a PDU session is its UE's.
#[test]
fn a_pdu_session_that_is_established_again_is_one_session() {
    local(async {
        let pcf = start(|_| {});
        let old = pcf.session(&json!({})).await;
        let new = pcf.session(&json!({"dnn": "INTERNET.mnc001.mcc001.gprs"})).await;
        assert_eq!(pcf.get(&old).await.status, StatusCode::NOT_FOUND);
        assert_eq!(pcf.get(&new).await.status, StatusCode::OK);
        // Another UE, session, DNN, slice or SMF is another session, whatever its address, and so is a SUPI that is not authenticated.
        for more in [
            json!({"supi": "imsi-001010000000002"}),
            json!({"pduSessionId": 6}),
            json!({"dnn": "ims"}),
            json!({"sliceInfo": {"sst": 1}}),
            json!({"invalidSupi": true}),
            json!({"notificationUri": "http://127.0.0.2:9/another-smf"}),
        ] {
            pcf.session(&more).await;
        }
        assert_eq!(pcf.get(&new).await.status, StatusCode::OK);
        assert_eq!(pcf.running().count(Event::Collided), 1);
        // Copies of one request in flight make one session as well.
        let same = json!({"pduSessionId": 9});
        let copy = || pcf.session(&same);
        let copies: [String; 4] = tokio::join!(copy(), copy(), copy(), copy()).into();
        let mut found = Vec::new();
        for path in copies {
            found.push(pcf.get(&path).await.status);
        }
        let standing = found.iter().filter(|status| **status == StatusCode::OK).count();
        assert_eq!(standing, 1, "{found:?}");
    });
}

#[test]
fn an_address_belongs_to_the_session_that_got_it_last() {
    local(async {
        let pcf = detecting();
        let old = pcf.session(&json!({})).await;
        let same = json!({"supi": "imsi-001010000000002", "gpsi": null, "ipv6AddressPrefix": null});
        let new = pcf.session(&same).await;
        assert_eq!(pcf.get(&old).await.status, StatusCode::NOT_FOUND);
        // The same address in another DNN, slice or domain is another one.
        for (number, more) in [
            json!({"dnn": "ims"}),
            json!({"sliceInfo": {"sst": 2}}),
            json!({"ipDomain": "other"}),
        ]
        .into_iter()
        .enumerate()
        {
            let mut session = same.clone();
            session["pduSessionId"] = json!(20 + number);
            pcf.session(&crate::support::with(session, &more)).await;
        }
        assert_eq!(pcf.get(&new).await.status, StatusCode::OK);
        // A session that has released the address keeps none from it.
        let update = json!({"repPolicyCtrlReqTriggers": ["UE_IP_CH"], "relIpv4Address": "10.0.0.1"});
        let updated = pcf.post(&format!("{new}/update"), &update).await;
        assert_eq!(updated.status, StatusCode::OK, "{}", updated.json);
        pcf.session(&json!({"supi": "imsi-001010000000003", "gpsi": null, "ipv6AddressPrefix": null}))
            .await;
        assert_eq!(pcf.get(&new).await.status, StatusCode::OK);
        assert_eq!(pcf.running().count(Event::Collided), 1);
    });
}

#[test]
fn a_gx_session_is_replaced_by_a_new_one_and_not_by_the_same_request() {
    local(async {
        let pcf = detecting();
        let pcef = peer("pcef.example", &pcf).await;
        let af = peer("pcscf.example", &pcf).await;
        ask(&pcef, "pcef.example", "pcef;1", CCR_I).await;
        ask(&af, "pcscf.example", "af;1", AAR).await;
        // The same request again: it is answered, and nothing begins or ends.
        ask(&pcef, "pcef.example", "pcef;1", CCR_I).await;
        assert_eq!((found(&pcf).await, pcf.running().count(Event::Collided)), (1, 0));
        // The PCEF has lost the session, and the UE has its address again.
        ask(&pcef, "pcef.example", "pcef;2", CCR_I).await;
        assert_eq!((found(&pcf).await, pcf.running().count(Event::Collided)), (1, 1));
        let aborted = received(&af, 1).await;
        assert!(aborted.starts_with("Abort-Session-Request"), "{aborted}");
        // Another session under the same Session-Id.
        let other = CCR_I.replace("0x0a000001", "0x0a000002");
        ask(&pcef, "pcef.example", "pcef;2", &other).await;
        assert_eq!((found(&pcf).await, pcf.running().count(Event::Collided)), (1, 2));
    });
}

/// The answer to a request for the session of the test, begun at this second.
async fn begun_at(pcf: &Pcf, second: u8) -> Got {
    let mut post = request(
        Method::POST,
        SM_POLICIES,
        "application/json",
        context(&json!({})).to_string(),
    );
    let begun = format!("Thu, 26 Nov 2026 08:00:{second:02}.000 GMT");
    post.headers_mut()
        .insert("3gpp-sbi-origination-timestamp", begun.parse().unwrap());
    judged(&client(), &pcf.origin, post).await
}

#[test]
fn of_two_requests_for_a_session_the_one_counts_that_was_begun_later() {
    local(async {
        let pcf = detecting();
        let held = path_of(&begun_at(&pcf, 5).await);
        // Late, and the same time: it is not more recent (TS 29.512 §4.2.7).
        for second in [4, 5] {
            let refused = begun_at(&pcf, second).await;
            assert_eq!(refused.status, StatusCode::FORBIDDEN, "{}", refused.json);
            assert_eq!(refused.json["cause"], "LATE_OVERLAPPING_REQUEST");
        }
        assert_eq!(pcf.get(&held).await.status, StatusCode::OK);
        assert_eq!((found(&pcf).await, pcf.running().count(Event::Late)), (1, 2));
        let next = path_of(&begun_at(&pcf, 6).await);
        assert_eq!(pcf.get(&held).await.status, StatusCode::NOT_FOUND);
        // A request that names no time, or none that can be read, is the latest.
        pcf.session(&json!({})).await;
        assert_eq!(pcf.get(&next).await.status, StatusCode::NOT_FOUND);
        assert_eq!((found(&pcf).await, pcf.running().count(Event::Collided)), (1, 2));
    });
}

#[test]
fn of_two_requests_of_pcefs_the_one_counts_that_was_begun_later() {
    local(async {
        let pcf = detecting();
        let pcef = peer("pcef.example", &pcf).await;
        for (session, stamp, result) in [
            ("pcef;1", 3_900_000_000_000_u64, "Result-Code = DIAMETER_SUCCESS"),
            ("pcef;2", 3_899_999_999_999, "Experimental-Result-Code = 5453"),
            ("pcef;3", 3_900_000_000_001, "Result-Code = DIAMETER_SUCCESS"),
        ] {
            let ccr = format!("{CCR_I}\nOrigination-Time-Stamp = {stamp}");
            let answer = ask(&pcef, "pcef.example", session, &ccr).await;
            assert!(answer.contains(result), "{answer}");
        }
        assert_eq!((found(&pcf).await, pcf.running().count(Event::Late)), (1, 1));
    });
}

/// Sessions that are established at the same time.
const AT_ONCE: usize = 24;

async fn establish(origin: Origin) -> String {
    let body = context(&json!({})).to_string();
    let post = request(Method::POST, SM_POLICIES, "application/json", body);
    path_of(&judged(&client(), &origin, post).await)
}

/// Establishes the same session many times at once at all of these; one is left.
async fn one_is_left(origins: &[Origin]) {
    let all: Vec<_> = (0..AT_ONCE)
        .map(|number| tokio::task::spawn_local(establish(origins[number % origins.len()].clone())))
        .collect();
    let mut left = 0;
    let mut paths = Vec::new();
    for one in all {
        paths.push(one.await.unwrap());
    }
    for path in &paths {
        let got = judged(&client(), &origins[0], request(Method::GET, path, "", "")).await;
        left += usize::from(got.status == StatusCode::OK);
    }
    assert_eq!(left, 1);
}

#[test]
fn of_a_session_that_is_established_many_times_at_once_one_is_left() {
    let directory = tempfile::tempdir().unwrap();
    let mut settings = config(directory.path());
    settings.workers = 2;
    settings.collision_detection = true;
    let process = Process::start(&settings);
    local(one_is_left(std::slice::from_ref(&process.origin)));
}

#[test]
fn of_a_session_that_is_established_at_two_pcfs_at_once_one_is_left() {
    let Some(servers) = Servers::sites(1) else { return };
    let directory = tempfile::tempdir().unwrap();
    let settings = |instance: &str| {
        let mut config = config(&directory.path().join(instance));
        config.store = servers.config("site-1", &[1]);
        config.store.embedded.directory = directory.path().join(instance);
        config.collision_detection = true;
        config
    };
    let (one, other) = (
        Process::start(&settings("one")),
        Process::start(&settings("other")),
    );
    local(async { one_is_left(&[one.origin.clone(), other.origin.clone()]).await });
}
