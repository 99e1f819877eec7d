//! Gathering: under load, a turn of the worker begins at most every so often, so that each system call carries
//! several messages.
//!
//! A read or write of the kernel costs some microseconds, whether it moves one message or fifty. Near its limit a
//! worker finds many messages at each turn anyway; well below, it would pay for each message alone, and reach its limit
//! sooner. So where the rate is so high that another message is expected within [`crate::Limits::gather`] (10,000 per
//! second for 100 µs), the worker's thread sleeps for the rest of that time since its last turn. After a longer turn
//! the next one starts at once; a single message, or a peer with one request in flight at a time, is never delayed.
//!
//! The thread sleeps, not a task: tasks that would run meanwhile are those whose work is to be gathered. Below the rate
//! the pacer's task sleeps too: it would cost two polls of the sockets with each message.

use std::cell::Cell;
use std::rc::Rc;
use std::task::{Poll, Waker};
use std::time::{Duration, Instant};

use super::Node;
use super::application::Application;

/// Requests in flight from which gathering starts.
const FROM_PENDING: usize = 2;
/// Interval at which the rate is measured.
const WINDOW: Duration = Duration::from_millis(20);

/// State of the pacer.
pub(super) struct Pace {
    gather: Duration,
    /// Messages were read since the last turn ended.
    busy: Cell<bool>,
    waker: Cell<Option<Waker>>,
    turn: Cell<Instant>,
    messages: Cell<u64>,
    window: Cell<Instant>,
    engaged: Cell<bool>,
}

impl Pace {
    pub(super) const fn new(gather: Duration, now: Instant) -> Self {
        Self {
            gather,
            busy: Cell::new(false),
            waker: Cell::new(None),
            turn: Cell::new(now),
            messages: Cell::new(0),
            window: Cell::new(now),
            engaged: Cell::new(false),
        }
    }

    /// Counts messages that were read.
    #[inline]
    pub(super) fn read(&self, messages: u64, now: Instant) {
        self.messages.set(self.messages.get() + messages);
        self.update(now);
        if self.engaged.get()
            && !self.busy.replace(true)
            && let Some(waker) = self.waker.take()
        {
            waker.wake();
        }
    }

    fn update(&self, now: Instant) {
        let elapsed = now.saturating_duration_since(self.window.get());
        if elapsed >= WINDOW {
            let rate = self.messages.replace(0) as f64 / elapsed.as_secs_f64();
            self.engaged.set(rate * self.gather.as_secs_f64() >= 1.0);
            self.window.set(now);
        }
    }

    /// How long to sleep before the next turn.
    fn rest(&self, now: Instant, pending: usize) -> Option<Duration> {
        if !self.engaged.get() || pending < FROM_PENDING {
            return None;
        }
        self.gather
            .checked_sub(now.saturating_duration_since(self.turn.get()))
            .filter(|rest| !rest.is_zero())
    }
}

impl<A: Application> Node<A> {
    pub(super) fn spawn_pacer(&self) {
        if self.0.pace.gather.is_zero() {
            return;
        }
        let weak = Rc::downgrade(&self.0);
        let task = tokio::task::spawn_local(async move {
            loop {
                let busy = std::future::poll_fn(|cx| {
                    let Some(inner) = weak.upgrade() else {
                        return Poll::Ready(false);
                    };
                    if inner.pace.busy.get() {
                        return Poll::Ready(true);
                    }
                    inner.pace.waker.set(Some(cx.waker().clone()));
                    Poll::Pending
                });
                if !busy.await {
                    return;
                }
                // Reads of all ready connections, and the writes that they wake, run first.
                tokio::task::yield_now().await;
                tokio::task::yield_now().await;
                let Some(inner) = weak.upgrade() else { return };
                let rest = inner.pace.rest(Instant::now(), inner.pending.borrow().len());
                if let Some(rest) = rest {
                    std::thread::sleep(rest);
                }
                inner.pace.turn.set(Instant::now());
                inner.pace.busy.set(false);
            }
        });
        self.0.tasks.borrow_mut().push(task);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_busy_worker_with_several_requests_rests_for_the_rest_of_the_interval() {
        let now = Instant::now();
        let at = |micros| now + Duration::from_micros(micros);
        let gather = Duration::from_micros(200);
        let pace = Pace::new(gather, now);
        assert_eq!(pace.rest(at(0), 10), None, "nothing is known of the rate yet");
        pace.read(80, at(20_000));
        assert_eq!(
            pace.rest(at(20_000), 10),
            None,
            "4,000 a second: none is expected in 200 µs"
        );
        pace.read(1000, at(40_000));
        pace.turn.set(at(40_000));
        assert_eq!(pace.rest(at(40_050), 10), Some(Duration::from_micros(150)));
        assert_eq!(
            pace.rest(at(40_050), 1),
            None,
            "one request at a time is not delayed"
        );
        assert_eq!(
            pace.rest(at(40_200), 10),
            None,
            "a turn that took as long is followed at once"
        );
    }
}
