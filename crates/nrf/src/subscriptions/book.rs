//! All subscriptions, indexed so that a change is tested only by those that may match it.

use std::collections::BTreeMap;
use std::sync::Arc;

use ahash::{AHashMap, AHashSet};
use bytes::Bytes;
use model::nf_profile::Allowed;
use notifier::Notification;
use registry::{ChangeKind, Entry, ProfileChange};
use serde_json::{Value, json};
use time::OffsetDateTime;

use super::condition::{Condition, FileKey};
use super::subscription::Subscription;

/// The book of subscriptions. Pure: time is an argument, and the notifications are the result.
#[derive(Debug, Default)]
pub struct Book {
    by_id: BTreeMap<String, Arc<Subscription>>,
    filed: AHashMap<FileKey, AHashSet<String>>,
    /// The loads that subscribers were last notified of, by instance: its own, then those of its services.
    notified_load: AHashMap<model::NfInstanceId, Box<[u8]>>,
}

/// How changes are notified.
#[derive(Clone, Copy, Debug)]
pub struct Notifying {
    /// A new load is notified only when it differs from the last one notified by this much, in points.
    pub load_threshold: u8,
    /// Whether notifications carry `profileChanges` instead of the whole profile.
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

    /// Removes and returns a subscription.
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

    /// Returns the notifications of a change. `root` is the API root that instance URIs begin with.
    pub fn notify(
        &mut self,
        change: &ProfileChange,
        notifying: Notifying,
        root: &str,
        now: OffsetDateTime,
    ) -> Vec<Notification> {
        if self.by_id.is_empty() || !self.load_is_news(change, notifying) {
            return Vec::new();
        }
        let mut candidates: AHashSet<&String> = AHashSet::new();
        for entry in [&change.before, &change.after].into_iter().flatten() {
            for key in Condition::keys_of(&entry.profile) {
                candidates.extend(self.filed.get(&key).into_iter().flatten());
            }
        }
        let mut bodies = Bodies::new(change, notifying, root);
        let mut out = Vec::new();
        for id in candidates {
            let Some(subscription) = self.by_id.get(id).filter(|one| one.valid_until > now) else {
                continue;
            };
            if let Some(body) = bodies.for_subscription(subscription) {
                out.push(bodies.notification(subscription, body));
            }
        }
        // A set has no order; sorted notifications make logs and tests reproducible.
        out.sort_by(|a, b| a.subscription.cmp(&b.subscription));
        out
    }

    /// Returns the notification of the present state of an NF instance: registered, as `entry`, or not registered.
    #[must_use]
    pub fn present(
        &self,
        subscription: &str,
        instance: &str,
        entry: Option<&Arc<Entry>>,
        root: &str,
        now: OffsetDateTime,
    ) -> Option<Notification> {
        let subscription = self.by_id.get(subscription).filter(|one| one.valid_until > now)?;
        let after = entry
            .filter(|entry| subscription.concerns(&entry.profile))
            .cloned();
        let (kind, events): (_, &[&str]) = match after {
            Some(_) => (ChangeKind::Registered, &["NF_REGISTERED", "NF_PROFILE_CHANGED"]),
            None => (ChangeKind::Deregistered, &["NF_DEREGISTERED"]),
        };
        let event = events.iter().find(|event| subscription.wants(event))?;
        let change = ProfileChange {
            kind,
            before: None,
            after,
        };
        let notifying = Notifying {
            load_threshold: 0,
            as_changes: false,
        };
        let mut bodies = Bodies::of(&change, notifying, root, instance.into());
        let abroad = subject_is_abroad(&change, subscription);
        let body = bodies.make(event, None, abroad);
        Some(bodies.notification(subscription, body))
    }

    /// Whether a changed load is to be notified: only past the threshold (`nfNotifyLoadThreshold`).
    fn load_is_news(&mut self, change: &ProfileChange, notifying: Notifying) -> bool {
        let Some(after) = &change.after else {
            if let Some(before) = &change.before {
                self.notified_load.remove(&before.id);
            }
            return true;
        };
        let loads = loads_of(after);
        if change.kind == ChangeKind::HeartBeat
            && let Some(before) = &change.before
            && before.status == after.status
        {
            let notified = self.notified_load.entry(after.id);
            let notified = notified.or_insert_with(|| loads_of(before));
            let threshold = notifying.load_threshold.max(1);
            let moved = |(notified, load): (&u8, &u8)| notified.abs_diff(*load) >= threshold;
            if notified.len() == loads.len() && !notified.iter().zip(&loads).any(moved) {
                return false;
            }
        }
        self.notified_load.insert(after.id, loads);
        true
    }
}

/// The load of an NF, and those of its services; 0 where one has none.
fn loads_of(entry: &Entry) -> Box<[u8]> {
    let services = entry.profile.services().map(|service| service.load);
    let all = std::iter::once(entry.load).chain(services);
    all.map(Option::unwrap_or_default).collect()
}

/// The bodies of one change, each made at most once.
struct Bodies<'a> {
    change: &'a ProfileChange,
    notifying: Notifying,
    instance: Arc<str>,
    uri: String,
    changes: Option<Vec<Value>>,
    /// By event, and whether for a subscriber of another network.
    made: AHashMap<(&'static str, bool), Bytes>,
}

impl<'a> Bodies<'a> {
    fn new(change: &'a ProfileChange, notifying: Notifying, root: &str) -> Self {
        let instance = change.subject().map(|entry| entry.id.to_string());
        Self::of(change, notifying, root, instance.unwrap_or_default().into())
    }

    fn of(change: &'a ProfileChange, notifying: Notifying, root: &str, instance: Arc<str>) -> Self {
        let uri = format!("{root}/nnrf-nfm/v1/nf-instances/{instance}");
        Self {
            change,
            notifying,
            instance,
            uri,
            changes: None,
            made: AHashMap::new(),
        }
    }

    fn notification(&self, subscription: &Subscription, body: Bytes) -> Notification {
        Notification {
            subscription: subscription.id.as_str().into(),
            subject: self.instance.clone(),
            // `profileChanges` need the earlier notifications; only a whole profile replaces them.
            whole: !self.notifying.as_changes,
            target: subscription.target.uri.clone(),
            callback: "Nnrf_NFManagement_NFStatusNotify",
            body,
            set: None,
            mark: 0,
        }
    }

    /// The body for a subscription; `None` when it is not to be notified.
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
            let mut pointers: Vec<String> = self.changes().iter().filter_map(pointer_of).collect();
            pointers.extend(hidden_changes(self.change));
            if pointers.is_empty() || !subscription.wants_changes(&pointers) {
                return None;
            }
        }
        let abroad = subject_is_abroad(self.change, subscription);
        let key = (condition_event.unwrap_or(event), abroad);
        if let Some(body) = self.made.get(&key) {
            return Some(body.clone());
        }
        let body = self.make(event, condition_event, abroad);
        self.made.insert(key, body.clone());
        Some(body)
    }

    fn changes(&mut self) -> &[Value] {
        let change = self.change;
        self.changes
            .get_or_insert_with(|| match (&change.before, &change.after) {
                (Some(before), Some(after)) => changes_between(before, after, Lists::ByItem),
                _ => Vec::new(),
            })
    }

    /// The changes as they are notified: a list that has changed is replaced whole (TS 29.510 §6.1.6.2.17 note 2).
    fn whole_lists(&mut self) -> Vec<Value> {
        if !self
            .changes()
            .iter()
            .filter_map(pointer_of)
            .any(|at| in_list(&at))
        {
            return self.changes().to_vec();
        }
        match (&self.change.before, &self.change.after) {
            (Some(before), Some(after)) => changes_between(before, after, Lists::Whole),
            _ => Vec::new(),
        }
    }

    fn make(&mut self, event: &str, condition_event: Option<&str>, abroad: bool) -> Bytes {
        let mut out = format!("{{\"event\":\"{event}\",\"nfInstanceUri\":{}", json!(self.uri));
        if let Some(condition_event) = condition_event {
            out.push_str(&format!(",\"conditionEvent\":\"{condition_event}\""));
        }
        let changes = match self.notifying.as_changes && event == "NF_PROFILE_CHANGED" {
            true if condition_event.is_none() => self.whole_lists(),
            // None either where only hidden members changed: `profileChanges` has one item at least.
            _ => Vec::new(),
        };
        if !changes.is_empty() {
            out.push_str(",\"profileChanges\":");
            out.push_str(&Value::from(changes).to_string());
        } else if let Some(after) = &self.change.after {
            out.push_str(",\"nfProfile\":");
            // Profiles are JSON texts, which are UTF-8.
            out.push_str(&String::from_utf8_lossy(&after.public_document(abroad)));
        }
        out.push('}');
        out.into()
    }
}

/// The members that say who may use the NF, where they have changed. Notifications do not show them (TS 29.510 §6.1.6.2.2),
/// but the profile has changed: a subscriber may retrieve it.
fn hidden_changes(change: &ProfileChange) -> Vec<String> {
    let (Some(before), Some(after)) = (&change.before, &change.after) else {
        return Vec::new();
    };
    if before.shares_text(after) {
        return Vec::new();
    }
    let mut changed = Vec::new();
    let mut compare = |place: &str, before: &Allowed, after: &Allowed| {
        let lists = [
            ("allowedPlmns", before.plmns == after.plmns),
            ("allowedSnpns", before.snpns == after.snpns),
            ("allowedNfTypes", before.nf_types == after.nf_types),
            ("allowedNfDomains", before.nf_domains == after.nf_domains),
            ("allowedNssais", before.nssais == after.nssais),
        ];
        let differ = lists.iter().filter(|(_, same)| !same);
        changed.extend(differ.map(|(name, _)| format!("{place}/{name}")));
    };
    let (before, after) = (&before.profile, &after.profile);
    compare("", &before.allowed, &after.allowed);
    for (position, service) in after.services().enumerate() {
        let old = before.services().find(|old| {
            old.service_instance_id == service.service_instance_id && old.service_name == service.service_name
        });
        if let Some(old) = old {
            compare(&format!("/nfServices/{position}"), &old.allowed, &service.allowed);
        }
    }
    changed
}

fn pointer_of(change: &Value) -> Option<String> {
    change.get("path").and_then(Value::as_str).map(str::to_owned)
}

/// Whether a pointer leads into a list.
fn in_list(pointer: &str) -> bool {
    pointer
        .split('/')
        .any(|step| !step.is_empty() && step.bytes().all(|byte| byte.is_ascii_digit()))
}

/// Whether the subscriber is of another network than the NF.
fn subject_is_abroad(change: &ProfileChange, subscription: &Subscription) -> bool {
    let home = change.subject().map(|entry| &*entry.profile.plmn_list);
    subscription.requester.is_abroad(home.unwrap_or_default())
}

/// How changes inside of lists are described.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Lists {
    /// Item by item where both lists have the same length: what conditions of subscriptions are matched against.
    ByItem,
    /// As one change of the list.
    Whole,
}

/// `ChangeItem`s (TS 29.571 §5.2.4.15), member by member.
fn changes_between(before: &Entry, after: &Entry, lists: Lists) -> Vec<Value> {
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
    let parse =
        |entry: &Entry| serde_json::from_slice::<Value>(&entry.public_document(false)).unwrap_or_default();
    let mut changes = Vec::new();
    compare("", &parse(before), &parse(after), (0, lists), &mut changes);
    changes
}

/// How deep changes are distinguished; below that a value has changed as a whole.
const DEPTH: usize = 3;

fn compare(
    place: &str,
    before: &Value,
    after: &Value,
    (depth, lists): (usize, Lists),
    changes: &mut Vec<Value>,
) {
    match (before, after) {
        (Value::Object(old), Value::Object(new)) if depth < DEPTH => {
            for (name, value) in old {
                let place = format!("{place}/{}", model::shape::escape(name));
                compare(
                    &place,
                    value,
                    new.get(name).unwrap_or(&Value::Null),
                    (depth + 1, lists),
                    changes,
                );
            }
            for (name, value) in new.iter().filter(|(name, _)| !old.contains_key(*name)) {
                let place = format!("{place}/{}", model::shape::escape(name));
                push_change(changes, &place, &Value::Null, value);
            }
        }
        (Value::Array(old), Value::Array(new))
            if lists == Lists::ByItem && depth < DEPTH && old.len() == new.len() =>
        {
            for (i, (old, new)) in old.iter().zip(new).enumerate() {
                compare(&format!("{place}/{i}"), old, new, (depth + 1, lists), changes);
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
