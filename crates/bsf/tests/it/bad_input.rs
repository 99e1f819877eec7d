//! Invalid requests: no panic, no 5xx for a fault of the client, always problem details.

use http::{Method, StatusCode};
use serde_json::json;
use testpeer::sbi::{Template, mutations};

use crate::support::{binding, local, start};

#[test]
fn faults_are_told_by_pointer() {
    local(async {
        let bsf = start(|_| {});
        for (change, cause, pointer) in [
            (json!({"dnn": null}), "MANDATORY_IE_MISSING", "/dnn"),
            (
                json!({"snssai": {"sst": 256}}),
                "MANDATORY_IE_INCORRECT",
                "/snssai/sst",
            ),
            (
                json!({"snssai": {"sst": 1, "sd": "xyz"}}),
                "MANDATORY_IE_INCORRECT",
                "/snssai/sd",
            ),
            (json!({"ipv4Addr": ""}), "MANDATORY_IE_INCORRECT", "/ipv4Addr"),
            (json!({"ipv4Addr": 7}), "MANDATORY_IE_INCORRECT", "/ipv4Addr"),
            (
                json!({"ipv6Prefix": "2001:db8::"}),
                "MANDATORY_IE_INCORRECT",
                "/ipv6Prefix",
            ),
            (
                json!({"addIpv6Prefixes": ["::/0", "x/64"]}),
                "MANDATORY_IE_INCORRECT",
                "/addIpv6Prefixes/1",
            ),
            (
                json!({"macAddr48": "00:1b:21:3c:9d:f0"}),
                "MANDATORY_IE_INCORRECT",
                "/macAddr48",
            ),
            (json!({"suppFeat": "xyz"}), "MANDATORY_IE_INCORRECT", "/suppFeat"),
            (
                json!({"pcfIpEndPoints": [{"port": 70_000}]}),
                "MANDATORY_IE_INCORRECT",
                "/pcfIpEndPoints/0/port",
            ),
            (json!({"pcfFqdn": "a b"}), "MANDATORY_IE_INCORRECT", "/pcfFqdn"),
        ] {
            let got = bsf.post("pcfBindings", &binding(&change)).await;
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
        let sessions = "/nbsf-management/v1/pcfBindings";
        let one = format!("{sessions}/6f1c7a52-0000-4000-8000-000000000001");
        let merge = "application/merge-patch+json";
        let large = format!("{{\"x\":\"{}\"}}", "y".repeat(100_000));
        for (method, path, content_type, body, status) in [
            (Method::POST, sessions, "application/json", "{", 400),
            (Method::POST, sessions, "application/json", "[]", 400),
            (Method::POST, sessions, "application/json", "\u{0}", 400),
            (Method::POST, sessions, "text/plain", "{}", 415),
            (Method::POST, sessions, "application/json", &large, 413),
            (Method::PUT, sessions, "application/json", "{}", 405),
            (Method::GET, &one, "", "", 405),
            (Method::PATCH, &one, merge, "{}", 404),
            (Method::PATCH, &one, merge, "[]", 404),
            (Method::PATCH, &one, "application/json", "{}", 415),
            (Method::DELETE, "/nbsf-management/v1/pcfBindings/x", "", "", 404),
            (
                Method::DELETE,
                "/nbsf-management/v1/pcfBindings/x/y/z",
                "",
                "",
                404,
            ),
            (Method::GET, "/nbsf-management/v1/pcfBindings", "", "", 400),
            (
                Method::GET,
                "/nbsf-management/v1/pcfBindings?dnn=internet",
                "",
                "",
                400,
            ),
            (
                Method::GET,
                "/nbsf-management/v1/pcfBindings?ipv4Addr=",
                "",
                "",
                400,
            ),
            (
                Method::GET,
                "/nbsf-management/v1/pcfBindings?ipv6Prefix=2001:db8::1",
                "",
                "",
                400,
            ),
            (
                Method::GET,
                "/nbsf-management/v1/pcfBindings?supi=a&snssai=1",
                "",
                "",
                400,
            ),
            (
                Method::GET,
                "/nbsf-management/v1/pcfBindings?supi=%ff",
                "",
                "",
                400,
            ),
            (
                Method::GET,
                "/nbsf-management/v1/pcf-mbs-bindings?mbs-session-id=7",
                "",
                "",
                400,
            ),
            (Method::GET, "/nbsf-management/v2/pcfBindings", "", "", 400),
            (Method::GET, "/", "", "", 404),
        ] {
            let got = bsf.ask(method.clone(), path, content_type, body.to_owned()).await;
            assert_eq!(got.status.as_u16(), status, "{method} {path}: {}", got.json);
            assert_eq!(got.headers["content-type"], "application/problem+json");
        }
        let path = bsf.path(&bsf.post("pcfBindings", &binding(&json!({}))).await);
        for (patch, status) in [
            (json!({"dnn": "ims"}), 403),
            (json!({"pcfFqdn": null}), 400),
            (json!({"ipv4Addr": "x"}), 400),
            (json!([]), 400),
            (json!({"laterMember": 1}), 200),
        ] {
            let got = bsf.ask(Method::PATCH, &path, merge, patch.to_string()).await;
            assert_eq!(got.status.as_u16(), status, "{patch}: {}", got.json);
        }
    });
}

/// Unknown members are kept, so each patch could add one.
#[test]
fn patches_do_not_make_a_binding_grow_for_ever() {
    local(async {
        let bsf = start(|config| config.max_body_size = settings::ByteSize::kib(4));
        let path = bsf.path(&bsf.post("pcfBindings", &binding(&json!({}))).await);
        let merge = "application/merge-patch+json";
        let mut refused = None;
        for number in 0..20 {
            let patch = json!({format!("later{number}"): "x".repeat(500)});
            let got = bsf.ask(Method::PATCH, &path, merge, patch.to_string()).await;
            if got.status != StatusCode::OK {
                refused = Some((number, got.status));
                break;
            }
        }
        let (number, status) = refused.expect("20 times 500 bytes are more than 4 KiB");
        assert!(number >= 2, "{number}");
        assert_eq!(status, StatusCode::PAYLOAD_TOO_LARGE);
        let smaller = json!({"later0": null}).to_string();
        assert_eq!(
            bsf.ask(Method::PATCH, &path, merge, smaller).await.status,
            StatusCode::OK
        );
    });
}

/// Ten thousand random mutations of valid requests.
#[test]
fn mutations_of_valid_requests_are_answered() {
    local(async {
        let mut bsf = start(|_| {});
        // Some mutations are accepted, and given back as they came.
        bsf.judged = false;
        let whole = binding(&json!({"ipv6Prefix": "2001:db8::/64", "addIpv6Prefixes": ["2001:db8:1::/64"],
            "macAddr48": "00-1b-21-3c-9d-f0", "ipv4FrameRouteList": ["192.0.2.0/24"], "paraCom": {"supi": "imsi-1"},
            "recoveryTime": "2026-01-01T00:00:00Z", "pcfIpEndPoints": [{"ipv4Address": "192.0.2.1", "port": 80}]}))
        .to_string();
        let ue = json!({"supi": "imsi-1", "pcfForUeFqdn": "pcf1.example.org"}).to_string();
        let mbs = json!({"mbsSessionId": {"tmgi": {"mbsServiceId": "00000A", "plmnId": {"mcc": "001", "mnc": "01"}}},
            "pcfFqdn": "pcf1.example.org"})
        .to_string();
        let subscription =
            json!({"events": ["PCF_UE_BINDING_REGISTRATION"], "notifUri": "http://127.0.0.1:9/x",
            "notifCorreId": "c", "supi": "imsi-none", "snssaiDnnPairs": {"dnn": "ims", "snssai": {"sst": 1}}})
            .to_string();
        let patch = json!({"ipv4Addr": null, "pcfFqdn": "pcf2.example.org"}).to_string();
        let query =
            "ipv4Addr=10.0.0.1&ipv6Prefix=2001:db8::1/128&snssai=%7B%22sst%22%3A1%7D&supi=imsi-1&supp-feat=7";
        let path = bsf.path(&bsf.post("pcfBindings", &binding(&json!({}))).await);
        let root = "/nbsf-management/v1";
        let json = "application/json";
        let create =
            |resource: &str, body| Template::body(Method::POST, &format!("{root}/{resource}"), json, body);
        let templates = vec![
            create("pcfBindings", whole),
            Template::body(Method::PATCH, &path, "application/merge-patch+json", patch),
            create("pcf-ue-bindings", ue),
            create("pcf-mbs-bindings", mbs),
            create("subscriptions", subscription),
            Template::query(&format!("{root}/pcfBindings"), query),
        ];
        for damaged in mutations(templates, 10_000, 29_521) {
            let shown = damaged.to_string();
            let got = bsf
                .ask(damaged.method, &damaged.path, damaged.content_type, damaged.body)
                .await;
            assert!(!got.status.is_server_error(), "{shown}: {}", got.json);
            if got.status.is_client_error() {
                assert_eq!(got.header("content-type"), "application/problem+json", "{shown}");
            }
        }
    });
}

/// TS 29.500 table 5.2.7.2-1, RFC 9110 §10.2.1.
#[test]
fn what_the_table_of_resources_lacks_is_refused_by_name() {
    local(async {
        let bsf = start(|_| {});
        let id = "00000000000000000000000000000001";
        for (method, path, status, cause, allow) in [
            (Method::PUT, "v1/pcfBindings", 405, "", "GET, POST"),
            (Method::GET, "v1/pcf-ue-bindings/{id}", 405, "", "DELETE, PATCH"),
            (Method::PATCH, "v1/subscriptions/{id}", 405, "", "DELETE, PUT"),
            (
                Method::GET,
                "v1/pcfBindings/",
                404,
                "RESOURCE_URI_STRUCTURE_NOT_FOUND",
                "",
            ),
            (
                Method::DELETE,
                "v1/pcfBindings/{id}/more",
                404,
                "RESOURCE_URI_STRUCTURE_NOT_FOUND",
                "",
            ),
            (
                Method::GET,
                "v1/pcfBinding",
                404,
                "RESOURCE_URI_STRUCTURE_NOT_FOUND",
                "",
            ),
            (Method::GET, "v2/pcfBindings", 400, "INVALID_API", ""),
            (
                Method::GET,
                "/nbsf-managment/v1/pcfBindings",
                400,
                "INVALID_API",
                "",
            ),
            (
                Method::DELETE,
                "v1/pcfBindings/{id}",
                404,
                "RESOURCE_NOT_FOUND",
                "",
            ),
            // Encoded letters are letters (RFC 3986 §6.2.2.2).
            (Method::PUT, "%761/pcf%42indings", 405, "", "GET, POST"),
        ] {
            let path = match path.starts_with('/') {
                true => path.to_owned(),
                false => format!("/nbsf-management/{}", path.replace("{id}", id)),
            };
            let got = bsf.ask(method.clone(), &path, "application/json", "{}").await;
            assert_eq!(
                (got.status.as_u16(), got.cause()),
                (status, cause),
                "{method} {path}"
            );
            let allowed = got
                .headers
                .get("allow")
                .map_or("", |value| value.to_str().unwrap());
            assert_eq!(allowed, allow, "{method} {path}");
            assert!(got.header("server").starts_with("BSF-"), "{method} {path}");
        }
    });
}

/// Who has no token does not learn which resources there are.
#[test]
fn a_path_of_a_protected_service_needs_a_token_whatever_it_names() {
    local(async {
        let bsf = start(|config| {
            config.tokens.required = true;
            config.tokens.issuers = vec!["4947a69a-f61b-4bc1-b9da-47c9c5d14b64".to_owned()];
        });
        for path in [
            "v1/pcfBindings?supi=imsi-1",
            "v1/nothing",
            "v2/pcfBindings",
            "v1/pcfBindings/7",
        ] {
            let got = bsf.get(&format!("/nbsf-management/{path}")).await;
            assert_eq!(got.status, StatusCode::UNAUTHORIZED, "{path}");
        }
        assert_eq!(bsf.get("/elsewhere/v1/x").await.status, StatusCode::BAD_REQUEST);
    });
}
