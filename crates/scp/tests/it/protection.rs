//! Rates, overload that producers tell of, circuits.

use std::cell::Cell;
use std::rc::Rc;
use std::time::Duration;

use http::{Method, StatusCode};
use overload::Rate;
use scp::config::{ConsumerRate, PriorityRule, ProducerRate};
use serde_json::json;

use crate::support::{PATH, Producer, knowing, local};

fn slow(burst: u32) -> Rate {
    Rate {
        per_second: 0.001,
        burst: Some(burst),
    }
}

#[test]
fn a_consumer_is_held_to_its_rate_and_no_other() {
    local(async {
        let producer = Producer::start(1);
        let mut scp = knowing(&[&producer], |config| {
            config.protection.ingress = vec![ConsumerRate {
                consumer: "AMF-greedy".into(),
                rate: slow(5),
            }];
        });
        let modest = std::mem::replace(&mut scp.client, crate::support::client("AMF-greedy"));
        let mut statuses = Vec::new();
        for _ in 0..8 {
            let got = scp.get(&producer).await;
            if got.status == StatusCode::TOO_MANY_REQUESTS {
                assert_eq!(got.cause(), "NF_SERVICE_OVERLOAD");
                assert!(got.header("retry-after").parse::<u64>().unwrap() > 0);
            }
            statuses.push(got.status.as_u16());
        }
        assert_eq!(statuses, [200, 200, 200, 200, 200, 429, 429, 429]);
        scp.client = modest;
        assert_eq!(scp.get(&producer).await.status, StatusCode::OK);
        assert_eq!(scp.count("signalbox_scp_refused_total", "ingressRate"), 3.0);
    });
}

#[test]
fn a_producer_at_its_rate_is_relieved_by_its_set() {
    local(async {
        let (small, large) = (Producer::start(1), Producer::start(2));
        let scp = knowing(&[&small, &large], |config| {
            config.protection.egress = vec![ProducerRate {
                producer: small.address.to_string(),
                rate: slow(3),
                global: false,
            }];
        });
        for _ in 0..10 {
            assert_eq!(scp.get(&small).await.status, StatusCode::OK);
        }
        assert_eq!((small.count(), large.count()), (3, 7));
        large.stop();
        tokio::time::sleep(Duration::from_millis(50)).await;
        let got = scp.get(&small).await;
        assert!(got.status.is_server_error(), "{got:?}");
    });
}

#[test]
fn overload_that_a_producer_tells_of_is_honoured() {
    local(async {
        let (busy, idle) = (Producer::start(1), Producer::start(2));
        let id = busy.id.clone();
        busy.answers(move |_| {
            let mut response = sbi::json::response(StatusCode::OK, &json!({"by": id}));
            let oci = format!(
                "Timestamp: \"Tue, 04 Feb 2020 08:49:37 GMT\"; Period-of-Validity: 60s; \
                 Overload-Reduction-Metric: 75%; NF-Instance: {id}"
            );
            response
                .headers_mut()
                .insert("3gpp-sbi-oci", oci.parse().unwrap());
            response
        });
        let scp = knowing(&[&busy, &idle], |_| {});
        for _ in 0..201 {
            assert_eq!(scp.get(&busy).await.status, StatusCode::OK);
        }
        // The first tells; of the others a quarter still comes.
        assert_eq!((busy.count(), idle.count()), (51, 150));
        assert_eq!(scp.count("signalbox_scp_passed_over_total", "oci"), 150.0);
    });
}

#[test]
fn outstanding_requests_are_bounded_and_spread() {
    local(async {
        let (slow, other) = (Producer::start(1), Producer::start(2));
        slow.waits(Duration::from_millis(500));
        let scp = knowing(&[&slow, &other], |config| config.protection.max_outstanding = 3);
        other.waits(Duration::from_millis(500));
        let got = futures_util::future::join_all((0..10).map(|_| scp.get(&slow))).await;
        let well = got.iter().filter(|one| one.status == StatusCode::OK).count();
        // Three at each; the rest is refused at once instead of waiting.
        assert_eq!((slow.count(), other.count(), well), (3, 3, 6));
        let refused = got.iter().filter(|one| one.cause() == "NF_CONGESTION").count();
        assert_eq!(refused, 4);
    });
}

#[test]
fn who_keeps_failing_is_left_alone_and_forgiven() {
    local(async {
        let (failing, well) = (Producer::start(1), Producer::start(2));
        failing.fails_with(503);
        let scp = knowing(&[&failing, &well], |config| {
            config.protection.outliers.consecutive_failures = 3;
            config.protection.outliers.base_ejection = settings::Period::from_millis(200);
            config.protection.breaker.failures = 1_000;
        });
        for _ in 0..20 {
            assert_eq!(scp.get(&failing).await.by(), well.id);
        }
        assert_eq!(failing.count(), 3);
        failing.answers(|_| sbi::Response::default());
        crate::support::until("it is used again", async || {
            scp.get(&failing).await;
            failing.count() > 3
        })
        .await;
    });
}

#[test]
fn priorities_are_assigned_and_replaced_by_rule() {
    local(async {
        let producer = Producer::start(1);
        let rule = |methods: &[&str], priority, replace| PriorityRule {
            services: vec!["nudm-sdm".into()],
            methods: methods.iter().map(ToString::to_string).collect(),
            priority,
            replace,
        };
        let scp = knowing(&[&producer], |config| {
            config.protection.priorities.rules = vec![rule(&["GET"], 7, false), rule(&["PUT"], 3, true)];
        });
        let root = producer.root();
        let target = ("3gpp-sbi-target-apiroot", root.as_str());
        let own = ("3gpp-sbi-message-priority", "20");
        scp.ask(Method::GET, PATH, &[target]).await;
        scp.ask(Method::GET, PATH, &[target, own]).await;
        scp.ask(Method::PUT, PATH, &[target, own]).await;
        scp.ask(Method::DELETE, PATH, &[target]).await;
        let seen = producer.seen();
        let priorities: Vec<_> = seen
            .iter()
            .map(|one| {
                one.headers
                    .get("3gpp-sbi-message-priority")
                    .map(|value| value.to_str().unwrap())
            })
            .collect();
        assert_eq!(priorities, [Some("7"), Some("20"), Some("3"), None]);
    });
}

#[test]
fn a_consumer_of_the_wrong_type_is_refused() {
    local(async {
        let producer = Producer::start(1);
        let profile = producer.profile(&json!({"allowedNfTypes": ["SMF"]}));
        let scp = crate::support::start(|config| config.producers = vec![profile]);
        let got = scp.get(&producer).await;
        assert_eq!(got.status, StatusCode::FORBIDDEN);
        assert_eq!(producer.count(), 0);
    });
}

/// The trap of shared connections: a consumer that leaves with many requests under way must not cost the
/// others theirs.
#[test]
fn a_consumer_that_leaves_disturbs_no_other() {
    use testpeer::http2::{Peer, frame};
    local(async {
        let producer = Producer::start(1);
        producer.waits(Duration::from_millis(30));
        let scp = knowing(&[&producer], |_| {});
        let address = scp.running.as_ref().unwrap().addresses()[0];
        let failed = Rc::new(Cell::new(0));
        let others = async {
            for _ in 0..40 {
                let batch = futures_util::future::join_all((0..10).map(|_| scp.get(&producer))).await;
                let bad = batch.iter().filter(|got| got.status != StatusCode::OK).count();
                failed.set(failed.get() + bad);
            }
        };
        let root = producer.root();
        let leavers = async {
            for _ in 0..10 {
                let mut peer = Peer::client(address).await.unwrap();
                let fields = [
                    (":method", "GET"),
                    (":scheme", "http"),
                    (":authority", "scp"),
                    (":path", PATH),
                    ("3gpp-sbi-target-apiroot", root.as_str()),
                ];
                let mut burst = Vec::new();
                for stream in 0..80 {
                    burst.extend(frame::headers(2 * stream + 1, &fields, true));
                }
                peer.send(&burst).await.unwrap();
                tokio::time::sleep(Duration::from_millis(5)).await;
                drop(peer);
            }
        };
        tokio::join!(others, leavers);
        assert_eq!(failed.get(), 0);
    });
}
