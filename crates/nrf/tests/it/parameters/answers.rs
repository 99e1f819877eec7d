//! What an answer has of the profiles that fit.

use nrf::discovery::Policy;
use serde_json::{Value, json};

use super::{ask, ask_by, ids, merge, policy};
use crate::support::{id, profile};

#[test]
fn features_of_services() {
    let one = profile(&id(1), "UDM", "svc", &json!({}));
    let with = |features: &str| {
        let mut one = one.clone();
        one["nfServices"][0]["supportedFeatures"] = json!(features);
        vec![one]
    };
    let found =
        |profiles: &[Value], more: &[(&str, &str)]| ask(profiles, more).map(|(answer, _)| answer.profiles);
    let named = ("service-names", "svc");
    assert_eq!(found(&with("5"), &[named, ("supported-features", "4")]), Ok(1));
    assert_eq!(found(&with("5"), &[named, ("supported-features", "2")]), Ok(0));
    // Without a service name, or with several, the features are ambiguous.
    assert_eq!(found(&with("5"), &[("supported-features", "2")]), Ok(1));
    assert_eq!(found(&with("5"), &[named, ("required-features", "5")]), Ok(1));
    assert_eq!(found(&with("5"), &[named, ("required-features", "7")]), Ok(0));
    assert_eq!(
        found(
            &with("5"),
            &[("service-names", "svc,b"), ("required-features", "5")]
        ),
        Err("required-features".into())
    );
    assert_eq!(
        found(
            &with("5"),
            &[("service-names", "svc,b"), ("required-features", "0,7")]
        ),
        Ok(1)
    );
}

#[test]
fn a_data_network_must_be_in_the_slice_asked_for() {
    let smf = profile(
        &id(1),
        "UDM",
        "svc",
        &json!({"smfInfo": {"sNssaiSmfInfoList": [
        {"sNssai": {"sst": 1}, "dnnSmfInfoList": [{"dnn": "internet"}]},
        {"sNssai": {"sst": 2}, "dnnSmfInfoList": [{"dnn": "ims"}]}]}}),
    );
    let found = |dnn: &str, slice: u8| {
        let slices = json!([{"sst": slice}]).to_string();
        ask(std::slice::from_ref(&smf), &[("dnn", dnn), ("snssais", &slices)])
            .unwrap()
            .0
            .profiles
    };
    assert_eq!(
        [
            found("internet", 1),
            found("internet", 2),
            found("ims", 2),
            found("ims", 3)
        ],
        [1, 0, 1, 0]
    );
}

#[test]
fn slices_of_the_answer_are_those_asked_for() {
    let plmn = json!({"mcc": "001", "mnc": "01"});
    let plmn2 = json!({"mcc": "001", "mnc": "02"});
    let mut one = profile(
        &id(1),
        "UDM",
        "svc",
        &json!({
        "sNssais": [{"sst": 1}, {"sst": 2}, {"sst": 3}],
        "perPlmnSnssaiList": [{"plmnId": plmn, "sNssaiList": [{"sst": 1}, {"sst": 3}]}, {"plmnId": plmn2, "sNssaiList": [{"sst": 1}]}]}),
    );
    one["nfServices"][0]["sNssais"] = json!([{"sst": 1}, {"sst": 2}]);
    let asked = json!([{"sst": 2}, {"sst": 3}]).to_string();
    let (_, answer) = ask(std::slice::from_ref(&one), &[("snssais", &asked)]).unwrap();
    let shown = &answer["nfInstances"][0];
    assert_eq!(shown["sNssais"], json!([{"sst": 2}, {"sst": 3}]));
    assert_eq!(
        shown["perPlmnSnssaiList"],
        json!([{"plmnId": plmn, "sNssaiList": [{"sst": 3}]}])
    );
    assert_eq!(shown["nfServices"][0]["sNssais"], json!([{"sst": 2}]));
    let asked = json!([{"plmnId": plmn2, "sNssaiList": [{"sst": 1}]}]).to_string();
    let (_, answer) = ask(&[one], &[("plmn-specific-snssai-list", &asked)]).unwrap();
    assert_eq!(
        answer["nfInstances"][0]["perPlmnSnssaiList"],
        json!([{"plmnId": plmn2, "sNssaiList": [{"sst": 1}]}])
    );
}

#[test]
fn who_stands_in_for_an_amf() {
    let plmn = json!({"mcc": "001", "mnc": "01"});
    let guami = |amf: &str| json!({"plmnId": plmn, "amfId": amf});
    let amf = |number: u32, own: &str, status: &str, more: Value| {
        let mut info = json!({"amfSetId": "3f8", "amfRegionId": "ca", "guamiList": [guami(own)]});
        merge(&mut info, more);
        profile(
            &id(number),
            "UDM",
            "svc",
            &json!({"nfStatus": status, "amfInfo": info}),
        )
    };
    let failure = amf(
        2,
        "000002",
        "REGISTERED",
        json!({"backupInfoAmfFailure": [guami("000001")]}),
    );
    let removal = amf(
        3,
        "000003",
        "REGISTERED",
        json!({"backupInfoAmfRemoval": [guami("000001")]}),
    );
    let ask = |profiles: &[Value]| {
        ids(&ask(profiles, &[("guami", &guami("000001").to_string())])
            .unwrap()
            .1)
    };
    let own = |status| amf(1, "000001", status, json!({}));
    assert_eq!(
        ask(&[own("REGISTERED"), failure.clone(), removal.clone()]),
        [id(1)]
    );
    assert_eq!(
        ask(&[own("SUSPENDED"), failure.clone(), removal.clone()]),
        [id(2)]
    );
    assert_eq!(ask(&[failure, removal]), [id(2), id(3)]);
}

#[test]
fn why_nothing_is_found() {
    let reason = |members: Value, more: &[(&str, &str)]| {
        let (_, answer) = ask(&[profile(&id(1), "UDM", "svc", &members)], more).unwrap();
        answer["noProfileMatchInfo"]["reason"]
            .as_str()
            .unwrap_or_default()
            .to_owned()
    };
    let foreign = json!([{"mcc": "001", "mnc": "02"}]).to_string();
    assert_eq!(reason(json!({}), &[("dnn", "x")]), "");
    assert_eq!(
        reason(json!({}), &[("service-names", "x")]),
        "QUERY_PARAMS_COMBINATION_NO_MATCH"
    );
    assert_eq!(
        reason(json!({"nfStatus": "SUSPENDED"}), &[]),
        "TARGET_NF_SUSPENDED"
    );
    assert_eq!(
        reason(json!({"nfStatus": "UNDISCOVERABLE"}), &[]),
        "TARGET_NF_UNDISCOVERABLE"
    );
    assert_eq!(
        reason(
            json!({"allowedPlmns": [{"mcc": "001", "mnc": "01"}]}),
            &[("requester-plmn-list", &foreign)]
        ),
        "REQUESTER_PLMN_NOT_ALLOWED"
    );
}

/// Services by who may see them; a profile with nothing to show is not shown.
#[test]
fn services_that_the_requester_may_not_see_are_not_shown() {
    let mut one = profile(&id(1), "UDM", "a", &json!({}));
    let mut second = one["nfServices"][0].clone();
    merge(
        &mut second,
        json!({"serviceInstanceId": "s2", "serviceName": "b", "allowedNfTypes": ["SMF"]}),
    );
    one["nfServices"].as_array_mut().unwrap().push(second.clone());
    let names = |answer: &Value| {
        let list = answer["nfInstances"][0]["nfServices"]
            .as_array()
            .cloned()
            .unwrap_or_default();
        list.iter()
            .map(|service| service["serviceName"].as_str().unwrap().to_owned())
            .collect::<Vec<_>>()
    };
    let asked =
        |profile: &Value, more: &[(&str, &str)]| names(&ask(std::slice::from_ref(profile), more).unwrap().1);
    assert_eq!(asked(&one, &[]), ["a"]);
    assert_eq!(asked(&one, &[("requester-nf-type", "SMF")]), ["a", "b"]);
    assert!(asked(&one, &[("service-names", "b")]).is_empty());
    one["nfServices"] = json!([second]);
    assert_eq!(ask(std::slice::from_ref(&one), &[]).unwrap().0.profiles, 0);
    one["nfServices"][0]["nfServiceStatus"] = json!("SUSPENDED");
    assert_eq!(
        ask(&[one], &[("requester-nf-type", "SMF")]).unwrap().0.profiles,
        0
    );
}

#[test]
fn services_as_a_map_for_who_knows_maps() {
    let mut one = profile(&id(1), "UDM", "a", &json!({}));
    let service = one["nfServices"][0].clone();
    one.as_object_mut().unwrap().remove("nfServices");
    one["nfServiceList"] = json!({"s1": service});
    let (_, listed) = ask(std::slice::from_ref(&one), &[]).unwrap();
    assert_eq!(listed["nfInstances"][0]["nfServices"], json!([service]));
    assert_eq!(listed["nfInstances"][0].get("nfServiceList"), None);
    assert_eq!(listed["nrfSupportedFeatures"], "5FF");
    let (_, mapped) = ask(&[one], &[("requester-features", "20")]).unwrap();
    assert_eq!(mapped["nfInstances"][0]["nfServiceList"], json!({"s1": service}));
    assert_eq!(mapped["nrfSupportedFeatures"], "5FF");
}

/// A requester of another network gets `interPlmnFqdn` as `fqdn` (TS 29.510 §6.2.6.2.3 note 3).
#[test]
fn names_for_other_networks() {
    let mut named = profile(
        &id(1),
        "UDM",
        "svc",
        &json!({"plmnList": [{"mcc": "001", "mnc": "01"}], "fqdn": "in.example", "interPlmnFqdn": "out.example",
            "sNssais": [{"sst": 1}, {"sst": 2}]}),
    );
    named["nfServices"][0]["interPlmnFqdn"] = json!("svc.example");
    let names = |parameters: &[(&str, &str)]| {
        let (_, answer) = ask(std::slice::from_ref(&named), parameters).unwrap();
        let one = &answer["nfInstances"][0];
        (
            one["fqdn"].clone(),
            one["nfServices"][0]["fqdn"].clone(),
            one["sNssais"].clone(),
        )
    };
    let (home, other) = (r#"[{"mcc":"001","mnc":"01"}]"#, r#"[{"mcc":"999","mnc":"99"}]"#);
    let both = json!([{"sst": 1}, {"sst": 2}]);
    assert_eq!(names(&[]), (json!("in.example"), Value::Null, both.clone()));
    assert_eq!(
        names(&[("requester-plmn-list", home)]),
        (json!("in.example"), Value::Null, both)
    );
    assert_eq!(
        names(&[("requester-plmn-list", other), ("snssais", r#"[{"sst":2}]"#)]),
        (json!("out.example"), json!("svc.example"), json!([{"sst": 2}]))
    );
}

/// `plmnList` may be absent for an NF of the NRF's own networks (TS 29.510 table 6.1.6.2.2-1).
#[test]
fn an_nf_without_plmns_is_of_the_networks_of_its_nrf() {
    let ours = Policy {
        own_plmns: vec!["001-01".parse().unwrap()],
        ..policy()
    };
    let silent = profile(&id(1), "UDM", "svc", &json!({}));
    let of = |policy: &Policy, plmns: &str| {
        let found = ask_by(
            policy,
            std::slice::from_ref(&silent),
            &[("target-plmn-list", plmns)],
        );
        found.unwrap().0.profiles
    };
    let (home, other) = (r#"[{"mcc":"001","mnc":"01"}]"#, r#"[{"mcc":"999","mnc":"99"}]"#);
    assert_eq!((of(&ours, home), of(&ours, other)), (1, 0));
    assert_eq!(
        of(&policy(), other),
        1,
        "an NRF that does not know its own networks"
    );
}

#[test]
fn answers_stay_within_the_payload_asked_for() {
    let profiles: Vec<Value> = (1..=9)
        .map(|number| profile(&id(number), "UDM", "svc", &json!({"pad": "x".repeat(600)})))
        .collect();
    for kilobytes in [1, 3, 5] {
        let (answer, json) = ask(&profiles, &[("max-payload-size", &kilobytes.to_string())]).unwrap();
        assert!(
            answer.body.len() <= kilobytes * 1_000 + 64,
            "{} for {kilobytes}",
            answer.body.len()
        );
        assert!(answer.profiles < 9 && json["numNfInstComplete"] == 9);
    }
}
