//! One connection to a peer and the requests on it.

mod ending;
mod exchange;

use std::cell::{Cell, RefCell, RefMut};
use std::net::SocketAddr;
use std::rc::{Rc, Weak};
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use ahash::AHashMap;
use http2::{Event, Reason};
use sbi_proto::Body;
use slab::Slab;
use tokio::sync::oneshot;

use super::config::ClientConfig;
use super::error::{SendError, SendErrorKind};
use super::pace::Pace;
use super::pool::Pool;
use super::rate::RateWindow;
use crate::link::{self, ANSWERS, FRAME_SIZE, Link, Read, Socket, Talks};
use crate::memory::{Account, Charge, Memory};
use crate::reactor::{Member, MemberKey, Reactor, TimerKey};
use crate::stats::count;
pub(super) use ending::Blamed;
pub(super) use exchange::Exchange;
use exchange::Sent;

/// The timer of the periodic check; the timers of requests have the number of their slot, plus one.
const CHECK: u64 = 0;

/// A connection that requests can be sent on.
pub(super) struct Connection {
    reactor: Rc<Reactor>,
    key: MemberKey,
    /// Addresses of this side and of the peer.
    local: SocketAddr,
    remote: SocketAddr,
    /// Whether it takes requests.
    usable: Cell<bool>,
    in_progress: Cell<u32>,
    last_used: Cell<Instant>,
    rate: RefCell<RateWindow>,
    limits: Limits,
    state: RefCell<State>,
    /// What is held for it.
    account: Rc<Account>,
    pool: Weak<Pool>,
}

/// What the settings say of each connection.
struct Limits {
    streams_max: u32,
    abandoned_max: usize,
    abandoned_wait: Duration,
    ping_interval: Duration,
    ping_timeout: Duration,
    idle_timeout: Duration,
}

struct State {
    /// `None` once the connection has ended.
    link: Option<Link>,
    requests: Slab<Sent>,
    /// The slots of requests by their streams.
    places: AHashMap<u32, usize>,
    abandoned: usize,
    resets: Pace,
    buffers: Charge,
    check: Option<TimerKey>,
    /// When a probe was sent, if its answer has not come.
    probed: Option<Instant>,
    /// Bytes that had come at the last check, and when it was.
    heard: (u64, Instant),
    /// Receives the link that still has its GOAWAY to send.
    over: Option<oneshot::Sender<Link>>,
}

/// Begins to speak HTTP/2 on a socket.
pub(super) fn start(
    socket: Socket,
    (local, remote): (SocketAddr, SocketAddr),
    pool: &Rc<Pool>,
) -> Rc<Connection> {
    let (config, now) = (&pool.config, Instant::now());
    let engine = http2::Connection::client(Arc::new(engine_config(config)), now);
    let reactor = Reactor::of_worker();
    let account = Memory::of_worker().open();
    let (over, ended) = oneshot::channel();
    let connection = reactor.join(true, |key| {
        Rc::new(Connection {
            reactor: reactor.clone(),
            key,
            local,
            remote,
            usable: Cell::new(true),
            in_progress: Cell::new(0),
            last_used: Cell::new(now),
            rate: RefCell::new(RateWindow::new(config.max_request_rate, now)),
            limits: Limits {
                streams_max: config.max_streams_per_connection,
                abandoned_max: config.max_abandoned as usize,
                abandoned_wait: config.abandoned_wait.duration(),
                ping_interval: config.ping_interval.duration(),
                ping_timeout: config.ping_timeout.duration(),
                idle_timeout: config.idle_timeout.duration(),
            },
            state: RefCell::new(State {
                link: Some(Link::new(socket, engine, ANSWERS, now)),
                requests: Slab::new(),
                places: AHashMap::default(),
                abandoned: 0,
                resets: Pace::new(config.max_cancel_rate),
                buffers: Charge::new(account.clone()),
                check: None,
                probed: None,
                heard: (0, now),
                over: Some(over),
            }),
            account,
            pool: Rc::downgrade(pool),
        })
    });
    if let Some(link) = &mut connection.state.borrow_mut().link {
        link.join(&reactor, connection.key);
    }
    connection.next_check(now);
    let leaves = Leaves(connection.clone());
    tokio::task::spawn_local(async move {
        let leaves = leaves;
        let Ok(link) = ended.await else { return };
        drop(leaves);
        // The GOAWAY carries the reason, if the peer still reads.
        link.linger().await;
    });
    connection
}

/// The limits that the engine enforces.
fn engine_config(config: &ClientConfig) -> http2::Config {
    http2::Config {
        max_concurrent_streams: config.max_streams_per_connection,
        max_header_list: config.max_header_list.as_usize(),
        max_header_fields: usize::MAX,
        max_body: config.max_body.as_usize(),
        max_arriving: config.max_arriving.as_usize(),
        max_frame_size: FRAME_SIZE,
        max_control_rate: config.max_control_rate,
        max_window_update_rate: config.max_window_update_rate,
        max_reset_rate: 0,
        ..http2::Config::default()
    }
}

/// Takes a connection out of the reactor, however its task ends.
struct Leaves(Rc<Connection>);

impl Drop for Leaves {
    fn drop(&mut self) {
        self.0.end(None, "the worker stopped");
    }
}

impl Member for Connection {
    fn turn(self: Rc<Self>, cx: &mut Context<'_>) {
        self.account.listen(cx);
        if self.account.notice().is_some() {
            return self.end_at_once(Blamed::Greedy, cx);
        }
        match link::read(&*self, self.key, &self.reactor, cx) {
            Read::End => return self.end(None, "the peer closed it"),
            Read::Fault(fault) => return self.fault(fault, cx),
            Read::Some | Read::Nothing | Read::Enough => {}
        }
        if self.needs_flush() {
            self.reactor.has_output(self.key);
        }
    }

    fn flush(self: Rc<Self>, cx: &mut Context<'_>) {
        let over = {
            let mut state = self.state.borrow_mut();
            let state = &mut *state;
            let Some(link) = &mut state.link else { return };
            let written = link.write(self.reactor.now(), cx);
            state.buffers.set(link.held());
            if link.may_read_again() {
                self.reactor.has_more(self.key);
            }
            match written {
                Poll::Ready(Err(error)) => Some(error.to_string()),
                Poll::Ready(Ok(())) if link.engine.is_finished() => Some("the peer closed it".to_owned()),
                _ => None,
            }
        };
        self.events(self.reactor.now());
        if let Some(why) = over {
            self.end(None, &why);
        }
    }

    fn timer(self: Rc<Self>, tag: u64, _cx: &mut Context<'_>) {
        let now = self.reactor.now();
        if tag == CHECK {
            return self.check(now);
        }
        let place = usize::try_from(tag - 1).unwrap_or(usize::MAX);
        self.overdue(place, now);
    }

    fn panicked(self: Rc<Self>) {
        self.account
            .memory()
            .stats(|stats| count(&stats.connections_panicked));
        self.end(None, "its handling panicked");
    }
}

impl Talks for Connection {
    fn link(&self) -> RefMut<'_, Option<Link>> {
        RefMut::map(self.state.borrow_mut(), |state| &mut state.link)
    }

    fn events(&self, _now: Instant) {
        let mut next = self.next_event();
        while let Some(event) = next {
            next = match event {
                Event::Response {
                    stream,
                    head,
                    end: false,
                } => self.begun(stream, head),
                event => {
                    self.event(event);
                    self.next_event()
                }
            };
        }
    }
}

impl Connection {
    /// The next thing that the engine has found.
    fn next_event(&self) -> Option<Event> {
        self.state.borrow_mut().link.as_mut()?.engine.next_event()
    }

    /// Handles what is not the head of an answer with a body.
    fn event(&self, event: Event) {
        match event {
            Event::Response { stream, head, .. } => self.answered(stream, Some(head), Body::empty()),
            Event::Body { stream, body } => self.answered(stream, None, body),
            Event::TooLarge { stream } => {
                if let Some(link) = &mut self.state.borrow_mut().link {
                    link.engine.reset(stream, Reason::CANCEL);
                }
                self.done(stream, || Err(SendError::unknown(SendErrorKind::TooLarge)));
            }
            Event::Oversized { stream, .. } => {
                self.done(stream, || Err(SendError::unknown(SendErrorKind::TooLarge)));
            }
            Event::Reset {
                stream,
                reason,
                processed,
            } => {
                self.done(stream, || Err(SendError::of_stream(reason, processed)));
            }
            Event::GoAway { .. } => self.retire(),
            Event::Settings => {
                if let Some(pool) = self.pool.upgrade() {
                    pool.serve_waiting();
                }
            }
            Event::Pong { .. } => self.state.borrow_mut().probed = None,
            Event::Arriving { .. } | Event::Sent { .. } | Event::Request { .. } => {}
        }
    }

    /// Whether a flush has something to do: bytes to write, to read again, or the end. What the buffers hold is charged
    /// here in any case.
    fn needs_flush(&self) -> bool {
        let mut state = self.state.borrow_mut();
        let state = &mut *state;
        let Some(link) = &mut state.link else { return false };
        state.buffers.set(link.held());
        link.engine.is_finished() || link.needs_flush()
    }

    pub(super) fn is_usable(&self) -> bool {
        self.usable.get()
    }

    pub(super) fn in_progress(&self) -> u32 {
        self.in_progress.get()
    }

    pub(super) fn has_room(&self) -> bool {
        self.has_room_for(1)
    }

    pub(super) fn has_room_for(&self, more: u32) -> bool {
        if !self.usable.get() || self.rate_room() < more {
            return false;
        }
        let state = self.state.borrow();
        let room = state.link.as_ref().map_or(0, |link| link.engine.room());
        room >= more && self.in_progress.get().saturating_add(more) <= self.limits.streams_max
    }

    /// Requests that its rate lets it send now.
    pub(super) fn rate_room(&self) -> u32 {
        let mut rate = self.rate.borrow_mut();
        match rate.is_limited() {
            true => rate.room(Instant::now()),
            false => u32::MAX,
        }
    }

    /// Probes a silent peer, closes the connection of a peer that does not answer, and closes unused connections.
    fn check(&self, now: Instant) {
        let limits = &self.limits;
        let is_dead = {
            let mut state = self.state.borrow_mut();
            let state = &mut *state;
            let Some(link) = &mut state.link else { return };
            let bytes_in = link.bytes().0;
            if bytes_in != state.heard.0 {
                state.heard = (bytes_in, now);
                state.probed = None;
            }
            if self.in_progress.get() == 0 {
                link.rest();
            }
            let probes = !limits.ping_interval.is_zero();
            let late = |at| now.saturating_duration_since(at) >= limits.ping_timeout;
            let is_dead = probes && state.probed.is_some_and(late);
            let silent = now.saturating_duration_since(state.heard.1);
            if probes
                && silent >= limits.ping_interval
                && state.probed.is_none()
                && self.in_progress.get() > 0
            {
                link.engine.ping(*b"alive?..");
                state.probed = Some(now);
            }
            is_dead
        };
        if is_dead {
            return self.end(None, "the peer answers no PING");
        }
        let unused = now.saturating_duration_since(self.last_used.get());
        if self.in_progress.get() == 0 && unused >= limits.idle_timeout {
            self.retire();
        }
        self.reactor.has_output(self.key);
        self.next_check(now);
    }

    fn next_check(&self, now: Instant) {
        let limits = &self.limits;
        let mut shortest = limits.idle_timeout;
        if !limits.ping_interval.is_zero() {
            shortest = shortest.min(limits.ping_interval).min(limits.ping_timeout);
        }
        let period = (shortest / 4).clamp(Duration::from_millis(5), Duration::from_secs(5));
        let timer = self.reactor.set_timer(self.key, CHECK, now + period);
        self.state.borrow_mut().check = Some(timer);
    }
}
