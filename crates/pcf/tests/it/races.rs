//! Requests of one session that are in flight at once, over several connections.

use http::{Method, StatusCode};
use serde_json::{Value, json};
use testpeer::page;

use crate::authorization::{APP_SESSIONS, call, listener};
use crate::diameter::{AAR, CCR_I, STR, ask, peer};
use crate::support::{
    Pcf, SM_POLICIES, client, context, judged, path_of, repeated, request, rounds, start, until,
};

/// Rounds of a race, where `SIGNALBOX_ROUNDS` names no other number.
const ROUNDS: usize = 20;
const SUCCESS: &str = "Result-Code = DIAMETER_SUCCESS";

/// A PCF to which each node has two ways.
fn two_ways() -> Pcf {
    start(|config| {
        config.diameter.agents = vec!["dra1.example.org".to_owned(), "dra2.example.org".to_owned()];
    })
}

async fn show(pcf: &Pcf, path: &str) -> Value {
    let (status, text) = page(pcf.running().handle().routes(), path).await;
    assert_eq!(status, 200, "{text}");
    serde_json::from_str(&text).unwrap()
}

/// The only session of a PCF, as it is stored.
async fn stored(pcf: &Pcf) -> Value {
    let all = show(pcf, "/pcf/sessions").await;
    assert_eq!(all.as_array().unwrap().len(), 1, "{all}");
    show(pcf, &format!("/pcf/sessions/{}", all[0]["id"].as_str().unwrap())).await
}

fn len(value: &Value) -> usize {
    value.as_object().map_or(0, serde_json::Map::len)
}

#[test]
fn two_changes_of_an_af_session_in_flight_lose_no_component() {
    repeated(rounds(ROUNDS), async {
        let pcf = two_ways();
        let (one, other) = (
            peer("dra1.example.org", &pcf).await,
            peer("dra2.example.org", &pcf).await,
        );
        ask(&one, "pgw.example.org", "pgw;1;1", CCR_I).await;
        let component = |number: u32| {
            AAR.replace("INITIAL_REQUEST", "UPDATE_REQUEST").replace(
                "Media-Component-Number = 1",
                &format!("Media-Component-Number = {number}"),
            )
        };
        for round in 0..rounds(ROUNDS) {
            let session = format!("cscf;1;{round}");
            ask(&one, "cscf.example.org", &session, AAR).await;
            let (second, third) = (component(2), component(3));
            let (first, last) = tokio::join!(
                ask(&one, "cscf.example.org", &session, &second),
                ask(&other, "cscf.example.org", &session, &third),
            );
            assert!(
                first.contains(SUCCESS) && last.contains(SUCCESS),
                "{first}\n{last}"
            );
            let rules = &stored(&pcf).await["decision"]["pccRules"];
            assert_eq!(len(rules), 6, "round {round}: {rules}");
            assert!(
                ask(&one, "cscf.example.org", &session, STR)
                    .await
                    .contains(SUCCESS)
            );
        }
    });
}

#[test]
fn an_af_session_that_is_changed_while_it_ends_does_not_stand_again() {
    repeated(rounds(ROUNDS), async {
        let pcf = two_ways();
        let (one, other) = (
            peer("dra1.example.org", &pcf).await,
            peer("dra2.example.org", &pcf).await,
        );
        ask(&one, "pgw.example.org", "pgw;1;1", CCR_I).await;
        for kind in ["UPDATE_REQUEST", "INITIAL_REQUEST"] {
            let again = AAR.replace("INITIAL_REQUEST", kind);
            for round in 0..rounds(ROUNDS) {
                let session = format!("cscf;{kind};{round}");
                ask(&one, "cscf.example.org", &session, AAR).await;
                let (ended, _) = tokio::join!(
                    ask(&one, "cscf.example.org", &session, STR),
                    ask(&other, "cscf.example.org", &session, &again),
                );
                assert!(ended.contains(SUCCESS), "{ended}");
                let now = stored(&pcf).await;
                assert_eq!(len(&now["rooms"]["af"]), 0, "round {round}: {now}");
                assert_eq!(len(&now["decision"]["pccRules"]), 0, "round {round}: {now}");
            }
        }
    });
}

#[test]
fn a_request_that_begins_a_session_makes_one_however_often_it_is_in_flight() {
    repeated(rounds(ROUNDS), async {
        let pcf = two_ways();
        let (one, other) = (
            peer("dra1.example.org", &pcf).await,
            peer("dra2.example.org", &pcf).await,
        );
        for round in 0..rounds(ROUNDS) {
            let (gx, rx) = (format!("pgw;1;{round}"), format!("cscf;1;{round}"));
            let begin = |by| ask(by, "pgw.example.org", &gx, CCR_I);
            let (first, last) = tokio::join!(begin(&one), begin(&other));
            assert!(first.contains(SUCCESS), "{first}");
            let content = |text: &str| -> Vec<String> {
                let lines = text.lines().skip(1);
                lines.map(str::to_owned).collect()
            };
            assert_eq!(content(&first), content(&last));
            let call = |by| ask(by, "cscf.example.org", &rx, AAR);
            let (first, last) = tokio::join!(call(&one), call(&other));
            assert!(
                first.contains(SUCCESS) && last.contains(SUCCESS),
                "{first}\n{last}"
            );
            let now = stored(&pcf).await;
            assert_eq!(len(&now["rooms"]["af"]), 1, "round {round}: {now}");
            assert_eq!(len(&now["decision"]["pccRules"]), 2, "round {round}: {now}");
            assert!(ask(&one, "cscf.example.org", &rx, STR).await.contains(SUCCESS));
            let end = "CCR\nCC-Request-Type = TERMINATION_REQUEST\nCC-Request-Number = 1\nTermination-Cause = DIAMETER_LOGOUT";
            assert!(ask(&one, "pgw.example.org", &gx, end).await.contains(SUCCESS));
            assert_eq!(show(&pcf, "/pcf/sessions").await, json!([]), "round {round}");
        }
    });
}

#[test]
fn an_update_a_call_and_the_end_of_a_session_in_flight_leave_nothing() {
    repeated(rounds(ROUNDS), async {
        let pcf = start(|config| config.workers = 2);
        let (smf, af) = (listener(), listener());
        let clients = [client(), client(), client()];
        let post = async |by: usize, path: &str, body: &Value| {
            let request = request(Method::POST, path, "application/json", body.to_string());
            judged(&clients[by], &pcf.origin, request).await
        };
        let at_smf = context(&json!({"notificationUri": format!("{}/smf", smf.root())}));
        for round in 0..rounds(ROUNDS) {
            let path = path_of(&post(0, SM_POLICIES, &at_smf).await);
            let (update, delete) = (format!("{path}/update"), format!("{path}/delete"));
            let (moved, nothing) = (json!({"ratType": "EUTRA"}), json!({}));
            let begun = call(&format!("{}/{round}", af.root()), &json!({}));
            let (updated, called, ended) = tokio::join!(
                post(0, &update, &moved),
                post(1, APP_SESSIONS, &begun),
                post(2, &delete, &nothing),
            );
            assert_eq!(ended.status, StatusCode::NO_CONTENT, "{}", ended.json);
            let is_usual = [StatusCode::OK, StatusCode::NOT_FOUND].contains(&updated.status);
            assert!(is_usual, "{}: {}", updated.status, updated.json);
            if called.status == StatusCode::CREATED {
                let end = format!("/{round}/af/terminate");
                until(|| af.seen().iter().any(|seen| seen.path == end)).await;
                assert_eq!(pcf.get(&path_of(&called)).await.status, StatusCode::NOT_FOUND);
            } else {
                assert_eq!(called.cause(), "PDU_SESSION_NOT_AVAILABLE", "{}", called.json);
            }
            assert_eq!(show(&pcf, "/pcf/sessions").await, json!([]), "round {round}");
        }
    });
}
