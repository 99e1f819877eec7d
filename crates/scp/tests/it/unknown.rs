//! Unknown destinations that requests name, and the effect of one consumer's requests on another.

use std::time::Duration;

use http::{Method, StatusCode};
use serde_json::json;
use tokio::net::TcpListener;

use crate::stub_nrf::{StubNrf, notification};
use crate::support::{Got, PATH, Producer, Scp, knowing, local, until};

async fn to(scp: &Scp, root: &str) -> Got {
    scp.ask(Method::GET, PATH, &[("3gpp-sbi-target-apiroot", root)])
        .await
}

/// A port of this machine without a listener.
async fn closed() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    format!("http://{}", listener.local_addr().unwrap())
}

/// The answer to a consumer, without the destination that the request named.
fn shown(got: &Got, root: &str) -> (StatusCode, String) {
    (got.status, got.json.to_string().replace(root, "it"))
}

const DELEGATED: [(&str, &str); 2] = [
    ("3gpp-sbi-discovery-target-nf-type", "UDM"),
    ("3gpp-sbi-discovery-requester-nf-type", "AMF"),
];

#[test]
fn nothing_goes_where_nobody_is_known() {
    local(async {
        let (known, unknown) = (Producer::start(1), Producer::start(2));
        let scp = knowing(&[&known], |config| {
            config.forward_to_unknown = scp::Config::default().forward_to_unknown;
        });
        assert_eq!(to(&scp, &known.root()).await.status, StatusCode::OK);
        let silent = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let mut answers = Vec::new();
        for root in [
            unknown.root(),
            closed().await,
            format!("http://{}", silent.local_addr().unwrap()),
            format!("https://{}", known.address),
            "http://169.254.169.254:80".to_owned(),
            "http://an.unknown.host.invalid:80".to_owned(),
        ] {
            answers.push(shown(&to(&scp, &root).await, &root));
        }
        assert_eq!(answers[0].0, StatusCode::GATEWAY_TIMEOUT);
        assert!(answers.iter().all(|one| *one == answers[0]), "{answers:?}");
        assert_eq!(unknown.count(), 0);
        let accepted = tokio::time::timeout(Duration::from_millis(50), silent.accept()).await;
        assert!(accepted.is_err(), "no connection");
    });
}

#[test]
fn callbacks_go_to_the_hosts_of_known_functions() {
    local(async {
        let (amf, elsewhere) = (Producer::start(1), Producer::start(2));
        let scp = knowing(&[&amf], |config| config.forward_to_unknown = false);
        let root = elsewhere.root();
        let target = ("3gpp-sbi-target-apiroot", root.as_str());
        let callback = ("3gpp-sbi-callback", "Nudm_SDM_Notification");
        for _ in 0..2 {
            let got = scp.ask(Method::POST, "/callback/7", &[target, callback]).await;
            assert_eq!(got.status, StatusCode::OK, "{got:?}");
            // What is remembered of callbacks is not for others.
            assert_eq!(
                scp.ask(Method::POST, "/callback/7", &[target]).await.status,
                StatusCode::GATEWAY_TIMEOUT
            );
        }
        assert_eq!(elsewhere.count(), 2);
        let other = [("3gpp-sbi-target-apiroot", "http://127.0.0.2:9"), callback];
        let got = scp.ask(Method::POST, "/callback/7", &other).await;
        assert!(
            got.json["detail"]
                .as_str()
                .unwrap()
                .contains("no registered producer"),
            "{got:?}"
        );
    });
}

#[test]
fn networks_let_requests_through_and_tell_nothing_of_ports() {
    local(async {
        let unknown = Producer::start(1);
        let scp = crate::support::start(|config| {
            config.forward_to_unknown = false;
            config.allowed_networks = vec!["127.0.0.1/32".parse().unwrap()];
        });
        assert_eq!(to(&scp, &unknown.root()).await.status, StatusCode::OK);
        // One port is closed, behind the other is somebody who goes away at once.
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let open = format!("http://{}", listener.local_addr().unwrap());
        tokio::task::spawn_local(async move { while listener.accept().await.is_ok() {} });
        let closed = closed().await;
        let (first, second) = (to(&scp, &open).await, to(&scp, &closed).await);
        assert_eq!(shown(&first, &open), shown(&second, &closed));
        let got = to(&scp, "http://127.0.0.2:9").await;
        assert!(
            got.json["detail"]
                .as_str()
                .unwrap()
                .contains("no registered producer"),
            "{got:?}"
        );
    });
}

/// Also where a name means it: the address counts to which the connection would be made.
#[test]
fn admin_endpoints_are_never_connected_to() {
    local(async {
        let admin = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = admin.local_addr().unwrap();
        let scp = crate::support::start(|config| {
            config.forward_to_unknown = true;
            config.admin = address;
        });
        for root in [
            format!("http://{address}"),
            format!("http://localhost:{}", address.port()),
        ] {
            let got = to(&scp, &root).await;
            assert_eq!(
                (got.status, got.cause()),
                (StatusCode::GATEWAY_TIMEOUT, "TARGET_NF_NOT_REACHABLE")
            );
        }
        let accepted = tokio::time::timeout(Duration::from_millis(50), admin.accept()).await;
        assert!(accepted.is_err(), "no connection");
    });
}

#[test]
fn whom_an_nrf_has_named_is_known() {
    local(async {
        let (nrf, found, unknown) = (StubNrf::start(), Producer::start(1), Producer::start(2));
        nrf.knows(found.profile(&json!({})));
        let scp = nrf.learner(|config| config.nrf.nf_types = vec!["AMF".into()]);
        let got = scp.ask(Method::GET, PATH, &DELEGATED).await;
        assert_eq!(got.by(), found.id, "{got:?}");
        // The consumer goes on with the one that has served it.
        assert_eq!(to(&scp, &found.root()).await.status, StatusCode::OK);
        assert_eq!(
            to(&scp, &unknown.root()).await.status,
            StatusCode::GATEWAY_TIMEOUT
        );
    });
}

#[test]
fn a_request_for_a_service_that_nobody_offers_costs_others_nothing() {
    local(async {
        let (nrf, found) = (StubNrf::start(), Producer::start(1));
        nrf.knows(found.profile(&json!({})));
        let scp = nrf.learner(|config| config.nrf.nf_types = vec!["AMF".into()]);
        for number in 0..3 {
            let path = format!("/nudm-nothing{number}/v1/x");
            let got = scp.ask(Method::GET, &path, &DELEGATED).await;
            assert_eq!(
                (got.status, got.cause()),
                (StatusCode::BAD_REQUEST, "NF_DISCOVERY_FAILURE")
            );
            let got = scp.ask(Method::GET, PATH, &DELEGATED).await;
            assert_eq!(got.by(), found.id, "{got:?}");
        }
    });
}

#[test]
fn who_has_left_is_not_found_in_what_is_remembered() {
    local(async {
        let (nrf, stays, leaves) = (StubNrf::start(), Producer::start(1), Producer::start(2));
        for one in [&stays, &leaves] {
            nrf.knows(one.profile(&json!({})));
        }
        let scp = nrf.learner(|_| {});
        let running = scp.running.as_ref().unwrap();
        until("both are learned", async || running.network().len() == 2).await;
        until("both serve", async || {
            scp.ask(Method::GET, PATH, &DELEGATED).await;
            stays.count() > 0 && leaves.count() > 0
        })
        .await;
        nrf.forgets(&leaves.id);
        let callback = nrf.callback().await;
        scp.notify(&callback, &notification("NF_DEREGISTERED", &leaves.id, None))
            .await;
        until("it is gone", async || running.network().len() == 1).await;
        for _ in 0..30 {
            assert_eq!(scp.ask(Method::GET, PATH, &DELEGATED).await.by(), stays.id);
        }
        // It comes back before the NRF is asked again.
        nrf.knows(leaves.profile(&json!({})));
        scp.notify(&callback, &notification("NF_REGISTERED", &leaves.id, None))
            .await;
        let before = leaves.count();
        until("it serves again", async || {
            scp.ask(Method::GET, PATH, &DELEGATED).await;
            leaves.count() > before
        })
        .await;
    });
}

#[test]
fn a_producer_that_has_left_is_still_reached_by_consumers_that_name_it() {
    local(async {
        let (nrf, leaves, stranger) = (StubNrf::start(), Producer::start(1), Producer::start(2));
        nrf.knows(leaves.profile(&json!({})));
        let scp = nrf.learner(|config| config.forward_to_unknown = false);
        let running = scp.running.as_ref().unwrap();
        until("it is learned", async || running.network().len() == 1).await;
        nrf.forgets(&leaves.id);
        let callback = nrf.callback().await;
        scp.notify(&callback, &notification("NF_DEREGISTERED", &leaves.id, None))
            .await;
        until("it is gone", async || running.network().is_empty()).await;
        assert_eq!(to(&scp, &leaves.root()).await.status, StatusCode::OK);
        assert_eq!(
            to(&scp, &stranger.root()).await.status,
            StatusCode::GATEWAY_TIMEOUT
        );
    });
}
