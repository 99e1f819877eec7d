//! Rates, reported overload of producers, circuits.

use std::cell::Cell;
use std::rc::Rc;
use std::time::{Duration, Instant};

use futures_util::future::join_all;
use http::{Method, StatusCode};
use overload::{Level, Rate};
use routing::policy::ServicePolicy;
use scp::config::{ConsumerRate, ErrorProfile, OverloadStep, PriorityRule, ProducerRate};
use serde_json::json;

use crate::support::{Got, PATH, Producer, Scp, knowing, local, until};

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
                assert_eq!(got.cause(), "NF_CONGESTION_RISK");
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
                producer: Some(small.address.to_string()),
                services: Vec::new(),
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
        assert_eq!(got.status, StatusCode::TOO_MANY_REQUESTS, "{got:?}");
        assert_eq!(scp.count("signalbox_scp_refused_total", "egressRate"), 1.0);
    });
}

/// Each connection to a producer has its rate: requests beyond it take another connection, then another producer of the
/// set, and are refused where there is none.
#[test]
fn a_connection_at_its_rate_is_relieved_by_another_and_by_the_set() {
    const RATE: u32 = 5;
    const CONNECTIONS: u16 = 2;
    local(async {
        let (first, second) = (Producer::start(1), Producer::start(2));
        let scp = knowing(&[&first, &second], |config| {
            config.client.max_request_rate = RATE;
            config.client.connections_per_origin = CONNECTIONS;
        });
        let began = Instant::now();
        let answers = join_all((0..400).map(|_| scp.get(&first))).await;
        let seconds = u32::try_from(began.elapsed().as_secs()).unwrap() + 1;
        let most = RATE * u32::from(CONNECTIONS) * seconds;
        let served = |one: &Producer| u32::try_from(one.count()).unwrap();
        assert!(served(&first) <= most, "{} of {most}", served(&first));
        assert!(served(&first) > RATE || seconds > 1, "both connections are used");
        assert!(served(&second) <= most && served(&second) > 0);
        let refused = answers
            .iter()
            .filter(|got| got.status == StatusCode::TOO_MANY_REQUESTS);
        let refused: Vec<_> = refused.collect();
        assert_eq!(refused.len() as u32 + served(&first) + served(&second), 400);
        assert!(refused.iter().all(|got| got.header("retry-after") == "1"));
        let counted = scp.count("signalbox_scp_refused_total", "connectionRate");
        assert_eq!(counted, refused.len() as f64);
        assert!(scp.count("signalbox_scp_passed_over_total", "connectionRate") > 0.0);
        // A rate that is reached says nothing against a producer.
        assert_eq!(scp.count("signalbox_scp_ejected_producers", ""), 0.0);
        until("a second later there is room again", async || {
            scp.get(&first).await.status == StatusCode::OK
        })
        .await;
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
            response.headers_mut().set_printed("3gpp-sbi-oci", oci);
            response
        });
        let scp = knowing(&[&busy, &idle], |_| {});
        for _ in 0..201 {
            assert_eq!(scp.get(&busy).await.status, StatusCode::OK);
        }
        // The first reports overload; a quarter of the later requests still arrives.
        assert_eq!((busy.count(), idle.count()), (51, 150));
        assert_eq!(scp.count("signalbox_scp_passed_over_total", "oci"), 150.0);
    });
}

/// A report of one member about its set holds for the members without a report.
#[test]
fn overload_of_a_set_is_that_of_its_members() {
    local(async {
        let (teller, silent) = (Producer::start(1), Producer::start(2));
        teller.answers(move |_| {
            let mut response = sbi::Response::default();
            let oci = "Timestamp: \"Tue, 04 Feb 2020 08:49:37 GMT\"; Period-of-Validity: 60s; \
                       Overload-Reduction-Metric: 100%; NF-Set: set1.udmset.5gc.mnc001.mcc001";
            response.headers_mut().set_printed("3gpp-sbi-oci", oci);
            response
        });
        let scp = knowing(&[&teller, &silent], |_| {});
        assert_eq!(scp.get(&teller).await.status, StatusCode::OK);
        let got = scp.get(&silent).await;
        assert_eq!(
            (got.status, got.cause()),
            (StatusCode::SERVICE_UNAVAILABLE, "NF_CONGESTION")
        );
        assert_eq!((teller.count(), silent.count()), (1, 0));
        assert_eq!(scp.count("signalbox_scp_refused_total", "producerOverload"), 1.0);
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
            // Longer than the twenty requests take on any machine.
            config.protection.outliers.base_ejection = settings::Period::from_secs(3);
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

/// A producer is left alone for all: that one consumer waits a millisecond says nothing of it.
#[test]
fn a_consumer_that_does_not_wait_has_no_producer_left_alone() {
    local(async {
        let producer = Producer::start(1);
        let scp = knowing(&[&producer], |_| {});
        producer.waits(Duration::from_millis(50));
        let root = producer.root();
        let headers = [
            ("3gpp-sbi-target-apiroot", root.as_str()),
            ("3gpp-sbi-max-rsp-time", "1"),
        ];
        for _ in 0..30 {
            let got = scp.ask(Method::GET, PATH, &headers).await;
            assert_eq!(got.status, StatusCode::GATEWAY_TIMEOUT);
        }
        // A producer may say itself that the consumer waits no more.
        producer.fails_with(504);
        for _ in 0..30 {
            let patient = [headers[0], ("3gpp-sbi-max-rsp-time", "1000")];
            let got = scp.ask(Method::GET, PATH, &patient).await;
            assert_eq!(got.status, StatusCode::GATEWAY_TIMEOUT);
        }
        producer.answers(|_| sbi::Response::default());
        assert_eq!(scp.get(&producer).await.status, StatusCode::OK);
    });
}

/// Of a set whose members all fail the larger part is tried again and again.
#[test]
fn a_set_is_never_left_alone_as_a_whole() {
    local(async {
        let members: Vec<Producer> = (1..=3).map(Producer::start).collect();
        let strangers: Vec<Producer> = (4..=9).map(Producer::start).collect();
        let profiles: Vec<_> = members.iter().map(|one| one.profile(&json!({}))).collect();
        let others = strangers
            .iter()
            .map(|one| one.profile(&json!({"nfSetIdList": []})));
        let all = profiles.into_iter().chain(others).collect();
        let scp = crate::support::start(|config| {
            config.producers = all;
            config.protection.breaker.failures = 1_000;
        });
        for one in &strangers {
            assert_eq!(scp.get(one).await.status, StatusCode::OK);
        }
        for one in &members {
            one.fails_with(503);
        }
        for _ in 0..20 {
            for one in &members {
                assert_eq!(scp.get(one).await.status, StatusCode::SERVICE_UNAVAILABLE);
            }
        }
        for one in &members {
            one.answers(|_| sbi::Response::default());
        }
        for one in &members {
            assert_eq!(scp.get(one).await.status, StatusCode::OK);
        }
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

/// Three times as many as may be under way: the places are filled, and their last quarter by what is important.
#[test]
fn more_than_may_be_under_way_costs_the_least_important() {
    local(async {
        let producer = Producer::start(1);
        producer.waits(Duration::from_millis(400));
        let scp = knowing(&[&producer], |config| {
            config.protection.max_in_flight = 32;
            config.protection.error_profiles.insert(
                "inFlight".into(),
                ErrorProfile {
                    status: Some(429),
                    cause: Some("FULL".into()),
                    ..ErrorProfile::default()
                },
            );
        });
        let root = producer.root();
        let ask = async |priority: &'static str| {
            let headers = [
                ("3gpp-sbi-target-apiroot", root.as_str()),
                ("3gpp-sbi-message-priority", priority),
            ];
            scp.ask(Method::GET, PATH, &headers).await
        };
        let unimportant = (0..72).map(|_| ask("31"));
        let important = (0..24).map(|_| ask("0"));
        let (unimportant, important) = tokio::join!(
            futures_util::future::join_all(unimportant),
            futures_util::future::join_all(important)
        );
        let served = |all: &[Got]| all.iter().filter(|one| one.status == StatusCode::OK).count();
        assert_eq!((served(&unimportant), served(&important)), (24, 8));
        let refused = unimportant
            .iter()
            .find(|one| one.status != StatusCode::OK)
            .unwrap();
        assert_eq!(
            (refused.status, refused.cause()),
            (StatusCode::TOO_MANY_REQUESTS, "FULL")
        );
        assert_eq!(refused.header("retry-after"), "1");
        assert_eq!(refused.header("server"), "SCP-scp1.test");
        assert_eq!(scp.count("signalbox_scp_refused_total", "inFlight"), 64.0);
        // All places are free again.
        producer.waits(Duration::ZERO);
        assert_eq!(ask("31").await.status, StatusCode::OK);
    });
}

#[test]
fn overload_of_the_scp_discards_the_least_important_and_is_told() {
    local(async {
        let producer = Producer::start(1);
        let scp = knowing(&[&producer], |config| {
            let protection = &mut config.protection;
            // A level that holds at any load, once there was some.
            let mut level = Level::new("always", 0.0001, 0.0);
            level.abatement = settings::Period::from_secs(600);
            protection.overload = vec![OverloadStep {
                level,
                discard: settings::Percent::new(50.0),
            }];
            protection.convey_own_lci = true;
            protection.convey_own_oci = true;
        });
        crate::support::until("it is overloaded", async || {
            scp.get(&producer).await;
            scp.count("signalbox_scp_overload_level", "") == 1.0
        })
        .await;
        let root = producer.root();
        let mut served = [0; 2];
        for number in 0..2_000 {
            let important = number % 4 == 0;
            let headers = [
                ("3gpp-sbi-target-apiroot", root.as_str()),
                ("3gpp-sbi-message-priority", if important { "3" } else { "24" }),
            ];
            let got = scp.ask(Method::GET, PATH, &headers).await;
            match got.status {
                StatusCode::OK => {
                    served[usize::from(!important)] += 1;
                    assert!(
                        got.header("3gpp-sbi-oci")
                            .contains("Overload-Reduction-Metric: 50%")
                    );
                    assert!(got.header("3gpp-sbi-lci").contains("SCP-FQDN: scp1.test"));
                }
                status => {
                    assert_eq!(status, StatusCode::SERVICE_UNAVAILABLE);
                    assert_eq!(got.cause(), "NF_CONGESTION");
                }
            }
        }
        assert_eq!(served[0], 500, "what is important is served");
        // Half of all goes, all of it from the other three quarters.
        assert!((450..=560).contains(&served[1]), "{served:?}");
    });
}

#[test]
fn rates_of_a_service_are_those_of_all_its_producers() {
    local(async {
        let (one, other) = (Producer::start(1), Producer::start(2));
        let scp = knowing(&[&one, &other], |config| {
            config.protection.egress = vec![ProducerRate {
                producer: None,
                services: vec!["nudm-sdm".into()],
                rate: slow(4),
                global: true,
            }];
        });
        let mut statuses = Vec::new();
        for number in 0..6 {
            let producer = if number % 2 == 0 { &one } else { &other };
            statuses.push(scp.get(producer).await.status.as_u16());
        }
        assert_eq!(statuses, [200, 200, 200, 200, 429, 429]);
        let root = one.root();
        let target = [("3gpp-sbi-target-apiroot", root.as_str())];
        let got = scp.ask(Method::GET, "/nudm-ee/v1/x", &target).await;
        assert_eq!(got.status, StatusCode::OK, "another service is not concerned");
    });
}

/// A rate is that of the whole SCP: however its workers share the connections, it is kept.
#[test]
fn workers_keep_a_rate_together() {
    local(async {
        let producer = Producer::start(1);
        let scp = knowing(&[&producer], |config| {
            config.workers = 3;
            config.protection.ingress = vec![ConsumerRate {
                consumer: "*".into(),
                rate: slow(30),
            }];
        });
        let mut passed = 0;
        for _ in 0..12 {
            // A connection of its own each time, for whichever worker gets it.
            let fresh = Scp {
                running: None,
                origin: scp.origin.clone(),
                client: crate::support::client("AMF-test"),
                registry: scp.registry.clone(),
            };
            for _ in 0..10 {
                passed += usize::from(fresh.get(&producer).await.status == StatusCode::OK);
            }
        }
        assert!((10..=33).contains(&passed), "{passed}");
    });
}

/// Requests that wait for a slow producer hold memory: of its last quarter the more important requests get more.
#[test]
fn memory_that_runs_out_costs_the_least_important() {
    local(async {
        let (slow, quick) = (Producer::start(1), Producer::start(2));
        slow.waits(Duration::from_secs(60));
        let scp = knowing(&[&slow, &quick], |config| {
            config.server.max_body = settings::ByteSize::kib(64);
            config.server.max_memory = settings::ByteSize::mib(2);
            config.policies = vec![ServicePolicy {
                response_timeout_ms: 60_000,
                total_timeout_ms: 60_000,
                ..ServicePolicy::default()
            }];
        });
        let ask = async |priority: &'static str| {
            let root = quick.root();
            let headers = [
                ("3gpp-sbi-target-apiroot", root.as_str()),
                ("3gpp-sbi-message-priority", priority),
            ];
            scp.ask(Method::GET, PATH, &headers).await
        };
        assert_eq!(ask("31").await.status, StatusCode::OK);
        let root = slow.root();
        // One after the other, as a body may be held twice for a moment, and each on a connection of its own: one that
        // holds more than is free takes no further request.
        let mut held = Vec::new();
        for number in 1..=30 {
            let large = http::Request::builder()
                .method(Method::POST)
                .uri(PATH)
                .header("3gpp-sbi-target-apiroot", &root)
                .body(sbi::Body::from(vec![b'x'; 60 * 1024]))
                .unwrap();
            let (client, origin) = (crate::support::client("SMF-test"), scp.origin.clone());
            let sent =
                tokio::task::spawn_local(async move { testpeer::sbi::send(&client, &origin, large).await });
            until("the body is at the producer, or refused", async || {
                slow.count() >= number || sent.is_finished()
            })
            .await;
            held.push(sent);
        }
        until("the least important alone is refused", async || {
            ask("31").await.status == StatusCode::SERVICE_UNAVAILABLE
                && ask("0").await.status == StatusCode::OK
        })
        .await;
        assert!(scp.count("signalbox_scp_refused_total", "inFlight") >= 1.0);
        held.iter().for_each(tokio::task::JoinHandle::abort);
    });
}
