use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

use bytes::Bytes;
use function::testing::UnderLoad;
use http::{Request, StatusCode};
use sbi::Body;
use sbi::client::{ClientConfig, Origin, SendOptions};
use serde_json::{Value, json};

use super::*;

fn config(directory: &std::path::Path, round: u32) -> Config {
    let local = || settings::Listen(vec![([127, 0, 0, 1], 0).into()]);
    let mut config = Config {
        listen: local(),
        workers: 2,
        max_candidates: 100 + round as usize,
        ..Config::default()
    };
    config.rx.listen = local();
    config.rx.peer_rate = round;
    config.store.embedded.directory = directory.to_owned();
    // What workers have measured is invalidated in every other round.
    config.overload.consumer_rate = 1_000_000 + round / 2;
    config
}

async fn send(client: &Client, origin: &Origin, request: http::Request<Body>) -> (StatusCode, String, Value) {
    let sent = client.send(origin, request, SendOptions::default()).await;
    let (head, body) = sent.expect("an answer").into_parts();
    let location = head.fields.get("location");
    let location = location.map(|location| location.to_str().unwrap().parse::<http::Uri>().unwrap());
    let path = location.map_or_else(String::new, |uri| uri.path().to_owned());
    let body = serde_json::from_slice(&body.into_bytes()).unwrap_or_default();
    (head.status, path, body)
}

fn register(number: u32) -> http::Request<Body> {
    let binding = json!({"supi": format!("imsi-{number:010}"), "ipv4Addr": std::net::Ipv4Addr::from(number).to_string(),
        "dnn": "internet", "snssai": {"sst": 1}, "pcfFqdn": "pcf.example.org"});
    Request::post("/nbsf-management/v1/pcfBindings")
        .header("content-type", "application/json")
        .body(Body::from(binding.to_string()))
        .unwrap()
}

/// A hundred reloads under load, beside fetched key sets: no request, binding, key set or setting is lost.
#[test]
fn reloads_beside_fetched_key_sets_lose_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let running = start(config(directory.path(), 0)).unwrap();
    let live = running.handle().live().clone();
    let origin: Origin = format!("http://{}", running.addresses()[0]).parse().unwrap();
    let (fetches, bindings) = (AtomicU32::new(0), AtomicU32::new(0));
    let load = |goes_on: &dyn Fn() -> bool| {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        tokio::task::LocalSet::new().block_on(&runtime.unwrap(), async {
            let client = Client::new(Arc::new(ClientConfig::default()), None);
            let mut number = 0;
            while goes_on() {
                number += 1;
                let (status, path, _) = send(&client, &origin, register(number)).await;
                assert_eq!(status, StatusCode::CREATED);
                let query = format!("/nbsf-management/v1/pcfBindings?supi=imsi-{number:010}");
                let request = Request::get(query).body(Body::empty()).unwrap();
                let (status, _, found) = send(&client, &origin, request).await;
                assert_eq!(
                    (status, &found["pcfFqdn"]),
                    (StatusCode::OK, &json!("pcf.example.org"))
                );
                if number % 2 == 0 {
                    let request = Request::delete(path).body(Body::empty()).unwrap();
                    let (status, ..) = send(&client, &origin, request).await;
                    assert_eq!(status, StatusCode::NO_CONTENT);
                }
            }
            bindings.store(number, Relaxed);
        });
    };
    UnderLoad {
        times: 100,
        wanted: |round| config(directory.path(), round),
        is_in_effect: |round, config: &Config| {
            (config.max_candidates, config.rx.peer_rate) == (100 + round as usize, round)
        },
        beside: || {
            let number = fetches.fetch_add(1, Relaxed);
            let sets = vec![Bytes::from(format!(r#"{{"keys":[],"number":{number}}}"#))];
            live.rederive(|now| {
                let verification = now.verification.with_fetched(&now.config.tokens, sets.clone())?;
                Ok::<_, String>(Derived {
                    verification,
                    ..now.derived.clone()
                })
            })
            .unwrap();
            assert_eq!(live.load().verification.fetched(), sets, "a reload undid it");
        },
        load,
    }
    .run(&running);
    assert!(fetches.into_inner() > 1);
    let count = |event| running.count(event) as u32;
    let registered = bindings.into_inner();
    assert!(registered > 0);
    assert_eq!(count(crate::Event::Registered), registered);
    assert_eq!(count(crate::Event::Deregistered), registered / 2);
    assert_eq!(running.switches.work().1, 0, "no request has failed");
    running.stop().unwrap();
}
