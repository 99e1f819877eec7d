//! Access tokens of SCS/AS: their scope opens an API, their subject is the SCS/AS of the path.

use http::StatusCode;
use sbi::Body;
use sbi::oauth::SigningKey;
use serde_json::{Value, json};
use testpeer::sbi::send;

use crate::support::{CONFIGURATIONS, SUBSCRIPTIONS, Scef, local, start};

const ISSUER: &str = "capif.example.org";

fn token(key: &SigningKey, change: &Value) -> String {
    let mut claims = json!({"iss": ISSUER, "sub": "as1", "aud": "SCEF", "scope": "3gpp-monitoring-event",
        "exp": 4_000_000_000_u64});
    for (name, value) in change.as_object().unwrap() {
        claims[name] = value.clone();
    }
    key.sign(&claims).unwrap()
}

async fn ask(scef: &Scef, path: &str, token: &str) -> StatusCode {
    let request = http::Request::get(path).header("authorization", format!("Bearer {token}"));
    let request = request.body(Body::empty()).unwrap();
    send(&scef.api.client, &scef.api.origin, request)
        .await
        .unwrap()
        .status
}

#[test]
fn a_token_opens_one_api_for_one_scs_as() {
    local(async {
        let files = tempfile::tempdir().unwrap();
        let key = SigningKey::generate("k1").unwrap().0;
        let (stranger, path) = (
            SigningKey::generate("k1").unwrap().0,
            files.path().join("keys.json"),
        );
        std::fs::write(&path, json!({"keys": [key.jwk()]}).to_string()).unwrap();
        let scef = start(|config| {
            config.tokens.required = true;
            config.tokens.key_sets = vec![path.clone()];
            config.tokens.issuers = vec![ISSUER.to_owned()];
        });
        let own = token(&key, &json!({}));
        assert_eq!(scef.api.get(SUBSCRIPTIONS).await.status, StatusCode::UNAUTHORIZED);
        assert_eq!(ask(&scef, SUBSCRIPTIONS, &own).await, StatusCode::OK);
        assert_eq!(ask(&scef, CONFIGURATIONS, &own).await, StatusCode::FORBIDDEN);
        let nidd = token(&key, &json!({"scope": "3gpp-nidd"}));
        assert_eq!(ask(&scef, CONFIGURATIONS, &nidd).await, StatusCode::OK);
        let others = SUBSCRIPTIONS.replace("/as1/", "/as2/");
        assert_eq!(ask(&scef, &others, &own).await, StatusCode::FORBIDDEN);
        for (signer, change) in [
            (&key, json!({"exp": 1})),
            (&key, json!({"aud": "NEF"})),
            (&key, json!({"iss": "another"})),
            (&stranger, json!({})),
        ] {
            let wrong = token(signer, &change);
            assert_eq!(
                ask(&scef, SUBSCRIPTIONS, &wrong).await,
                StatusCode::UNAUTHORIZED,
                "{change}"
            );
        }
        scef.stop();
    });
}
