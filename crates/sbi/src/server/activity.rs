//! The requests in flight on a connection, for its listener and the worker's memory account.

use std::cell::Cell;
use std::rc::Rc;

use crate::memory::{Account, Memory, REQUEST};

/// The requests of one connection.
#[derive(Debug)]
pub(super) struct Activity {
    /// What is held for it.
    account: Rc<Account>,
    /// Requests in progress, answers still being sent included.
    open: Cell<u32>,
    /// Whether a request began or ended since this was last asked.
    moved: Cell<bool>,
}

/// A request in progress; ends when its answer has left, or was given up.
#[derive(Debug)]
pub(super) struct InProgress {
    activity: Rc<Activity>,
    /// Bytes it holds.
    held: Cell<usize>,
}

impl Activity {
    pub(super) fn new(memory: &Rc<Memory>) -> Rc<Self> {
        Rc::new(Self {
            account: memory.open(),
            open: Cell::new(0),
            moved: Cell::new(false),
        })
    }

    pub(super) fn account(&self) -> &Rc<Account> {
        &self.account
    }

    pub(super) fn begin(self: &Rc<Self>) -> InProgress {
        self.open.set(self.open.get() + 1);
        self.moved.set(true);
        self.account.charge(REQUEST);
        InProgress {
            held: Cell::new(REQUEST),
            activity: self.clone(),
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
}

impl InProgress {
    /// It holds `bytes` more.
    pub(super) fn charge(&self, bytes: usize) {
        self.held.set(self.held.get() + bytes);
        self.activity.account.charge(bytes);
    }

    /// The request is not held any longer, its answer is, which is charged apart.
    pub(super) fn answered(&self) {
        let before = self.held.replace(REQUEST);
        self.activity.account.release(before.saturating_sub(REQUEST));
    }
}

impl Drop for InProgress {
    fn drop(&mut self) {
        let activity = &self.activity;
        activity.open.set(activity.open.get() - 1);
        activity.moved.set(true);
        activity.account.release(self.held.get());
    }
}
