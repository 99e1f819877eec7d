//! What other NRF sets have registered, beside what is registered with this one.

use std::collections::BTreeMap;
use std::sync::Arc;

use ahash::{AHashMap, AHashSet};
use model::{NfInstanceId, NfStatus};
use registry::{ChangeKind, Entry};

use super::{Key, Registrar};
use crate::growth::Retrieved;

/// The profiles of the other sets, by set: also those that a registration with this set hides.
pub(super) type OtherSets = BTreeMap<Arc<str>, AHashMap<NfInstanceId, Arc<Entry>>>;

impl Registrar {
    /// Takes what is registered with another set.
    pub(super) fn other_set(&mut self, state: Retrieved) {
        let before = self.others.remove(&state.set).unwrap_or_default();
        let mut affected: AHashSet<NfInstanceId> = before.keys().copied().collect();
        let mut after = AHashMap::with_capacity(state.entries.len());
        for entry in state.entries {
            let id = entry.id;
            affected.insert(id);
            let same = before
                .get(&id)
                .filter(|known| known.fingerprint() == entry.fingerprint());
            after.insert(id, same.cloned().unwrap_or_else(|| Arc::new(entry)));
        }
        self.others.insert(state.set, after);
        for id in affected {
            self.settle(id);
        }
    }

    /// Shows what other sets say of an instance, unless it is registered with this one. A registration with this set whose
    /// heart-beats stopped does not hide that the NF is alive at another.
    pub(super) fn settle(&mut self, id: NfInstanceId) {
        // What changes just now is settled when the change is made.
        if self.others.is_empty() || self.is_busy(&Key::Nf(id)) {
            return;
        }
        let shown = self.published.load().get(&id).cloned();
        let theirs = chosen(&self.others, id, shown.as_ref());
        match (shown, theirs) {
            (Some(ours), theirs) if ours.is_ours() => {
                let theirs = theirs.filter(|theirs| theirs.status == NfStatus::Registered);
                if let Some(theirs) = theirs.filter(|_| self.suspended.contains_key(&id)) {
                    self.order(Key::Nf(id), |registrar| Ok(registrar.hand_over(ours, theirs)));
                }
            }
            (Some(before), Some(after)) if !Arc::ptr_eq(&before, &after) => {
                let kind = match before.differs_in_loads_only(&after) {
                    true => ChangeKind::HeartBeat,
                    false => ChangeKind::Updated,
                };
                self.publish(kind, Some(before), Some(after));
            }
            (None, Some(after)) => self.publish(ChangeKind::Registered, None, Some(after)),
            (Some(before), None) => self.publish(ChangeKind::Deregistered, Some(before), None),
            (Some(_), Some(_)) | (None, None) => {}
        }
    }
}

/// What is shown of an instance that other sets have: a registration that is alive, and the one shown before if there
/// are several.
fn chosen(sets: &OtherSets, id: NfInstanceId, shown: Option<&Arc<Entry>>) -> Option<Arc<Entry>> {
    let known_before = |entry: &Arc<Entry>| shown.is_some_and(|shown| shown.set == entry.set);
    let all = sets.values().filter_map(|set| set.get(&id));
    let best = all.max_by_key(|entry| (entry.status == NfStatus::Registered, known_before(entry)));
    best.cloned()
}

#[cfg(test)]
mod tests {
    use super::*;

    const ID: &str = "4947a69a-f61b-4bc1-b9da-47c9c5d14b64";

    fn entry(set: &str, status: &str) -> Arc<Entry> {
        let text = format!(
            r#"{{"nfInstanceId":"{ID}","nfType":"UDM","nfStatus":"{status}","fqdn":"{set}.example.com"}}"#
        );
        Arc::new(Entry::parse(text.as_bytes(), |_| 30).unwrap().of_set(set.into()))
    }

    #[test]
    fn a_live_registration_is_shown_before_a_suspended_one() {
        let set =
            |entry: &Arc<Entry>| -> AHashMap<_, _> { [(entry.id, entry.clone())].into_iter().collect() };
        let (east, west) = (entry("east", "SUSPENDED"), entry("west", "REGISTERED"));
        let mut sets: OtherSets = [("east".into(), set(&east)), ("west".into(), set(&west))].into();
        let shown = |sets: &OtherSets, before: Option<&Arc<Entry>>| {
            let shown = chosen(sets, east.id, before).unwrap();
            shown.set.clone().unwrap()
        };
        assert_eq!(&*shown(&sets, Some(&east)), "west");
        let alive = entry("east", "REGISTERED");
        sets.insert("east".into(), set(&alive));
        assert_eq!(&*shown(&sets, Some(&west)), "west", "the one shown before stays");
        assert_eq!(&*shown(&sets, Some(&alive)), "east");
    }
}
