//! What the requests of a connection tell its driver: how many there are, and whose answers nobody takes.

use std::cell::{Cell, RefCell};
use std::io::IoSlice;
use std::rc::Rc;
use std::time::{Duration, Instant};

use bytes::Buf;
use h2::{Reason, SendStream};
use slab::Slab;

use crate::body::Body;

/// The requests of one connection.
#[derive(Debug, Default)]
pub(super) struct Activity {
    /// Requests in progress, answers still being sent included.
    open: Cell<u32>,
    /// Whether a request began or ended since this was last asked.
    moved: Cell<bool>,
    /// Answers on their way.
    answers: RefCell<Slab<Answer>>,
    /// Answers whose last byte was taken; apart from `answers`, because the engine reports the end of one
    /// while it is in the middle of its own work.
    taken: RefCell<Vec<usize>>,
    /// Bytes of answers that the peer has not taken.
    untaken: Cell<usize>,
    closed: Cell<bool>,
}

/// A request in progress; ends when its answer has left, or was given up.
#[derive(Debug)]
pub(super) struct InProgress(Rc<Activity>);

/// An answer on its way.
#[derive(Debug)]
struct Answer {
    /// When it was first seen by [`Activity::give_up_untaken`].
    seen: Option<Instant>,
    /// Resets the stream when nobody takes the answer; `None` while it is being handed over.
    stream: Option<SendStream<Outgoing>>,
}

/// The body of an answer. The engine drops it when its last byte was written, which ends the request.
#[derive(Debug)]
pub(super) struct Outgoing {
    body: Body,
    len: usize,
    ticket: usize,
    in_progress: InProgress,
}

impl Activity {
    pub(super) fn begin(self: &Rc<Self>) -> InProgress {
        self.open.set(self.open.get() + 1);
        self.moved.set(true);
        InProgress(self.clone())
    }

    /// Requests in progress.
    pub(super) fn open(&self) -> u32 {
        self.open.get()
    }

    /// Whether a request began or ended since the last call.
    pub(super) fn moved(&self) -> bool {
        self.moved.replace(false)
    }

    /// Bytes of answers that the peer has not taken.
    pub(super) fn untaken(&self) -> usize {
        self.untaken.get()
    }

    /// Lets go of answers that were taken.
    pub(super) fn sweep(&self) {
        let mut taken = self.taken.take();
        let mut answers = self.answers.borrow_mut();
        for ticket in taken.drain(..) {
            answers.try_remove(ticket);
        }
        drop(answers);
        // The room is used again; what letting go of a stream may have ended is for the next time.
        taken.append(&mut self.taken.take());
        self.taken.replace(taken);
    }

    /// Resets the streams of answers that have been on their way for longer than `limit`; how many.
    pub(super) fn give_up_untaken(&self, now: Instant, limit: Duration) -> u64 {
        let mut given_up = 0;
        for (_, answer) in self.answers.borrow_mut().iter_mut() {
            let seen = *answer.seen.get_or_insert(now);
            if now.saturating_duration_since(seen) >= limit
                && let Some(mut stream) = answer.stream.take()
            {
                stream.send_reset(Reason::CANCEL);
                given_up += 1;
            }
        }
        given_up
    }

    /// The connection has ended: its streams are let go, and answers that are still made go nowhere.
    pub(super) fn close(&self) {
        self.closed.set(true);
        let answers = std::mem::take(&mut *self.answers.borrow_mut());
        drop(answers);
    }
}

impl InProgress {
    /// Sends the body of an answer as the last of `stream`.
    pub(super) fn send(self, body: Body, mut stream: SendStream<Outgoing>) {
        let activity = self.0.clone();
        if activity.closed.get() {
            return;
        }
        let ticket = activity.answers.borrow_mut().insert(Answer {
            seen: None,
            stream: None,
        });
        let len = body.len();
        activity.untaken.set(activity.untaken.get() + len);
        let outgoing = Outgoing {
            body,
            len,
            ticket,
            in_progress: self,
        };
        // An error means that the peer has given up the request: nobody waits for the answer any more.
        if stream.send_data(outgoing, true).is_ok()
            && let Some(answer) = activity.answers.borrow_mut().get_mut(ticket)
        {
            answer.stream = Some(stream);
        }
    }
}

impl Drop for InProgress {
    fn drop(&mut self) {
        self.0.open.set(self.0.open.get() - 1);
        self.0.moved.set(true);
    }
}

impl Drop for Outgoing {
    fn drop(&mut self) {
        let activity = &self.in_progress.0;
        activity.untaken.set(activity.untaken.get() - self.len);
        activity.taken.borrow_mut().push(self.ticket);
    }
}

impl Buf for Outgoing {
    fn remaining(&self) -> usize {
        self.body.remaining()
    }

    fn chunk(&self) -> &[u8] {
        self.body.chunk()
    }

    fn chunks_vectored<'a>(&'a self, out: &mut [IoSlice<'a>]) -> usize {
        self.body.offer(out.len());
        self.body.chunks_vectored(out)
    }

    fn advance(&mut self, count: usize) {
        self.body.advance(count);
    }
}
