//! Entries of decisions whose removal a consumer has not confirmed: a resynchronisation with the whole decision removes them as
//! well, since what a consumer gets is merged into what it has (TS 29.512 §4.2.6.2).

use ahash::AHashMap;
use parking_lot::Mutex;
use serde_json::{Map, Value};

use crate::association::AssociationId;

/// Associations with removals that are not confirmed, and removals of each. More are of consumers that are gone for long.
const MOST: usize = 16_384;
const MOST_EACH: usize = 512;

/// The removals that are not confirmed, as a change that has them alone.
#[derive(Debug, Default)]
pub(crate) struct Removals(Mutex<AHashMap<AssociationId, Map<String, Value>>>);

impl Removals {
    /// A change goes to the consumer of an association.
    pub(crate) fn note(&self, id: AssociationId, change: &Map<String, Value>) {
        let nulls = nulls(change);
        if nulls.is_empty() {
            return;
        }
        let mut all = self.0.lock();
        if all.len() >= MOST && !all.contains_key(&id) {
            return;
        }
        let known = all.entry(id).or_default();
        if known.values().map(count).sum::<usize>() < MOST_EACH {
            for (section, entries) in nulls {
                match (known.get_mut(&section), entries) {
                    (Some(Value::Object(known)), Value::Object(entries)) => known.extend(entries),
                    (_, entries) => drop(known.insert(section, entries)),
                }
            }
        }
    }

    /// The consumer of an association has taken a notification with this body.
    pub(crate) fn delivered(&self, id: AssociationId, body: &[u8]) {
        let mut all = self.0.lock();
        let Some(known) = all.get_mut(&id) else { return };
        let body: Value = serde_json::from_slice(body).unwrap_or_default();
        let change = body.get("smPolicyDecision").unwrap_or(&body).as_object();
        for (section, entries) in nulls(change.unwrap_or(&Map::new())) {
            let is_empty = match (known.get_mut(&section), entries) {
                (Some(Value::Object(known)), Value::Object(entries)) => {
                    known.retain(|name, _| !entries.contains_key(name));
                    known.is_empty()
                }
                (known, _) => known.is_some(),
            };
            if is_empty {
                known.shift_remove(&section);
            }
        }
        if known.is_empty() {
            all.remove(&id);
        }
    }

    /// A whole decision with the removals of what it does not have.
    pub(crate) fn complete(&self, id: AssociationId, mut decision: Map<String, Value>) -> Map<String, Value> {
        let all = self.0.lock();
        for (section, entries) in all.get(&id).into_iter().flatten() {
            match (decision.get_mut(section), entries) {
                (Some(Value::Object(held)), Value::Object(entries)) => {
                    for name in entries.keys() {
                        held.entry(name).or_insert(Value::Null);
                    }
                }
                (None, entries) => drop(decision.insert(section.clone(), entries.clone())),
                _ => {}
            }
        }
        decision
    }

    /// An association has ended.
    pub(crate) fn forget(&self, id: AssociationId) {
        self.0.lock().remove(&id);
    }
}

fn count(entries: &Value) -> usize {
    entries.as_object().map_or(1, Map::len)
}

/// What of a change is null: members, and entries of members.
fn nulls(change: &Map<String, Value>) -> Map<String, Value> {
    let null_of = |(name, value): (&String, &Value)| match value {
        Value::Null => Some((name.clone(), Value::Null)),
        Value::Object(entries) => {
            let entries = entries.iter().filter(|(_, entry)| entry.is_null());
            let entries: Map<String, Value> = entries.map(|(id, _)| (id.clone(), Value::Null)).collect();
            (!entries.is_empty()).then(|| (name.clone(), Value::Object(entries)))
        }
        _ => None,
    };
    change.iter().filter_map(null_of).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn object(value: Value) -> Map<String, Value> {
        value.as_object().cloned().unwrap_or_default()
    }

    #[test]
    fn removals_stay_until_one_of_them_is_delivered() {
        let (removals, id) = (Removals::default(), AssociationId([7; 16]));
        let change = json!({"pccRules": {"a": null, "b": {"x": 1}, "c": null}, "umDecs": {"u": null}, "triggers": null});
        removals.note(id, &object(change));
        let whole = || object(json!({"pccRules": {"c": {"again": 1}, "d": {}}}));
        let expected = json!({"pccRules": {"c": {"again": 1}, "d": {}, "a": null}, "umDecs": {"u": null}, "triggers": null});
        assert_eq!(Value::Object(removals.complete(id, whole())), expected);
        let body =
            json!({"resourceUri": "x", "smPolicyDecision": {"pccRules": {"a": null}, "triggers": null}});
        removals.delivered(id, body.to_string().as_bytes());
        let expected = json!({"pccRules": {"c": {"again": 1}, "d": {}}, "umDecs": {"u": null}});
        assert_eq!(Value::Object(removals.complete(id, whole())), expected);
        removals.delivered(id, expected.to_string().as_bytes());
        removals.delivered(id, br#"{"pccRules": {"c": null}}"#);
        assert!(removals.0.lock().is_empty());
        removals.note(id, &object(json!({"pccRules": {"a": {}}})));
        assert!(removals.0.lock().is_empty());
    }
}
