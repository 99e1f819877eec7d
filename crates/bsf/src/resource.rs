//! What the bindings of sessions, UEs and MBS sessions have in common: a document of a PCF, in a table of its own.

use store::{Record, Table};

use crate::binding::{Document, MbsBinding, PcfBinding, UeBinding};
use crate::notify::{Change, Notices};
use crate::owed::OwedRecord;
use crate::repository::{Addressed, Repository};

/// A binding that a PCF registers.
pub(crate) trait Resource: Record + Addressed + Clone {
    /// Its JSON.
    fn document(&self) -> &Document;
    /// The binding of a document.
    fn of(document: Document) -> Self;
    /// Where it is stored.
    fn table(repository: &Repository) -> &Table<Self>;
    /// The mark of its removal.
    fn owed_removal(&self) -> Option<OwedRecord> {
        None
    }
    /// Enqueues the notifications of its subscribers.
    async fn notify(&self, notices: &Notices, change: Change);
}

impl Resource for PcfBinding {
    fn document(&self) -> &Document {
        &self.0
    }
    fn of(document: Document) -> Self {
        Self(document)
    }
    fn table(repository: &Repository) -> &Table<Self> {
        &repository.sessions
    }
    fn owed_removal(&self) -> Option<OwedRecord> {
        Some(OwedRecord::of_session(self))
    }
    async fn notify(&self, notices: &Notices, change: Change) {
        notices.session(self, change).await;
    }
}

impl Resource for UeBinding {
    fn document(&self) -> &Document {
        &self.0
    }
    fn of(document: Document) -> Self {
        Self(document)
    }
    fn table(repository: &Repository) -> &Table<Self> {
        &repository.ues
    }
    fn owed_removal(&self) -> Option<OwedRecord> {
        Some(OwedRecord::of_ue(self))
    }
    async fn notify(&self, notices: &Notices, change: Change) {
        notices.ue(self, change).await;
    }
}

impl Resource for MbsBinding {
    fn document(&self) -> &Document {
        &self.0
    }
    fn of(document: Document) -> Self {
        Self(document)
    }
    fn table(repository: &Repository) -> &Table<Self> {
        &repository.mbs
    }
    // No event is about MBS sessions (TS 29.521 §5.6.3.3).
    async fn notify(&self, _: &Notices, _: Change) {}
}
