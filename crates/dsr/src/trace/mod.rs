//! Traces: transactions that fit a trigger point are written with all their messages, as text and as pcapng. The newest
//! stay in memory, to be searched (`cache`), also over several routers (`collect`).
//!
//! Workers hand copies to the control thread through a bounded queue; what does not fit is counted, not waited
//! for.

mod cache;
mod collect;
mod writer;

use std::net::SocketAddr;
use std::time::SystemTime;

pub(crate) use cache::Cache;
pub(crate) use collect::collect;
pub(crate) use writer::Writer;

/// Messages that wait to be written.
pub(crate) const QUEUE: usize = 8192;

/// A message to be written.
#[derive(Debug)]
pub(crate) struct Record {
    pub(crate) at: SystemTime,
    /// Position of the trigger point.
    pub(crate) point: u8,
    /// `request in`, `request out`, `answer in`, `answer out`.
    pub(crate) what: &'static str,
    pub(crate) peer: Box<str>,
    pub(crate) from: SocketAddr,
    pub(crate) to: SocketAddr,
    pub(crate) message: Vec<u8>,
}
