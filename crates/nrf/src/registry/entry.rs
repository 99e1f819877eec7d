//! A registered profile: its text, what is understood of it, and what moves with heart-beats.

use std::sync::Arc;

use bytes::Bytes;
use model::{NfInstanceId, NfProfile, NfStatus, NfType};

/// A registered NF instance. Immutable: a change makes a new entry, which shares what did not change.
#[derive(Clone, Debug)]
pub struct Entry {
    /// Its identity.
    pub id: NfInstanceId,
    /// What is understood of the profile. Heart-beats keep it: load, status and time stamp in here are
    /// those of the last full write, the current ones are fields of the entry.
    pub profile: Arc<NfProfile>,
    /// Current status.
    pub status: NfStatus,
    /// Current load.
    pub load: Option<u8>,
    /// The whole profile as registered, with the current status and load: JSON text, unknown members included.
    pub document: Bytes,
    /// Counts the writes of the whole registry; makes the entity tag.
    pub revision: u64,
}

impl Entry {
    /// Its type.
    #[must_use]
    pub fn nf_type(&self) -> &NfType {
        &self.profile.nf_type
    }
}
