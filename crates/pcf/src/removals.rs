//! What consumers have not confirmed. Entries of decisions that are removed: a resynchronisation with the whole decision removes them
//! as well, since what a consumer gets is merged into what it has (TS 29.512 §4.2.6.2). And the records of notifications in the
//! store, which go when the consumer has them.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use ahash::AHashMap;
use notifier::Notification;
use parking_lot::Mutex;
use serde_json::{Map, Value};

use crate::association::AssociationId;

/// Associations with removals that are not confirmed, and removals of each. More are of consumers that are gone for long.
const MOST: usize = 16_384;
const MOST_EACH: usize = 512;

/// What of an association is not confirmed.
#[derive(Debug, Default)]
struct Pending {
    /// Its removals, as a change that has them alone.
    removals: Map<String, Value>,
    /// Its notifications with a record: what they are known by here, in order, and the number of the record.
    records: Vec<(u64, u64)>,
}

/// The removals and notifications that are not confirmed.
#[derive(Debug, Default)]
pub(crate) struct Removals {
    pending: Mutex<AHashMap<AssociationId, Pending>>,
    /// The last mark that was given.
    last: AtomicU64,
    /// The record of the last events that each AF session was sent.
    events: Mutex<AHashMap<(AssociationId, String), u64>>,
}

impl Removals {
    /// An AF session is sent events, which have this record.
    pub(crate) fn note_events(&self, id: AssociationId, session: &str, record: u64) {
        let mut events = self.events.lock();
        if events.len() >= MOST {
            events.clear();
        }
        events.insert((id, session.to_owned()), record);
    }

    /// Whether an AF session was sent events after those of this record: they may say the contrary.
    pub(crate) fn has_later(&self, id: AssociationId, session: &str, record: u64) -> bool {
        let last = self.events.lock().get(&(id, session.to_owned())).copied();
        last.is_some_and(|last| last != record)
    }

    /// A change goes to the consumer of an association; `record` is its record in the store. What its notification is known by; 0:
    /// it is not known, and its record is taken up again.
    pub(crate) fn note(&self, id: AssociationId, change: &Map<String, Value>, record: Option<u64>) -> u64 {
        let nulls = nulls(change);
        if nulls.is_empty() && record.is_none() {
            return 0;
        }
        let mut all = self.pending.lock();
        if all.len() >= MOST && !all.contains_key(&id) {
            return 0;
        }
        let Pending {
            removals: known,
            records,
        } = all.entry(id).or_default();
        if known.values().map(count).sum::<usize>() < MOST_EACH {
            for (section, entries) in nulls {
                match (known.get_mut(&section), entries) {
                    (Some(Value::Object(known)), Value::Object(entries)) => known.extend(entries),
                    (_, entries) => drop(known.insert(section, entries)),
                }
            }
        }
        let Some(number) = record.filter(|_| records.len() < MOST_EACH) else {
            return 0;
        };
        let mark = self.last.fetch_add(1, Relaxed) + 1;
        records.retain(|(_, known)| *known != number);
        records.push((mark, number));
        mark
    }

    /// What a notification with the present decision of an association is known by: it stands for those so far.
    pub(crate) fn latest(&self, id: AssociationId) -> u64 {
        let all = self.pending.lock();
        all.get(&id)
            .and_then(|pending| pending.records.last())
            .map_or(0, |(mark, _)| *mark)
    }

    /// The consumer of an association has taken a notification: the numbers of the records that go.
    pub(crate) fn delivered(&self, id: AssociationId, notification: &Notification) -> Vec<u64> {
        let mut all = self.pending.lock();
        let Some(Pending {
            removals: known,
            records,
        }) = all.get_mut(&id)
        else {
            return Vec::new();
        };
        let body: Value = serde_json::from_slice(&notification.body).unwrap_or_default();
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
        let stands_for =
            |mark: u64| mark == notification.mark || notification.whole && mark < notification.mark;
        let confirmed = records.iter().filter(|(mark, _)| stands_for(*mark));
        let confirmed = confirmed.map(|(_, number)| *number).collect();
        records.retain(|(mark, _)| !stands_for(*mark));
        if known.is_empty() && records.is_empty() {
            all.remove(&id);
        }
        confirmed
    }

    /// A whole decision with the removals of what it does not have.
    pub(crate) fn complete(&self, id: AssociationId, mut decision: Map<String, Value>) -> Map<String, Value> {
        let all = self.pending.lock();
        let removals = all.get(&id).map(|pending| &pending.removals);
        for (section, entries) in removals.into_iter().flatten() {
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
        self.pending.lock().remove(&id);
    }
}

fn count(entries: &Value) -> usize {
    entries.as_object().map_or(1, Map::len)
}

/// What of a change is null: members, and entries of members.
pub(crate) fn nulls(change: &Map<String, Value>) -> Map<String, Value> {
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

    #[test]
    fn events_of_before_are_not_repeated_after_later_ones() {
        let (removals, id) = (Removals::default(), AssociationId([7; 16]));
        assert!(!removals.has_later(id, "a", 1), "of before a restart");
        removals.note_events(id, "a", 1);
        removals.note_events(id, "b", 2);
        assert!(!removals.has_later(id, "a", 1));
        removals.note_events(id, "a", 3);
        assert!(removals.has_later(id, "a", 1) && !removals.has_later(id, "a", 3));
        assert!(!removals.has_later(id, "b", 2));
    }
    use serde_json::json;

    fn object(value: Value) -> Map<String, Value> {
        value.as_object().cloned().unwrap_or_default()
    }

    fn notification(body: &str, whole: bool, mark: u64) -> Notification {
        Notification {
            subscription: "one".into(),
            subject: "one".into(),
            whole,
            target: http::Uri::from_static("http://smf.example/update"),
            callback: "Update",
            body: body.as_bytes().to_vec().into(),
            set: None,
            mark,
        }
    }

    #[test]
    fn removals_stay_until_one_of_them_is_delivered() {
        let (removals, id) = (Removals::default(), AssociationId([7; 16]));
        let delivered = |body: &str| removals.delivered(id, &notification(body, false, 0));
        let change = json!({"pccRules": {"a": null, "b": {"x": 1}, "c": null}, "umDecs": {"u": null}, "triggers": null});
        removals.note(id, &object(change), None);
        let whole = || object(json!({"pccRules": {"c": {"again": 1}, "d": {}}}));
        let expected = json!({"pccRules": {"c": {"again": 1}, "d": {}, "a": null}, "umDecs": {"u": null}, "triggers": null});
        assert_eq!(Value::Object(removals.complete(id, whole())), expected);
        let body =
            json!({"resourceUri": "x", "smPolicyDecision": {"pccRules": {"a": null}, "triggers": null}});
        delivered(&body.to_string());
        let expected = json!({"pccRules": {"c": {"again": 1}, "d": {}}, "umDecs": {"u": null}});
        assert_eq!(Value::Object(removals.complete(id, whole())), expected);
        delivered(&expected.to_string());
        delivered(r#"{"pccRules": {"c": null}}"#);
        assert!(removals.pending.lock().is_empty());
        removals.note(id, &object(json!({"pccRules": {"a": {}}})), None);
        assert!(removals.pending.lock().is_empty());
    }

    #[test]
    fn a_record_goes_with_its_notification_or_a_later_whole_one() {
        let (removals, id) = (Removals::default(), AssociationId([7; 16]));
        let change = object(json!({"pccRules": {"a": {}}}));
        let marks: Vec<u64> = (10..14)
            .map(|number| removals.note(id, &change, Some(number)))
            .collect();
        let delivered = |whole: bool, mark: u64| removals.delivered(id, &notification("{}", whole, mark));
        assert_eq!(delivered(false, 0), Vec::<u64>::new(), "another's");
        assert_eq!(delivered(false, marks[1]), [11]);
        let whole = removals.latest(id);
        // A change after the whole decision was read is not among those that it stands for.
        let late = removals.note(id, &change, Some(14));
        assert_eq!(delivered(true, whole), [10, 12, 13]);
        assert_eq!(delivered(true, late), [14]);
        assert!(removals.pending.lock().is_empty());
    }
}
