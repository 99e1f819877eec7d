//! Members that stand for nothing, as real PCFs and consumers send them.

use http::{Method, StatusCode};
use serde_json::{Value, json};

use crate::support::{Bsf, binding, local, start};

/// A binding with these members, `null` included.
fn with(more: Value) -> Value {
    let mut body = binding(&json!({}));
    for (name, value) in more.as_object().unwrap().clone() {
        body[name] = value;
    }
    body
}

fn dropped(bsf: &Bsf, member: &str) -> bool {
    let text = bsf.running.as_ref().unwrap().handle().registry().render();
    let line = format!("signalbox_bsf_dropped_members_total{{member=\"{member}\"");
    text.lines().any(|one| one.starts_with(&line))
}

#[test]
fn null_and_empty_members_are_absent_and_counted() {
    local(async {
        let bsf = start(|_| {});
        for (at, (more, member)) in [
            (json!({"gpsi": null}), "/gpsi"),
            (json!({"gpsi": ""}), "/gpsi"),
            (json!({"ipDomain": ""}), "/ipDomain"),
            (json!({"macAddr48": null}), "/macAddr48"),
            (json!({"addIpv6Prefixes": []}), "/addIpv6Prefixes"),
            (
                json!({"ipv4FrameRouteList": [], "pcfIpEndPoints": null}),
                "/pcfIpEndPoints",
            ),
            (json!({"recoveryTime": "yesterday"}), "/recoveryTime"),
            (json!({"bindLevel": null, "pcfSetId": null}), "/bindLevel"),
            (json!({"snssai": {"sst": 1, "sd": null}}), "/snssai/sd"),
            (
                json!({"pcfIpEndPoints": [{"ipv4Address": "10.1.1.1", "port": null}]}),
                "/pcfIpEndPoints/*/port",
            ),
        ]
        .into_iter()
        .enumerate()
        {
            let mut body = with(more.clone());
            body["ipv4Addr"] = json!(format!("10.9.0.{at}"));
            let got = bsf.post("pcfBindings", &body).await;
            assert_eq!(got.status, StatusCode::CREATED, "{more}: {}", got.json);
            for name in more
                .as_object()
                .unwrap()
                .keys()
                .filter(|name| body[name.as_str()].is_null())
            {
                assert!(got.json.get(name).is_none(), "{more}: {}", got.json);
            }
            assert!(dropped(&bsf, member), "{member}");
        }
        let ue = json!({"supi": "imsi-1", "pcfForUeFqdn": "pcf1.example.org", "gpsi": null, "pcfForUeIpEndPoints": []});
        assert_eq!(bsf.post("pcf-ue-bindings", &ue).await.status, StatusCode::CREATED);
        let subscription = json!({"events": ["PCF_PDU_SESSION_BINDING_REGISTRATION"], "notifUri": "http://127.0.0.1:9/n",
            "notifCorreId": "1", "supi": "imsi-1", "gpsi": "", "addSnssaiDnnPairs": [], "snssaiDnnPairs": null});
        let got = bsf.post("subscriptions", &subscription).await;
        assert_eq!(got.status, StatusCode::CREATED, "{}", got.json);
        // What identifies a session, or must be there, is not guessed.
        for more in [
            json!({"dnn": null}),
            json!({"dnn": ""}),
            json!({"supi": ""}),
            json!({"ipv4Addr": ""}),
            json!({"addIpv6Prefixes": [null]}),
            json!({"snssai": null}),
        ] {
            let got = bsf.post("pcfBindings", &with(more.clone())).await;
            assert_eq!(got.status, StatusCode::BAD_REQUEST, "{more}: {}", got.json);
        }
    });
}

#[test]
fn a_patch_is_read_with_the_same_tolerance() {
    local(async {
        let bsf = start(|_| {});
        let patch = |path: String, body: Value| {
            let merge = "application/merge-patch+json";
            let bsf = &bsf;
            async move { bsf.ask(Method::PATCH, &path, merge, body.to_string()).await }
        };
        let path = bsf.path(&bsf.post("pcfBindings", &binding(&json!({}))).await);
        // A patch replaces a list whole, so its nulls remove nothing there (RFC 7396).
        let points =
            json!({"pcfIpEndPoints": [{"ipv4Address": "10.1.1.9", "ipv6Address": null, "port": 8080}]});
        let got = patch(path.clone(), points).await;
        assert_eq!(got.status, StatusCode::OK, "{}", got.json);
        let point = json!([{"ipv4Address": "10.1.1.9", "port": 8080}]);
        assert_eq!(got.json["pcfIpEndPoints"], point, "{}", got.json);
        assert!(dropped(&bsf, "/pcfIpEndPoints/*/ipv6Address"));
        let got = patch(path.clone(), json!({"addIpv6Prefixes": [], "ipDomain": ""})).await;
        assert_eq!(got.status, StatusCode::OK, "{}", got.json);
        assert!(got.json.get("addIpv6Prefixes").is_none() && got.json.get("ipDomain").is_none());
        let got = patch(path, json!({"pcfIpEndPoints": [{"ipv4Address": "10.1.1"}]})).await;
        assert_eq!(got.status, StatusCode::BAD_REQUEST, "{}", got.json);
        let strict = start(|config| config.tolerance.strict = true);
        let path = strict.path(&strict.post("pcfBindings", &binding(&json!({}))).await);
        let merge = "application/merge-patch+json";
        let body = json!({"addIpv6Prefixes": []}).to_string();
        let got = strict.ask(Method::PATCH, &path, merge, body).await;
        assert_eq!(got.status, StatusCode::BAD_REQUEST, "{}", got.json);
    });
}

#[test]
fn an_operator_may_be_strict_or_take_names_of_a_cluster() {
    local(async {
        let strict = start(|config| config.tolerance.strict = true);
        for more in [
            json!({"gpsi": null}),
            json!({"addIpv6Prefixes": []}),
            json!({"recoveryTime": "yesterday"}),
        ] {
            let got = strict.post("pcfBindings", &with(more.clone())).await;
            assert_eq!(got.status, StatusCode::BAD_REQUEST, "{more}: {}", got.json);
        }
        let name = with(json!({"pcfFqdn": "pcf", "pcfSmFqdn": "pcf.core1"}));
        assert_eq!(
            strict.post("pcfBindings", &name).await.status,
            StatusCode::BAD_REQUEST
        );
        let mut cluster = start(|config| config.tolerance.host_names = true);
        // The standard asks for a fully qualified name.
        cluster.judged = false;
        let got = cluster.post("pcfBindings", &name).await;
        assert_eq!(got.status, StatusCode::CREATED, "{}", got.json);
        assert_eq!(got.json["pcfFqdn"], "pcf");
    });
}
