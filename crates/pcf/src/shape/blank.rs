//! Values that stand for none: what peers of practice send where they have nothing to say.
//!
//! `model::tolerance` reads optional members that are null, or empty lists and maps, as absent. Here an empty text where a rule
//! asks for more, and -1 as the age of a location, are absent as well. A member of a wrong type stays a fault.

use std::borrow::Cow;

use model::shape::{Fault, Member, Shape};
use model::tolerance::{Dropped, Stead, settle_with};
use serde_json::Value;

/// Members of an ARP that are empty have the values that an ARP without them has (TS 29.212 §5.3.46, §5.3.47).
const DEFAULTS: [(&str, &str); 2] = [("preemptCap", "NOT_PREEMPT"), ("preemptVuln", "PREEMPTABLE")];

/// Checks a value and takes out of it what counts as absent; with `strict` nothing does.
///
/// # Errors
/// What is wrong beyond that. The value may have lost members.
pub(crate) fn settle(shape: &Shape, value: &mut Value, strict: bool) -> Result<Vec<Dropped>, Vec<Fault>> {
    let faults = shape.check(value);
    match (faults.is_empty(), strict) {
        // A null may mean something to a patch, so that what has no fault stays as it is.
        (true, _) => Ok(Vec::new()),
        (false, true) => Err(faults),
        (false, false) => settle_with(shape, value, false, stead),
    }
}

/// What counts in the place of a member that is blank.
fn stead(member: &Member, value: &Value) -> Option<(Stead, Cow<'static, str>)> {
    let expected = blank(&member.shape, value)?;
    let default = DEFAULTS.iter().find(|(name, _)| *name == member.name);
    match default {
        Some((_, default)) => Some((Stead::Value((*default).into()), expected)),
        None if member.required => None,
        None => Some((Stead::Absent, expected)),
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
