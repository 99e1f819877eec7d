//! The order of an answer.

use std::borrow::Cow;

use model::NfType;
use nrf::discovery::{About, Extent, Query, select};
use serde_json::{Value, json};

use super::{ask, ids, merge, policy, snapshot};
use crate::support::{id, profile};

/// The order, and what `preferredSearch` says of it.
#[test]
fn preferences_order_and_are_reported() {
    let tai = json!({"plmnId": {"mcc": "001", "mnc": "01"}, "tac": "000001"});
    let smf = |number: u32, more: Value| {
        let mut one = profile(&id(number), "UDM", "svc", &json!({}));
        merge(&mut one, more);
        one
    };
    let limited = json!({"sNssaiSmfInfoList": [{"sNssai": {"sst": 1}, "dnnSmfInfoList": [{"dnn": "x"}]}],
        "taiList": [{"plmnId": {"mcc": "001", "mnc": "01"}, "tac": "0000ff"}]});
    let profiles = [
        smf(1, json!({"locality": "east", "priority": 9, "smfInfo": limited})),
        smf(2, json!({"locality": "west", "priority": 1})),
        smf(
            3,
            json!({"locality": "west", "priority": 1, "capacity": 50, "load": 90}),
        ),
        smf(
            4,
            json!({"locality": "west", "priority": 1, "capacity": 50, "load": 10}),
        ),
    ];
    let asked = |more: &[(&str, &str)]| {
        let (_, answer) = ask(&profiles, more).unwrap();
        (ids(&answer), answer["preferredSearch"].clone())
    };
    // Priority, then capacity, then load.
    assert_eq!(asked(&[]), (vec![id(4), id(3), id(2), id(1)], Value::Null));
    let (order, said) = asked(&[("preferred-locality", "east")]);
    assert_eq!(order[0], id(1));
    assert_eq!(
        said,
        json!({"preferredLocalityMatchInd": true, "otherLocalityInd": true})
    );
    let (_, said) = asked(&[("preferred-locality", "nowhere")]);
    assert_eq!(
        said,
        json!({"preferredLocalityMatchInd": false, "otherLocalityInd": true})
    );
    let tai = tai.to_string();
    let both = [("preferred-tai", tai.as_str()), ("preferred-locality", "east")];
    let (order, said) = asked(&both);
    assert_eq!(
        (order[0].clone(), said["preferredTaiMatchInd"].clone()),
        (id(4), json!(true)),
        "where SMFs of the TAI are, the others are left out"
    );
    assert!(!order.contains(&id(1)));
    let precedence = ("preferences-precedence", "preferred-locality,preferred-tai");
    assert_eq!(asked(&[both[0], both[1], precedence]).0[0], id(1));
    let (order, said) = asked(&[both[0], ("limit", "2")]);
    assert_eq!(
        (order.len(), said["preferredTaiMatchInd"].clone()),
        (2, json!(true))
    );
    assert_eq!(
        asked(&[("preferred-full-plmn", "true"), ("limit", "3")]).1["preferredFullPlmnMatchInd"],
        true
    );
    assert_eq!(asked(&[("preferred-nf-instances", &id(2))]).0, [id(2)]);
    assert_eq!(asked(&[("preferred-nf-instances", &id(7))]).0.len(), 4);
    let (_, said) = asked(&[("preferred-api-versions", r#"{"svc":"^1.5.0"}"#)]);
    assert_eq!(
        said,
        json!({"preferredApiVersionsMatchInd": true, "otherApiVersionsInd": false})
    );
}

/// An operator's map: what a preferred locality stands for, and what is near it.
#[test]
fn localities_by_the_operators_map() {
    let mut settings = policy();
    let near = |names: &[&str]| nrf::discovery::PreferredLocation {
        localities: names.iter().map(|n| (*n).to_owned()).collect(),
    };
    settings
        .localities
        .mappings
        .insert("pod-7".into(), "north".into());
    settings
        .localities
        .preferred_locations
        .insert("north".into(), vec![near(&["n1", "n2"]), near(&["c1"])]);
    let profiles: Vec<Value> = ["s1", "c1", "n2", "n1"]
        .iter()
        .zip(1..)
        .map(|(place, number)| profile(&id(number), "UDM", "svc", &json!({"locality": place})))
        .collect();
    let snapshot = snapshot(&profiles);
    let pairs = [
        ("target-nf-type", "UDM"),
        ("requester-nf-type", "AMF"),
        ("preferred-locality", "pod-7"),
    ];
    let pairs = pairs.map(|(name, value)| (Cow::from(name), Cow::from(value)));
    let query = Query::parse(&pairs).unwrap();
    let table = snapshot.of_type(&NfType::Udm).map(|table| &**table);
    let answer = select(&query, About::default(), table, &settings, &Extent::Page(None));
    let json: Value = serde_json::from_slice(&answer.body).unwrap();
    assert_eq!(ids(&json), [id(3), id(4), id(2), id(1)]);
    assert_eq!(
        json["preferredSearch"],
        json!({"preferredLocalityMatchInd": true, "otherLocalityInd": true})
    );
}
