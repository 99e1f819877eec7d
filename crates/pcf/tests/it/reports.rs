//! What consumers see of notifications, and what the PCF makes of their answers (TS 29.512 §4.2.3.2).

use http::StatusCode;
use serde_json::{Value, json};
use testpeer::sbi::{Seen, Server, no_content};

use crate::authorization::{APP_SESSIONS, call, listener, notification};
use crate::pages::admin;
use crate::support::{local, path_of, start};

/// The rules of AFs in the change that an SMF is notified of.
fn new_rules(seen: &Seen) -> Vec<String> {
    let body = seen.json();
    let rules = body["smPolicyDecision"]["pccRules"].as_object();
    let rules = rules.into_iter().flatten().filter(|(_, rule)| !rule.is_null());
    rules.map(|(id, _)| id.clone()).collect()
}

/// An SMF that answers changes with what `answer` makes of their rules.
fn smf(answer: impl Fn(Vec<String>) -> (StatusCode, Value) + 'static) -> Server {
    Server::start(move |seen| match new_rules(seen) {
        rules if rules.is_empty() => no_content(),
        rules => {
            let (status, body) = answer(rules);
            sbi::json::response(status, &body)
        }
    })
}

/// What an SMF answers to the removal or installation of these rules.
type Answering = fn(Vec<String>) -> (StatusCode, Value);

#[test]
fn rules_that_an_smf_cannot_install_are_gone_and_the_af_hears_of_it() {
    fn failed(rules: &[String]) -> Value {
        json!([{"pccRuleIds": rules, "ruleStatus": "INACTIVE", "failureCode": "RES_ALLO_FAIL"}])
    }
    let whole = |rules: Vec<String>| {
        let error = json!({"status": 400, "cause": "PCC_RULE_EVENT"});
        (
            StatusCode::BAD_REQUEST,
            json!({"error": error, "ruleReports": failed(&rules)}),
        )
    };
    let partial = |rules: Vec<String>| {
        let report = json!({"failureCause": "PCC_RULE_EVENT", "ruleReports": failed(&rules),
            "ueCampingRep": {"ratType": "EUTRA"}});
        (StatusCode::OK, json!([report]))
    };
    let answers: [Answering; 2] = [whole, partial];
    for answer in answers {
        local(async move {
            let pcf = start(|_| {});
            let (smf, af) = (smf(answer), listener());
            let uri = format!("{}/smf", smf.root());
            let sm = pcf.session(&json!({"notificationUri": uri})).await;
            pcf.post(APP_SESSIONS, &call(&af.root(), &json!({}))).await;
            let (path, body) = notification(&af, 1).await;
            assert_eq!(path, "/events/notify");
            crate::judge::is(crate::judge::AF, "EventsNotification", &body);
            assert_eq!(body["evNotifs"][0]["event"], "FAILED_RESOURCES_ALLOCATION");
            assert_eq!(
                body["evNotifs"][0]["flows"],
                json!([{"medCompN": 1, "fNums": [1, 2]}])
            );
            let stored = pcf.get(&sm).await.json;
            assert!(!stored["policy"].to_string().contains("af-"), "{stored}");
            assert_eq!(pcf.running().count(pcf::Event::AnswerReport), 1);
        });
    }
}

#[test]
fn an_answer_has_where_the_ue_is() {
    local(async {
        let pcf = start(|_| {});
        let smf = smf(|_| {
            (
                StatusCode::OK,
                json!({"ratType": "EUTRA", "accessType": "NON_3GPP_ACCESS"}),
            )
        });
        let uri = format!("{}/smf", smf.root());
        let sm = pcf.session(&json!({"notificationUri": uri})).await;
        pcf.post(APP_SESSIONS, &call("http://127.0.0.1:9", &json!({})))
            .await;
        loop {
            let context = pcf.get(&sm).await.json["context"].clone();
            if context["ratType"] == "EUTRA" {
                assert_eq!(context["accessType"], "NON_3GPP_ACCESS");
                break;
            }
            tokio::task::yield_now().await;
        }
    });
}

#[test]
fn notifications_have_the_names_of_their_services() {
    local(async {
        let pcf = start(|_| {});
        let peer = listener();
        let sm = pcf
            .session(&json!({"notificationUri": format!("{}/smf", peer.root())}))
            .await;
        path_of(&pcf.post(APP_SESSIONS, &call(&peer.root(), &json!({}))).await);
        notification(&peer, 1).await;
        let report =
            json!({"ruleReports": [{"pccRuleIds": new_rules(&peer.seen()[0]), "ruleStatus": "ACTIVE"}]});
        pcf.post(&format!("{sm}/update"), &report).await;
        notification(&peer, 2).await;
        pcf.post(&format!("{sm}/delete"), &json!({})).await;
        notification(&peer, 3).await;
        let mut number = 3;
        for service in ["am", "ue"] {
            let body =
                json!({"supi": "imsi-001010000000001", "notificationUri": peer.root(), "suppFeat": "0"});
            let created = pcf
                .post(&format!("/npcf-{service}-policy-control/v1/policies"), &body)
                .await;
            let id = path_of(&created).rsplit('/').next().unwrap().to_owned();
            assert_eq!(
                admin(&pcf, "DELETE", &format!("/pcf/sessions/{id}"), "").await,
                200
            );
            number += 1;
            notification(&peer, number).await;
        }
        let names: Vec<String> = peer
            .seen()
            .iter()
            .map(|seen| seen.header("3gpp-sbi-callback").to_owned())
            .collect();
        assert_eq!(
            names,
            [
                "Npcf_SMPolicyControl_SmPolicyUpdateNotification",
                "Npcf_PolicyAuthorization_eventNotification",
                "Npcf_PolicyAuthorization_terminationRequest",
                "Npcf_AMPolicyControl_policyAssocitionTerminationRequestNotification",
                "Npcf_UEPolicyControl_UpdateNotify",
            ]
        );
    });
}

#[test]
fn af_sessions_of_a_session_are_bounded() {
    local(async {
        let pcf = start(|config| config.media.sessions = 2);
        pcf.session(&json!({})).await;
        let request = call("http://127.0.0.1:9", &json!({}));
        let first = path_of(&pcf.post(APP_SESSIONS, &request).await);
        path_of(&pcf.post(APP_SESSIONS, &request).await);
        let refused = pcf.post(APP_SESSIONS, &request).await;
        assert_eq!(
            (refused.status, refused.cause()),
            (
                StatusCode::FORBIDDEN,
                "REQUESTED_SERVICE_TEMPORARILY_NOT_AUTHORIZED"
            )
        );
        assert_eq!(pcf.running().count(pcf::Event::AfSessionsFull), 1);
        pcf.ask(http::Method::POST, &format!("{first}/delete"), "", "")
            .await;
        path_of(&pcf.post(APP_SESSIONS, &request).await);
    });
}

#[test]
fn what_the_smf_is_to_report_of_rules_names_rules_that_exist() {
    local(async {
        let pcf = start(|_| {});
        let sm = pcf.session(&json!({})).await;
        pcf.post(APP_SESSIONS, &call("http://127.0.0.1:9", &json!({})))
            .await;
        let policy = async || pcf.get(&sm).await.json["policy"].clone();
        let before = policy().await;
        let asked = before["lastReqRuleData"][0]["refPccRuleIds"].as_array().unwrap();
        for (rules, left) in [(&asked[..1], Some(1)), (&asked[..], None)] {
            let report = json!({"ruleReports": [{"pccRuleIds": rules, "ruleStatus": "INACTIVE"}]});
            pcf.post(&format!("{sm}/update"), &report).await;
            let after = policy().await;
            let named = after
                .pointer("/lastReqRuleData/0/refPccRuleIds")
                .and_then(Value::as_array);
            assert_eq!(named.map(Vec::len), left, "{after}");
        }
    });
}
