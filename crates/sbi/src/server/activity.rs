//! What the requests of a connection tell its driver: how many there are, what they hold, and whose answers
//! nobody takes.

use std::cell::{Cell, RefCell};
use std::io::IoSlice;
use std::rc::{Rc, Weak};
use std::time::{Duration, Instant};

use bytes::Buf;
use h2::{Reason, SendStream};
use slab::Slab;
use tokio::task::AbortHandle;

use crate::body::Body;
use crate::memory::{Account, LetGo, Memory, REQUEST, Shares};

/// The requests of one connection.
#[derive(Debug)]
pub(super) struct Activity {
    /// What is held for it.
    account: Rc<Account>,
    /// Requests whose answers are not made yet, with the tasks that make them, where they became tasks.
    tasks: RefCell<Slab<Option<AbortHandle>>>,
    /// Requests whose bodies have not arrived whole.
    unfinished: Cell<u32>,
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
pub(super) struct InProgress {
    activity: Rc<Activity>,
    /// Its place among the tasks.
    task: usize,
    /// Bytes it holds.
    held: Cell<usize>,
}

/// A request whose body has not arrived whole.
#[derive(Debug)]
pub(super) struct Unfinished<'a>(&'a Activity);

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
    /// What it holds that other answers may hold as well.
    shares: Shares,
    in_progress: InProgress,
}

impl Activity {
    pub(super) fn new(memory: &Rc<Memory>) -> Rc<Self> {
        let activity = Rc::new(Self {
            account: memory.open(),
            tasks: RefCell::default(),
            unfinished: Cell::new(0),
            open: Cell::new(0),
            moved: Cell::new(false),
            answers: RefCell::default(),
            taken: RefCell::default(),
            untaken: Cell::new(0),
            closed: Cell::new(false),
        });
        let holder: Weak<dyn LetGo> = Rc::<Self>::downgrade(&activity);
        activity.account.held_by(holder);
        activity
    }

    pub(super) fn account(&self) -> &Rc<Account> {
        &self.account
    }

    pub(super) fn begin(self: &Rc<Self>) -> InProgress {
        self.open.set(self.open.get() + 1);
        self.moved.set(true);
        self.account.charge(REQUEST);
        InProgress {
            task: self.tasks.borrow_mut().insert(None),
            held: Cell::new(REQUEST),
            activity: self.clone(),
        }
    }

    /// The request with this place has become a task.
    pub(super) fn became(&self, place: usize, task: AbortHandle) {
        // Without an entry its answer has been made already.
        if let Some(entry) = self.tasks.borrow_mut().get_mut(place) {
            *entry = Some(task);
        }
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

impl LetGo for Activity {
    /// Ends the tasks of requests whose answers are not made yet.
    fn let_go(&self) {
        let tasks = std::mem::take(&mut *self.tasks.borrow_mut());
        for (_, task) in tasks {
            if let Some(task) = task {
                task.abort();
            }
        }
    }
}

impl InProgress {
    /// Its place among the tasks.
    pub(super) fn place(&self) -> usize {
        self.task
    }

    /// It holds `bytes` more.
    pub(super) fn charge(&self, bytes: usize) {
        self.held.set(self.held.get() + bytes);
        self.activity.account.charge(bytes);
    }

    /// It waits for its body; `None` if too many of its connection do.
    pub(super) fn unfinished(&self, limit: u32) -> Option<Unfinished<'_>> {
        let unfinished = &self.activity.unfinished;
        if unfinished.get() >= limit {
            return None;
        }
        unfinished.set(unfinished.get() + 1);
        Some(Unfinished(&self.activity))
    }

    /// Sends the body of an answer as the last of `stream`.
    pub(super) fn send(self, body: Body, mut stream: SendStream<Outgoing>) {
        let activity = self.activity.clone();
        if activity.closed.get() {
            return;
        }
        let ticket = activity.answers.borrow_mut().insert(Answer {
            seen: None,
            stream: None,
        });
        let len = body.len();
        activity.untaken.set(activity.untaken.get() + len);
        // The request is not held any longer, its answer is.
        activity.tasks.borrow_mut().try_remove(self.task);
        let (own, shares) = activity.account.hold(&body);
        let before = self.held.replace(REQUEST + own);
        activity.account.release(before.saturating_sub(REQUEST));
        let outgoing = Outgoing {
            body,
            len,
            ticket,
            shares,
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
        let activity = &self.activity;
        activity.open.set(activity.open.get() - 1);
        activity.moved.set(true);
        activity.tasks.borrow_mut().try_remove(self.task);
        activity.account.release(self.held.get());
    }
}

impl Drop for Unfinished<'_> {
    fn drop(&mut self) {
        self.0.unfinished.set(self.0.unfinished.get() - 1);
    }
}

impl Drop for Outgoing {
    fn drop(&mut self) {
        let activity = &self.in_progress.activity;
        activity.untaken.set(activity.untaken.get() - self.len);
        activity.taken.borrow_mut().push(self.ticket);
        activity.account.let_go(0, &self.shares);
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
