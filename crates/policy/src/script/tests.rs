use super::*;

fn engine(bodies: &[(&[&str], Body)]) -> Result<Engine, Vec<ScriptFault>> {
    let scripts: Vec<Script> = bodies
        .iter()
        .map(|(parameters, body)| {
            let parameters = parameters.iter().map(|name| (*name).to_owned()).collect();
            Script::new("s", parameters, body.clone())
        })
        .collect();
    Engine::new(&scripts, &Limits::default())
}

fn expression(text: &str) -> Body {
    Body::Expression(text.to_owned())
}

fn statements(text: &str) -> Body {
    Body::Statements(text.to_owned())
}

fn run(body: Body, values: &[Value<'static>]) -> Result<Value<'static>, CallFault> {
    let names: &[&str] = &["a", "b", "c"];
    let engine = engine(&[(&names[..values.len()], body)]).unwrap();
    engine.begin();
    engine.call(0, values, 16, 100_000, arena())
}

/// An arena that stays, as its values do.
fn arena() -> &'static Bump {
    Box::leak(Box::default())
}

#[test]
fn a_script_computes_from_its_parameters() {
    let sum = run(expression("a + b // both"), &[Value::Int(1), Value::Int(2)]).unwrap();
    assert_eq!(sum, Value::Int(3));
    let text =
        "const r = []; for (const x of a.items) { if (x.n > 1) r.push({...x, twice: x.n * 2}); } return r;";
    let json = serde_json::json!({"items": [{"n": 1}, {"n": 2}, {"n": 3.5}]});
    let json: &'static serde_json::Value = Box::leak(Box::new(json));
    let list = run(statements(text), &[Value::of(json)]).unwrap();
    assert_eq!(
        list.to_json(),
        serde_json::json!([{"n": 2, "twice": 4}, {"n": 3.5, "twice": 7}])
    );
    for (text, expected) in [
        ("[3,1,2].sort().map(x => x * 2).concat([9]).join('-')", "2-4-6-9"),
        ("'a,b,c'.split(',').reverse().join('')", "cba"),
        ("`${[1,2].includes(2)}:${Math.max(1, 5)}`", "true:5"),
        ("JSON.stringify(JSON.parse('{\"a\":[1]}'))", "{\"a\":[1]}"),
        (
            "Object.entries({a: 1, b: 2}).map(([k, v]) => k + v).join()",
            "a1,b2",
        ),
        (
            "[...'xyz'].at(-1) + 'abc'.replaceAll('b', '-').padEnd(5, '.')",
            "za-c..",
        ),
        (
            "'' + [1, [2, 3]] + 'x'.repeat(3).toUpperCase().trim()",
            "1,2,3XXX",
        ),
    ] {
        assert_eq!(
            run(expression(text), &[]).unwrap(),
            Value::Made(&expected),
            "{text}"
        );
    }
}

/// A consumer chooses the names of members that no release knows.
#[test]
fn members_may_have_the_names_of_built_in_ones() {
    let names = [
        "toString",
        "valueOf",
        "hasOwnProperty",
        "constructor",
        "__proto__",
    ];
    let members = names.map(|name| (name.to_owned(), serde_json::json!({"own": name})));
    let json = serde_json::Value::Object(members.into_iter().collect());
    let json: &'static serde_json::Value = Box::leak(Box::new(json));
    let members = names.map(|name| (name, Value::Int(1)));
    let made = Value::object(arena().alloc(members), arena());
    for (given, expected) in [(Value::of(json), json.clone()), (made, made.to_json())] {
        let text =
            "const r = {}; for (const [name, value] of Object.entries(a)) r['_' + name] = value; return r;";
        let found = run(statements(text), &[given]).unwrap().to_json();
        for name in names {
            assert_eq!(found[format!("_{name}")], expected[name], "{name}: {found}");
        }
    }
}

#[test]
fn a_script_has_no_clock_no_chance_and_no_code_from_texts() {
    for text in [
        "typeof Date",
        "typeof Math.random",
        "typeof eval",
        "typeof Function",
        "typeof Promise",
        "typeof performance",
        "typeof RegExp",
        "typeof BigInt",
        "typeof Reflect",
        "typeof Proxy",
        "typeof Map",
        "typeof Iterator",
        "typeof console",
        "typeof (function(){}).constructor",
        "typeof (function*(){}).constructor",
        "typeof (() => 1).call",
        "typeof ({}).constructor",
        "typeof [].constructor",
        "typeof ''.constructor",
        "typeof (1).constructor",
        "typeof [].flat",
        "typeof [].values().map",
        "typeof new Error('x').constructor",
        "typeof Object.setPrototypeOf",
        "typeof new TypeError('x').constructor",
        "typeof Symbol",
        "typeof [].values().drop",
        "typeof (function*(){})().map",
        "typeof ({}).__proto__",
        "typeof Array.from",
        "typeof String.raw",
        "typeof queueMicrotask",
        "typeof Object.groupBy",
    ] {
        let found = run(expression(text), &[]).unwrap();
        assert_eq!(found, Value::Made(&"undefined"), "{text}");
    }
}

#[test]
fn a_call_leaves_no_state_for_the_next() {
    for text in [
        "globalThis.x = 1",
        "Array.prototype.x = 1",
        "Object.prototype.x = 1",
        "Math.x = 1",
        "JSON.parse = 1",
        "[].push.x = 1",
        "Error.prototype.x = 1",
        "TypeError.prototype.x = 1",
        "[].values().next.x = 1",
        "(function(){}).x.y",
        "x = 1",
    ] {
        assert!(run(expression(text), &[]).is_err(), "{text}");
    }
}

#[test]
fn a_hostile_script_is_stopped() {
    for text in [
        "for (;;) {}",
        "function f() { return f() + 1; } return f();",
        "let s = 'x'; for (;;) s += s;",
        "const a = []; for (;;) a.push([]);",
        "const a = []; a.length = 4294967295; return a.indexOf(1);",
        "const a = []; a.length = 4294967295; return [].concat(a).length;",
        "const a = []; a.length = 4294967295; return [a].toString();",
        "const a = []; a.length = 4294967295; return [...a].length;",
        "const a = []; a.length = 4294967295; return JSON.stringify(a);",
        "return Array.prototype.indexOf.name + [].indexOf({length: 9007199254740991}) + 'x'.repeat(1e9);",
        "const x = 'a'.repeat(100000); return (x + 'b').indexOf(x);",
        "for (;;) { try { 'x'.repeat(1e9) } catch {} }",
        "for (;;) { try { (function f() { f() })() } catch {} }",
        "function* g() { for (;;) yield 1; } return [...g()].length;",
        "return ({ toJSON() { for (;;) {} } });",
        "const o = {}; o.o = o; return o;",
        "return { get a() { for (;;) {} } };",
        "const a = []; a.length = 4294967295; return a;",
        "return () => 1;",
        "return Symbol();",
        "return '\\ud800';",
        "let a = [1]; for (;;) a = [...a, ...a];",
        "let o = []; for (let i = 0; i < 100000; i++) o = [o]; return o;",
        "throw null;",
        "throw { get message() { for (;;) {} } };",
        "const e = new Error('x'); e.message = { toString() { for (;;) {} } }; throw e;",
    ] {
        let result = run(statements(text), &[]);
        assert!(result.is_err() || text.contains("toJSON"), "{text}: {result:?}");
    }
}

/// One step of the engine may copy all items of an array or object, so that the bound of steps alone would come after
/// minutes: the copies are charged as work.
#[test]
fn copies_of_large_values_are_work() {
    let array = "const a = []; for (let i = 0; i < 2000; i++) a[i] = i;";
    let object = "const o = {}; for (let i = 0; i < 1000; i++) o[i] = i;";
    for (make, copy) in [
        (array, "[...a];"),
        (array, "Math.max(...a);"),
        (array, "const [first] = a;"),
        (array, "for (const x of a) break;"),
        (array, "({...a});"),
        (array, "for (const x of a.values()) break;"),
        (object, "({...o});"),
        (object, "({a: 1, ...o, b: 2});"),
        (object, "for (const k in o) break;"),
        (object, "const p = {__proto__: o}; for (const k in p) break;"),
        (object, "for (const k in (1, o)) break;"),
        ("const s = 'x'.repeat(5000);", "[...s];"),
        ("const s = 'x'.repeat(5000);", "({...s});"),
    ] {
        let text = format!("{make} for (;;) {{ {copy} }}");
        match run(statements(&text), &[]) {
            Err(CallFault::Thrown(why)) => assert!(why.contains("too much work"), "{text}: {why}"),
            other => panic!("{text}: {other:?}"),
        }
    }
    // The rest of an object would be such a copy, too.
    for text in [
        "const {a, ...b} = {a: 1, c: 2}; return b;",
        "let b; ({...b} = {c: 2}); return b;",
        "return (({...b}) => b)({c: 2});",
    ] {
        assert!(engine(&[(&[], statements(text))]).is_err(), "{text}");
    }
}

#[test]
fn the_work_of_all_calls_of_an_evaluation_is_bounded() {
    let arena = &Bump::new();
    let engine = engine(&[(
        &[],
        statements("const a = 'x'.repeat(5000); return [...a].length;"),
    )])
    .unwrap();
    for _ in 0..2 {
        engine.begin();
        let calls = (0..1_000).take_while(|_| engine.call(0, &[], 4, 1000, arena).is_ok());
        let calls = calls.count();
        assert!((100..900).contains(&calls), "{calls}");
        engine.clean();
    }
}

#[test]
fn an_engine_works_after_it_stopped_a_script() {
    let arena = &Bump::new();
    let bodies = [
        (&[][..], statements("for (;;) {}")),
        (&[][..], statements("let a = [1]; for (;;) a = [...a, a];")),
        (&[][..], expression("40 + 2")),
    ];
    let engine = engine(&bodies).unwrap();
    for _ in 0..3 {
        engine.begin();
        assert!(matches!(
            engine.call(0, &[], 4, 1000, arena),
            Err(CallFault::Steps)
        ));
        engine.clean();
        engine.begin();
        assert!(engine.call(1, &[], 4, 1000, arena).is_err());
        engine.clean();
        engine.begin();
        assert_eq!(engine.call(2, &[], 4, 1000, arena).unwrap(), Value::Int(42));
    }
}

#[test]
fn cyclic_garbage_is_collected_between_calls() {
    let arena = &Bump::new();
    let engine = engine(&[(
        &[],
        statements("const o = {t: 'x'.repeat(9000)}; o.o = o; return 1;"),
    )])
    .unwrap();
    for round in 0..2000 {
        engine.begin();
        assert_eq!(
            engine.call(0, &[], 4, 1000, arena).unwrap(),
            Value::Int(1),
            "{round}"
        );
    }
}

#[test]
fn a_script_that_cannot_be_compiled_says_why() {
    for (body, part) in [
        (expression("a +"), "("),
        (expression("2n ** 100000n"), "BigInt"),
        (statements("await x;"), "`await`"),
        (statements("} , function () {"), "without its opening"),
        (expression("1) + (2"), "without its opening"),
        (statements("return `${a"), "string"),
        (expression("/x/.test('x')"), "("),
    ] {
        let faults = engine(&[(&["a"], body)]).err().expect("it must not compile");
        assert!(faults[0].what.contains(part), "{}", faults[0].what);
    }
}

/// Calls at the end of this many frames of 16 KiB and more.
fn deep(engine: &Engine, frames: usize) -> Result<Value<'static>, CallFault> {
    let frame = std::hint::black_box([0_u8; 16 << 10]);
    match frames {
        0 => engine.call(0, &[Value::Int(1)], 16, 100_000, arena()),
        frames => {
            let result = deep(engine, frames - 1);
            std::hint::black_box(&frame);
            result
        }
    }
}

#[test]
fn a_caller_that_is_deep_on_its_stack_leaves_a_script_all_of_its_own() {
    let nested = statements("const f = (n) => n === 0 ? a : f(n - 1); return f(3);");
    let engine = engine(&[(&["a"], nested)]).unwrap();
    // More than the stack of a script.
    engine.begin();
    assert_eq!(deep(&engine, 40).unwrap(), Value::Int(1));
    // Endless recursion ends all the same, and then the engine is as before.
    let endless = statements("const f = () => f() + a; return f();");
    let endless = self::engine(&[(&["a"], endless)]).unwrap();
    endless.begin();
    assert!(matches!(deep(&endless, 40), Err(CallFault::Thrown(_))));
    assert_eq!(deep(&engine, 0).unwrap(), Value::Int(1));
}
