//! Messages between the workers of a process.
//!
//! What a turn of a worker has for another goes as one batch at the turn's end, so that waking the other costs once per
//! turn and not once per message. Queues are bounded in messages.

use std::cell::{Cell, RefCell};
use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Poll, Waker};

use tokio::sync::mpsc;

/// The mailbox of a worker: messages from other workers.
#[derive(Debug)]
pub struct Mailbox<P> {
    batches: mpsc::Receiver<Vec<P>>,
    waiting: Arc<AtomicUsize>,
}

/// The sender side of one worker's mailbox.
#[derive(Debug)]
struct Way<P> {
    batches: mpsc::Sender<Vec<P>>,
    /// Messages that the worker has not received. Written once per batch.
    waiting: Arc<AtomicUsize>,
}

impl<P> Clone for Way<P> {
    fn clone(&self) -> Self {
        Self {
            batches: self.batches.clone(),
            waiting: self.waiting.clone(),
        }
    }
}

/// A worker's senders to all workers. [`Post::deliver`] has to run on the same worker.
pub struct Post<P> {
    ways: Vec<Way<P>>,
    most: usize,
    outgoing: RefCell<Vec<Vec<P>>>,
    any: Cell<bool>,
    waker: Cell<Option<Waker>>,
}

/// Creates posts and mailboxes for a number of workers; at most `most` messages are pending for one of them.
#[must_use]
pub fn posts<P>(workers: usize, most: usize) -> Vec<(Post<P>, Mailbox<P>)> {
    let (ways, mailboxes): (Vec<Way<P>>, Vec<Mailbox<P>>) = (0..workers)
        .map(|_| {
            // Every batch has one message or more, so the bound on messages is reached before the capacity of the
            // channel.
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
        outgoing: RefCell::new((0..workers).map(|_| Vec::new()).collect()),
        any: Cell::new(false),
        waker: Cell::new(None),
    };
    mailboxes.into_iter().map(|mailbox| (post(), mailbox)).collect()
}

impl<P> Default for Post<P> {
    /// A post without workers.
    fn default() -> Self {
        Self {
            ways: Vec::new(),
            most: 0,
            outgoing: RefCell::default(),
            any: Cell::new(false),
            waker: Cell::new(None),
        }
    }
}

impl<P> Post<P> {
    /// Sends a message to a worker, with the next batch.
    ///
    /// # Errors
    /// Returns the message when the mailbox of that worker is full, or no worker has this number.
    pub fn send(&self, worker: usize, packet: P) -> Result<(), P> {
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

    /// Sends the batches that turns of the worker have collected, until dropped. One task of the worker runs it.
    pub async fn deliver(&self) -> Infallible {
        loop {
            std::future::poll_fn(|cx| {
                if self.any.get() {
                    return Poll::Ready(());
                }
                self.waker.set(Some(cx.waker().clone()));
                Poll::Pending
            })
            .await;
            self.flush();
        }
    }

    fn flush(&self) {
        self.any.set(false);
        for (way, batch) in self.ways.iter().zip(self.outgoing.borrow_mut().iter_mut()) {
            if batch.is_empty() {
                continue;
            }
            let next = Vec::with_capacity(batch.len());
            let full = std::mem::replace(batch, next);
            way.waiting.fetch_add(full.len(), Ordering::Relaxed);
            // `try_send` fails only after the other worker has ended; its messages are dropped then, as nothing can
            // receive them.
            let _ = way.batches.try_send(full);
        }
    }
}

impl<P> Mailbox<P> {
    /// The next messages; `None` when no worker can send any more.
    pub async fn next(&mut self) -> Option<Vec<P>> {
        let batch = self.batches.recv().await?;
        self.waiting.fetch_sub(batch.len(), Ordering::Relaxed);
        Some(batch)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_turn_is_one_batch_and_queues_are_bounded() {
        let mut ends = posts::<u32>(2, 3);
        let (_, mut mailbox) = ends.pop().unwrap();
        let (post, _own) = ends.pop().unwrap();
        let deliver = async {
            tokio::select! {
                never = post.deliver() => match never {},
                () = tokio::task::yield_now() => {}
            }
        };
        assert_eq!([post.send(1, 7), post.send(1, 8), post.send(1, 9)], [Ok(()); 3]);
        assert_eq!(post.send(1, 10), Err(10), "three are pending");
        assert_eq!(post.send(2, 11), Err(11), "there is no third worker");
        deliver.await;
        assert_eq!(post.send(1, 12), Err(12), "they are pending at the receiver");
        assert_eq!(mailbox.next().await, Some(vec![7, 8, 9]));
        assert_eq!(post.send(1, 13), Ok(()));
    }
}
