use super::*;
use serde_json::json;

const ID: &str = "4947a69a-f61b-4bc1-b9da-47c9c5d14b64";

fn entry(change: impl FnOnce(&mut Value)) -> Arc<Entry> {
    let mut profile = json!({
        "nfInstanceId": ID, "nfType": "UDM", "nfStatus": "REGISTERED", "ipv4Addresses": ["127.0.0.1"],
        "nfSetIdList": ["set1.udmset.5gc.mnc001.mcc001"], "priority": 1, "load": 10,
        "udmInfo": {"groupId": "g1"},
        "nfServices": [{"serviceInstanceId": "s", "serviceName": "nudm-sdm", "scheme": "http",
            "nfServiceStatus": "REGISTERED", "versions": [{"apiVersionInUri": "v2", "apiFullVersion": "2.0.0"}]}]
    });
    change(&mut profile);
    Arc::new(Entry::parse(profile.to_string().as_bytes(), |_| 30).unwrap())
}

fn subscribe(book: &mut Book, id: &str, data: Value) {
    let mut document = json!({"nfStatusNotificationUri": "http://127.0.0.1:9/cb", "reqNfType": "AMF"});
    document
        .as_object_mut()
        .unwrap()
        .extend(data.as_object().unwrap().clone());
    let until = OffsetDateTime::UNIX_EPOCH + time::Duration::days(1);
    book.put(Arc::new(Subscription::parse(document, id, until).unwrap()));
}

fn notify(
    book: &mut Book,
    kind: ChangeKind,
    before: Option<Arc<Entry>>,
    after: Option<Arc<Entry>>,
) -> Vec<(String, Value)> {
    let notifying = Notifying {
        load_threshold: 10,
        as_changes: false,
    };
    let change = ProfileChange { kind, before, after };
    let notified = book.notify(&change, notifying, "http://nrf", OffsetDateTime::UNIX_EPOCH);
    notified
        .into_iter()
        .map(|one| {
            (
                one.subscription.to_string(),
                serde_json::from_slice(&one.body).unwrap(),
            )
        })
        .collect()
}

fn who(notified: &[(String, Value)]) -> Vec<&str> {
    notified.iter().map(|(id, _)| id.as_str()).collect()
}

/// Ranges of a condition are those of which a producer serves some (TS 29.510 §6.1.6.2.74 and what is like it).
#[test]
fn ranges_of_a_condition_need_only_overlap() {
    let mut book = Book::default();
    let areas = |start: &str, end: &str| json!([{"plmnId": {"mcc": "001", "mnc": "01"}, "tacRangeList": [{"start": start, "end": end}]}]);
    for (id, start, end) in [("some", "4675", "4690"), ("none", "4680", "4690")] {
        let ranges = json!([{"start": start, "end": end}]);
        let condition = json!({"conditionType": "NEF_COND", "gpsiRanges": ranges});
        subscribe(&mut book, id, json!({"subscrCond": condition}));
    }
    for (id, start, end) in [("near", "000008", "0000ff"), ("far", "000010", "0000ff")] {
        for (kind, name) in [("NWDAF_COND", "nwdaf"), ("DCCF_COND", "dccf")] {
            let condition = json!({"conditionType": kind, "taiRangeList": areas(start, end)});
            subscribe(
                &mut book,
                &format!("{name}-{id}"),
                json!({"subscrCond": condition}),
            );
        }
    }
    let served = areas("000000", "00000f");
    for (nf_type, members, subscriber) in [
        (
            "NEF",
            json!({"nefInfo": {"gpsiRanges": [{"start": "4670", "end": "4679"}]}}),
            "some",
        ),
        (
            "NWDAF",
            json!({"nwdafInfo": {"taiRangeList": served}}),
            "nwdaf-near",
        ),
        ("DCCF", json!({"dccfInfo": {"taiRangeList": served}}), "dccf-near"),
    ] {
        let after = entry(|profile| {
            profile["nfType"] = nf_type.into();
            profile["allowedNfTypes"] = json!(["AMF"]);
            for (name, value) in members.as_object().unwrap() {
                profile[name] = value.clone();
            }
        });
        let notified = notify(&mut book, ChangeKind::Registered, None, Some(after));
        assert_eq!(who(&notified), [subscriber], "{nf_type}");
    }
}

#[test]
fn an_invalid_set_or_region_of_amfs_is_refused() {
    let until = OffsetDateTime::UNIX_EPOCH;
    for (condition, place) in [
        (json!({"amfSetId": "400"}), "/subscrCond/amfSetId"),
        (
            json!({"amfSetId": "3f8", "amfRegionId": "cafe"}),
            "/subscrCond/amfRegionId",
        ),
    ] {
        let document = json!({"nfStatusNotificationUri": "http://127.0.0.1:9/cb", "subscrCond": condition});
        let problem = Subscription::parse(document, "s", until).unwrap_err();
        assert_eq!(problem.details().invalid_params[0].param, place);
    }
}

#[test]
fn conditions_choose_who_is_told() {
    let mut book = Book::default();
    subscribe(&mut book, "all", json!({}));
    subscribe(
        &mut book,
        "group",
        json!({"subscrCond": {"nfType": "UDM", "nfGroupId": "g1"}}),
    );
    subscribe(
        &mut book,
        "groups",
        json!({"subscrCond": {"conditionType": "NF_GROUP_LIST_COND", "nfType": "UDM", "nfGroupIdList": ["g1", "g2"]}}),
    );
    subscribe(&mut book, "instance", json!({"subscrCond": {"nfInstanceId": ID}}));
    subscribe(&mut book, "other", json!({"subscrCond": {"nfType": "UDR"}}));
    subscribe(
        &mut book,
        "service",
        json!({"subscrCond": {"serviceName": "nudm-sdm"}}),
    );
    subscribe(
        &mut book,
        "services",
        json!({"subscrCond": {"conditionType": "SERVICE_NAME_LIST_COND", "serviceNameList": ["nudm-uecm", "nudm-sdm"]}}),
    );
    subscribe(
        &mut book,
        "set",
        json!({"subscrCond": {"nfSetId": "set1.udmset.5gc.mnc001.mcc001"}}),
    );
    subscribe(&mut book, "type", json!({"subscrCond": {"nfType": "UDM"}}));
    subscribe(
        &mut book,
        "upf",
        json!({"subscrCond": {"conditionType": "UPF_COND", "smfServingArea": ["a"]}}),
    );
    let notified = notify(&mut book, ChangeKind::Registered, None, Some(entry(|_| {})));
    assert_eq!(
        who(&notified),
        [
            "all", "group", "groups", "instance", "service", "services", "set", "type"
        ]
    );
    let (_, body) = &notified[0];
    assert_eq!(body["event"], "NF_REGISTERED");
    assert_eq!(
        body["nfInstanceUri"],
        format!("http://nrf/nnrf-nfm/v1/nf-instances/{ID}")
    );
    assert_eq!(
        body["nfProfile"]["nfSetIdList"][0],
        "set1.udmset.5gc.mnc001.mcc001"
    );
    assert!(book.remove("all").is_some() && book.remove("all").is_none());
    assert_eq!(
        who(&notify(
            &mut book,
            ChangeKind::Deregistered,
            Some(entry(|_| {})),
            None
        ))
        .len(),
        7
    );
}

#[test]
fn events_and_attributes_choose_what_is_told() {
    let mut book = Book::default();
    subscribe(&mut book, "gone", json!({"reqNotifEvents": ["NF_DEREGISTERED"]}));
    subscribe(
        &mut book,
        "not-load",
        json!({"notifCondition": {"unmonitoredAttributes": ["/load", "/loadTimeStamp"]}}),
    );
    subscribe(
        &mut book,
        "priority",
        json!({"notifCondition": {"monitoredAttributes": ["/priority"]}}),
    );
    let (old, new) = (entry(|_| {}), entry(|p| p["priority"] = json!(2)));
    assert_eq!(
        who(&notify(
            &mut book,
            ChangeKind::Updated,
            Some(old.clone()),
            Some(new)
        )),
        ["not-load", "priority"]
    );
    let loaded = Arc::new(old.moved(old.status.clone(), Some(60), None));
    assert!(notify(&mut book, ChangeKind::HeartBeat, Some(old.clone()), Some(loaded)).is_empty());
    assert_eq!(
        who(&notify(&mut book, ChangeKind::Deregistered, Some(old), None)),
        ["gone", "not-load", "priority"]
    );
}

#[test]
fn load_is_told_past_the_threshold_only() {
    let mut book = Book::default();
    subscribe(&mut book, "all", json!({}));
    let mut last = entry(|_| {});
    notify(&mut book, ChangeKind::Registered, None, Some(last.clone()));
    // 10 at registration; small steps add up to news.
    for (load, notified) in [(15, 0), (19, 0), (20, 1), (25, 0), (12, 0), (10, 1)] {
        let next = Arc::new(last.moved(last.status.clone(), Some(load), None));
        let count = notify(
            &mut book,
            ChangeKind::HeartBeat,
            Some(last.clone()),
            Some(next.clone()),
        )
        .len();
        assert_eq!(count, notified, "load {load}");
        last = next;
    }
}

#[test]
fn a_profile_that_begins_to_fit_is_told_as_added() {
    let mut book = Book::default();
    subscribe(
        &mut book,
        "g2",
        json!({"subscrCond": {"nfType": "UDM", "nfGroupId": "g2"}}),
    );
    let (one, two) = (entry(|_| {}), entry(|p| p["udmInfo"]["groupId"] = json!("g2")));
    let notified = notify(
        &mut book,
        ChangeKind::Updated,
        Some(one.clone()),
        Some(two.clone()),
    );
    assert_eq!(notified[0].1["conditionEvent"], "NF_ADDED");
    let notified = notify(&mut book, ChangeKind::Updated, Some(two), Some(one));
    assert_eq!(notified[0].1["conditionEvent"], "NF_REMOVED");
    // NF_PROFILE_CHANGED has either nfProfile or profileChanges (TS 29.510 §6.1.6.2.17).
    assert!(notified[0].1["nfProfile"].is_object());
}

#[test]
fn changes_are_told_as_items_when_configured() {
    let mut book = Book::default();
    subscribe(&mut book, "all", json!({}));
    let change = ProfileChange {
        kind: ChangeKind::Updated,
        before: Some(entry(|_| {})),
        after: Some(entry(|p| p["priority"] = json!(9))),
    };
    let notifying = Notifying {
        load_threshold: 10,
        as_changes: true,
    };
    let notified = book.notify(&change, notifying, "", OffsetDateTime::UNIX_EPOCH);
    let body: Value = serde_json::from_slice(&notified[0].body).unwrap();
    assert_eq!(
        body["profileChanges"],
        json!([{"op": "REPLACE", "path": "/priority", "origValue": 1, "newValue": 9}])
    );
}

#[test]
fn closed_profiles_are_told_only_to_those_allowed() {
    let mut book = Book::default();
    subscribe(&mut book, "amf", json!({}));
    subscribe(&mut book, "smf", json!({"reqNfType": "SMF"}));
    let closed = entry(|p| p["allowedNfTypes"] = json!(["SMF"]));
    assert_eq!(
        who(&notify(&mut book, ChangeKind::Registered, None, Some(closed))),
        ["smf"]
    );
}

#[test]
fn an_scp_is_notified_of_closed_profiles() {
    let mut book = Book::default();
    subscribe(&mut book, "scp", json!({"reqNfType": "SCP"}));
    let closed = entry(|p| p["allowedNfTypes"] = json!(["SMF"]));
    let notified = notify(&mut book, ChangeKind::Registered, None, Some(closed));
    assert_eq!(who(&notified), ["scp"]);
    assert!(!notified[0].1.to_string().contains("allowedNfTypes"));
}

#[test]
fn another_list_of_allowed_types_alone_is_notified_and_not_shown() {
    let open = || entry(|_| {});
    let profile = || entry(|p| p["allowedNfTypes"] = json!(["AMF", "SCP"]));
    let narrower = || entry(|p| p["allowedNfTypes"] = json!(["AMF"]));
    let service = || entry(|p| p["nfServices"][0]["allowedNfTypes"] = json!(["AMF", "SCP"]));
    for (before, after) in [
        (profile(), open()),
        (open(), profile()),
        (profile(), narrower()),
        (service(), open()),
    ] {
        for as_changes in [false, true] {
            let mut book = Book::default();
            subscribe(&mut book, "all", json!({}));
            let monitors = |member: &str| json!({"notifCondition": {"monitoredAttributes": [member]}});
            subscribe(&mut book, "types", monitors("/allowedNfTypes"));
            subscribe(&mut book, "priority", monitors("/priority"));
            let change = ProfileChange {
                kind: ChangeKind::Updated,
                before: Some(before.clone()),
                after: Some(after.clone()),
            };
            let notifying = Notifying {
                load_threshold: 10,
                as_changes,
            };
            let notified = book.notify(&change, notifying, "http://nrf", OffsetDateTime::UNIX_EPOCH);
            let whom: Vec<_> = notified.iter().map(|one| &*one.subscription).collect();
            assert!(whom.contains(&"all") && !whom.contains(&"priority"), "{whom:?}");
            let body: Value = serde_json::from_slice(&notified[0].body).unwrap();
            assert_eq!(body["event"], "NF_PROFILE_CHANGED");
            assert!(body["nfProfile"].is_object() && !body.to_string().contains("allowedNfTypes"));
        }
    }
}

#[test]
fn what_is_no_subscription() {
    let until = OffsetDateTime::UNIX_EPOCH;
    let place = |data: Value| {
        Subscription::parse(data, "x", until)
            .unwrap_err()
            .details()
            .invalid_params[0]
            .param
            .clone()
    };
    assert_eq!(place(json!({})), "/nfStatusNotificationUri");
    for uri in [json!("/relative"), json!(7), json!("http://"), json!("ftp://a/b")] {
        assert_eq!(
            place(json!({"nfStatusNotificationUri": uri})),
            "/nfStatusNotificationUri"
        );
    }
    let with = |name: &str, value: Value| place(json!({"nfStatusNotificationUri": "http://a", name: value}));
    assert_eq!(with("subscrCond", json!({})), "/subscrCond");
    assert_eq!(
        with("subscrCond", json!({"nfInstanceIdList": []})),
        "/subscrCond/nfInstanceIdList"
    );
    assert_eq!(
        with("subscrCond", json!({"nfInstanceId": "x"})),
        "/subscrCond/nfInstanceId"
    );
    assert_eq!(
        with("notifCondition", json!({"monitoredAttributes": 1})),
        "/notifCondition/monitoredAttributes"
    );
    assert_eq!(with("reqPlmnList", json!([{"mcc": "1"}])), "/reqPlmnList");
}

#[test]
fn loads_of_services_are_news_past_the_threshold_only() {
    let mut book = Book::default();
    subscribe(&mut book, "all", json!({}));
    let with = |load: u8| entry(|profile| profile["nfServices"][0]["load"] = load.into());
    let mut last = with(10);
    for (load, news) in [
        (15, false),
        (19, false),
        (20, true),
        (29, false),
        (11, false),
        (10, true),
    ] {
        let next = with(load);
        let notified = notify(&mut book, ChangeKind::HeartBeat, Some(last), Some(next.clone()));
        assert_eq!(!notified.is_empty(), news, "{load}");
        last = next;
    }
}

fn notified_changes(book: &mut Book, before: Arc<Entry>, after: Arc<Entry>) -> Vec<(String, Value)> {
    let notifying = Notifying {
        load_threshold: 10,
        as_changes: true,
    };
    let change = ProfileChange {
        kind: ChangeKind::Updated,
        before: Some(before),
        after: Some(after),
    };
    let notified = book.notify(&change, notifying, "http://nrf", OffsetDateTime::UNIX_EPOCH);
    let body = |body: &Bytes| serde_json::from_slice(body).unwrap();
    notified
        .iter()
        .map(|one| (one.subscription.to_string(), body(&one.body)))
        .collect()
}

/// TS 29.510 §6.1.6.2.17 note 2: a list that has changed is notified as a whole.
#[test]
fn a_change_inside_of_a_list_replaces_the_list() {
    let mut book = Book::default();
    subscribe(&mut book, "all", json!({}));
    let before = entry(|_| {});
    let after = entry(|profile| {
        profile["nfServices"][0]["capacity"] = json!(7);
        profile["priority"] = json!(2);
    });
    let notified = notified_changes(&mut book, before, after);
    let changes = notified[0].1["profileChanges"].as_array().unwrap();
    let at = |path: &str| changes.iter().find(|change| change["path"] == path);
    assert_eq!(changes.len(), 2, "{changes:?}");
    assert_eq!(at("/nfServices").unwrap()["newValue"][0]["capacity"], 7);
    assert_eq!(at("/nfServices").unwrap()["op"], "REPLACE");
    assert_eq!(at("/priority").unwrap()["newValue"], 2);
}

/// An attribute of a service means that of each service, however the profile lists them (TS 29.510 §6.1.6.2.16 note 5).
#[test]
fn attributes_of_services_are_those_of_each() {
    let second = |profile: &mut Value| {
        let mut service = profile["nfServices"][0].clone();
        service["serviceInstanceId"] = json!("t");
        profile["nfServices"].as_array_mut().unwrap().push(service);
    };
    for (attribute, wanted) in [
        ("/nfServices/0/capacity", true),
        ("/nfServices/1/capacity", true),
        ("/nfServiceList/s/capacity", true),
        ("/nfServices", true),
        ("/nfServices/0/priority", false),
        ("/capacity", false),
    ] {
        let mut book = Book::default();
        subscribe(
            &mut book,
            "one",
            json!({"notifCondition": {"monitoredAttributes": [attribute]}}),
        );
        let before = entry(second);
        let after = entry(|profile| {
            second(profile);
            profile["nfServices"][1]["capacity"] = json!(7);
        });
        let notified = notify(&mut book, ChangeKind::Updated, Some(before), Some(after));
        assert_eq!(!notified.is_empty(), wanted, "{attribute}");
    }
}

#[test]
fn networks_and_scopes_choose_who_is_told() {
    let mut book = Book::default();
    let snpn = |nid: &str| json!({"plmnId": {"mcc": "001", "mnc": "01"}, "nid": nid});
    subscribe(&mut book, "snpn", snpn("0000000000a"));
    subscribe(&mut book, "other snpn", snpn("0000000000b"));
    subscribe(&mut book, "north", json!({"servingScope": ["north", "west"]}));
    subscribe(&mut book, "south", json!({"servingScope": ["south"]}));
    let there = entry(|profile| {
        profile["snpnList"] = json!([{"mcc": "001", "mnc": "01", "nid": "0000000000a"}]);
        profile["servingScope"] = json!(["north"]);
    });
    let notified = notify(&mut book, ChangeKind::Registered, None, Some(there));
    assert_eq!(who(&notified), ["north", "snpn"]);
    assert!(notify(&mut book, ChangeKind::Registered, None, Some(entry(|_| {}))).is_empty());
}

/// TS 29.510 §6.1.6.2.2, `fqdn` and `interPlmnFqdn`; and members that only a registry has.
#[test]
fn a_subscriber_of_another_network_gets_the_name_for_it() {
    let mut book = Book::default();
    let of = |mnc: &str| json!({"reqPlmnList": [{"mcc": "001", "mnc": mnc}]});
    subscribe(&mut book, "abroad", of("02"));
    subscribe(&mut book, "home", of("01"));
    let named = entry(|profile| {
        profile["plmnList"] = json!([{"mcc": "001", "mnc": "01"}]);
        profile["fqdn"] = json!("udm.internal.example");
        profile["interPlmnFqdn"] = json!("udm.example.org");
        profile["allowedNfTypes"] = json!(["AMF"]);
        profile["nrfInfo"] = json!({"servedUdmInfo": {ID: {"groupId": "g"}}});
        profile["nfServices"][0]["interPlmnFqdn"] = json!("sdm.example.org");
        profile["nfServices"][0]["perPlmnOauth2ReqList"] =
            json!({"oauth2RequiredPlmnIdList": [{"mcc": "001", "mnc": "02"}]});
        profile["nfServices"][0]["allowedPlmns"] =
            json!([{"mcc": "001", "mnc": "01"}, {"mcc": "001", "mnc": "02"}]);
    });
    let notified = notify(&mut book, ChangeKind::Registered, None, Some(named));
    let profile = |who: &str| &notified.iter().find(|(id, _)| id == who).unwrap().1["nfProfile"];
    let (abroad, home) = (profile("abroad"), profile("home"));
    assert_eq!(
        (&home["fqdn"], &home["nfServices"][0]["fqdn"]),
        (&json!("udm.internal.example"), &Value::Null)
    );
    assert_eq!(
        (&abroad["fqdn"], &abroad["nfServices"][0]["fqdn"]),
        (&json!("udm.example.org"), &json!("sdm.example.org"))
    );
    for profile in [abroad, home] {
        assert!(profile["nrfInfo"].is_object());
        assert!(profile["nfServices"][0]["perPlmnOauth2ReqList"].is_object());
        assert_eq!(profile["allowedNfTypes"], Value::Null);
        assert_eq!(profile["nfServices"][0]["allowedPlmns"], Value::Null);
    }
}

#[test]
fn subscriptions_that_nothing_would_meet_are_refused() {
    let parse = |events: Value| {
        let document = json!({"nfStatusNotificationUri": "http://127.0.0.1:9/cb", "reqNotifEvents": events});
        Subscription::parse(document, "s", OffsetDateTime::UNIX_EPOCH)
    };
    assert!(parse(json!(["NF_PROFILE_CHANGE"])).is_err());
    // An event of a later release beside one of this.
    assert!(parse(json!(["NF_REGISTERED", "NF_LATER"])).is_ok());
}
