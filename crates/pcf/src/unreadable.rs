//! Associations that the store has and that cannot be read: a foreign writer, a defect, or an earlier release that wrote what
//! it could not read. What goes through many associations goes on beside them; each is logged once, and an alarm names them
//! until an operator deletes them (`DELETE /pcf/sessions/{id}`), which needs no reading.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;
use store::Unreadable;
use telemetry::{AlarmKind, Alarms, Severity};

use crate::association::AssociationId;

/// The number is ours.
pub(crate) const UNREADABLE: AlarmKind = AlarmKind {
    number: 10_563,
    name: "PCF Associations Unreadable",
    severity: Severity::Major,
    text: "The store has policy associations that cannot be read. Requests for them fail; everything else goes on beside them.",
    advice: "`signalbox pcf unreadable` lists all of them with the reason. DELETE at `/pcf/sessions/{id}` of the admin endpoint removes one.",
};
/// Associations whose identities are kept, so that each is logged once.
const MOST: usize = 1_024;

/// What is known of them.
#[derive(Debug)]
pub(crate) struct UnreadableAssociations {
    known: Mutex<BTreeSet<AssociationId>>,
    seen: AtomicU64,
    alarms: Mutex<Option<Alarms>>,
}

impl Default for UnreadableAssociations {
    fn default() -> Self {
        Self {
            known: Mutex::default(),
            seen: AtomicU64::new(0),
            alarms: Mutex::default(),
        }
    }
}

impl UnreadableAssociations {
    /// Raises alarms from now on.
    pub(crate) fn watch(&self, alarms: Alarms) {
        *self.alarms.lock() = Some(alarms);
    }

    /// How often one was met.
    pub(crate) fn seen(&self) -> u64 {
        self.seen.load(Ordering::Relaxed)
    }

    /// One was met.
    pub(crate) fn note(&self, one: &Unreadable) {
        self.met(&one.key, &one.error);
    }

    /// As [`Self::note`], by its key.
    pub(crate) fn met(&self, key: &[u8], error: &store::Error) {
        self.seen.fetch_add(1, Ordering::Relaxed);
        let Ok(id) = key.try_into().map(AssociationId) else {
            return tracing::error!(%error, "a policy association has no identity and cannot be read");
        };
        let mut known = self.known.lock();
        if known.len() >= MOST || !known.insert(id) {
            return;
        }
        tracing::error!(%id, %error, "a policy association cannot be read");
        self.report(&known);
    }

    /// One was deleted.
    pub(crate) fn removed(&self, id: AssociationId) {
        let mut known = self.known.lock();
        if known.remove(&id) {
            self.report(&known);
        }
    }

    fn report(&self, known: &BTreeSet<AssociationId>) {
        const SHOWN: usize = 5;
        let alarms = self.alarms.lock();
        let Some(alarms) = alarms.as_ref() else { return };
        let some: Vec<String> = known.iter().take(SHOWN).map(ToString::to_string).collect();
        let wrong =
            (!known.is_empty()).then(|| format!("{} of them, such as {}", known.len(), some.join(", ")));
        alarms.set(&UNREADABLE, "store", wrong);
    }
}
