//! Npcf_PolicyAuthorization: AF sessions that are bound to sessions of SMFs.

use http::{Method, StatusCode};
use serde_json::{Value, json};
use testpeer::sbi::{Server, no_content};

use crate::support::{Pcf, local, path_of, start, with};

pub const APP_SESSIONS: &str = "/npcf-policyauthorization/v1/app-sessions";

/// `AppSessionContextReqData` of a voice call, with these further members.
pub fn call(notifications: &str, more: &Value) -> Value {
    let request = json!({
        "notifUri": format!("{notifications}/af"), "suppFeat": "ffff", "ueIpv4": "10.0.0.1", "dnn": "internet",
        "afAppId": "IMS", "afChargId": "icid-1", "afReqData": "UE_IDENTITY",
        "medComponents": {"1": {
            "medCompN": 1, "medType": "AUDIO", "fStatus": "ENABLED", "marBwUl": "64 Kbps", "marBwDl": "64 Kbps",
            "medSubComps": {
                "1": {"fNum": 1, "fDescs": [
                    "permit in 17 from 10.0.0.1 50000 to 192.0.2.9 40000",
                    "permit out 17 from 192.0.2.9 40000 to 10.0.0.1 50000"]},
                "2": {"fNum": 2, "flowUsage": "RTCP", "fDescs": ["permit out 17 from 192.0.2.9 40001 to 10.0.0.1 50001"]},
            },
        }},
        "evSubsc": {"notifUri": format!("{notifications}/events"), "events": [
            {"event": "FAILED_RESOURCES_ALLOCATION"}, {"event": "SUCCESSFUL_RESOURCES_ALLOCATION"}]},
    });
    json!({"ascReqData": with(request, more)})
}

/// A function that takes notifications.
pub fn listener() -> Server {
    Server::start(|_| no_content())
}

/// Waits for the notification of this number, from 1.
pub async fn notification(server: &Server, number: usize) -> (String, Value) {
    for _ in 0..2_000 {
        if let Some(seen) = server.seen().get(number - 1) {
            return (seen.uri().path().to_owned(), seen.json());
        }
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
    panic!("notification {number} has not come");
}

async fn patch(pcf: &Pcf, path: &str, request: Value) -> testpeer::sbi::Got {
    let body = json!({"ascReqData": request}).to_string();
    pcf.ask(Method::PATCH, path, "application/merge-patch+json", body)
        .await
}

#[test]
fn a_call_gets_its_rules_changes_them_and_ends() {
    local(async {
        let pcf = start(|_| {});
        let (smf, af) = (listener(), listener());
        let sm = pcf
            .session(&json!({"notificationUri": format!("{}/smf", smf.root())}))
            .await;
        let created = pcf.post(APP_SESSIONS, &call(&af.root(), &json!({}))).await;
        let path = path_of(&created);
        assert_eq!(created.json["ascRespData"]["suppFeat"], "20E7");
        assert_eq!(
            created.json["ascRespData"]["ueIds"][0]["supi"],
            "imsi-001010000000001"
        );

        let (uri, body) = notification(&smf, 1).await;
        assert_eq!(uri, "/smf/update");
        crate::judge::is(crate::judge::SM, "SmPolicyNotification", &body);
        let change = &body["smPolicyDecision"];
        let rules: Vec<&String> = change["pccRules"].as_object().unwrap().keys().collect();
        assert_eq!(rules.len(), 2, "{change}");
        let qos = &change["qosDecs"][rules[0]];
        assert_eq!((&qos["5qi"], &qos["gbrDl"]), (&json!(1), &json!("64 Kbps")));
        assert_eq!(change["lastReqRuleData"][0]["reqData"], json!(["SUCC_RES_ALLO"]));
        let read = pcf.get(&sm).await;
        assert!(read.json["policy"]["pccRules"].get(rules[0]).is_some());

        // Hold: the same rules with other gates.
        let held = patch(
            &pcf,
            &path,
            json!({"medComponents": {"1": {"medCompN": 1, "fStatus": "DISABLED"}}}),
        )
        .await;
        assert_eq!(held.status, StatusCode::OK, "{}", held.json);
        let (_, body) = notification(&smf, 2).await;
        let change = &body["smPolicyDecision"];
        assert_eq!(change["traffContDecs"][rules[0]]["flowStatus"], "DISABLED");
        assert!(
            change.get("pccRules").is_none() && change.get("qosDecs").is_none(),
            "{change}"
        );
        assert_eq!(
            pcf.get(&path).await.json["ascReqData"]["medComponents"]["1"]["fStatus"],
            "DISABLED"
        );

        // The SMF reports; the AF hears of it.
        let report = json!({"ruleReports": [{"pccRuleIds": rules, "ruleStatus": "ACTIVE"}],
            "repPolicyCtrlReqTriggers": ["SUCC_RES_ALLO"]});
        let updated = pcf.post(&format!("{sm}/update"), &report).await;
        assert_eq!((updated.status, updated.json), (StatusCode::OK, json!({})));
        let (uri, body) = notification(&af, 1).await;
        crate::judge::is(crate::judge::AF, "EventsNotification", &body);
        assert_eq!(uri, "/events/notify");
        assert_eq!(body["evNotifs"][0]["event"], "SUCCESSFUL_RESOURCES_ALLOCATION");
        assert_eq!(
            body["evNotifs"][0]["flows"],
            json!([{"medCompN": 1, "fNums": [1, 2]}])
        );
        assert_eq!(
            body["evSubsUri"],
            format!("{}{path}/events-subscription", pcf.origin)
        );

        let deleted = pcf
            .post(
                &format!("{path}/delete"),
                &json!({"events": [{"event": "USAGE_REPORT"}]}),
            )
            .await;
        assert_eq!(deleted.status, StatusCode::NO_CONTENT);
        let (_, body) = notification(&smf, 3).await;
        assert_eq!(body["smPolicyDecision"]["pccRules"][rules[1]], Value::Null);
        for gone in [
            pcf.get(&path).await,
            patch(&pcf, &path, json!({})).await,
            pcf.ask(Method::POST, &format!("{path}/delete"), "", "").await,
        ] {
            assert_eq!(
                (gone.status, gone.cause()),
                (StatusCode::NOT_FOUND, "APPLICATION_SESSION_CONTEXT_NOT_FOUND")
            );
        }
        let counted = |event| pcf.running().count(event);
        assert_eq!(
            (counted(pcf::Event::AfCreated), counted(pcf::Event::AfDeleted)),
            (1, 1)
        );
    });
}

#[test]
fn a_session_that_ends_ends_its_af_sessions() {
    local(async {
        let pcf = start(|_| {});
        let (smf, af) = (listener(), listener());
        let more = json!({"notificationUri": smf.root()});
        let sm = pcf.session(&more).await;
        let path = path_of(&pcf.post(APP_SESSIONS, &call(&af.root(), &json!({}))).await);
        let (_, body) = notification(&smf, 1).await;
        let rules: Vec<&String> = body["smPolicyDecision"]["pccRules"]
            .as_object()
            .unwrap()
            .keys()
            .collect();

        // No resources: the rules go, and the AF is to end its session.
        let report = json!({"ruleReports": [{"pccRuleIds": rules, "ruleStatus": "INACTIVE", "failureCode": "RES_ALLO_FAIL"}]});
        let updated = pcf.post(&format!("{sm}/update"), &report).await;
        assert_eq!(updated.json["pccRules"][rules[0]], Value::Null);
        let (_, body) = notification(&af, 1).await;
        assert_eq!(body["evNotifs"][0]["event"], "FAILED_RESOURCES_ALLOCATION");
        let (uri, body) = notification(&af, 2).await;
        crate::judge::is(crate::judge::AF, "TerminationInfo", &body);
        assert_eq!(
            (&*uri, &body["termCause"]),
            ("/af/terminate", &json!("INSUFFICIENT_QOS_FLOW_RESOURCES"))
        );
        assert_eq!(body["resUri"], format!("{}{path}", pcf.origin));

        // It was asked, and is not asked again.
        pcf.post(&format!("{sm}/delete"), &json!({})).await;
        assert_eq!(pcf.running().count(pcf::Event::AfTerminated), 1);
        assert_eq!(pcf.get(&path).await.status, StatusCode::NOT_FOUND);
        // The AF deletes it as well (TS 29.514 §4.2.5.3), once.
        let uri = format!("{path}/delete");
        for status in [StatusCode::NO_CONTENT, StatusCode::NOT_FOUND] {
            let deleted = pcf
                .ask(Method::POST, &uri, "application/json", String::new())
                .await;
            assert_eq!(deleted.status, status);
        }
    });
}

#[test]
fn events_are_subscribed_to_apart() {
    local(async {
        let pcf = start(|_| {});
        pcf.session(&json!({})).await;
        let path = path_of(
            &pcf.post(
                APP_SESSIONS,
                &call("http://127.0.0.1:9", &json!({"evSubsc": null})),
            )
            .await,
        );
        let events = format!("{path}/events-subscription");
        let body = json!({"events": [{"event": "PLMN_CHG"}], "notifUri": "http://127.0.0.1:9/e"}).to_string();
        let put = || pcf.ask(Method::PUT, &events, "application/json", body.clone());
        let created = put().await;
        assert_eq!(created.status, StatusCode::CREATED, "{}", created.json);
        assert!(created.header("location").ends_with(&events));
        assert_eq!(put().await.status, StatusCode::OK);
        let read = pcf.get(&path).await;
        assert_eq!(
            read.json["ascReqData"]["evSubsc"]["events"][0]["event"],
            "PLMN_CHG"
        );
        let delete = || pcf.ask(Method::DELETE, &events, "", "");
        assert_eq!(delete().await.status, StatusCode::NO_CONTENT);
        assert_eq!(delete().await.status, StatusCode::NOT_FOUND);
        assert!(pcf.get(&path).await.json["ascReqData"].get("evSubsc").is_none());
    });
}

#[test]
fn what_is_wrong_or_unknown_is_refused() {
    local(async {
        let pcf = start(|config| config.media.sponsors = vec!["shop".to_owned()]);
        pcf.session(&json!({"dnn": "ims"})).await;
        pcf.session(&json!({"dnn": "internet", "supi": "imsi-001010000000002"}))
            .await;
        let component = |member: &str, value: Value| {
            let mut body = call("http://127.0.0.1:9", &json!({}));
            body["ascReqData"]["medComponents"]["1"][member] = value;
            body
        };
        let request = |more: Value| call("http://127.0.0.1:9", &more);
        for (body, status, cause) in [
            (
                request(json!({"ueIpv4": "10.0.0.9"})),
                500,
                "PDU_SESSION_NOT_AVAILABLE",
            ),
            (request(json!({"dnn": "other"})), 500, "PDU_SESSION_NOT_AVAILABLE"),
            (
                request(json!({"sliceInfo": {"sst": 7}})),
                500,
                "PDU_SESSION_NOT_AVAILABLE",
            ),
            (
                request(json!({"supi": "imsi-001010000000009"})),
                500,
                "PDU_SESSION_NOT_AVAILABLE",
            ),
            (
                request(json!({"sponId": "x", "aspId": "y"})),
                403,
                "UNAUTHORIZED_SPONSORED_DATA_CONNECTIVITY",
            ),
            (
                component("qosReference", json!("gold")),
                403,
                "REQUESTED_SERVICE_NOT_AUTHORIZED",
            ),
            (
                component("marBwDl", json!("fast")),
                400,
                "INVALID_SERVICE_INFORMATION",
            ),
            (
                component(
                    "medSubComps",
                    json!({"1": {"fNum": 1, "fDescs": ["deny in ip from any to any"]}}),
                ),
                400,
                "FILTER_RESTRICTIONS",
            ),
            (request(json!({"notifUri": null})), 400, "MANDATORY_IE_MISSING"),
            (request(json!({"ueIpv4": null})), 400, "MANDATORY_IE_MISSING"),
            (
                request(json!({"ueIpv6": "2001:db8::1"})),
                400,
                "MANDATORY_IE_INCORRECT",
            ),
            (request(json!({"suppFeat": "xyz"})), 400, "MANDATORY_IE_INCORRECT"),
            (json!({}), 400, "MANDATORY_IE_MISSING"),
        ] {
            let refused = pcf.post(APP_SESSIONS, &body).await;
            assert_eq!(
                (refused.status.as_u16(), refused.cause()),
                (status, cause),
                "{}",
                refused.json
            );
        }
        let found = pcf
            .post(APP_SESSIONS, &request(json!({"dnn": "IMS.mnc001.mcc001.gprs"})))
            .await;
        let path = path_of(&found);
        let wrong = pcf.ask(Method::PATCH, &path, "application/json", "{}").await;
        assert_eq!(wrong.status, StatusCode::UNSUPPORTED_MEDIA_TYPE);
        for (method, path, allow) in [
            (Method::GET, APP_SESSIONS.to_owned(), "POST"),
            (Method::DELETE, path.clone(), "GET, PATCH"),
            (Method::GET, format!("{path}/delete"), "POST"),
            (Method::GET, format!("{path}/events-subscription"), "PUT, DELETE"),
        ] {
            let refused = pcf.ask(method, &path, "", "").await;
            assert_eq!(
                (refused.status, refused.header("allow")),
                (StatusCode::METHOD_NOT_ALLOWED, allow),
                "{path}"
            );
        }
        for id in ["x", "x.y", "00000000-0000-4000-8000-000000000000.7"] {
            assert_eq!(
                pcf.get(&format!("{APP_SESSIONS}/{id}")).await.status,
                StatusCode::NOT_FOUND
            );
        }
    });
}

#[test]
fn a_patch_leaves_a_session_as_the_standard_has_it_or_is_refused() {
    local(async {
        let pcf = start(|_| {});
        let sm = pcf.session(&json!({})).await;
        let path = path_of(
            &pcf.post(APP_SESSIONS, &call("http://127.0.0.1:9", &json!({})))
                .await,
        );
        let before = pcf.get(&path).await.json;
        for (change, cause, pointer) in [
            (json!({"notifUri": 7}), "MANDATORY_IE_INCORRECT", "/notifUri"),
            (json!({"notifUri": null}), "MANDATORY_IE_MISSING", "/notifUri"),
            (json!({"suppFeat": null}), "MANDATORY_IE_MISSING", "/suppFeat"),
            (json!({"ueIpv4": null}), "MANDATORY_IE_MISSING", "/ueIpv4"),
            (
                json!({"medComponents": 7}),
                "OPTIONAL_IE_INCORRECT",
                "/medComponents",
            ),
            (json!({"evSubsc": 7}), "OPTIONAL_IE_INCORRECT", "/evSubsc"),
            (
                json!({"evSubsc": {"events": []}}),
                "MANDATORY_IE_INCORRECT",
                "/evSubsc/events",
            ),
        ] {
            let refused = patch(&pcf, &path, change.clone()).await;
            let param = &refused.json["invalidParams"][0]["param"];
            let expected = format!("/ascReqData{pointer}");
            assert_eq!((refused.cause(), param), (cause, &json!(expected)), "{change}");
            assert_eq!(pcf.get(&path).await.json, before, "{change}");
        }
        // The whole may not become larger than a body, however many patches bring it.
        let mut grown = 0;
        let refused = loop {
            let answer = patch(&pcf, &path, json!({format!("vendor{grown}"): "x".repeat(20_000)})).await;
            if answer.status != StatusCode::OK {
                break answer;
            }
            grown += 1;
        };
        assert_eq!((refused.status, grown), (StatusCode::PAYLOAD_TOO_LARGE, 3));
        // A session without its last component has no member for components.
        let ended = patch(&pcf, &path, json!({"medComponents": {"1": null}})).await;
        assert_eq!(ended.status, StatusCode::OK, "{}", ended.json);
        assert!(ended.json["ascReqData"].get("medComponents").is_none());
        let rules = pcf.get(&sm).await.json["policy"]["pccRules"].clone();
        assert!(!rules.to_string().contains("af-"), "{rules}");
    });
}

#[test]
fn types_that_the_smf_would_get_are_judged() {
    local(async {
        let pcf = start(|_| {});
        let sm = pcf.session(&json!({})).await;
        let before = pcf.get(&sm).await.json;
        for (member, value) in [
            ("medSubComps", json!(7)),
            ("medSubComps", json!({"1": {"fNum": 1, "fDescs": 7}})),
            ("contVer", json!("x")),
            ("maxPacketLossRateDl", json!("x")),
            ("maxPacketLossRateUl", json!(1001)),
            ("tscaiInputDl", json!(7)),
            ("preemptCap", json!(7)),
            ("resPrio", json!(7)),
            ("afRoutReq", json!({"routeToLocs": 7})),
            ("disUeNotif", json!("yes")),
            ("sharingKeyDl", json!(-1)),
        ] {
            let components = json!({"1": {"medCompN": 1, "medType": "AUDIO", member: value}});
            let request = call("http://127.0.0.1:9", &json!({"medComponents": components}));
            let refused = pcf.post(APP_SESSIONS, &request).await;
            assert_eq!(
                (refused.status, refused.cause()),
                (StatusCode::BAD_REQUEST, "OPTIONAL_IE_INCORRECT"),
                "{member} {value}"
            );
        }
        let threshold = json!({"events": [{"event": "USAGE_REPORT"}], "usgThres": {"duration": "x"}});
        let refused = pcf
            .post(
                APP_SESSIONS,
                &call("http://127.0.0.1:9", &json!({"evSubsc": threshold})),
            )
            .await;
        assert_eq!(refused.cause(), "OPTIONAL_IE_INCORRECT");
        assert_eq!(pcf.get(&sm).await.json, before);
    });
}

#[test]
fn an_af_gets_a_charging_identifier_that_is_a_text() {
    local(async {
        let pcf = start(|_| {});
        let (sm, af) = (pcf.session(&json!({})).await, listener());
        let events = json!({"events": [{"event": "CHARGING_CORRELATION"}], "notifUri": format!("{}/events", af.root())});
        path_of(
            &pcf.post(APP_SESSIONS, &call(&af.root(), &json!({"evSubsc": events})))
                .await,
        );
        let report =
            json!({"repPolicyCtrlReqTriggers": ["AN_CH_COR"], "accNetChIds": [{"accNetChargId": "id-7"}]});
        pcf.post(&format!("{sm}/update"), &report).await;
        let (_, body) = notification(&af, 1).await;
        crate::judge::is(crate::judge::AF, "EventsNotification", &body);
        assert_eq!(body["anChargIds"][0]["accNetChargIdString"], "id-7");
    });
}
