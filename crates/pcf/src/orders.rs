//! Requests of ours for Diameter peers (RAR, ASR), on their way to the nodes of the workers.

use std::sync::Arc;

use diameter::proto::MessageMut;
use tokio::sync::mpsc;

use crate::association::AssociationId;

/// A request to be sent.
pub(crate) struct Order {
    /// The peer that it goes to, directly or through an agent.
    pub(crate) peer: String,
    pub(crate) message: MessageMut,
    /// What the answer is about.
    pub(crate) then: Then,
    /// Workers that are not connected to the peer.
    pub(crate) tried: usize,
}

/// What happens with an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Then {
    /// It is that of a PCEF, about a session.
    Gx(AssociationId),
    /// It is that of an AF: it is counted.
    Rx,
}

/// The ways to the nodes of all workers.
#[derive(Clone, Debug)]
pub(crate) struct Orders(Arc<[mpsc::Sender<Order>]>);

pub(crate) type Receiver = mpsc::Receiver<Order>;

/// A way to each worker, with room for `most` requests.
pub(crate) fn channels(workers: usize, most: usize) -> (Orders, Vec<Receiver>) {
    let (senders, receivers): (Vec<_>, Vec<_>) = (0..workers).map(|_| mpsc::channel(most.max(1))).unzip();
    (Orders(senders.into()), receivers)
}

impl Orders {
    /// Enqueues a request at a worker; false where there is no room.
    pub(crate) fn send(&self, worker: usize, order: Order) -> bool {
        let count = self.0.len().max(1);
        let way = self.0.get(worker % count);
        way.is_some_and(|way| way.try_send(order).is_ok())
    }
}
