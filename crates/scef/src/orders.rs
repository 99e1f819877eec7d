//! Requests of ours for Diameter peers, and data for devices, on their way from any worker to the one with the Diameter node.

use std::time::Duration;

use diameter::endpoint::RequestError;
use diameter::proto::{Message, MessageMut};
use tokio::sync::{mpsc, oneshot};

use crate::record::{Id, Status};

/// What the Diameter node is to do.
pub(crate) enum Order {
    /// Send a request; its sender awaits the answer.
    Request {
        message: MessageMut,
        timeout: Duration,
        reply: oneshot::Sender<Result<Message, RequestError>>,
    },
    /// Deliver what is stored for the devices of a NIDD configuration.
    Deliver {
        configuration: Id,
        waiting: Option<Waiting>,
    },
}

/// A request of an SCS/AS that awaits what becomes of its data.
pub(crate) struct Waiting {
    pub(crate) downlink: Id,
    pub(crate) reply: oneshot::Sender<Outcome>,
}

/// What became of downlink data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// It is delivered.
    Delivered(Status),
    /// It is buffered.
    Buffered(Status),
    /// It is neither; the status says why.
    Failed(Status),
}

pub(crate) type Receiver = mpsc::Receiver<Order>;

/// The queue of the Diameter node. Clones share it.
#[derive(Clone, Debug)]
pub(crate) struct Orders(mpsc::Sender<Order>);

/// A queue for this many orders.
pub(crate) fn channel(most: usize) -> (Orders, Receiver) {
    let (sender, receiver) = mpsc::channel(most.max(1));
    (Orders(sender), receiver)
}

impl Orders {
    /// Sends a request and waits for its answer.
    ///
    /// # Errors
    /// When there is no answer.
    pub(crate) async fn request(
        &self,
        message: MessageMut,
        timeout: Duration,
    ) -> Result<Message, RequestError> {
        let (reply, answer) = oneshot::channel();
        let order = Order::Request {
            message,
            timeout,
            reply,
        };
        if self.0.try_send(order).is_err() {
            return Err(RequestError::NoPeer);
        }
        answer.await.unwrap_or(Err(RequestError::ConnectionLost))
    }

    /// Sends a request whose answer changes nothing. It is not sent where the queue is full.
    pub(crate) fn inform(&self, message: MessageMut, timeout: Duration) {
        let (reply, _) = oneshot::channel();
        self.send(Order::Request {
            message,
            timeout,
            reply,
        });
    }

    /// Enqueues an order; false if the queue is full. What is stored is delivered later in that case.
    pub(crate) fn send(&self, order: Order) -> bool {
        self.0.try_send(order).is_ok()
    }
}
