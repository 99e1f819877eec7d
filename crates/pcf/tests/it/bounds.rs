//! How large an association may become, which of its members an update changes, and which texts are taken.

use http::{Method, StatusCode};
use serde_json::{Value, json};

use crate::authorization::{APP_SESSIONS, call};
use crate::policies::{AM, UE, association};
use crate::support::{SM_POLICIES, context, local, path_of, start};

/// A call with many flows: 40 KB that become ten times as much.
fn large_call(number: usize) -> Value {
    let flow = |number: usize| {
        let to = format!(
            "permit out 17 from 192.0.2.9 {} to 10.0.0.1 {}",
            number + 1,
            number + 1
        );
        json!({"fNum": number, "fDescs": [to]})
    };
    let flows: serde_json::Map<String, Value> = (1..=32).map(|one| (one.to_string(), flow(one))).collect();
    let component = |number: usize| json!({"medCompN": number, "medType": "AUDIO", "fStatus": "ENABLED", "medSubComps": flows});
    let components: serde_json::Map<String, Value> =
        (1..=8).map(|one| (one.to_string(), component(one))).collect();
    call(
        "http://127.0.0.1:9",
        &json!({"afAppId": format!("af{number}"), "medComponents": components}),
    )
}

#[test]
fn an_association_has_a_bound_as_a_whole_and_what_is_full_can_be_reduced() {
    local(async {
        let pcf = start(|_| {});
        let path = pcf.session(&json!({})).await;
        let mut sessions = Vec::new();
        let refused = loop {
            let got = pcf.post(APP_SESSIONS, &large_call(sessions.len())).await;
            match got.status {
                StatusCode::CREATED => sessions.push(path_of(&got)),
                _ => break got,
            }
            assert!(sessions.len() < 32);
        };
        assert_eq!(refused.status, StatusCode::PAYLOAD_TOO_LARGE, "{}", refused.json);
        let detail = refused.json["detail"].as_str().unwrap();
        assert!(detail.contains("maxAssociationSize"), "{detail}");
        let size = pcf.get(&path).await.json.to_string().len();
        assert!(size <= 256 * 1_024, "{size}");
        // The SMF is served, an AF session can be reduced and ended, and then there is room.
        let updated = pcf
            .post(&format!("{path}/update"), &json!({"ratType": "EUTRA"}))
            .await;
        assert_eq!(updated.status, StatusCode::OK, "{}", updated.json);
        let less = json!({"ascReqData": {"medComponents": {"1": null}}}).to_string();
        let reduced = pcf
            .ask(Method::PATCH, &sessions[0], "application/merge-patch+json", less)
            .await;
        assert_eq!(reduced.status, StatusCode::OK, "{}", reduced.json);
        let ended = pcf
            .ask(Method::POST, &format!("{}/delete", sessions[0]), "", "")
            .await;
        assert_eq!(ended.status, StatusCode::NO_CONTENT);
        let small = pcf
            .post(APP_SESSIONS, &call("http://127.0.0.1:9", &json!({})))
            .await;
        assert_eq!(small.status, StatusCode::CREATED, "{}", small.json);
        let deleted = pcf.post(&format!("{path}/delete"), &json!({})).await;
        assert_eq!(deleted.status, StatusCode::NO_CONTENT);
    });
}

#[test]
fn names_of_counters_and_applications_have_a_bound() {
    local(async {
        let pcf = start(|_| {});
        let path = pcf.session(&json!({})).await;
        let long = "x".repeat(256);
        for (update, place) in [
            (
                json!({"accuUsageReports": [{"refUmIds": long, "volUsage": 1}]}),
                "/accuUsageReports/0/refUmIds",
            ),
            (
                json!({"repPolicyCtrlReqTriggers": ["APP_STA"], "appDetectionInfos": [{"appId": long}]}),
                "/appDetectionInfos/0/appId",
            ),
            (
                json!({"repPolicyCtrlReqTriggers": ["APP_STA"],
                    "appDetectionInfos": [{"appId": "a", "instanceId": long}]}),
                "/appDetectionInfos/0/instanceId",
            ),
        ] {
            let refused = pcf.post(&format!("{path}/update"), &update).await;
            assert_eq!(refused.status, StatusCode::BAD_REQUEST, "{place}");
            assert_eq!(refused.json["invalidParams"][0]["param"], place);
        }
    });
}

#[test]
fn an_update_renames_no_association() {
    local(async {
        let pcf = start(|_| {});
        let sm = path_of(&pcf.post(SM_POLICIES, &context(&json!({}))).await);
        let am = path_of(&pcf.post(AM, &association(&json!({}))).await);
        let ue = path_of(&pcf.post(UE, &association(&json!({}))).await);
        let before = [
            pcf.get(&sm).await.json,
            pcf.get(&am).await.json,
            pcf.get(&ue).await.json,
        ];
        let other = json!("imsi-001010000000009");
        for (path, names) in [
            (
                &sm,
                &[
                    "supi",
                    "gpsi",
                    "pduSessionId",
                    "dnn",
                    "sliceInfo",
                    "notificationUri",
                    "pei",
                    "smfId",
                    "suppFeat",
                ][..],
            ),
            (
                &am,
                &["supi", "gpsi", "pei", "suppFeat", "servingPlmn", "accessType"],
            ),
            (&ue, &["supi", "gpsi", "pei", "suppFeat", "hPcfId", "serviceName"]),
        ] {
            for name in names {
                for value in [other.clone(), json!(7), Value::Null, json!({"sst": 7})] {
                    let refused = pcf.post(&format!("{path}/update"), &json!({*name: value})).await;
                    assert_eq!(refused.status, StatusCode::BAD_REQUEST, "{path} {name} {value}");
                    assert_eq!(refused.json["invalidParams"][0]["param"], format!("/{name}"));
                }
            }
        }
        let after = [
            pcf.get(&sm).await.json,
            pcf.get(&am).await.json,
            pcf.get(&ue).await.json,
        ];
        assert_eq!(before, after);
        // A member that no release knows is kept, as before.
        let kept = pcf.post(&format!("{sm}/update"), &json!({"vendorNew": 1})).await;
        assert_eq!(kept.status, StatusCode::OK);
    });
}

#[test]
fn a_member_that_comes_twice_is_refused() {
    local(async {
        let pcf = start(|_| {});
        let text = context(&json!({})).to_string();
        for again in [
            r#""supi": "imsi-9""#,
            r#""\u0073upi": "imsi-9""#,
            r#""vendor": {"a": 1, "a": 2}"#,
        ] {
            let body = format!("{{{again},{}", &text[1..]);
            let refused = pcf.ask(Method::POST, SM_POLICIES, "application/json", body).await;
            assert_eq!(
                (refused.status, refused.cause()),
                (StatusCode::BAD_REQUEST, "INVALID_MSG_FORMAT")
            );
        }
    });
}

#[test]
fn an_af_finds_the_session_of_its_dnn_however_many_have_its_address() {
    local(async {
        let pcf = start(|config| config.max_candidates = 8);
        for number in 0..20 {
            let more = json!({"supi": format!("imsi-00101000000{number:04}"), "dnn": format!("vpn{number}"),
                "ipv4Address": "10.61.0.2", "ipv6AddressPrefix": "2001:db8:9:9::/64"});
            pcf.session(&more).await;
        }
        let honest = json!({"ipv4Address": "10.61.0.2", "ipv6AddressPrefix": "2001:db8:9:9::/64",
            "dnn": "internet.mnc001.mcc001.gprs"});
        let path = pcf.session(&honest).await;
        for number in 20..40 {
            let more = json!({"supi": format!("imsi-00101000000{number:04}"), "dnn": format!("vpn{number}"),
                "ipv4Address": "10.61.0.2", "ipv6AddressPrefix": "2001:db8:9:9::/64"});
            pcf.session(&more).await;
        }
        for address in [
            json!({"ueIpv4": "10.61.0.2"}),
            json!({"ueIpv4": null, "ueIpv6": "2001:db8:9:9::7"}),
        ] {
            let got = pcf
                .post(APP_SESSIONS, &call("http://127.0.0.1:9", &address))
                .await;
            assert_eq!(got.status, StatusCode::CREATED, "{address}: {}", got.json);
        }
        let policy = &pcf.get(&path).await.json["policy"];
        assert!(policy["pccRules"].as_object().unwrap().len() > 2, "{policy}");
    });
}

#[test]
fn texts_of_several_lines_are_taken_where_they_belong() {
    local(async {
        let pcf = start(|_| {});
        let path = pcf.session(&json!({})).await;
        let codecs = |codec: &str| {
            let mut call = call("http://127.0.0.1:9", &json!({}));
            call["ascReqData"]["medComponents"]["1"]["codecs"] = json!([codec, "uplink\n0\n"]);
            call
        };
        let sdp = "downlink\r\noffer\r\nm=audio 49170 RTP/AVP 0\r\na=rtpmap:0 PCMU/8000\r\n";
        for good in ["downlink\n0\n", sdp, "uplink\nanswer\na=x\ty\n"] {
            let made = pcf.post(APP_SESSIONS, &codecs(good)).await;
            assert_eq!(made.status, StatusCode::CREATED, "{}", made.json);
            let read = pcf.get(&path_of(&made)).await;
            assert_eq!(read.json["ascReqData"]["medComponents"]["1"]["codecs"][0], good);
        }
        for bad in ["downlink\u{1b}[31m", "a\u{0}b"] {
            assert_eq!(
                pcf.post(APP_SESSIONS, &codecs(bad)).await.status,
                StatusCode::BAD_REQUEST
            );
        }
        let decisions = json!({"invalidPolicyDecs": [{"param": "/pccRules", "reason": "first\nsecond"}]});
        let updated = pcf.post(&format!("{path}/update"), &decisions).await;
        assert_eq!(updated.status, StatusCode::OK, "{}", updated.json);
    });
}

#[test]
fn an_af_session_is_ended_with_an_empty_object_and_has_two_of_what_may_be_there_twice() {
    local(async {
        let pcf = start(|_| {});
        pcf.session(&json!({})).await;
        for body in [json!({}), json!({"events": [{"event": "PLMN_CHG"}]})] {
            let made = path_of(
                &pcf.post(APP_SESSIONS, &call("http://127.0.0.1:9", &json!({})))
                    .await,
            );
            let ended = pcf.post(&format!("{made}/delete"), &body).await;
            assert_eq!(ended.status, StatusCode::NO_CONTENT, "{body}: {}", ended.json);
        }
        let flow = "permit out 17 from 192.0.2.9 40000 to 10.0.0.1 50000";
        let ethernet = json!({"ethType": "0800"});
        let tags = json!({"ethType": "0800", "vlanTags": ["0001", "0002", "0003"]});
        // Each has at most two (`maxItems`).
        for (within, member, value, at) in [
            ("/medSubComps/1", "fDescs", json!([flow, flow, flow]), "/fDescs"),
            (
                "/medSubComps/1",
                "ethfDescs",
                json!([ethernet, ethernet, ethernet]),
                "/ethfDescs",
            ),
            (
                "/medSubComps/1",
                "ethfDescs",
                json!([tags]),
                "/ethfDescs/0/vlanTags",
            ),
            ("", "codecs", json!(["a\n0\n", "b\n0\n", "c\n0\n"]), "/codecs"),
        ] {
            let mut three = call("http://127.0.0.1:9", &json!({}));
            let component = &mut three["ascReqData"]["medComponents"]["1"];
            component.pointer_mut(within).unwrap()[member] = value;
            let refused = pcf.post(APP_SESSIONS, &three).await;
            assert_eq!(refused.status, StatusCode::BAD_REQUEST, "{member}");
            let pointer = format!("/ascReqData/medComponents/1{within}{at}");
            assert_eq!(refused.json["invalidParams"][0]["param"], pointer);
        }
    });
}

#[test]
fn sessions_of_others_at_an_address_hide_none_of_a_subscriber_who_is_named() {
    local(async {
        let pcf = start(|config| config.max_candidates = 4);
        for number in 1..=8 {
            pcf.session(&json!({"supi": format!("imsi-00101000000000{number}"), "pduSessionId": number}))
                .await;
        }
        let of =
            |supi: &str, address: &str| call("http://127.0.0.1:9", &json!({"supi": supi, "ueIpv4": address}));
        let own = context(&json!({}))["ipv4Address"].as_str().unwrap().to_owned();
        for number in 1..=8 {
            let supi = format!("imsi-00101000000000{number}");
            let got = pcf.post(APP_SESSIONS, &of(&supi, &own)).await;
            assert_eq!(got.status, StatusCode::CREATED, "{supi}: {}", got.json);
            let got = pcf.post(APP_SESSIONS, &of(&supi, "10.99.0.1")).await;
            assert_eq!(got.cause(), "PDU_SESSION_NOT_AVAILABLE", "{supi}");
        }
    });
}
