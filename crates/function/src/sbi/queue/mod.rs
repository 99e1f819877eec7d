//! Requests that a worker has not begun: it begins a bounded number of handlers, further requests are queued as they came.
//!
//! A handler in flight holds trees, buffers and futures of many kilobytes, a request that is queued its head and body. So a
//! pause of the worker, after which thousands of requests are there at once, costs memory and caches for a few of them only. The
//! queue is in order of priority and deadline, and bounded in number and bytes: the least important leave it first. What ends
//! something is neither refused nor counted by these bounds.
//!
//! A handler that awaits another function is not counted as long as it waits ([`elsewhere`]), so that a peer that hangs does not
//! take the slots of what does not need it. Handlers that wait so have a bound of their own, above which no request begins
//! that may ask others.

mod meters;
mod order;
mod slot;
#[cfg(test)]
mod tests;

use std::cell::RefCell;
use std::rc::Rc;
use std::time::{Duration, Instant};

use ::sbi::Request;
use ::sbi::headers::{MaxRspTime, SbiHeader as _, SenderTimestamp};
use time::OffsetDateTime;
use tokio::sync::oneshot;

use meters::Meters;
pub use meters::QueueMetrics;
use order::{Order, Rank};
pub use slot::{Slot, elsewhere};
use telemetry::Registry;

use super::door::Weight;
use super::priority;

/// A request without `3gpp-Sbi-Max-Rsp-Time` is queued as if its consumer waited for this time, so that requests with a
/// longer limit do not overtake it for ever.
const USUAL_LIMIT: Duration = Duration::from_secs(3);
/// Levels of priority by which a request that changes something is above one that begins something, as in admission.
const CHANGES: u8 = 8;
/// The same of a request that ends something: it frees memory.
const ENDS: u8 = 16;
/// Memory of a queued request beside its header fields and its body.
const FIXED: usize = 1_024;

/// Bounds of the requests of a worker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QueueBounds {
    /// Handlers that are begun and do not await other functions.
    pub begun: usize,
    /// Handlers that await other functions, from where no request begins that may ask others; from twice as many on, only what
    /// ends something does.
    pub elsewhere: usize,
    /// Requests that are queued.
    pub queued: usize,
    /// Bytes of these.
    pub queued_bytes: usize,
}

/// What is known of a request before it begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Nature {
    /// What it does.
    pub weight: Weight,
    /// Whether its handler may await other functions.
    pub asks_others: bool,
}

/// Why a request was not begun.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotBegun {
    /// The queue has no room, or more important requests have taken it.
    Full,
    /// Its consumer waits no longer (`3gpp-Sbi-Max-Rsp-Time`).
    Late,
}

/// The requests of one worker. It outlives a reload.
pub struct RequestQueue {
    state: RefCell<State>,
    meters: Meters,
}

struct State {
    bounds: QueueBounds,
    begun: usize,
    elsewhere: usize,
    serial: u64,
    order: Order,
}

impl RequestQueue {
    /// The queue of this worker.
    #[must_use]
    pub fn new(bounds: QueueBounds, metrics: &QueueMetrics, registry: &Registry, worker: usize) -> Rc<Self> {
        Rc::new(Self {
            state: RefCell::new(State {
                bounds,
                begun: 0,
                elsewhere: 0,
                serial: 0,
                order: Order::default(),
            }),
            meters: Meters::new(metrics, registry, worker),
        })
    }

    /// Takes over other bounds. Requests that are queued stay.
    pub fn reconfigure(self: &Rc<Self>, bounds: QueueBounds) {
        self.state.borrow_mut().bounds = bounds;
        self.begin_next();
    }

    /// Waits until the handler of a request may begin; the slot is held until it has answered.
    ///
    /// # Errors
    /// When it is not to be begun.
    pub async fn slot(self: &Rc<Self>, request: &Request, nature: Nature) -> Result<Slot, NotBegun> {
        let (ticket, called) = {
            let mut state = self.state.borrow_mut();
            if state.has_room(nature) && !state.order.has_ready(state.limits()) {
                state.begun += 1;
                drop(state);
                return Ok(Slot::new(self.clone()));
            }
            state.serial += 1;
            let (rank, is_dated) = rank(request, nature.weight, state.serial);
            let bytes = FIXED + request.head.fields.held() + request.body.len();
            let (call, called) = oneshot::channel();
            let deadline = is_dated.then_some(rank.deadline);
            let bounds = (state.bounds.queued, state.bounds.queued_bytes);
            let refused = state.order.push(
                rank,
                nature,
                order::Queued {
                    bytes,
                    received: request.received,
                    call,
                },
                bounds,
            );
            drop(state);
            for one in refused {
                self.meters.refused();
                // No ticket receives it where the request has been dropped.
                drop(one.call.send(Err(NotBegun::Full)));
            }
            (
                Ticket {
                    queue: self,
                    rank,
                    nature,
                },
                (called, deadline),
            )
        };
        let (called, deadline) = called;
        let outcome = match deadline {
            Some(deadline) => tokio::time::timeout_at(deadline.into(), called).await,
            None => Ok(called.await),
        };
        drop(ticket);
        match outcome {
            Ok(Ok(outcome)) => outcome,
            // The queue keeps each sender until it has sent.
            Ok(Err(_)) => Err(NotBegun::Full),
            Err(_) => Err(NotBegun::Late),
        }
    }

    /// How long the request has been here that is queued for longest, of those that a slot would begin: the delay that admission
    /// goes by. A request that was important enough to overtake others has waited for less.
    #[must_use]
    pub fn delay(&self, now: Instant) -> Duration {
        let state = self.state.borrow();
        let oldest = state.order.oldest(state.limits());
        oldest.map_or(Duration::ZERO, |oldest| now.saturating_duration_since(oldest))
    }

    /// Shows the gauges.
    pub fn measure(&self) {
        let state = self.state.borrow();
        let (queued, bytes) = state.order.size();
        self.meters.show([state.begun, state.elsewhere, queued, bytes]);
    }

    /// Begins what may begin now.
    fn begin_next(self: &Rc<Self>) {
        loop {
            let next = {
                let mut state = self.state.borrow_mut();
                if state.begun >= state.bounds.begun {
                    return;
                }
                let limits = state.limits();
                let Some(next) = state.order.pop(limits) else {
                    return;
                };
                state.begun += 1;
                next
            };
            // A slot that no request takes is dropped, and begins the next.
            drop(next.call.send(Ok(Slot::new(self.clone()))));
        }
    }

    /// A handler has answered.
    fn ended(self: &Rc<Self>) {
        self.change(|state| state.begun = state.begun.saturating_sub(1));
    }

    /// A handler awaits another function.
    fn left(self: &Rc<Self>) {
        self.change(|state| {
            state.begun = state.begun.saturating_sub(1);
            state.elsewhere += 1;
        });
    }

    /// It goes on, whether a slot is free or not: it holds its memory already.
    fn returned(self: &Rc<Self>) {
        self.change(|state| {
            state.begun += 1;
            state.elsewhere = state.elsewhere.saturating_sub(1);
        });
    }

    fn change(self: &Rc<Self>, change: impl FnOnce(&mut State)) {
        change(&mut self.state.borrow_mut());
        self.begin_next();
    }
}

impl State {
    /// Which lanes may begin.
    fn limits(&self) -> order::Lanes {
        order::Lanes {
            asking: self.elsewhere < self.bounds.elsewhere,
            others: self.elsewhere < self.bounds.elsewhere.saturating_mul(2),
        }
    }

    fn has_room(&self, nature: Nature) -> bool {
        self.begun < self.bounds.begun && self.limits().has(nature)
    }
}

/// A request in the queue, which leaves that when its connection has ended.
struct Ticket<'a> {
    queue: &'a Rc<RequestQueue>,
    rank: Rank,
    nature: Nature,
}

impl Drop for Ticket<'_> {
    fn drop(&mut self) {
        let left = self.queue.state.borrow_mut().order.remove(self.rank, self.nature);
        drop(left);
    }
}

/// Where a request belongs in the queue, and whether its consumer names a limit.
fn rank(request: &Request, weight: Weight, serial: u64) -> (Rank, bool) {
    let above = match weight {
        Weight::Begins => 0,
        Weight::Changes => CHANGES,
        Weight::Ends => ENDS,
    };
    let limit = limit(request).filter(|_| weight != Weight::Ends);
    let rank = Rank {
        // TS 29.500 §6.8.2: 0 is the highest.
        priority: priority(request).saturating_sub(above),
        deadline: request.received + limit.unwrap_or(USUAL_LIMIT),
        serial,
    };
    (rank, limit.is_some())
}

/// How long after its receipt the consumer of a request waits (TS 29.500 §6.11.2): `3gpp-Sbi-Max-Rsp-Time` counts from
/// `3gpp-Sbi-Sender-Timestamp`.
fn limit(request: &Request) -> Option<Duration> {
    let headers = request.headers();
    let most = MaxRspTime::of(headers).ok().flatten()?.duration();
    let sent = SenderTimestamp::of(headers).ok().flatten();
    let passed =
        sent.and_then(|SenderTimestamp(sent)| Duration::try_from(OffsetDateTime::now_utc() - sent).ok());
    // What has passed since the receipt is not to count twice.
    let before = passed.map_or(Duration::ZERO, |passed| {
        passed
            .saturating_sub(super::admission::CLOCK_SKEW)
            .saturating_sub(request.received.elapsed())
    });
    Some(most.saturating_sub(before))
}
