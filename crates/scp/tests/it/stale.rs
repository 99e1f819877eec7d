//! What the SCP knows does not outlive its cause: cached answers whose producers have left, changed or died, and NRFs that
//! do not answer.

use http::{Method, StatusCode};
use scp::config::Order;
use serde_json::json;

use crate::stub_nrf::{StubNrf, notification};
use crate::support::{Got, PATH, Producer, Scp, delegating, local, nrf_that_finds, until};

const ORDERS: [Order; 3] = [Order::Nrf, Order::NrfThenScp, Order::ScpThenNrf];

async fn wish(scp: &Scp, more: &[(&str, &str)]) -> Got {
    let mut headers = vec![
        ("3gpp-sbi-discovery-target-nf-type", "UDM"),
        ("3gpp-sbi-discovery-requester-nf-type", "AMF"),
        ("3gpp-sbi-discovery-service-names", "nudm-sdm"),
    ];
    headers.extend_from_slice(more);
    scp.ask(Method::GET, PATH, &headers).await
}

/// An SCP that knows one UDM at an NRF and has cached the answer with it.
async fn served_by(producer: &Producer, order: Order) -> (StubNrf, Scp) {
    let nrf = StubNrf::start();
    nrf.knows(producer.profile(&json!({})));
    let scp = nrf.learner(|config| config.discovery.order = order);
    let network = || scp.running.as_ref().unwrap().network();
    until("the producer is learned", async || {
        network().producer(&producer.id).is_some()
    })
    .await;
    assert_eq!(wish(&scp, &[]).await.by(), producer.id);
    (nrf, scp)
}

#[test]
fn a_producer_that_restarts_under_a_new_id_costs_no_request() {
    local(async {
        for order in ORDERS {
            // The NRF knows of the end, or not; the SCP is notified afterwards, if at all.
            for deregisters in [true, false] {
                let (old, new) = (Producer::start(1), Producer::start(2));
                let (nrf, scp) = served_by(&old, order).await;
                tokio::time::sleep(std::time::Duration::from_millis(50)).await;
                old.stop();
                tokio::time::sleep(std::time::Duration::from_millis(50)).await;
                if deregisters {
                    nrf.forgets(&old.id);
                }
                nrf.knows(new.profile(&json!({})));
                let got = wish(&scp, &[]).await;
                assert_eq!((got.status, got.by()), (StatusCode::OK, &*new.id), "{order:?}");
                let callback = nrf.callback().await;
                scp.notify(&callback, &notification("NF_REGISTERED", &new.id, None))
                    .await;
                scp.notify(&callback, &notification("NF_DEREGISTERED", &old.id, None))
                    .await;
                for _ in 0..10 {
                    let got = wish(&scp, &[]).await;
                    assert_eq!((got.status, got.by()), (StatusCode::OK, &*new.id), "{order:?}");
                }
            }
        }
    });
}

#[test]
fn an_answer_whose_producers_have_left_is_asked_for_again() {
    local(async {
        for order in ORDERS {
            // At the same address, as most functions restart.
            let old = Producer::start(1);
            let (nrf, scp) = served_by(&old, order).await;
            nrf.forgets(&old.id);
            let callback = nrf.callback().await;
            scp.notify(&callback, &notification("NF_DEREGISTERED", &old.id, None))
                .await;
            let network = || scp.running.as_ref().unwrap().network();
            until("it has left", async || network().producer(&old.id).is_none()).await;
            let id = "00000000-0000-4000-8000-0000000000aa";
            nrf.knows(old.profile(&json!({"nfInstanceId": id})));
            let got = wish(&scp, &[]).await;
            assert_eq!(got.status, StatusCode::OK, "{order:?}: {got:?}");
        }
    });
}

#[test]
fn suspended_and_changed_producers_leave_cached_answers() {
    local(async {
        let changes = [
            json!({"nfStatus": "SUSPENDED"}),
            json!({"udmInfo": {"supiRanges": [{"start": "001010000000002", "end": "001010000000003"}]}}),
            json!({"nfServices": []}),
        ];
        for (order, change) in ORDERS
            .iter()
            .flat_map(|order| changes.iter().map(move |change| (*order, change)))
        {
            let (one, other) = (Producer::start(1), Producer::start(2));
            let (nrf, scp) = served_by(&one, order).await;
            // A changed load is not one.
            let callback = nrf.callback().await;
            let changed = async |profile: serde_json::Value| {
                let before = scp.running.as_ref().unwrap().network();
                nrf.knows(profile);
                scp.notify(&callback, &notification("NF_PROFILE_CHANGED", &one.id, None))
                    .await;
                until("the change is learned", async || {
                    let now = scp.running.as_ref().unwrap().network();
                    !std::sync::Arc::ptr_eq(&before, &now)
                })
                .await;
            };
            changed(one.profile(&json!({"load": 50}))).await;
            let asked = nrf.discoveries();
            assert_eq!(wish(&scp, &[]).await.by(), one.id);
            assert_eq!(nrf.discoveries(), asked, "{order:?}");
            changed(one.profile(change)).await;
            nrf.forgets(&one.id);
            nrf.knows(other.profile(&json!({})));
            let got = wish(&scp, &[("3gpp-sbi-discovery-supi", "imsi-001010000000001")]).await;
            assert_eq!(
                (got.status, got.by()),
                (StatusCode::OK, &*other.id),
                "{order:?} {change}"
            );
            if order != Order::ScpThenNrf || change.get("udmInfo").is_none() {
                let got = wish(&scp, &[]).await;
                assert_eq!(
                    (got.status, got.by()),
                    (StatusCode::OK, &*other.id),
                    "{order:?} {change}"
                );
            }
        }
    });
}

/// Questions about the dead do not flood the NRF.
#[test]
fn dead_producers_are_asked_for_again_within_bounds() {
    local(async {
        let dead = Producer::start(1);
        let nrf = nrf_that_finds(vec![dead.profile(&json!({}))]);
        let scp = delegating(vec![nrf.root()], |_| {});
        assert_eq!(wish(&scp, &[]).await.status, StatusCode::OK);
        dead.stop();
        tokio::time::sleep(std::time::Duration::from_millis(100)).await;
        nrf.waits(std::time::Duration::from_millis(100));
        let many = futures_util::future::join_all((0..50).map(|_| wish(&scp, &[]))).await;
        assert!(many.iter().all(|got| got.status == StatusCode::GATEWAY_TIMEOUT));
        assert!(nrf.count() <= 3, "{}", nrf.count());
    });
}

fn alarms(scp: &Scp) -> Vec<u32> {
    let alarms = scp.running.as_ref().unwrap().handle().alarms().active();
    alarms.iter().map(|alarm| alarm.number).collect()
}

#[test]
fn without_an_nrf_what_is_known_serves_and_an_alarm_is_raised() {
    local(async {
        let producer = Producer::start(1);
        let (nrf, scp) = served_by(&producer, Order::default()).await;
        nrf.stop();
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
        for supi in 1..=20 {
            let supi = format!("imsi-0010100000000{supi:02}");
            let got = wish(&scp, &[("3gpp-sbi-discovery-supi", &supi)]).await;
            assert_eq!((got.status, got.by()), (StatusCode::OK, &*producer.id));
        }
        let handle = scp.running.as_ref().unwrap().handle();
        until("the alarm is raised", async || alarms(&scp) == [10_530]).await;
        let remarks = handle.health().remarks();
        let remark = remarks.values().next().unwrap();
        assert!(
            remark.contains("no NRF answers") && remark.contains("1 learned"),
            "{remark}"
        );
        assert!(handle.health().not_ready().is_empty(), "it serves");
    });
}

/// What `/readyz` says of a missing NRF is what happens: by `order: nrf` no discovery is served with learned profiles.
#[test]
fn readiness_without_an_nrf_speaks_of_the_order_of_the_settings() {
    local(async {
        let producer = Producer::start(1);
        let (nrf, scp) = served_by(&producer, Order::Nrf).await;
        nrf.stop();
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
        let got = wish(&scp, &[("3gpp-sbi-discovery-supi", "imsi-001010000000001")]).await;
        assert_eq!(got.status, StatusCode::GATEWAY_TIMEOUT);
        until("the alarm is raised", async || alarms(&scp) == [10_530]).await;
        let handle = scp.running.as_ref().unwrap().handle();
        let remarks = handle.health().remarks();
        let remark = remarks.values().next().unwrap();
        for part in [
            "no NRF answers",
            "to a named producer are served with the 1 learned",
            "are refused then",
            "discovery.order: nrf",
        ] {
            assert!(remark.contains(part), "{part}: {remark}");
        }
    });
}

#[test]
fn without_an_nrf_and_without_producers_it_is_not_ready() {
    local(async {
        let nrf = Producer::start(99);
        nrf.fails_with(503);
        let scp = delegating(vec![nrf.root()], |config| config.forward_to_unknown = false);
        assert_eq!(wish(&scp, &[]).await.status, StatusCode::BAD_GATEWAY);
        let health = scp.running.as_ref().unwrap().handle().health().clone();
        until("it is not ready", async || !health.not_ready().is_empty()).await;
        assert_eq!(alarms(&scp), [10_530]);
        nrf.answers(|_| sbi::json::response(StatusCode::OK, &json!({})));
        until("it is ready again", async || health.not_ready().is_empty()).await;
        assert_eq!(alarms(&scp), Vec::<u32>::new());
    });
}

/// An answer outlives its validity where nothing else is known.
#[test]
fn without_an_nrf_the_last_answer_serves_after_its_validity() {
    local(async {
        let producer = Producer::start(1);
        let nrf = nrf_that_finds(vec![producer.profile(&json!({}))]);
        for (order, status) in [
            (Order::NrfThenScp, StatusCode::OK),
            (Order::ScpThenNrf, StatusCode::OK),
            (Order::Nrf, StatusCode::BAD_GATEWAY),
        ] {
            let scp = delegating(vec![nrf.root()], |config| {
                config.discovery.max_validity = settings::Period::from_millis(200);
                config.discovery.order = order;
            });
            let profile = producer.profile(&json!({}));
            nrf.answers(move |_| {
                let found = json!({"validityPeriod": 60, "nfInstances": [profile]});
                sbi::json::response(StatusCode::OK, &found)
            });
            assert_eq!(wish(&scp, &[]).await.status, StatusCode::OK);
            nrf.fails_with(503);
            tokio::time::sleep(std::time::Duration::from_millis(250)).await;
            assert_eq!(wish(&scp, &[]).await.status, status, "{order:?}");
        }
    });
}

/// TS 29.510 §6.1.6.2.2: NRFs need not notify an SCP of a profile whose `allowedNfTypes` lack it.
#[test]
fn a_producer_that_only_a_discovery_of_its_consumer_finds_serves_in_model_c() {
    local(async {
        let closed = Producer::start(1);
        let nrf = Producer::start(99);
        let profile = closed.profile(&json!({}));
        nrf.answers(move |seen| {
            let found = match seen.path.contains("requester-nf-type=AMF") && seen.path.contains("nf-type=UDM")
            {
                true => vec![profile.clone()],
                false => Vec::new(),
            };
            let found = json!({"validityPeriod": 60, "nfInstances": found});
            sbi::json::response(StatusCode::OK, &found)
        });
        let scp = delegating(vec![nrf.root()], |config| {
            config.forward_to_unknown = false;
            config.discovery.empty_validity = settings::Period::from_secs(600);
        });
        let to = async |root: &str, agent: &str| {
            let headers = [("3gpp-sbi-target-apiroot", root), ("user-agent", agent)];
            scp.ask(Method::GET, PATH, &headers).await.status
        };
        assert_eq!(to(&closed.root(), "AF-1").await, StatusCode::GATEWAY_TIMEOUT);
        assert_eq!(to(&closed.root(), "AMF-1").await, StatusCode::OK);
        // Unknown roots do not become queries.
        let asked = nrf.count();
        for port in 1..50 {
            to(&format!("http://127.0.0.1:{port}"), "AMF-1").await;
        }
        assert_eq!(nrf.count(), asked);
    });
}

#[test]
fn other_allowed_types_are_learned_without_a_notification() {
    local(async {
        let producer = Producer::start(1);
        let nrf = StubNrf::start();
        nrf.knows(producer.profile(&json!({"allowedNfTypes": ["SMF"]})));
        let scp = nrf.learner(|config| config.discovery.order = Order::ScpThenNrf);
        let running = scp.running.as_ref().unwrap();
        until("it is learned", async || running.network().len() == 1).await;
        let root = producer.root();
        let named = [("3gpp-sbi-target-apiroot", &*root), ("user-agent", "AMF-1")];
        let got = scp.ask(Method::GET, PATH, &named).await;
        assert_eq!((got.status, got.by()), (StatusCode::FORBIDDEN, ""));
        assert!(
            got.json["detail"].as_str().unwrap().contains("does not admit"),
            "{got:?}"
        );
        // Model D answers 403 too, in place of "no producer".
        let got = wish(
            &scp,
            &[("user-agent", "AMF-1"), ("3gpp-sbi-discovery-supi", "imsi-1")],
        )
        .await;
        assert_eq!(got.status, StatusCode::FORBIDDEN, "{got:?}");
        nrf.knows(producer.profile(&json!({"allowedNfTypes": ["SMF", "AMF"]})));
        until("the list is learned", async || {
            scp.ask(Method::GET, PATH, &named).await.status == StatusCode::OK
        })
        .await;
    });
}

/// A new registration ends ejection and circuit: another process may serve now.
#[test]
fn a_producer_that_registers_again_begins_without_failures() {
    local(async {
        let producer = Producer::start(1);
        let nrf = StubNrf::start();
        nrf.knows(producer.profile(&json!({})));
        let scp = nrf.learner(|config| {
            config.protection.breaker.open = settings::Period::from_secs(600);
            config.protection.outliers.base_ejection = settings::Period::from_secs(600);
        });
        let running = scp.running.as_ref().unwrap();
        until("it is learned", async || running.network().len() == 1).await;
        producer.fails_with(503);
        until("it is left out", async || {
            scp.get(&producer).await;
            scp.count("signalbox_scp_passed_over_total", "") > 0.0
        })
        .await;
        let by = json!({"by": producer.id});
        producer.answers(move |_| sbi::json::response(StatusCode::OK, &by));
        assert_ne!(scp.get(&producer).await.status, StatusCode::OK);
        let callback = nrf.callback().await;
        nrf.knows(producer.profile(&json!({"recoveryTime": "2026-01-01T00:00:00Z"})));
        scp.notify(&callback, &notification("NF_REGISTERED", &producer.id, None))
            .await;
        until("it serves again", async || {
            scp.get(&producer).await.status == StatusCode::OK
        })
        .await;
    });
}
