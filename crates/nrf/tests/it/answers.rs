//! Statuses, causes and headers of answers (TS 29.500 §5.2.7.2, TS 29.510).

use http::{Method, StatusCode};
use sbi::Body;
use serde_json::json;

use crate::support::{Got, Nrf, UDM, id, local, profile, start};

fn instance(id: &str) -> String {
    format!("/nnrf-nfm/v1/nf-instances/{id}")
}

async fn put(nrf: &Nrf, path: &str, body: &serde_json::Value) -> Got {
    nrf.ask(Method::PUT, path, "application/json", body.to_string())
        .await
}

#[test]
fn causes_say_whether_a_member_could_have_been_left_out() {
    local(async {
        let nrf = start(|_| {});
        for (member, value, cause) in [
            ("capacity", json!("x"), "OPTIONAL_IE_INCORRECT"),
            (
                "udmInfo",
                json!({"supiRanges": [{"start": "x", "end": "y"}]}),
                "OPTIONAL_IE_INCORRECT",
            ),
            ("nfType", json!(7), "MANDATORY_IE_INCORRECT"),
            (
                "nfServices",
                json!([{"serviceInstanceId": 1}]),
                "MANDATORY_IE_MISSING",
            ),
            (
                "nfServices",
                json!([{"serviceInstanceId": "s", "serviceName": "nudm-sdm", "scheme": 1, "nfServiceStatus": "REGISTERED",
                    "versions": [{"apiVersionInUri": "v1", "apiFullVersion": "1.0.0"}]}]),
                "MANDATORY_IE_INCORRECT",
            ),
        ] {
            let mut wrong = profile(UDM, "UDM", "nudm-sdm", &json!({}));
            wrong[member] = value.clone();
            let got = put(&nrf, &instance(UDM), &wrong).await;
            assert_eq!(
                (got.status, &got.json["cause"]),
                (StatusCode::BAD_REQUEST, &json!(cause)),
                "{member}: {value}"
            );
        }
        let got = put(
            &nrf,
            &instance("xyz"),
            &profile(UDM, "UDM", "nudm-sdm", &json!({})),
        )
        .await;
        assert_eq!(got.json["invalidParams"][0]["param"], "{nfInstanceID}");
    });
}

#[test]
fn a_patch_that_does_not_fit_the_profile_conflicts_with_it() {
    local(async {
        let nrf = start(|_| {});
        nrf.put(&profile(UDM, "UDM", "nudm-sdm", &json!({"capacity": 100})))
            .await;
        for (patch, status) in [
            (
                json!([{"op": "replace", "path": "/priority", "value": 1}]),
                StatusCode::CONFLICT,
            ),
            (
                json!([{"op": "remove", "path": "/priority"}]),
                StatusCode::CONFLICT,
            ),
            (
                json!([{"op": "test", "path": "/capacity", "value": 7}]),
                StatusCode::CONFLICT,
            ),
            (
                json!([{"op": "add", "path": "/udmInfo/groupId", "value": "g"}]),
                StatusCode::CONFLICT,
            ),
            (
                json!([{"op": "twist", "path": "/capacity"}]),
                StatusCode::BAD_REQUEST,
            ),
            (
                json!([{"op": "replace", "path": "/capacity", "value": "x"}]),
                StatusCode::BAD_REQUEST,
            ),
            (
                json!([{"op": "test", "path": "/capacity", "value": 100.0}]),
                StatusCode::OK,
            ),
        ] {
            assert_eq!(nrf.patch(UDM, patch.clone()).await.status, status, "{patch}");
        }
    });
}

#[test]
fn what_only_requests_have_is_not_echoed() {
    local(async {
        let nrf = start(|_| {});
        let sent = profile(
            UDM,
            "UDM",
            "nudm-sdm",
            &json!({"nfProfileChangesSupportInd": true, "x": 1}),
        );
        let got = nrf.put(&sent).await;
        assert_eq!(
            (got.json.get("nfProfileChangesSupportInd"), &got.json["x"]),
            (None, &json!(1))
        );
        let subscription = json!({"nfStatusNotificationUri": "http://127.0.0.1:9/n", "reqNfType": "AMF", "requesterFeatures": "1"});
        let path = "/nnrf-nfm/v1/subscriptions";
        let got = nrf
            .ask(Method::POST, path, "application/json", subscription.to_string())
            .await;
        assert_eq!(
            (got.status, got.json.get("requesterFeatures")),
            (StatusCode::CREATED, None)
        );
        assert_eq!(got.json["nrfSupportedFeatures"], "0");
        let own = format!("{path}/{}", got.json["subscriptionId"].as_str().unwrap());
        let extend = async |until: &str| {
            let patch = json!([{"op": "replace", "path": "/validityTime", "value": until}]).to_string();
            nrf.ask(Method::PATCH, &own, "application/json-patch+json", patch)
                .await
        };
        let soon = time::OffsetDateTime::now_utc() + time::Duration::minutes(5);
        let soon = soon
            .format(&time::format_description::well_known::Rfc3339)
            .unwrap();
        assert_eq!(
            extend(&soon).await.status,
            StatusCode::NO_CONTENT,
            "granted as asked"
        );
        let shorter = extend("2999-01-01T00:00:00Z").await;
        assert_eq!(shorter.status, StatusCode::OK);
        assert_ne!(shorter.json["validityTime"], "2999-01-01T00:00:00Z");
        for pointer in ["priority", ""] {
            let mut wrong = subscription.clone();
            wrong["notifCondition"] = json!({"monitoredAttributes": [pointer]});
            let got = nrf
                .ask(Method::POST, path, "application/json", wrong.to_string())
                .await;
            assert_eq!(got.status, StatusCode::BAD_REQUEST, "{pointer:?}");
        }
    });
}

/// RFC 9110 §8.8.3, §12.5.5: each representation has a tag of its own, and says what it depends on.
#[test]
fn packed_and_plain_answers_are_two_representations() {
    local(async {
        let nrf = start(|_| {});
        for number in 1..4 {
            nrf.put(&profile(&id(number), "UDM", "nudm-sdm", &json!({})))
                .await;
        }
        let path = "/nnrf-disc/v1/nf-instances?target-nf-type=UDM&requester-nf-type=AMF";
        let ask = async |coding: &str, tag: Option<&str>| {
            let mut request = http::Request::get(path).header("accept-encoding", coding);
            if let Some(tag) = tag {
                request = request.header("if-none-match", tag);
            }
            nrf.send(request.body(Body::empty()).unwrap()).await
        };
        let (plain, packed) = (ask("identity", None).await, ask("gzip", None).await);
        assert_eq!(packed.headers["content-encoding"], "gzip");
        assert!(!plain.headers.contains_key("content-encoding"));
        let tag = |got: &Got| got.headers["etag"].to_str().unwrap().to_owned();
        assert_ne!(tag(&plain), tag(&packed));
        for (coding, got) in [("identity", &plain), ("gzip", &packed)] {
            assert_eq!(got.headers["vary"], "accept-encoding");
            let again = ask(coding, Some(&tag(got))).await;
            assert_eq!((again.status, tag(&again)), (StatusCode::NOT_MODIFIED, tag(got)));
        }
        let unknown = http::Request::put(instance(UDM))
            .header("content-type", "application/json")
            .header("content-encoding", "br")
            .body(Body::from("x"))
            .unwrap();
        let got = nrf.send(unknown).await;
        assert_eq!(got.status, StatusCode::UNSUPPORTED_MEDIA_TYPE);
        assert_eq!(got.headers["accept-encoding"], "gzip, identity");
    });
}
