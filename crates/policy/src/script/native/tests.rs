use bumpalo::Bump;

use crate::limits::Limits;
use crate::script::difference::{self, Compared};
use crate::script::{Body, Bounds, Script};
use crate::value::Value;

fn script(parameters: &[&str], body: Body) -> &'static Script {
    let parameters = parameters.iter().map(|name| (*name).to_owned()).collect();
    Box::leak(Box::new(Script::new("s", parameters, body)))
}

fn native(text: &str) -> Option<Value<'static>> {
    let script = script(&["a"], Body::Expression(text.to_owned()));
    let json = Box::leak(Box::new(
        serde_json::json!({"x": 1, "list": [1, "b"], "text": "😀é"}),
    ));
    call(script, &[Value::of(json)], &mut 1000)
}

fn call(script: &'static Script, values: &[Value<'static>], steps: &mut u64) -> Option<Value<'static>> {
    let limits = Limits::default();
    let mut bounds = Bounds {
        steps,
        limits: &limits,
        bytes: 100_000,
    };
    script.natively(values, &mut bounds, &Bump::new(), Box::leak(Box::default()))
}

#[test]
fn made_scripts_give_what_quickjs_gives() {
    let mut sum = Compared::default();
    for seed in 1..80_u64 {
        let mut random = fuzz_support::Random::new(seed);
        let bytes: Vec<u8> = (0..1500).map(|_| random.below(256) as u8).collect();
        let compared = difference::made(&bytes);
        sum.calls += compared.calls;
        sum.native += compared.native;
    }
    // The others take a member of undefined, or the text of an object, and the like.
    assert!(3 * sum.native > sum.calls, "{sum:?}");
}

#[test]
fn what_is_written_gives_the_same() {
    for text in [
        "n + 1",
        "Math.max(1000000, Math.floor(((n ?? 10e9) - (o.used ?? 0)) / 10))",
        "o?.x?.y ?? 'none'",
        "(o?.x).y",
        "t.length + t.indexOf('\u{1F600}')",
        "`${n} of ${t}`",
        "t < '\u{FF5E}'",
        "if (n) return 1; else if (t) return {t}; return [n];",
        "const f = (a, b) => { const c = a * b; if (c > 10) return 10; return c; }; return f(f(n, 2), 3);",
        "const f = a => a + n, g = 1; return f(g);",
        "return\n1;",
        "let x = 1\nx = 2\nreturn x",
        "const x = n; { const y = x; const x = 2; return y }",
        "/* a */ n // b",
        "'a\\u0062'",
        "o.toString",
        "o['valueOf']",
        "({x: 1, x: 2})",
        "({1: n, a: t})",
        "({__proto__: o}).x",
        "n?.5:1",
        "- -n - -1",
        "!n === !t",
        "0.1 + 0.2",
        "1e21 + ''",
        "-0",
        "l.includes(NaN)",
        "l[1.5]",
        "l[-1]",
        "t.slice(-0.5)",
        "t.slice(0, -0.5)",
        "t.slice(-1.5, 9)",
        "t.substring(2.5, 2.1) + t.substring(-1, 1) + t.slice(NaN, Infinity)",
    ] {
        difference::written(text);
    }
}

#[test]
fn what_is_not_known_is_left_to_quickjs() {
    for text in [
        "a.y.z",
        "a + 1",
        "a == 1",
        "a === a",
        "a.text.slice(1)",
        "a.list.map(x => x)",
        "a.list.foo",
        "[...a.list]",
        "(() => 1)()",
        "Number('0x10')",
        "a.text.toUpperCase()",
        "this",
        "unknown",
        "a.list.toString()",
        "1 ** 2",
        "a++",
        "a, 1",
        "/a/",
        "'\\x41'",
        "01",
        "1.toString",
        "`${a}`",
        "x`a`",
    ] {
        assert!(native(text).is_none(), "{text}");
    }
    for text in [
        "a.x + 1",
        "a.text.length",
        "a?.y?.z",
        "typeof a",
        "a.list.indexOf('b')",
        "a != null",
    ] {
        assert!(native(text).is_some(), "{text}");
    }
}

#[test]
fn a_script_that_takes_much_is_left_to_quickjs() {
    let text = "const f = x => x + x; const g = x => f(f(x)); const h = x => g(g(x)); const i = x => h(h(h(h(x))));\
                return String(i(a)).length;";
    let script = script(&["a"], Body::Statements(text.to_owned()));
    let limits = Limits::default();
    let mut steps = limits.script_steps;
    assert!(call(script, &[Value::Int(1)], &mut steps).is_some());
    let long = Value::Text(Box::leak(Box::new("x".repeat(100))));
    assert!(call(script, &[long], &mut steps).is_none());
    // Joined texts stay until the call ends, so they count.
    let joined = "return l.join(l[0]).length;";
    let joining = self::script(&["l"], Body::Statements(joined.to_owned()));
    let texts = Box::leak(Box::new(serde_json::json!(vec!["x".repeat(1_000); 70])));
    let mut left = limits.script_steps;
    let length = call(joining, &[Value::of(texts)], &mut left);
    assert_eq!(length, Some(Value::Int(139_000)));
    assert!(limits.script_steps - left > 10_000);
    let mut few = 10;
    assert!(call(script, &[Value::Int(1)], &mut few).is_none());
    let deep = "!".repeat(400) + "a";
    assert!(super::Native::parse(&["a".to_owned()], &Body::Expression(deep)).is_none());
    let wide = "a".to_owned() + &" + a".repeat(400);
    assert!(super::Native::parse(&["a".to_owned()], &Body::Expression(wide)).is_some());
    let wider = "a".to_owned() + &" + a".repeat(6000);
    assert!(super::Native::parse(&["a".to_owned()], &Body::Expression(wider)).is_none());
}

/// Else functions that call one another could do much with few steps.
#[test]
fn statements_and_arguments_take_steps() {
    let declarations: String = (0..400).map(|n| format!("let v{n};")).collect();
    let arguments = vec!["a"; 400].join(",");
    for (text, least) in [
        (format!("{declarations} return 1;"), 400),
        (format!("return Math.max({arguments});"), 400),
        (format!("return +`1${{''}}{}`;", "${t}".repeat(400)), 400),
    ] {
        let script = script(&["a", "t"], Body::Statements(text));
        let mut steps = 10_000;
        let value = call(script, &[Value::Int(1), Value::Made(&"")], &mut steps);
        assert_eq!(value, Some(Value::Int(1)));
        assert!(10_000 - steps >= least, "{} steps", 10_000 - steps);
    }
    let many: String = (0..2_000).map(|n| format!("let v{n};")).collect();
    let script = script(&[], Body::Statements(many));
    assert_eq!(call(script, &[], &mut 10_000), None);
}
