//! Projects that try to take all time or memory: refused at load, or stopped within their budget.

use std::fmt::Write as _;

use policy::{FaultKind, Input, Limits, Project, Scratch};
use serde_json::json;

use crate::{NOON, compile, decide, decide_with};

/// The class of fault of a project.
fn stopped(text: &str) -> FaultKind {
    match decide(text) {
        Ok(decision) => panic!("it decides {decision}:\n{text}"),
        Err(fault) => fault.kind,
    }
}

#[test]
fn an_endless_loop_is_stopped() {
    assert_eq!(stopped("blocks: [{while: true, do: []}]"), FaultKind::LoopTurns);
    let nested = "blocks: [{repeat: 900, do: [{repeat: 900, do: [{set: {x: 1}}]}]}]";
    assert_eq!(stopped(nested), FaultKind::Steps);
    assert_eq!(stopped("blocks: [{repeat: 1e308, do: []}]"), FaultKind::LoopTurns);
}

#[test]
fn calls_that_multiply_are_stopped() {
    // Each routine calls the next one ten times: 10^12 calls.
    let mut text = "routines:\n".to_owned();
    for number in 0..12 {
        let _ = writeln!(
            text,
            "  r{number}: [{}]",
            format!("{{call: r{}}},", number + 1).repeat(10)
        );
    }
    text += "  r12: []\nblocks: [{call: r0}]\n";
    assert_eq!(stopped(&text), FaultKind::Steps);
    let mut chain = "routines:\n".to_owned();
    for number in 0..500 {
        let _ = writeln!(chain, "  r{number}: [{{call: r{}}}]", number + 1);
    }
    chain += "  r500: []\nblocks: [{call: r0}]\n";
    assert_eq!(stopped(&chain), FaultKind::Depth);
}

#[test]
fn a_value_that_grows_is_stopped() {
    for (text, kind) in [
        (
            "blocks: [{set: {x: abc}}, {repeat: 500, do: [{set: {x: {$concat: [$x, $x]}}}]}]",
            FaultKind::Memory,
        ),
        (
            "blocks: [{repeat: 500, do: [{set: {x: [$x]}}]}]",
            FaultKind::Depth,
        ),
        (
            "blocks: [{repeat: 500, do: [{set: {x: {a: $x}}}]}]",
            FaultKind::Depth,
        ),
        (
            "blocks: [{set: {x: [1]}}, {repeat: 40, do: [{set: {x: [$x, $x]}}]}, {set: {y: {$stringify: $x}}}]",
            FaultKind::Memory,
        ),
        (
            "blocks: [{set: {x: [1]}}, {repeat: 40, do: [{set: {x: [$x, $x]}}]}, {remember: {y: $x}}]",
            FaultKind::Output,
        ),
        (
            "blocks: [{set: {x: [1], y: [1]}}, {repeat: 40, do: [{set: {x: [$x, $x], y: [$y, $y]}}]}, {if: {$eq: [$x, $y]}, then: []}]",
            FaultKind::Memory,
        ),
        (
            "blocks: [{set: {x: [1]}}, {repeat: 900, do: [{set: {x: {$append: [$x, 1, 2, 3, 4, 5, 6, 7, 8, 9]}}}]}]",
            FaultKind::Memory,
        ),
        (
            "blocks: [{repeat: 900, do: [{set: {x: {$merge: [$x, {'a': {'b': $x}}]}}}]}]",
            FaultKind::Depth,
        ),
    ] {
        assert_eq!(stopped(text), kind, "{text}");
    }
}

#[test]
fn a_decision_that_grows_is_stopped() {
    let many = "blocks: [{repeat: 500, do: [{set: {i: {$add: [{$first: [$i, 0]}, 1]}}}, {pccRule: {pccRuleId: {$text: $i}}}]}]";
    assert_eq!(stopped(many), FaultKind::Output);
    let large = "blocks: [{set: {x: aaaaaaaa}}, {repeat: 13, do: [{set: {x: {$concat: [$x, $x]}}}]}, \
                 {repeat: 9, do: [{pccRule: {pccRuleId: a, appId: $x}}]}]";
    assert_eq!(stopped(large), FaultKind::Output);
}

#[test]
fn a_hostile_script_is_stopped_and_the_next_evaluation_works() {
    let text = "
scripts:
  endless: {statements: 'for (;;) {}'}
  memory: {statements: \"let s = 'x'; for (;;) s += s;\"}
  stack: {statements: 'function f() { return f() + 1; } return f();'}
  wide: {statements: \"return 'x'.repeat(100000);\"}
  deep: {statements: 'let o = null; for (let i = 0; i < 1000; i++) o = [o]; return o;'}
blocks:
  - if: {$exists: $request.run}
    then: [{remember: {x: NAME}}]
  - remember: {x: {$script: endless}}
";
    for (script, kinds) in [
        ("endless", &[FaultKind::ScriptSteps][..]),
        ("memory", &[FaultKind::Script, FaultKind::ScriptSteps]),
        ("stack", &[FaultKind::Script]),
        ("deep", &[FaultKind::Script]),
    ] {
        let text = text.replace("x: {$script: endless}", &format!("x: {{$script: {script}}}"));
        let text = text.replace("NAME", "1");
        let project = compile(&text.replace(
            "- remember",
            "- if: {$not: {$exists: $request.good}}\n    then: []\n  - remember",
        ));
        let project = project.unwrap_or_else(|error| panic!("{error}"));
        for _ in 0..3 {
            let fault = decide_with(&project, NOON).unwrap_err();
            assert!(kinds.contains(&fault.kind), "{script}: {fault}");
        }
    }
    let good = compile("scripts: {a: {expression: '6 * 7'}, b: {statements: 'for (;;) {}'}}\nblocks: [{if: $request.bad, then: [{set: {x: {$script: b}}}]}, {remember: {x: {$script: a}}}]").unwrap();
    let mut scratch = Scratch::default();
    for bad in [true, false, true, false] {
        let request = json!({"bad": bad});
        let input = Input::new("create", &request);
        let outcome = good
            .decide(&mut scratch, &input, NOON, None)
            .map(|decision| decision.state()[0].1.to_json());
        match bad {
            true => assert_eq!(outcome.unwrap_err().kind, FaultKind::ScriptSteps),
            false => assert_eq!(outcome.unwrap(), 42),
        }
    }
}

#[test]
fn a_hostile_expression_takes_linear_time() {
    let text = "patterns: {p: '^(a|a)*$', q: '(a*)*b'}\nblocks: [{remember: {x: [{$matches: [$request.a, p]}, {$matches: [$request.a, q]}]}}]";
    let project = compile(text).unwrap();
    let request = json!({"a": "a".repeat(50_000)});
    let input = Input::new("create", &request);
    let mut scratch = Scratch::default();
    let decision = project.decide(&mut scratch, &input, NOON, None).unwrap();
    assert_eq!(decision.state()[0].1.to_json(), json!([true, false]));
}

#[test]
fn documents_that_nest_deeply_or_are_wide_do_no_harm() {
    assert_eq!(
        stopped(&format!(
            "blocks: [{{remember: {{x: {{$parse: '{}{}'}}}}}}]",
            "[".repeat(100),
            "]".repeat(100)
        )),
        FaultKind::Depth
    );
    let absurd = format!(
        "blocks: [{{remember: {{x: {{$parse: '{}'}}}}}}]",
        "[".repeat(100_000)
    );
    assert!(decide(&absurd).is_ok());
    let mut request = json!(1);
    for _ in 0..120 {
        request = json!([request]);
    }
    let request = json!({"deep": request, "wide": vec![1; 100_000]});
    let text = "
scripts: {s: {parameters: [a], expression: a}}
blocks:
  - if: {$eq: [$request.deep, $request.deep]}
    then: [{set: {x: {$merge: [{a: $request.deep}, {a: {b: $request.deep}}]}}}]
  - set: {y: {$script: s, with: {a: $request.deep}}}
";
    let project = compile(text).unwrap();
    let mut scratch = Scratch::default();
    let input = Input::new("create", &request);
    assert_eq!(
        project.decide(&mut scratch, &input, NOON, None).unwrap_err().kind,
        FaultKind::Script
    );
    let project = compile(&text.replace("with: {a: $request.deep}", "with: {a: $request.wide}")).unwrap();
    assert!(project.decide(&mut scratch, &input, NOON, None).is_err());
    let each = compile("blocks: [{each: $request.wide, as: i, do: []}]").unwrap();
    assert!(each.decide(&mut scratch, &input, NOON, None).is_err());
}

#[test]
fn a_project_of_a_million_blocks_or_levels_is_refused() {
    let limits = Limits {
        project_bytes: 64 << 20,
        ..Limits::default()
    };
    for blocks in [
        "stop,".repeat(1_000_000),
        format!("{}{}", "{if: true, then: [".repeat(100_000), "]}".repeat(100_000)),
    ] {
        let text = format!("name: x\nservice: sm\nblocks: [{blocks}]");
        assert!(Project::compile(&[("project.yaml", &text)], &limits).is_err());
    }
    // Aliases that stand for 10^9 blocks.
    let mut text = "name: x\nservice: sm\nlists:\n  l0: &l0 [1, 2, 3, 4, 5, 6, 7, 8, 9, 10]\n".to_owned();
    for number in 1..10 {
        let _ = writeln!(
            text,
            "  l{number}: &l{number} [{}]",
            format!("*l{}, ", number - 1).repeat(10)
        );
    }
    text += "blocks: []\n";
    assert!(Project::compile(&[("project.yaml", &text)], &limits).is_err());
}

#[test]
fn comparisons_take_steps_by_what_they_look_at() {
    let wildcards = |count: usize| -> String {
        let wildcards: Vec<String> = (0..count).map(|number| format!("\"*a{number:05}*z\"")).collect();
        wildcards.join(", ")
    };
    let list = format!("lists:\n  many: [{}]\n", wildcards(20_000));
    let rows: Vec<String> = (0..5_000)
        .map(|number| format!("[\"*a{number:05}*z\", x]"))
        .collect();
    let table = format!(
        "tables:\n  many: {{keys: {{dnn: $request.dnn}}, columns: [v], rows: [{}]}}\n",
        rows.join(", ")
    );
    let numbers: Vec<String> = (0..50_000).map(|number| number.to_string()).collect();
    let numbers = format!("lists:\n  many: [{}]\n", numbers.join(", "));
    let long = json!({"dnn": "a00000".repeat(10_000), "dnns": vec!["a0000".repeat(10); 1_000], "numbers": vec![-1; 10_000]});
    let short = json!({"dnn": "internet", "dnns": ["internet", "ims"], "numbers": [-1]});
    for (text, is_stopped) in [
        (
            format!("{list}blocks: [{{if: {{$in: [$request.dnn, many]}}, then: []}}]"),
            true,
        ),
        (
            format!("{list}blocks: [{{if: {{$in: [$request.dnns, many]}}, then: []}}]"),
            true,
        ),
        (
            format!("{numbers}blocks: [{{if: {{$in: [$request.numbers, many]}}, then: []}}]"),
            true,
        ),
        (format!("{table}blocks: [{{lookup: many, as: row}}]"), true),
        (
            "blocks: [{if: {$wildcard: [$request.dnn, \"*a00000a*b\"]}, then: []}]".to_owned(),
            false,
        ),
    ] {
        let project = compile(&text)
            .unwrap_or_else(|error| panic!("{}\n{error}", &text[text.len().saturating_sub(90)..]));
        let mut scratch = Scratch::default();
        let input = Input::new("create", &long);
        let decided = project.decide(&mut scratch, &input, NOON, None).map(|_| ());
        let what = &text[text.len().saturating_sub(90)..];
        match is_stopped {
            true => assert_eq!(decided.unwrap_err().kind, FaultKind::Steps, "{what}"),
            false => assert!(decided.is_ok(), "{what}"),
        }
        // What requests usually have costs little, whatever the number of entries.
        let input = Input::new("create", &short);
        assert!(project.decide(&mut scratch, &input, NOON, None).is_ok(), "{what}");
    }
}
