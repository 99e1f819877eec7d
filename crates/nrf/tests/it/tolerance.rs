//! What real NFs send although it is not as the standard has it.

use http::{Method, StatusCode};
use serde_json::{Value, json};
use testpeer::sbi::{request, send};

use crate::support::{Nrf, UDM, id, local, profile, start};

async fn subscribe(nrf: &Nrf, more: Value) -> testpeer::sbi::Got {
    let mut body = json!({"nfStatusNotificationUri": "http://127.0.0.1:9/x"});
    for (name, value) in more.as_object().unwrap() {
        body[name] = value.clone();
    }
    nrf.ask(
        Method::POST,
        "/nnrf-nfm/v1/subscriptions",
        "application/json",
        body.to_string(),
    )
    .await
}

#[test]
fn null_and_empty_members_are_absent_and_counted() {
    local(async {
        let nrf = start(|_| {});
        let odd = json!({"plmnList": null, "priority": null, "customInfo": null, "nsiList": [], "sNssais": [], "fqdn": "udm.example.com"});
        let got = nrf.put(&profile(UDM, "UDM", "nudm-sdm", &odd)).await;
        assert_eq!(got.status, StatusCode::CREATED, "{}", got.json);
        for absent in ["plmnList", "priority", "customInfo", "nsiList", "sNssais"] {
            assert!(got.json.get(absent).is_none(), "{absent}: {}", got.json);
        }
        assert_eq!(got.json["vendorExtra"]["kept"], json!([1, 2.50, null]));
        let found = nrf
            .discover("target-nf-type=UDM&requester-nf-type=AMF")
            .await
            .json;
        assert!(found["nfInstances"][0].get("customInfo").is_none());
        let metrics = nrf.running.as_ref().unwrap().handle().registry().render();
        let line =
            format!("signalbox_nrf_dropped_members_total{{member=\"/nsiList\",sender=\"UDM-{UDM}\"}} 1");
        assert!(metrics.contains(&line), "{metrics}");
        let patched = nrf
            .patch(UDM, json!([{"op": "add", "path": "/capacity", "value": null}]))
            .await;
        assert_eq!(patched.status, StatusCode::OK, "{}", patched.json);
        assert!(patched.json.get("capacity").is_none());
    });
}

#[test]
fn an_operator_may_be_strict() {
    local(async {
        let nrf = start(|config| config.tolerance.strict = true);
        for (odd, place) in [
            (json!({"priority": null}), "/priority"),
            (json!({"nsiList": []}), "/nsiList"),
            (json!({"recoveryTime": "yesterday"}), "/recoveryTime"),
        ] {
            let got = nrf.put(&profile(UDM, "UDM", "nudm-sdm", &odd)).await;
            assert_eq!(
                (got.status, got.cause()),
                (StatusCode::BAD_REQUEST, "OPTIONAL_IE_INCORRECT")
            );
            assert_eq!(got.json["invalidParams"][0]["param"], place);
        }
        let got = subscribe(&nrf, json!({"validityTime": "20390531T235959"})).await;
        assert_eq!(
            (got.status, got.cause()),
            (StatusCode::BAD_REQUEST, "OPTIONAL_IE_INCORRECT")
        );
    });
}

#[test]
fn numbers_times_and_addresses_reach_consumers_as_every_library_reads_them() {
    local(async {
        let nrf = start(|_| {});
        let odd = json!({"load": 6.0, "capacity": 1e2, "ipv6Addresses": ["2001:DB8::1"], "recoveryTime": "2016-12-31T23:59:60Z"});
        assert_eq!(
            nrf.put(&profile(UDM, "UDM", "nudm-sdm", &odd)).await.status,
            StatusCode::CREATED
        );
        let load = json!([{"op": "replace", "path": "/load", "value": 7.0}]);
        assert_eq!(nrf.patch(UDM, load).await.status, StatusCode::NO_CONTENT);
        let found = nrf
            .discover("target-nf-type=UDM&requester-nf-type=AMF")
            .await
            .json;
        let found = &found["nfInstances"][0];
        assert_eq!((&found["load"], &found["capacity"]), (&json!(7), &json!(100)));
        assert_eq!(found["ipv6Addresses"], json!(["2001:db8::1"]));
        assert_eq!(found["recoveryTime"], "2016-12-31T23:59:59Z");
        let got = nrf
            .put(&profile(UDM, "UDM", "nudm-sdm", &json!({"load": 6.5})))
            .await;
        assert_eq!(
            (got.status, got.cause()),
            (StatusCode::BAD_REQUEST, "OPTIONAL_IE_INCORRECT")
        );
        assert_eq!(got.json["invalidParams"][0]["param"], "/load");
    });
}

#[test]
fn names_of_hosts_are_taken_where_the_operator_wishes() {
    local(async {
        let usual = start(|_| {});
        let wish = start(|config| config.tolerance.host_names = true);
        let mut kept = Value::Null;
        for odd in [
            json!({"fqdn": "amf"}),
            json!({"fqdn": "pcf.core1"}),
            json!({"ipv4Addresses": ["udm.5gc.example"]}),
        ] {
            let one = profile(UDM, "UDM", "nudm-sdm", &odd);
            assert_eq!(usual.put(&one).await.status, StatusCode::BAD_REQUEST, "{odd}");
            // The OpenAPI file, by which other answers are judged, does not know such a profile.
            let path = format!("/nnrf-nfm/v1/nf-instances/{UDM}");
            let put = request(Method::PUT, &path, "application/json", one.to_string());
            let got = send(&wish.client, &wish.origin, put).await.unwrap();
            assert!(got.status.is_success(), "{odd}: {}", got.json);
            kept = got.json;
        }
        assert_eq!(
            (&kept["fqdn"], kept.get("ipv4Addresses")),
            (&json!("udm.5gc.example"), None)
        );
    });
}

#[test]
fn a_patch_may_be_said_to_be_json_where_the_operator_wishes() {
    local(async {
        let usual = start(|_| {});
        let wish = start(|config| config.tolerance.patch_as_json = true);
        let path = format!("/nnrf-nfm/v1/nf-instances/{UDM}");
        let patch = |body: &'static str| (Method::PATCH, path.as_str(), "application/json", body);
        for nrf in [&usual, &wish] {
            nrf.put(&profile(UDM, "UDM", "nudm-sdm", &json!({}))).await;
        }
        let beat = r#"[{"op":"replace","path":"/nfStatus","value":"REGISTERED"}]"#;
        let (method, at, kind, body) = patch(beat);
        assert_eq!(
            usual.ask(method.clone(), at, kind, body).await.status,
            StatusCode::UNSUPPORTED_MEDIA_TYPE
        );
        assert_eq!(
            wish.ask(method, at, kind, body).await.status,
            StatusCode::NO_CONTENT
        );
        let (method, at, kind, body) = patch(r#"{"load":3}"#);
        assert_eq!(
            wish.ask(method, at, kind, body).await.status,
            StatusCode::BAD_REQUEST
        );
    });
}

#[test]
fn a_wish_of_a_subscriber_that_cannot_be_read_is_none() {
    local(async {
        let nrf = start(|_| {});
        for odd in [
            json!({"validityTime": "20390531T235959"}),
            json!({"validityTime": "2039-05-31T23:59:59"}),
            json!({"validityTime": 7}),
            json!({"subscrCond": null, "notifCondition": null, "reqNotifEvents": []}),
        ] {
            let got = subscribe(&nrf, odd.clone()).await;
            assert_eq!(got.status, StatusCode::CREATED, "{odd}: {}", got.json);
            assert!(
                got.json["validityTime"]
                    .as_str()
                    .is_some_and(|time| time.contains("Z")),
                "{}",
                got.json
            );
            assert!(got.json.get("subscrCond").is_none() && got.json.get("reqNotifEvents").is_none());
        }
        for (wrong, place) in [
            (
                json!({"notifCondition": {"monitoredAttributes": ["/load"], "unmonitoredAttributes": ["/load"]}}),
                "/notifCondition",
            ),
            (json!({"subscrCond": {"x": 1}}), "/subscrCond"),
        ] {
            let got = subscribe(&nrf, wrong).await;
            assert_eq!(
                (got.status, got.cause()),
                (StatusCode::BAD_REQUEST, "OPTIONAL_IE_INCORRECT")
            );
            assert_eq!(got.json["invalidParams"][0]["param"], place);
        }
    });
}

/// The type of a registered NF decides which tokens it gets, so it stays.
#[test]
fn a_registered_nf_keeps_its_type() {
    local(async {
        let nrf = start(|config| {
            config.screening.denied_ports = vec![9010];
            config
                .screening
                .nf_types_by_instance
                .insert(id(2), vec!["AF".to_owned()]);
        });
        assert_eq!(
            nrf.put(&profile(&id(1), "AF", "naf", &json!({}))).await.status,
            StatusCode::CREATED
        );
        for other in ["SMF", "NRF", "UDM"] {
            let got = nrf.put(&profile(&id(1), other, "x", &json!({}))).await;
            assert_eq!(
                (got.status, got.cause()),
                (StatusCode::FORBIDDEN, "MODIFICATION_NOT_ALLOWED")
            );
        }
        assert_eq!(
            nrf.put(&profile(&id(1), "AF", "naf", &json!({"priority": 3})))
                .await
                .status,
            StatusCode::OK
        );
        assert_eq!(
            nrf.put(&profile(&id(2), "SMF", "x", &json!({}))).await.status,
            StatusCode::FORBIDDEN
        );
        assert_eq!(
            nrf.put(&profile(&id(2), "AF", "x", &json!({}))).await.status,
            StatusCode::CREATED
        );
        let mut admin = profile(&id(3), "UDM", "nudm-sdm", &json!({}));
        admin["nfServices"][0]["ipEndPoints"][0]["port"] = json!(9010);
        assert_eq!(nrf.put(&admin).await.status, StatusCode::FORBIDDEN);
    });
}

/// What a profile leads others to is screened, wherever the profile has the port.
#[test]
fn a_denied_port_is_denied_everywhere_in_a_profile() {
    local(async {
        let nrf = start(|config| config.screening.denied_ports = vec![9010, 80]);
        let callback = |uri: &str| {
            json!({"defaultNotificationSubscriptions":
                [{"notificationType": "N1_MESSAGES", "n1MessageClass": "5GMM", "callbackUri": uri}]})
        };
        let refused = [
            ("SCP", json!({"scpInfo": {"scpPorts": {"http": 9010}}})),
            (
                "SCP",
                json!({"scpInfo": {"scpDomainInfoList": {"d": {"scpFqdn": "scp.example.org", "scpPorts": {"http": 9010}}}}}),
            ),
            (
                "SCP",
                json!({"scpInfo": {"scpDomainInfoList": {"d":
                    {"scpIpEndPoints": [{"ipv4Address": "10.0.0.1", "port": 9010}]}}}}),
            ),
            ("SEPP", json!({"seppInfo": {"seppPorts": {"http": 9010}}})),
            ("AMF", callback("http://127.0.0.1:9010/x")),
            ("AMF", callback("http://127.0.0.1:09010/x")),
            ("AMF", callback("http://127.0.0.1/x")),
        ];
        for (at, (kind, more)) in refused.into_iter().enumerate() {
            let body = profile(&id(10 + u32::try_from(at).unwrap()), kind, "namf-comm", &more);
            let got = nrf.put(&body).await;
            assert_eq!(got.status, StatusCode::FORBIDDEN, "{more}");
        }
        for (at, change) in [
            json!({"apiPrefix": "http://127.0.0.1:9010"}),
            json!({"ipEndPoints": [{"ipv4Address": "127.0.0.1"}]}),
            json!({"ipEndPoints": null}),
            json!({"defaultNotificationSubscriptions": [{"notificationType": "LOCATION_NOTIFICATION",
                "callbackUri": "http://127.0.0.1:9010/x"}]}),
        ]
        .iter()
        .enumerate()
        {
            let mut body = profile(
                &id(30 + u32::try_from(at).unwrap()),
                "UDM",
                "nudm-sdm",
                &json!({}),
            );
            for (key, value) in change.as_object().unwrap() {
                body["nfServices"][0][key] = value.clone();
            }
            assert_eq!(nrf.put(&body).await.status, StatusCode::FORBIDDEN, "{change}");
        }
        let fine = profile(&id(50), "AMF", "namf-comm", &callback("http://127.0.0.1:9011/x"));
        assert_eq!(nrf.put(&fine).await.status, StatusCode::CREATED);
    });
}

#[test]
fn preconditions_decide_over_every_change() {
    local(async {
        let nrf = start(|_| {});
        let path = format!("/nnrf-nfm/v1/nf-instances/{UDM}");
        let body = profile(UDM, "UDM", "nudm-sdm", &json!({}));
        let send = async |method: Method, fields: &[(&str, &str)], body: String| {
            let mut request = http::Request::builder().method(method.clone()).uri(&path);
            if !body.is_empty() {
                let kind = if method == Method::PATCH {
                    "application/json-patch+json"
                } else {
                    "application/json"
                };
                request = request.header("content-type", kind);
            }
            for (name, value) in fields {
                request = request.header(*name, *value);
            }
            nrf.send(request.body(body.into()).unwrap()).await
        };
        let created = send(Method::PUT, &[("if-none-match", "*")], body.to_string()).await;
        assert_eq!(created.status, StatusCode::CREATED);
        let tag = created.header("etag").to_owned();
        let again = send(Method::PUT, &[("if-none-match", "*")], body.to_string()).await;
        assert_eq!(again.status, StatusCode::PRECONDITION_FAILED);
        let other = send(Method::DELETE, &[("if-match", "\"other\"")], String::new()).await;
        assert_eq!(other.status, StatusCode::PRECONDITION_FAILED);
        let patch = json!([{"op": "add", "path": "/priority", "value": 3}]).to_string();
        let fields = [("if-match", "\"other\""), ("if-match", tag.as_str())];
        assert_eq!(send(Method::PATCH, &fields, patch).await.status, StatusCode::OK);
        assert_eq!(
            send(Method::DELETE, &[("if-match", "*")], String::new())
                .await
                .status,
            StatusCode::NO_CONTENT
        );
    });
}

/// RFC 3986 §6.2.2.2.
#[test]
fn encoded_letters_of_a_path_are_letters() {
    local(async {
        let nrf = start(|_| {});
        nrf.put(&profile(UDM, "UDM", "nudm-sdm", &json!({}))).await;
        let odd = format!("/nnrf%2Dnfm/v1/nf-%69nstances/{UDM}");
        let client = nrf.client.clone();
        let asked = request(Method::GET, &odd, "", "");
        let got = send(&client, &nrf.origin, asked).await.unwrap();
        assert_eq!(got.status, StatusCode::OK);
        assert_eq!(got.json["nfInstanceId"], UDM);
    });
}

/// TS 29.510 §6.1.6.2.2: an entry of a list describes what goes together.
#[test]
fn an_smf_is_found_by_one_of_its_entries() {
    local(async {
        let nrf = start(|_| {});
        let tai = |tac: &str| json!({"plmnId": {"mcc": "001", "mnc": "01"}, "tac": tac});
        let entry = |dnn: &str, tacs: &[&str]| {
            let mut entry =
                json!({"sNssaiSmfInfoList": [{"sNssai": {"sst": 1}, "dnnSmfInfoList": [{"dnn": dnn}]}]});
            if !tacs.is_empty() {
                entry["taiList"] = tacs.iter().map(|tac| tai(tac)).collect();
            }
            entry
        };
        let lists = json!({"smfInfoList": {"1": entry("a", &["000001"]), "2": entry("b", &["000002"])}});
        nrf.put(&profile(&id(1), "SMF", "nsmf-pdusession", &lists)).await;
        let beside = json!({"smfInfo": entry("e", &["000001"]), "smfInfoList": {"1": entry("f", &[])}});
        nrf.put(&profile(&id(2), "SMF", "nsmf-pdusession", &beside)).await;
        let found = async |dnn: &str, tac: &str| {
            let tai = tai(tac)
                .to_string()
                .replace('"', "%22")
                .replace('{', "%7B")
                .replace('}', "%7D");
            nrf.found(&format!(
                "target-nf-type=SMF&requester-nf-type=AMF&dnn={dnn}&tai={tai}"
            ))
            .await
        };
        assert_eq!(found("a", "000001").await, [id(1)]);
        assert!(found("a", "000002").await.is_empty() && found("b", "000001").await.is_empty());
        assert_eq!(found("e", "000001").await, [id(2)]);
        assert!(found("e", "000009").await.is_empty());
        assert_eq!(found("f", "000009").await, [id(2)]);
        let lists = json!({"pcfInfoList": {
            "1": {"dnnList": ["a"], "supiRanges": [{"start": "001010000000001", "end": "001010000000001"}]},
            "2": {"dnnList": ["b"], "supiRanges": [{"start": "001010000000002", "end": "001010000000002"}]},
        }});
        nrf.put(&profile(&id(3), "PCF", "npcf-smpolicycontrol", &lists))
            .await;
        let found = async |dnn: &str, supi: &str| {
            nrf.found(&format!(
                "target-nf-type=PCF&requester-nf-type=SMF&dnn={dnn}&supi=imsi-00101000000000{supi}"
            ))
            .await
        };
        assert_eq!(found("a", "1").await, [id(3)]);
        assert!(found("a", "2").await.is_empty() && found("b", "1").await.is_empty());
    });
}
