//! Quotas: what is left, and the next thresholds.

use pcc::decision::difference;
use pcc::usage::{Accounts, Amount, forget_reported};
use serde_json::{Value, json};
use time::macros::datetime;

fn subscriber() -> Value {
    json!({
        "smPolicySnssaiData": {"01": {"snssai": {"sst": 1}, "smPolicyDnnData": {"internet": {
            "dnn": "internet", "refUmDataLimitIds": {"month": {"limitId": "month", "monkey": ["m"]}}}}}},
        "umDataLimits": {
            "month": {"limitId": "month", "umLevel": "SESSION_LEVEL", "startDate": "2024-01-01T00:00:00Z",
                "usageLimit": {"totalVolume": 10_000}, "resetPeriod": {"period": "MONTHLY"}},
            "video": {"limitId": "video", "umLevel": "SERVICE_LEVEL", "usageLimit": {"downlinkVolume": 500},
                "scopes": {"01": {"snssai": {"sst": 1}, "dnn": ["internet"]}}},
            "ims": {"limitId": "ims", "usageLimit": {"totalVolume": 1}, "scopes": {"01": {"snssai": {"sst": 1}, "dnn": ["ims"]}}},
            "old": {"limitId": "old", "endDate": "2020-01-01T00:00:00Z", "usageLimit": {"totalVolume": 1},
                "scopes": {"01": {"snssai": {"sst": 1}}}},
        },
        "umData": {"month": {"limitId": "month", "allowedUsage": {"totalVolume": 4_000}, "resetTime": "2024-03-01T00:00:00Z"}},
    })
}

fn decision() -> Value {
    json!({
        "sessRules": {"default": {"sessRuleId": "default"}},
        "pccRules": {"video": {"pccRuleId": "video", "refUmData": ["video"]}, "x": {"pccRuleId": "x", "refUmData": ["none"]}},
    })
}

#[test]
fn thresholds_are_what_is_left_until_it_is_used_up() {
    let now = datetime!(2024-02-10 00:00 UTC);
    let mut accounts = Accounts::of_subscriber(&subscriber(), Some("01"), "internet", now);
    assert_eq!(accounts.all().len(), 2);
    let mut shall = decision();
    accounts.attach(&mut shall, None);
    assert_eq!(
        shall["umDecs"],
        json!({
            "m": {"umId": "m", "volumeThreshold": 4_000, "monitoringTime": "2024-03-01T00:00:00Z", "nextVolThreshold": 10_000},
            "video": {"umId": "video", "volumeThresholdDownlink": 500},
        })
    );
    assert_eq!(shall["sessRules"]["default"]["refUmData"], "m");
    assert!(
        shall["pccRules"]["x"].get("refUmData").is_none(),
        "no reference to what is not there"
    );
    assert_eq!(shall["policyCtrlReqTriggers"], json!(["US_RE"]));

    let mut has = shall.clone();
    let report =
        json!({"accuUsageReports": [{"refUmIds": "m", "volUsageUplink": 1_000, "volUsageDownlink": 500}]});
    assert_eq!(accounts.report(&report, now), ["month"]);
    assert_eq!(accounts.all()[0].left().total, Some(2_500));
    forget_reported(&mut has, &report);
    let mut shall = decision();
    accounts.attach(&mut shall, None);
    let change = difference(&has, &shall).unwrap();
    assert_eq!(change["umDecs"]["m"]["volumeThreshold"], 2_500);
    assert!(change["umDecs"].get("video").is_none());

    accounts.report(
        &json!({"accuUsageReports": [{"refUmIds": "m", "volUsage": 9_999}]}),
        now,
    );
    assert!(accounts.all()[0].is_exhausted());
    let mut shall = decision();
    accounts.attach(&mut shall, None);
    assert!(shall["sessRules"]["default"].get("refUmData").is_none());
    let change = difference(&has, &shall).unwrap();
    assert_eq!(change["umDecs"], json!({"m": null}));
    assert_eq!(change["sessRules"]["default"]["refUmData"], Value::Null);
}

#[test]
fn the_same_portion_is_provided_again_after_a_report() {
    let now = datetime!(2024-02-10 00:00 UTC);
    let mut accounts = Accounts::of_subscriber(&subscriber(), Some("01"), "internet", now);
    let portion = Some(Amount {
        total: Some(100),
        ..Amount::default()
    });
    let mut has = decision();
    accounts.attach(&mut has, portion);
    let report = json!({"accuUsageReports": [{"refUmIds": "m", "volUsage": 100}]});
    accounts.report(&report, now);
    let mut shall = decision();
    accounts.attach(&mut shall, portion);
    assert_eq!(difference(&has, &shall), None, "the numbers are the same");
    forget_reported(&mut has, &report);
    assert_eq!(
        difference(&has, &shall).unwrap()["umDecs"]["m"]["volumeThreshold"],
        100
    );
}

#[test]
fn a_period_that_ends_makes_the_quota_whole() {
    let now = datetime!(2024-02-29 23:00 UTC);
    let mut accounts = Accounts::of_subscriber(&subscriber(), Some("01"), "internet", now);
    let later = datetime!(2024-03-01 00:10 UTC);
    let split = json!({"accuUsageReports": [{"refUmIds": "m", "volUsage": 3_000, "nextVolUsage": 70}]});
    accounts.report(&split, later);
    assert_eq!(accounts.all()[0].left().total, Some(9_930));
    assert_eq!(
        accounts.to_um_data()["month"]["resetTime"],
        "2024-04-01T00:00:00Z"
    );
    let restored = Accounts::from_json(&accounts.to_json());
    assert_eq!(restored, accounts);
    accounts.advance(datetime!(2024-06-15 00:00 UTC));
    assert_eq!(accounts.all()[0].left().total, Some(10_000));
    assert_eq!(
        accounts.to_um_data()["month"]["resetTime"],
        "2024-07-01T00:00:00Z"
    );
}

#[test]
fn a_limit_that_changes_leaves_used_what_was_used() {
    let now = datetime!(2024-02-10 00:00 UTC);
    let mut stored = Accounts::of_subscriber(&subscriber(), None, "internet", now);
    // More than is left, as two sessions can use together: all of it is counted.
    stored.report(
        &json!({"accuUsageReports": [{"refUmIds": "m", "volUsage": 5_000}]}),
        now,
    );
    assert_eq!(stored.get("month").unwrap().left().total, Some(0));
    assert_eq!(stored.get("month").unwrap().used().total, Some(5_000));
    let mut data = subscriber();
    data["umDataLimits"]["month"]["usageLimit"] = json!({"totalVolume": 12_500});
    let mut accounts = Accounts::of_subscriber(&data, None, "internet", now);
    accounts.resume(&Accounts::from_json(&stored.to_json()), now);
    let month = accounts.get("month").unwrap();
    assert_eq!(
        (month.left().total, month.used().total),
        (Some(2_500), Some(5_000))
    );
    assert!(stored.put(month.clone()) && !stored.put(month.clone()));
    assert_eq!(stored.only(&["month"]).all().len(), 1);
}

#[test]
fn a_session_whose_quota_is_used_up_is_decided_again_when_the_period_ends() {
    let now = datetime!(2024-02-10 00:00 UTC);
    let mut accounts = Accounts::of_subscriber(&subscriber(), Some("01"), "internet", now);
    accounts.report(
        &json!({"accuUsageReports": [{"refUmIds": "m", "volUsage": 4_000}]}),
        now,
    );
    let mut shall = decision();
    shall["umDecs"] = json!({"m": {"umId": "m"}});
    accounts.attach(&mut shall, None);
    assert_eq!(shall["revalidationTime"], "2024-03-01T00:00:00Z");
    assert_eq!(shall["policyCtrlReqTriggers"], json!(["US_RE", "RE_TIMEOUT"]));
    assert!(shall["umDecs"].get("m").is_none() && shall["umDecs"].get("video").is_some());
    let states: Vec<_> = accounts.states().collect();
    let month = states.iter().find(|(id, _)| *id == "month").unwrap();
    assert_eq!(month.1["exhausted"], true);
    assert_eq!(month.1["remaining"]["totalVolume"], 0);
}
