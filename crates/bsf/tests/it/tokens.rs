//! Access tokens: what opens the service, and what does not; mutual TLS.

use std::sync::Arc;
use std::time::Duration;

use http::StatusCode;
use sbi::Body;
use sbi::client::{Client, ClientConfig, SendOptions};
use sbi::oauth::SigningKey;
use serde_json::{Value, json};
use testpeer::sbi::Server;
use tls::authority::Authority;

use crate::support::{Bsf, Got, local, start};

const NRF: &str = "4947a69a-f61b-4bc1-b9da-47c9c5d14b64";
const PATH: &str = "/nbsf-management/v1/pcfBindings?supi=imsi-1";

fn key(id: &str) -> (SigningKey, String) {
    let key = SigningKey::generate(id).unwrap().0;
    let set = json!({"keys": [key.jwk()]}).to_string();
    (key, set)
}

fn token(key: &SigningKey, change: Value) -> String {
    let mut claims = json!({"iss": NRF, "sub": "6f1c7a52-0000-4000-8000-000000000001", "aud": "BSF",
        "scope": "nbsf-management", "exp": 4_000_000_000_u64});
    for (name, value) in change.as_object().unwrap() {
        claims[name] = value.clone();
    }
    key.sign(&claims).unwrap()
}

async fn ask(bsf: &Bsf, token: &str) -> Got {
    let request = http::Request::get(PATH).header("authorization", format!("Bearer {token}"));
    bsf.send(request.body(Body::empty()).unwrap()).await
}

#[test]
fn a_valid_token_opens_the_service_and_nothing_else_does() {
    local(async {
        let files = tempfile::tempdir().unwrap();
        let (nrf, set) = key("k1");
        let (stranger, _) = key("k1");
        let path = files.path().join("keys.json");
        std::fs::write(&path, set).unwrap();
        let bsf = start(|config| {
            config.tokens.required = true;
            config.tokens.key_sets = vec![path.clone()];
            config.tokens.issuers = vec![NRF.to_owned()];
        });
        let closed = bsf.get(PATH).await;
        assert_eq!(closed.status, StatusCode::UNAUTHORIZED);
        let challenge = closed.headers["www-authenticate"].to_str().unwrap();
        assert!(challenge.starts_with("Bearer"), "{challenge}");
        assert_eq!(
            ask(&bsf, &token(&nrf, json!({}))).await.status,
            StatusCode::NO_CONTENT
        );
        let own = bsf
            .running
            .as_ref()
            .unwrap()
            .handle()
            .live()
            .load()
            .config
            .nf_instance_id
            .clone();
        assert_eq!(
            ask(&bsf, &token(&nrf, json!({"aud": [own]}))).await.status,
            StatusCode::NO_CONTENT
        );
        for (change, status) in [
            (json!({"scope": "nnrf-disc"}), StatusCode::FORBIDDEN),
            (json!({"aud": "PCF"}), StatusCode::UNAUTHORIZED),
            (json!({"exp": 1}), StatusCode::UNAUTHORIZED),
            (json!({"iss": "another"}), StatusCode::UNAUTHORIZED),
        ] {
            let got = ask(&bsf, &token(&nrf, change.clone())).await;
            assert_eq!(got.status, status, "{change}: {}", got.json);
        }
        for forged in [token(&stranger, json!({})), "x".to_owned(), String::new()] {
            assert_eq!(ask(&bsf, &forged).await.status, StatusCode::UNAUTHORIZED);
        }
        assert_eq!(bsf.running.as_ref().unwrap().count(bsf::Event::Denied), 8);
    });
}

#[test]
fn key_sets_are_fetched_and_follow_the_nrf() {
    local(async {
        let ((old, first), (new, second)) = (key("k1"), key("k2"));
        let publisher = Server::start(move |_| sbi::json::response_of(StatusCode::OK, first.clone()));
        let uri = format!("{}/oauth2/jwks", publisher.root());
        let bsf = start(|config| {
            config.tokens.required = true;
            config.tokens.key_set_uris = vec![uri];
            config.tokens.refresh = settings::Period::from_millis(300);
        });
        let accepts = async |key| {
            while ask(&bsf, &token(key, json!({}))).await.status != StatusCode::NO_CONTENT {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        };
        accepts(&old).await;
        publisher.answers(move |_| sbi::json::response_of(StatusCode::OK, second.clone()));
        accepts(&new).await;
        assert_eq!(
            ask(&bsf, &token(&old, json!({}))).await.status,
            StatusCode::UNAUTHORIZED
        );
    });
}

#[test]
fn mutual_tls_lets_only_known_consumers_in() {
    local(async {
        let files = tempfile::tempdir().unwrap();
        let authority = Authority::new("lab").unwrap();
        let own = authority.issue(&["localhost"]).unwrap();
        let write = |name: &str, text: &str| {
            let path = files.path().join(name);
            std::fs::write(&path, text).unwrap();
            path
        };
        let tls = sbi::tls::TlsFiles {
            certificate: write("cert.pem", &own.certificate),
            key: write("key.pem", &own.key),
            authorities: Some(write("ca.pem", authority.pem())),
            require_client_certificate: Some(true),
            ..Default::default()
        };
        let bsf = start(|config| config.tls = Some(tls));
        let port = bsf.running.as_ref().unwrap().addresses()[0].port();
        let origin = format!("https://localhost:{port}").parse().unwrap();
        let get = || http::Request::get(PATH).body(Body::empty()).unwrap();
        let pcf = authority.issue(&["pcf.example"]).unwrap();
        for (identity, welcome) in [(Some(&pcf), true), (None, false)] {
            let tls = authority.material(identity, false).client(tls::HTTP2).unwrap();
            let client = Client::new(Arc::new(ClientConfig::default()), Some(tls));
            let got = client.send(&origin, get(), SendOptions::default()).await;
            assert_eq!(
                got.is_ok_and(|got| got.status() == StatusCode::NO_CONTENT),
                welcome
            );
        }
    });
}

#[test]
fn a_binding_that_names_its_pcf_is_made_by_that_pcf() {
    const PCF: &str = "6f1c7a52-0000-4000-8000-000000000001";
    const OTHER: &str = "6f1c7a52-0000-4000-8000-000000000002";
    local(async {
        let files = tempfile::tempdir().unwrap();
        let (nrf, set) = key("k1");
        let path = files.path().join("keys.json");
        std::fs::write(&path, set).unwrap();
        let bsf = start(|config| {
            config.tokens.required = true;
            config.tokens.key_sets = vec![path.clone()];
        });
        let send = async |subject: &str, method: http::Method, path: &str, kind: &str, body: Value| {
            let request = http::Request::builder()
                .method(method)
                .uri(path)
                .header("content-type", kind)
                .header(
                    "authorization",
                    format!("Bearer {}", token(&nrf, json!({"sub": subject}))),
                );
            bsf.send(request.body(Body::from(body.to_string())).unwrap())
                .await
        };
        let binding = json!({"supi": "imsi-1", "ipv4Addr": "10.0.0.1", "dnn": "internet", "snssai": {"sst": 1},
            "pcfFqdn": "pcf.test", "pcfId": PCF});
        let all = "/nbsf-management/v1/pcfBindings";
        let post = async |subject| {
            send(
                subject,
                http::Method::POST,
                all,
                "application/json",
                binding.clone(),
            )
            .await
        };
        assert_eq!(post(OTHER).await.status, StatusCode::FORBIDDEN);
        assert_eq!(
            ask(&bsf, &token(&nrf, json!({}))).await.status,
            StatusCode::NO_CONTENT,
            "what was refused has no effect"
        );
        let made = post(&PCF.to_uppercase()).await;
        assert_eq!(made.status, StatusCode::CREATED, "{}", made.json);
        let uri: http::Uri = made.headers["location"].to_str().unwrap().parse().unwrap();
        let patch = async |subject, pcf: &str| {
            let body = json!({"pcfId": pcf});
            let kind = "application/merge-patch+json";
            send(subject, http::Method::PATCH, uri.path(), kind, body)
                .await
                .status
        };
        assert_eq!(patch(OTHER, PCF).await, StatusCode::FORBIDDEN);
        // Another PCF of the set takes over in its own name.
        assert!(patch(OTHER, OTHER).await.is_success());
        let refused = bsf.running.as_ref().unwrap().count(bsf::Event::IdentityRefused);
        assert_eq!(refused, 2);
    });
}
