//! A restart keeps what was acknowledged. (`kill -9` of the whole process is tested with the binary.)

use http::{Method, StatusCode};
use sbi::client::Origin;
use serde_json::json;
use testpeer::sbi::{Seen, Server, client, no_content, request, send};
use testpeer::until;

use crate::process::Process;
use crate::support::{config, id, local, profile, start};

#[test]
fn registrations_and_subscriptions_survive_a_restart() {
    local(async {
        let mut nrf = start(|_| {});
        for number in 0..20 {
            nrf.put(&profile(&id(number), "UDM", "nudm-sdm", &json!({})))
                .await;
        }
        nrf.ask(
            Method::DELETE,
            &format!("/nnrf-nfm/v1/nf-instances/{}", id(3)),
            "",
            "",
        )
        .await;
        let data = json!({"nfStatusNotificationUri": "http://127.0.0.1:9/x", "reqNfType": "AMF"});
        let subscribed = nrf
            .ask(
                Method::POST,
                "/nnrf-nfm/v1/subscriptions",
                "application/json",
                data.to_string(),
            )
            .await;
        let subscription = subscribed.json["subscriptionId"].as_str().unwrap().to_owned();
        nrf.stop();

        let again = nrf::start(config(nrf.directory.path())).unwrap();
        nrf.origin = format!("http://{}", again.addresses()[0]).parse().unwrap();
        nrf.running = Some(again);
        for number in 0..20 {
            let got = nrf
                .get(&format!("/nnrf-nfm/v1/nf-instances/{}", id(number)))
                .await;
            let expected = if number == 3 {
                StatusCode::NOT_FOUND
            } else {
                StatusCode::OK
            };
            assert_eq!(got.status, expected, "{number}");
        }
        let gone = nrf
            .ask(
                Method::DELETE,
                &format!("/nnrf-nfm/v1/subscriptions/{subscription}"),
                "",
                "",
            )
            .await;
        assert_eq!(gone.status, StatusCode::NO_CONTENT);
    });
}

/// A silent NF is not discovered again because the NRF restarts; its next heart-beat brings it back as it was.
#[test]
fn a_suspension_survives_a_restart() {
    local(async {
        let mut nrf = start(|_| {});
        nrf.put(&profile(&id(1), "UDM", "nudm-sdm", &json!({"heartBeatTimer": 1})))
            .await;
        let path = format!("/nnrf-nfm/v1/nf-instances/{}", id(1));
        until("the suspension", async || {
            nrf.get(&path).await.json["nfStatus"] == "SUSPENDED"
        })
        .await;
        nrf.stop();
        let again = nrf::start(config(nrf.directory.path())).unwrap();
        nrf.origin = format!("http://{}", again.addresses()[0]).parse().unwrap();
        nrf.running = Some(again);
        assert_eq!(nrf.get(&path).await.json["nfStatus"], "SUSPENDED");
        let found = nrf.found("target-nf-type=UDM&requester-nf-type=AMF").await;
        assert!(found.is_empty(), "{found:?}");
        let load = json!([{"op": "add", "path": "/load", "value": 7}]);
        assert_eq!(nrf.patch(&id(1), load).await.status, StatusCode::NO_CONTENT);
        assert_eq!(nrf.get(&path).await.json["nfStatus"], "REGISTERED");
        nrf.stop();
    });
}

/// An acknowledged change is notified of, whenever the process dies.
#[test]
fn a_kill_before_a_notification_leaves_it_owed() {
    local(async {
        let directory = tempfile::tempdir().unwrap();
        let mut config = config(directory.path());
        config.subscriptions.retry_pause = settings::Period::from_secs(20);
        let subscriber = Server::start(|_| no_content());
        subscriber.fails_with(503);
        let client = client("AMF-test");
        let ask = async |origin: &Origin, method: Method, path: String, body: String| {
            let kind = if body.is_empty() { "" } else { "application/json" };
            send(&client, origin, request(method, &path, kind, body))
                .await
                .unwrap()
        };
        let nrf = Process::start(&config);
        for number in [1, 2] {
            let (path, body) = (
                format!("/nnrf-nfm/v1/nf-instances/{}", id(number)),
                profile(&id(number), "UDM", "nudm-sdm", &json!({})).to_string(),
            );
            assert_eq!(
                ask(&nrf.origin, Method::PUT, path, body).await.status,
                StatusCode::CREATED
            );
        }
        let data = json!({"nfStatusNotificationUri": format!("{}/notified", subscriber.root()), "subscrCond": {"nfType": "UDM"}});
        let made = ask(
            &nrf.origin,
            Method::POST,
            "/nnrf-nfm/v1/subscriptions".to_owned(),
            data.to_string(),
        )
        .await;
        assert_eq!(made.status, StatusCode::CREATED);
        let gone = ask(
            &nrf.origin,
            Method::DELETE,
            format!("/nnrf-nfm/v1/nf-instances/{}", id(1)),
            String::new(),
        )
        .await;
        assert_eq!(gone.status, StatusCode::NO_CONTENT);
        let path = format!("/nnrf-nfm/v1/nf-instances/{}", id(2));
        let changed = profile(&id(2), "UDM", "nudm-sdm", &json!({"priority": 7})).to_string();
        assert_eq!(
            ask(&nrf.origin, Method::PUT, path, changed).await.status,
            StatusCode::OK
        );
        until("an attempt", async || subscriber.count() > 0).await;
        nrf.kill();
        subscriber.answers(|_| no_content());
        drop(subscriber.take());
        let nrf = Process::start(&config);
        let heard = |number: u32| {
            let seen = subscriber.seen();
            let mut about = seen.iter().map(Seen::json);
            let uri = |one: &serde_json::Value| one["nfInstanceUri"].as_str().unwrap_or_default().to_owned();
            about.find(|one| uri(one).ends_with(&id(number)))
        };
        until("both changes", async || heard(1).is_some() && heard(2).is_some()).await;
        assert_eq!(heard(1).unwrap()["event"], "NF_DEREGISTERED");
        assert_ne!(heard(2).unwrap()["event"], "NF_DEREGISTERED");
        nrf.kill();
    });
}

/// Changes of one instance take effect in the order they came in, while others' go on beside them.
#[test]
fn changes_of_one_instance_keep_their_order() {
    local(async {
        let mut nrf = start(|_| {});
        nrf.put(&profile(&id(1), "UDM", "nudm-sdm", &json!({}))).await;
        let one = async {
            let instance = id(1);
            let patches = (1..=50).map(|priority| {
                nrf.patch(
                    &instance,
                    json!([{"op": "add", "path": "/priority", "value": priority}]),
                )
            });
            futures_util::future::join_all(patches).await
        };
        let others = async {
            let profiles: Vec<_> = (2..40)
                .map(|number| profile(&id(number), "UDM", "nudm-sdm", &json!({})))
                .collect();
            futures_util::future::join_all(profiles.iter().map(|profile| nrf.put(profile))).await
        };
        let (patched, registered) = tokio::join!(one, others);
        for got in &patched {
            assert_eq!(got.status, StatusCode::OK, "{}", got.json);
        }
        assert!(registered.iter().all(|got| got.status == StatusCode::CREATED));
        let got = nrf.get(&format!("/nnrf-nfm/v1/nf-instances/{}", id(1))).await;
        assert_eq!(got.json["priority"], 50);
        nrf.stop();
    });
}

/// The limit of profiles holds for registrations that arrive together.
#[test]
fn the_limit_of_profiles_counts_those_on_their_way() {
    local(async {
        let mut nrf = start(|config| config.max_profiles = 5);
        let profiles: Vec<_> = (0..20)
            .map(|number| profile(&id(number), "UDM", "nudm-sdm", &json!({})))
            .collect();
        let got = futures_util::future::join_all(profiles.iter().map(|profile| nrf.put(profile))).await;
        let made = got.iter().filter(|got| got.status == StatusCode::CREATED).count();
        assert_eq!(made, 5);
        assert!(
            got.iter()
                .filter(|got| !got.status.is_success())
                .all(|got| got.cause() == "INSUFFICIENT_RESOURCES")
        );
        nrf.stop();
    });
}
