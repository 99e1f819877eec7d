//! Two NRF sets that share their state.

use std::time::Duration;

use http::{Method, StatusCode};
use nrf::config::GrowthSet;
use serde_json::{Value, json};
use testpeer::sbi::Server;

use crate::support::{Nrf, id, local, profile, start};

fn joined(other: &Nrf) -> Nrf {
    let root = other.origin.to_string();
    start(|config| {
        config.growth.interval = settings::Period::from_millis(20);
        config.growth.sets = vec![GrowthSet {
            name: "east".into(),
            nrfs: vec![root],
        }];
    })
}

async fn until(nrf: &Nrf, query: &str, expected: &[String]) {
    for _ in 0..500 {
        let mut found = nrf.found(query).await;
        found.sort();
        if found == expected {
            return;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("{query}: {:?} instead of {expected:?}", nrf.found(query).await);
}

const UDMS: &str = "target-nf-type=UDM&requester-nf-type=AMF";

#[test]
fn what_is_registered_there_is_found_here_and_follows_its_changes() {
    local(async {
        let mut east = start(|_| {});
        east.put(&profile(&id(1), "UDM", "nudm-sdm", &json!({}))).await;
        let mut west = joined(&east);
        until(&west, UDMS, &[id(1)]).await;
        let path = format!("/nnrf-nfm/v1/nf-instances/{}", id(1));
        assert_eq!(west.get(&path).await.status, StatusCode::OK);
        // It is changed where it is registered.
        let beat = json!([{"op": "replace", "path": "/nfStatus", "value": "REGISTERED"}]);
        assert_eq!(west.patch(&id(1), beat).await.status, StatusCode::NOT_FOUND);
        assert_eq!(
            west.ask(Method::DELETE, &path, "", "").await.status,
            StatusCode::NOT_FOUND
        );

        let load = json!([{"op": "add", "path": "/load", "value": 77}]);
        east.patch(&id(1), load).await;
        for number in 2..40 {
            // Larger than a page together.
            let more = json!({"vendorText": "x".repeat(12_000)});
            east.put(&profile(&id(number), "SMF", "nsmf-pdusession", &more))
                .await;
        }
        let smfs = "target-nf-type=SMF&requester-nf-type=AMF";
        let mut found = 0;
        for _ in 0..500 {
            let json: Value = west.discover(&format!("{smfs}&limit=100")).await.json;
            found = json["numNfInstComplete"].as_u64().unwrap_or_default();
            if found == 38 {
                break;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        assert_eq!(found, 38);
        assert_eq!(west.get(&path).await.json["load"], 77);

        // One that registers here as well is this set's from now on.
        let put = west
            .put(&profile(&id(1), "UDM", "nudm-sdm", &json!({"priority": 9})))
            .await;
        assert_eq!(put.status, StatusCode::CREATED);
        east.ask(Method::DELETE, &path, "", "").await;
        east.ask(
            Method::DELETE,
            &format!("/nnrf-nfm/v1/nf-instances/{}", id(2)),
            "",
            "",
        )
        .await;
        for _ in 0..500 {
            let gone = west.get(&format!("/nnrf-nfm/v1/nf-instances/{}", id(2))).await;
            if gone.status == StatusCode::NOT_FOUND {
                break;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        assert_eq!(west.get(&path).await.json["priority"], 9);
        assert_eq!(
            west.get(&format!("/nnrf-nfm/v1/nf-instances/{}", id(2)))
                .await
                .status,
            StatusCode::NOT_FOUND
        );
        // What the other set had stays known while it is away.
        east.stop();
        tokio::time::sleep(Duration::from_millis(100)).await;
        let other = west.get(&format!("/nnrf-nfm/v1/nf-instances/{}", id(3))).await;
        assert_eq!(other.status, StatusCode::OK);
        west.stop();
    });
}

/// The threshold of `subscriptions.loadThreshold` holds for loads that another set reports.
#[test]
fn small_changes_of_load_in_another_set_are_not_notified() {
    local(async {
        let mut east = start(|_| {});
        east.put(&profile(&id(1), "UDM", "nudm-sdm", &json!({"load": 20})))
            .await;
        let mut west = joined(&east);
        until(&west, UDMS, &[id(1)]).await;
        let sink = Server::start(|_| testpeer::sbi::no_content());
        let data = json!({"nfStatusNotificationUri": sink.root(), "subscrCond": {"nfType": "UDM"}});
        let path = "/nnrf-nfm/v1/subscriptions";
        let made = west
            .ask(Method::POST, path, "application/json", data.to_string())
            .await;
        assert_eq!(made.status, StatusCode::CREATED);
        let path = format!("/nnrf-nfm/v1/nf-instances/{}", id(1));
        for (member, load) in [("/load", 25), ("/nfServices/0/load", 5), ("/load", 70)] {
            let patch = json!([{"op": "add", "path": member, "value": load}]);
            assert!(east.patch(&id(1), patch).await.status.is_success());
            crate::support::until(async || west.get(&path).await.json.pointer(member) == Some(&load.into()))
                .await;
        }
        crate::support::until(async || sink.count() > 0).await;
        let seen = sink.seen();
        assert_eq!(seen.len(), 1, "{seen:?}");
        assert_eq!(seen[0].json()["nfProfile"]["load"], 70, "{:?}", seen[0]);
        east.stop();
        west.stop();
    });
}

#[test]
fn two_sets_that_follow_each_other_do_not_echo() {
    local(async {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        drop(listener);
        let mut east = start(|config| {
            config.listen = settings::Listen(vec![address]);
            config.growth.interval = settings::Period::from_millis(20);
        });
        let mut west = joined(&east);
        east.stop();
        let root = west.origin.to_string();
        let east = start(|config| {
            config.listen = settings::Listen(vec![address]);
            config.growth.interval = settings::Period::from_millis(20);
            config.growth.sets = vec![GrowthSet {
                name: "west".into(),
                nrfs: vec![root],
            }];
        });
        east.put(&profile(&id(1), "UDM", "nudm-sdm", &json!({}))).await;
        west.put(&profile(&id(2), "UDM", "nudm-sdm", &json!({}))).await;
        until(&west, UDMS, &[id(1), id(2)]).await;
        until(&east, UDMS, &[id(1), id(2)]).await;
        // A profile deregistered there is removed here, although each set has retrieved it from the other.
        west.ask(
            Method::DELETE,
            &format!("/nnrf-nfm/v1/nf-instances/{}", id(2)),
            "",
            "",
        )
        .await;
        until(&east, UDMS, &[id(1)]).await;
        until(&west, UDMS, &[id(1)]).await;
        west.stop();
    });
}

#[test]
fn sets_that_want_tokens_get_them_from_one_another() {
    local(async {
        let east = start(|config| {
            config.tokens.protect_own_services = true;
            config.nf_instance_id = id(0xea);
        });
        let form = format!(
            "grant_type=client_credentials&nfInstanceId={}&nfType=UDM&targetNfType=NRF&scope=nnrf-nfm",
            id(1)
        );
        let media = "application/x-www-form-urlencoded";
        let granted = east.ask(Method::POST, "/oauth2/token", media, form).await;
        let token = granted.json["access_token"].as_str().unwrap().to_owned();
        let put = http::Request::put(format!("/nnrf-nfm/v1/nf-instances/{}", id(1)))
            .header("content-type", "application/json")
            .header("authorization", format!("Bearer {token}"));
        let udm = profile(&id(1), "UDM", "nudm-sdm", &json!({})).to_string();
        let put = east.send(put.body(udm.into()).unwrap()).await;
        assert_eq!(put.status, StatusCode::CREATED, "{}", put.json);
        let west = joined(&east);
        until(&west, UDMS, &[id(1)]).await;
        let issued = east.running.as_ref().unwrap().count(nrf::Event::TokenIssued);
        assert_eq!(issued, 2, "one for the UDM, one for the other set");
    });
}

/// An NF that moved to another set without a word to this one.
#[test]
fn a_registration_that_is_alive_elsewhere_replaces_a_silent_one() {
    local(async {
        let east = start(|_| {});
        let root = east.origin.to_string();
        let west = start(|config| {
            config.growth.interval = settings::Period::from_millis(20);
            config.growth.sets = vec![GrowthSet {
                name: "east".into(),
                nrfs: vec![root],
            }];
            config.heart_beat.missed = 1;
            config.heart_beat.audit_interval = settings::Period::from_millis(50);
        });
        let udm = |priority: u32, timer: u32| {
            let more = json!({"priority": priority, "heartBeatTimer": timer});
            profile(&id(1), "UDM", "nudm-sdm", &more)
        };
        // It is alive at the other set before its silence here is noticed, so the state of that set does not change then.
        west.put(&udm(1, 1)).await;
        east.put(&udm(9, 3_600)).await;
        let path = format!("/nnrf-nfm/v1/nf-instances/{}", id(1));
        let moved = async || west.get(&path).await.json["priority"] == 9;
        crate::support::until(moved).await;
        assert_eq!(west.found(UDMS).await, [id(1)]);
        let running = west.running.as_ref().unwrap();
        assert_eq!(running.count(nrf::Event::Suspended), 1);
        let beat = json!([{"op": "replace", "path": "/nfStatus", "value": "REGISTERED"}]);
        assert_eq!(west.patch(&id(1), beat).await.status, StatusCode::NOT_FOUND);
    });
}

/// What another set has is shown again when the registration that hid it ends.
#[test]
fn a_deregistration_here_leaves_the_registration_elsewhere() {
    local(async {
        let east = start(|_| {});
        let west = joined(&east);
        east.put(&profile(&id(1), "UDM", "nudm-sdm", &json!({"priority": 9})))
            .await;
        until(&west, UDMS, &[id(1)]).await;
        west.put(&profile(&id(1), "UDM", "nudm-sdm", &json!({"priority": 1})))
            .await;
        let path = format!("/nnrf-nfm/v1/nf-instances/{}", id(1));
        assert_eq!(west.get(&path).await.json["priority"], 1);
        let gone = west.ask(Method::DELETE, &path, "", "").await;
        assert_eq!(gone.status, StatusCode::NO_CONTENT);
        crate::support::until(async || west.get(&path).await.json["priority"] == 9).await;
    });
}

/// Profiles of other sets take no place of `maxProfiles`.
#[test]
fn the_limit_of_profiles_is_about_those_of_this_set() {
    local(async {
        let east = start(|_| {});
        for number in 1..=3 {
            east.put(&profile(&id(number), "UDM", "nudm-sdm", &json!({})))
                .await;
        }
        let root = east.origin.to_string();
        let west = start(|config| {
            config.max_profiles = 2;
            config.growth.interval = settings::Period::from_millis(20);
            config.growth.sets = vec![GrowthSet {
                name: "east".into(),
                nrfs: vec![root],
            }];
        });
        until(&west, UDMS, &[id(1), id(2), id(3)]).await;
        for (number, status) in [
            (4, StatusCode::CREATED),
            (5, StatusCode::CREATED),
            (6, StatusCode::INTERNAL_SERVER_ERROR),
        ] {
            let put = west
                .put(&profile(&id(number), "UDM", "nudm-sdm", &json!({})))
                .await;
            assert_eq!(put.status, status, "{}", put.json);
        }
    });
}

/// A set of several pages that reports loads without a pause is retrieved all the same.
#[test]
fn a_set_that_changes_all_the_time_is_retrieved() {
    local(async {
        let east = start(|_| {});
        let more = json!({"vendorText": "x".repeat(30_000)});
        for number in 1..=40 {
            east.put(&profile(&id(number), "SMF", "nsmf-pdusession", &more))
                .await;
        }
        let west = joined(&east);
        // One change follows another, so there is one between any two pages.
        let (first, path) = (id(1), "target-nf-type=SMF&requester-nf-type=AMF&limit=1");
        let changes = async {
            for load in 0_u32.. {
                let beat = json!([{"op": "add", "path": "/load", "value": load % 100}]);
                east.patch(&first, beat).await;
            }
        };
        let all = crate::support::until(async || west.discover(path).await.json["numNfInstComplete"] == 40);
        tokio::select! {
            () = changes => {}
            () = all => {}
        }
    });
}

/// A set with more profiles than `growth.maxProfiles` is not retrieved: an alarm names the setting, and ends with it.
#[test]
fn a_set_with_too_many_profiles_raises_an_alarm() {
    local(async {
        let east = start(|_| {});
        for number in 1..=3 {
            east.put(&profile(&id(number), "UDM", "nudm-sdm", &json!({})))
                .await;
        }
        let root = east.origin.to_string();
        let west = start(|config| {
            config.growth.interval = settings::Period::from_millis(20);
            config.growth.max_profiles = 2;
            config.growth.sets = vec![GrowthSet {
                name: "east".into(),
                nrfs: vec![root],
            }];
        });
        let active = || {
            let active = west.running.as_ref().unwrap().handle().alarms().active();
            let ours = active.into_iter().find(|alarm| alarm.number == 10_513);
            ours.map(|alarm| format!("{alarm:?}"))
        };
        crate::support::until(async || active().is_some()).await;
        let alarm = active().unwrap_or_default();
        assert!(
            alarm.contains("east") && alarm.contains("growth.maxProfiles"),
            "{alarm}"
        );
        let path = format!("/nnrf-nfm/v1/nf-instances/{}", id(3));
        east.ask(Method::DELETE, &path, "", "").await;
        crate::support::until(async || active().is_none()).await;
        until(&west, UDMS, &[id(1), id(2)]).await;
    });
}
