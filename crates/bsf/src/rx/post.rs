//! Messages between the workers: a request whose next hop lives elsewhere, an answer whose asker does. Bounded.

use bytes::Bytes;
use diameter::proto::MessageMut;
use tokio::sync::mpsc;

use super::Transit;

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
}

/// Where a worker finds what others send it.
pub(super) type Mailbox = mpsc::Receiver<Packet>;

/// A worker's ways to all workers.
#[derive(Clone)]
pub(super) struct Post(Vec<mpsc::Sender<Packet>>);

/// Posts and mailboxes for so many workers; at most `most` messages wait for one of them.
pub(super) fn posts(workers: usize, most: usize) -> Vec<(Post, Mailbox)> {
    let (senders, mailboxes): (Vec<_>, Vec<_>) = (0..workers).map(|_| mpsc::channel(most.max(1))).unzip();
    let post = Post(senders);
    mailboxes
        .into_iter()
        .map(|mailbox| (post.clone(), mailbox))
        .collect()
}

impl Post {
    /// Sends a message to a worker. Gives it back when too many wait there.
    #[allow(clippy::result_large_err)]
    pub(super) fn send(&self, worker: usize, packet: Packet) -> Result<(), Packet> {
        let Some(way) = self.0.get(worker) else {
            return Err(packet);
        };
        way.try_send(packet).map_err(|refused| match refused {
            mpsc::error::TrySendError::Full(packet) | mpsc::error::TrySendError::Closed(packet) => packet,
        })
    }
}
