//! Settings that change while requests come in.

use std::cell::Cell;
use std::path::{Path, PathBuf};

use http::{Method, StatusCode};
use sbi::Body;
use serde_json::json;

use crate::support::{Nrf, config, id, local, profile, start};

#[test]
fn changed_settings_take_effect_and_mistakes_change_nothing() {
    local(async {
        let nrf = start(|_| {});
        for number in 0..5 {
            let put = nrf
                .put(&profile(&id(number), "UDM", "nudm-sdm", &json!({})))
                .await;
            assert_eq!(put.status, StatusCode::CREATED);
        }
        let query = "target-nf-type=UDM&requester-nf-type=AMF";
        assert_eq!(nrf.found(query).await.len(), 5);
        let running = nrf.running.as_ref().unwrap();
        let mut wanted = config(nrf.directory.path());
        wanted.discovery.max_profiles = 2;
        wanted.max_profiles = 5;
        running.reload(&wanted).unwrap();
        assert_eq!(nrf.found(query).await.len(), 2);
        let refused = nrf.put(&profile(&id(9), "UDM", "nudm-sdm", &json!({}))).await;
        assert_eq!(refused.cause(), "INSUFFICIENT_RESOURCES");

        wanted.discovery.max_profiles = 1;
        wanted.tokens.signing_keys = vec!["/there/is/no/such/key.pem".into()];
        let reason = running.reload(&wanted).unwrap_err();
        assert!(reason.contains("key.pem"), "{reason}");
        assert_eq!(nrf.found(query).await.len(), 2);
    });
}

/// Makes a signing key; `None` where there is no `openssl`.
fn signing_key(folder: &Path, name: &str) -> Option<PathBuf> {
    let file = folder.join(name);
    let mut openssl = std::process::Command::new("openssl");
    openssl.args([
        "genpkey",
        "-algorithm",
        "EC",
        "-pkeyopt",
        "ec_paramgen_curve:P-256",
        "-out",
    ]);
    let made = testpeer::skip::output(openssl.arg(&file))?;
    assert!(made.status.success(), "{made:?}");
    Some(file)
}

async fn bearer(nrf: &Nrf, number: u32, scope: &str) -> String {
    let form = format!(
        "grant_type=client_credentials&nfInstanceId={}&nfType=AMF&targetNfType=NRF&scope={scope}",
        id(number)
    );
    let got = nrf
        .ask(
            Method::POST,
            "/oauth2/token",
            "application/x-www-form-urlencoded",
            form,
        )
        .await;
    format!("Bearer {}", got.json["access_token"].as_str().unwrap())
}

/// Each reload changes a setting and the key that signs; tokens of the key before stay good, and no request, registration
/// or update is lost.
#[test]
fn a_hundred_reloads_beside_changed_keys_lose_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let Some(keys) = ["a.pem", "b.pem"]
        .map(|name| signing_key(folder.path(), name))
        .into_iter()
        .collect::<Option<Vec<_>>>()
    else {
        return;
    };
    local(async {
        let settings = |config: &mut nrf::Config| {
            config.tokens.protect_own_services = true;
            config.tokens.require_registration = false;
            config.tokens.signing_keys.clone_from(&keys);
        };
        let nrf = start(settings);
        let (done, registered) = (Cell::new(false), Cell::new(0_u32));
        let with_token = async |method: Method, path: &str, token: &str, body: String| {
            let request = http::Request::builder().method(&method).uri(path);
            let request = request.header("authorization", token);
            let request = request.header(
                "content-type",
                match method {
                    Method::PATCH => "application/json-patch+json",
                    _ => "application/json",
                },
            );
            nrf.send(request.body(Body::from(body)).unwrap()).await
        };
        let register = async |lane: u32| {
            let mut number = 100 + lane;
            while !done.get() {
                let token = bearer(&nrf, number, "nnrf-nfm").await;
                let path = format!("/nnrf-nfm/v1/nf-instances/{}", id(number));
                let udm = profile(&id(number), "UDM", "nudm-sdm", &json!({"capacity": 1}));
                let put = with_token(Method::PUT, &path, &token, udm.to_string()).await;
                assert_eq!(put.status, StatusCode::CREATED, "{}", put.json);
                let change = json!([{"op": "replace", "path": "/capacity", "value": number % 100}]);
                let patched = with_token(Method::PATCH, &path, &token, change.to_string()).await;
                assert_eq!(patched.status, StatusCode::OK, "{}", patched.json);
                registered.set(registered.get() + 1);
                number += 4;
            }
            number
        };
        let discover = async || {
            let token = bearer(&nrf, 1, "nnrf-disc").await;
            let path = "/nnrf-disc/v1/nf-instances?target-nf-type=UDM&requester-nf-type=AMF";
            while !done.get() {
                let found = with_token(Method::GET, path, &token, String::new()).await;
                assert_eq!(found.status, StatusCode::OK, "{}", found.json);
            }
        };
        let reloads = async {
            let mut next = config(nrf.directory.path());
            settings(&mut next);
            for round in 0..100 {
                next.discovery.max_profiles = 5 + round;
                next.tokens.signing_keys.reverse();
                nrf.running.as_ref().unwrap().reload(&next).unwrap();
                let before = registered.get();
                while registered.get() < before + 2 {
                    tokio::time::sleep(std::time::Duration::from_millis(1)).await;
                }
            }
            done.set(true);
        };
        let lanes = futures_util::future::join_all((0..4).map(register));
        let (ends, (), (), ()) = tokio::join!(lanes, discover(), discover(), reloads);
        let token = bearer(&nrf, 1, "nnrf-nfm").await;
        for (lane, end) in (0_u32..).zip(ends) {
            for number in (100 + lane..end).step_by(4) {
                let path = format!("/nnrf-nfm/v1/nf-instances/{}", id(number));
                let got = with_token(Method::GET, &path, &token, String::new()).await;
                assert_eq!(
                    (got.status, &got.json["capacity"]),
                    (StatusCode::OK, &json!(number % 100))
                );
            }
        }
    });
}
