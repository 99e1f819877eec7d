//! What an SCP remembers of requests: no more than its bounds, and no less because others change.

use std::cell::Cell;

use http::{Method, StatusCode};
use serde_json::json;
use settings::ByteSize;

use crate::stub_nrf::{StubNrf, notification};
use crate::support::{PATH, Producer, Scp, delegating, local, nrf_that_finds, until};

const TARGETS: &str = "signalbox_scp_remembered_targets";
const ROUTES: &str = "signalbox_scp_route_cache_bytes";
const ANSWERS: &str = "signalbox_scp_discovery_answer_bytes";

const TYPES: [(&str, &str); 2] = [
    ("3gpp-sbi-discovery-target-nf-type", "UDM"),
    ("3gpp-sbi-discovery-requester-nf-type", "AMF"),
];

async fn wish(scp: &Scp, path: &str, name: &str, value: &str) -> StatusCode {
    let headers = [TYPES[0], TYPES[1], (name, value)];
    scp.ask(Method::GET, path, &headers).await.status
}

/// A consumer that names another long API root, asks another long question, or calls another long service with each
/// request, fills no more than the settings give to all of them.
#[test]
fn long_roots_questions_and_services_take_no_more_than_their_bounds() {
    const REQUESTS: usize = 60;
    local(async {
        let producer = Producer::start(1);
        let nrf = nrf_that_finds(vec![producer.profile(&json!({}))]);
        let bound = ByteSize::mib(1);
        let scp = delegating(vec![nrf.root()], |config| {
            config.route_cache = bound;
            config.discovery.cache_memory = bound;
        });
        let within = |scp: &Scp, gauge| scp.count(gauge, "") <= bound.bytes() as f64;
        for number in 0..REQUESTS {
            let long = format!("{number}-{}", "x".repeat(30_000));
            let status = wish(&scp, PATH, "3gpp-sbi-discovery-supi", &long).await;
            assert_eq!(status, StatusCode::OK);
            let root = format!("{}/{long}", producer.root());
            for path in [PATH, &format!("/{long}/v1/x")] {
                let got = scp
                    .ask(Method::GET, path, &[("3gpp-sbi-target-apiroot", &root)])
                    .await;
                assert_eq!(got.status, StatusCode::OK, "{got:?}");
            }
        }
        until("the gauge is sampled", async || scp.count(ROUTES, "") > 0.0).await;
        assert!(within(&scp, ROUTES) && within(&scp, ANSWERS));
        assert!(scp.count(ANSWERS, "") > 0.0);
        let metrics = scp.registry.render();
        assert!(
            !metrics.contains("xxxxxxxx"),
            "{} bytes of metrics",
            metrics.len()
        );
        assert_eq!(
            scp.count("signalbox_scp_requests_total", "service=\"other\""),
            REQUESTS as f64
        );
        // What is asked again is still remembered.
        let asked = nrf.count();
        for _ in 0..3 {
            let status = wish(&scp, PATH, "3gpp-sbi-discovery-supi", "imsi-001010000000001").await;
            assert_eq!(status, StatusCode::OK);
        }
        assert_eq!(nrf.count(), asked + 1);
    });
}

/// Where each request has a discovery of its own, nothing of the answers stays: an NRF may name other producers each
/// time.
#[test]
fn answers_for_one_request_leave_nothing_behind() {
    local(async {
        let producer = Producer::start(1);
        let nrf = Producer::start(99);
        let (profile, number) = (producer.profile(&json!({})), Cell::new(0));
        nrf.answers(move |_| {
            number.set(number.get() + 1);
            let mut profile = profile.clone();
            profile["nfInstanceId"] = json!(format!("00000000-0000-4000-8000-{:012x}", number.get()));
            let found = json!({"validityPeriod": 60, "nfInstances": [profile]});
            sbi::json::response(StatusCode::OK, &found)
        });
        let scp = delegating(vec![nrf.root()], |config| {
            config.discovery.enforce_req_specific_svc_discovery = true;
        });
        for _ in 0..100 {
            let status = wish(&scp, PATH, "3gpp-sbi-discovery-service-names", "nudm-sdm").await;
            assert_eq!(status, StatusCode::OK);
        }
        assert_eq!(nrf.count(), 100);
        // A target that is remembered for sure shows that the gauge is sampled.
        assert_eq!(scp.get(&producer).await.status, StatusCode::OK);
        until("the gauge is sampled", async || scp.count(TARGETS, "") > 0.0).await;
        assert_eq!(scp.count(TARGETS, ""), 1.0);
    });
}

/// A discovery that was asked before the network changed finds what is remembered since, and leaves it there.
#[test]
fn a_discovery_that_returns_late_empties_nothing() {
    local(async {
        let (first, second, third) = (Producer::start(1), Producer::start(2), Producer::start(3));
        let learned = StubNrf::start();
        learned.knows(first.profile(&json!({})));
        let asked = nrf_that_finds(vec![third.profile(&json!({"nfType": "AUSF"}))]);
        let scp = learned.learner(|config| {
            config.nrf.named.accept = scp::config::AcceptNrfs::Any;
        });
        let known = async |producer: &Producer| scp.get(producer).await.status == StatusCode::OK;
        let learns = async |count| {
            let running = scp.running.as_ref().unwrap();
            until("it is learned", async || running.network().len() == count).await;
        };
        learns(1).await;
        assert!(known(&first).await);
        until("it is remembered", async || scp.count(TARGETS, "") == 1.0).await;

        asked.holds();
        let uri = format!("nnrf-disc: \"{}/nnrf-disc/v1\"", asked.root());
        let headers = [
            ("3gpp-sbi-discovery-target-nf-type", "AUSF"),
            ("3gpp-sbi-discovery-requester-nf-type", "AMF"),
            ("3gpp-sbi-nrf-uri", &uri),
        ];
        let discovery = scp.ask(Method::GET, PATH, &headers);
        let meanwhile = async {
            until("the NRF is asked", async || asked.count() == 1).await;
            let profile = second.profile(&json!({}));
            learned.knows(profile.clone());
            let change = notification("NF_REGISTERED", &second.id, Some(&profile));
            assert_eq!(
                scp.notify(&learned.callback().await, &change).await.status,
                StatusCode::NO_CONTENT
            );
            learns(2).await;
            assert!(known(&second).await);
            assert!(known(&first).await);
            until("both are remembered", async || scp.count(TARGETS, "") == 2.0).await;
            asked.releases();
        };
        let (got, ()) = tokio::join!(discovery, meanwhile);
        assert_eq!((got.status, got.by()), (StatusCode::OK, third.id.as_str()));
        assert!(known(&first).await && known(&second).await);
        // The answer and the place of its producer came to the two.
        until("the gauge is sampled", async || scp.count(TARGETS, "") >= 4.0).await;
        assert_eq!(scp.count(TARGETS, ""), 4.0);
    });
}
