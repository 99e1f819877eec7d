//! Traces: which block decided what from which datum, and nothing else changes.

use policy::{Input, Limits, Scratch, Trace};
use serde_json::json;

use crate::{NOON, compile, compile_within};

const PROJECT: &str = "
tables: {plans: {keys: {dnn: $request.dnn}, columns: [uplink], rows: [[internet, 1 Gbps]]}}
blocks:
  - {block: plan, lookup: plans, as: row}
  - block: gold
    if: {$eq: [$subscriber.category, gold]}
    then:
      - block: ambr
        sessionRule: {sessRuleId: s, authSessAmbr: {uplink: $row.uplink, downlink: 1 Gbps}}
";

#[test]
fn a_trace_names_blocks_data_and_decisions() {
    let project = compile(PROJECT).unwrap();
    let (request, subscriber) = (json!({"dnn": "internet"}), json!({"category": "gold"}));
    let input = Input {
        subscriber: &subscriber,
        ..Input::new("create", &request)
    };
    let (mut scratch, mut trace) = (Scratch::default(), Trace::new());
    let plain = project
        .decide(&mut scratch, &input, NOON, None)
        .unwrap()
        .to_json();
    let traced = project
        .decide(&mut scratch, &input, NOON, Some(&mut trace))
        .unwrap()
        .to_json();
    assert_eq!(plain, traced);
    let json = serde_json::to_value(&trace).unwrap();
    assert_eq!(
        json["events"],
        json!([
            {"block": "plan", "kind": "lookup", "level": 0, "outcome": "row 1 of plans",
             "reads": [{"datum": "$request.dnn", "value": "\"internet\""}]},
            {"block": "gold", "kind": "if", "level": 0, "outcome": "true",
             "reads": [{"datum": "$subscriber.category", "value": "\"gold\""}]},
            {"block": "ambr", "kind": "sessionRule", "level": 1, "decided": "sessRules.s",
             "outcome": "{\"sessRuleId\":\"s\",\"authSessAmbr\":{\"uplink\":\"1 Gbps\",\"downlink\":\"1 Gbps\"}}",
             "reads": [{"datum": "$row", "value": "{\"uplink\":\"1 Gbps\"}"}]},
        ])
    );
    assert_eq!(
        trace
            .decided()
            .map(|event| event.block.as_str())
            .collect::<Vec<_>>(),
        ["ambr"]
    );
    assert!(
        trace
            .to_string()
            .contains("if gold: true\n    $subscriber.category = \"gold\"\n")
    );
}

#[test]
fn a_trace_is_bounded() {
    let limits = Limits {
        trace_events: 10,
        ..Limits::default()
    };
    let text = "blocks: [{repeat: 100, do: [{set: {x: {$concat: [$x, aaaaaaaaaa]}}}]}]";
    let project = compile_within(text, &limits).unwrap();
    let request = json!({});
    let input = Input::new("create", &request);
    let mut trace = Trace::new();
    project
        .decide(&mut Scratch::default(), &input, NOON, Some(&mut trace))
        .unwrap();
    assert_eq!((trace.events.len(), trace.dropped), (10, 91));
    let longest = trace
        .events
        .iter()
        .flat_map(|event| &event.reads)
        .map(|read| read.value.len())
        .max();
    assert!(longest.is_some_and(|longest| longest < 200));
}

#[test]
fn a_trace_says_what_ran_a_script() {
    let project = compile(
        "
scripts:
  simple: {parameters: [a], expression: a + 1}
  other: {parameters: [a], expression: '[...a].length'}
blocks:
  - set: {x: {$script: simple, with: {a: $request.number}}}
  - set: {y: {$script: simple, with: {a: $request.list}}}
  - set: {z: {$script: other, with: {a: $request.list}}}
",
    )
    .unwrap();
    let request = json!({"number": 1, "list": [2, 3]});
    let input = Input::new("create", &request);
    let mut trace = Trace::new();
    project
        .decide(&mut Scratch::default(), &input, NOON, Some(&mut trace))
        .unwrap();
    let text = trace.to_string();
    // The text of a list is QuickJS's.
    for line in [
        "script simple, natively = 2\n",
        "script simple, by QuickJS = \"2,31\"\n",
        "script other, by QuickJS = 2\n",
    ] {
        assert!(text.contains(line), "{line} in {text}");
    }
}
