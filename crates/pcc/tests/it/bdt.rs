//! Transfer policies that requests for background data transfers are offered.

use pcc::bdt::{Model, Wanted};
use serde_json::{Value, json};

/// 1 December 2026 12:00 UTC, a Tuesday.
const NOW: i64 = 1_796_126_400;

fn model(windows: &Value, degraded: &Value) -> Model {
    serde_json::from_value(json!({"windows": windows, "degraded": degraded})).unwrap()
}

fn wanted(from: &str, to: &str, more: &Value) -> Wanted {
    let mut request = json!({"aspId": "asp", "numOfUes": 10, "volPerUe": {"totalVolume": 1_000_000},
        "desTimeInt": {"startTime": from, "stopTime": to}});
    for (name, value) in more.as_object().unwrap() {
        request[name] = value.clone();
    }
    Wanted::read(&request).unwrap()
}

/// Beginning and end of each offer.
fn offered(model: &Model, wanted: &Wanted) -> Vec<(String, String)> {
    let offers = model.offers(wanted, NOW).map(|offer| offer.policy(7));
    let text = |policy: &Value, name: &str| policy["recTimeInt"][name].as_str().unwrap().to_owned();
    offers
        .map(|policy| (text(&policy, "startTime"), text(&policy, "stopTime")))
        .collect()
}

fn pairs(expected: &[(&str, &str)]) -> Vec<(String, String)> {
    let each = expected.iter();
    each.map(|(from, to)| ((*from).to_owned(), (*to).to_owned()))
        .collect()
}

#[test]
fn occurrences_of_windows_lie_in_the_desired_one() {
    let night = json!({"name": "night", "from": "23:00", "to": "05:00", "zone": "Europe/Berlin", "ratingGroup": 10,
        "maxBitRateDl": "1 Gbps"});
    let noon =
        json!({"name": "noon", "from": "12:00", "to": "13:00", "days": ["saturday"], "ratingGroup": 20});
    let model = model(&json!([night, noon]), &json!([]));
    let wish = wanted("2026-12-03T00:00:00Z", "2026-12-05T12:30:00Z", &json!({}));
    assert_eq!(
        offered(&model, &wish),
        pairs(&[
            ("2026-12-03T00:00:00Z", "2026-12-03T04:00:00Z"),
            ("2026-12-03T22:00:00Z", "2026-12-04T04:00:00Z"),
            ("2026-12-04T22:00:00Z", "2026-12-05T04:00:00Z"),
            ("2026-12-05T12:00:00Z", "2026-12-05T12:30:00Z"),
        ])
    );
    let first = model.offers(&wish, NOW).next().unwrap().policy(7);
    assert_eq!(
        (
            &first["transPolicyId"],
            &first["ratingGroup"],
            &first["maxBitRateDl"]
        ),
        (&json!(7), &json!(10), &json!("1 Gbps"))
    );
    assert_eq!(first.get("maxBitRateUl"), None);
    // What is past is not offered, nor what is too short.
    let wish = wanted("2026-11-01T00:00:00Z", "2026-12-01T22:00:30Z", &json!({}));
    assert_eq!(offered(&model, &wish), []);
    // A wish of years is looked through for some weeks.
    let wish = wanted("2027-01-01T00:00:00Z", "2099-01-01T00:00:00Z", &json!({}));
    assert!((30..=40).contains(&offered(&model, &wish).len()));
}

#[test]
fn clocks_that_change_change_the_window() {
    let night =
        json!([{"name": "n", "from": "01:00", "to": "04:00", "zone": "Europe/Berlin", "ratingGroup": 1}]);
    let wish = wanted("2027-03-27T12:00:00Z", "2027-03-28T12:00:00Z", &json!({}));
    assert_eq!(
        offered(&model(&night, &json!([])), &wish),
        pairs(&[("2027-03-28T00:00:00Z", "2027-03-28T02:00:00Z")])
    );
}

#[test]
fn volume_area_and_dnn_decide_which_windows_fit() {
    let tai = |tac: &str| json!({"tais": [{"plmnId": {"mcc": "001", "mnc": "01"}, "tac": tac}]});
    let windows = json!([{"name": "a", "from": "01:00", "to": "02:00", "ratingGroup": 1, "maxBitRateUl": "1 Mbps",
        "maxBitRateDl": "3 Mbps", "dnns": ["iot"], "area": {"tais": ["001-01-0000a1"]}}]);
    let model = model(&windows, &json!([]));
    // 1 Mbit/s up and 3 Mbit/s down for an hour: 450 MB and 1.35 GB.
    for (more, fits) in [
        (json!({}), true),
        (json!({"numOfUes": 1_800}), true),
        (json!({"numOfUes": 1_801}), false),
        (json!({"volPerUe": {"uplinkVolume": 45_000_000}}), true),
        (json!({"volPerUe": {"uplinkVolume": 45_000_001}}), false),
        (json!({"volPerUe": {"downlinkVolume": 135_000_001}}), false),
        (json!({"volPerUe": {"duration": 600}}), true),
        (
            json!({"numOfUes": u64::MAX, "volPerUe": {"totalVolume": u64::MAX}}),
            false,
        ),
        (json!({"dnn": "IOT.mnc001.mcc001.gprs"}), true),
        (json!({"dnn": "internet"}), false),
        (json!({"dnn": null}), false),
        (json!({"nwAreaInfo": tai("0000A1")}), true),
        (json!({"nwAreaInfo": tai("0000a2")}), false),
        (json!({"nwAreaInfo": null}), false),
    ] {
        let mut request = json!({"dnn": "iot", "nwAreaInfo": tai("0000a1")});
        for (name, value) in more.as_object().unwrap() {
            request[name] = value.clone();
        }
        let wish = wanted("2026-12-03T00:00:00Z", "2026-12-04T00:00:00Z", &request);
        assert_eq!(offered(&model, &wish).len(), usize::from(fits), "{more}");
    }
}

#[test]
fn a_degraded_network_is_not_offered_and_affects_what_was() {
    let windows = json!([{"name": "a", "from": "01:00", "to": "02:00", "ratingGroup": 1}]);
    let degraded = json!([{"from": "2026-12-03T01:30:00Z", "to": "2026-12-03T03:00:00Z",
        "area": {"tais": ["001-01-0000a1"]}}]);
    let (before, after) = (model(&windows, &json!([])), model(&windows, &degraded));
    let wish = |tac: &str| {
        let area = json!({"nwAreaInfo": {"tais": [{"plmnId": {"mcc": "001", "mnc": "01"}, "tac": tac}]}});
        wanted("2026-12-03T00:00:00Z", "2026-12-05T00:00:00Z", &area)
    };
    let hit = wish("0000a1");
    let policies: Vec<Value> = before.offers(&hit, NOW).map(|offer| offer.policy(1)).collect();
    assert_eq!(policies.len(), 2);
    assert_eq!(
        offered(&after, &hit),
        pairs(&[("2026-12-04T01:00:00Z", "2026-12-04T02:00:00Z")])
    );
    assert_eq!(offered(&after, &wish("0000a2")).len(), 2);
    let affected =
        |wish: &Wanted, policy: &Value, now: i64| after.degradation_of(policy, wish, now).is_some();
    assert!(affected(&hit, &policies[0], NOW));
    assert!(!affected(&hit, &policies[1], NOW) && !affected(&wish("0000a2"), &policies[0], NOW));
    assert!(!affected(&hit, &policies[0], NOW + 10 * 86_400), "it is over");
}
