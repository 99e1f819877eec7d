//! Requests whose services have to wait.

use std::cell::RefCell;
use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use super::MemberKey;
use super::ready::{Ready, Target};

/// A request that is being answered.
pub(crate) type Work = Pin<Box<dyn Future<Output = ()>>>;

/// Slots for work. A slot and its waker are made once and used again and again.
pub(super) struct Tasks {
    ready: Arc<Ready>,
    slots: RefCell<Vec<Slot>>,
    free: RefCell<Vec<u32>>,
    /// Work that was given up and is to be dropped.
    given_up: RefCell<Vec<Work>>,
}

struct Slot {
    /// Shared with the work that runs: cheaper than another waker.
    waker: Rc<Waker>,
    parked: Option<(MemberKey, Work)>,
}

impl Tasks {
    pub(super) fn new(ready: Arc<Ready>) -> Self {
        Self {
            ready,
            slots: RefCell::default(),
            free: RefCell::default(),
            given_up: RefCell::default(),
        }
    }

    /// Runs work until it has to wait or is done.
    pub(super) fn run(&self, owner: MemberKey, work: Work) {
        let index = self.free.borrow_mut().pop().unwrap_or_else(|| self.add());
        let Some(waker) = self
            .slots
            .borrow()
            .get(index as usize)
            .map(|slot| slot.waker.clone())
        else {
            return;
        };
        self.go_on(index, owner, work, &waker);
    }

    /// Work was woken. A waker that is left from earlier work of the slot may wake it for nothing.
    pub(super) fn resume(&self, index: u32) {
        let parked = {
            let mut slots = self.slots.borrow_mut();
            let slot = slots.get_mut(index as usize);
            slot.and_then(|slot| Some((slot.parked.take()?, slot.waker.clone())))
        };
        if let Some(((owner, work), waker)) = parked {
            self.go_on(index, owner, work, &waker);
        }
    }

    /// Gives up the work of a member, which [`Tasks::drop_given_up`] drops: dropping it calls those that it has asked something of,
    /// and the caller may be in the middle of one of these.
    pub(super) fn abort(&self, owner: MemberKey) {
        for (index, slot) in self.slots.borrow_mut().iter_mut().enumerate() {
            if let Some((_, work)) = slot.parked.take_if(|(of, _)| *of == owner) {
                self.given_up.borrow_mut().push(work);
                self.free.borrow_mut().push(index as u32);
            }
        }
    }

    /// Drops work that was given up, when nothing is borrowed.
    pub(super) fn drop_given_up(&self) {
        while let Some(work) = self.next_given_up() {
            drop(work);
        }
    }

    fn next_given_up(&self) -> Option<Work> {
        self.given_up.borrow_mut().pop()
    }

    /// Drops all work.
    pub(super) fn clear(&self) {
        let slots = std::mem::take(&mut *self.slots.borrow_mut());
        self.free.borrow_mut().clear();
        drop(slots);
        self.drop_given_up();
    }

    fn go_on(&self, index: u32, owner: MemberKey, mut work: Work, waker: &Waker) {
        // Nothing is borrowed here: the work may begin or end other work. Work that panics is not polled again; what it
        // holds answers for it when it is dropped.
        let polled = catch_unwind(AssertUnwindSafe(|| {
            work.as_mut().poll(&mut Context::from_waker(waker))
        }));
        if polled.is_err() {
            tracing::error!("handling of a request panicked: others go on");
        }
        if !matches!(polled, Ok(Poll::Pending)) {
            drop(work);
            self.free.borrow_mut().push(index);
        } else if let Some(slot) = self.slots.borrow_mut().get_mut(index as usize) {
            slot.parked = Some((owner, work));
        }
    }

    fn add(&self) -> u32 {
        let mut slots = self.slots.borrow_mut();
        let index = u32::try_from(slots.len()).unwrap_or(u32::MAX);
        slots.push(Slot {
            waker: Rc::new(Waker::from(self.ready.wakeable(Target::Task(index), true))),
            parked: None,
        });
        index
    }
}
