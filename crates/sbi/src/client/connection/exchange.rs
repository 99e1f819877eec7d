//! Requests on a connection, from the stream they open to their answers.

use std::future::poll_fn;
use std::rc::Rc;
use std::task::{Poll, Waker};
use std::time::{Duration, Instant};

use follow::Direction;
use http2::{Event, Reason, ResponseHead, StreamId};
use sbi_proto::{Body, Outbound, Response};

use super::Connection;
use crate::client::error::{SendError, SendErrorKind};
use crate::reactor::TimerKey;
use crate::tap::{Route, Tapped};

/// A request that was sent.
pub(super) struct Sent {
    pub(super) stream: StreamId,
    timer: Option<TimerKey>,
    /// The head of an answer whose body has not arrived.
    pub(super) head: Option<ResponseHead>,
    sender: Sender,
    tapped: Option<Box<Tapped>>,
}

/// The sender that awaits the answer.
enum Sender {
    Waits(Option<Waker>),
    /// The answer has arrived, or the request has failed.
    Has(Result<Response, SendError>),
    /// The sender has given up; the answer is awaited and discarded.
    Left,
    /// As before, and the stream is reset when the timer expires.
    Resets,
}

/// A request on its way. Dropping it before the answer is here leaves the answer to the connection.
pub(in crate::client) struct Exchange {
    connection: Rc<Connection>,
    place: Option<usize>,
}

impl Connection {
    /// Opens a stream for the request, whose body it takes; `None` if the connection takes no more.
    pub(in crate::client) fn begin(
        self: &Rc<Self>,
        request: &mut Outbound,
        deadline: Instant,
    ) -> Option<Exchange> {
        if self.rate_room() == 0 {
            return None;
        }
        let place = {
            let mut state = self.state.borrow_mut();
            let state = &mut *state;
            let usable = self.usable.get();
            let link = state
                .link
                .as_mut()
                .filter(|link| usable && link.engine.room() > 0)?;
            // There is room, so that the engine takes the body.
            let body = std::mem::take(&mut request.body);
            let copy = follow::active().map(|room| (room, body.clone()));
            let stream = link.engine.request(&request.head, body).ok()?;
            let tapped = copy.map(|(room, body)| {
                let route = Route {
                    direction: Direction::Out,
                    client: self.local,
                    server: self.remote,
                    stream: stream.number(),
                };
                Tapped::request(room, route, &request.head, body)
            });
            let place = state.requests.insert(Sent {
                stream,
                timer: None,
                head: None,
                sender: Sender::Waits(None),
                tapped,
            });
            state.places.insert(stream.number(), place);
            let timer = self.reactor.set_timer(self.key, place as u64 + 1, deadline);
            state.requests[place].timer = Some(timer);
            place
        };
        let mut rate = self.rate.borrow_mut();
        if rate.is_limited() {
            rate.take(Instant::now());
        }
        drop(rate);
        self.in_progress.set(self.in_progress.get() + 1);
        self.reactor.has_output(self.key);
        Some(Exchange {
            connection: self.clone(),
            place: Some(place),
        })
    }

    /// The head of an answer is here, its body comes. Returns what the engine has found after it.
    pub(super) fn begun(&self, stream: StreamId, head: ResponseHead) -> Option<Event> {
        match self.next_event() {
            // The usual body has come with its head.
            Some(Event::Body { stream: of, body }) if of == stream => {
                self.answered(stream, Some(head), body);
                self.next_event()
            }
            next => {
                let mut state = self.state.borrow_mut();
                let place = state.places.get(&stream.number()).copied();
                if let Some(sent) = place.and_then(|place| state.requests.get_mut(place)) {
                    sent.head = Some(head);
                }
                next
            }
        }
    }

    /// An answer is whole; its head is here or came before.
    pub(super) fn answered(&self, stream: StreamId, head: Option<ResponseHead>, body: Body) {
        let head = head.or_else(|| {
            let mut state = self.state.borrow_mut();
            let place = state.places.get(&stream.number()).copied()?;
            state.requests.get_mut(place)?.head.take()
        });
        if let Some(head) = head {
            self.done(stream, || Ok(Response { head, body }));
        }
    }

    /// The stream of a request has ended.
    pub(super) fn done(&self, stream: StreamId, outcome: impl FnOnce() -> Result<Response, SendError>) {
        let (waker, timer) = {
            let mut state = self.state.borrow_mut();
            let state = &mut *state;
            let Some(place) = state.places.remove(&stream.number()) else {
                return;
            };
            let Some(sent) = state.requests.get_mut(place) else {
                return;
            };
            let timer = sent.timer.take();
            let outcome = outcome();
            if let Some(mut tapped) = sent.tapped.take() {
                tapped.outcome(outcome.as_ref());
            }
            let waker = match &mut sent.sender {
                Sender::Waits(waker) => {
                    let waker = waker.take();
                    sent.sender = Sender::Has(outcome);
                    waker
                }
                // The deadline passed before: that is what the sender gets.
                Sender::Has(_) => None,
                Sender::Left | Sender::Resets => {
                    state.abandoned -= 1;
                    state.requests.remove(place);
                    None
                }
            };
            (waker, timer)
        };
        self.reactor.cancel_timer(timer);
        if let Some(waker) = waker {
            waker.wake();
        }
        self.ended_one();
    }

    fn ended_one(&self) {
        self.in_progress.set(self.in_progress.get() - 1);
        self.last_used.set(self.reactor.now());
        if let Some(pool) = self.pool.upgrade() {
            pool.serve_waiting();
        }
    }

    /// The timer of a request has expired: its deadline, or the time to reset its stream.
    pub(super) fn overdue(&self, place: usize, now: Instant) {
        let stream = {
            let mut state = self.state.borrow_mut();
            let state = &mut *state;
            let Some(sent) = state.requests.get_mut(place) else {
                return;
            };
            sent.timer = None;
            match &mut sent.sender {
                Sender::Waits(waker) => {
                    let waker = waker.take();
                    sent.sender = Sender::Has(Err(SendError::unknown(SendErrorKind::Timeout)));
                    return waker.into_iter().for_each(Waker::wake);
                }
                Sender::Has(_) => return,
                Sender::Left => {
                    sent.sender = Sender::Resets;
                    if let Some(at) = state.resets.turn(now) {
                        sent.timer = Some(self.reactor.set_timer(self.key, place as u64 + 1, at));
                    }
                    return;
                }
                Sender::Resets => {
                    let stream = sent.stream;
                    if let Some(link) = &mut state.link {
                        link.engine.reset(stream, Reason::CANCEL);
                    }
                    stream
                }
            }
        };
        self.reactor.has_output(self.key);
        self.done(stream, || Err(SendError::unknown(SendErrorKind::Timeout)));
    }

    /// The sender of the request in this slot has given up.
    fn abandon(&self, place: usize) {
        let now = Instant::now();
        let mut state = self.state.borrow_mut();
        let state = &mut *state;
        let Some(sent) = state.requests.get_mut(place) else {
            return;
        };
        let timer = sent.timer.take();
        if !state.places.contains_key(&sent.stream.number()) {
            // Its stream has ended; nothing is left but the outcome.
            state.requests.remove(place);
        } else {
            // Beyond the bound the stream is reset as soon as it is its turn.
            let within = state.abandoned < self.limits.abandoned_max;
            let wait = if within {
                self.limits.abandoned_wait
            } else {
                Duration::ZERO
            };
            state.abandoned += 1;
            sent.sender = Sender::Left;
            sent.timer = Some(self.reactor.set_timer(self.key, place as u64 + 1, now + wait));
        }
        self.reactor.cancel_timer(timer);
    }
}

impl Exchange {
    /// Waits for the answer.
    pub(in crate::client) async fn response(&mut self) -> Result<Response, SendError> {
        poll_fn(|cx| {
            // Polled again after the answer was returned: there is no second answer.
            let Some(place) = self.place else {
                return Poll::Ready(Err(SendError::unknown(SendErrorKind::Timeout)));
            };
            let mut state = self.connection.state.borrow_mut();
            let state = &mut *state;
            let Some(sent) = state.requests.get_mut(place) else {
                return Poll::Ready(Err(SendError::unknown(SendErrorKind::Timeout)));
            };
            match &mut sent.sender {
                Sender::Has(outcome) => {
                    let lost = SendError::unknown(SendErrorKind::Timeout);
                    let outcome = std::mem::replace(outcome, Err(lost));
                    if !state.places.contains_key(&sent.stream.number()) {
                        state.requests.remove(place);
                        self.place = None;
                    }
                    Poll::Ready(outcome)
                }
                Sender::Waits(Some(waker)) if waker.will_wake(cx.waker()) => Poll::Pending,
                sender => {
                    *sender = Sender::Waits(Some(cx.waker().clone()));
                    Poll::Pending
                }
            }
        })
        .await
    }
}

impl Drop for Exchange {
    fn drop(&mut self) {
        if let Some(place) = self.place.take() {
            self.connection.abandon(place);
        }
    }
}
