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

/// A day of 1,000 octets, a month of 10,000, and 500 s of use in a year.
fn day_and_month() -> Value {
    let limit = |usage: Value, period: &str| {
        json!({"limitId": "x", "usageLimit": usage, "startDate": "2024-01-01T00:00:00Z", "resetPeriod": {"period": period},
            "scopes": {"01": {"snssai": {"sst": 1}}}})
    };
    json!({"umDataLimits": {
        "day": limit(json!({"totalVolume": 1_000}), "DAILY"),
        "month": limit(json!({"totalVolume": 10_000}), "MONTHLY"),
        "year": limit(json!({"duration": 500}), "YEARLY"),
    }})
}

#[test]
fn limits_of_session_level_share_one_key_with_the_least_threshold() {
    let now = datetime!(2024-02-10 10:00 UTC);
    let mut accounts = Accounts::of_subscriber(&day_and_month(), Some("01"), "internet", now);
    let session = json!({"sessRules": {"default": {"sessRuleId": "default"}}});
    let shall = |accounts: &Accounts| {
        let mut shall = session.clone();
        accounts.attach(&mut shall, None);
        shall
    };
    let begun = shall(&accounts);
    assert_eq!(
        begun["umDecs"],
        json!({"day": {"umId": "day", "volumeThreshold": 1_000, "timeThreshold": 500,
            "monitoringTime": "2024-02-11T00:00:00Z", "nextVolThreshold": 1_000, "nextTimeThreshold": 500}})
    );
    assert_eq!(begun["sessRules"]["default"]["refUmData"], "day");

    // Each report counts for all of them, also for that which is used up.
    let mut reported = |volume: u64, seconds: u64| {
        let usage = json!({"refUmIds": "day", "volUsage": volume, "timeUsage": seconds});
        let ids = accounts.report(&json!({"accuUsageReports": [usage]}), now);
        assert_eq!(ids, ["day", "month", "year"]);
        accounts.clone()
    };
    let left = |accounts: &Accounts| {
        ["day", "month"].map(|id| accounts.get(id).and_then(|account| account.left().total))
    };
    let after = reported(1_000, 40);
    assert_eq!(left(&after), [Some(0), Some(9_000)]);
    let decided = shall(&after);
    assert_eq!(decided["umDecs"]["day"]["volumeThreshold"], 9_000);
    assert_eq!(decided["umDecs"]["day"]["timeThreshold"], 460);
    assert_eq!(decided["umDecs"]["day"]["monitoringTime"], "2024-03-01T00:00:00Z");
    assert_eq!(decided["umDecs"]["day"]["nextTimeThreshold"], 460);
    // What was used up returns with its period.
    assert_eq!(decided["revalidationTime"], "2024-02-11T00:00:00Z");
    let after = reported(8_700, 0);
    assert_eq!(left(&after), [Some(0), Some(300)]);
    let mut accounts = after;
    accounts.advance(datetime!(2024-02-11 00:00 UTC));
    let decided = shall(&accounts);
    assert_eq!(
        decided["umDecs"]["day"]["volumeThreshold"], 300,
        "the month has the least"
    );
    assert_eq!(decided["umDecs"]["day"]["nextVolThreshold"], 300);
}

#[test]
fn a_report_across_the_end_of_one_period_counts_for_the_other_as_a_whole() {
    let mut accounts = Accounts::of_subscriber(
        &day_and_month(),
        Some("01"),
        "internet",
        datetime!(2024-02-10 10:00 UTC),
    );
    let split = json!({"accuUsageReports": [{"refUmIds": "day", "volUsage": 400, "nextVolUsage": 70}]});
    accounts.report(&split, datetime!(2024-02-11 00:10 UTC));
    let left = ["day", "month"].map(|id| accounts.get(id).unwrap().left().total);
    assert_eq!(left, [Some(930), Some(9_530)]);
}

#[test]
fn limits_of_service_level_with_one_key_share_it() {
    let now = datetime!(2024-02-10 10:00 UTC);
    let mut data = day_and_month();
    for id in ["day", "month", "year"] {
        data["umDataLimits"][id]["umLevel"] = json!("SERVICE_LEVEL");
    }
    let keys = json!({"day": {"limitId": "day", "monkey": ["video"]}, "month": {"limitId": "month", "monkey": ["video"]}});
    data["smPolicySnssaiData"] =
        json!({"01": {"smPolicyDnnData": {"internet": {"refUmDataLimitIds": keys}}}});
    let mut accounts = Accounts::of_subscriber(&data, Some("01"), "internet", now);
    let mut shall = json!({"sessRules": {"a": {}}, "pccRules": {"v": {"refUmData": ["video"]}}});
    accounts.attach(&mut shall, None);
    assert_eq!(shall["umDecs"]["video"]["volumeThreshold"], 1_000);
    assert!(shall["sessRules"]["a"].get("refUmData").is_none());
    accounts.report(
        &json!({"accuUsageReports": [{"refUmIds": "video", "volUsage": 10}]}),
        now,
    );
    let left = ["day", "month"].map(|id| accounts.get(id).unwrap().left().total);
    assert_eq!(left, [Some(990), Some(9_990)]);
}

#[test]
fn months_that_begin_on_the_31st_end_on_the_last_day_of_short_ones_alone() {
    let mut data = day_and_month();
    for given in [Some("2024-01-31T12:00:00Z"), None] {
        let limit = data["umDataLimits"]["month"].as_object_mut().unwrap();
        match given {
            Some(start) => drop(limit.insert("startDate".to_owned(), start.into())),
            None => drop(limit.remove("startDate")),
        }
        let begun = datetime!(2024-01-31 12:00 UTC);
        let mut stored = Accounts::of_subscriber(&data, Some("01"), "internet", begun);
        for (now, end) in [
            (datetime!(2024-01-31 12:01 UTC), "2024-02-29T12:00:00Z"),
            (datetime!(2024-02-29 12:00 UTC), "2024-03-31T12:00:00Z"),
            (datetime!(2024-03-31 12:00 UTC), "2024-04-30T12:00:00Z"),
            (datetime!(2024-12-31 13:00 UTC), "2025-01-31T12:00:00Z"),
            (datetime!(2025-02-01 13:00 UTC), "2025-02-28T12:00:00Z"),
            (datetime!(2025-02-28 13:00 UTC), "2025-03-31T12:00:00Z"),
        ] {
            // As at each event: opened again, with what is stored.
            let mut accounts = Accounts::of_subscriber(&data, Some("01"), "internet", now);
            accounts.resume(&Accounts::from_json(&stored.to_json()), now);
            assert_eq!(
                accounts.to_um_data()["month"]["resetTime"],
                end,
                "{given:?} {now}"
            );
            stored = accounts;
        }
    }
}

#[test]
fn a_dnn_with_operator_identifier_has_the_limits_of_its_network() {
    let now = datetime!(2024-02-10 00:00 UTC);
    let full = "Internet.mnc001.mcc001.gprs";
    for (of_udr, of_session) in [
        ("internet", full),
        (full, "internet"),
        ("internet", "INTERNET"),
        (full, full),
    ] {
        let text = subscriber()
            .to_string()
            .replace("\"internet\"", &format!("\"{of_udr}\""));
        let data: Value = serde_json::from_str(&text).unwrap();
        let accounts = Accounts::of_subscriber(&data, Some("01"), of_session, now);
        let ids: Vec<&str> = accounts.all().iter().map(|account| account.id()).collect();
        assert_eq!(ids, ["month", "video"], "{of_udr} {of_session}");
    }
}
