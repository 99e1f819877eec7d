//! Heart-beats, suspension and what a restart keeps of them.

use http::StatusCode;
use nrf::{Config, Event};
use serde_json::{Value, json};
use settings::Period;

use crate::support::{Nrf, UDM, config, local, profile, start, until};

const PATH: &str = "/nnrf-nfm/v1/nf-instances/4947a69a-f61b-4bc1-b9da-47c9c5d14b64";

/// A UDM that beats every `timer` seconds.
fn udm(timer: u32) -> Value {
    profile(UDM, "UDM", "nudm-sdm", &json!({"heartBeatTimer": timer}))
}

/// Stops the NRF and starts it with the same store.
fn restart(nrf: &mut Nrf, change: impl FnOnce(&mut Config)) {
    nrf.stop();
    let mut config = config(nrf.directory.path());
    change(&mut config);
    let again = nrf::start(config).unwrap();
    nrf.origin = format!("http://{}", again.addresses()[0]).parse().unwrap();
    nrf.running = Some(again);
}

async fn status(nrf: &Nrf) -> String {
    nrf.get(PATH).await.json["nfStatus"]
        .as_str()
        .unwrap_or_default()
        .to_owned()
}

/// An NRF that has suspended its only profile.
async fn suspended() -> Nrf {
    let nrf = start(|config| {
        config.heart_beat.missed = 1;
        config.heart_beat.audit_interval = Period::from_millis(50);
    });
    nrf.put(&udm(1)).await;
    until(async || status(&nrf).await == "SUSPENDED").await;
    nrf
}

#[test]
fn a_suspension_survives_a_restart_and_ends_with_a_heart_beat() {
    local(async {
        let mut nrf = suspended().await;
        // An audit would take hours now.
        restart(&mut nrf, |config| config.heart_beat.missed = 100_000);
        assert_eq!(status(&nrf).await, "SUSPENDED");
        // A heart-beat without status, as its owner said REGISTERED.
        let load = json!([{"op": "add", "path": "/load", "value": 5}]);
        assert_eq!(nrf.patch(UDM, load).await.status, StatusCode::NO_CONTENT);
        assert_eq!(status(&nrf).await, "REGISTERED");
        restart(&mut nrf, |config| config.heart_beat.missed = 100_000);
        assert_eq!(status(&nrf).await, "REGISTERED");
    });
}

/// The time after which a suspended NF is removed goes on while the NRF is away.
#[test]
fn the_suspended_are_removed_after_a_restart() {
    local(async {
        let mut nrf = suspended().await;
        restart(&mut nrf, |config| {
            config.heart_beat.missed = 100_000;
            config.heart_beat.remove_after = Period::from_millis(1);
            config.heart_beat.audit_interval = Period::from_millis(50);
        });
        until(async || nrf.get(PATH).await.status == StatusCode::NOT_FOUND).await;
    });
}

#[test]
fn a_change_of_the_profile_ends_a_suspension() {
    local(async {
        let mut nrf = suspended().await;
        restart(&mut nrf, |config| config.heart_beat.missed = 100_000);
        let change = json!([{"op": "add", "path": "/priority", "value": 5}]);
        let changed = nrf.patch(UDM, change).await;
        assert_eq!(changed.json["nfStatus"], "REGISTERED", "{}", changed.json);
    });
}

/// A load report does not end a suspension that the NF asked for itself (TS 29.510 §6.1.6.3.7).
#[test]
fn an_nf_that_suspends_itself_stays_suspended() {
    local(async {
        let mut nrf = start(|_| {});
        nrf.put(&udm(3_600)).await;
        let suspend = json!([{"op": "replace", "path": "/nfStatus", "value": "SUSPENDED"}]);
        let load = json!([{"op": "add", "path": "/load", "value": 5}]);
        nrf.patch(UDM, suspend).await;
        for _ in 0..2 {
            assert_eq!(nrf.patch(UDM, load.clone()).await.status, StatusCode::NO_CONTENT);
            assert_eq!(status(&nrf).await, "SUSPENDED");
            restart(&mut nrf, |_| {});
        }
        let resume = json!([{"op": "replace", "path": "/nfStatus", "value": "REGISTERED"}]);
        nrf.patch(UDM, resume).await;
        assert_eq!(status(&nrf).await, "REGISTERED");
    });
}

/// TS 29.510 §5.2.2.3.2: a changed timer is in the answer to a heart-beat.
#[test]
fn a_changed_timer_holds_from_the_answer_that_says_it() {
    local(async {
        let mut nrf = start(|_| {});
        nrf.put(&udm(3_600)).await;
        restart(&mut nrf, |config| config.heart_beat.max = Period::from_secs(60));
        assert_eq!(nrf.get(PATH).await.json["heartBeatTimer"], 3_600, "as assigned");
        let beat = || json!([{"op": "replace", "path": "/nfStatus", "value": "REGISTERED"}]);
        let answered = nrf.patch(UDM, beat()).await;
        assert_eq!(
            (answered.status, &answered.json["heartBeatTimer"]),
            (StatusCode::OK, &json!(60))
        );
        assert_eq!(nrf.patch(UDM, beat()).await.status, StatusCode::NO_CONTENT);
        restart(&mut nrf, |config| config.heart_beat.max = Period::from_secs(60));
        assert_eq!(nrf.get(PATH).await.json["heartBeatTimer"], 60);
    });
}

/// Loads of services move as the load of the NF does: nothing is written for them.
#[test]
fn loads_of_services_are_heart_beats() {
    local(async {
        let nrf = start(|_| {});
        nrf.put(&udm(3_600)).await;
        let report = json!([
            {"op": "replace", "path": "/nfStatus", "value": "REGISTERED"},
            {"op": "add", "path": "/nfServices/0/load", "value": 41},
            {"op": "add", "path": "/nfServices/0/loadTimeStamp", "value": "2026-11-23T02:00:00Z"}
        ]);
        assert_eq!(nrf.patch(UDM, report).await.status, StatusCode::NO_CONTENT);
        let service = nrf.get(PATH).await.json["nfServices"][0].clone();
        assert_eq!(service["load"], 41, "{service}");
        let running = nrf.running.as_ref().unwrap();
        assert_eq!(
            (running.count(Event::HeartBeat), running.count(Event::Updated)),
            (1, 0)
        );
        // What is wrong in it is refused, as in any change.
        let wrong = json!([{"op": "add", "path": "/nfServices/0/load", "value": 101}]);
        assert_eq!(nrf.patch(UDM, wrong).await.status, StatusCode::BAD_REQUEST);
    });
}
