//! State variables that all associations of a subscriber share.

use policy::testing::Case;
use policy::{Input, Limits, Scratch, Trace};
use serde_json::json;

use crate::{NOON, compile, compile_within};

const PROJECT: &str = "
blocks:
  - block: seen
    if: {$eq: [$subscriberState.roaming, true]}
    then:
      - block: count
        rememberSubscriber: {count: {$add: [{$first: [$subscriberState.count, 0]}, 1]}, roaming: null}
      - remember: {own: 1}
";

#[test]
fn a_project_reads_and_sets_variables_of_the_subscriber() {
    let project = compile(PROJECT).unwrap();
    let (request, state) = (json!({}), json!({"roaming": true, "count": 7}));
    let input = Input {
        subscriber_state: &state,
        ..Input::new("create", &request)
    };
    let (mut scratch, mut trace) = (Scratch::default(), Trace::new());
    let decision = project.decide(&mut scratch, &input, NOON, Some(&mut trace));
    let decision = decision.unwrap();
    let set = decision.subscriber_state().iter();
    let set: Vec<_> = set.map(|(name, value)| (*name, value.to_json())).collect();
    assert_eq!(set, [("count", json!(8)), ("roaming", json!(null))]);
    // They belong neither to the association nor to the decision.
    assert_eq!(decision.state().len(), 1);
    assert_eq!(decision.to_json(), json!({}));
    let text = trace.to_string();
    for part in [
        "$subscriberState.roaming = true",
        "rememberSubscriber count: null",
    ] {
        assert!(text.contains(part), "{part} is missing:\n{text}");
    }
    let decided: Vec<_> = trace
        .decided()
        .filter_map(|event| event.decided.as_deref())
        .collect();
    assert_eq!(decided, ["subscriberState.roaming", "state.own"]);
}

#[test]
fn a_project_says_whether_it_reads_or_sets_them() {
    for (text, reads, writes) in [
        ("blocks: [{remember: {x: $state.x}}]", false, false),
        ("blocks: [{set: {x: subscriberState}}]", false, false),
        ("blocks: [{set: {x: $subscriberState}}]", true, false),
        (
            "blocks: [{if: {$exists: '$subscriberState[$request.dnn]'}, then: []}]",
            true,
            false,
        ),
        ("blocks: [{rememberSubscriber: {x: 1}}]", false, true),
        (
            "blocks: []\ntables: {t: {keys: {a: $subscriberState.a}, columns: [], rows: []}}",
            true,
            false,
        ),
        (
            "blocks: []\nroutines: {r: [{each: $request.list, as: i, do: [{rememberSubscriber: {x: $i}}]}]}",
            false,
            true,
        ),
    ] {
        let project = compile(text).unwrap_or_else(|error| panic!("{text}\n{error}"));
        let found = (
            project.reads_subscriber_state(),
            project.writes_subscriber_state(),
        );
        assert_eq!(found, (reads, writes), "{text}");
    }
}

#[test]
fn a_case_has_and_expects_them() {
    let project = compile(PROJECT).unwrap();
    let run = |case: &str| {
        let cases = Case::parse(case, "case.yaml").unwrap_or_else(|error| panic!("{error}"));
        cases[0].run(&project, &mut Scratch::default())
    };
    let case = "subscriberState: {roaming: true}\nexpect: {}\nexpectState: {own: 1}\nexpectSubscriberState: ";
    let right = run(&format!("{case}{{count: 1, roaming: null}}"));
    assert!(right.passed(), "{right}");
    let wrong = run(&format!("{case}{{count: 2, roaming: null}}"));
    assert_eq!(wrong.differences[0].path, "expectSubscriberState.count");
    let missing = run("subscriberState: {roaming: true}\nexpect: {}\nexpectState: {own: 1}");
    assert_eq!(missing.differences[0].path, "expectSubscriberState");
}

#[test]
fn their_number_and_size_in_a_decision_are_bounded() {
    let limits = Limits {
        output_entries: 2,
        output_bytes: 100,
        ..Limits::default()
    };
    let request = json!({"long": "x".repeat(200)});
    let input = Input::new("create", &request);
    for block in ["{a: 1, b: 2, c: 3}", "{a: $request.long}"] {
        let text = format!("blocks: [{{rememberSubscriber: {block}}}]");
        let project = compile_within(&text, &limits).unwrap();
        let mut scratch = Scratch::default();
        let decided = project.decide(&mut scratch, &input, NOON, None);
        assert!(decided.is_err(), "{block}");
    }
}

#[test]
fn their_names_are_not_those_of_variables_of_an_evaluation() {
    for (text, part) in [
        (
            "blocks: [{set: {subscriberState: 1}}]",
            "`subscriberState` is a part of the input",
        ),
        (
            "blocks: [{rememberSubscribr: {x: 1}}]",
            "did you mean `rememberSubscriber`?",
        ),
        (
            "blocks: [{set: {x: $subscriberStat}}]",
            "did you mean `subscriberState`?",
        ),
        ("blocks: [{rememberSubscriber: x}]", "`name: expression` lines"),
    ] {
        let Err(error) = compile(text) else {
            panic!("{text}")
        };
        assert!(error.to_string().contains(part), "{error}");
    }
}
