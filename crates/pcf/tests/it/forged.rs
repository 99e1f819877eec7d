//! Notifications that no producer has sent: who knows an association knows no path at which the PCF is notified of it.

use std::cell::RefCell;
use std::rc::Rc;

use http::{Method, StatusCode};
use pcf::Event;
use sbi::Response;
use serde_json::{Value, json};
use testpeer::sbi::{Seen, Server, no_content};

use crate::authorization::{APP_SESSIONS, call};
use crate::support::{Pcf, local, path_of, start};

const SUPI: &str = "imsi-001010000000001";

fn created(root: &str, path: &str, body: &Value) -> Response {
    let mut response = sbi::json::response(StatusCode::CREATED, body);
    let location = format!("{root}{path}");
    response.headers_mut().set_printed(sbi::name::LOCATION, location);
    response
}

/// A UDR and a CHF in one, with this category and this status of a counter.
fn sources(state: &Rc<RefCell<(&'static str, &'static str)>>, puts: StatusCode) -> Server {
    let server = Server::start(|_| no_content());
    let (root, state) = (server.root(), state.clone());
    server.answers(move |seen: &Seen| {
        let (category, status) = *state.borrow();
        let infos =
            json!({"statusInfos": {"monthly": {"policyCounterId": "monthly", "currentStatus": status}}});
        match (&seen.method, seen.path.contains("spendinglimit")) {
            (&Method::POST, true) => created(&root, "/nchf-spendinglimitcontrol/v1/subscriptions/1", &infos),
            (&Method::POST, false) => {
                created(&root, "/nudr-dr/v2/policy-data/subs-to-notify/1", &seen.json())
            }
            (&Method::PUT, _) if puts == StatusCode::OK => sbi::json::response(puts, &infos),
            (&Method::PUT, _) => Response::new(puts),
            (&Method::GET, _) => sbi::json::response(
                StatusCode::OK,
                &json!({"smPolicySnssaiData": {"1": {"snssai": {"sst": 1}}}, "category": category}),
            ),
            _ => no_content(),
        }
    });
    server
}

fn started(folder: &std::path::Path, sources: &Server) -> Pcf {
    let text = concat!(
        "name: test\nservice: sm\nblocks:\n",
        "  - sessionRule:\n      sessRuleId: {$concat: [{$first: [$subscriber.category, none]}, \"-\", ",
        "{$first: [$counters.monthly.currentStatus, none]}]}\n",
    );
    std::fs::write(folder.join("project.yaml"), text).unwrap();
    let root = sources.root();
    start(|config| {
        config.policy.sm = Some(folder.to_owned());
        config.pds.udr.enabled = true;
        config.pds.udr.api_roots = vec![root.clone()];
        config.pds.chf.enabled = true;
        config.pds.chf.api_roots = vec![root];
        config.pds.deadline = settings::Period::from_secs(20);
    })
}

async fn rule(pcf: &Pcf, path: &str) -> String {
    let rules = pcf.get(path).await.json["policy"]["sessRules"].clone();
    rules.as_object().unwrap().keys().next().unwrap().clone()
}

/// The paths that the sources were given.
fn paths(sources: &Server) -> (String, String) {
    let path = |uri: &str| uri.parse::<http::Uri>().unwrap().path().to_owned();
    let (mut udr, mut chf) = (String::new(), String::new());
    for seen in sources.take().iter().filter(|seen| seen.method == Method::POST) {
        match seen.json() {
            body if body["notifUri"].is_string() => chf = path(body["notifUri"].as_str().unwrap()),
            body => udr = path(body["notificationUri"].as_str().unwrap()),
        }
    }
    (udr, chf)
}

#[test]
fn a_notification_at_a_path_that_no_producer_has_got_changes_nothing() {
    local(async {
        let folder = tempfile::tempdir().unwrap();
        let sources = sources(&Rc::new(RefCell::new(("basic", "low"))), StatusCode::OK);
        let pcf = started(folder.path(), &sources);
        let path = pcf.session(&json!({})).await;
        let (udr, chf) = paths(&sources);
        let id = path.rsplit('/').next().unwrap().to_owned();
        let session = pcf
            .post(APP_SESSIONS, &call("http://127.0.0.1:9", &json!({})))
            .await;
        let session = path_of(&session).rsplit('/').next().unwrap().to_owned();
        assert!(!udr.contains(&id) && !chf.contains(&id) && !session.contains(&id));

        let of_udr = udr.rsplit('/').next().unwrap();
        let of_chf = chf.rsplit('/').next().unwrap();
        let gold = json!([{"ueId": SUPI, "smPolicyData": {"category": "gold",
            "smPolicySnssaiData": {"1": {"snssai": {"sst": 1}}}}}]);
        let none = json!({"supi": SUPI, "statusInfos": {"monthly": {"policyCounterId": "monthly", "currentStatus": "none"}}});
        for segment in [id.as_str(), &session, "0", &"0".repeat(32), of_chf] {
            let at = format!("/signalbox-pcf/v1/policy-data-change/{segment}");
            assert_eq!(pcf.post(&at, &gold).await.status, StatusCode::NOT_FOUND, "{at}");
        }
        for segment in [id.as_str(), &session, &"0".repeat(32), of_udr] {
            for what in ["notify", "terminate"] {
                let at = format!("/signalbox-pcf/v1/spending-limits/{segment}/{what}");
                assert_eq!(pcf.post(&at, &none).await.status, StatusCode::NOT_FOUND, "{at}");
            }
        }
        let count = |event| pcf.running().count(event);
        assert_eq!((count(Event::UdrNotified), count(Event::ChfNotified)), (0, 0));
        assert_eq!(rule(&pcf, &path).await, "basic-low");
        // Nothing was cached for the next session either, nor asked.
        let next = pcf
            .session(&json!({"pduSessionId": 6, "ipv4Address": "10.0.0.9"}))
            .await;
        assert_eq!(rule(&pcf, &next).await, "basic-low");
        assert!(!sources.take().iter().any(|seen| seen.method != Method::POST));
    });
}

#[test]
fn what_a_notification_says_counts_no_more_than_what_its_producer_answers() {
    local(async {
        let folder = tempfile::tempdir().unwrap();
        let state = Rc::new(RefCell::new(("basic", "low")));
        let sources = sources(&state, StatusCode::OK);
        let pcf = started(folder.path(), &sources);
        let path = pcf.session(&json!({})).await;
        let (udr, chf) = paths(&sources);
        let gold = json!([{"ueId": SUPI, "smPolicyData": {"category": "gold"}}]);
        let none = json!({"supi": SUPI, "statusInfos": {"monthly": {"policyCounterId": "monthly", "currentStatus": "none"}}});
        assert_eq!(pcf.post(&udr, &gold).await.status, StatusCode::NO_CONTENT);
        let notify = format!("{chf}/notify");
        assert_eq!(pcf.post(&notify, &none).await.status, StatusCode::NO_CONTENT);
        assert_eq!(rule(&pcf, &path).await, "basic-low");
        assert_eq!(
            pcf.post(&format!("{chf}/terminate"), &none).await.status,
            StatusCode::NO_CONTENT
        );
        assert_eq!(rule(&pcf, &path).await, "basic-low", "the subscription stands");

        *state.borrow_mut() = ("silver", "exhausted");
        assert_eq!(pcf.post(&udr, &gold).await.status, StatusCode::NO_CONTENT);
        assert_eq!(pcf.post(&notify, &none).await.status, StatusCode::NO_CONTENT);
        assert_eq!(rule(&pcf, &path).await, "silver-exhausted");
        // The CHF is asked with what was subscribed to.
        let asked = sources.take();
        let put = asked.iter().find(|seen| seen.method == Method::PUT).unwrap();
        assert_eq!(put.path, "/nchf-spendinglimitcontrol/v1/subscriptions/1");
        crate::judge::is(
            "TS29594_Nchf_SpendingLimitControl.yaml",
            "SpendingLimitContext",
            &put.json(),
        );
    });
}

#[test]
fn a_chf_that_does_not_answer_for_a_subscription_is_believed_at_its_own_path() {
    local(async {
        for status in [StatusCode::METHOD_NOT_ALLOWED, StatusCode::NO_CONTENT] {
            let folder = tempfile::tempdir().unwrap();
            let sources = sources(&Rc::new(RefCell::new(("basic", "low"))), status);
            let pcf = started(folder.path(), &sources);
            let path = pcf.session(&json!({})).await;
            let (_, chf) = paths(&sources);
            let high = json!({"supi": SUPI, "statusInfos": {"monthly": {"policyCounterId": "monthly", "currentStatus": "high"}}});
            assert_eq!(
                pcf.post(&format!("{chf}/notify"), &high).await.status,
                StatusCode::NO_CONTENT
            );
            assert_eq!(rule(&pcf, &path).await, "basic-high");
        }
    });
}
