//! Changes of profiles, which subscriptions match and notifications report.

use std::sync::Arc;

use crate::Entry;

/// Kind of change. The event of the notification follows from it (TS 29.510 §5.2.2.6).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ChangeKind {
    /// A new instance: `NF_REGISTERED`.
    Registered,
    /// Replaced or patched by its owner: `NF_PROFILE_CHANGED`.
    Updated,
    /// Only load, status or time stamp moved, as heart-beats do: `NF_PROFILE_CHANGED`, subject to the
    /// load threshold.
    HeartBeat,
    /// Its heart-beats stopped; the profile is kept as `SUSPENDED`: `NF_PROFILE_CHANGED`.
    Suspended,
    /// Its heart-beats came back after that: `NF_PROFILE_CHANGED`.
    Resumed,
    /// Deregistered by its owner: `NF_DEREGISTERED`.
    Deregistered,
    /// Removed by the auditor, long after its last heart-beat: `NF_DEREGISTERED`.
    Expired,
}

/// A change of one profile, after it is durable and visible to readers.
#[derive(Clone, Debug)]
pub struct ProfileChange {
    /// Why.
    pub kind: ChangeKind,
    /// The profile before; `None` for a new one.
    pub before: Option<Arc<Entry>>,
    /// The profile after; `None` for a deregistered one.
    pub after: Option<Arc<Entry>>,
}

impl ProfileChange {
    /// The profile the change is about: as it is, or as it last was.
    #[must_use]
    pub fn subject(&self) -> Option<&Arc<Entry>> {
        self.after.as_ref().or(self.before.as_ref())
    }
}
