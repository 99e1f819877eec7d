//! Model D: the consumer says what the producer must be able to do, the SCP asks the NRF.

use std::time::Duration;

use http::{Method, StatusCode};
use sbi::Response;
use scp::config::{AcceptNrfs, NrfSet, Order};
use serde_json::json;

use crate::support::{Got, PATH, Producer, Scp, delegating, local, start, until};

const WISH: [(&str, &str); 3] = [
    ("3gpp-sbi-discovery-target-nf-type", "UDM"),
    ("3gpp-sbi-discovery-requester-nf-type", "AMF"),
    ("3gpp-sbi-discovery-service-names", "nudm-sdm"),
];

/// An NRF that knows these producers and lets its answers be used so long.
fn nrf_with(producers: &[&Producer], validity: u64) -> Producer {
    let nrf = Producer::start(99);
    let profiles: Vec<_> = producers
        .iter()
        .map(|producer| producer.profile(&json!({})))
        .collect();
    nrf.answers(move |seen| {
        assert!(
            seen.path.starts_with("/nnrf-disc/v1/nf-instances?"),
            "{}",
            seen.path
        );
        sbi::json::response(
            StatusCode::OK,
            &json!({"validityPeriod": validity, "nfInstances": profiles}),
        )
    });
    nrf
}

async fn wish(scp: &Scp) -> Got {
    scp.ask(Method::GET, PATH, &WISH).await
}

#[test]
fn the_producer_is_found_told_and_remembered() {
    local(async {
        let producer = Producer::start(1);
        let nrf = nrf_with(&[&producer], 60);
        let scp = delegating(vec![nrf.root()], |_| {});
        for _ in 0..5 {
            let got = wish(&scp).await;
            assert_eq!((got.status, got.by()), (StatusCode::OK, producer.id.as_str()));
            assert_eq!(got.header("3gpp-sbi-target-apiroot"), producer.root());
            let id = got.header("3gpp-sbi-producer-id");
            assert!(
                id.contains(&format!("nfinst={}", producer.id)) && id.contains("nfset=set1"),
                "{id}"
            );
        }
        assert_eq!(nrf.count(), 1, "remembered for the validity period");
        assert_eq!(nrf.seen()[0].header("traceparent"), "", "none of its own");
        let asked = &nrf.seen()[0].path;
        assert!(
            asked.contains("target-nf-type=UDM") && asked.contains("service-names=nudm-sdm"),
            "{asked}"
        );
        let seen = &producer.seen()[0];
        assert!(
            !seen
                .headers
                .keys()
                .any(|name| name.as_str().contains("discovery"))
        );
        // What the consumer learned is how it goes on (Model C from then on).
        assert_eq!(scp.get(&producer).await.by(), producer.id);
    });
}

/// The query that the SCP makes for a request is of its trace (W3C Trace Context), also where a dead producer of the answer makes
/// it query again.
#[test]
fn the_query_belongs_to_the_trace_of_the_request() {
    local(async {
        let producer = Producer::start(1);
        let nrf = nrf_with(&[&producer], 0);
        let scp = delegating(vec![nrf.root()], |_| {});
        for number in [7, 8] {
            let trace = format!("00-{number:032x}-{number:016x}-01");
            let headers = [&WISH[..], &[("traceparent", trace.as_str())]].concat();
            assert_eq!(scp.ask(Method::GET, PATH, &headers).await.status, StatusCode::OK);
            assert_eq!(nrf.seen().last().unwrap().header("traceparent"), trace);
            assert_eq!(producer.seen().last().unwrap().header("traceparent"), trace);
        }
    });
}

#[test]
fn an_answer_of_no_validity_is_not_remembered() {
    local(async {
        let producer = Producer::start(1);
        let nrf = nrf_with(&[&producer], 0);
        let scp = delegating(vec![nrf.root()], |_| {});
        for _ in 0..3 {
            assert_eq!(wish(&scp).await.status, StatusCode::OK);
        }
        assert_eq!(nrf.count(), 3);
        let nrf = nrf_with(&[&producer], 60);
        let scp = delegating(vec![nrf.root()], |config| {
            config.discovery.enforce_req_specific_svc_discovery = true;
        });
        for _ in 0..3 {
            assert_eq!(wish(&scp).await.status, StatusCode::OK);
        }
        assert_eq!(nrf.count(), 3, "each request is discovered for itself");
    });
}

#[test]
fn equal_questions_at_the_same_time_are_one() {
    local(async {
        let producer = Producer::start(1);
        let nrf = nrf_with(&[&producer], 60);
        nrf.waits(Duration::from_millis(200));
        let scp = delegating(vec![nrf.root()], |_| {});
        let many = futures_util::future::join_all((0..100).map(|_| wish(&scp))).await;
        assert!(many.iter().all(|got| got.status == StatusCode::OK));
        assert_eq!(nrf.count(), 1);
        assert_eq!(scp.count("signalbox_scp_discoveries_total", "waited"), 99.0);
    });
}

/// Queries beyond `discovery.maxWaiting` do not reach the NRF, also when the consumers of those in flight wait no longer.
#[test]
fn queries_in_flight_are_bounded() {
    local(async {
        let producer = Producer::start(1);
        let nrf = nrf_with(&[&producer], 60);
        nrf.waits(Duration::from_secs(600));
        let scp = delegating(vec![nrf.root()], |config| {
            config.discovery.max_waiting = 2;
            config.discovery.timeout = settings::Period::from_secs(120);
        });
        let ask = async |dnn: usize| {
            let dnn = format!("dnn-{dnn}");
            let headers = [
                ("3gpp-sbi-discovery-target-nf-type", "UDM"),
                ("3gpp-sbi-discovery-service-names", "nudm-sdm"),
                ("3gpp-sbi-discovery-requester-nf-type", "AMF"),
                ("3gpp-sbi-discovery-dnn", dnn.as_str()),
                ("3gpp-sbi-max-rsp-time", "500"),
            ];
            scp.ask(Method::GET, PATH, &headers).await.status
        };
        for dnn in 0..2 {
            assert_eq!(ask(dnn).await, StatusCode::GATEWAY_TIMEOUT);
        }
        for dnn in 2..8 {
            assert_eq!(ask(dnn).await, StatusCode::SERVICE_UNAVAILABLE);
        }
        until("both queries are at the NRF", async || nrf.count() >= 2).await;
        assert_eq!(nrf.count(), 2);
    });
}

#[test]
fn a_consumer_that_gives_up_does_not_end_the_query_for_others() {
    local(async {
        let producer = Producer::start(1);
        let nrf = nrf_with(&[&producer], 60);
        nrf.waits(Duration::from_millis(300));
        let scp = delegating(vec![nrf.root()], |_| {});
        // The first goes while the NRF still thinks.
        let first = tokio::time::timeout(Duration::from_millis(50), wish(&scp)).await;
        assert!(first.is_err());
        let got = wish(&scp).await;
        assert!(
            matches!(got.status, StatusCode::OK | StatusCode::GATEWAY_TIMEOUT),
            "{got:?}"
        );
        assert_eq!(wish(&scp).await.status, StatusCode::OK);
    });
}

#[test]
fn failures_of_the_nrf_are_told_apart() {
    local(async {
        let nrf = Producer::start(99);
        nrf.answers(|_| {
            sbi::json::response(StatusCode::OK, &json!({"validityPeriod": 5, "nfInstances": []}))
        });
        let scp = delegating(vec![nrf.root()], |_| {});
        let got = wish(&scp).await;
        assert_eq!(
            (got.status, got.cause()),
            (StatusCode::BAD_REQUEST, "NF_DISCOVERY_FAILURE")
        );
        let asking_for = async |nf_type: &str| {
            let wish = [("3gpp-sbi-discovery-target-nf-type", nf_type)];
            let got = scp.ask(Method::GET, PATH, &wish).await;
            (got.status.as_u16(), got.cause().to_owned())
        };
        let refusal = |status: u16, cause: &str| (status, cause.to_owned());
        nrf.fails_with(400);
        assert_eq!(asking_for("UDR").await, refusal(400, "INVALID_DISCOVERY_PARAM"));
        nrf.fails_with(403);
        assert_eq!(asking_for("UDR").await, refusal(400, "NF_DISCOVERY_FAILURE"));
        for failing in [503, 429] {
            nrf.fails_with(failing);
            assert_eq!(asking_for("PCF").await, refusal(502, "NF_DISCOVERY_ERROR"));
        }
        nrf.answers(|_| Response::ok("no JSON at all"));
        assert_eq!(asking_for("CHF").await, refusal(502, "NF_DISCOVERY_ERROR"));
        nrf.stop();
        tokio::time::sleep(Duration::from_millis(50)).await;
        assert_eq!(asking_for("AMF").await, refusal(504, "NRF_NOT_REACHABLE"));
    });
}

#[test]
fn another_nrf_of_the_set_is_asked() {
    local(async {
        let producer = Producer::start(1);
        let (dead, alive) = (Producer::start(98), nrf_with(&[&producer], 60));
        dead.fails_with(500);
        let scp = delegating(vec![dead.root()], |config| config.nrf.roots.push(alive.root()));
        assert_eq!(wish(&scp).await.by(), producer.id);
        assert_eq!((dead.count(), alive.count()), (1, 1));
    });
}

#[test]
fn both_orders_of_static_discovery() {
    local(async {
        let (learned, found) = (Producer::start(1), Producer::start(2));
        let nrf = nrf_with(&[&found], 60);
        let profile = learned.profile(&json!({}));
        let scp_first = delegating(vec![nrf.root()], |config| {
            config.producers = vec![profile.clone()];
            config.discovery.order = Order::ScpThenNrf;
        });
        assert_eq!(wish(&scp_first).await.by(), learned.id);
        assert_eq!(nrf.count(), 0);
        // What only an NRF can judge goes there.
        let mut wishes = WISH.to_vec();
        wishes.push(("3gpp-sbi-discovery-of-a-later-release", "1"));
        assert_eq!(scp_first.ask(Method::GET, PATH, &wishes).await.by(), found.id);

        let nrf_first = delegating(vec![nrf.root()], |config| {
            config.producers = vec![profile];
            config.discovery.order = Order::NrfThenScp;
        });
        assert_eq!(wish(&nrf_first).await.by(), found.id);
        nrf.stop();
        tokio::time::sleep(Duration::from_millis(50)).await;
        let mut others = WISH.to_vec();
        others.push(("3gpp-sbi-discovery-supi", "imsi-001010000000001"));
        assert_eq!(nrf_first.ask(Method::GET, PATH, &others).await.by(), learned.id);
    });
}

#[test]
fn a_dead_producer_of_the_answer_is_stood_in_for() {
    local(async {
        let (dead, other) = (Producer::start(1), Producer::start(2));
        let nrf = nrf_with(&[&dead, &other], 60);
        let scp = delegating(vec![nrf.root()], |_| {});
        dead.stop();
        tokio::time::sleep(Duration::from_millis(50)).await;
        for _ in 0..10 {
            let got = wish(&scp).await;
            assert_eq!((got.status, got.by()), (StatusCode::OK, other.id.as_str()));
        }
    });
}

#[test]
fn a_binding_narrows_what_is_discovered() {
    local(async {
        let producer = Producer::start(1);
        let nrf = nrf_with(&[&producer], 60);
        let scp = delegating(vec![nrf.root()], |_| {});
        let mut wishes = WISH.to_vec();
        let binding = "bl=nf-set; nfset=set9.udmset.5gc.mnc001.mcc001";
        wishes.push(("3gpp-sbi-routing-binding", binding));
        assert_eq!(scp.ask(Method::PUT, PATH, &wishes).await.status, StatusCode::OK);
        assert!(
            nrf.seen()[0].path.contains("target-nf-set-id=set9"),
            "{}",
            nrf.seen()[0].path
        );
    });
}

#[test]
fn producers_of_other_networks_are_asked_at_their_nrfs() {
    local(async {
        let (own, theirs) = (Producer::start(1), Producer::start(2));
        let (nrf, partner) = (nrf_with(&[&own], 60), nrf_with(&[&theirs], 60));
        let root = partner.root();
        let scp = delegating(vec![nrf.root()], move |config| {
            config.nrf.sets = vec![NrfSet {
                roots: vec![root],
                plmns: vec!["262-01".into()],
                ..NrfSet::default()
            }];
        });
        let wish_for = async |plmn: &str| {
            let mut headers = WISH.to_vec();
            headers.push(("3gpp-sbi-discovery-target-plmn-list", plmn));
            scp.ask(Method::GET, PATH, &headers).await.by().to_owned()
        };
        assert_eq!(wish_for(r#"[{"mcc":"262","mnc":"01"}]"#).await, theirs.id);
        assert_eq!(wish_for(r#"[{"mcc":"001","mnc":"01"}]"#).await, own.id);
        assert_eq!(wish(&scp).await.by(), own.id);
        assert_eq!((nrf.count(), partner.count()), (2, 1));
    });
}

#[test]
fn a_location_is_completed_where_the_consumer_does_not_know_of_whom() {
    local(async {
        let producer = Producer::start(1);
        let nrf = nrf_with(&[&producer], 60);
        let scp = delegating(vec![nrf.root()], |_| {});
        for (location, expected) in [
            ("/nudm-sdm/v2/x/1", format!("{}/nudm-sdm/v2/x/1", producer.root())),
            ("http://elsewhere.test/x", "http://elsewhere.test/x".to_owned()),
        ] {
            producer.answers(move |_| {
                let mut response = sbi::json::response(StatusCode::CREATED, &json!({}));
                response.headers_mut().set_printed("location", location);
                response
            });
            assert_eq!(wish(&scp).await.header("location"), expected);
        }
    });
}

#[test]
fn who_is_shutting_down_gets_what_goes_on_and_nothing_new() {
    local(async {
        let (leaving, staying) = (Producer::start(1), Producer::start(2));
        let profiles = vec![
            leaving.profile(&json!({"nfStatus": "UNDISCOVERABLE", "priority": 1})),
            staying.profile(&json!({"priority": 9})),
        ];
        let scp = start(|config| {
            config.producers = profiles;
            config.discovery.order = Order::ScpThenNrf;
        });
        let binding = [(
            "3gpp-sbi-routing-binding",
            "bl=nf-set; nfset=set1.udmset.5gc.mnc001.mcc001",
        )];
        for _ in 0..10 {
            let goes_on = scp.ask(Method::PUT, PATH, &binding).await;
            assert_eq!(goes_on.by(), leaving.id);
        }
        let root = leaving.root();
        let named = [("3gpp-sbi-target-apiroot", root.as_str())];
        let begins = scp.ask(Method::POST, "/nudm-sdm/v2/x", &named).await;
        assert_eq!(begins.by(), leaving.id, "it was named");
        // The request names no producer: an initial request goes to the one that stays.
        for _ in 0..10 {
            let begins = scp.ask(Method::POST, "/nudm-sdm/v2/x", &WISH).await;
            assert_eq!(begins.by(), staying.id);
        }
        leaving.fails_with(503);
        assert_eq!(scp.ask(Method::PUT, PATH, &binding).await.by(), staying.id);
    });
}

/// A wish whose NRF is this one.
async fn wish_at(scp: &Scp, nrf: &Producer, more: &str) -> Got {
    let named = format!("nnrf-disc: \"{}/nnrf-disc/v1\"{more}", nrf.root());
    let mut headers = WISH.to_vec();
    headers.push(("3gpp-sbi-nrf-uri", &named));
    scp.ask(Method::GET, PATH, &headers).await
}

#[test]
fn the_nrf_that_a_request_names_is_asked_and_no_other() {
    local(async {
        let (usual, slice) = (Producer::start(1), Producer::start(2));
        let (nrf, other) = (nrf_with(&[&usual], 60), nrf_with(&[&slice], 60));
        let root = other.root();
        let scp = delegating(vec![nrf.root()], |config| {
            config.nrf.named.roots = vec![root];
            config.discovery.order = Order::ScpThenNrf;
            config.producers = vec![usual.profile(&json!({}))];
        });
        // Cached profiles and answers of another NRF do not count for this NRF.
        for _ in 0..3 {
            assert_eq!(wish(&scp).await.by(), usual.id);
            assert_eq!(wish_at(&scp, &other, "").await.by(), slice.id);
            assert_eq!(wish_at(&scp, &nrf, "").await.by(), usual.id);
        }
        assert_eq!((nrf.count(), other.count()), (1, 1), "remembered for each");
        let at_producer = &slice.seen()[0].headers;
        assert!(!at_producer.contains_key("3gpp-sbi-nrf-uri"), "{at_producer:?}");
        // No other NRF is queried when it does not answer: another one may have other profiles.
        other.stop();
        tokio::time::sleep(Duration::from_millis(50)).await;
        let mut headers = WISH.to_vec();
        let named = format!("nnrf-disc: \"{}\"", other.root());
        headers.extend([
            ("3gpp-sbi-nrf-uri", named.as_str()),
            ("3gpp-sbi-discovery-dnn", "internet"),
        ]);
        let got = scp.ask(Method::GET, PATH, &headers).await;
        assert_eq!(got.cause(), "NRF_NOT_REACHABLE");
    });
}

#[test]
fn strangers_are_asked_only_where_that_is_wanted() {
    local(async {
        let producer = Producer::start(1);
        let (nrf, stranger, third) = (
            nrf_with(&[&producer], 60),
            nrf_with(&[&producer], 60),
            nrf_with(&[&producer], 60),
        );
        let scp = delegating(vec![nrf.root()], |_| {});
        let got = wish_at(&scp, &stranger, "").await;
        assert_eq!(
            (got.status, got.cause()),
            (StatusCode::BAD_REQUEST, "NF_DISCOVERY_FAILURE")
        );
        assert_eq!((stranger.count(), producer.count()), (0, 0));
        let named = "signalbox_scp_named_nrf_discoveries_total";
        assert_eq!(scp.count(named, "refused"), 1.0);
        let mut headers = WISH.to_vec();
        headers.push(("3gpp-sbi-nrf-uri", "nnrf-disc=http://nrf:80"));
        let got = scp.ask(Method::GET, PATH, &headers).await;
        assert_eq!(got.cause(), "INVALID_DISCOVERY_PARAM");

        let scp = delegating(vec![nrf.root()], |config| {
            config.nrf.named.accept = AcceptNrfs::Ignore;
        });
        assert_eq!(wish_at(&scp, &stranger, "").await.status, StatusCode::OK);
        assert_eq!((nrf.count(), stranger.count()), (1, 0));

        let scp = delegating(vec![nrf.root()], |config| {
            config.nrf.named.accept = AcceptNrfs::Any;
            config.nrf.named.max = 1;
        });
        assert_eq!(wish_at(&scp, &stranger, "").await.by(), producer.id);
        let got = wish_at(&scp, &third, "").await;
        assert_eq!(got.cause(), "NF_CONGESTION", "{got:?}");
        assert_eq!((stranger.count(), third.count()), (1, 0));
        assert_eq!((scp.count(named, "asked"), scp.count(named, "full")), (1.0, 1.0));
    });
}

#[test]
fn producers_at_a_preferred_place_are_asked_at_its_nrfs_first() {
    local(async {
        let (usual, west) = (Producer::start(1), Producer::start(2));
        let (nrf, regional) = (nrf_with(&[&usual], 60), nrf_with(&[&west], 60));
        let root = regional.root();
        let scp = delegating(vec![nrf.root()], |config| {
            let west = vec!["west1".into(), "west2".into()];
            config.places.regions.insert("west".into(), west);
            config.nrf.sets = vec![NrfSet {
                roots: vec![root],
                regions: vec!["west".into()],
                ..NrfSet::default()
            }];
        });
        let wish_near = async |place: &str| {
            let mut headers = WISH.to_vec();
            headers.push(("3gpp-sbi-discovery-preferred-locality", place));
            scp.ask(Method::GET, PATH, &headers).await.by().to_owned()
        };
        assert_eq!(wish_near("west2").await, west.id);
        assert_eq!(wish_near("east1").await, usual.id);
        assert_eq!((nrf.count(), regional.count()), (1, 1));
        // A preference does not exclude producers.
        regional.answers(|_| sbi::json::response(StatusCode::OK, &json!({"nfInstances": []})));
        assert_eq!(wish_near("west1").await, usual.id);
        assert_eq!((nrf.count(), regional.count()), (2, 2));
    });
}
