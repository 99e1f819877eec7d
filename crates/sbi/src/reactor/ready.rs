//! What is ready: connections whose sockets have something, and requests whose waiting is over.
//!
//! What finishes work goes before what begins work. Otherwise a worker with more to do than it can would take up one
//! request after the other while the answers to earlier ones lie unread, until all of them are too late.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Wake, Waker};
use std::time::Instant;

use parking_lot::Mutex;

/// Something of a reactor that can be woken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Target {
    /// The member in this place.
    Member(u32),
    /// The task in this place.
    Task(u32),
}

/// What was woken, in the order it was. Wakers are shared between threads by their contract, so this is, too; the lock
/// is taken by other threads only where a function waits for one (a store, a resolver).
#[derive(Debug)]
pub(super) struct Ready {
    woken: Mutex<Queues>,
    /// Whether it runs: it looks once more before it stops.
    running: AtomicBool,
}

/// What was woken, by whether it finishes work.
#[derive(Debug)]
struct Queues {
    finishing: VecDeque<Woken>,
    beginning: VecDeque<Woken>,
    /// When the present turn began, or the last one.
    turn: Instant,
    /// What runs the reactor, as of its last turn.
    runner: Option<Waker>,
}

/// A target that was woken.
#[derive(Debug)]
pub(super) struct Woken {
    pub(super) target: Target,
    /// When the last turn before it was woken had begun, or the one in which it was: what its socket has came later.
    pub(super) since: Instant,
    wakeable: Arc<Wakeable>,
}

/// Wakes one target.
#[derive(Debug)]
pub(super) struct Wakeable {
    target: Target,
    /// Whether it finishes work that was begun.
    finishes: bool,
    ready: Arc<Ready>,
    /// It is among those woken already.
    queued: AtomicBool,
}

impl Ready {
    pub(super) fn new(now: Instant) -> Self {
        Self {
            woken: Mutex::new(Queues {
                finishing: VecDeque::new(),
                beginning: VecDeque::new(),
                turn: now,
                runner: None,
            }),
            running: AtomicBool::new(false),
        }
    }

    /// A target; `finishes`: it goes before those that begin work.
    pub(super) fn wakeable(self: &Arc<Self>, target: Target, finishes: bool) -> Arc<Wakeable> {
        Arc::new(Wakeable {
            target,
            finishes,
            ready: self.clone(),
            queued: AtomicBool::new(false),
        })
    }

    /// The reactor begins a turn.
    pub(super) fn begin(&self, runner: &Waker, now: Instant) {
        let mut woken = self.woken.lock();
        woken.turn = now;
        // It hardly ever changes, so a turn costs no count of it.
        let is_known = woken.runner.as_ref().is_some_and(|known| known.will_wake(runner));
        let before = match is_known {
            true => None,
            false => woken.runner.replace(runner.clone()),
        };
        drop(woken);
        // Outside the lock: the last waker of a task drops what that holds.
        drop(before);
        self.running.store(true, Ordering::SeqCst);
    }

    /// Queues a target that the reactor has found to be ready.
    pub(super) fn queue(&self, target: &Arc<Wakeable>) {
        if !target.queued.swap(true, Ordering::SeqCst) {
            self.push(target.clone());
        }
    }

    fn push(&self, wakeable: Arc<Wakeable>) {
        let mut woken = self.woken.lock();
        let finishes = wakeable.finishes;
        let one = Woken {
            target: wakeable.target,
            since: woken.turn,
            wakeable,
        };
        match finishes {
            true => woken.finishing.push_back(one),
            false => woken.beginning.push_back(one),
        }
    }

    /// The next target that was woken.
    pub(super) fn next(&self) -> Option<Woken> {
        let next = {
            let mut woken = self.woken.lock();
            woken
                .finishing
                .pop_front()
                .or_else(|| woken.beginning.pop_front())
        }?;
        // Before its turn, so that what happens meanwhile wakes it once more.
        next.wakeable.queued.store(false, Ordering::SeqCst);
        Some(next)
    }

    /// The reactor's turn ends; whether something was woken that it has not seen.
    pub(super) fn end(&self) -> bool {
        self.running.store(false, Ordering::SeqCst);
        let woken = self.woken.lock();
        !woken.finishing.is_empty() || !woken.beginning.is_empty()
    }
}

impl Ready {
    /// Whether the reactor is in a turn.
    pub(super) fn is_running(&self) -> bool {
        self.running.load(Ordering::SeqCst)
    }

    /// Gives the reactor a turn although nothing of it was woken.
    pub(super) fn wake_runner(&self) {
        // Outside the lock: waking may run code of others.
        let runner = self.woken.lock().runner.clone();
        if let Some(runner) = runner {
            runner.wake();
        }
    }
}

impl Wake for Wakeable {
    fn wake(self: Arc<Self>) {
        if self.queued.swap(true, Ordering::SeqCst) {
            return;
        }
        let ready = self.ready.clone();
        ready.push(self);
        if !ready.running.load(Ordering::SeqCst) {
            ready.wake_runner();
        }
    }

    fn wake_by_ref(self: &Arc<Self>) {
        if !self.queued.load(Ordering::SeqCst) {
            self.clone().wake();
        }
    }
}
