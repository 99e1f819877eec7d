//! Invalid requests: no panic, no 5xx for a fault of the client, always problem details.

use http::{Method, StatusCode};
use serde_json::json;
use testpeer::sbi::{Template, mutations};

use crate::support::{UDM, id, local, profile, start};

#[test]
fn faults_are_told_by_pointer() {
    local(async {
        let nrf = start(|_| {});
        let path = format!("/nnrf-nfm/v1/nf-instances/{UDM}");
        let minimal = json!({"nfInstanceId": UDM, "nfType": "UDM", "nfStatus": "REGISTERED"});
        for (change, cause, pointer) in [
            (json!({"nfType": null}), "MANDATORY_IE_INCORRECT", "/nfType"),
            (json!({"nfStatus": 7}), "MANDATORY_IE_INCORRECT", "/nfStatus"),
            (json!({"priority": "x"}), "OPTIONAL_IE_INCORRECT", "/priority"),
            (
                json!({"ipv4Addresses": [""]}),
                "OPTIONAL_IE_INCORRECT",
                "/ipv4Addresses/0",
            ),
            (
                json!({"plmnList": [{"mcc": "1", "mnc": "01"}]}),
                "MANDATORY_IE_INCORRECT",
                "/plmnList/0/mcc",
            ),
            (
                json!({"hssInfoList": {"a": {"hssDiameterAddress": {"name": "hss.example.org", "realm": "a b"}}}}),
                "MANDATORY_IE_INCORRECT",
                "/hssInfoList/a/hssDiameterAddress/realm",
            ),
            (
                json!({"nfServices": [{}]}),
                "MANDATORY_IE_MISSING",
                "/nfServices/0/serviceInstanceId",
            ),
            (
                json!({"nfInstanceId": id(3), "ipv4Addresses": ["127.0.0.1"]}),
                "MANDATORY_IE_INCORRECT",
                "/nfInstanceId",
            ),
        ] {
            let mut body = minimal.clone();
            body.as_object_mut()
                .unwrap()
                .extend(change.as_object().unwrap().clone());
            let got = nrf
                .ask(Method::PUT, &path, "application/json", body.to_string())
                .await;
            assert_eq!(
                (got.status, got.cause()),
                (StatusCode::BAD_REQUEST, cause),
                "{change}: {}",
                got.json
            );
            let named = got.json["invalidParams"].as_array().unwrap();
            assert!(
                named.iter().any(|one| one["param"] == pointer),
                "{change}: {}",
                got.json
            );
        }
        for (method, path, content_type, body, status) in [
            (Method::PUT, &*path, "application/json", "{", 400),
            (Method::PUT, &*path, "text/plain", "{}", 415),
            (
                Method::PUT,
                "/nnrf-nfm/v1/nf-instances/not-a-uuid",
                "application/json",
                "{}",
                400,
            ),
            (Method::PATCH, &*path, "application/json-patch+json", "[]", 404),
            (
                Method::POST,
                "/nnrf-nfm/v1/subscriptions",
                "application/json",
                "[]",
                400,
            ),
            (
                Method::POST,
                "/nnrf-nfm/v1/nf-instances",
                "application/json",
                "{}",
                405,
            ),
            (Method::GET, "/nnrf-nfm/v2/nf-instances", "", "", 400),
            (Method::GET, "/", "", "", 404),
            (Method::GET, "/nnrf-nfm/v1/nothing", "", "", 404),
        ] {
            let got = nrf.ask(method.clone(), path, content_type, body).await;
            assert_eq!(
                got.status.as_u16(),
                status,
                "{method} {path} {body}: {}",
                got.json
            );
            assert_eq!(got.headers["content-type"], "application/problem+json");
        }
    });
}

/// Ten thousand random mutations of valid requests.
#[test]
fn mutations_of_valid_requests_are_answered() {
    local(async {
        let nrf = start(|_| {});
        let whole = profile(UDM, "UDM", "nudm-sdm", &json!({
            "udmInfo": {"groupId": "g", "supiRanges": [{"start": "1", "end": "5"}]}, "plmnList": [{"mcc": "001", "mnc": "01"}],
            "sNssais": [{"sst": 1, "sd": "000001"}], "allowedNfTypes": ["AMF"], "nfSetIdList": ["set1.udmset.5gc.mnc001.mcc001"]
        }))
        .to_string();
        let subscription = json!({"nfStatusNotificationUri": "http://127.0.0.1:9/x", "reqNfType": "AMF", "subscrCond": {"nfType": "UDM"},
            "notifCondition": {"monitoredAttributes": ["/load"]}, "validityTime": "2030-01-01T00:00:00Z"}).to_string();
        let patch = json!([{"op": "replace", "path": "/priority", "value": 4}, {"op": "add", "path": "/nfServices/0/load", "value": 9}]).to_string();
        let query = "target-nf-type=UDM&requester-nf-type=AMF&supi=imsi-1&snssais=%5B%7B%22sst%22%3A1%7D%5D&service-names=a,b&limit=3&guami=%7B%7D".to_owned();
        let instance = format!("/nnrf-nfm/v1/nf-instances/{UDM}");
        let form = format!(
            "grant_type=client_credentials&nfInstanceId={UDM}&nfType=UDM&targetNfType=UDM&scope=nudm-sdm"
        );
        let json = "application/json";
        let templates = vec![
            Template::body(Method::PUT, &instance, json, whole),
            Template::body(Method::POST, "/nnrf-nfm/v1/subscriptions", json, subscription),
            Template::body(Method::PATCH, &instance, "application/json-patch+json", patch),
            Template::body(
                Method::POST,
                "/oauth2/token",
                "application/x-www-form-urlencoded",
                form,
            ),
            Template::query("/nnrf-disc/v1/nf-instances", query),
        ];
        for damaged in mutations(templates, 10_000, 29_510) {
            let shown = damaged.to_string();
            let is_token = damaged.path == "/oauth2/token";
            let got = nrf
                .ask(damaged.method, &damaged.path, damaged.content_type, damaged.body)
                .await;
            let full = got.cause() == "INSUFFICIENT_RESOURCES";
            assert!(!got.status.is_server_error() || full, "{shown}: {}", got.json);
            if got.status.is_client_error() && !is_token {
                assert_eq!(got.header("content-type"), "application/problem+json", "{shown}");
            }
        }
    });
}

/// A write that is refused because too many wait says when to try again; its sender made no mistake.
#[test]
fn a_refusal_for_want_of_room_says_when_to_try_again() {
    local(async {
        let nrf = start(|config| config.max_waiting_bytes = settings::ByteSize(10));
        let got = nrf.put(&profile(&id(1), "UDM", "nudm-sdm", &json!({}))).await;
        assert_eq!(
            (got.status, got.header("retry-after")),
            (StatusCode::SERVICE_UNAVAILABLE, "1")
        );
        let running = nrf.running.as_ref().unwrap();
        assert_eq!(running.count(nrf::Event::BadRequest), 0);
    });
}

/// TS 29.500 table 5.2.7.2-1, RFC 9110 §10.2.1.
#[test]
fn what_the_table_of_resources_lacks_is_refused_by_name() {
    local(async {
        let nrf = start(|_| {});
        let unknown = "RESOURCE_URI_STRUCTURE_NOT_FOUND";
        let no_method = "";
        for (method, path, status, cause, allow) in [
            (
                Method::POST,
                "/nnrf-nfm/v1/nf-instances/{id}",
                405,
                no_method,
                "GET, PUT, PATCH, DELETE",
            ),
            (
                Method::DELETE,
                "/nnrf-nfm/v1/nf-instances",
                405,
                no_method,
                "GET, OPTIONS",
            ),
            (Method::GET, "/nnrf-nfm/v1/subscriptions", 405, no_method, "POST"),
            (
                Method::PUT,
                "/nnrf-nfm/v1/subscriptions/7",
                405,
                no_method,
                "PATCH, DELETE",
            ),
            (Method::POST, "/nnrf-disc/v1/nf-instances", 405, no_method, "GET"),
            (
                Method::POST,
                "/nnrf-disc/v1/searches/7/complete",
                405,
                no_method,
                "GET",
            ),
            (Method::GET, "/oauth2/token", 405, no_method, "POST"),
            (Method::POST, "/bootstrapping", 405, no_method, "GET"),
            (
                Method::GET,
                "/nnrf-nfm/v1/nf-instances/{id}/nf-services",
                404,
                unknown,
                "",
            ),
            (Method::GET, "/nnrf-disc/v1/searches/7/other", 404, unknown, ""),
            (Method::GET, "/nnrf-disc/v1/nf-instance", 404, unknown, ""),
            (Method::GET, "/oauth2/keys", 404, unknown, ""),
            (Method::GET, "/nnrf-disc/v2/nf-instances", 400, "INVALID_API", ""),
            (
                Method::GET,
                "/nbsf-management/v1/pcfBindings",
                400,
                "INVALID_API",
                "",
            ),
            (
                Method::PUT,
                "/nnrf-dics/v1/nf-instances/{id}",
                400,
                "INVALID_API",
                "",
            ),
            (Method::GET, "/favicon.ico", 404, unknown, ""),
        ] {
            let path = path.replace("{id}", &id(1));
            let got = nrf.ask(method.clone(), &path, "application/json", "{}").await;
            let refusal = (got.status.as_u16(), got.cause());
            assert_eq!(refusal, (status, cause), "{method} {path}");
            let allowed = got
                .headers
                .get("allow")
                .map_or("", |value| value.to_str().unwrap());
            assert_eq!(allowed, allow, "{method} {path}");
            assert!(got.header("server").starts_with("NRF-"), "{method} {path}");
            let detail = got.json["detail"].as_str().unwrap_or_default();
            assert!(status != 405 || detail.starts_with(method.as_str()), "{detail}");
        }
    });
}
