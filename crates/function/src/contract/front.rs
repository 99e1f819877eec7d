//! A worker as its listeners see it: the same across reloads.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Instant;

use super::{Effective, NetworkFunction, Seat};
use crate::live::{Changes, Follower};
use crate::shedder::{SAMPLE_INTERVAL, Shedder};

/// Holds the worker of the settings in effect.
pub struct Front<F: NetworkFunction> {
    function: Arc<F>,
    seat: Seat<F>,
    follower: RefCell<Follower<F::Config, F::Derived>>,
    current: RefCell<Current<F>>,
}

/// A worker, and the settings it was made by.
struct Current<F: NetworkFunction> {
    by: Arc<Effective<F>>,
    worker: Rc<F::Worker>,
}

impl<F: NetworkFunction> Front<F> {
    pub(crate) fn new(function: Arc<F>, seat: Seat<F>) -> Rc<Self> {
        // Before what is in effect is read: a change between both would be missed.
        let changes = seat.live.changes();
        let now = seat.live.load_full();
        let worker = function.worker(&seat, &now, None);
        let front = Rc::new(Self {
            follower: RefCell::new(seat.live.follower()),
            current: RefCell::new(Current { by: now, worker }),
            function,
            seat,
        });
        // A worker that has no requests adopts the new settings as well. The task ends with the thread of the worker.
        tokio::task::spawn_local(front.clone().follow(changes));
        front
    }

    async fn follow(self: Rc<Self>, mut changes: Changes) {
        while changes.next().await {
            self.worker();
        }
    }

    /// The worker by the settings in effect.
    pub fn worker(&self) -> Rc<F::Worker> {
        let mut follower = self.follower.borrow_mut();
        let wanted = follower.load();
        let mut current = self.current.borrow_mut();
        if !Arc::ptr_eq(&current.by, wanted) {
            current.worker = self.function.worker(&self.seat, wanted, Some(&current.worker));
            current.by = wanted.clone();
        }
        current.worker.clone()
    }

    /// Samples the load of this worker for the shedder that the worker has, and the lag of its event loop; ends with the
    /// worker. `then` runs after each sample.
    pub async fn watch_load(self: Rc<Self>, shedder: fn(&F::Worker) -> &Shedder, then: impl Fn(&F::Worker)) {
        let index = self.seat.context.index;
        let mut sampled = Instant::now();
        loop {
            let due = shedder(&self.worker()).expect(Instant::now());
            tokio::time::sleep_until(due.into()).await;
            let (now, worker) = (Instant::now(), self.worker());
            shedder(&worker).arrived(now);
            if now.saturating_duration_since(sampled) >= SAMPLE_INTERVAL {
                sampled = now;
                shedder(&worker).sample(now, index, &self.seat.alarms);
                then(&worker);
            }
        }
    }

    /// What all workers share.
    pub fn function(&self) -> &Arc<F> {
        &self.function
    }

    /// The seat of this worker: its number, its listeners and its shutdown.
    pub fn seat(&self) -> &Seat<F> {
        &self.seat
    }
}
