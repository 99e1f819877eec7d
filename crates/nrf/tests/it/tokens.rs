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

pub fn claims(token: &Value) -> Value {
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

/// Lists in a form are JSON, or come as a parameter for each item (TS 29.510 §6.3.5.2.2, `explode` of OpenAPI).
#[test]
fn lists_of_a_form_come_in_either_way() {
    local(async {
        let nrf = start(|_| {});
        nrf.put(&profile(
            UDM,
            "UDM",
            "nudm-sdm",
            &json!({"sNssais": [{"sst": 1}, {"sst": 2, "sd": "00000a"}]}),
        ))
        .await;
        nrf.put(&profile(&id(1), "AMF", "namf-comm", &json!({}))).await;
        let ask = format!(
            "grant_type=client_credentials&nfInstanceId={}&nfType=AMF&targetNfType=UDM&scope=nudm-sdm",
            id(1)
        );
        let two = json!(["Slice A, instance 1", "Slice B, instance 2"]);
        let slices = json!([{"sst": 1}, {"sst": 2, "sd": "00000a"}]);
        for (more, claim, expected) in [
            (
                "targetNsiList=Slice+A%2C+instance+1&targetNsiList=Slice+B%2C+instance+2",
                "producerNsiList",
                &two,
            ),
            (
                "targetNsiList=%5B%22Slice+A%2C+instance+1%22%2C%22Slice+B%2C+instance+2%22%5D",
                "producerNsiList",
                &two,
            ),
            ("targetNsiList=one", "producerNsiList", &json!(["one"])),
            ("targetNsiList=7", "producerNsiList", &json!(["7"])),
            (
                "targetSnssaiList=%5B%7B%22sst%22%3A1%7D%2C%7B%22sst%22%3A2%2C%22sd%22%3A%2200000A%22%7D%5D",
                "producerSnssaiList",
                &slices,
            ),
            (
                "targetSnssaiList=%7B%22sst%22%3A1%7D&targetSnssaiList=%7B%22sst%22%3A2%2C%22sd%22%3A%2200000a%22%7D",
                "producerSnssaiList",
                &slices,
            ),
        ] {
            let got = token(&nrf, &format!("{ask}&{more}")).await;
            assert_eq!(got.status, StatusCode::OK, "{more}: {}", got.json);
            assert_eq!(claims(&got.json["access_token"])[claim], *expected, "{more}");
        }
        for wrong in [
            "targetSnssaiList=one",
            "scope=nudm-ee",
            "requesterPlmnList=7",
            "requesterSnpnList=%7B%7D",
        ] {
            let got = token(&nrf, &format!("{ask}&{wrong}")).await;
            assert_eq!(got.json["error"], "invalid_request", "{wrong}");
        }
    });
}

/// What a consumer says of itself is held against the lists of the producer (TS 29.510 §6.3.5.2.2 NOTE 3).
#[test]
fn what_a_form_says_of_the_consumer_is_judged() {
    local(async {
        let nrf = start(|_| {});
        nrf.put(&profile(&id(1), "AMF", "namf-comm", &json!({}))).await;
        let ask = format!(
            "grant_type=client_credentials&nfInstanceId={}&nfType=AMF&targetNfType=UDM&scope=nudm-sdm",
            id(1)
        );
        for (closed, inside, outside) in [
            (
                json!({"allowedPlmns": [{"mcc": "001", "mnc": "01"}]}),
                "requesterPlmnList=[{\"mcc\":\"999\",\"mnc\":\"99\"},{\"mcc\":\"001\",\"mnc\":\"01\"}]",
                "requesterPlmnList=[{\"mcc\":\"999\",\"mnc\":\"99\"},{\"mcc\":\"999\",\"mnc\":\"98\"}]",
            ),
            (
                json!({"allowedPlmns": [{"mcc": "001", "mnc": "01"}]}),
                "requesterPlmn={\"mcc\":\"001\",\"mnc\":\"01\"}",
                "requesterPlmn={\"mcc\":\"999\",\"mnc\":\"99\"}",
            ),
            (
                json!({"allowedNfDomains": ["^.*\\.example\\.org$"]}),
                "requesterFqdn=amf.example.org",
                "requesterFqdn=amf.example.com",
            ),
            (
                json!({"allowedNssais": [{"sst": 1}]}),
                "requesterSnssaiList=[{\"sst\":1}]",
                "requesterSnssaiList=[{\"sst\":2}]",
            ),
            (
                json!({"allowedSnpns": [{"mcc": "001", "mnc": "01", "nid": "00000000001"}]}),
                "requesterSnpnList=[{\"mcc\":\"001\",\"mnc\":\"01\",\"nid\":\"00000000001\"}]",
                "requesterSnpnList=[{\"mcc\":\"001\",\"mnc\":\"01\",\"nid\":\"00000000002\"}]",
            ),
        ] {
            nrf.put(&profile(UDM, "UDM", "nudm-sdm", &closed)).await;
            let got = token(&nrf, &format!("{ask}&{inside}")).await;
            assert_eq!(got.status, StatusCode::OK, "{inside}: {}", got.json);
            let got = token(&nrf, &format!("{ask}&{outside}")).await;
            assert_eq!(
                (got.status, &got.json["error"]),
                (StatusCode::BAD_REQUEST, &json!("invalid_scope")),
                "{outside}"
            );
        }
        let source = format!("sourceNfInstanceId={}", id(7));
        nrf.put(&profile(UDM, "UDM", "nudm-sdm", &json!({}))).await;
        let got = token(&nrf, &format!("{ask}&{source}")).await;
        assert_eq!(claims(&got.json["access_token"])["sourceNfInstanceId"], id(7));
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
        let Some(made) = testpeer::skip::output(openssl.arg(&key)) else {
            return;
        };
        assert!(made.status.success(), "{made:?}");
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

/// What a consumer says of itself, in each of the ways that the form has, is judged by the lists of the producer
/// (TS 29.510 §6.3.5.2.2, TS 33.501 §13.4.1).
#[test]
fn lists_of_a_producer_judge_all_that_a_consumer_says() {
    local(async {
        let nrf = start(|_| {});
        let limits = json!({
            "plmnList": [{"mcc": "001", "mnc": "01"}],
            "allowedPlmns": [{"mcc": "001", "mnc": "02"}],
            "allowedNfDomains": ["^amf[.]example[.]com$"],
            "allowedNssais": [{"sst": 1}],
            "allowedSnpns": [{"mcc": "001", "mnc": "01", "nid": "00000000001"}]
        });
        nrf.put(&profile(UDM, "UDM", "nudm-sdm", &limits)).await;
        nrf.put(&profile(&id(1), "AMF", "namf-comm", &json!({}))).await;
        let base = format!(
            "grant_type=client_credentials&nfInstanceId={}&nfType=AMF&targetNfType=UDM&scope=nudm-sdm",
            id(1)
        );
        let plmn = |mnc: &str| format!(r#"{{"mcc":"001","mnc":"{mnc}"}}"#);
        for (more, status) in [
            (String::new(), StatusCode::OK),
            (format!("&requesterPlmn={}", plmn("01")), StatusCode::OK),
            (format!("&requesterPlmn={}", plmn("03")), StatusCode::BAD_REQUEST),
            (
                format!(
                    "&requesterPlmnList={}&requesterPlmnList={}",
                    plmn("03"),
                    plmn("04")
                ),
                StatusCode::BAD_REQUEST,
            ),
            (
                format!("&requesterPlmnList=[{},{}]", plmn("03"), plmn("02")),
                StatusCode::OK,
            ),
            ("&requesterFqdn=amf.example.com".to_owned(), StatusCode::OK),
            (
                "&requesterFqdn=other.example.com".to_owned(),
                StatusCode::BAD_REQUEST,
            ),
            ("&requesterSnssaiList={\"sst\":1}".to_owned(), StatusCode::OK),
            (
                "&requesterSnssaiList={\"sst\":2}".to_owned(),
                StatusCode::BAD_REQUEST,
            ),
            (
                "&requesterSnpnList={\"mcc\":\"001\",\"mnc\":\"01\",\"nid\":\"00000000002\"}".to_owned(),
                StatusCode::BAD_REQUEST,
            ),
        ] {
            let got = token(&nrf, &format!("{base}{more}")).await;
            assert_eq!(got.status, status, "{more}: {}", got.json);
        }
    });
}
