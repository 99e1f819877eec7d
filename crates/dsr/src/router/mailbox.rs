//! Messages between the workers of a process: a request whose hop lives elsewhere, an answer whose origin does.
//!
//! What a turn of a worker has for another goes as one batch at the turn's end, so that waking the other costs
//! once per turn and not once per message. Queues are bounded in messages.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Poll, Waker};

use bytes::Bytes;
use diameter::Kept;
use diameter::proto::{CommandFlags, MessageMut};
use tokio::sync::mpsc;

use super::heed::Heard;
use super::{Core, Origin, Transit};

/// A message on its way to another worker.
#[derive(Debug)]
pub(crate) enum Packet {
    /// A request to be sent to this hop.
    Request {
        hop: u32,
        message: MessageMut,
        append: Bytes,
        transit: Transit,
    },
    /// A request to be sent once more, to this hop.
    Again {
        hop: u32,
        kept: Kept,
        flags: CommandFlags,
        transit: Transit,
    },
    /// An answer for a peer of that worker.
    Answer { origin: Origin, message: MessageMut },
    /// An overload report that all workers are to know.
    Heard(Heard),
}

type Batch = Vec<Packet>;

/// Where a worker finds what others send it.
#[derive(Debug)]
pub(crate) struct Mailbox {
    batches: mpsc::Receiver<Batch>,
    waiting: Arc<AtomicUsize>,
}

/// The way to one other worker.
#[derive(Clone, Debug)]
struct Way {
    batches: mpsc::Sender<Batch>,
    /// Messages that the other has not taken. Written once per batch.
    waiting: Arc<AtomicUsize>,
}

/// A worker's ways to all others.
pub(crate) struct Post {
    ways: Vec<Way>,
    most: usize,
    outgoing: RefCell<Vec<Batch>>,
    any: Cell<bool>,
    waker: Cell<Option<Waker>>,
}

/// Posts and mailboxes for so many workers; at most `most` messages wait for one of them.
pub(crate) fn posts(workers: usize, most: usize) -> Vec<(Post, Mailbox)> {
    let (ways, mailboxes): (Vec<Way>, Vec<Mailbox>) = (0..workers)
        .map(|_| {
            // A batch holds at least one message, so the bound in messages is met first.
            let (batches, receiver) = mpsc::channel(most.max(1));
            let waiting = Arc::<AtomicUsize>::default();
            let mailbox = Mailbox {
                batches: receiver,
                waiting: waiting.clone(),
            };
            (Way { batches, waiting }, mailbox)
        })
        .unzip();
    let post = || Post {
        ways: ways.clone(),
        most,
        outgoing: RefCell::new((0..workers).map(|_| Batch::new()).collect()),
        any: Cell::new(false),
        waker: Cell::new(None),
    };
    mailboxes.into_iter().map(|mailbox| (post(), mailbox)).collect()
}

impl Post {
    /// Sends a message to a worker, with the next batch. Gives it back when too many wait there.
    #[allow(clippy::result_large_err)]
    pub(super) fn send(&self, worker: usize, packet: Packet) -> Result<(), Packet> {
        let mut outgoing = self.outgoing.borrow_mut();
        let (Some(way), Some(batch)) = (self.ways.get(worker), outgoing.get_mut(worker)) else {
            return Err(packet);
        };
        if batch.len() + way.waiting.load(Ordering::Relaxed) >= self.most {
            return Err(packet);
        }
        batch.push(packet);
        if !self.any.replace(true)
            && let Some(waker) = self.waker.take()
        {
            waker.wake();
        }
        Ok(())
    }

    fn flush(&self) {
        self.any.set(false);
        for (way, batch) in self.ways.iter().zip(self.outgoing.borrow_mut().iter_mut()) {
            if batch.is_empty() {
                continue;
            }
            let next = Batch::with_capacity(batch.len());
            let full = std::mem::replace(batch, next);
            way.waiting.fetch_add(full.len(), Ordering::Relaxed);
            // It fails only when the other worker has ended, and then nobody waits for these any more.
            let _ = way.batches.try_send(full);
        }
    }
}

impl Core {
    /// Sends what turns leave behind, until the worker ends.
    pub(crate) async fn deliver_post(self: Rc<Self>) {
        loop {
            std::future::poll_fn(|cx| {
                if self.post.any.get() {
                    return Poll::Ready(());
                }
                self.post.waker.set(Some(cx.waker().clone()));
                Poll::Pending
            })
            .await;
            self.post.flush();
        }
    }

    /// Takes what others send, until the worker ends.
    pub(crate) async fn take_post(self: Rc<Self>, mut mailbox: Mailbox) {
        while let Some(batch) = mailbox.batches.recv().await {
            mailbox.waiting.fetch_sub(batch.len(), Ordering::Relaxed);
            for node in self.nodes.borrow().iter() {
                node.refresh();
            }
            for packet in batch {
                match packet {
                    Packet::Request {
                        hop,
                        message,
                        append,
                        transit,
                    } => self.send(hop, message, &append, transit),
                    Packet::Again {
                        hop,
                        kept,
                        flags,
                        transit,
                    } => self.send_kept(hop, kept, flags, transit),
                    Packet::Answer { origin, message } => self.deliver_here(origin, message),
                    Packet::Heard(heard) => self.hear(&heard),
                }
            }
        }
    }
}
