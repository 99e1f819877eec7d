//! Access tokens: who gets one, and what it opens.

use http::{Method, StatusCode};
use sbi::Body;
use serde_json::{Value, json};

use crate::support::{Got, Nrf, UDM, id, local, profile, start};

const FORM: &str = "application/x-www-form-urlencoded";

async fn token(nrf: &Nrf, form: &str) -> Got {
    nrf.ask(Method::POST, "/oauth2/token", FORM, form.to_owned())
        .await
}

fn claims(token: &Value) -> Value {
    use base64::Engine as _;
    let part = token.as_str().unwrap().split('.').nth(1).unwrap();
    serde_json::from_slice(
        &base64::engine::general_purpose::URL_SAFE_NO_PAD
            .decode(part)
            .unwrap(),
    )
    .unwrap()
}

#[test]
fn tokens_are_for_the_registered_and_for_what_is_offered() {
    local(async {
        let nrf = start(|config| {
            config.tokens.auth_rules = vec![nrf::config::AuthRule {
                consumers: vec!["SMF".into()],
                producers: vec!["UDM".into()],
                deny: true,
                ..Default::default()
            }];
        });
        nrf.put(&profile(UDM, "UDM", "nudm-sdm", &json!({}))).await;
        nrf.put(&profile(&id(1), "AMF", "namf-comm", &json!({}))).await;
        nrf.put(&profile(&id(2), "SMF", "nsmf-pdusession", &json!({})))
            .await;
        let ask = |consumer: u32, nf_type: &str, rest: &str| {
            format!(
                "grant_type=client_credentials&nfInstanceId={}&nfType={nf_type}&{rest}",
                id(consumer)
            )
        };
        let good = token(&nrf, &ask(1, "AMF", "targetNfType=UDM&scope=nudm-sdm")).await;
        assert_eq!(good.status, StatusCode::OK, "{}", good.json);
        assert_eq!(good.headers["cache-control"], "no-store");
        let held = claims(&good.json["access_token"]);
        assert_eq!(
            (&held["aud"], &held["sub"], &held["scope"]),
            (&json!("UDM"), &json!(id(1)), &json!("nudm-sdm"))
        );
        let one = token(
            &nrf,
            &ask(1, "AMF", &format!("targetNfInstanceId={UDM}&scope=nudm-sdm")),
        )
        .await;
        assert_eq!(claims(&one.json["access_token"])["aud"], json!([UDM]));
        for (form, error) in [
            (ask(1, "AMF", "targetNfType=UDM&scope=nudm-ee"), "invalid_scope"),
            (ask(1, "AMF", "targetNfType=UDR&scope=nudm-sdm"), "invalid_scope"),
            (
                ask(
                    1,
                    "AMF",
                    &format!("targetNfInstanceId={UDM}&targetNfType=AMF&scope=nudm-sdm"),
                ),
                "invalid_scope",
            ),
            (ask(1, "SMF", "targetNfType=UDM&scope=nudm-sdm"), "invalid_client"),
            (ask(3, "AMF", "targetNfType=UDM&scope=nudm-sdm"), "invalid_client"),
            (
                ask(2, "SMF", "targetNfType=UDM&scope=nudm-sdm"),
                "unauthorized_client",
            ),
            (ask(1, "AMF", "targetNfType=UDM"), "invalid_scope"),
            (ask(1, "AMF", "scope=nudm-sdm"), "invalid_request"),
            ("grant_type=password".to_owned(), "unsupported_grant_type"),
            ("%ff".to_owned(), "invalid_request"),
        ] {
            let got = token(&nrf, &form).await;
            assert_eq!(
                (got.status, got.json["error"].as_str().unwrap()),
                (StatusCode::BAD_REQUEST, error),
                "{form}"
            );
        }
    });
}

#[test]
fn a_protected_nrf_opens_to_its_own_tokens_only() {
    local(async {
        let nrf = start(|config| {
            config.tokens.protect_own_services = true;
            config.tokens.require_registration = false;
        });
        let closed = nrf.get("/nnrf-nfm/v1/nf-instances").await;
        assert_eq!(closed.status, StatusCode::UNAUTHORIZED);
        assert!(
            closed.headers["www-authenticate"]
                .to_str()
                .unwrap()
                .starts_with("Bearer")
        );
        let form = format!(
            "grant_type=client_credentials&nfInstanceId={}&nfType=AMF&targetNfType=NRF&scope=nnrf-nfm",
            id(1)
        );
        let got = token(&nrf, &form).await;
        let bearer = format!("Bearer {}", got.json["access_token"].as_str().unwrap());
        let open = |path: &str| {
            http::Request::get(path.to_owned())
                .header("authorization", &bearer)
                .body(Body::empty())
                .unwrap()
        };
        assert_eq!(
            nrf.send(open("/nnrf-nfm/v1/nf-instances")).await.status,
            StatusCode::OK
        );
        let scope = nrf
            .send(open(
                "/nnrf-disc/v1/nf-instances?target-nf-type=UDM&requester-nf-type=AMF",
            ))
            .await;
        assert_eq!(scope.status, StatusCode::FORBIDDEN);
        assert_eq!(nrf.get("/oauth2/jwks").await.json["keys"][0]["alg"], "ES256");
        assert_eq!(
            nrf.get("/bootstrapping").await.json["oauth2Required"]["nnrf-nfm"],
            true
        );
    });
}

#[test]
fn a_key_of_either_kind_is_published_and_accepted_by_the_nrf_itself() {
    for (kind, option, algorithm) in [
        ("EC", "ec_paramgen_curve:P-256", "ES256"),
        ("RSA", "rsa_keygen_bits:2048", "RS256"),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let key = folder.path().join("key.pem");
        let mut openssl = std::process::Command::new("openssl");
        openssl.args(["genpkey", "-algorithm", kind, "-pkeyopt", option, "-out"]);
        if !openssl.arg(&key).output().is_ok_and(|made| made.status.success()) {
            eprintln!("skipped: openssl is not installed");
            return;
        }
        local(async {
            let nrf = start(|config| {
                config.tokens.protect_own_services = true;
                config.tokens.signing_keys = vec![key];
            });
            let set = nrf.get("/oauth2/jwks").await.json;
            assert_eq!(set["keys"][0]["alg"], algorithm, "{set}");
            let form = format!(
                "grant_type=client_credentials&nfInstanceId={}&nfType=AMF&targetNfType=NRF&scope=nnrf-nfm",
                id(1)
            );
            let got = token(&nrf, &form).await;
            let bearer = format!("Bearer {}", got.json["access_token"].as_str().unwrap());
            let request = http::Request::get("/nnrf-nfm/v1/nf-instances").header("authorization", bearer);
            let listed = nrf.send(request.body(Body::empty()).unwrap()).await;
            assert_eq!(listed.status, StatusCode::OK, "{kind}: {}", listed.json);
        });
    }
}
