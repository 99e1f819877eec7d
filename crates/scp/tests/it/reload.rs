//! A reload keeps the state that the settings do not invalidate.

use std::time::Duration;

use http::{Method, StatusCode};
use overload::Rate;
use scp::Config;
use scp::config::ConsumerRate;
use serde_json::json;
use settings::Period;

use crate::support::{Got, PATH, Producer, Scp, config, local, start};

/// Settings with static profiles of these producers.
fn configured(producers: &[&Producer], change: impl FnOnce(&mut Config)) -> Config {
    let mut config = config();
    config.producers = producers.iter().map(|one| one.profile(&json!({}))).collect();
    change(&mut config);
    config
}

fn started(with: &Config) -> Scp {
    start(|config| *config = with.clone())
}

/// Reloads `config` with another setting that concerns no state.
fn reload(scp: &Scp, config: &mut Config) {
    config.max_forward_hops = 1 + config.max_forward_hops % 20;
    scp.running.as_ref().unwrap().reload(config).unwrap();
}

async fn discover(scp: &Scp) -> Got {
    let wish = [
        ("3gpp-sbi-discovery-target-nf-type", "UDM"),
        ("3gpp-sbi-discovery-requester-nf-type", "AMF"),
        ("3gpp-sbi-discovery-service-names", "nudm-sdm"),
    ];
    scp.ask(Method::GET, PATH, &wish).await
}

#[test]
fn an_ejected_producer_stays_ejected() {
    local(async {
        let (failing, well) = (Producer::start(1), Producer::start(2));
        failing.fails_with(503);
        let mut config = configured(&[&failing, &well], |config| {
            config.protection.outliers.consecutive_failures = 3;
            config.protection.outliers.base_ejection = Period::from_secs(60);
            config.protection.breaker.failures = 1_000;
        });
        let scp = started(&config);
        for _ in 0..5 {
            assert_eq!(scp.get(&failing).await.by(), well.id);
        }
        assert_eq!(failing.count(), 3);
        for _ in 0..3 {
            reload(&scp, &mut config);
            assert_eq!(scp.get(&failing).await.by(), well.id);
        }
        assert_eq!(failing.count(), 3, "the ejection outlives the reload");
        config.protection.outliers.base_ejection = Period::from_secs(61);
        reload(&scp, &mut config);
        assert_eq!(scp.get(&failing).await.by(), well.id);
        assert_eq!(
            failing.count(),
            4,
            "other settings of ejections end those there are"
        );
    });
}

#[test]
fn an_open_circuit_stays_open() {
    local(async {
        let failing = Producer::start(1);
        failing.fails_with(503);
        let mut config = configured(&[&failing], |config| {
            config.protection.outliers.consecutive_failures = 0;
            config.protection.breaker.failures = 3;
            config.protection.breaker.open = Period::from_secs(30);
        });
        let scp = started(&config);
        for _ in 0..5 {
            scp.get(&failing).await;
        }
        assert_eq!(failing.count(), 3);
        reload(&scp, &mut config);
        assert_eq!(scp.get(&failing).await.cause(), "TARGET_NF_NOT_REACHABLE");
        assert_eq!(failing.count(), 3, "the circuit is still open");
        config.protection.breaker.failures = 4;
        reload(&scp, &mut config);
        scp.get(&failing).await;
        assert_eq!(failing.count(), 4, "other settings of circuits close them");
    });
}

#[test]
fn limits_of_requests_in_flight_hold_across_it() {
    local(async {
        let slow = Producer::start(1);
        slow.waits(Duration::from_millis(400));
        for (most_in_flight, most_outstanding, reason) in [(4, 0, "inFlight"), (0, 4, "outstanding")] {
            let before = slow.count();
            let mut config = configured(&[&slow], |config| {
                config.protection.max_in_flight = most_in_flight;
                config.protection.max_outstanding = most_outstanding;
            });
            let scp = started(&config);
            let first = futures_util::future::join_all((0..4).map(|_| scp.get(&slow)));
            let second = async {
                while slow.count() < before + 4 {
                    tokio::time::sleep(Duration::from_millis(5)).await;
                }
                reload(&scp, &mut config);
                scp.get(&slow).await
            };
            let (first, second) = futures_util::future::join(first, second).await;
            assert!(first.iter().all(|one| one.status == StatusCode::OK), "{first:?}");
            assert_eq!(second.cause(), "NF_CONGESTION", "{reason}: {second:?}");
            assert_eq!(slow.count(), before + 4);
            assert_eq!(
                scp.get(&slow).await.status,
                StatusCode::OK,
                "their end is counted as well"
            );
            assert_eq!(scp.count("signalbox_scp_refused_total", reason), 1.0);
        }
    });
}

#[test]
fn the_rate_of_a_consumer_goes_on() {
    local(async {
        let producer = Producer::start(1);
        let rate = |burst| ConsumerRate {
            consumer: "*".into(),
            rate: Rate {
                per_second: 0.001,
                burst: Some(burst),
            },
        };
        let mut config = configured(&[&producer], |config| config.protection.ingress = vec![rate(3)]);
        let scp = started(&config);
        for _ in 0..3 {
            assert_eq!(scp.get(&producer).await.status, StatusCode::OK);
        }
        reload(&scp, &mut config);
        assert_eq!(scp.get(&producer).await.status, StatusCode::TOO_MANY_REQUESTS);
        config.protection.ingress = vec![rate(4)];
        reload(&scp, &mut config);
        assert_eq!(
            scp.get(&producer).await.status,
            StatusCode::OK,
            "a new rate begins"
        );
    });
}

#[test]
fn discovery_answers_and_tokens_stay_unless_the_nrfs_change() {
    local(async {
        let producer = Producer::start(1);
        let nrf = Producer::start(99);
        let profile = producer.profile(&json!({}));
        nrf.answers(move |seen| {
            let answer = match seen.path.as_str() {
                "/oauth2/token" => json!({"access_token": "t", "token_type": "Bearer", "expires_in": 3_600}),
                _ => json!({"validityPeriod": 60, "nfInstances": [profile]}),
            };
            sbi::json::response(StatusCode::OK, &answer)
        });
        let mut config = configured(&[], |config| {
            config.nrf.roots = vec![nrf.root()];
            config.nrf.register = false;
            config.nrf.nf_types.clear();
            config.security.tokens.enabled = true;
            config.security.tokens.in_own_name = true;
        });
        let scp = started(&config);
        assert_eq!(discover(&scp).await.by(), producer.id);
        assert_eq!(nrf.count(), 2, "a discovery and a token");
        for _ in 0..3 {
            config.discovery.timeout = Period::from_millis(1_500 + u64::from(config.max_forward_hops));
            reload(&scp, &mut config);
            assert_eq!(discover(&scp).await.by(), producer.id);
        }
        assert_eq!(nrf.count(), 2, "both are still there");
        config.nrf.roots.push("http://127.0.0.1:9".into());
        reload(&scp, &mut config);
        assert_eq!(discover(&scp).await.by(), producer.id);
        assert_eq!(nrf.count(), 4, "other NRFs may say something else");
    });
}

#[test]
fn a_hundred_reloads_under_load_lose_nothing() {
    local(async {
        let (one, two) = (Producer::start(1), Producer::start(2));
        let mut config = configured(&[&one, &two], |config| {
            config.protection.max_in_flight = 64;
            config.protection.max_outstanding = 64;
        });
        let scp = started(&config);
        let done = std::cell::Cell::new(false);
        let load = async |producer: &Producer| {
            let mut sent = 0;
            while !done.get() {
                let got = scp.get(producer).await;
                assert_eq!((got.status, got.by()), (StatusCode::OK, producer.id.as_str()));
                sent += 1;
            }
            sent
        };
        let reloads = async {
            for number in 0..100 {
                config.protection.spare_priority = number % 8;
                config.protection.max_outstanding = 64 + u32::from(number);
                reload(&scp, &mut config);
                let answers = one.count() + two.count();
                while one.count() + two.count() < answers + 4 {
                    tokio::time::sleep(Duration::from_millis(1)).await;
                }
            }
            done.set(true);
        };
        let loads = (0..8).map(|number| load(if number % 2 == 0 { &one } else { &two }));
        let (sent, ()) = futures_util::future::join(futures_util::future::join_all(loads), reloads).await;
        assert_eq!(sent.iter().sum::<usize>(), one.count() + two.count());
        assert_eq!(scp.count("signalbox_scp_refused_total", ""), 0.0);
        // No account was left open: the limits admit as many as ever.
        config.protection.max_in_flight = 8;
        config.protection.max_outstanding = 8;
        reload(&scp, &mut config);
        one.waits(Duration::from_millis(50));
        let last = futures_util::future::join_all((0..6).map(|_| scp.get(&one))).await;
        assert!(last.iter().all(|got| got.status == StatusCode::OK), "{last:?}");
    });
}
