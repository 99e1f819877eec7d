//! Values that stand for none: what peers of practice send where they have nothing to say.
//!
//! `model::tolerance` reads optional members that are null, or empty lists and maps, as absent. Here an empty text where a rule
//! asks for more, and -1 as the age of a location, are absent as well. A member of a wrong type stays a fault.

use std::borrow::Cow;

use model::shape::{Fault, Member, Object, Shape};
use model::tolerance::{self, Dropped, Why};
use serde_json::{Map, Value};

/// Members of an ARP that are empty have the values that an ARP without them has (TS 29.212 §5.3.46, §5.3.47).
const DEFAULTS: [(&str, &str); 2] = [("preemptCap", "NOT_PREEMPT"), ("preemptVuln", "PREEMPTABLE")];
/// Values that are dropped at most.
const MOST: usize = 256;

/// Checks a value and takes out of it what counts as absent; with `strict` nothing does.
///
/// # Errors
/// What is wrong beyond that. The value may have lost members.
pub(crate) fn settle(shape: &Shape, value: &mut Value, strict: bool) -> Result<Vec<Dropped>, Vec<Fault>> {
    let faults = shape.check(value);
    match (faults.is_empty(), strict) {
        (true, _) => return Ok(Vec::new()),
        (false, true) => return Err(faults),
        (false, false) => {}
    }
    let mut walk = Walk::default();
    walk.value(shape, value);
    let mut dropped = tolerance::settle(shape, value, false)?;
    dropped.append(&mut walk.dropped);
    Ok(dropped)
}

#[derive(Default)]
struct Walk {
    pointer: String,
    member: String,
    dropped: Vec<Dropped>,
}

impl Walk {
    fn below(&mut self, step: &str, named: &str, inner: impl FnOnce(&mut Self)) {
        let (pointer, member) = (self.pointer.len(), self.member.len());
        self.pointer.push('/');
        self.pointer.push_str(&model::shape::escape(step));
        self.member.push('/');
        self.member.push_str(named);
        inner(self);
        self.pointer.truncate(pointer);
        self.member.truncate(member);
    }

    fn value(&mut self, shape: &Shape, value: &mut Value) {
        if self.dropped.len() >= MOST {
            return;
        }
        match (shape, value) {
            (Shape::Of(named) | Shape::Nullable(named), value) => self.value(named, value),
            (Shape::List(items) | Shape::MaybeEmpty(items), Value::Array(list)) => {
                for (at, item) in list.iter_mut().enumerate() {
                    self.below(&at.to_string(), "*", |walk| walk.value(items, item));
                }
            }
            (Shape::Map(values) | Shape::MaybeEmptyMap(values), Value::Object(map)) => {
                for (key, value) in map.iter_mut() {
                    self.below(key, "*", |walk| walk.value(values, value));
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
            self.below(member.name, member.name, |walk| walk.value(&member.shape, value));
            let Some(why) = blank(&member.shape, value) else {
                continue;
            };
            let default = DEFAULTS.iter().find(|(name, _)| *name == member.name);
            match (default, member) {
                (Some((_, default)), _) => *value = (*default).into(),
                (None, Member { required: false, .. }) => drop(map.shift_remove(member.name)),
                _ => continue,
            }
            self.below(member.name, member.name, |walk| {
                walk.dropped.push(Dropped {
                    pointer: walk.pointer.clone(),
                    member: walk.member.clone(),
                    why: Why::Unreadable(why),
                });
            });
        }
    }
}

/// Why a value stands for none, if it does.
fn blank(shape: &Shape, value: &Value) -> Option<Cow<'static, str>> {
    match (shape, value) {
        (Shape::Of(named) | Shape::Nullable(named), value) => blank(named, value),
        (Shape::Rule(rule), Value::String(text)) if text.trim().is_empty() => rule(text).err(),
        // An age of location information, in minutes.
        (Shape::Integer(0, 32_767), value) if value.as_i64() == Some(-1) => Some("expected an age".into()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shape::SM_CONTEXT;
    use serde_json::json;

    fn context(more: &Value) -> Value {
        let mut body = json!({"supi": "imsi-1", "pduSessionId": 1, "pduSessionType": "IPV4", "dnn": "internet",
            "notificationUri": "http://smf/n", "sliceInfo": {"sst": 1}});
        for (name, value) in more.as_object().unwrap() {
            body[name] = value.clone();
        }
        body
    }

    #[test]
    fn what_stands_for_nothing_is_absent_and_named() {
        let age = json!({"nrLocation": {"ageOfLocationInformation": -1, "tai": {"tac": "1"}}});
        for (more, member, left) in [
            (json!({"gpsi": ""}), "/gpsi", json!({})),
            (json!({"pei": ""}), "/pei", json!({})),
            (json!({"ratType": null}), "/ratType", json!({})),
            (json!({"interGrpIds": []}), "/interGrpIds", json!({})),
            (
                json!({"userLocationInfo": age}),
                "/userLocationInfo/nrLocation/ageOfLocationInformation",
                json!({"userLocationInfo": {"nrLocation": {"tai": {"tac": "1"}}}}),
            ),
            (
                json!({"subsDefQos": {"5qi": 8, "arp": {"priorityLevel": 8, "preemptCap": "", "preemptVuln": ""}}}),
                "/subsDefQos/arp/preemptCap",
                json!({"subsDefQos": {"5qi": 8, "arp": {"priorityLevel": 8, "preemptCap": "NOT_PREEMPT",
                    "preemptVuln": "PREEMPTABLE"}}}),
            ),
        ] {
            let mut body = context(&more);
            assert!(settle(&SM_CONTEXT, &mut body.clone(), true).is_err(), "{more}");
            let dropped = settle(&SM_CONTEXT, &mut body, false).unwrap();
            assert!(dropped.iter().any(|one| one.member == member), "{dropped:?}");
            assert_eq!(body, context(&left));
        }
    }

    #[test]
    fn what_is_wrong_or_mandatory_stays_a_fault() {
        for more in [
            json!({"gpsi": 7}),
            json!({"supi": ""}),
            json!({"supi": null}),
            json!({"ipv4Address": "10.0.0"}),
            json!({"pduSessionId": -1}),
            json!({"subsDefQos": {"5qi": 8, "arp": {"priorityLevel": 8, "preemptCap": 7, "preemptVuln": ""}}}),
        ] {
            assert!(settle(&SM_CONTEXT, &mut context(&more), false).is_err(), "{more}");
        }
    }
}
