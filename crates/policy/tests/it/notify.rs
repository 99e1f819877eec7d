//! Notifications to servers of the operator: what is made of their templates, and what is a mistake in them.

use policy::testing::Case;
use policy::{Accepts, FaultKind, Input, Limits, Project, Scratch, Servers, Trace};
use serde_json::{Value, json};

use crate::{NOON, compile, compile_within, decide};

/// What a project notifies of, for an update of a subscriber whose name needs escapes.
fn notified(text: &str) -> Value {
    let project = compile(text).unwrap_or_else(|error| panic!("{text}\n{error}"));
    let request = json!({"gpsi": "msisdn-1", "used": 0.8, "name": "A&B <\"x\">", "list": [1, "a"]});
    let input = Input::new("update", &request);
    let mut scratch = Scratch::default();
    let decision = project.decide(&mut scratch, &input, NOON, None);
    let decision = decision.unwrap_or_else(|fault| panic!("{text}\n{fault}"));
    json!(decision.notifications())
}

fn content(member: &str, written: &Value) -> Value {
    let text = format!("blocks: [{{notify: {{server: crm, {member}: {written}}}}}]");
    notified(&text)[0][member].clone()
}

#[test]
fn a_body_is_a_value_with_expressions() {
    let body = json!({"to": "$request.gpsi", "percent": {"$round": {"$mul": ["$request.used", 100]}}, "absent": "$request.no",
        "money": "$$5"});
    assert_eq!(
        content("body", &body),
        json!({"to": "msisdn-1", "percent": 80, "money": "$5"})
    );
    assert_eq!(content("body", &json!("$request.list")), json!([1, "a"]));
}

#[test]
fn a_text_has_values_in_braces() {
    let text = "{$request.gpsi}: {$round: {$mul: [$request.used, 100]}} % at {$now.hour}, {$request.no}{$event} {x} {$$y} {$request.list}";
    assert_eq!(
        content("text", &json!(text)),
        "msisdn-1: 80 % at 12, update {x} {$y} [1,\"a\"]"
    );
    // As it is: the receiver knows no markup.
    assert_eq!(content("text", &json!("{$request[\"name\"]}")), "A&B <\"x\">");
}

#[test]
fn values_in_xml_and_in_paths_are_escaped() {
    let xml = "<a b='{$request.name}'>{$concat: [$request.name, '}']}<!-- {x} --></a>";
    assert_eq!(
        content("xml", &json!(xml)),
        "<a b='A&amp;B &lt;&quot;x&quot;&gt;'>A&amp;B &lt;&quot;x&quot;&gt;}<!-- {x} --></a>"
    );
    let all = notified(
        "blocks: [{notify: {server: sms, path: '/of/{$request.name}?n={$request.gpsi}', action: 'urn:a#b', xml: <a/>}}, {notify: {server: b}}]",
    );
    assert_eq!(
        all,
        json!([{"server": "sms", "path": "/of/A%26B%20%3C%22x%22%3E?n=msisdn-1", "action": "urn:a#b", "xml": "<a/>"},
            {"server": "b"}])
    );
}

#[test]
fn a_mistake_is_named_with_its_block() {
    for (notify, parts) in [
        ("{body: 1}", &["blocks[0].notify", "`server` is missing"][..]),
        (
            "{server: $request.a}",
            &["blocks[0].notify.server", "the server is computed"],
        ),
        ("{server: a, body: 1, xml: <a/>}", &["both `body` and `xml`"]),
        (
            "{server: a, boddy: 1}",
            &["unknown key `boddy`", "did you mean `body`?"],
        ),
        (
            "{server: a, text: 'x {$request.dnn'}",
            &[
                "blocks[0].notify.text",
                "project.yaml:5",
                "`{$request.dnn` has no end",
            ],
        ),
        (
            "{server: a, text: '{$reqest.dnn}'}",
            &["no block sets the variable `$reqest`"],
        ),
        (
            "{server: a, text: '{$concta: [a]}'}",
            &["unknown operation `$concta`", "did you mean `$concat`?"],
        ),
        (
            "{server: a, text: '{$concat: [a}'}",
            &["`{$concat: [a}` is not an expression"],
        ),
        (
            "{server: a, text: '{$request.}'}",
            &["`$request.` is not a reference"],
        ),
        (
            "{server: a, xml: '<{$event}/>'}",
            &["`{$event}` stands where no value can be escaped"],
        ),
        ("{server: a, xml: '<a><!-- '}", &["ends within a tag"]),
        (
            "{server: a, xml: [1]}",
            &["blocks[0].notify.xml", "it is not a text"],
        ),
        (
            "{server: a, path: 'x/{$event}'}",
            &["blocks[0].notify.path", "`/` or `?` first"],
        ),
        ("{server: a, path: '/a b'}", &["it is not the end of a URI"]),
        ("{server: a, action: 'a\"b'}", &["it is not a SOAP action"]),
        ("$request", &["it is not a mapping"]),
    ] {
        let text = format!("blocks:\n  - block: n\n    notify: {notify}");
        let Err(error) = compile(&text) else {
            panic!("it compiles: {notify}")
        };
        let said = error.to_string();
        for part in parts {
            assert!(said.contains(part), "{notify}: {part} is missing:\n{said}");
        }
    }
}

#[test]
fn servers_and_their_contents_are_checked_where_they_are_known() {
    let compile = |notify: &str, servers: &Servers| {
        let text = format!("name: x\nservice: am\nblocks:\n  - notify: {notify}");
        Project::compile_for(&[("project.yaml", &text)], &Limits::default(), servers)
            .map(drop)
            .map_err(|error| error.to_string())
    };
    let servers: Servers = [
        ("crm", Accepts::Json),
        ("soap", Accepts::Xml),
        ("get", Accepts::Nothing),
        ("any", Accepts::Any),
    ]
    .map(|(name, accepts)| (name.to_owned(), accepts))
    .into();
    for right in [
        "{server: crm, body: 1}",
        "{server: soap, xml: <a/>}",
        "{server: get, path: '?a=1'}",
        "{server: any, text: a}",
    ] {
        assert_eq!(compile(right, &servers), Ok(()), "{right}");
    }
    let wrong = compile("{server: cmr, body: 1}", &servers).unwrap_err();
    assert!(
        wrong.contains("no server is called `cmr`") && wrong.contains("did you mean `crm`?"),
        "{wrong}"
    );
    for (wrong, expected) in [
        ("{server: soap, text: '{$event}'}", "`xml`, by the content type"),
        ("{server: crm, xml: <a/>}", "`body`, by the content type"),
        ("{server: get, body: 1}", "`path` alone, by the method"),
    ] {
        let said = compile(wrong, &servers).unwrap_err();
        assert!(
            said.contains("does not take this content") && said.contains(expected),
            "{said}"
        );
    }
    let none = compile("{server: crm, body: 1}", &Servers::new()).unwrap_err();
    assert!(
        none.contains("which have none") && none.contains("project.yaml:4"),
        "{none}"
    );
}

#[test]
fn a_refusal_and_a_fault_make_no_notification() {
    let refused = notified("blocks: [{notify: {server: a, body: 1}}, {reject: {cause: NO}}]");
    assert_eq!(refused, json!([]));
    let many = "blocks: [{repeat: 17, do: [{notify: {server: a, body: 1}}]}]";
    let fault = decide(many).unwrap_err();
    assert_eq!(fault.kind, FaultKind::Output);
    assert!(fault.what.contains("more than 16 notifications"), "{fault}");
    let small = Limits {
        output_bytes: 1_000,
        ..Limits::default()
    };
    let long = format!("blocks: [{{notify: {{server: a, text: '{}'}}}}]", "x".repeat(990));
    let project = compile_within(&long, &small).unwrap();
    let request = Value::Null;
    let (mut scratch, input) = (Scratch::default(), Input::new("create", &request));
    let fault = project.decide(&mut scratch, &input, NOON, None).unwrap_err();
    assert!(fault.what.contains("outputBytes"), "{fault}");
}

#[test]
fn cases_expect_notifications_and_traces_show_them() {
    let text = "
blocks:
  - if: {$ge: [$session.percent, 80]}
    then:
      - block: eighty
        notify: {server: crm, body: {to: $request.gpsi, text: 80 % are used}}
      - remember: {warned: true}
";
    let project = compile(text).unwrap();
    let case = |more: &str| {
        let text = format!(
            "{{name: c, request: {{gpsi: g}}, session: {{percent: 90}}, expect: {{}}, expectState: {{warned: true}}{more}}}"
        );
        Case::parse(&text, "c").unwrap().remove(0)
    };
    let mut scratch = Scratch::default();
    let right = case(", expectNotifications: [{server: crm, body: {to: g, text: 80 % are used}}]");
    assert!(
        right.run(&project, &mut scratch).passed(),
        "{}",
        right.run(&project, &mut scratch)
    );
    let missing = case("").run(&project, &mut scratch);
    assert_eq!(missing.differences.len(), 1, "{missing}");
    let other = case(", expectNotifications: [{server: crm, body: {to: h, text: 80 % are used}}]");
    let other = other.run(&project, &mut scratch);
    assert_eq!(
        other.differences[0].path, "expectNotifications[0].body.to",
        "{other}"
    );
    let mut trace = Trace::new();
    let _ = right.outcome(&project, &mut scratch, Some(&mut trace));
    let shown = trace.decided().next().unwrap();
    assert_eq!(
        (shown.block.as_str(), shown.decided.as_deref()),
        ("eighty", Some("notify.crm"))
    );
    assert!(shown.outcome.contains("\"to\":\"g\""), "{}", shown.outcome);
}
