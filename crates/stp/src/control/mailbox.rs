//! The mailbox of a link: any worker puts frames into it, the worker that has the association takes them.

use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio::sync::mpsc::{Receiver, Sender, channel};

/// An M3UA message.
#[derive(Clone, Debug)]
pub(crate) struct Frame {
    pub(crate) octets: Vec<u8>,
    /// The link selection of DATA, which decides the stream.
    pub(crate) sls: u8,
}

/// A bounded queue whose receiver passes from association to association.
pub(crate) struct Mailbox {
    sender: Sender<Frame>,
    receiver: Mutex<Option<Receiver<Frame>>>,
    /// Asks the association to end, because its peer has connected again.
    pub(crate) replaced: Notify,
    /// The receiver is back.
    pub(crate) released: Notify,
}

impl Mailbox {
    pub(super) fn new(most: usize) -> Self {
        let (sender, receiver) = channel(most.max(16));
        Self {
            sender,
            receiver: Mutex::new(Some(receiver)),
            replaced: Notify::new(),
            released: Notify::new(),
        }
    }

    /// Puts a frame at the end; `false` when the queue is full.
    pub(crate) fn put(&self, frame: Frame) -> bool {
        self.sender.try_send(frame).is_ok()
    }

    pub(crate) fn queued(&self) -> usize {
        self.sender.max_capacity() - self.sender.capacity()
    }

    /// Takes the receiver, for an association; what was queued for the one before is dropped.
    pub(crate) fn take(&self) -> Option<Receiver<Frame>> {
        let mut receiver = self.receiver.lock().take()?;
        while receiver.try_recv().is_ok() {}
        Some(receiver)
    }

    /// Gives the receiver back.
    pub(crate) fn give_back(&self, receiver: Receiver<Frame>) {
        *self.receiver.lock() = Some(receiver);
        self.released.notify_waiters();
    }
}
