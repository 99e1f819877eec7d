//! What the functions of Open5GS send in the configuration that they come with.

use http::{Method, StatusCode};
use sbi::Body;
use serde_json::json;
use testpeer::http2::{Peer, frame};
use testpeer::sbi::{client, send};

use crate::support::{Got, PATH, Producer, Scp, delegating, knowing, local, nrf_that_finds, start, until};

/// An NRF that finds this producer.
fn nrf_with(producer: &Producer) -> Producer {
    nrf_that_finds(vec![producer.profile(&json!({}))])
}

fn asking(roots: Vec<String>, change: impl FnOnce(&mut scp::Config)) -> Scp {
    delegating(roots, |config| {
        config.forward_to_unknown = false;
        change(config);
    })
}

async fn discover(scp: &Scp, more: &[(&str, &str)]) -> Got {
    let usual = [
        ("3gpp-sbi-discovery-target-nf-type", "UDM"),
        ("3gpp-sbi-discovery-service-names", "nudm-sdm"),
    ];
    scp.ask(Method::GET, PATH, &[&usual, more].concat()).await
}

#[test]
fn a_discovery_without_the_type_of_the_requester_takes_it_from_user_agent() {
    local(async {
        let producer = Producer::start(1);
        let nrf = nrf_with(&producer);
        let asked = || nrf.seen().last().unwrap().path.clone();
        let scp = asking(vec![nrf.root()], |_| {});
        assert_eq!(discover(&scp, &[]).await.by(), producer.id);
        assert!(asked().contains("requester-nf-type=AMF"), "{}", asked());
        // Another consumer asks another question.
        let request = http::Request::get(PATH)
            .header("3gpp-sbi-discovery-target-nf-type", "UDM")
            .header("3gpp-sbi-discovery-service-names", "nudm-sdm");
        let request = request.body(Body::empty()).unwrap();
        send(&client("SMF"), &scp.origin, request).await.unwrap();
        assert!(asked().contains("requester-nf-type=SMF"), "{}", asked());
        // What the request says itself counts.
        discover(&scp, &[("3gpp-sbi-discovery-requester-nf-type", "PCF")]).await;
        assert!(asked().contains("requester-nf-type=PCF"), "{}", asked());
        let scp = asking(vec![nrf.root()], |config| {
            config.discovery.requester_from_user_agent = false;
        });
        discover(&scp, &[]).await;
        assert!(!asked().contains("requester-nf-type"), "{}", asked());
    });
}

#[test]
fn services_of_nrfs_are_served_by_those_of_the_settings() {
    local(async {
        let (dead, nrf) = (Producer::start(98), Producer::start(99));
        let dead_root = dead.root();
        dead.stop();
        let scp = asking(vec![dead_root, nrf.root()], |_| {});
        let path = "/nnrf-nfm/v1/nf-instances/00000000-0000-4000-8000-000000000001";
        let delegated = [
            ("3gpp-sbi-discovery-target-nf-type", "NRF"),
            ("3gpp-sbi-discovery-service-names", "nnrf-nfm"),
        ];
        until("the first NRF is gone", async || {
            scp.ask(Method::PUT, path, &delegated).await.status == StatusCode::OK
        })
        .await;
        let got = scp.ask(Method::PUT, path, &delegated).await;
        assert_eq!((got.status, got.by()), (StatusCode::OK, nrf.id.as_str()));
        // The consumer goes on with that NRF by its name.
        assert_eq!(got.header("3gpp-sbi-target-apiroot"), nrf.root());
        let root = nrf.root();
        let named = [("3gpp-sbi-target-apiroot", root.as_str())];
        assert_eq!(scp.ask(Method::DELETE, path, &named).await.by(), nrf.id);
        // Without any target it is the service that says where to go.
        assert_eq!(scp.ask(Method::PATCH, path, &[]).await.by(), nrf.id);
        let seen = nrf.seen();
        assert!(
            seen.iter().all(|seen| seen.path == path),
            "nothing was discovered"
        );
        assert!(
            seen.iter()
                .all(|seen| !seen.headers.contains_key("3gpp-sbi-discovery-target-nf-type"))
        );
    });
}

#[test]
fn what_profiles_allow_is_about_services_and_not_about_callbacks() {
    local(async {
        let producer = Producer::start(1);
        let profile = producer.profile(&json!({"allowedNfTypes": ["SMF"]}));
        let scp = start(|config| config.producers = vec![profile]);
        let root = producer.root();
        let target = ("3gpp-sbi-target-apiroot", root.as_str());
        let callback = ("3gpp-sbi-callback", "Nnrf_NFManagement_NFStatusNotify");
        let notify = "/nnrf-nfm/v1/nf-status-notify";
        let got = scp.ask(Method::POST, notify, &[target, callback]).await;
        assert_eq!(got.status, StatusCode::OK);
        // Some notify without saying so.
        let got = scp.ask(Method::POST, "/nudm-callback/v1/7", &[target]).await;
        assert_eq!(got.status, StatusCode::OK);
        // To call a request a callback opens no service.
        for headers in [&[target][..], &[target, callback]] {
            let got = scp.ask(Method::GET, PATH, headers).await;
            assert_eq!(got.status, StatusCode::FORBIDDEN);
        }
        assert_eq!(producer.count(), 2);
    });
}

#[test]
fn a_request_that_is_reset_when_it_has_arrived_is_carried_out() {
    local(async {
        let producer = Producer::start(1);
        let scp = knowing(&[&producer], |_| {});
        let address = scp.running.as_ref().unwrap().addresses()[0];
        let root = producer.root();
        let mut peer = Peer::client(address).await.unwrap();
        let fields = [
            (":method", "DELETE"),
            (":scheme", "http"),
            (":authority", "scp1.test"),
            (":path", "/nudm-sdm/v2/imsi-1/sdm-subscriptions/1"),
            ("3gpp-sbi-target-apiroot", root.as_str()),
        ];
        // As libcurl does when its process ends: the request, CANCEL and GOAWAY in one piece.
        let mut all = frame::headers(1, &fields, true);
        all.extend(frame::reset(1, 8));
        all.extend(frame::goaway(0, 0));
        peer.send(&all).await.unwrap();
        until("the deregistration arrives", async || producer.count() == 1).await;
        assert_eq!(producer.seen()[0].method, Method::DELETE);
        drop(peer);
    });
}
