//! What an SMF has missed: it gets the whole decision, and the removal of what it holds beyond that.

use http::{Method, StatusCode};
use pcf::Event;
use serde_json::{Value, json};
use testpeer::sbi::no_content;

use crate::authorization::{APP_SESSIONS, call, listener, notification};
use crate::support::{local, path_of, start};

#[test]
fn a_removal_that_was_lost_comes_with_the_next_notification() {
    local(async {
        let smf = listener();
        let pcf = start(|config| {
            config.notifications.attempts = 1;
            config.notifications.retry_pause = settings::Period::from_millis(1);
        });
        pcf.session(&json!({"notificationUri": format!("{}/smf", smf.root())}))
            .await;
        let first = path_of(
            &pcf.post(APP_SESSIONS, &call("http://127.0.0.1:9", &json!({})))
                .await,
        );
        let (_, body) = notification(&smf, 1).await;
        let rules: Vec<String> = body["smPolicyDecision"]["pccRules"]
            .as_object()
            .unwrap()
            .keys()
            .cloned()
            .collect();
        assert_eq!(rules.len(), 2);

        smf.fails_with(503);
        let ended = pcf.ask(Method::POST, &format!("{first}/delete"), "", "").await;
        assert_eq!(ended.status, StatusCode::NO_CONTENT);
        testpeer::until("the removal is given up", async || {
            pcf.running().count(Event::NotificationFailed) >= 1
        })
        .await;
        smf.answers(|_| no_content());
        pcf.post(APP_SESSIONS, &call("http://127.0.0.1:9", &json!({})))
            .await;
        testpeer::until("the SMF has the removal", async || {
            let seen = smf.seen();
            // What the SMF holds when all that came after the outage is merged.
            let after = seen
                .iter()
                .skip(2)
                .map(|seen| seen.json()["smPolicyDecision"]["pccRules"].clone());
            let after: Vec<Value> = after.collect();
            rules.iter().all(|rule| {
                after
                    .iter()
                    .any(|change| change.get(rule).is_some_and(Value::is_null))
            })
        })
        .await;
        assert_eq!(pcf.running().count(Event::NotificationResynced), 1);
    });
}
