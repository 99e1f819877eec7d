//! Each kind of block.

use serde_json::json;
use time::macros::datetime;

use crate::{compile, decide, decide_at, remembered};

#[test]
fn a_condition_takes_one_of_two_branches() {
    let project = |condition: &str| {
        format!(
            "blocks: [{{if: {condition}, then: [{{remember: {{x: 1}}}}], else: [{{remember: {{x: 2}}}}]}}]"
        )
    };
    assert_eq!(remembered(&project("$request.yes")), 1);
    assert_eq!(remembered(&project("$request.nothing")), 2);
    // Only the boolean holds: numbers and texts do not.
    assert_eq!(remembered(&project("$request.n")), 2);
    assert_eq!(decide("blocks: [{if: false, then: [stop]}]").unwrap(), json!({}));
}

#[test]
fn a_switch_takes_the_first_case_that_fits() {
    let text = "
blocks:
  - switch: $request.n
    cases:
      - is: '7'
        do: [{remember: {x: text}}]
      - in: [6, $request.n]
        do: [{remember: {x: number}}]
      - is: 7
        do: [{remember: {x: late}}]
    default: [{remember: {x: none}}]
";
    assert_eq!(remembered(text), "number");
    assert_eq!(
        remembered(
            &text
                .replace("$request.n\n", "$request.f\n")
                .replace("6, $request.n", "6")
        ),
        "none"
    );
}

#[test]
fn loops_turn_until_their_end_or_a_break() {
    let each = "
blocks:
  - each: $request.list
    as: item
    do:
      - if: {$eq: [$item, b]}
        then: [continue]
      - if: {$exists: $item.c}
        then: [break]
      - set: {seen: {$append: [$seen, $item]}}
  - remember: {x: $seen}
";
    assert_eq!(remembered(each), json!([3, {"c": null}, [1]]));
    assert_eq!(remembered(&each.replace("$item.c", "$item")), json!(null));
    let text = "blocks: [{while: {$lt: [{$first: [$i, 0]}, 5]}, do: [{set: {i: {$add: [{$first: [$i, 0]}, 2]}}}]}, {remember: {x: $i}}]";
    assert_eq!(remembered(text), 6);
    let text = "blocks: [{repeat: 3, do: [{set: {i: {$concat: [$i, a]}}}]}, {remember: {x: $i}}]";
    assert_eq!(remembered(text), "aaa");
    assert_eq!(
        remembered(&text.replace("repeat: 3", "repeat: $request.dnn")),
        json!(null)
    );
}

#[test]
fn a_routine_is_called_and_stop_ends_the_evaluation_within_it() {
    let text = "
routines:
  outer: [{remember: {x: 1}}, {call: inner}, {remember: {x: 2}}]
  inner: [stop]
blocks: [{call: outer}, {remember: {x: 3}}]
";
    assert_eq!(remembered(text), 1);
}

#[test]
fn variables_are_set_in_the_order_in_which_they_are_written() {
    let text = "blocks: [{set: {z: 1, b: {$add: [$z, 1]}, a: {$add: [$b, 1]}}}, {remember: {x: $a}}]";
    assert_eq!(remembered(text), 3);
}

#[test]
fn a_lookup_gives_the_first_row_or_the_otherwise_blocks() {
    let text = "
tables:
  t:
    keys: {dnn: $request.dnn, sst: $request.sliceInfo.sst, address: $request.ipv4Address, missing: $request.nothing}
    columns: [v]
    rows:
      - [internet, 2, '*', '*', wrong slice]
      - ['inter*', {from: 1, to: 3}, '10.*.3', ~, {5qi: 9}]
      - ['*', {in: [1, 2]}, '*', '*', late]
blocks:
  - {lookup: t, as: row, otherwise: [{remember: {x: none}}]}
  - if: $row
    then: []
  - if: {$exists: $row}
    then: [{remember: {x: $row.v.5qi}}]
";
    assert_eq!(remembered(text), 9);
    assert_eq!(
        remembered(&text.replace("as: row,", "as: row, with: {sst: 9},")),
        "none"
    );
}

#[test]
fn match_lists_have_texts_wildcards_numbers_and_networks() {
    let text = |value: &str| {
        format!(
            "lists: {{l: [exact, 'wild*', 5, 10.0.0.0/8, 2001:db8::/32]}}\nblocks: [{{remember: {{x: {{$in: [{value}, l]}}}}}}]"
        )
    };
    for (value, expected) in [
        ("exact", true),
        ("wilder", true),
        ("exac", false),
        ("5", true),
        ("'5'", false),
        ("$request.ipv4Address", true),
        ("11.0.0.1", false),
        ("2001:db8:1::/64", true),
        ("[a, b, wild]", true),
        ("[a, b]", false),
        ("$request.nothing", false),
        ("$request.sliceInfo", false),
    ] {
        assert_eq!(remembered(&text(value)), expected, "{value}");
    }
}

#[test]
fn patterns_match_and_capture() {
    let text = |expression: &str| {
        format!(
            "patterns: {{p: '^imsi-([0-9]{{3}})([0-9]{{2}})'}}\nblocks: [{{remember: {{x: {expression}}}}}]"
        )
    };
    assert_eq!(remembered(&text("{$matches: [$request.supi, p]}")), true);
    assert_eq!(remembered(&text("{$matches: [$request.dnn, p]}")), false);
    assert_eq!(remembered(&text("{$matches: [$request.n, p]}")), false);
    assert_eq!(remembered(&text("{$capture: [$request.supi, p, 1]}")), "001");
    assert_eq!(
        remembered(&text("{$capture: [$request.supi, p, 0]}")),
        "imsi-00101"
    );
    assert_eq!(remembered(&text("{$capture: [$request.dnn, p, 2]}")), json!(null));
}

#[test]
fn scripts_compute_from_named_values() {
    let text = "
scripts:
  half: {parameters: [n], expression: n / 2}
  pick: {parameters: [list, at], statements: 'if (at < 0) return null; return {item: list[at], of: list.length};'}
blocks:
  - remember: {x: [{$script: half, with: {n: $request.n}}, {$script: pick, with: {list: $request.list, at: 1}}]}
";
    assert_eq!(remembered(text), json!([3.5, {"item": "b", "of": 4}]));
}

#[test]
fn entries_are_those_of_the_standard() {
    let text = "
blocks:
  - pccRule: {pccRuleId: r1, precedence: {$add: [1, 2]}, refQosData: [q1], refCondData: c1, appId: $request.nothing}
  - pccRule: {pccRuleId: r1, precedence: 5, refTcData: [t1], refUmData: [u1], refChgData: [g1]}
  - sessionRule: {sessRuleId: s1, authSessAmbr: {uplink: 1 Gbps, downlink: {$bitRate: 2000000}}}
  - qosData: {qosId: q1, 5qi: 9, vendorSpecific-000001: {x: 1}}
  - {trafficControlData: {tcId: t1, flowStatus: ENABLED}}
  - {usageMonitoringData: {umId: u1, volumeThreshold: 5000000000}}
  - {chargingData: {chgId: g1, ratingGroup: 1}}
  - {conditionData: {condId: c1, activationTime: {$timeAfter: 60}}}
  - {smPolicy: {online: true, revalidationTime: $now.dateTime}}
  - {triggers: [US_RE, RAT_TY_CH, US_RE]}
  - {remove: {pccRules: old}}
  - pccRule: {$merge: [{pccRuleId: r2, precedence: 9}, {precedence: $request.n}]}
";
    assert_eq!(
        decide(text).unwrap(),
        json!({
            "pccRules": {
                "r1": {"pccRuleId": "r1", "precedence": 5, "refTcData": ["t1"], "refUmData": ["u1"], "refChgData": ["g1"]},
                "old": null,
                "r2": {"pccRuleId": "r2", "precedence": 7},
            },
            "sessRules": {"s1": {"sessRuleId": "s1", "authSessAmbr": {"uplink": "1 Gbps", "downlink": "2 Mbps"}}},
            "qosDecs": {"q1": {"qosId": "q1", "5qi": 9, "vendorSpecific-000001": {"x": 1}}},
            "traffContDecs": {"t1": {"tcId": "t1", "flowStatus": "ENABLED"}},
            "umDecs": {"u1": {"umId": "u1", "volumeThreshold": 5_000_000_000_u64}},
            "chgDecs": {"g1": {"chgId": "g1", "ratingGroup": 1}},
            "conds": {"c1": {"condId": "c1", "activationTime": "2026-01-05T12:01:00Z"}},
            "online": true,
            "revalidationTime": "2026-01-05T12:00:00Z",
            "policyCtrlReqTriggers": ["US_RE", "RAT_TY_CH"],
        })
    );
}

#[test]
fn access_and_ue_policies_have_their_own_blocks() {
    let project = |service: &str, blocks: &str| {
        let text = format!("{{name: t, service: {service}, blocks: {blocks}}}");
        let project = policy::Project::compile(&[("project.yaml", &text)], &policy::Limits::default());
        crate::decide_with(&project.unwrap_or_else(|error| panic!("{error}")), crate::NOON).unwrap()
    };
    let am = project(
        "am",
        "[{amPolicy: {rfsp: 7, servAreaRes: {restrictionType: ALLOWED_AREAS}}}, {triggers: [LOC_CH]}]",
    );
    let expected =
        json!({"rfsp": 7, "servAreaRes": {"restrictionType": "ALLOWED_AREAS"}, "triggers": ["LOC_CH"]});
    assert_eq!(am, expected);
    let rule = "{relatPrecedence: 1, trafficDesc: {dnns: [ims]}, routeSelParamSets: [{dnn: ims, precedence: 1, snssai: {sst: 1}}]}";
    let ue = project(
        "ue",
        &format!("[{{urspRule: {rule}}}, {{triggers: [UE_POLICY]}}]"),
    );
    assert_eq!(ue["urspRules"][0]["routeSelParamSets"][0]["dnn"], "ims");
    assert_eq!(ue["triggers"], json!(["UE_POLICY"]));
}

#[test]
fn a_rejection_ends_the_evaluation() {
    let text = "blocks: [{remember: {x: 1}}, {reject: {cause: {$concat: [A, _B]}, status: 400}}, {remember: {x: 2}}]";
    let decision = decide(text).unwrap();
    assert_eq!(decision["rejection"], json!({"status": 400, "cause": "A_B"}));
    assert_eq!(decision["state"]["x"], 1);
}

#[test]
fn a_computed_value_that_does_not_fit_its_type_is_a_fault() {
    for (block, part) in [
        (
            "qosData: {qosId: q, 5qi: $request.dnn}",
            "`5qi` is \"internet\"; expected an integer from 0 to 255",
        ),
        (
            "qosData: {qosId: q, 5qi: {$add: [$request.n, 300]}}",
            "`5qi` is 307",
        ),
        (
            "qosData: {qosId: q, maxbrUl: $request.n}",
            "expected a bit rate such as",
        ),
        ("qosData: {qosId: $request.nothing}", "`qosId` is null"),
        ("sessionRule: $request.sliceInfo", "`sessRuleId` is null"),
        ("triggers: [$request.n]", "a trigger is a number"),
    ] {
        let fault = decide(&format!("blocks: [{{block: here, {block}}}]")).unwrap_err();
        assert_eq!(
            (fault.kind, fault.block.as_str()),
            (policy::FaultKind::Value, "here")
        );
        assert!(fault.what.contains(part), "{}", fault.what);
    }
}

#[test]
fn time_is_that_of_the_project() {
    let night =
        "utcOffset: '+01:00'\nblocks: [{remember: {x: {$time: {from: '22:00', to: '06:00', days: [mon]}}}}]";
    for (now, expected) in [
        (datetime!(2026-01-05 20:59 UTC), false),
        (datetime!(2026-01-05 21:00 UTC), true),
        // Tuesday morning belongs to Monday's night, Monday morning to Sunday's.
        (datetime!(2026-01-06 04:59 UTC), true),
        (datetime!(2026-01-06 05:00 UTC), false),
        (datetime!(2026-01-05 03:00 UTC), false),
    ] {
        assert_eq!(decide_at(night, now).unwrap()["state"]["x"], expected, "{now}");
    }
    let clock = "utcOffset: '-02:30'\nblocks: [{remember: {x: [$now.date, $now.weekday, $now.hour, $now.minute, $now.minuteOfDay, $now.epochSeconds]}}]";
    assert_eq!(
        decide_at(clock, datetime!(2026-01-05 01:00 UTC)).unwrap()["state"]["x"],
        json!(["2026-01-04", "sun", 22, 30, 1350, 1_767_574_800])
    );
}

#[test]
fn times_of_day_that_were_read_say_when_the_decision_may_be_another_one() {
    for (expression, value, next) in [
        (
            "{$time: {from: '22:00', to: '06:00'}}",
            json!(false),
            Some(datetime!(2026-01-05 22:00 +1)),
        ),
        (
            "{$time: {from: '08:00', to: '13:30'}}",
            json!(true),
            Some(datetime!(2026-01-05 13:30 +1)),
        ),
        (
            "{$time: {from: '06:00', to: '08:00'}}",
            json!(false),
            Some(datetime!(2026-01-06 06:00 +1)),
        ),
        // A day, and always.
        ("{$time: {from: '22:00', to: '22:00'}}", json!(true), None),
        (
            "{$time: {from: '22:00', to: '22:00', days: [mon]}}",
            json!(false),
            Some(datetime!(2026-01-05 22:00 +1)),
        ),
        (
            "{$time: {from: '22:00', to: '22:00', days: [sun]}}",
            json!(true),
            Some(datetime!(2026-01-05 22:00 +1)),
        ),
        (
            "{$time: {days: [mon]}}",
            json!(true),
            Some(datetime!(2026-01-06 0:00 +1)),
        ),
        ("{$time: {}}", json!(true), None),
        ("$now.hour", json!(13), Some(datetime!(2026-01-05 14:00 +1))),
        ("$now.weekday", json!("mon"), Some(datetime!(2026-01-06 0:00 +1))),
        ("$now.minute", json!(0), None),
        ("{$if: [true, 1, {$time: {from: '22:00'}}]}", json!(1), None),
    ] {
        let text = format!("utcOffset: '+01:00'\nblocks: [{{remember: {{x: {expression}}}}}]");
        let project = compile(&text).unwrap_or_else(|error| panic!("{text}\n{error}"));
        let request = json!({});
        let mut scratch = policy::Scratch::default();
        let input = policy::Input::new("create", &request);
        let decision = project.decide(&mut scratch, &input, crate::NOON, None).unwrap();
        assert_eq!(decision.state()[0].1.to_json(), value, "{expression}");
        assert_eq!(decision.next_change(), next, "{expression}");
    }
}

#[test]
fn a_project_has_the_summer_time_of_its_zone() {
    let night = "timeZone: Europe/Berlin\nblocks: [{remember: {x: {$time: {from: '22:00', to: '06:00'}}}}]";
    for (now, expected) in [
        (datetime!(2026-01-05 20:59 UTC), false),
        (datetime!(2026-01-05 21:00 UTC), true),
        (datetime!(2026-07-05 19:59 UTC), false),
        (datetime!(2026-07-05 20:00 UTC), true),
        (datetime!(2026-07-06 03:59 UTC), true),
        (datetime!(2026-07-06 04:00 UTC), false),
    ] {
        assert_eq!(decide_at(night, now).unwrap()["state"]["x"], expected, "{now}");
    }
    for wrong in [
        "timeZone: Europe/Atlantis",
        "timeZone: 7",
        "timeZone: Europe/Berlin\nutcOffset: '+01:00'",
    ] {
        assert!(compile(&format!("{wrong}\nblocks: []")).is_err(), "{wrong}");
    }
}
