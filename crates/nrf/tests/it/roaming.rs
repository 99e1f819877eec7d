//! Other networks and other NRFs: home NRFs by PLMN, subscriptions abroad, NRFs that say what is registered with them.

use http::{Method, StatusCode};
use nrf::config::HomeNetwork;
use serde_json::{Value, json};
use testpeer::sbi::Server;

use crate::support::{Nrf, UDM, id, local, profile, start};

const FOREIGN: &str = "target-plmn-list=%5B%7B%22mcc%22%3A%22262%22%2C%22mnc%22%3A%2202%22%7D%5D";
const BASE: &str = "target-nf-type=UDM&requester-nf-type=AMF";

/// The NRF of network 262-02, and one of 001-01 that knows it.
fn networks(change: impl FnOnce(&mut nrf::Config)) -> (Nrf, Nrf) {
    let home = start(|config| {
        config.forwarding.own_plmns = vec!["262-02".into()];
        config.nf_instance_id = id(0xb0);
    });
    let visited = start(|config| {
        config.forwarding.own_plmns = vec!["001-01".into()];
        config.forwarding.home_networks = vec![HomeNetwork {
            plmns: vec!["262-02".into(), "262-03".into()],
            nrfs: vec![home.origin.to_string()],
        }];
        change(config);
    });
    (visited, home)
}

#[test]
fn the_plmn_names_the_home_nrf() {
    local(async {
        let (visited, home) = networks(|_| ());
        home.put(&profile(&id(1), "UDM", "nudm-sdm", &json!({}))).await;
        visited.put(&profile(&id(2), "UDM", "nudm-sdm", &json!({}))).await;
        assert_eq!(visited.found(&format!("{BASE}&{FOREIGN}")).await, [id(1)]);
        assert_eq!(visited.found(BASE).await, [id(2)]);
        // One of the networks is this one: it answers.
        let both = "target-plmn-list=%5B%7B%22mcc%22%3A%22262%22%2C%22mnc%22%3A%2202%22%7D%2C%7B%22mcc%22%3A%22001%22%2C%22mnc%22%3A%2201%22%7D%5D";
        assert_eq!(visited.found(&format!("{BASE}&{both}")).await, [id(2)]);
        // A network that is not configured has an NRF by the name that TS 23.003 gives it, which is not there.
        let unknown = FOREIGN.replace("262", "999");
        let got = visited.discover(&format!("{BASE}&{unknown}")).await;
        assert_eq!(got.status, StatusCode::GATEWAY_TIMEOUT, "{}", got.json);
        assert_eq!(got.json["cause"], "NRF_NOT_REACHABLE");
    });
}

/// Through a SEPP the home NRF is the target of the request, not its peer.
#[test]
fn a_sepp_is_on_the_way_to_other_networks() {
    local(async {
        let sepp = Server::start(|_| {
            sbi::json::response(StatusCode::OK, &json!({"validityPeriod": 7, "nfInstances": []}))
        });
        let visited = start(|config| {
            config.forwarding.own_plmns = vec!["001-01".into()];
            config.forwarding.sepp = Some(sepp.root());
        });
        let got = visited.discover(&format!("{BASE}&{FOREIGN}")).await;
        assert_eq!(got.json["validityPeriod"], 7);
        let seen = sepp.seen();
        assert_eq!(
            seen[0].headers["3gpp-sbi-target-apiroot"],
            "https://nrf.5gc.mnc002.mcc262.3gppnetwork.org"
        );
        assert!(
            seen[0].path.starts_with("/nnrf-disc/v1/nf-instances?"),
            "{}",
            seen[0].path
        );
    });
}

#[test]
fn consumers_name_home_nrfs_of_the_list_only() {
    local(async {
        let far = start(|config| config.nf_instance_id = id(0xb0));
        far.put(&profile(&id(1), "UDM", "nudm-sdm", &json!({}))).await;
        let uri = format!(
            "hnrf-uri=http%3A%2F%2F{}",
            far.origin.to_string().trim_start_matches("http://")
        );
        let query = format!("{BASE}&{uri}");
        let open = start(|_| ());
        assert_eq!(
            open.found(&query).await,
            [id(1)],
            "followed where any may be named"
        );
        let listed = start(|config| config.forwarding.allowed_home_nrfs = vec![far.origin.to_string()]);
        assert_eq!(listed.found(&query).await, [id(1)]);
        let other = start(|config| config.forwarding.allowed_home_nrfs = vec!["*.3gppnetwork.org".into()]);
        let got = other.discover(&query).await;
        assert_eq!(got.status, StatusCode::BAD_REQUEST);
        assert!(
            got.json["invalidParams"][0]["reason"]
                .as_str()
                .unwrap()
                .contains("allowedHomeNrfs"),
            "{}",
            got.json
        );
    });
}

/// A subscription to NFs of another network is at its NRF; the consumer changes and ends it at its own (TS 29.510
/// §5.2.2.5.3).
#[test]
fn subscriptions_abroad_are_changed_and_ended_here() {
    local(async {
        let (visited, home) = networks(|_| ());
        let wanted = json!({"nfStatusNotificationUri": "http://127.0.0.1:9/x", "subscrCond": {"nfType": "UDM"},
            "plmnId": {"mcc": "262", "mnc": "02"}});
        let path = "/nnrf-nfm/v1/subscriptions";
        let made = visited
            .ask(Method::POST, path, "application/json", wanted.to_string())
            .await;
        assert_eq!(made.status, StatusCode::CREATED, "{}", made.json);
        let shown = made.json["subscriptionId"].as_str().unwrap();
        assert!(shown.starts_with("26202-"), "{shown}");
        assert_eq!(
            made.headers["location"].to_str().unwrap(),
            format!("{}{path}/{shown}", visited.origin)
        );
        let count = async |nrf: &Nrf| nrf.shown("/nrf/subscriptions").await.as_array().unwrap().len();
        assert_eq!((count(&visited).await, count(&home).await), (0, 1));
        let until = "2030-01-01T00:00:00Z";
        let patch = json!([{"op": "replace", "path": "/validityTime", "value": until}]).to_string();
        let own = format!("{path}/{shown}");
        let patched = visited
            .ask(Method::PATCH, &own, "application/json-patch+json", patch)
            .await;
        assert_eq!(patched.status, StatusCode::OK, "{}", patched.json);
        assert_eq!(
            patched.json["subscriptionId"], shown,
            "shorter than asked for, under the id of here"
        );
        let ended = visited.ask(Method::DELETE, &own, "", "").await;
        assert_eq!(ended.status, StatusCode::NO_CONTENT);
        assert_eq!(count(&home).await, 0);
        let again = visited.ask(Method::DELETE, &own, "", "").await;
        assert_eq!(again.status, StatusCode::NOT_FOUND);

        // Members that are null say nothing of whose the subscription is.
        let mut hollow = wanted.clone();
        hollow["subscrCond"] = json!({"nfType": "UDM", "serviceNameList": null, "nfGroupId": null});
        hollow["nid"] = Value::Null;
        let made = visited
            .ask(Method::POST, path, "application/json", hollow.to_string())
            .await;
        assert_eq!(made.status, StatusCode::CREATED, "{}", made.json);
        hollow["subscrCond"] = Value::Null;
        let made = visited
            .ask(Method::POST, path, "application/json", hollow.to_string())
            .await;
        assert_eq!(made.status, StatusCode::CREATED, "{}", made.json);
        assert_eq!((count(&visited).await, count(&home).await), (0, 2));

        // An SNPN with that PLMN is no other network's.
        let mut snpn = wanted;
        snpn["nid"] = "00000000abc".into();
        let here = visited
            .ask(Method::POST, path, "application/json", snpn.to_string())
            .await;
        assert!(!here.json["subscriptionId"].as_str().unwrap().contains('-'));
        assert_eq!((count(&visited).await, count(&home).await), (1, 2));
    });
}

/// The profile of an NRF with which UDMs of a range of subscribers are registered.
fn hierarchical(other: &Nrf) -> Value {
    let (_, port) = other
        .origin
        .to_string()
        .rsplit_once(':')
        .map(|(a, b)| (a.to_owned(), b.to_owned()))
        .unwrap();
    let mut profile = profile(
        UDM,
        "NRF",
        "nnrf-disc",
        &json!({"nrfInfo": {"servedUdmInfo": {id(1): {"supiRanges": [{"start": "100", "end": "199"}]}}}}),
    );
    profile["nfServices"][0]["ipEndPoints"][0]["port"] = port.parse::<u16>().unwrap().into();
    profile
}

/// What an NRF says of the NFs registered with it decides which discoveries go to it (TS 29.510 §5.2.2.2.3).
#[test]
fn nrf_info_takes_a_discovery_to_the_nrf_that_has_a_match() {
    local(async {
        let far = start(|config| config.nf_instance_id = id(0xb0));
        let ranges = json!({"udmInfo": {"supiRanges": [{"start": "100", "end": "199"}]}});
        far.put(&profile(&id(1), "UDM", "nudm-sdm", &ranges)).await;
        let near = start(|_| ());
        let query = format!("{BASE}&supi=imsi-150");
        assert!(near.found(&query).await.is_empty());
        assert_eq!(near.put(&hierarchical(&far)).await.status, StatusCode::CREATED);
        assert_eq!(near.found(&query).await, [id(1)]);
        assert!(
            near.found(&format!("{BASE}&supi=imsi-250")).await.is_empty(),
            "another range"
        );
        assert!(
            near.found("target-nf-type=SMF&requester-nf-type=AMF")
                .await
                .is_empty(),
            "another type"
        );
        assert_eq!(far.running.as_ref().unwrap().count(nrf::Event::Discovered), 1);
        // What is registered here is answered here.
        near.put(&profile(&id(2), "UDM", "nudm-sdm", &ranges)).await;
        assert_eq!(near.found(&query).await, [id(2)]);
        let unwilling = start(|config| config.forwarding.by_nrf_info = false);
        unwilling.put(&hierarchical(&far)).await;
        assert!(unwilling.found(&query).await.is_empty());
    });
}

/// What a profile says of an NRF takes no request where `outgoing` forbids it; another NRF that has a match is queried.
#[test]
fn nrf_info_takes_no_discovery_where_the_nrf_may_not_send_to() {
    local(async {
        let far = start(|config| config.nf_instance_id = id(0xb0));
        let ranges = json!({"udmInfo": {"supiRanges": [{"start": "100", "end": "199"}]}});
        far.put(&profile(&id(1), "UDM", "nudm-sdm", &ranges)).await;
        let query = format!("{BASE}&supi=imsi-150");
        let near = start(|config| config.outgoing.denied_networks = vec!["127.0.0.0/8".parse().unwrap()]);
        near.put(&hierarchical(&far)).await;
        assert!(near.found(&query).await.is_empty());
        let counted = |nrf: &Nrf, event| nrf.running.as_ref().unwrap().count(event);
        assert_eq!(counted(&near, nrf::Event::TargetDenied), 1);
        assert_eq!(counted(&near, nrf::Event::Forwarded), 0);
        assert_eq!(counted(&far, nrf::Event::Discovered), 0);

        // The address of one of two NRFs is denied: the other one answers, whichever is the first.
        let near = start(|config| config.outgoing.denied_networks = vec!["127.0.0.2/32".parse().unwrap()]);
        for number in [0xc0, 0xd0] {
            let mut denied = hierarchical(&far);
            denied["nfInstanceId"] = id(number).into();
            denied["nfServices"][0]["ipEndPoints"][0]["ipv4Address"] = "127.0.0.2".into();
            near.put(&denied).await;
        }
        near.put(&hierarchical(&far)).await;
        assert_eq!(near.found(&query).await, [id(1)]);
        assert_eq!(counted(&far, nrf::Event::Discovered), 1);
    });
}

/// Two installations that keep the default settings are two NRFs: tokens and `Via` name them differently.
#[test]
fn each_installation_has_an_instance_id_of_its_own() {
    local(async {
        let (mut one, other) = (start(|_| {}), start(|_| {}));
        let via = async |nrf: &Nrf| {
            let why = nrf
                .running
                .as_ref()
                .unwrap()
                .handle()
                .live()
                .load()
                .config
                .clone();
            why.nf_instance_id.clone()
        };
        let first = via(&one).await;
        assert_ne!(first, via(&other).await);
        one.stop();
        let directory = one.directory.path().to_owned();
        let again = start(|config| config.store.embedded.directory = directory);
        assert_eq!(via(&again).await, first, "kept for the next start");
    });
}
