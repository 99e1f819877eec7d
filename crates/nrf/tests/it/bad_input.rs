//! What strangers send: never a panic, never a 5xx for their fault, always problem details.

use http::{Method, StatusCode};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use serde_json::json;

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
            (json!({"priority": "x"}), "MANDATORY_IE_INCORRECT", "/priority"),
            (
                json!({"ipv4Addresses": [""]}),
                "MANDATORY_IE_INCORRECT",
                "/ipv4Addresses/0",
            ),
            (
                json!({"plmnList": [{"mcc": "1", "mnc": "01"}]}),
                "MANDATORY_IE_INCORRECT",
                "/plmnList/0/mcc",
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
        let mut random = StdRng::seed_from_u64(29_510);
        for round in 0..10_000 {
            let (method, path, kind, body) = match round % 5 {
                0 => (
                    Method::PUT,
                    instance.clone(),
                    "application/json",
                    mutated(&whole, &mut random),
                ),
                1 => (
                    Method::POST,
                    "/nnrf-nfm/v1/subscriptions".to_owned(),
                    "application/json",
                    mutated(&subscription, &mut random),
                ),
                2 => (
                    Method::PATCH,
                    instance.clone(),
                    "application/json-patch+json",
                    mutated(&patch, &mut random),
                ),
                3 => (
                    Method::POST,
                    "/oauth2/token".to_owned(),
                    "application/x-www-form-urlencoded",
                    mutated(&form, &mut random),
                ),
                _ => {
                    let text = mutated(&query, &mut random);
                    let plain: String = text
                        .iter()
                        .map(|b| *b as char)
                        .filter(|c| c.is_ascii_graphic() && !"\"<>#\\^`{|}".contains(*c))
                        .collect();
                    (
                        Method::GET,
                        format!("/nnrf-disc/v1/nf-instances?{plain}"),
                        "",
                        Vec::new(),
                    )
                }
            };
            let shown = String::from_utf8_lossy(&body).into_owned();
            let got = nrf.ask(method.clone(), &path, kind, body).await;
            let full = got.cause() == "INSUFFICIENT_RESOURCES";
            assert!(
                !got.status.is_server_error() || full,
                "{method} {path} {shown}: {}",
                got.json
            );
            if got.status.is_client_error() && path != "/oauth2/token" {
                assert_eq!(
                    got.headers["content-type"], "application/problem+json",
                    "{method} {path} {shown}"
                );
            }
        }
    });
}

fn mutated(text: &str, random: &mut StdRng) -> Vec<u8> {
    let mut bytes = text.as_bytes().to_vec();
    for _ in 0..random.random_range(1..4) {
        let at = random
            .random_range(0..bytes.len().max(1))
            .min(bytes.len().saturating_sub(1));
        match random.random_range(0..5) {
            0 if !bytes.is_empty() => bytes[at] = random.random(),
            1 if !bytes.is_empty() => drop(bytes.remove(at)),
            2 => bytes.insert(
                at,
                *b"{}[]\",:0-\\".get(random.random_range(0..10)).unwrap_or(&b'x'),
            ),
            3 => bytes.truncate(at),
            _ => {
                let to = (at + random.random_range(0..20)).min(bytes.len());
                let piece = bytes[at..to].to_vec();
                bytes.splice(at..at, piece);
            }
        }
    }
    bytes
}
