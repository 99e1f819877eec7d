//! Requests from their heads to their answers.

use std::collections::hash_map::Entry;
use std::rc::Rc;
use std::time::{Duration, Instant};

use follow::Direction;
use http2::{Event, Reason, RequestHead, StreamId, name};
use sbi_proto::{Body, Request, Response, Service};

use super::Connection;
use crate::link::Link;
use crate::memory::Shares;
use crate::reactor::TimerKey;
use crate::server::activity::InProgress;
use crate::server::forwarded::client_of;
use crate::server::{host, refusal};
use crate::stats::count;
use crate::tap::{Caused, Route, Tapped};

/// A request whose body has not arrived whole.
pub(super) struct Arriving {
    pub(super) stream: StreamId,
    head: RequestHead,
    received: Instant,
    waited: Duration,
    pub(super) in_progress: InProgress,
    pub(super) timer: Option<TimerKey>,
}

/// An answer that waits for the peer's windows.
pub(super) struct Answer {
    own: usize,
    shares: Shares,
    _in_progress: InProgress,
}

/// A request whose service has not answered. Its stream is reset when the service panics.
struct Unanswered<S: Service> {
    connection: Rc<Connection<S>>,
    stream: StreamId,
}

impl<S: Service> Drop for Unanswered<S> {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            return;
        }
        let connection = &self.connection;
        count(&connection.shared.stats.requests_panicked);
        // Where the panic came from the connection itself, that is closed instead.
        if let Ok(mut state) = connection.state.try_borrow_mut()
            && let Some(link) = &mut state.link
        {
            link.engine.reset(self.stream, Reason::INTERNAL_ERROR);
        }
        connection.reactor.has_output(connection.key);
    }
}

impl<S: Service> Connection<S> {
    /// The next thing that the engine has found.
    pub(super) fn next_event(&self) -> Option<Event> {
        self.state.borrow_mut().link.as_mut()?.engine.next_event()
    }

    /// Handles what is not a new request.
    pub(super) fn event(&self, event: Event) {
        match event {
            Event::Oversized { stream, what } => {
                count(&self.shared.stats.requests);
                count(&self.shared.stats.headers_too_large);
                let response = refusal::oversized(what, &self.shared.config);
                self.refuse(stream, response, self.activity.begin());
            }
            Event::Body { stream, body } => {
                if let Some(arrived) = self.arrived(stream) {
                    self.serve(arrived, body);
                }
            }
            Event::TooLarge { stream } => {
                if let Some(arrived) = self.arrived(stream) {
                    count(&self.shared.stats.bodies_too_large);
                    let response = refusal::body_too_large(&self.shared.config);
                    self.refuse(stream, response, arrived.in_progress);
                }
            }
            Event::Reset { stream, .. } => {
                if self.arrived(stream).is_some() {
                    count(&self.shared.stats.requests_abandoned);
                    return;
                }
                let answer = self.state.borrow_mut().answers.remove(&stream.number());
                if answer.is_none() {
                    // It is carried out, as it came whole; its service may do without what was still to come.
                    self.peer.given_up.add(stream.number());
                }
                self.let_answer_go(answer);
            }
            Event::Sent { stream } => {
                let mut state = self.state.borrow_mut();
                // Most answers leave as soon as they are made.
                if !state.answers.is_empty() {
                    let answer = state.answers.remove(&stream.number());
                    drop(state);
                    self.let_answer_go(answer);
                }
            }
            Event::Request { .. }
            | Event::Arriving { .. }
            | Event::Response { .. }
            | Event::GoAway { .. }
            | Event::Pong { .. }
            | Event::Settings => {}
        }
    }

    /// The request of this stream, if its body is awaited. It is not any longer.
    fn arrived(&self, stream: StreamId) -> Option<Arriving> {
        let arrived = self.state.borrow_mut().arriving.remove(&stream.number())?;
        self.reactor.cancel_timer(arrived.timer);
        Some(arrived)
    }

    /// A request's head is here: what can be refused by it is. Returns what the engine has found after it.
    pub(super) fn request(
        &self,
        stream: StreamId,
        head: RequestHead,
        end: bool,
        now: Instant,
    ) -> Option<Event> {
        let Some(arriving) = self.let_in(stream, head, now) else {
            return self.next_event();
        };
        if end {
            self.serve(arriving, Body::empty());
            return self.next_event();
        }
        match self.next_event() {
            // The usual body has come with its head.
            Some(Event::Body { stream: of, body }) if of == stream => {
                self.serve(arriving, body);
                self.next_event()
            }
            next => {
                let mut state = self.state.borrow_mut();
                state.begun.push(stream.number());
                state.arriving.insert(stream.number(), arriving);
                next
            }
        }
    }

    /// Refuses a request by its head, or lets it in.
    fn let_in(&self, stream: StreamId, head: RequestHead, now: Instant) -> Option<Arriving> {
        let (config, stats) = (&self.shared.config, &self.shared.stats);
        count(&stats.requests);
        let refused = {
            let mut state = self.state.borrow_mut();
            let link = state.link.as_mut()?;
            if link.engine.unsent() + link.engine.output().len() > config.max_untaken.as_usize() {
                Some(&stats.requests_refused_untaken)
            } else if self.activity.account().is_greedy() {
                Some(&stats.requests_refused_memory)
            } else {
                None
            }
        };
        if let Some(counter) = refused {
            count(counter);
            self.reset(stream, Reason::REFUSED_STREAM);
            return None;
        }
        self.seat.used(now);
        let in_progress = self.activity.begin();
        if !self
            .state
            .borrow_mut()
            .window
            .admits(config.max_request_rate, now)
        {
            count(&stats.requests_over_rate);
            self.refuse(stream, refusal::over_rate(), in_progress);
            return None;
        }
        if let Err(detail) = host::check(&head.fields) {
            count(&stats.requests_ambiguous);
            self.refuse(stream, refusal::ambiguous(detail), in_progress);
            return None;
        }
        in_progress.charge(head.fields.held());
        let left = self.state.borrow().link.as_ref().and_then(Link::left_since);
        Some(Arriving {
            stream,
            head,
            received: now,
            waited: self.reactor.waited().at(now, left),
            in_progress,
            timer: None,
        })
    }

    /// Bodies that did not come with their heads get a limit in number and time.
    pub(super) fn wait_for_bodies(&self) {
        let mut refused = Vec::new();
        let mut asks = false;
        {
            let mut state = self.state.borrow_mut();
            let state = &mut *state;
            if state.begun.is_empty() {
                return;
            }
            let config = &self.shared.config;
            let at = self.reactor.now() + config.body_timeout.duration();
            let mut begun = std::mem::take(&mut state.begun);
            let still = begun.iter().filter(|number| state.arriving.contains_key(number));
            let mut waiting = state.arriving.len() - still.count();
            for number in begun.drain(..) {
                let Entry::Occupied(mut entry) = state.arriving.entry(number) else {
                    continue;
                };
                if waiting >= config.max_unfinished as usize {
                    refused.push(entry.remove());
                } else {
                    waiting += 1;
                    let timer = self.reactor.set_timer(self.key, u64::from(number), at);
                    let arriving = entry.get_mut();
                    arriving.timer = Some(timer);
                    if expects_to_be_asked(&arriving.head)
                        && let Some(link) = &mut state.link
                    {
                        asks |= link.engine.ask_for_body(arriving.stream);
                    }
                }
            }
            state.begun = begun;
        }
        if asks {
            self.reactor.has_output(self.key);
        }
        for arriving in refused {
            count(&self.shared.stats.requests_refused_unfinished);
            self.reset(arriving.stream, Reason::REFUSED_STREAM);
        }
    }

    /// The request is whole.
    fn serve(&self, arrived: Arriving, body: Body) {
        let Arriving {
            stream,
            head,
            received,
            waited,
            in_progress,
            ..
        } = arrived;
        in_progress.charge(body.len());
        let Some(me) = self.me.upgrade() else { return };
        let proxies = &self.shared.config.certificate_proxies;
        let peer = match proxies.is_empty() {
            true => self.peer.clone(),
            false => client_of(&self.peer, proxies, &head.fields),
        };
        let mut tapped = follow::active().map(|room| {
            let route = Route {
                direction: Direction::In,
                client: self.peer.addr,
                server: self.peer.local,
                stream: stream.number(),
            };
            Tapped::request(room, route, &head, body.clone())
        });
        let request = Request {
            head,
            body,
            peer,
            received,
            waited,
            stream: stream.number(),
        };
        let unanswered = Unanswered {
            connection: me,
            stream,
        };
        // Made in its place: a service that may wait for many things takes kilobytes, which `Box::pin` copies.
        let work = Box::write(Box::new_uninit(), async move {
            let answering = unanswered.connection.shared.service.clone().call(request);
            // In one place, however it is awaited: it may take kilobytes.
            let work = std::pin::pin!(answering);
            let response = match tapped.as_deref().and_then(Tapped::cause) {
                None => work.await,
                Some(cause) => Caused { cause, work }.await,
            };
            if let Some(tapped) = &mut tapped {
                tapped.answered(&response.head, &response.body);
            }
            unanswered.connection.answer(stream, response, in_progress);
        });
        self.reactor.run(self.key, Box::into_pin(work));
    }

    /// Answers a request without its service, which completes the answer.
    pub(super) fn refuse(&self, stream: StreamId, mut response: Response, in_progress: InProgress) {
        self.shared.service.complete(&mut response);
        self.answer(stream, response, in_progress);
    }

    /// Hands an answer to the engine.
    pub(super) fn answer(&self, stream: StreamId, response: Response, in_progress: InProgress) {
        in_progress.answered();
        self.peer.given_up.forget(stream.number());
        let (mut head, body) = response.into_parts();
        self.reactor.stamp(&mut head.fields);
        let account = self.activity.account();
        // Before the engine shares it: what only this answer holds is its own.
        let (own, shares) = account.hold(&body);
        let answer = Answer {
            own,
            shares,
            _in_progress: in_progress,
        };
        let done = {
            let mut state = self.state.borrow_mut();
            let state = &mut *state;
            // Without a link the connection has ended, without a stream the peer has given the request up.
            let is_sent = state.link.as_mut().is_none_or(|link| {
                let is_open = link.engine.respond(stream, &head, body);
                link.engine.output();
                !is_open || !link.engine.is_sending(stream)
            });
            match is_sent {
                true => Some(answer),
                false => state.answers.insert(stream.number(), answer),
            }
        };
        self.let_answer_go(done);
        self.reactor.has_output(self.key);
    }

    pub(super) fn let_answer_go(&self, answer: Option<Answer>) {
        if let Some(answer) = answer {
            self.activity.account().let_go(answer.own, &answer.shares);
        }
    }

    pub(super) fn reset(&self, stream: StreamId, reason: Reason) {
        if let Some(link) = &mut self.state.borrow_mut().link {
            link.engine.reset(stream, reason);
        }
        self.reactor.has_output(self.key);
    }
}

/// Whether the sender of a request keeps its body back until it is asked for it (RFC 9110 §10.1.1).
fn expects_to_be_asked(head: &RequestHead) -> bool {
    let expected = head.fields.get(name::EXPECT);
    expected.is_some_and(|value| value.as_bytes().eq_ignore_ascii_case(b"100-continue"))
}
