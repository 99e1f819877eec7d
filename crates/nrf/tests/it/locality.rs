//! Preferred localities: what an answer says of them, and the priorities by which consumers heed them.

use nrf::Config;
use nrf::discovery::{LocationType, PreferredLocation};
use serde_json::{Value, json};

use crate::support::{id, local, profile, start};

const BASE: &str = "target-nf-type=UDM&requester-nf-type=AMF";

/// Priorities of a profile and of its services in an answer.
fn priorities(one: &Value) -> (Value, Vec<Value>) {
    let services = one["nfServices"].as_array().unwrap();
    let services = services.iter().map(|service| service["priority"].clone());
    (one["priority"].clone(), services.collect())
}

fn udm(number: u32, locality: &str, priority: Option<u16>, services: &[Option<u16>]) -> Value {
    let mut one = profile(&id(number), "UDM", "nudm-sdm", &json!({"locality": locality}));
    if let Some(priority) = priority {
        one["priority"] = priority.into();
    }
    let template = one["nfServices"][0].clone();
    let services = services.iter().zip(1..).map(|(priority, at)| {
        let mut service = template.clone();
        service["serviceInstanceId"] = format!("s{at}").into();
        if let Some(priority) = priority {
            service["priority"] = (*priority).into();
        }
        service
    });
    one["nfServices"] = services.collect();
    one
}

/// A consumer that selects by `priority` takes who is in the preferred locality first, and keeps the registered order
/// among those of one locality (TS 29.510 table 6.2.3.2.3.1-1).
#[test]
fn priorities_follow_the_preferred_locality() {
    local(async {
        let nrf = start(|_| ());
        for one in [
            udm(1, "east", Some(5), &[Some(7), None]),
            udm(2, "west", Some(1), &[Some(1), Some(2)]),
            udm(3, "west", Some(3), &[None]),
            udm(4, "west", None, &[None]),
        ] {
            nrf.put(&one).await;
        }
        // Without a preference the registered priorities stay.
        let plain = nrf.discover(BASE).await;
        assert!(plain.json.get("alteredPriorityInd").is_none());
        assert_eq!(plain.json["nfInstances"][0]["priority"], 1);

        let near = nrf.discover(&format!("{BASE}&preferred-locality=east")).await;
        assert_eq!(near.json["alteredPriorityInd"], true);
        let found = near.json["nfInstances"].as_array().unwrap();
        let ids: Vec<&Value> = found.iter().map(|one| &one["nfInstanceId"]).collect();
        assert_eq!(ids, [&id(1), &id(2), &id(3), &id(4)]);
        let seen: Vec<_> = found.iter().map(priorities).collect();
        assert_eq!(seen[0], (json!(5), vec![json!(7), Value::Null]));
        assert_eq!(seen[1], (json!(8), vec![json!(8), json!(9)]));
        assert_eq!(seen[2], (json!(10), vec![Value::Null]));
        assert_eq!(seen[3], (json!(65_535), vec![Value::Null]));
        assert_eq!(found[1]["vendorExtra"]["kept"][1], json!(2.5));

        // The answer from memory has the same bytes, and the registered profile is as it was.
        let again = nrf.discover(&format!("{BASE}&preferred-locality=east")).await;
        assert_eq!(again.headers["etag"], near.headers["etag"]);
        let registered = nrf.get(&format!("/nnrf-nfm/v1/nf-instances/{}", id(2))).await;
        assert_eq!(registered.json["priority"], 1);

        // Where all match, or none does, nothing is altered.
        for place in ["nowhere", "west&limit=3"] {
            let same = nrf.discover(&format!("{BASE}&preferred-locality={place}")).await;
            assert!(same.json.get("alteredPriorityInd").is_none(), "{place}");
        }
    });
}

/// An operator can have the registered priorities instead.
#[test]
fn priorities_stay_where_the_operator_wants_it() {
    local(async {
        let nrf = start(|config| config.discovery.localities.alter_priorities = false);
        nrf.put(&udm(1, "east", Some(5), &[None])).await;
        nrf.put(&udm(2, "west", Some(1), &[None])).await;
        let near = nrf.discover(&format!("{BASE}&preferred-locality=east")).await;
        assert!(near.json.get("alteredPriorityInd").is_none());
        let seen = near.json["nfInstances"].as_array().unwrap().iter();
        let seen: Vec<&Value> = seen.map(|one| &one["priority"]).collect();
        assert_eq!(seen, [5, 1]);
    });
}

fn places(list: &[&str]) -> Vec<PreferredLocation> {
    let place = |name: &&str| PreferredLocation {
        localities: vec![(*name).to_owned()],
    };
    list.iter().map(place).collect()
}

/// One preferred locality means a data centre for SMFs, and a region for one service of UDMs.
fn by_type(config: &mut Config) {
    let localities = &mut config.discovery.localities;
    let kind = |name: &str, nf_type: &str, services: &[&str], location: &str| LocationType {
        name: name.to_owned(),
        nf_types: vec![nf_type.to_owned()],
        services: services.iter().map(|name| (*name).to_owned()).collect(),
        mappings: [("pod-7".to_owned(), location.to_owned())].into(),
    };
    localities.location_types = vec![
        kind("DATA_CENTER", "SMF", &[], "dc-1"),
        kind("REGION", "UDM", &["nudm-sdm"], "north"),
    ];
    localities.mappings.insert("pod-7".into(), "all".into());
    let preferred = &mut localities.preferred_locations;
    preferred.insert("dc-1".into(), places(&["dc-1", "dc-2"]));
    preferred.insert("north".into(), places(&["north", "south"]));
    preferred.insert("all".into(), places(&["south", "north"]));
}

#[test]
fn location_types_choose_what_a_locality_means() {
    local(async {
        let nrf = start(by_type);
        let at = |number: u32, nf_type: &str, service: &str, ext: Value| {
            profile(
                &id(number),
                nf_type,
                service,
                &json!({"extLocality": ext, "priority": 4}),
            )
        };
        let sites = [
            (1, json!({"DATA_CENTER": "dc-2", "REGION": "north"})),
            (2, json!({"DATA_CENTER": "dc-1", "REGION": "south"})),
            // The name of a region that is a data centre's, too, does not make it one.
            (3, json!({"DATA_CENTER": "dc-9", "REGION": "dc-1"})),
        ];
        for (number, ext) in sites {
            nrf.put(&at(number, "SMF", "nsmf-pdusession", ext.clone())).await;
            nrf.put(&at(10 + number, "UDM", "nudm-sdm", ext)).await;
        }
        let near = "requester-nf-type=AMF&preferred-locality=pod-7";
        let smfs = nrf.discover(&format!("target-nf-type=SMF&{near}")).await;
        let seen = smfs.json["nfInstances"].as_array().unwrap().iter();
        let seen: Vec<_> = seen
            .map(|one| (one["nfInstanceId"].clone(), one["priority"].clone()))
            .collect();
        let expected =
            [(2, 4), (1, 5), (3, 6)].map(|(number, priority)| (json!(id(number)), json!(priority)));
        assert_eq!(seen, expected);
        let udms = format!("target-nf-type=UDM&{near}");
        let of_service = nrf.found(&format!("{udms}&service-names=nudm-sdm")).await;
        assert_eq!(of_service, [id(11), id(12), id(13)]);
        assert_eq!(
            nrf.found(&udms).await,
            [id(12), id(11), id(13)],
            "the general mapping"
        );
    });
}
