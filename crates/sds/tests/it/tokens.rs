//! Access tokens: one scope for provisioning, one for database processors.

use sbi::Body;
use sbi::oauth::SigningKey;
use serde_json::json;
use testpeer::sbi::send;

use crate::support::{local, start};

const ISSUER: &str = "operator.example";

#[test]
fn a_scope_opens_its_resources() {
    let files = tempfile::tempdir().unwrap();
    let key = SigningKey::generate("k1").unwrap().0;
    let path = files.path().join("keys.json");
    std::fs::write(&path, json!({"keys": [key.jwk()]}).to_string()).unwrap();
    let sds = start(|config| {
        config.tokens.required = true;
        config.tokens.key_sets = vec![path.clone()];
        config.tokens.issuers = vec![ISSUER.to_owned()];
    });
    let client = testpeer::sbi::client("DP-test");
    local(async {
        for (scope, resource, status) in [
            ("sds-journal", "/journal?after=0", 200),
            ("sds-journal", "/checkpoint", 200),
            ("sds-journal", "/records?kind=imsi", 403),
            ("sds-provisioning", "/records?kind=imsi", 200),
            ("sds-provisioning", "/subscribers/imsi/1", 404),
            ("sds-provisioning", "/checkpoint", 403),
            ("another", "/subscribers/imsi/1", 403),
        ] {
            assert_eq!(sds.api.get(resource).await.status(), 401);
            let claims =
                json!({"iss": ISSUER, "sub": "crm", "aud": "SDS", "scope": scope, "exp": 4_000_000_000_u64});
            let token = format!("Bearer {}", key.sign(&claims).unwrap());
            let request = http::Request::get(resource).header("authorization", token);
            let request = request.body(Body::empty()).unwrap();
            let got = send(&client, &sds.api.origin, request).await.unwrap();
            assert_eq!(got.status, status, "{scope} {resource}");
        }
    });
    sds.stop();
}
