//! Tolerance of what prevents nothing (TS 29.500 table 5.2.7.2-1: OPTIONAL_IE_INCORRECT is for a value that prevents the
//! processing of the request).
//!
//! * A member that is `null` is absent; so is an optional list or map without entries.
//! * A member on which nothing depends ([`crate::shape::soft`]) and which cannot be read is absent.
//!
//! Everything else that is wrong stays a fault: who may use a service, which subscribers it serves or where it is must
//! not be guessed. The caller counts and logs what was dropped, by [`Dropped::member`] and sender.

use std::borrow::Cow;

use serde_json::{Map, Value};

use crate::shape::{Fault, Member, Object, Shape};

/// Members dropped at most; with more of them the value is refused.
const MAX_DROPPED: usize = 256;

/// A member that counts as absent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Dropped {
    /// JSON pointer (RFC 6901) of the member in the value as it was sent.
    pub pointer: String,
    /// The same with `*` for positions in lists and keys of maps: there are as many as the shape has members.
    pub member: String,
    /// Why.
    pub why: Why,
}

/// Why a member counts as absent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Why {
    /// It is `null`.
    Null,
    /// It is a list or a map without entries where one is expected.
    Empty,
    /// It cannot be read, and nothing depends on it: what was expected.
    Unreadable(Cow<'static, str>),
}

impl Why {
    /// A word for logs.
    #[must_use]
    pub fn as_str(&self) -> &str {
        match self {
            Self::Null => "null",
            Self::Empty => "empty",
            Self::Unreadable(expected) => expected,
        }
    }
}

/// What counts in the place of a member that has nothing to say.
#[derive(Clone, Debug, PartialEq)]
pub enum Stead {
    /// Nothing: the member is absent.
    Absent,
    /// This value, for a member that must be there.
    Value(Value),
}

/// What else counts as absent among the values of one service, and what is expected of such a member.
pub type Blank = fn(&Member, &Value) -> Option<(Stead, Cow<'static, str>)>;

/// Checks a value and takes out of it what counts as absent; with `strict` nothing does.
///
/// # Errors
/// What is wrong beyond that. The value may have lost members.
pub fn settle(shape: &Shape, value: &mut Value, strict: bool) -> Result<Vec<Dropped>, Vec<Fault>> {
    settle_with(shape, value, strict, |_, _| None)
}

/// As [`settle`], with what `blank` takes for nothing.
///
/// # Errors
/// As there.
pub fn settle_with(
    shape: &Shape,
    value: &mut Value,
    strict: bool,
    blank: Blank,
) -> Result<Vec<Dropped>, Vec<Fault>> {
    let found = shape.examine(value);
    if strict || (found.faults.is_empty() && !found.null) {
        return if found.faults.is_empty() {
            Ok(Vec::new())
        } else {
            Err(found.faults)
        };
    }
    let mut walk = Walk {
        blank,
        pointer: String::new(),
        member: String::new(),
        dropped: Vec::new(),
    };
    walk.mend(shape, value);
    if walk.dropped.is_empty() || walk.dropped.len() > MAX_DROPPED {
        return if found.faults.is_empty() {
            Ok(Vec::new())
        } else {
            Err(found.faults)
        };
    }
    let left = shape.check(value);
    if left.is_empty() {
        Ok(walk.dropped)
    } else {
        Err(left)
    }
}

struct Walk {
    blank: Blank,
    pointer: String,
    member: String,
    dropped: Vec<Dropped>,
}

impl Walk {
    fn below(&mut self, step: &str, named: bool, inner: impl FnOnce(&mut Self)) {
        let (pointer, member) = (self.pointer.len(), self.member.len());
        self.pointer.push('/');
        // Whole, unlike in faults: the text of the member is found by it.
        self.pointer.push_str(&step.replace('~', "~0").replace('/', "~1"));
        self.member.push('/');
        self.member.push_str(if named { step } else { "*" });
        inner(self);
        self.pointer.truncate(pointer);
        self.member.truncate(member);
    }

    fn mend(&mut self, shape: &Shape, value: &mut Value) {
        if self.dropped.len() > MAX_DROPPED {
            return;
        }
        match (shape, value) {
            (Shape::Of(named) | Shape::Nullable(named), value) => self.mend(named, value),
            (Shape::List(items) | Shape::MaybeEmpty(items), Value::Array(list)) => {
                for (at, item) in list.iter_mut().enumerate() {
                    self.below(&at.to_string(), false, |walk| walk.mend(items, item));
                }
            }
            (Shape::Map(values) | Shape::MaybeEmptyMap(values), Value::Object(map)) => {
                for (key, value) in map.iter_mut() {
                    self.below(key, false, |walk| walk.mend(values, value));
                }
            }
            (Shape::Object(object), Value::Object(map)) => self.members(object, map),
            _ => {}
        }
    }

    fn members(&mut self, object: &Object, map: &mut Map<String, Value>) {
        for member in object.members {
            let Some(value) = map.get_mut(member.name) else {
                continue;
            };
            let mut stead = None;
            self.below(member.name, true, |walk| {
                if !value.is_null() {
                    walk.mend(&member.shape, value);
                }
                let blank = (walk.blank)(member, value);
                let blank = blank.map(|(stead, expected)| (stead, Why::Unreadable(expected)));
                let absent = || absence(member, value).map(|why| (Stead::Absent, why));
                if let Some((found, why)) = blank.or_else(absent) {
                    stead = Some(found);
                    walk.dropped.push(Dropped {
                        pointer: walk.pointer.clone(),
                        member: walk.member.clone(),
                        why,
                    });
                }
            });
            match stead {
                Some(Stead::Absent) => drop(map.shift_remove(member.name)),
                Some(Stead::Value(stead)) => drop(map.insert(member.name.to_owned(), stead)),
                None => {}
            }
        }
    }
}

/// Why a member counts as absent, if it does.
fn absence(member: &Member, value: &Value) -> Option<Why> {
    if member.required {
        return None;
    }
    let shape = match &member.shape {
        Shape::Of(named) => named,
        shape => shape,
    };
    match (shape, value) {
        (Shape::Nullable(_), Value::Null) => None,
        (_, Value::Null) => Some(Why::Null),
        (Shape::List(_), Value::Array(list)) if list.is_empty() => Some(Why::Empty),
        (Shape::Map(_), Value::Object(map)) if map.is_empty() => Some(Why::Empty),
        _ if member.soft => {
            let first = shape.check(value).into_iter().next()?;
            Some(Why::Unreadable(first.expected))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::shape::{opt, req, rules, soft};

    static INNER: Shape = Shape::Object(&Object {
        members: &[
            req("id", Shape::Text),
            soft("since", Shape::Rule(rules::date_time)),
            opt("share", Shape::Integer(0, 100)),
            opt("any", Shape::Any),
            opt("names", Shape::List(&Shape::Text)),
        ],
        rule: None,
    });
    static OUTER: Shape = Shape::Object(&Object {
        members: &[
            opt("list", Shape::List(&INNER)),
            opt("map", Shape::Map(&INNER)),
            soft("one", Shape::Of(&INNER)),
        ],
        rule: None,
    });

    fn settled(mut value: Value) -> (Result<Vec<String>, Vec<String>>, Value) {
        let found = settle(&OUTER, &mut value, false);
        let members = |dropped: Vec<Dropped>| dropped.into_iter().map(|one| one.member).collect();
        let places = |faults: Vec<Fault>| faults.into_iter().map(|one| one.pointer).collect();
        (found.map(members).map_err(places), value)
    }

    #[test]
    fn null_and_empty_members_are_absent_wherever_they_stand() {
        let (found, left) = settled(json!({
            "list": [{"id": "a", "share": null, "x": null, "any": null}, {"id": "b", "names": []}],
            "map": {},
            "one": null,
        }));
        let members = ["/list/*/share", "/list/*/any", "/list/*/names", "/map", "/one"];
        assert_eq!(found.unwrap(), members);
        assert_eq!(left, json!({"list": [{"id": "a", "x": null}, {"id": "b"}]}));
    }

    #[test]
    fn a_soft_member_that_cannot_be_read_is_absent() {
        let (found, left) =
            settled(json!({"map": {"k/": {"id": "a", "since": "yesterday"}}, "one": {"id": 7}}));
        assert_eq!(found.unwrap(), ["/map/*/since", "/one"]);
        assert_eq!(left, json!({"map": {"k/": {"id": "a"}}}));
    }

    #[test]
    fn everything_else_stays_a_fault() {
        for (value, place) in [
            (json!({"list": [{"id": null}]}), "/list/0/id"),
            (json!({"list": [{"id": "a", "share": 101}]}), "/list/0/share"),
            (json!({"list": [null]}), "/list/0"),
            (json!({"map": {"k": {"since": 1}}}), "/map/k/id"),
        ] {
            assert_eq!(settled(value).0.unwrap_err(), [place]);
        }
    }

    #[test]
    fn strict_means_that_nothing_is_dropped() {
        let mut value = json!({"map": {}, "one": null});
        assert_eq!(settle(&OUTER, &mut value, true).unwrap_err().len(), 2);
        let many: Vec<Value> = (0..300).map(|_| json!({"id": "a", "share": null})).collect();
        assert!(
            settle(&OUTER, &mut json!({"list": many}), false).is_err(),
            "bounded"
        );
    }
}
