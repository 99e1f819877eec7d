//! The policy data source: what is known of a subscriber beside the request itself.

use std::rc::Rc;

use serde_json::Value;

use crate::association::Association;
use crate::worker::Worker;

/// Data of a subscriber, as policies read them.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Data {
    /// Policy data of TS 29.519 with custom attributes (`$subscriber`).
    pub(crate) subscriber: Value,
    /// Policy counters by identifier (`$counters`).
    pub(crate) counters: Value,
}

/// The data of an association's subscriber. No source is configured, so there are none.
#[expect(clippy::unused_async, reason = "sources are other functions")]
pub(crate) async fn of(_worker: &Worker, _association: &Association) -> Rc<Data> {
    Rc::default()
}
