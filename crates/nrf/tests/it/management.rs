//! Register, change, beat, ask, leave.

use http::{Method, StatusCode};
use sbi::Body;
use serde_json::json;

use crate::support::{UDM, id, local, profile, start, until};

#[test]
fn the_life_of_a_registration() {
    local(async {
        let nrf = start(|_| {});
        let udm = profile(UDM, "UDM", "nudm-sdm", &json!({"priority": 3}));
        let created = nrf.put(&udm).await;
        assert_eq!(created.status, StatusCode::CREATED, "{}", created.json);
        let location = created.headers["location"].to_str().unwrap();
        assert_eq!(location, format!("{}/nnrf-nfm/v1/nf-instances/{UDM}", nrf.origin));
        assert_eq!(created.json["heartBeatTimer"], 30);
        assert_eq!(
            created.json["vendorExtra"], udm["vendorExtra"],
            "unknown members survive"
        );

        assert_eq!(nrf.put(&udm).await.status, StatusCode::OK);
        let beat = json!([{"op": "replace", "path": "/nfStatus", "value": "REGISTERED"}, {"op": "replace", "path": "/load", "value": 55}]);
        let beaten = nrf.patch(UDM, beat).await;
        // An answer without a profile has no entity tag of one.
        assert_eq!(
            (beaten.status, beaten.header("etag")),
            (StatusCode::NO_CONTENT, "")
        );
        let changed = nrf
            .patch(UDM, json!([{"op": "replace", "path": "/priority", "value": 9}]))
            .await;
        assert_eq!(
            (changed.status, &changed.json["priority"]),
            (StatusCode::OK, &json!(9))
        );

        let path = format!("/nnrf-nfm/v1/nf-instances/{UDM}");
        let read = nrf.get(&path).await;
        assert_eq!(
            (&read.json["load"], &read.json["priority"]),
            (&json!(55), &json!(9))
        );
        let etag = read.headers["etag"].to_str().unwrap().to_owned();
        let conditional = http::Request::get(&path)
            .header("if-none-match", &etag)
            .body(Body::empty())
            .unwrap();
        assert_eq!(nrf.send(conditional).await.status, StatusCode::NOT_MODIFIED);
        let stale = http::Request::put(&path)
            .header("if-match", "\"another\"")
            .header("content-type", "application/json")
            .body(Body::from(udm.to_string()))
            .unwrap();
        assert_eq!(nrf.send(stale).await.status, StatusCode::PRECONDITION_FAILED);

        assert_eq!(
            nrf.ask(Method::DELETE, &path, "", "").await.status,
            StatusCode::NO_CONTENT
        );
        let gone = nrf.get(&path).await;
        assert_eq!(
            (gone.status, gone.cause()),
            (StatusCode::NOT_FOUND, "RESOURCE_NOT_FOUND")
        );
        assert_eq!(
            nrf.ask(Method::DELETE, &path, "", "").await.status,
            StatusCode::NOT_FOUND
        );
    });
}

#[test]
fn lists_are_hal_and_paged() {
    local(async {
        let nrf = start(|_| {});
        for number in 0..7 {
            let nf_type = if number < 5 { "UDM" } else { "UDR" };
            nrf.put(&profile(&id(number), nf_type, "x", &json!({}))).await;
        }
        let all = nrf.get("/nnrf-nfm/v1/nf-instances").await;
        assert_eq!(all.headers["content-type"], "application/3gppHal+json");
        assert_eq!(all.json["_links"]["item"].as_array().unwrap().len(), 7);
        let page = nrf
            .get("/nnrf-nfm/v1/nf-instances?nf-type=UDM&page-number=2&page-size=2")
            .await;
        let items = page.json["_links"]["item"].as_array().unwrap();
        assert_eq!((items.len(), &page.json["totalItemCount"]), (2, &json!(5)));
        assert!(items[0]["href"].as_str().unwrap().ends_with(&id(2)));
        assert!(
            page.json["_links"]["next"]["href"]
                .as_str()
                .unwrap()
                .contains("page-number=3")
        );
        for wrong in [
            "limit=0",
            "nf-type=",
            "nf-type=UDM&nf-type=UDR",
            "page-size=2&page-number=1&page-number=2",
            "page-size=-1",
        ] {
            let got = nrf.get(&format!("/nnrf-nfm/v1/nf-instances?{wrong}")).await;
            assert_eq!(got.status, StatusCode::BAD_REQUEST, "{wrong}");
            assert_eq!(got.json["cause"], "OPTIONAL_QUERY_PARAM_INCORRECT", "{wrong}");
        }
        for right in ["nf-type=UDR&nf-type=UDR", "nf-type=UDR&later=1&later=2"] {
            let got = nrf.get(&format!("/nnrf-nfm/v1/nf-instances?{right}")).await;
            assert_eq!(got.json["totalItemCount"], 2, "{right}");
        }
        // A page leads to the next one of the same list.
        let mut path = "/nnrf-nfm/v1/nf-instances?nf-type=UDM&limit=3&page-size=2".to_owned();
        let mut seen = 0;
        loop {
            let page = nrf.get(&path).await;
            seen += page.json["_links"]["item"].as_array().unwrap().len();
            let Some(next) = page.json["_links"]["next"]["href"].as_str() else {
                break;
            };
            path = next[next.find("/nnrf-nfm").unwrap()..].to_owned();
        }
        assert_eq!(seen, 3);
        let odd = nrf
            .get("/nnrf-nfm/v1/nf-instances?nf-type=A%26B&page-size=2")
            .await;
        let first = odd.json["_links"]["first"]["href"].as_str().unwrap();
        assert!(first.ends_with("nf-type=A%26B"), "{first}");
    });
}

#[test]
fn who_is_silent_is_suspended_then_removed_and_a_beat_brings_back() {
    local(async {
        let nrf = start(|config| {
            config.heart_beat.missed = 1;
            config.heart_beat.remove_after = settings::Period::from_millis(2_500);
            config.heart_beat.audit_interval = settings::Period::from_millis(50);
        });
        let udm = profile(UDM, "UDM", "nudm-sdm", &json!({"heartBeatTimer": 1}));
        assert_eq!(nrf.put(&udm).await.json["heartBeatTimer"], 1);
        let path = format!("/nnrf-nfm/v1/nf-instances/{UDM}");
        until(async || nrf.get(&path).await.json["nfStatus"] == "SUSPENDED").await;
        assert!(
            nrf.found("target-nf-type=UDM&requester-nf-type=AMF")
                .await
                .is_empty()
        );
        let beat = json!([{"op": "replace", "path": "/nfStatus", "value": "REGISTERED"}]);
        assert_eq!(nrf.patch(UDM, beat).await.status, StatusCode::NO_CONTENT);
        assert_eq!(nrf.found("target-nf-type=UDM&requester-nf-type=AMF").await, [UDM]);
        until(async || nrf.get(&path).await.status == StatusCode::NOT_FOUND).await;
    });
}

#[test]
fn limits_and_screening_keep_out() {
    local(async {
        let nrf = start(|config| {
            config.max_profiles = 1;
            config.max_profile_size = settings::ByteSize(4_000);
            config.screening.denied_nf_types = vec!["NEF".into()];
            config.screening.allowed_networks = vec!["127.0.0.0/8".parse().unwrap()];
        });
        let denied = nrf.put(&profile(UDM, "NEF", "x", &json!({}))).await;
        assert_eq!(
            (denied.status, &denied.json["invalidParams"][0]["param"]),
            (StatusCode::FORBIDDEN, &json!("/nfType"))
        );
        let foreign = nrf
            .put(&profile(UDM, "UDM", "x", &json!({"ipv4Addresses": ["10.0.0.1"]})))
            .await;
        assert_eq!(foreign.status, StatusCode::FORBIDDEN);
        let large = nrf
            .put(&profile(UDM, "UDM", "x", &json!({"pad": "x".repeat(4_000)})))
            .await;
        assert_eq!(large.status, StatusCode::PAYLOAD_TOO_LARGE);
        assert_eq!(
            nrf.put(&profile(UDM, "UDM", "x", &json!({}))).await.status,
            StatusCode::CREATED
        );
        let full = nrf.put(&profile(&id(1), "UDM", "x", &json!({}))).await;
        assert_eq!(full.cause(), "INSUFFICIENT_RESOURCES");
    });
}
