//! Subscriptions and their notifications.

use std::cell::Cell;

use http::{Method, StatusCode};
use sbi::problem::Problem;
use serde_json::{Value, json};
use testpeer::sbi::{Seen, Server, no_content};
use testpeer::until;

use crate::judge;
use crate::support::{Nrf, UDM, local, profile, start};

/// A subscriber that refuses this many notifications first.
fn sink(failures: u32) -> (Server, String) {
    let left = Cell::new(failures);
    let sink = Server::start(move |seen| {
        assert_eq!(
            seen.header("3gpp-sbi-callback"),
            "Nnrf_NFManagement_NFStatusNotify"
        );
        if left.get() > 0 {
            left.set(left.get() - 1);
            return Problem::of_status(StatusCode::SERVICE_UNAVAILABLE).into_response();
        }
        judge::notification(&seen.json());
        no_content()
    });
    let uri = format!("{}/notified", sink.root());
    (sink, uri)
}

/// The accepted notifications, once there are `count` after `failures` refusals.
async fn notified(sink: &Server, failures: usize, count: usize) -> Vec<Value> {
    until("all notifications", async || sink.count() >= failures + count).await;
    sink.seen()[failures..].iter().map(Seen::json).collect()
}

async fn subscribe(nrf: &Nrf, data: Value) -> (StatusCode, Value, String) {
    let got = nrf
        .ask(
            Method::POST,
            "/nnrf-nfm/v1/subscriptions",
            "application/json",
            data.to_string(),
        )
        .await;
    let location = got.header("location").to_owned();
    (got.status, got.json, location)
}

#[test]
fn changes_are_notified_in_order_and_retried() {
    local(async {
        let nrf = start(|config| config.subscriptions.retry_pause = settings::Period::from_millis(5));
        let (sink, uri) = sink(2);
        let (status, body, location) = subscribe(
            &nrf,
            json!({"nfStatusNotificationUri": uri, "reqNfType": "AMF", "subscrCond": {"nfType": "UDM"}}),
        )
        .await;
        assert_eq!(status, StatusCode::CREATED);
        assert!(location.ends_with(body["subscriptionId"].as_str().unwrap()));
        assert!(body["validityTime"].as_str().unwrap().ends_with('Z'));
        nrf.put(&profile(UDM, "UDM", "nudm-sdm", &json!({}))).await;
        nrf.patch(UDM, json!([{"op": "add", "path": "/priority", "value": 2}]))
            .await;
        nrf.ask(
            Method::DELETE,
            &format!("/nnrf-nfm/v1/nf-instances/{UDM}"),
            "",
            "",
        )
        .await;
        let events: Vec<String> = notified(&sink, 2, 3)
            .await
            .iter()
            .map(|one| one["event"].as_str().unwrap().to_owned())
            .collect();
        assert_eq!(events, ["NF_REGISTERED", "NF_PROFILE_CHANGED", "NF_DEREGISTERED"]);
    });
}

#[test]
fn subscriptions_are_limited_extended_and_ended() {
    local(async {
        let nrf = start(|config| config.subscriptions.max = 1);
        let (_, uri) = sink(0);
        let wanted = json!({"nfStatusNotificationUri": uri, "reqNfType": "AMF", "validityTime": "2020-01-01T00:00:00Z"});
        let (_, _, location) = subscribe(&nrf, wanted.clone()).await;
        assert_eq!(subscribe(&nrf, wanted).await.0, StatusCode::INTERNAL_SERVER_ERROR);
        let path = location.strip_prefix(&nrf.origin.to_string()).unwrap().to_owned();
        let extended = nrf.extend(&path).await;
        assert_eq!(extended.status, StatusCode::OK, "{}", extended.json);
        assert!(
            !extended.json["validityTime"]
                .as_str()
                .unwrap()
                .starts_with("2999"),
            "bounded by the NRF"
        );
        assert_eq!(
            nrf.ask(Method::DELETE, &path, "", "").await.status,
            StatusCode::NO_CONTENT
        );
        let gone = nrf.ask(Method::DELETE, &path, "", "").await;
        assert_eq!(
            (gone.status, gone.cause()),
            (StatusCode::NOT_FOUND, "SUBSCRIPTION_NOT_FOUND")
        );
    });
}

#[test]
fn a_slow_subscriber_gets_the_newest_state_when_its_queue_is_full() {
    local(async {
        let nrf = start(|config| config.subscriptions.queue_per_subscriber = 2);
        let (sink, uri) = sink(0);
        sink.waits(std::time::Duration::from_millis(200));
        subscribe(&nrf, json!({"nfStatusNotificationUri": uri, "reqNfType": "AMF"})).await;
        nrf.put(&profile(UDM, "UDM", "nudm-sdm", &json!({}))).await;
        for priority in 1..=10 {
            nrf.patch(
                UDM,
                json!([{"op": "add", "path": "/priority", "value": priority}]),
            )
            .await;
        }
        let path = format!("/nnrf-nfm/v1/nf-instances/{UDM}");
        nrf.ask(Method::DELETE, &path, "", "").await;
        until("the newest state", async || {
            let last = sink.seen().last().map(Seen::json);
            last.is_some_and(|last| last["event"] == "NF_DEREGISTERED")
        })
        .await;
        let running = nrf.running.as_ref().unwrap();
        assert!(running.count(nrf::Event::NotificationDropped) > 0);
        assert_eq!(
            running.count(nrf::Event::NotificationResynced),
            0,
            "nothing was missed"
        );
    });
}

#[test]
fn a_subscriber_that_answers_again_gets_the_profiles_it_missed() {
    local(async {
        let nrf = start(|config| config.subscriptions.attempts = 1);
        let (sink, uri) = sink(2);
        subscribe(
            &nrf,
            json!({"nfStatusNotificationUri": uri, "reqNfType": "AMF", "subscrCond": {"nfType": "UDM"}}),
        )
        .await;
        let ids = ["11", "22", "33"].map(|end| format!("{}{end}", &UDM[..UDM.len() - 2]));
        for (index, id) in ids.iter().enumerate() {
            nrf.put(&profile(id, "UDM", "nudm-sdm", &json!({}))).await;
            until("the notification", async || sink.count() > index).await;
        }
        let state = notified(&sink, 2, 3).await;
        let seen: Vec<(&str, &str)> = state
            .iter()
            .map(|one| {
                (
                    one["event"].as_str().unwrap(),
                    one["nfInstanceUri"].as_str().unwrap(),
                )
            })
            .collect();
        // The newest first: it is what showed that the subscriber answers again.
        for ((event, uri), id) in seen.iter().zip([&ids[2], &ids[0], &ids[1]]) {
            assert_eq!(*event, "NF_REGISTERED");
            assert!(uri.ends_with(id), "{seen:?}");
        }
        let running = nrf.running.as_ref().unwrap();
        assert_eq!(running.count(nrf::Event::NotificationResynced), 2);
    });
}

#[test]
fn a_redirection_is_followed_where_subscriptions_may_lead() {
    local(async {
        let nrf = start(|config| {
            config.subscriptions.attempts = 1;
            config.outgoing.denied_networks = vec!["127.0.0.2/32".parse().unwrap()];
        });
        let (there, uri) = sink(0);
        let redirecting = |to: String| {
            Server::start(move |_| {
                let mut response = sbi::Response::default();
                *response.status_mut() = StatusCode::PERMANENT_REDIRECT;
                response.headers_mut().set_printed("location", &to);
                response
            })
        };
        let good = redirecting(uri);
        let bad = redirecting("http://127.0.0.2:9/callback".to_owned());
        for from in [&good, &bad] {
            let uri = format!("{}/callback", from.root());
            subscribe(&nrf, json!({"nfStatusNotificationUri": uri, "reqNfType": "AMF"})).await;
        }
        nrf.put(&profile(UDM, "UDM", "nudm-sdm", &json!({}))).await;
        notified(&there, 0, 1).await;
        let running = nrf.running.as_ref().unwrap();
        let counted = |event| running.count(event);
        until("the failure", async || {
            counted(nrf::Event::NotificationFailed) == 1
        })
        .await;
        assert_eq!(counted(nrf::Event::TargetDenied), 1);
        assert_eq!(counted(nrf::Event::NotificationRedirected), 1);
    });
}
