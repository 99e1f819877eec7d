//! Messages between the workers: a request whose next hop lives elsewhere, an answer whose asker does.

use bytes::Bytes;
use diameter::proto::MessageMut;

use super::Transit;
use super::reports::Received;

/// A request for a peer of that worker.
pub(super) struct Crossing {
    /// Name of the peer it goes to.
    pub(super) hop: Box<str>,
    pub(super) message: MessageMut,
    /// Encoded AVPs to append.
    pub(super) append: Bytes,
    pub(super) transit: Transit,
}

/// A message on its way to another worker.
pub(super) enum Packet {
    Request(Crossing),
    /// For a peer of that worker.
    Answer(Transit, MessageMut),
    /// Of a peer of another worker.
    Report(Received),
}

/// A worker's ways to all workers.
pub(super) type Post = worker::Post<Packet>;
/// Where a worker finds what others send it.
pub(super) type Mailbox = worker::Mailbox<Packet>;
