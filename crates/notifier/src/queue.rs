//! The way of notifications from any thread to the one that delivers them.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};

use http::uri::Authority;
use parking_lot::Mutex;
use tokio::sync::mpsc;

use crate::Notification;

/// Takes notifications from any thread. Clones share the queue.
#[derive(Clone, Debug)]
pub struct Queue {
    sender: mpsc::Sender<Notification>,
    shared: Arc<Shared>,
}

/// The other end of a [`Queue`].
#[derive(Debug)]
pub struct Receiver {
    pub(crate) notifications: mpsc::Receiver<Notification>,
    pub(crate) shared: Arc<Shared>,
}

#[derive(Debug, Default)]
pub(crate) struct Shared {
    /// Touched only while the channel is full.
    overflow: Mutex<Overflow>,
    overflowed: AtomicUsize,
    pending: AtomicUsize,
    bytes: AtomicUsize,
    pushed: AtomicU64,
    settled: AtomicU64,
}

/// What did not fit into the channel.
#[derive(Debug, Default)]
pub(crate) struct Overflow {
    /// Those whose state is to be sent later.
    pub(crate) missed: Vec<Missed>,
    /// How many there were.
    pub(crate) dropped: usize,
}

/// A subject whose state was not delivered.
#[derive(Debug)]
pub struct Missed {
    /// Its subscription.
    pub subscription: Arc<str>,
    /// The subject.
    pub subject: Arc<str>,
    /// Host and port of the subscriber.
    pub destination: Option<Authority>,
}

impl From<Notification> for Missed {
    fn from(lost: Notification) -> Self {
        Self {
            destination: lost.target.authority().cloned(),
            subscription: lost.subscription,
            subject: lost.subject,
        }
    }
}

/// What waits to be delivered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Pending {
    /// Notifications.
    pub notifications: usize,
    /// Bytes of their bodies.
    pub bytes: usize,
}

impl Pending {
    pub(crate) fn add(&mut self, notifications: usize, bytes: usize) {
        self.notifications += notifications;
        self.bytes += bytes;
    }

    pub(crate) fn sub(&mut self, notifications: usize, bytes: usize) {
        self.notifications = self.notifications.saturating_sub(notifications);
        self.bytes = self.bytes.saturating_sub(bytes);
    }
}

/// A queue between threads. `capacity` notifications fit in while the delivering thread is busy elsewhere.
#[must_use]
pub fn queue(capacity: usize) -> (Queue, Receiver) {
    let (sender, notifications) = mpsc::channel(capacity.max(1));
    let shared = Arc::<Shared>::default();
    let receiver = Receiver {
        notifications,
        shared: shared.clone(),
    };
    (Queue { sender, shared }, receiver)
}

impl Queue {
    /// Enqueues a notification. One that does not fit is counted as dropped, and its subscriber gets the present
    /// state of the subject later.
    pub fn push(&self, notification: Notification) {
        self.shared.pushed.fetch_add(1, Relaxed);
        let Err(mpsc::error::TrySendError::Full(notification)) = self.sender.try_send(notification) else {
            // When delivery has ended, the function is stopping.
            return;
        };
        let mut overflow = self.shared.overflow.lock();
        overflow.dropped += 1;
        if overflow.missed.len() < self.sender.max_capacity() {
            overflow.missed.push(notification.into());
        }
        self.shared.overflowed.store(overflow.dropped, Relaxed);
    }

    /// Notifications that were pushed so far.
    #[must_use]
    pub fn pushed(&self) -> u64 {
        self.shared.pushed.load(Relaxed)
    }

    /// The number of notifications, counted from the first that was pushed, of which each was delivered, has failed or
    /// was dropped. With one thread that pushes, all that it has pushed before [`Queue::pushed`] was this are among them.
    #[must_use]
    pub fn settled(&self) -> u64 {
        self.shared.settled.load(Relaxed)
    }

    /// What waits to be delivered.
    #[must_use]
    pub fn pending(&self) -> Pending {
        Pending {
            notifications: self.shared.pending.load(Relaxed),
            bytes: self.shared.bytes.load(Relaxed),
        }
    }
}

impl Shared {
    /// What did not fit since this was asked last.
    pub(crate) fn take_overflow(&self) -> Option<Overflow> {
        if self.overflowed.load(Relaxed) == 0 {
            return None;
        }
        let mut overflow = self.overflow.lock();
        self.overflowed.store(0, Relaxed);
        Some(std::mem::take(&mut overflow))
    }

    pub(crate) fn set_pending(&self, pending: Pending, settled: u64) {
        self.pending.store(pending.notifications, Relaxed);
        self.bytes.store(pending.bytes, Relaxed);
        self.settled.store(settled, Relaxed);
    }
}
