//! All subscriptions, filed so that a change meets only those that can be about it.

use std::collections::BTreeMap;
use std::sync::Arc;

use ahash::{AHashMap, AHashSet};
use bytes::Bytes;
use serde_json::{Value, json};
use time::OffsetDateTime;

use super::condition::{Condition, FileKey};
use super::subscription::{Subscription, Target};
use crate::registry::{ChangeKind, Entry, ProfileChange};

/// The book of subscriptions. Pure: time is an argument, and what is to be sent comes out.
#[derive(Debug, Default)]
pub struct Book {
    by_id: BTreeMap<String, Arc<Subscription>>,
    filed: AHashMap<FileKey, AHashSet<String>>,
    /// The load that subscribers were last told of, by instance.
    told_load: AHashMap<model::NfInstanceId, u8>,
}

/// A notification to be delivered.
#[derive(Clone, Debug)]
pub struct Notification {
    /// For which subscription.
    pub subscription: String,
    /// Where to.
    pub target: Target,
    /// `NotificationData`; subscribers told the same share the bytes.
    pub body: Bytes,
}

/// How changes are told.
#[derive(Clone, Copy, Debug)]
pub struct Telling {
    /// A new load is told only when it differs from the last one told by this much, in points.
    pub load_threshold: u8,
    /// Tell changes as `profileChanges` instead of the whole profile.
    pub as_changes: bool,
}

impl Book {
    /// Adds or replaces a subscription.
    pub fn put(&mut self, subscription: Arc<Subscription>) {
        self.remove(&subscription.id);
        for key in subscription.condition.file_keys() {
            self.filed.entry(key).or_default().insert(subscription.id.clone());
        }
        self.by_id.insert(subscription.id.clone(), subscription);
    }

    /// Removes a subscription; answers it, if there was one.
    pub fn remove(&mut self, id: &str) -> Option<Arc<Subscription>> {
        let before = self.by_id.remove(id)?;
        for key in before.condition.file_keys() {
            if let Some(ids) = self.filed.get_mut(&key) {
                ids.remove(id);
                if ids.is_empty() {
                    self.filed.remove(&key);
                }
            }
        }
        Some(before)
    }

    /// A subscription.
    #[must_use]
    pub fn get(&self, id: &str) -> Option<&Arc<Subscription>> {
        self.by_id.get(id)
    }

    /// How many there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.by_id.len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.by_id.is_empty()
    }

    /// All of them.
    pub fn iter(&self) -> impl Iterator<Item = &Arc<Subscription>> {
        self.by_id.values()
    }

    /// Ids of those that have ended at `now`.
    #[must_use]
    pub fn expired(&self, now: OffsetDateTime) -> Vec<String> {
        self.by_id
            .values()
            .filter(|one| one.valid_until <= now)
            .map(|one| one.id.clone())
            .collect()
    }

    /// What is to be sent because of a change. `root` is the API root that instance URIs begin with.
    pub fn tell(
        &mut self,
        change: &ProfileChange,
        telling: Telling,
        root: &str,
        now: OffsetDateTime,
    ) -> Vec<Notification> {
        if self.by_id.is_empty() || !self.load_is_news(change, telling) {
            return Vec::new();
        }
        let mut candidates: AHashSet<&String> = AHashSet::new();
        for entry in [&change.before, &change.after].into_iter().flatten() {
            for key in Condition::keys_of(&entry.profile) {
                candidates.extend(self.filed.get(&key).into_iter().flatten());
            }
        }
        let mut bodies = Bodies::new(change, telling, root);
        let mut out = Vec::new();
        for id in candidates {
            let Some(subscription) = self.by_id.get(id).filter(|one| one.valid_until > now) else {
                continue;
            };
            if let Some(body) = bodies.for_subscription(subscription) {
                let (id, target) = (subscription.id.clone(), subscription.target.clone());
                out.push(Notification {
                    subscription: id,
                    target,
                    body,
                });
            }
        }
        // The order of a set is not one; people who read logs and tests want one.
        out.sort_by(|a, b| a.subscription.cmp(&b.subscription));
        out
    }

    /// A heart-beat that only moves the load is news past the threshold (`nfNotifyLoadThreshold`).
    fn load_is_news(&mut self, change: &ProfileChange, telling: Telling) -> bool {
        let Some(after) = &change.after else {
            if let Some(before) = &change.before {
                self.told_load.remove(&before.id);
            }
            return true;
        };
        let load = after.load.unwrap_or(0);
        if change.kind == ChangeKind::HeartBeat {
            let before = change.before.as_ref();
            if before.is_some_and(|before| before.status != after.status) {
                self.told_load.insert(after.id, load);
                return true;
            }
            let told = self.told_load.get(&after.id).copied();
            let told = told
                .or_else(|| before.and_then(|before| before.load))
                .unwrap_or(0);
            if load.abs_diff(told) < telling.load_threshold.max(1) {
                self.told_load.entry(after.id).or_insert(told);
                return false;
            }
        }
        self.told_load.insert(after.id, load);
        true
    }
}

/// The bodies of one change, each made at most once.
struct Bodies<'a> {
    change: &'a ProfileChange,
    telling: Telling,
    uri: String,
    changes: Option<Vec<Value>>,
    made: AHashMap<&'static str, Bytes>,
}

impl<'a> Bodies<'a> {
    fn new(change: &'a ProfileChange, telling: Telling, root: &str) -> Self {
        let id = change
            .subject()
            .map(|entry| entry.id.to_string())
            .unwrap_or_default();
        let uri = format!("{root}/nnrf-nfm/v1/nf-instances/{id}");
        Self {
            change,
            telling,
            uri,
            changes: None,
            made: AHashMap::new(),
        }
    }

    /// The body for a subscription; `None` when it is not to be told.
    fn for_subscription(&mut self, subscription: &Subscription) -> Option<Bytes> {
        let concerns = |entry: &Option<Arc<Entry>>| {
            entry
                .as_ref()
                .is_some_and(|entry| subscription.concerns(&entry.profile))
        };
        let (before, after) = (concerns(&self.change.before), concerns(&self.change.after));
        // A profile that begins or ceases to fit the condition is as good as new or gone, and says so
        // (`conditionEvent`, TS 29.510 §6.1.6.2.17).
        let (event, condition_event) = match (before, after) {
            (_, true) if self.change.before.is_none() => ("NF_REGISTERED", None),
            (true, _) if self.change.after.is_none() => ("NF_DEREGISTERED", None),
            (true, true) => ("NF_PROFILE_CHANGED", None),
            (false, true) => ("NF_PROFILE_CHANGED", Some("NF_ADDED")),
            (true, false) => ("NF_PROFILE_CHANGED", Some("NF_REMOVED")),
            (false, false) => return None,
        };
        if !subscription.wants(event) {
            return None;
        }
        if event == "NF_PROFILE_CHANGED" && condition_event.is_none() {
            let pointers: Vec<String> = self.changes().iter().filter_map(pointer_of).collect();
            if pointers.is_empty() || !subscription.wants_changes(&pointers) {
                return None;
            }
        }
        let key = condition_event.unwrap_or(event);
        if let Some(body) = self.made.get(key) {
            return Some(body.clone());
        }
        let body = self.make(event, condition_event);
        self.made.insert(key, body.clone());
        Some(body)
    }

    fn changes(&mut self) -> &[Value] {
        let change = self.change;
        self.changes
            .get_or_insert_with(|| match (&change.before, &change.after) {
                (Some(before), Some(after)) => changes_between(before, after),
                _ => Vec::new(),
            })
    }

    fn make(&mut self, event: &str, condition_event: Option<&str>) -> Bytes {
        let mut out = format!("{{\"event\":\"{event}\",\"nfInstanceUri\":{}", json!(self.uri));
        if let Some(condition_event) = condition_event {
            out.push_str(&format!(",\"conditionEvent\":\"{condition_event}\""));
        }
        if self.telling.as_changes && event == "NF_PROFILE_CHANGED" && condition_event.is_none() {
            out.push_str(",\"profileChanges\":");
            out.push_str(&Value::from(self.changes().to_vec()).to_string());
        } else if let Some(after) = self
            .change
            .after
            .as_ref()
            .filter(|_| condition_event != Some("NF_REMOVED"))
        {
            out.push_str(",\"nfProfile\":");
            // Profiles are JSON texts, which are UTF-8.
            out.push_str(&String::from_utf8_lossy(&after.public_document()));
        }
        out.push('}');
        out.into()
    }
}

fn pointer_of(change: &Value) -> Option<String> {
    change.get("path").and_then(Value::as_str).map(str::to_owned)
}

/// `ChangeItem`s (TS 29.571 §5.2.4.15), by top-level member and, inside lists of the same length, by item.
fn changes_between(before: &Entry, after: &Entry) -> Vec<Value> {
    if before.shares_text(after) {
        let mut changes = Vec::new();
        let mut moved =
            |name: &str, old: Value, new: Value| push_change(&mut changes, &format!("/{name}"), &old, &new);
        moved(
            "nfStatus",
            before.status.as_str().into(),
            after.status.as_str().into(),
        );
        moved("load", before.load.into(), after.load.into());
        let stamp = |entry: &Entry| Value::from(entry.load_time_stamp.as_deref());
        moved("loadTimeStamp", stamp(before), stamp(after));
        return changes;
    }
    let parse = |entry: &Entry| serde_json::from_slice::<Value>(&entry.public_document()).unwrap_or_default();
    let mut changes = Vec::new();
    compare("", &parse(before), &parse(after), 0, &mut changes);
    changes
}

/// How deep changes are told apart; below that a value has changed as a whole.
const DEPTH: usize = 3;

fn compare(place: &str, before: &Value, after: &Value, depth: usize, changes: &mut Vec<Value>) {
    match (before, after) {
        (Value::Object(old), Value::Object(new)) if depth < DEPTH => {
            for (name, value) in old {
                let place = format!("{place}/{}", model::shape::escape(name));
                compare(
                    &place,
                    value,
                    new.get(name).unwrap_or(&Value::Null),
                    depth + 1,
                    changes,
                );
            }
            for (name, value) in new.iter().filter(|(name, _)| !old.contains_key(*name)) {
                let place = format!("{place}/{}", model::shape::escape(name));
                push_change(changes, &place, &Value::Null, value);
            }
        }
        (Value::Array(old), Value::Array(new)) if depth < DEPTH && old.len() == new.len() => {
            for (i, (old, new)) in old.iter().zip(new).enumerate() {
                compare(&format!("{place}/{i}"), old, new, depth + 1, changes);
            }
        }
        _ => push_change(changes, place, before, after),
    }
}

fn push_change(changes: &mut Vec<Value>, place: &str, before: &Value, after: &Value) {
    if before == after {
        return;
    }
    changes.push(match (before, after) {
        (Value::Null, new) => json!({"op": "ADD", "path": place, "newValue": new}),
        (old, Value::Null) => json!({"op": "REMOVE", "path": place, "origValue": old}),
        (old, new) => json!({"op": "REPLACE", "path": place, "origValue": old, "newValue": new}),
    });
}

#[cfg(test)]
mod tests;
