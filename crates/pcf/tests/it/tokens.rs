//! Access tokens: which ones open a service; mutual TLS; consumers that send too much.

use std::sync::Arc;

use http::{Method, StatusCode};
use sbi::Body;
use sbi::client::{Client, ClientConfig, SendOptions};
use sbi::oauth::SigningKey;
use serde_json::{Value, json};
use testpeer::sbi::request;
use tls::authority::Authority;

use crate::support::{Got, Pcf, SM_POLICIES, context, local, start};

const NRF: &str = "4947a69a-f61b-4bc1-b9da-47c9c5d14b64";

fn token(key: &SigningKey, change: &Value) -> String {
    let mut claims = json!({"iss": NRF, "sub": "6f1c7a52-0000-4000-8000-000000000001", "aud": "PCF",
        "scope": "npcf-smpolicycontrol", "exp": 4_000_000_000_u64});
    for (name, value) in change.as_object().unwrap() {
        claims[name] = value.clone();
    }
    key.sign(&claims).unwrap()
}

async fn create(pcf: &Pcf, token: &str) -> Got {
    let mut request = request(
        Method::POST,
        SM_POLICIES,
        "application/json",
        context(&json!({})).to_string(),
    );
    let bearer = format!("Bearer {token}").parse().unwrap();
    request.headers_mut().insert("authorization", bearer);
    crate::support::judged(&pcf.client, &pcf.origin, request).await
}

#[test]
fn a_valid_token_opens_its_service_and_nothing_else_does() {
    local(async {
        let files = tempfile::tempdir().unwrap();
        let nrf = SigningKey::generate("k1").unwrap().0;
        let stranger = SigningKey::generate("k1").unwrap().0;
        let path = files.path().join("keys.json");
        std::fs::write(&path, json!({"keys": [nrf.jwk()]}).to_string()).unwrap();
        let pcf = start(|config| {
            config.tokens.required = true;
            config.tokens.key_sets = vec![path.clone()];
            config.tokens.issuers = vec![NRF.to_owned()];
        });
        let closed = pcf.post(SM_POLICIES, &context(&json!({}))).await;
        assert_eq!(closed.status, StatusCode::UNAUTHORIZED);
        assert!(closed.header("www-authenticate").starts_with("Bearer"));
        let opened = create(&pcf, &token(&nrf, &json!({}))).await;
        assert_eq!(opened.status, StatusCode::CREATED, "{}", opened.json);
        for (change, status) in [
            (json!({"scope": "npcf-am-policy-control"}), StatusCode::FORBIDDEN),
            (json!({"aud": "BSF"}), StatusCode::UNAUTHORIZED),
            (json!({"exp": 1}), StatusCode::UNAUTHORIZED),
            (json!({"iss": "another"}), StatusCode::UNAUTHORIZED),
        ] {
            let got = create(&pcf, &token(&nrf, &change)).await;
            assert_eq!(got.status, status, "{change}: {}", got.json);
        }
        for forged in [token(&stranger, &json!({})), "x".to_owned()] {
            assert_eq!(create(&pcf, &forged).await.status, StatusCode::UNAUTHORIZED);
        }
        assert_eq!(pcf.running().count(pcf::Event::Denied), 7);
        let held = pcf.running().repository().of_supi("imsi-001010000000001");
        assert_eq!(held.await.unwrap().len(), 1, "what was refused has no effect");
    });
}

#[test]
fn mutual_tls_admits_known_consumers_alone() {
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
        let pcf = start(|config| config.tls = Some(tls));
        let port = pcf.running().addresses()[0].port();
        let origin = format!("https://localhost:{port}").parse().unwrap();
        let smf = authority.issue(&["smf.example"]).unwrap();
        for (identity, welcome) in [(Some(&smf), true), (None, false)] {
            let tls = authority.material(identity, false).client(tls::HTTP2).unwrap();
            let client = Client::new(Arc::new(ClientConfig::default()), Some(tls));
            let get = http::Request::get(SM_POLICIES).body(Body::empty()).unwrap();
            let got = client.send(&origin, get, SendOptions::default()).await;
            let answered = got.is_ok_and(|got| got.status() == StatusCode::METHOD_NOT_ALLOWED);
            assert_eq!(answered, welcome);
        }
    });
}

#[test]
fn a_consumer_that_floods_limits_itself() {
    local(async {
        let pcf = start(|config| {
            config.overload.enabled = true;
            config.overload.consumer_rate = 10;
        });
        let ask = async |agent: &str| {
            let mut request = request(Method::GET, &format!("{SM_POLICIES}/7"), "", "");
            let agent = agent.parse().unwrap();
            request.headers_mut().insert("user-agent", agent);
            crate::support::judged(&pcf.client, &pcf.origin, request).await
        };
        let mut limited = 0;
        for _ in 0..200 {
            let got = ask("SMF-flood").await;
            if got.status == StatusCode::TOO_MANY_REQUESTS {
                assert_eq!(got.cause(), "NF_CONGESTION_RISK");
                limited += 1;
            }
        }
        assert!(limited > 0);
        assert_eq!(ask("AMF-quiet").await.status, StatusCode::NOT_FOUND);
        assert_eq!(pcf.running().count(pcf::Event::ConsumerLimited), limited);
    });
}
