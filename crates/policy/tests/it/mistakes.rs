//! Mistakes of projects: found at load, all at once, with what would be right.

use policy::{Limits, Project};

use crate::{compile, compile_within};

/// The messages of a project that does not compile.
fn said(text: &str) -> String {
    match compile(text) {
        Ok(_) => panic!("it compiles:\n{text}"),
        Err(error) => error.to_string(),
    }
}

#[test]
fn each_mistake_is_named_with_its_place_and_what_would_be_right() {
    for (text, parts) in [
        (
            "blocks: [{sett: {a: 1}}]",
            &["unknown block `sett`", "did you mean `set`?", "project.yaml:3"][..],
        ),
        (
            "blocks: [{if: true, thn: []}]",
            &["unknown key `thn`", "`then` is missing"],
        ),
        (
            "blocks: [{set: {a: $reqest.dnn}}]",
            &["no block sets the variable `$reqest`", "did you mean `request`?"],
        ),
        (
            "blocks: [{set: {request: 1}}]",
            &["`request` is a part of the input"],
        ),
        ("blocks: [{set: {a-b: 1}}]", &["cannot be the name of a variable"]),
        (
            "blocks: [{set: {a: {$eqq: [1, 2]}}}]",
            &["unknown operation `$eqq`", "did you mean `$eq`?"],
        ),
        (
            "blocks: [{set: {a: {$eq: [1]}}}]",
            &["`$eq` has 1 arguments", "{$eq: [a, b]}"],
        ),
        ("blocks: [{set: {a: {$eq: [1, 2], b: 1}}}]", &["`b` beside `$eq`"]),
        (
            "blocks: [{set: {a: $request.}}]",
            &["`$request.` is not a reference", "`$$`"],
        ),
        (
            "blocks: [{set: {a: $now.hours}}]",
            &["`$now` has no member `hours`", "did you mean `hour`?"],
        ),
        (
            "blocks: [{lookup: plan, as: r}]\ntables: {plans: {keys: {a: 1}, columns: [], rows: []}}",
            &["did you mean `plans`?"],
        ),
        (
            "blocks: [{call: x}]",
            &["no routine is called `x`", "the project defines none"],
        ),
        (
            "blocks: [{set: {a: {$in: [1, l]}}}]",
            &["no match list is called `l`"],
        ),
        (
            "blocks: [{set: {a: {$matches: [x, p]}}}]",
            &["no pattern is called `p`"],
        ),
        (
            "patterns: {p: '(a)'}\nblocks: [{set: {a: {$capture: [x, p, 2]}}}]",
            &["has no group 2", "to 1"],
        ),
        (
            "patterns: {p: '(a'}\nblocks: []",
            &["patterns.p", "unclosed group"],
        ),
        ("patterns: {p: '(?=a)'}\nblocks: []", &["look-around"]),
        ("scripts: {s: {expression: '1 +'}}\nblocks: []", &["scripts.s"]),
        (
            "scripts: {s: {expression: 'new Date()', statements: x}}\nblocks: []",
            &["has not one body"],
        ),
        (
            "scripts: {s: {parameters: [a], expression: a}}\nblocks: [{set: {x: {$script: s, with: {b: 1}}}}]",
            &["lacks the parameter `a`", "unknown key `b`"],
        ),
        ("blocks: [break]", &["`break` outside of a loop"]),
        (
            "blocks: [{amPolicy: {rfsp: 1}}]",
            &["unknown block `amPolicy`", "did you mean `smPolicy`?"],
        ),
        ("blocks: [{qosData: {5qi: 9}}]", &["`qosId` is missing"]),
        (
            "blocks: [{qosData: {qosId: q, 5qi: 256}}]",
            &["256 does not fit", "an integer from 0 to 255"],
        ),
        ("blocks: [{qosData: {qosId: q, maxbrUl: 10mbps}}]", &["10.5 Mbps"]),
        (
            "blocks: [{qosData: {qosId: q, arp: {priorityLevel: 1}}}]",
            &["`preemptCap` is missing"],
        ),
        (
            "blocks: [{pccRule: {pccRuleId: r, refQosData: [q2]}}, {qosData: {qosId: q1}}]",
            &["no block `qosData` has qosId `q2`", "expected one of q1"],
        ),
        (
            "blocks: [{triggers: [US_REE]}]",
            &["unknown value `US_REE`", "did you mean `US_RE`?"],
        ),
        ("blocks: [{reject: {status: 200, cause: X}}]", &["400 to 599"]),
        ("blocks: [{remove: {pccRule: x}}]", &["did you mean `pccRules`?"]),
        (
            "blocks: [{set: {a: {$time: {from: '25:00'}}}}]",
            &["{$time: {from:"],
        ),
        (
            "tables: {t: {keys: {a: 1}, columns: [b], rows: [[1]]}}\nblocks: []",
            &["a cell for each column"],
        ),
        (
            "tables: {t: {keys: {a: 1}, columns: [b], rows: [['a*', 1], [ab, 2]]}}\nblocks: []",
            &["no value reaches row 2", "above row 1"],
        ),
        ("lists: {l: [{a: 1}]}\nblocks: []", &["cannot be an entry"]),
        (
            "routines: {a: [{call: b}], b: [{call: a}]}\nblocks: [{call: a}]",
            &["the routine `a` calls itself", "`b`"],
        ),
        ("utcOffset: CET\nblocks: []", &["+01:00"]),
        ("blocks: []\nblocks: []", &["appears twice"]),
        ("blockz: []", &["unknown key `blockz`", "`blocks` is missing"]),
        ("blocks: {}", &["not a list of blocks"]),
        ("blocks: [", &["this is not YAML"]),
    ] {
        let said = said(text);
        for part in parts {
            assert!(said.contains(part), "`{part}` is missing for {text}:\n{said}");
        }
    }
}

#[test]
fn all_mistakes_of_all_files_are_reported_together() {
    let main = "name: x\nservice: sm\nblocks:\n  - call: a\n  - sett: {}\n";
    let other = "lists: {l: 1}\nnames: x\n";
    let error = Project::compile(
        &[("lists.yaml", other), ("project.yaml", main)],
        &Limits::default(),
    )
    .unwrap_err();
    let said = error.to_string();
    for part in [
        "no routine is called `a`",
        "project.yaml:5",
        "lists.yaml:1",
        "lists.yaml:2",
        "unknown key `names`",
    ] {
        assert!(said.contains(part), "{part} is missing:\n{said}");
    }
    let error = Project::compile(&[("lists.yaml", other)], &Limits::default()).unwrap_err();
    assert!(error.to_string().contains("no file project.yaml"));
    let twice = [
        (
            "project.yaml",
            "name: x\nservice: sm\nblocks: []\nlists: {l: [1]}",
        ),
        ("b.yaml", "lists: {l: [2]}"),
    ];
    let error = Project::compile(&twice, &Limits::default()).unwrap_err();
    assert!(error.to_string().contains("`l` is defined twice"));
}

#[test]
fn the_patterns_of_a_project_are_bounded_together() {
    let text = "patterns: {p: 'a[0-9]+', q: 'b[0-9]+'}\nblocks: []";
    assert!(compile_within(text, &Limits::default()).is_ok());
    let small = Limits {
        all_pattern_bytes: 100,
        ..Limits::default()
    };
    let error = compile_within(text, &small).map(drop).unwrap_err().to_string();
    assert!(error.contains("allPatternBytes"), "{error}");
}

#[test]
fn each_bound_of_a_project_is_a_limit_by_name() {
    let small = Limits {
        project_bytes: 2000,
        blocks: 11,
        depth: 8,
        table_rows: 1,
        list_entries: 2,
        pattern_bytes: 1000,
        patterns: 1,
        scripts: 1,
        script_bytes: 10,
        ..Limits::default()
    };
    let deep = |open: &str, close: &str| format!("{}1{}", open.repeat(12), close.repeat(12));
    for (text, limit) in [
        (format!("blocks: [] # {}", "x".repeat(2000)), "projectBytes"),
        (format!("blocks: [{}]", "stop,".repeat(12)), "`blocks`"),
        (format!("blocks: {}", deep("[{if: true, then: ", "}]")), "`depth`"),
        (
            format!("blocks: [set: {{x: {}}}]", deep("{$not: ", "}")),
            "`depth`",
        ),
        (
            "tables: {t: {keys: {a: 1}, columns: [], rows: [[1], [2]]}}\nblocks: []".to_owned(),
            "tableRows",
        ),
        ("lists: {l: [1, 2, 3]}\nblocks: []".to_owned(), "listEntries"),
        (
            "patterns: {p: '[a-z]{1,900}'}\nblocks: []".to_owned(),
            "patternBytes",
        ),
        ("patterns: {p: a, q: b}\nblocks: []".to_owned(), "`patterns`"),
        (
            "scripts: {a: {expression: '1'}, b: {expression: '1'}}\nblocks: []".to_owned(),
            "`scripts`",
        ),
        (
            "scripts: {a: {expression: '1 + 1 + 1 + 1'}}\nblocks: []".to_owned(),
            "scriptBytes",
        ),
    ] {
        let error = compile_within(&text, &small).map(drop).unwrap_err().to_string();
        assert!(error.contains(limit), "{limit} is missing for {text}:\n{error}");
    }
}
