//! Rates that several SCPs keep together.

use std::time::{Duration, Instant};

use http::{Method, StatusCode};
use overload::Rate;
use sbi::Body;
use scp::config::{ProducerRate, WhenSilent};
use serde_json::json;
use settings::Period;

use crate::support::{Producer, Scp, knowing, local, until};

/// SCPs on ports that are known before they start, which name each other.
fn federated(producer: &Producer, count: usize, when_silent: WhenSilent) -> Vec<Scp> {
    let addresses: Vec<_> = (0..count).map(|_| free_ports::address().unwrap()).collect();
    let start = |own: usize| {
        let addresses = addresses.clone();
        knowing(&[producer], move |config| {
            config.nf_instance_id = format!("00000000-0000-4000-8000-0000000005c{own}");
            config.listen = settings::Listen(vec![addresses[own]]);
            config.protection.egress = vec![ProducerRate {
                producer: Some("*".into()),
                services: Vec::new(),
                rate: Rate {
                    per_second: 200.0,
                    burst: Some(20),
                },
                global: true,
            }];
            let federation = &mut config.protection.federation;
            federation.interval = Period::from_millis(100);
            federation.silent_after = Period::from_millis(1_000);
            federation.when_silent = when_silent;
            let others = addresses.iter().enumerate().filter(|(at, _)| *at != own);
            federation.peers = others.map(|(_, address)| format!("http://{address}")).collect();
        })
    };
    (0..count).map(start).collect()
}

fn heard(scp: &Scp) -> f64 {
    scp.count("signalbox_scp_federation_peers", "")
}

/// Asks as fast as it is answered for a while; the rate of what passed.
async fn passed(scp: &Scp, producer: &Producer, long: Duration) -> f64 {
    let began = Instant::now();
    let mut passed = 0.0;
    while began.elapsed() < long {
        let got = scp.get(producer).await;
        match got.status {
            StatusCode::OK => passed += 1.0,
            StatusCode::TOO_MANY_REQUESTS => tokio::time::sleep(Duration::from_millis(1)).await,
            other => panic!("{other}"),
        }
    }
    passed / began.elapsed().as_secs_f64()
}

#[test]
fn who_is_asked_for_more_gets_more_of_a_global_rate() {
    local(async {
        let producer = Producer::start(1);
        let scps = federated(&producer, 2, WhenSilent::Keep);
        until("they know each other", async || {
            scps.iter().all(|scp| heard(scp) == 1.0)
        })
        .await;
        // One of them is asked for all: it may have nearly all of it, soon.
        let share = async || passed(&scps[0], &producer, Duration::from_millis(500)).await;
        until("the busy one has more than its half", async || {
            share().await > 130.0
        })
        .await;
        // Whatever the demands, the rate and at most one burst pass.
        let before = producer.count();
        let long = Duration::from_secs(2);
        let both = (
            passed(&scps[0], &producer, long),
            passed(&scps[1], &producer, long),
        );
        let began = Instant::now();
        futures_util::future::join(both.0, both.1).await;
        let all = (producer.count() - before) as f64;
        let most = 200.0 * began.elapsed().as_secs_f64() + 2.0 * 20.0 + 60.0;
        assert!(all <= most, "{all} of {most}");
    });
}

#[test]
fn a_silent_scp_keeps_its_part_or_gives_it_up() {
    for (when_silent, more_than_half) in [(WhenSilent::Keep, false), (WhenSilent::Release, true)] {
        local(async {
            let producer = Producer::start(1);
            let mut scps = federated(&producer, 2, when_silent);
            until("they know each other", async || {
                scps.iter().all(|scp| heard(scp) == 1.0)
            })
            .await;
            let gone = scps.pop().unwrap();
            tokio::task::spawn_blocking(move || gone.running.unwrap().stop())
                .await
                .unwrap()
                .unwrap();
            let left = &scps[0];
            until("it is silent", async || heard(left) == 0.0).await;
            assert!(left.count("signalbox_scp_federation_total", "failed") >= 1.0);
            let share = async || passed(left, &producer, Duration::from_millis(700)).await;
            if more_than_half {
                until("all of it is used", async || share().await > 130.0).await;
            } else {
                // Its half, and a burst of what is left of it.
                share().await;
                let half = passed(left, &producer, Duration::from_secs(2)).await;
                assert!(half < 125.0, "{half}");
            }
        });
    }
}

#[test]
fn only_configured_peers_may_tell() {
    local(async {
        let producer = Producer::start(1);
        let scp = knowing(&[&producer], |config| {
            config.protection.federation.peers = vec!["http://127.0.0.2:9".into()];
        });
        let report = async |body: serde_json::Value| {
            let request = http::Request::builder()
                .method(Method::POST)
                .uri("/signalbox-scp/v1/rates")
                .body(Body::from(body.to_string()))
                .unwrap();
            scp.send(request).await.status
        };
        let usual = json!({"nfInstanceId": "x", "asked": {"a": 1.0}});
        assert_eq!(report(usual.clone()).await, StatusCode::FORBIDDEN);
        let scp = knowing(&[&producer], |config| {
            config.protection.federation.peers = vec!["http://127.0.0.1:9".into()];
            config.protection.federation.max_rates = 1;
        });
        let report = async |body: &str| {
            let request = http::Request::post("/signalbox-scp/v1/rates");
            let request = request.body(Body::from(body.to_owned())).unwrap();
            scp.send(request).await.status
        };
        assert_eq!(report(&usual.to_string()).await, StatusCode::NO_CONTENT);
        for bad in ["", "[]", r#"{"nfInstanceId":"x","asked":{"a":-1}}"#] {
            assert_eq!(report(bad).await, StatusCode::BAD_REQUEST, "{bad}");
        }
        let many = r#"{"nfInstanceId":"x","asked":{"a":1,"b":1}}"#;
        assert_eq!(report(many).await, StatusCode::PAYLOAD_TOO_LARGE);
        // Another than the one there is room for.
        let other = r#"{"nfInstanceId":"y","asked":{}}"#;
        assert_eq!(report(other).await, StatusCode::FORBIDDEN);
        assert_eq!(scp.count("signalbox_scp_federation_total", "refused"), 5.0);
    });
}
