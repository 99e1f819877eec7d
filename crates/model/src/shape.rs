//! What a JSON value must look like, as data; what is wrong with one, with pointers.
//!
//! [`Shape`]s are statics; [`Shape::check`] walks a value and collects every fault (up to a bound), each with
//! the JSON pointer of the offending place and a sentence that says what was expected. Members a shape does
//! not name are always allowed: 3GPP data types are open (TS 29.501 §5.2.4).

pub mod rules;
pub mod spellings;

use std::borrow::Cow;
use std::fmt::Write as _;

use serde_json::{Map, Value};
use smallvec::SmallVec;

/// Faults collected before the walk gives up: enough to mend a body, not enough to be an amplifier.
pub const MAX_FAULTS: usize = 20;

/// Values that get another spelling at most: far more than a peer of practice writes in an unusual way.
const MAX_RESPELT: usize = 256;

/// Something wrong with a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// JSON pointer (RFC 6901) of the place.
    pub pointer: String,
    /// A sentence: what was expected.
    pub expected: Cow<'static, str>,
    /// Whether something mandatory is missing, rather than something present being wrong.
    pub missing: bool,
    /// Whether the member could have been left out.
    pub optional: bool,
}

/// A rule over a text: `Err` says what was expected.
pub type TextRule = fn(&str) -> Result<(), Cow<'static, str>>;
/// The one spelling of a text, where the text is another.
pub type Respelling = fn(&str) -> Option<String>;
/// A rule over a whole object, beyond its members one by one; it names the member it blames.
pub type ObjectRule = fn(&Map<String, Value>) -> Result<(), (&'static str, &'static str)>;

/// What a value must be.
#[derive(Clone, Copy, Debug)]
pub enum Shape {
    /// Anything.
    Any,
    /// `true` or `false`.
    Bool,
    /// A whole number within bounds, both included.
    Integer(i64, i64),
    /// Any number.
    Number,
    /// Any text without control characters.
    Text,
    /// A text that a rule accepts.
    Rule(TextRule),
    /// A text that a rule accepts and that has one spelling for those who read it later: the function returns that
    /// spelling where the text is another.
    Spelled(TextRule, Respelling),
    /// A list of at least one.
    List(&'static Shape),
    /// A list that may be empty.
    MaybeEmpty(&'static Shape),
    /// An object whose members all have one shape; at least one member.
    Map(&'static Shape),
    /// An object whose members all have one shape; without members it means none.
    MaybeEmptyMap(&'static Shape),
    /// An object of named members.
    Object(&'static Object),
    /// A shape that has a name of its own.
    Of(&'static Shape),
    /// `null`, or a value of this shape (`nullable` of OpenAPI).
    Nullable(&'static Shape),
}

/// An object: its members, and what must hold between them.
#[derive(Debug)]
pub struct Object {
    /// The members it knows.
    pub members: &'static [Member],
    /// What must hold beyond them.
    pub rule: Option<ObjectRule>,
}

/// A member of an object.
#[derive(Debug)]
pub struct Member {
    /// Its name.
    pub name: &'static str,
    /// Whether it must be there.
    pub required: bool,
    /// Whether nothing depends on it, so that a value that cannot be read may be dropped ([`crate::tolerance`]).
    pub soft: bool,
    /// What it must be.
    pub shape: Shape,
}

/// A member that may be there.
#[must_use]
pub const fn opt(name: &'static str, shape: Shape) -> Member {
    Member {
        name,
        required: false,
        soft: false,
        shape,
    }
}

/// A member that may be there and on which nothing depends: where it cannot be read, it counts as absent.
#[must_use]
pub const fn soft(name: &'static str, shape: Shape) -> Member {
    Member {
        name,
        required: false,
        soft: true,
        shape,
    }
}

/// A member that must be there.
#[must_use]
pub const fn req(name: &'static str, shape: Shape) -> Member {
    Member {
        name,
        required: true,
        soft: false,
        shape,
    }
}

/// What a walk through a value has found.
#[derive(Debug, Default)]
pub struct Report {
    /// Everything wrong with the value, at most [`MAX_FAULTS`].
    pub faults: Vec<Fault>,
    /// Values that have one spelling for those who read them later and are spelled otherwise, with that spelling: a
    /// text ([`Shape::Spelled`]), or a whole number that came with a fraction or an exponent.
    pub respelt: Vec<(String, Value)>,
    /// Whether an optional member is `null` where any value may stand.
    pub null: bool,
}

impl Report {
    /// Whether the value may stay as it is.
    #[must_use]
    pub fn is_clean(&self) -> bool {
        self.faults.is_empty() && self.respelt.is_empty() && !self.null
    }
}

impl Shape {
    /// Everything wrong with the value, at most [`MAX_FAULTS`].
    #[must_use]
    pub fn check(&self, value: &Value) -> Vec<Fault> {
        self.examine(value).faults
    }

    /// As [`Shape::check`], with what is right and spelled in an unusual way.
    #[must_use]
    pub fn examine(&self, value: &Value) -> Report {
        let mut walk = Walk {
            place: SmallVec::new(),
            optional: false,
            found: Report::default(),
        };
        walk.check(self, value);
        walk.found
    }
}

/// A step to a place in a value.
#[derive(Clone, Copy)]
enum Step<'v> {
    Member(&'v str),
    Item(usize),
}

struct Walk<'v> {
    /// The way to the place: a pointer is made of it only where there is a fault.
    place: SmallVec<[Step<'v>; 16]>,
    /// Whether the innermost member that is named may be left out.
    optional: bool,
    found: Report,
}

impl<'v> Walk<'v> {
    fn fault(&mut self, expected: impl Into<Cow<'static, str>>, missing: bool) {
        if self.found.faults.len() < MAX_FAULTS {
            self.found.faults.push(Fault {
                pointer: self.pointer(),
                expected: expected.into(),
                missing,
                optional: self.optional && !missing,
            });
        }
    }

    fn respell(&mut self, spelling: Value) {
        if self.found.respelt.len() < MAX_RESPELT {
            self.found.respelt.push((self.whole_pointer(), spelling));
        } else {
            self.fault("expected fewer values in an unusual spelling", false);
        }
    }

    fn pointer(&self) -> String {
        let mut pointer = String::new();
        for step in &self.place {
            // Writing to a String cannot fail.
            let _ = match step {
                Step::Member(name) => write!(pointer, "/{}", escape(name)),
                Step::Item(index) => write!(pointer, "/{index}"),
            };
        }
        pointer
    }

    /// The pointer with names as they are, by which the value is found.
    fn whole_pointer(&self) -> String {
        let mut pointer = String::new();
        for step in &self.place {
            // Writing to a String cannot fail.
            let _ = match step {
                Step::Member(name) => write!(pointer, "/{}", name.replace('~', "~0").replace('/', "~1")),
                Step::Item(index) => write!(pointer, "/{index}"),
            };
        }
        pointer
    }

    fn below(&mut self, step: Step<'v>, inner: impl FnOnce(&mut Self)) {
        self.place.push(step);
        inner(self);
        self.place.pop();
    }

    fn check(&mut self, shape: &Shape, value: &'v Value) {
        match shape {
            Shape::Any => {}
            Shape::Of(named) => self.check(named, value),
            Shape::Nullable(named) => {
                if !value.is_null() {
                    self.check(named, value);
                }
            }
            Shape::Number => {
                if !value.is_number() {
                    self.fault("expected a number", false);
                }
            }
            Shape::Bool => {
                if !value.is_boolean() {
                    self.fault("expected true or false", false);
                }
            }
            Shape::Integer(min, max) => {
                let plain = value.as_i64();
                let number = plain.or_else(|| whole(value));
                match number.filter(|number| (*min..=*max).contains(number)) {
                    Some(number) if plain.is_none() => self.respell(number.into()),
                    Some(_) => {}
                    None => self.fault(bounds(*min, *max), false),
                }
            }
            Shape::Text => match value.as_str() {
                None => self.fault("expected a string", false),
                // They go into logs, tables and terminals.
                Some(text) if text.chars().any(char::is_control) => {
                    self.fault("expected a string without control characters", false);
                }
                Some(_) => {}
            },
            Shape::Rule(rule) | Shape::Spelled(rule, _) => match value.as_str() {
                None => self.fault("expected a string", false),
                Some(text) => match (rule(text), shape) {
                    (Err(expected), _) => self.fault(expected, false),
                    (Ok(()), Shape::Spelled(_, respelling)) => {
                        if let Some(spelling) = respelling(text) {
                            self.respell(spelling.into());
                        }
                    }
                    (Ok(()), _) => {}
                },
            },
            Shape::List(items) | Shape::MaybeEmpty(items) => match value.as_array() {
                None => self.fault("expected an array", false),
                Some(list) => {
                    if list.is_empty() && matches!(shape, Shape::List(_)) {
                        self.fault("expected at least one item; leave the member out instead", false);
                    }
                    for (i, item) in list.iter().enumerate() {
                        if self.found.faults.len() >= MAX_FAULTS {
                            break;
                        }
                        self.below(Step::Item(i), |walk| walk.check(items, item));
                    }
                }
            },
            Shape::Map(values) | Shape::MaybeEmptyMap(values) => match value.as_object() {
                None => self.fault("expected an object", false),
                Some(map) => {
                    if map.is_empty() && matches!(shape, Shape::Map(_)) {
                        self.fault(
                            "expected at least one member; leave the object out instead",
                            false,
                        );
                    }
                    for (key, item) in map {
                        if self.found.faults.len() >= MAX_FAULTS {
                            break;
                        }
                        self.below(Step::Member(key), |walk| walk.check(values, item));
                    }
                }
            },
            Shape::Object(object) => match value.as_object() {
                None => self.fault("expected an object", false),
                Some(map) => self.object(object, map),
            },
        }
    }

    fn object(&mut self, object: &Object, map: &'v Map<String, Value>) {
        let mut sound = true;
        for member in object.members {
            match map.get(member.name) {
                Some(Value::Null) if !member.required && matches!(member.shape, Shape::Any) => {
                    self.found.null = true;
                }
                Some(value) => {
                    let before = self.found.faults.len();
                    let outer = std::mem::replace(&mut self.optional, !member.required);
                    self.below(Step::Member(member.name), |walk| walk.check(&member.shape, value));
                    self.optional = outer;
                    sound &= before == self.found.faults.len();
                }
                None if member.required => {
                    sound = false;
                    self.below(Step::Member(member.name), |walk| {
                        walk.fault("expected this member, which is mandatory", true);
                    });
                }
                None => {}
            }
        }
        // A rule between members says nothing useful about members that are wrong themselves.
        if sound
            && let Some(rule) = object.rule
            && let Err((name, expected)) = rule(map)
        {
            let missing = !name.is_empty() && !map.contains_key(name);
            if name.is_empty() {
                self.fault(expected, false);
            } else {
                self.below(Step::Member(name), |walk| walk.fault(expected, missing));
            }
        }
    }
}

/// A whole number that came as `6.0` or `1e2` (JSON has one kind of number).
fn whole(value: &Value) -> Option<i64> {
    value
        .as_f64()
        .filter(|number| number.fract() == 0.0 && number.abs() < 9e15)
        .map(|number| number as i64)
}

fn bounds(min: i64, max: i64) -> Cow<'static, str> {
    match (min, max) {
        (i64::MIN, i64::MAX) => "expected a whole number".into(),
        (min, i64::MAX) => format!("expected a whole number of at least {min}").into(),
        (min, max) => format!("expected a whole number from {min} to {max}").into(),
    }
}

/// A member name as a step of a JSON pointer. Long names of strangers are cut: pointers go into answers.
#[must_use]
pub fn escape(name: &str) -> Cow<'_, str> {
    const LONGEST: usize = 64;
    let name = match name.char_indices().nth(LONGEST) {
        Some((end, _)) => &name[..end],
        None => name,
    };
    if name.contains(['~', '/']) {
        name.replace('~', "~0").replace('/', "~1").into()
    } else {
        name.into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    static INNER: Shape = Shape::Object(&Object {
        members: &[
            req("id", Shape::Rule(rules::uuid)),
            opt("n", Shape::Integer(0, 100)),
        ],
        rule: None,
    });
    static OUTER: Shape = Shape::Object(&Object {
        members: &[
            opt("list", Shape::List(&INNER)),
            opt("a/b", Shape::Bool),
            opt("map", Shape::Map(&INNER)),
        ],
        rule: Some(|map| {
            if map.contains_key("a/b") || map.contains_key("list") {
                Ok(())
            } else {
                Err(("list", "expected list or a/b"))
            }
        }),
    });

    fn faults(text: &str) -> Vec<(String, String)> {
        OUTER
            .check(&serde_json::from_str(text).unwrap())
            .into_iter()
            .map(|fault| (fault.pointer, fault.expected.into_owned()))
            .collect()
    }

    #[test]
    fn every_fault_is_told_with_its_place() {
        let found = faults(r#"{"list":[{"id":"x","n":101},{}],"a/b":1,"map":{"k~":{"id":7}}}"#);
        let places: Vec<_> = found.iter().map(|(place, _)| place.as_str()).collect();
        assert_eq!(
            places,
            ["/list/0/id", "/list/0/n", "/list/1/id", "/a~1b", "/map/k~0/id"]
        );
        assert_eq!(found[1].1, "expected a whole number from 0 to 100");
        assert_eq!(
            faults("{}"),
            [("/list".to_owned(), "expected list or a/b".to_owned())]
        );
        assert_eq!(faults(r#"{"list":[]}"#)[0].0, "/list");
        assert_eq!(faults("[]"), [(String::new(), "expected an object".to_owned())]);
    }

    #[test]
    fn faults_are_bounded() {
        let many = format!(r#"{{"list":[{}1]}}"#, "1,".repeat(10_000));
        assert_eq!(faults(&many).len(), MAX_FAULTS);
    }

    #[test]
    fn text_rules() {
        use rules::*;
        for good in ["amf1.5gc.mnc001.mcc240.3gppnetwork.org", "a.bc", "x.example.com."] {
            assert_eq!(fqdn(good), Ok(()), "{good}");
        }
        for bad in ["localhost", "-a.com", "a..com", "a.c", "a.1com", "a_b.com", ""] {
            assert!(fqdn(bad).is_err(), "{bad}");
        }
        assert!(
            uri("http://a").is_ok()
                && uri("urn:x").is_ok()
                && uri("/path").is_err()
                && uri("http://a b").is_err()
        );
        assert!(group_id("A1B2C3D4-240-01-AB12").is_ok() && group_id("A1B2C3D4-240-01-AB1").is_err());
        assert!(ipv6("2001:db8::1").is_ok() && ipv6("::ffff:1.2.3.4").is_err());
        assert!(date_time("2024-05-01T12:00:00.123Z").is_ok() && date_time("yesterday").is_err());
        for good in ["/a/b", "a", "", "/", "/x-1.2_3~%20;v=1", "a/b/"] {
            assert_eq!(api_prefix(good), Ok(()), "{good}");
        }
        for bad in [
            "http://",
            "ftp://127.0.0.1:37710",
            "http://127.0.0.1:99999",
            "http://u:p@127.0.0.1:37710",
            "/a\r\nHost: x",
            "/a?b",
            "/a#b",
            "/a b",
            "/../x",
            "/a/.",
            "/a\\b",
            "é",
        ] {
            assert!(api_prefix(bad).is_err(), "{bad}");
        }
        assert!(token("CUSTOM_X-1.2").is_ok() && token(&"x".repeat(64)).is_ok());
        for bad in ["", "A B", "A\nB", "\u{1b}[31m", "é", &"x".repeat(65)] {
            assert!(token(bad).is_err(), "{bad}");
        }
        assert!(amf_set("3ff").is_ok() && amf_set("400").is_err());
        for bad in ["2027-03-29_02:30:00Z", "2027-03-29-02:30:00Z", "2027-03-29 "] {
            assert!(date_time(bad).is_err(), "{bad}");
        }
        let names = ["amf", "pcf.core1", "smf-0.smf"];
        assert!(with_host_names(true, || names
            .iter()
            .all(|name| fqdn(name).is_ok())));
        assert!(with_host_names(true, || [
            "10.0.0.1",
            "999.1.1.1",
            "a b",
            "",
            "a..b"
        ]
        .iter()
        .all(|name| fqdn(name).is_err())));
        for name in ["amf", "pcf.core1"] {
            assert!(fqdn(name).is_err(), "{name}: only where it is asked for");
        }
    }

    #[test]
    fn unusual_spellings_have_a_usual_one() {
        use spellings::*;
        for (from, to) in [
            ("2001:DB8::1", "2001:db8::1"),
            ("2001:0db8::1", "2001:db8::1"),
            ("::FFFF:102:304", "0:0:0:0:0:ffff:102:304"),
        ] {
            assert_eq!(ipv6(from).as_deref(), Some(to));
        }
        assert_eq!(ipv6_prefix("2001:DB8::/32").as_deref(), Some("2001:db8::/32"));
        for from in ["2001:db8::1", "0:0:0:0:0:0:0:1", "::", "::1"] {
            assert_eq!(ipv6(from), None, "{from}");
        }
        for (from, to) in [
            ("2016-12-31T23:59:60Z", "2016-12-31T23:59:59Z"),
            ("2016-12-31t23:59:60.5+00:00", "2016-12-31T23:59:59.5+00:00"),
            ("2024-05-01 12:00:00z", "2024-05-01T12:00:00Z"),
        ] {
            assert!(rules::date_time(from).is_ok(), "{from}");
            assert_eq!(date_time(from).as_deref(), Some(to));
        }
        assert_eq!(date_time("2024-05-01T12:00:00Z"), None);
        let shape = Shape::Integer(0, 100);
        let found = shape.examine(&serde_json::json!(6.0));
        assert_eq!(
            (found.faults.len(), found.respelt),
            (0, vec![(String::new(), 6.into())])
        );
        assert!(
            !shape.check(&serde_json::json!(6.5)).is_empty()
                && !shape.check(&serde_json::json!(1e3)).is_empty()
        );
    }
}
