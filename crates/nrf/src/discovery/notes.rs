//! Notes about the profiles that a selection drops.

use std::sync::Arc;

use ahash::AHashSet;
use model::NfInstanceId;
use registry::Entry;

use super::answer::Chosen;

/// Receiver of notes about dropped profiles.
pub(crate) trait Notes {
    /// Whether notes are read; if not, the selection does not make them.
    const WANTED: bool;

    /// A profile was dropped because of a parameter or a setting.
    fn dropped(&mut self, entry: &Arc<Entry>, by: &str, why: &'static str);
}

/// Discards notes; used by every discovery.
impl Notes for () {
    const WANTED: bool = false;

    fn dropped(&mut self, _: &Arc<Entry>, _: &str, _: &'static str) {}
}

/// Changes a list, and notes what is not in it any more.
pub(super) fn noting<N: Notes>(
    list: &mut Vec<Chosen>,
    notes: &mut N,
    (by, why): (&str, &'static str),
    change: impl FnOnce(&mut Vec<Chosen>),
) {
    if !N::WANTED {
        return change(list);
    }
    let before: Vec<Arc<Entry>> = list.iter().map(|one| one.entry.clone()).collect();
    change(list);
    let left: AHashSet<NfInstanceId> = list.iter().map(|one| one.entry.id).collect();
    for entry in before.iter().filter(|entry| !left.contains(&entry.id)) {
        notes.dropped(entry, by, why);
    }
}
