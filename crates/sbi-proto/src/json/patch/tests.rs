use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;

const AMPLE: Limits = Limits {
    operations: 1_000,
    size: 512 * 1024,
    work: 16 * 1024 * 1024,
};

fn within(text: &str, patch: &str, limits: &Limits) -> Result<String, PatchFault> {
    let operations: Vec<Operation<'_>> = serde_json::from_str(patch).unwrap();
    apply(text, &operations, limits)
}

fn patched(text: &str, patch: &str) -> Result<String, PatchFault> {
    within(text, patch, &AMPLE)
}

#[test]
fn what_a_patch_does_not_touch_stays_as_it_was() {
    let text = "{\"load\":  10 ,\n \"x\":1.0e2, \"l\":[ 1,2 ]}";
    assert_eq!(
        patched(text, r#"[{"op":"replace","path":"/load","value":55}]"#).unwrap(),
        "{\"load\":  55 ,\n \"x\":1.0e2, \"l\":[ 1,2 ]}"
    );
    assert_eq!(
        patched(
            text,
            r#"[{"op":"add","path":"/l/1","value":{"y":1.00}},{"op":"add","path":"/l/-","value":null}]"#
        )
        .unwrap(),
        "{\"load\":  10 ,\n \"x\":1.0e2, \"l\":[ 1,{\"y\":1.00},2,null ]}"
    );
}

/// Every operation, judged by an implementation that works on trees.
#[test]
fn agrees_with_a_patch_on_trees() {
    let text = r#"{"a":[1,2,3],"o":{"p":{"q":1},"r~/s":true},"e":[],"f":{}}"#;
    for patch in [
        r#"[{"op":"remove","path":"/a/0"}]"#,
        r#"[{"op":"remove","path":"/a/1"}]"#,
        r#"[{"op":"remove","path":"/a/2"}]"#,
        r#"[{"op":"remove","path":"/a"}]"#,
        r#"[{"op":"remove","path":"/f"}]"#,
        r#"[{"op":"remove","path":"/o/r~0~1s"}]"#,
        r#"[{"op":"add","path":"/e/-","value":[]},{"op":"add","path":"/e/0","value":7},{"op":"remove","path":"/e/0"},{"op":"remove","path":"/e/0"}]"#,
        r#"[{"op":"add","path":"/f/new","value":"v"},{"op":"add","path":"/f/new","value":"w"},{"op":"add","path":"/f/z\"","value":0}]"#,
        r#"[{"op":"copy","from":"/o","path":"/a/3"}]"#,
        r#"[{"op":"move","from":"/o/p","path":"/a/0"}]"#,
        r#"[{"op":"move","from":"/a/0","path":"/a/2"}]"#,
        r#"[{"op":"replace","path":"","value":{"x":[]}}]"#,
        r#"[{"op":"test","path":"/o/p","value":{"q":1}},{"op":"replace","path":"/o/p/q","value":[2]}]"#,
        r#"[{"op":"move","from":"/o/p","path":"/o/p"}]"#,
    ] {
        let ours: serde_json::Value = serde_json::from_str(&patched(text, patch).unwrap()).unwrap();
        let mut theirs: serde_json::Value = serde_json::from_str(text).unwrap();
        let patch: json_patch::Patch = serde_json::from_str(patch).unwrap();
        json_patch::patch(&mut theirs, &patch.0).unwrap();
        assert_eq!(ours, theirs, "{patch:?}");
    }
}

#[test]
fn faults_name_operation_and_member() {
    let text = r#"{"a":[1],"o":{}}"#;
    for (patch, member, conflict) in [
        (r#"[{"op":"remove","path":"/x"}]"#, "path", true),
        (r#"[{"op":"remove","path":""}]"#, "path", true),
        (r#"[{"op":"replace","path":"/x","value":1}]"#, "path", true),
        (r#"[{"op":"add","path":"/a/2","value":1}]"#, "path", true),
        (r#"[{"op":"add","path":"/a/01","value":1}]"#, "path", true),
        (r#"[{"op":"add","path":"/a/b/c","value":1}]"#, "path", true),
        (r#"[{"op":"add","path":"a","value":1}]"#, "path", false),
        (r#"[{"op":"add","path":"/a"}]"#, "value", false),
        (r#"[{"op":"copy","path":"/a"}]"#, "from", false),
        (r#"[{"op":"copy","from":"/x","path":"/a"}]"#, "from", true),
        (r#"[{"op":"move","from":"/a","path":"/a/0"}]"#, "path", false),
        (r#"[{"op":"test","path":"/a","value":[2]}]"#, "value", true),
        (r#"[{"op":"test","path":"/zz","value":null}]"#, "value", true),
        (r#"[{"op":"explode","path":"/a"}]"#, "op", false),
    ] {
        let fault = patched(text, patch).unwrap_err();
        assert_eq!(
            (fault.index, fault.member, fault.blame == Blame::Conflict),
            (0, member, conflict),
            "{patch}"
        );
    }
}

/// Sixty times the list into itself would be 2^60 items; 7,000 times a large value would be gigabytes.
#[test]
fn copies_do_not_grow_past_the_limit() {
    let mut operations = vec![json!({"op": "add", "path": "/c", "value": ["x".repeat(100)]})];
    operations.extend((0..60).map(|_| json!({"op": "copy", "from": "/c", "path": "/c/-"})));
    let fault = patched("{}", &json!(operations).to_string()).unwrap_err();
    assert_eq!(fault.blame, Blame::Excess);
    assert!(fault.expected.contains("at most 524288 bytes"), "{fault}");
    assert_eq!(fault.into_problem().status(), http::StatusCode::PAYLOAD_TOO_LARGE);
    let deep: Vec<Value> = (0..300)
        .map(|_| json!({"op": "copy", "from": "", "path": "/c"}))
        .collect();
    let document = json!({"a": vec![0; 2_000], "c": 0}).to_string();
    let fault = patched(&document, &json!(deep).to_string()).unwrap_err();
    assert_eq!(fault.blame, Blame::Excess);
}

#[test]
fn the_result_may_have_the_limit_and_not_a_byte_more() {
    let limits = Limits { size: 20, ..AMPLE };
    let add = |length: usize| json!([{"op": "add", "path": "/a", "value": "x".repeat(length)}]).to_string();
    assert_eq!(within("{}", &add(12), &limits).unwrap().len(), 20);
    assert_eq!(within("{}", &add(13), &limits).unwrap_err().blame, Blame::Excess);
    let large = r#"{"a":"0123456789","b":1}"#;
    let shrink = r#"[{"op":"replace","path":"/b","value":2},{"op":"move","from":"/a","path":"/c"},{"op":"remove","path":"/c"}]"#;
    assert_eq!(
        within(large, shrink, &limits).unwrap(),
        r#"{"b":2}"#,
        "what is too large may shrink"
    );
    let grow = r#"[{"op":"replace","path":"/b","value":10}]"#;
    assert_eq!(within(large, grow, &limits).unwrap_err().blame, Blame::Excess);
}

#[test]
fn work_is_bounded() {
    let large = json!({"c": vec![0; 100_000], "d": 1}).to_string();
    for operation in [
        json!({"op": "test", "path": "/c/99999", "value": 1}),
        json!({"op": "add", "path": "/c/0", "value": 1}),
        json!({"op": "remove", "path": "/c/0"}),
        json!({"op": "copy", "from": "/c", "path": "/d"}),
        json!({"op": "move", "from": "/c", "path": "/c"}),
    ] {
        let mut operations = vec![json!({"op": "add", "path": "/c/-", "value": 1})];
        operations.extend((0..999).map(|_| operation.clone()));
        let limits = Limits {
            work: 1 << 20,
            ..AMPLE
        };
        match within(&large, &json!(operations).to_string(), &limits) {
            Ok(_) => assert_eq!(
                operation["op"], "move",
                "what is moved to its own place costs nothing"
            ),
            Err(fault) => assert_ne!(fault.blame, Blame::Format, "{fault}"),
        }
    }
    let again: Vec<Value> = (0..300)
        .flat_map(|_| {
            [
                json!({"op": "copy", "from": "/c", "path": "/d"}),
                json!({"op": "add", "path": "/d/-", "value": 1}),
            ]
        })
        .collect();
    let fault = patched(&large, &json!(again).to_string()).unwrap_err();
    assert_eq!(fault.blame, Blame::Excess);
    assert!(fault.expected.contains("less work"), "{fault}");
}

#[test]
fn too_many_operations_are_not_read() {
    let many = format!("[{}]", [r#"{"op":"remove","path":"/a"}"#; 4].join(","));
    assert_eq!(operations(many.as_bytes(), 4).unwrap().len(), 4);
    let refused = operations(many.as_bytes(), 3).unwrap_err();
    assert_eq!(refused.status(), http::StatusCode::PAYLOAD_TOO_LARGE);
    for bad in ["[]", "{}", "[1]", "[", "[] x", r#"[{"op":"add"}]"#] {
        let refused = operations(bad.as_bytes(), 3).unwrap_err();
        assert_eq!(refused.status(), http::StatusCode::BAD_REQUEST, "{bad}");
    }
}

#[test]
fn pointers_are_read_as_rfc_6901_says() {
    let text = r#"{"~":{"1":1},"/":2,"":3,"a":[0],"-":4,"b\u0063":5}"#;
    for (path, expected) in [
        ("/~0/1", Ok("1")),
        ("/~1", Ok("2")),
        ("/", Ok("3")),
        ("/-", Ok("4")),
        ("/bc", Ok("5")),
        ("/a/0", Ok("0")),
        ("/a/-", Err(Blame::Conflict)),
        ("/a/00", Err(Blame::Conflict)),
        ("/a/+0", Err(Blame::Conflict)),
        ("/a/1", Err(Blame::Conflict)),
        ("/a/99999999999999999999999", Err(Blame::Conflict)),
        ("/a/", Err(Blame::Conflict)),
        ("/~", Err(Blame::Format)),
        ("/~2", Err(Blame::Format)),
        ("a", Err(Blame::Format)),
    ] {
        let patch =
            json!([{"op": "copy", "from": path, "path": "/x"}, {"op": "copy", "from": "/x", "path": ""}]);
        let got = patched(text, &patch.to_string());
        assert_eq!(got.as_deref().map_err(|fault| fault.blame), expected, "{path}");
    }
    let deep = "/a".repeat(100_000);
    let nested = format!("{}1{}", r#"{"a":"#.repeat(100_000), "}".repeat(100_000));
    let fault = patched(&nested, &json!([{"op": "remove", "path": deep}]).to_string()).unwrap_err();
    assert_eq!(fault.blame, Blame::Conflict);
}

#[test]
fn numbers_are_equal_by_worth() {
    let text = r#"{"n":100,"l":[1.50,{"x":-0.0}]}"#;
    let patch = r#"[{"op":"test","path":"/n","value":1e2},{"op":"test","path":"/l","value":[1.5,{"x":0}]}]"#;
    assert_eq!(patched(text, patch).unwrap(), text);
    assert!(patched(text, r#"[{"op":"test","path":"/n","value":101}]"#).is_err());
}

fn value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        (0..5i64).prop_map(Value::from),
        "[ab\"\\\\é\n]{0,4}".prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 24, 4, |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            proptest::collection::btree_map(name(), inner, 0..4)
                .prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    })
}

fn name() -> impl Strategy<Value = String> {
    proptest::sample::select(vec!["a", "b", "-", "0", "~/", "\"q", "é"]).prop_map(str::to_owned)
}

fn pointer() -> impl Strategy<Value = String> {
    let step = proptest::sample::select(vec!["a", "b", "-", "0", "1", "2", "01", "~0~1", "\"q", "é", "x"]);
    proptest::collection::vec(step, 0..4)
        .prop_map(|steps| steps.iter().map(|step| format!("/{step}")).collect())
}

fn operation() -> impl Strategy<Value = Value> {
    let one = (
        proptest::sample::select(vec!["add", "remove", "replace", "move", "copy", "test"]),
        pointer(),
        pointer(),
        value(),
    );
    one.prop_filter_map(
        "the crate removes the whole, which nothing asks for",
        |(op, path, from, value)| {
            let whole = op == "remove" && path.is_empty() || op == "move" && from.is_empty();
            (!whole).then(|| json!({"op": op, "path": path, "from": from, "value": value}))
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2_000, ..ProptestConfig::default() })]

    /// An implementation that works on trees is the judge; after each operation the size is that of the text.
    #[test]
    fn any_patch_does_what_it_does_on_trees(document in value(), patch in proptest::collection::vec(operation(), 1..8), pretty: bool) {
        let text = if pretty { serde_json::to_string_pretty(&document).unwrap() } else { document.to_string() };
        let patch = Value::from(patch).to_string();
        let read = operations(patch.as_bytes(), 8).unwrap();
        let mut tree = Tree::new(&text, &AMPLE);
        let mut judged = document;
        for operation in &read {
            let ours = tree.apply(operation);
            let one = json!([{
                "op": operation.op, "path": operation.path, "from": operation.from,
                "value": serde_json::from_str::<Value>(operation.value().unwrap()).unwrap(),
            }]);
            let theirs: json_patch::Patch = serde_json::from_value(one).unwrap();
            let theirs = json_patch::patch(&mut judged, &theirs.0);
            prop_assert_eq!(ours.is_ok(), theirs.is_ok(), "{:?} {:?} {:?}", operation, ours, theirs);
            if ours.is_err() {
                break;
            }
            let mut written = String::new();
            tree.texts.write(&tree.root, &mut written);
            prop_assert_eq!(tree.size, written.len());
            prop_assert_eq!(&serde_json::from_str::<Value>(&written).unwrap(), &judged);
        }
    }

    /// Bytes of an unknown sender: the patch answers with a result or an error, never a panic, and never exceeds the
    /// limit.
    #[test]
    fn any_bytes_are_a_patch_or_refused(bytes in proptest::collection::vec(any::<u8>(), 0..80)) {
        if let Ok(read) = operations(&bytes, 8) {
            let _ = apply("{\"a\":[1]}", &read, &AMPLE);
        }
    }
}
