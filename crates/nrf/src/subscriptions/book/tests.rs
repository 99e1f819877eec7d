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

fn tell(
    book: &mut Book,
    kind: ChangeKind,
    before: Option<Arc<Entry>>,
    after: Option<Arc<Entry>>,
) -> Vec<(String, Value)> {
    let telling = Telling {
        load_threshold: 10,
        as_changes: false,
    };
    let change = ProfileChange { kind, before, after };
    let told = book.tell(&change, telling, "http://nrf", OffsetDateTime::UNIX_EPOCH);
    told.into_iter()
        .map(|one| (one.subscription, serde_json::from_slice(&one.body).unwrap()))
        .collect()
}

fn who(told: &[(String, Value)]) -> Vec<&str> {
    told.iter().map(|(id, _)| id.as_str()).collect()
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
    let told = tell(&mut book, ChangeKind::Registered, None, Some(entry(|_| {})));
    assert_eq!(
        who(&told),
        [
            "all", "group", "groups", "instance", "service", "services", "set", "type"
        ]
    );
    let (_, body) = &told[0];
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
        who(&tell(
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
        who(&tell(
            &mut book,
            ChangeKind::Updated,
            Some(old.clone()),
            Some(new)
        )),
        ["not-load", "priority"]
    );
    let loaded = Arc::new(old.moved(old.status.clone(), Some(60), None));
    assert!(tell(&mut book, ChangeKind::HeartBeat, Some(old.clone()), Some(loaded)).is_empty());
    assert_eq!(
        who(&tell(&mut book, ChangeKind::Deregistered, Some(old), None)),
        ["gone", "not-load", "priority"]
    );
}

#[test]
fn load_is_told_past_the_threshold_only() {
    let mut book = Book::default();
    subscribe(&mut book, "all", json!({}));
    let mut last = entry(|_| {});
    tell(&mut book, ChangeKind::Registered, None, Some(last.clone()));
    // 10 at registration; small steps add up to news.
    for (load, told) in [(15, 0), (19, 0), (20, 1), (25, 0), (12, 0), (10, 1)] {
        let next = Arc::new(last.moved(last.status.clone(), Some(load), None));
        let count = tell(
            &mut book,
            ChangeKind::HeartBeat,
            Some(last.clone()),
            Some(next.clone()),
        )
        .len();
        assert_eq!(count, told, "load {load}");
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
    let told = tell(
        &mut book,
        ChangeKind::Updated,
        Some(one.clone()),
        Some(two.clone()),
    );
    assert_eq!(told[0].1["conditionEvent"], "NF_ADDED");
    let told = tell(&mut book, ChangeKind::Updated, Some(two), Some(one));
    assert_eq!(told[0].1["conditionEvent"], "NF_REMOVED");
    assert!(told[0].1.get("nfProfile").is_none());
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
    let telling = Telling {
        load_threshold: 10,
        as_changes: true,
    };
    let told = book.tell(&change, telling, "", OffsetDateTime::UNIX_EPOCH);
    let body: Value = serde_json::from_slice(&told[0].body).unwrap();
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
        who(&tell(&mut book, ChangeKind::Registered, None, Some(closed))),
        ["smf"]
    );
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
