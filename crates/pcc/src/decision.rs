//! Decisions (TS 29.512 `SmPolicyDecision`): composed of parts, compared with what an SMF has, sent as a change.

use serde_json::{Map, Value, json};
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

use crate::json::{self, Object};

/// Maps of rules and data by identifier, with the members of an entry that null removes (TS 29.512, OpenAPI: `nullable`).
/// A member that is not among them stays as it is where an entry loses it.
const SECTIONS: [(&str, &[&str]); 11] = [
    ("sessRules", &["refUmData", "refUmN3gData", "refCondData"]),
    (
        "pccRules",
        &[
            "refChgData",
            "refChgN3gData",
            "refUmData",
            "refUmN3gData",
            "refCondData",
            "refQosMon",
            "addrPreserInd",
            "disUeNotif",
        ],
    ),
    (
        "qosDecs",
        &[
            "maxbrUl",
            "maxbrDl",
            "gbrUl",
            "gbrDl",
            "priorityLevel",
            "averWindow",
            "maxDataBurstVol",
            "maxPacketLossRateDl",
            "maxPacketLossRateUl",
            "extMaxDataBurstVol",
        ],
    ),
    ("chgDecs", &[]),
    (
        "traffContDecs",
        &[
            "trafficSteeringPolIdDl",
            "trafficSteeringPolIdUl",
            "routeToLocs",
            "maxAllowedUpLat",
            "easIpReplaceInfos",
        ],
    ),
    (
        "umDecs",
        &[
            "volumeThreshold",
            "volumeThresholdUplink",
            "volumeThresholdDownlink",
            "timeThreshold",
            "monitoringTime",
            "nextVolThreshold",
            "nextVolThresholdUplink",
            "nextVolThresholdDownlink",
            "nextTimeThreshold",
            "inactivityTime",
            "exUsagePccRuleIds",
        ],
    ),
    ("qosChars", &[]),
    ("qosMonDecs", &[]),
    ("conds", &["activationTime", "deactivationTime"]),
    ("praInfos", &[]),
    ("pvsInfos", &[]),
];
/// Lists that parts add to.
const LISTS: [&str; 2] = ["policyCtrlReqTriggers", "lastReqRuleData"];

fn removable(section: &str) -> Option<&'static [&'static str]> {
    SECTIONS
        .iter()
        .find(|(name, _)| *name == section)
        .map(|(_, members)| *members)
}

/// Composes a decision of its parts: that of the policy project and those of AF sessions ([`crate::media::derive`]).
///
/// Entries of sections come together, the first part that has an identifier counts; null entries of a project (`remove`)
/// take an entry away from later parts too. Lists come together without repetition; of other members the first counts.
#[must_use]
pub fn compose<'a>(parts: impl IntoIterator<Item = &'a Value>) -> Value {
    Value::Object(compose_objects(parts.into_iter().filter_map(Value::as_object)))
}

/// As [`compose`], of objects.
#[must_use]
pub fn compose_objects<'a>(parts: impl IntoIterator<Item = &'a Map<String, Value>>) -> Map<String, Value> {
    let mut whole = Object::new();
    for (member, value) in parts.into_iter().flatten() {
        match (whole.get_mut(member), value) {
            (Some(Value::Object(entries)), Value::Object(more)) if removable(member).is_some() => {
                for (id, entry) in more {
                    entries.entry(id).or_insert_with(|| entry.clone());
                }
            }
            (Some(Value::Array(list)), Value::Array(more)) if LISTS.contains(&member.as_str()) => {
                for item in more {
                    if !list.contains(item) {
                        list.push(item.clone());
                    }
                }
            }
            (Some(_), _) => {}
            (None, _) => {
                whole.insert(member.clone(), value.clone());
            }
        }
    }
    without_removed(whole)
}

/// A decision without entries that were removed.
#[must_use]
pub fn without_removed(mut whole: Map<String, Value>) -> Map<String, Value> {
    for (section, _) in SECTIONS {
        if let Some(Value::Object(entries)) = whole.get_mut(section) {
            entries.retain(|_, entry| !entry.is_null());
            if entries.is_empty() {
                whole.remove(section);
            }
        }
    }
    whole
}

/// What an SMF that has `has` is to be sent so that it has `shall`, as an `SmPolicyDecision`; `None`: nothing.
///
/// New and changed entries are complete, with null for members that they lose; null stands for an entry that is removed
/// (TS 29.512 §4.2.6.2). Both arguments are complete decisions.
#[must_use]
pub fn difference(has: &Value, shall: &Value) -> Option<Value> {
    let mut change = Object::new();
    for (section, nullable) in SECTIONS {
        let mut entries = Object::new();
        for (id, new) in json::entries(shall, section) {
            let old = has.get(section).and_then(|old| old.get(id));
            if let Some(entry) = changed_entry(old, new, nullable) {
                entries.insert(id.to_owned(), entry);
            }
        }
        for (id, _) in json::entries(has, section) {
            if shall.get(section).and_then(|new| new.get(id)).is_none() {
                entries.insert(id.to_owned(), Value::Null);
            }
        }
        if !entries.is_empty() {
            change.insert(section.to_owned(), Value::Object(entries));
        }
    }
    for (member, new) in shall.as_object().into_iter().flatten() {
        if removable(member).is_none() && has.get(member) != Some(new) {
            change.insert(member.clone(), new.clone());
        }
    }
    let lost_triggers = "policyCtrlReqTriggers";
    if has.get(lost_triggers).is_some_and(|old| !old.is_null()) && shall.get(lost_triggers).is_none() {
        change.insert(lost_triggers.to_owned(), Value::Null);
    }
    (!change.is_empty()).then_some(Value::Object(change))
}

/// Has the consumer of a complete decision ask again at a time, or earlier where the decision says so (`revalidationTime`,
/// trigger `RE_TIMEOUT`).
pub fn revalidate(decision: &mut Value, at: OffsetDateTime) {
    let set = json::text(decision, "revalidationTime");
    let set = set.and_then(|set| OffsetDateTime::parse(set, &Rfc3339).ok());
    if set.is_some_and(|set| set <= at) {
        return;
    }
    let object = json::object(decision);
    json::put(object, "revalidationTime", at.format(&Rfc3339).ok());
    add_trigger(object, "RE_TIMEOUT");
}

/// Adds a policy control request trigger.
pub(crate) fn add_trigger(decision: &mut Object, trigger: &str) {
    let triggers = decision
        .entry("policyCtrlReqTriggers")
        .or_insert_with(|| json!([]));
    if let Value::Array(triggers) = triggers
        && !triggers.iter().any(|known| known == trigger)
    {
        triggers.push(trigger.into());
    }
}

fn changed_entry(old: Option<&Value>, new: &Value, nullable: &[&str]) -> Option<Value> {
    let Some(old) = old else {
        return Some(new.clone());
    };
    if old == new {
        return None;
    }
    let mut entry = new.clone();
    let object = json::object(&mut entry);
    let mut differs = object
        .iter()
        .any(|(member, value)| old.get(member) != Some(value));
    for member in nullable {
        if old.get(member).is_some() && !object.contains_key(*member) {
            object.insert((*member).to_owned(), Value::Null);
            differs = true;
        }
    }
    // An entry that only loses what cannot be removed cannot be sent as a change.
    differs.then_some(entry)
}

/// What an SMF has after it applied a change to what it had.
#[must_use]
pub fn apply(has: &Value, change: &Value) -> Value {
    let mut now = has.clone();
    json::merge_patch(&mut now, change);
    let object = json::object(&mut now);
    for (section, _) in SECTIONS {
        let empty = object
            .get(section)
            .and_then(Value::as_object)
            .is_some_and(Object::is_empty);
        if empty {
            object.remove(section);
        }
    }
    now
}

/// `SmPolicyNotification` of an update (TS 29.512 §4.2.3.2).
#[must_use]
pub fn notification(resource_uri: &str, change: Value) -> Value {
    json!({"resourceUri": resource_uri, "smPolicyDecision": change})
}

/// `TerminationNotification` (TS 29.512 §4.2.3.3), with a cause of `SmPolicyAssociationReleaseCause`.
#[must_use]
pub fn termination(resource_uri: &str, cause: &str) -> Value {
    json!({"resourceUri": resource_uri, "cause": cause})
}
