//! A reactor where a runtime waits: it is one task among others.

use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use tokio::time::Sleep;
use worker::Driven as _;

use super::Reactor;

/// What each connection has of the time of the worker: as much as a connection that is a task of its own, such as one of
/// Diameter.
const SHARE: Duration = Duration::from_micros(500);
/// What all of them have at most before others have their turn.
const MOST: Duration = Duration::from_millis(10);

/// Ends with the `LocalSet`.
struct Ends(Rc<Reactor>);

impl Drop for Ends {
    fn drop(&mut self) {
        self.0.end();
    }
}

/// Runs the reactor until the task is dropped.
pub(super) async fn run(reactor: Rc<Reactor>) {
    let ends = Ends(reactor);
    let reactor = &ends.0;
    let mut sleep = pin!(tokio::time::sleep_until(far_away()));
    let mut until = None;
    poll_fn(|cx| -> Poll<()> {
        let began = Instant::now();
        let share = share(reactor);
        let mut now = began;
        while reactor.turn(now, cx.waker()) {
            now = Instant::now();
            if now.saturating_duration_since(began) >= share {
                // The runtime wakes what yields after it has asked the sockets.
                let _ = pin!(tokio::task::yield_now()).poll(cx);
                return Poll::Pending;
            }
        }
        rest(reactor, sleep.as_mut(), &mut until, cx);
        Poll::Pending
    })
    .await;
}

/// How long it goes on while it has more to do, before the other tasks have their turn.
fn share(reactor: &Reactor) -> Duration {
    let connections = u32::try_from(reactor.members.borrow().len()).unwrap_or(u32::MAX);
    SHARE.saturating_mul(connections.max(1)).min(MOST)
}

/// Sees to it that the next timer wakes the reactor.
fn rest(reactor: &Reactor, mut sleep: Pin<&mut Sleep>, until: &mut Option<Instant>, cx: &mut Context<'_>) {
    let next = reactor.timers.borrow().next();
    // A sleep that ends too early costs one turn; resetting it for each change would cost one each.
    let too_late = match (next, *until) {
        (None, _) => false,
        (Some(_), None) => true,
        (Some(next), Some(until)) => next < until || until <= reactor.now.get(),
    };
    if too_late && let Some(next) = next {
        sleep.as_mut().reset(next.into());
        *until = Some(next);
    }
    // What is set and has been polled wakes the reactor when its time comes.
    let polled = !too_late && until.is_none_or(|until| until > reactor.now.get());
    if !polled && until.is_some() && sleep.poll(cx).is_ready() {
        *until = None;
        cx.waker().wake_by_ref();
    }
}

fn far_away() -> tokio::time::Instant {
    tokio::time::Instant::now() + Duration::from_secs(86_400 * 365)
}
