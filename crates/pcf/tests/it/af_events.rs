//! What AFs learn over N5 of the sessions that theirs are bound to, and what of their wishes an SMF gets.

use http::{Method, StatusCode};
use serde_json::{Value, json};

use crate::authorization::{APP_SESSIONS, call, listener, notification};
use crate::diameter::{AAR, ask, peer};
use crate::support::{SM_POLICIES, context, local, path_of, start};

/// A subscription to events.
fn subscription(to: &str, events: &[Value]) -> Value {
    json!({"evSubsc": {"notifUri": format!("{to}/events"), "events": events}})
}

#[test]
fn an_af_learns_what_is_met_when_it_subscribes() {
    local(async {
        let pcf = start(|_| {});
        let af = listener();
        pcf.session(&json!({"accNetChId": {"accNetChaIdValue": 4711, "sessionChScope": true}}))
            .await;
        let wanted = [
            json!({"event": "CHARGING_CORRELATION", "notifMethod": "ONE_TIME"}),
            json!({"event": "ACCESS_TYPE_CHANGE"}),
            json!({"event": "PLMN_CHG"}),
            json!({"event": "OUT_OF_CREDIT"}),
        ];
        let created = pcf
            .post(
                APP_SESSIONS,
                &call(&af.root(), &subscription(&af.root(), &wanted)),
            )
            .await;
        let path = path_of(&created);
        let met = &created.json["evsNotif"];
        crate::judge::is(crate::judge::AF, "EventsNotification", met);
        let mut events: Vec<&str> = met["evNotifs"]
            .as_array()
            .unwrap()
            .iter()
            .filter_map(|event| event["event"].as_str())
            .collect();
        events.sort_unstable();
        assert_eq!(events, ["ACCESS_TYPE_CHANGE", "CHARGING_CORRELATION", "PLMN_CHG"]);
        assert_eq!(met["anChargIds"], json!([{"accNetChaIdValue": 4711}]));
        assert_eq!(
            (&met["accessType"], &met["ratType"]),
            (&json!("3GPP_ACCESS"), &json!("NR"))
        );
        assert_eq!(met["plmnId"], json!({"mcc": "001", "mnc": "01"}));
        assert_eq!(
            met["evSubsUri"],
            format!("{}{path}/events-subscription", pcf.origin)
        );

        // The same of a subscription that is made later, and of a patch; nothing where nothing is met.
        let events = json!({"notifUri": format!("{}/events", af.root()), "events": [{"event": "PLMN_CHG"}]});
        let uri = format!("{path}/events-subscription");
        let put = pcf
            .ask(Method::PUT, &uri, "application/json", events.to_string())
            .await;
        assert_eq!(put.status, StatusCode::OK, "{}", put.json);
        assert_eq!(put.json["evNotifs"], json!([{"event": "PLMN_CHG"}]));
        assert_eq!(put.json["plmnId"]["mcc"], "001");
        assert_eq!(put.json["events"], events["events"]);
        let patch = async |events: Value| {
            let body = json!({"ascReqData": {"evSubsc": {"events": events}}}).to_string();
            let got = pcf
                .ask(Method::PATCH, &path, "application/merge-patch+json", body)
                .await;
            assert_eq!(got.status, StatusCode::OK, "{}", got.json);
            got.json
        };
        let patched = patch(json!([{"event": "ACCESS_TYPE_CHANGE"}])).await;
        assert_eq!(patched["evsNotif"]["ratType"], "NR");
        let patched = patch(json!([{"event": "OUT_OF_CREDIT"}])).await;
        assert!(patched.get("evsNotif").is_none(), "{patched}");
        assert!(pcf.get(&path).await.json.get("evsNotif").is_none());
    });
}

#[test]
fn an_event_that_is_wanted_once_is_notified_once() {
    local(async {
        let pcf = start(|_| {});
        let af = listener();
        let sm = pcf
            .session(&json!({"accessType": null, "ratType": null, "servingNetwork": null}))
            .await;
        let wanted = [
            json!({"event": "ACCESS_TYPE_CHANGE", "notifMethod": "ONE_TIME"}),
            json!({"event": "PLMN_CHG", "notifMethod": "EVENT_DETECTION"}),
        ];
        let created = pcf
            .post(
                APP_SESSIONS,
                &call(&af.root(), &subscription(&af.root(), &wanted)),
            )
            .await;
        let path = path_of(&created);
        assert!(created.json.get("evsNotif").is_none(), "{}", created.json);
        let change = async |rat: &str, mnc: &str| {
            let update = json!({"repPolicyCtrlReqTriggers": ["AC_TY_CH", "RAT_TY_CH", "PLMN_CH"], "ratType": rat,
                "accessType": "3GPP_ACCESS", "servingNetwork": {"mcc": "001", "mnc": mnc}});
            let got = pcf.post(&format!("{sm}/update"), &update).await;
            assert_eq!(got.status, StatusCode::OK, "{}", got.json);
        };
        let names = |body: &Value| -> Vec<String> {
            let events = body["evNotifs"].as_array().unwrap().iter();
            events
                .map(|event| event["event"].as_str().unwrap().to_owned())
                .collect()
        };
        change("NR", "02").await;
        assert_eq!(
            names(&notification(&af, 1).await.1),
            ["ACCESS_TYPE_CHANGE", "PLMN_CHG"]
        );
        change("EUTRA", "03").await;
        change("NR", "04").await;
        assert_eq!(names(&notification(&af, 2).await.1), ["PLMN_CHG"]);
        assert_eq!(names(&notification(&af, 3).await.1), ["PLMN_CHG"]);
        // Another subscription has its own first time.
        let events = json!({"notifUri": format!("{}/events", af.root()),
            "events": [{"event": "ACCESS_TYPE_CHANGE", "notifMethod": "ONE_TIME"}, {"event": "OUT_OF_CREDIT"}]});
        let uri = format!("{path}/events-subscription");
        let put = pcf
            .ask(Method::PUT, &uri, "application/json", events.to_string())
            .await;
        assert_eq!(put.json["ratType"], "NR", "met, and thereby notified");
        change("EUTRA", "05").await;
        let update = json!({"repPolicyCtrlReqTriggers": ["NO_CREDIT"]});
        pcf.post(&format!("{sm}/update"), &update).await;
        assert_eq!(names(&notification(&af, 4).await.1), ["OUT_OF_CREDIT"]);
    });
}

#[test]
fn an_af_learns_for_which_flows_credit_is_out_and_what_follows() {
    local(async {
        let pcf = start(|_| {});
        let af = listener();
        let sm = pcf.session(&json!({})).await;
        let wanted = [json!({"event": "OUT_OF_CREDIT"})];
        pcf.post(
            APP_SESSIONS,
            &call(&af.root(), &subscription(&af.root(), &wanted)),
        )
        .await;
        let decision = pcf.get(&sm).await.json;
        let rules: Vec<&String> = decision["policy"]["pccRules"]
            .as_object()
            .unwrap()
            .keys()
            .filter(|id| id.starts_with("af-"))
            .collect();
        let update = json!({"repPolicyCtrlReqTriggers": ["NO_CREDIT"], "ruleReports": [
            {"pccRuleIds": [rules[0]], "ruleStatus": "ACTIVE", "finUnitAct": "TERMINATE"}]});
        pcf.post(&format!("{sm}/update"), &update).await;
        let (_, body) = notification(&af, 1).await;
        crate::judge::is(crate::judge::AF, "EventsNotification", &body);
        assert_eq!(body["evNotifs"], json!([{"event": "OUT_OF_CREDIT"}]));
        assert_eq!(
            body["outOfCredReports"],
            json!([{"finUnitAct": "TERMINATE", "flows": [{"medCompN": 1, "fNums": [1]}]}])
        );
    });
}

#[test]
fn an_smf_gets_of_an_af_what_belongs_to_the_features_that_it_has() {
    local(async {
        let pcf = start(|_| {});
        let af = listener();
        for (features, address, has) in [("0", "10.0.0.1", false), ("ffffffffff", "10.0.0.2", true)] {
            let more = json!({"suppFeat": features, "ipv4Address": address, "ipv6AddressPrefix": null});
            let created = pcf.post(SM_POLICIES, &context(&more)).await;
            let sm = path_of(&created);
            let negotiated = created.json["suppFeat"].as_str().unwrap();
            let last = negotiated
                .chars()
                .last()
                .and_then(|digit| digit.to_digit(16))
                .unwrap();
            assert_eq!(last & 1 == 1, has, "{negotiated}");
            let more = json!({"ueIpv4": address, "sponId": "shop", "aspId": "provider",
                "afRoutReq": {"appReloc": true, "routeToLocs": [{"dnai": "edge-1", "routeProfId": "fast"}]}});
            let created = pcf.post(APP_SESSIONS, &call(&af.root(), &more)).await;
            assert_eq!(created.status, StatusCode::CREATED, "{}", created.json);
            let policy = pcf.get(&sm).await.json["policy"].to_string();
            for member in [
                "routeToLocs",
                "appReloc",
                "sponsorId",
                "appSvcProvId",
                "reportingLevel",
                "afChargId",
            ] {
                assert_eq!(policy.contains(member), has, "{features} {member}: {policy}");
            }
            assert_eq!(policy.contains("refChgData"), has, "{features}: {policy}");
        }
    });
}

#[test]
fn a_request_of_a_ue_for_resources_is_answered_by_a_rule_or_refused() {
    local(async {
        let folder = tempfile::tempdir().unwrap();
        let text = concat!(
            "name: test\nservice: sm\nblocks:\n  - if: {$exists: $request.ueInitResReq}\n    then:\n",
            "      - pccRule: {pccRuleId: ue, precedence: 10, flowInfos: [{flowDescription: permit out ip from any to assigned}]}\n",
        );
        std::fs::write(folder.path().join("project.yaml"), text).unwrap();
        let update = json!({"repPolicyCtrlReqTriggers": ["RES_MO_RE"], "ueInitResReq": {"ruleOp": "CREATE_PCC_RULE",
            "packFiltInfo": [{"packFiltId": "1", "packFiltCont": "permit out ip from any to assigned"}],
            "reqQos": {"5qi": 2}}});
        for (own, status) in [(false, StatusCode::FORBIDDEN), (true, StatusCode::OK)] {
            let pcf = start(|config| config.policy.sm = own.then(|| folder.path().to_owned()));
            let sm = pcf.session(&json!({})).await;
            let got = pcf.post(&format!("{sm}/update"), &update).await;
            assert_eq!(got.status, status, "{}", got.json);
            match own {
                true => assert!(got.json["pccRules"]["ue"].is_object(), "{}", got.json),
                false => assert_eq!(got.json["cause"], "ERROR_TRAFFIC_MAPPING_INFO_REJECTED"),
            }
        }
    });
}

#[test]
fn services_that_a_subscriber_may_not_use_are_refused_where_the_operator_wants_it() {
    local(async {
        let document = json!({"smPolicySnssaiData": {"1-00000a": {"snssai": {"sst": 1, "sd": "00000a"}, "smPolicyDnnData": {
            "internet": {"dnn": "internet", "allowedServices": ["video", "games"]}}}}});
        let udr = testpeer::sbi::Server::start(move |_| sbi::json::response(StatusCode::OK, &document));
        let af = listener();
        for (wanted, service, status) in [
            (true, "IMS", StatusCode::FORBIDDEN),
            (true, "games", StatusCode::CREATED),
            (false, "IMS", StatusCode::CREATED),
        ] {
            let pcf = start(|config| {
                config.pds.udr.enabled = true;
                config.pds.udr.api_roots = vec![udr.root()];
                config.pds.deadline = settings::Period::from_secs(20);
                config.media.allowed_services = wanted;
            });
            pcf.session(&json!({})).await;
            let got = pcf
                .post(APP_SESSIONS, &call(&af.root(), &json!({"afAppId": service})))
                .await;
            assert_eq!(got.status, status, "{wanted} {service}: {}", got.json);
            if status == StatusCode::FORBIDDEN {
                assert_eq!(got.json["cause"], "REQUESTED_SERVICE_NOT_AUTHORIZED");
                assert_eq!(got.json["invalidParams"][0]["param"], "/ascReqData/afAppId");
            }
        }
    });
}

#[test]
fn a_project_refuses_what_an_af_asks_for() {
    local(async {
        let folder = tempfile::tempdir().unwrap();
        let text = concat!(
            "name: test\nservice: sm\nblocks:\n",
            "  - if: {$all: [{$eq: [$event, af]}, {$eq: [$af.afAppId, video]}, {$eq: [$request.dnn, internet]}]}\n",
            "    then:\n      - reject: {cause: REQUESTED_SERVICE_TEMPORARILY_NOT_AUTHORIZED, detail: used up}\n",
            "  - if: {$eq: [$af.afAppId, other]}\n    then:\n      - reject: {cause: NO_CAUSE_OF_N5}\n",
            "  - sessionRule: {sessRuleId: own}\n",
        );
        std::fs::write(folder.path().join("project.yaml"), text).unwrap();
        let pcf = start(|config| config.policy.sm = Some(folder.path().to_owned()));
        let path = pcf.session(&json!({})).await;
        let of = |service: &str| call("http://127.0.0.1:9", &json!({"afAppId": service}));
        for (service, cause) in [
            ("video", "REQUESTED_SERVICE_TEMPORARILY_NOT_AUTHORIZED"),
            ("other", "REQUESTED_SERVICE_NOT_AUTHORIZED"),
        ] {
            let refused = pcf.post(APP_SESSIONS, &of(service)).await;
            assert_eq!((refused.status, refused.cause()), (StatusCode::FORBIDDEN, cause));
        }
        let app = path_of(&pcf.post(APP_SESSIONS, &of("voice")).await);
        let patch = async |body: Value| {
            let kind = "application/merge-patch+json";
            pcf.ask(Method::PATCH, &app, kind, json!({"ascReqData": body}).to_string())
                .await
                .status
        };
        assert_eq!(patch(json!({"afAppId": "video"})).await, StatusCode::FORBIDDEN);
        assert_eq!(patch(json!({"afChargId": "icid-2"})).await, StatusCode::OK);
        // The session of the UE is as it was decided for its SMF.
        let policy = pcf.get(&path).await.json["policy"].clone();
        assert!(policy["sessRules"]["own"].is_object(), "{policy}");
        let cscf = peer("cscf.example.org", &pcf).await;
        let aar = AAR
            .replace("0x494d53", "0x766964656f")
            .replace("\"ims\"", "\"internet\"");
        let answer = ask(&cscf, "cscf.example.org", "cscf;1;1", &aar).await;
        assert!(answer.contains("Experimental-Result-Code = 4261"), "{answer}");
    });
}
