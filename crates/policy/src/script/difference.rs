//! Whether scripts give the same with QuickJS and without it: made scripts and values for tests and fuzz targets.

use std::fmt::Write as _;

use bumpalo::Bump;
use serde_json::{Value as Json, json};

use super::{Body, Bounds, Engine, Script};
use crate::limits::Limits;
use crate::value::Value;

/// Scripts that one engine runs: it starts once for all.
const SCRIPTS: usize = 12;
/// Values that each is called with.
const CALLS: usize = 4;
const PARAMETERS: &[&str] = &["n", "t", "v", "o", "l"];

const NUMBERS: &[&str] = &[
    "0",
    "1",
    "2",
    "7",
    "0.1",
    "0.5",
    "2.5",
    "1.5e3",
    "1e21",
    "1e-7",
    "123456789012345680000",
    "9007199254740993",
    "1e308",
    "4294967296",
    "2147483648",
    ".25",
    "1_000",
    "5e-324",
];
const TEXTS: &[&str] = &[
    "''",
    "'a'",
    "\"abc\"",
    "'10'",
    "'9'",
    "' 5 '",
    "'-0'",
    "'1e3'",
    "'0x10'",
    "'Infinity'",
    "'1.'",
    "'.'",
    "'é'",
    "'\u{1F600}'",
    "'\u{FF5E}'",
    "'b\\n'",
    "'NaN'",
    "'800 Mbps'",
    "' '",
    "'x'",
    "'length'",
    "'1,2'",
];
const OTHERS: &[&str] = &[
    "undefined",
    "null",
    "true",
    "false",
    "NaN",
    "Infinity",
    "[]",
    "[1, 'a']",
];
const OPERATORS: &[&str] = &[
    "+", "+", "-", "*", "/", "%", "<", "<=", ">", ">=", "==", "!=", "===", "!==", "&&", "||",
];
const METHODS: &[&str] = &["includes", "indexOf", "startsWith", "endsWith", "split", "join"];
const PLAIN_METHODS: &[&str] = &["toLowerCase()", "toUpperCase()", "trim()", "slice()"];
const FUNCTIONS: &[&str] = &[
    "Math.floor",
    "Math.ceil",
    "Math.round",
    "Math.trunc",
    "Math.abs",
    "Number",
    "String",
    "Boolean",
    "Number.isFinite",
    "Number.isInteger",
    "Number.isNaN",
    "Array.isArray",
];

/// Scripts and values that bytes choose.
struct Maker<'b> {
    bytes: std::slice::Iter<'b, u8>,
    names: Vec<String>,
    functions: Vec<String>,
}

/// What was compared.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Compared {
    pub(crate) calls: usize,
    pub(crate) native: usize,
}

/// Makes scripts of bytes, and compares.
///
/// # Panics
/// When a result is another one.
pub(crate) fn made(bytes: &[u8]) -> Compared {
    let mut maker = Maker {
        bytes: bytes.iter(),
        names: Vec::new(),
        functions: Vec::new(),
    };
    let scripts: Vec<Script> = (0..SCRIPTS).map(|_| maker.script()).collect();
    let engine = match Engine::new(&scripts, &Limits::default()) {
        Ok(engine) => engine,
        Err(faults) => panic!("{}: {:?}", faults[0].what, scripts[faults[0].script]),
    };
    compare(&engine, &scripts, &mut maker)
}

/// Compares the scripts of a text that both read.
///
/// # Panics
/// When a result is another one.
pub(crate) fn written(text: &str) -> Compared {
    for body in [
        Body::Expression(text.to_owned()),
        Body::Statements(text.to_owned()),
    ] {
        let parameters = PARAMETERS.iter().map(|name| (*name).to_owned()).collect();
        let scripts = [Script::new("s", parameters, body)];
        if scripts[0].native.is_none() {
            continue;
        }
        if let Ok(engine) = Engine::new(&scripts, &Limits::default()) {
            let mut maker = Maker {
                bytes: text.as_bytes().iter(),
                names: Vec::new(),
                functions: Vec::new(),
            };
            return compare(&engine, &scripts, &mut maker);
        }
    }
    Compared::default()
}

fn compare(engine: &Engine, scripts: &[Script], maker: &mut Maker<'_>) -> Compared {
    let limits = Limits::default();
    let mut compared = Compared::default();
    for (position, script) in scripts.iter().enumerate() {
        for _ in 0..CALLS {
            compared.calls += 1;
            let values = [
                maker.number_value(),
                maker.text_value(),
                maker.any_value(2),
                maker.object_value(2),
                maker.list_value(2),
            ];
            let arguments: Vec<Value<'_>> = values.iter().map(Value::of).collect();
            let mut steps = limits.script_steps;
            let (calls, arena) = (Bump::new(), Bump::new());
            let mut bounds = Bounds {
                steps: &mut steps,
                limits: &limits,
                bytes: limits.memory_bytes,
            };
            let native = script.natively(&arguments, &mut bounds, &calls, &arena);
            let Some(native) = native else {
                continue;
            };
            compared.native += 1;
            engine.begin();
            let other = engine.call(position, &arguments, limits.depth, limits.memory_bytes, &arena);
            let other = other
                .map(|value| text(&value))
                .map_err(|fault| format!("{fault:?}"));
            assert_eq!(Ok(text(&native)), other, "{:?} of {values:?}", script.body);
        }
    }
    compared
}

/// A value to the last bit: digits of numbers, order of members.
fn text(value: &Value<'_>) -> String {
    serde_json::to_string(value).unwrap_or_default()
}

impl Maker<'_> {
    fn choose(&mut self, of: usize) -> usize {
        self.bytes.next().map_or(0, |byte| usize::from(*byte) % of)
    }

    fn one<'l>(&mut self, of: &[&'l str]) -> &'l str {
        let index = self.choose(of.len());
        of[index]
    }

    fn script(&mut self) -> Script {
        self.names = PARAMETERS.iter().map(|name| (*name).to_owned()).collect();
        self.functions.clear();
        let body = match self.choose(2) {
            0 => Body::Expression(self.expression(3)),
            _ => Body::Statements(self.statements(2)),
        };
        Script::new(
            "s",
            PARAMETERS.iter().map(|name| (*name).to_owned()).collect(),
            body,
        )
    }

    fn statements(&mut self, depth: usize) -> String {
        let (names, functions) = (self.names.len(), self.functions.len());
        let mut text = String::new();
        for _ in 0..self.choose(5) {
            let name = format!("x{}", text.len() + 1000 * depth);
            let _ = match self.choose(6) {
                0 | 1 => {
                    let value = self.expression(2);
                    self.names.push(name.clone());
                    writeln!(text, "const {name} = {value};")
                }
                2 => {
                    let value = self.expression(1);
                    self.names.push(name.clone());
                    let other = self.expression(1);
                    writeln!(text, "let {name} = {value}; {name} = {other}")
                        .and_then(|()| writeln!(text, "; // {name}"))
                }
                3 if depth > 0 => {
                    let condition = self.expression(1);
                    let (then, otherwise) = (self.statements(depth - 1), self.statements(depth - 1));
                    writeln!(text, "if ({condition}) {{ {then} }} else {{ {otherwise} }}")
                }
                4 => {
                    let parameter = format!("{name}p");
                    self.names.push(parameter.clone());
                    let value = self.expression(2);
                    self.names.pop();
                    self.functions.push(name.clone());
                    writeln!(text, "const {name} = ({parameter}) => {value};")
                }
                _ => {
                    let value = self.expression(1);
                    writeln!(
                        text,
                        "if (!{value}) return {value};",
                        value = format_args!("({value})")
                    )
                }
            };
        }
        if self.choose(4) > 0 {
            let value = self.expression(2);
            let _ = writeln!(text, "return {value};");
        }
        self.names.truncate(names);
        self.functions.truncate(functions);
        text
    }

    fn expression(&mut self, depth: usize) -> String {
        if depth == 0 {
            return self.leaf();
        }
        let next = |maker: &mut Self| match maker.choose(2) {
            0 => maker.leaf(),
            _ => format!("({})", maker.expression(depth - 1)),
        };
        match self.choose(16) {
            0 => self.leaf(),
            1..=4 => {
                let (a, b, c) = (next(self), next(self), self.leaf());
                let (first, second) = (self.one(OPERATORS), self.one(OPERATORS));
                format!("{a} {first} {b} {second} {c}")
            }
            5 => format!("(({}) ?? ({}))", next(self), next(self)),
            6 => {
                let operator = self.one(&["!", "-", "+", "typeof ", "!!", "- -"]);
                format!("{operator}{}", next(self))
            }
            7 => format!("{} ? {} : {}", next(self), next(self), next(self)),
            8 => {
                let of = self.one(&["o", "(o)", "v", "l", "t", "o.x", "o?.y"]);
                let access = self.one(&[
                    ".x", ".y", ".length", "?.x", "?.y.x", "?.[t]", "[t]", "[n]", "[0]", "['z']",
                ]);
                format!("{of}{access}")
            }
            9 => {
                let (of, method) = (next(self), self.one(METHODS));
                let of = if self.choose(2) == 0 {
                    self.one(&["t", "l", "String(n)"]).to_owned()
                } else {
                    of
                };
                format!("({of}).{method}({})", next(self))
            }
            10 => {
                let of = self.one(&["t", "'800 Mbps'", "String(v)", "(t + t)"]);
                match self.choose(3) {
                    0 => format!("{of}.{}", self.one(PLAIN_METHODS)),
                    1 => format!("{of}.slice({}, {})", next(self), next(self)),
                    _ => format!("{of}.substring({})", next(self)),
                }
            }
            11 => {
                let name = self.one(&["Math.min", "Math.max"]);
                format!("{name}({}, {})", next(self), next(self))
            }
            12 => format!("{}({})", self.one(FUNCTIONS), next(self)),
            13 => format!("`a${{{}}} ${{{}}}$`", next(self), next(self)),
            14 => match self.choose(2) {
                0 => format!("[{}, {}]", next(self), next(self)),
                _ => format!("({{x: {}, 'a b': {}, n}})", next(self), next(self)),
            },
            _ => match self
                .functions
                .get(self.bytes.len() % (self.functions.len() + 1))
                .cloned()
            {
                Some(function) => format!("{function}({})", next(self)),
                None => self.leaf(),
            },
        }
    }

    fn leaf(&mut self) -> String {
        match self.choose(8) {
            0 | 1 => self.one(NUMBERS).to_owned(),
            2 => self.one(TEXTS).to_owned(),
            3 => self.one(OTHERS).to_owned(),
            4 => self.one(&["n", "t", "n", "t"]).to_owned(),
            _ => {
                let index = self.choose(self.names.len());
                self.names[index].clone()
            }
        }
    }

    fn number_value(&mut self) -> Json {
        match self.choose(8) {
            0 => json!(-0.0),
            1 => json!(i64::MAX),
            2 => json!(u64::MAX),
            3 => {
                let mut bits = [0; 8];
                for byte in &mut bits {
                    *byte = self.bytes.next().copied().unwrap_or(0x40);
                }
                json!(f64::from_bits(u64::from_le_bytes(bits)))
            }
            4 => json!(self.choose(256)),
            _ => {
                let number = self.one(NUMBERS).replace('_', "");
                number.parse::<f64>().map_or(Json::Null, |number| {
                    match number.fract() == 0.0 && number < 1e15 {
                        true => json!(-(number as i64)),
                        false => json!(number),
                    }
                })
            }
        }
    }

    fn text_value(&mut self) -> Json {
        let text = self.one(TEXTS);
        Json::String(text[1..text.len() - 1].to_owned())
    }

    fn any_value(&mut self, depth: usize) -> Json {
        match self.choose(8) {
            0 => Json::Null,
            1 => Json::Bool(self.choose(2) == 0),
            2 | 3 => self.number_value(),
            4 if depth > 0 => self.object_value(depth),
            5 if depth > 0 => self.list_value(depth),
            _ => self.text_value(),
        }
    }

    fn object_value(&mut self, depth: usize) -> Json {
        let mut object = json!({});
        for _ in 0..self.choose(4) {
            let key = self.one(&["x", "y", "z", "1", "a b", "length"]);
            object[key] = self.any_value(depth - 1);
        }
        object
    }

    fn list_value(&mut self, depth: usize) -> Json {
        (0..self.choose(4)).map(|_| self.any_value(depth - 1)).collect()
    }
}
