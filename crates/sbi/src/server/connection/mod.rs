//! One connection: frames become requests, requests become answers.

mod ending;
mod requests;

use std::cell::{RefCell, RefMut};
use std::rc::{Rc, Weak};
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Instant;

use ahash::AHashMap;
use http2::{Event, Reason};
use sbi_proto::{Peer, Service};
use tokio::sync::oneshot;
use worker::Shutdown;

use super::activity::Activity;
use super::config::ServerConfig;
use super::places::Seat;
use super::rate::RateWindow;
use super::refusal;
use crate::link::{self, Link, REQUESTS, Read, Socket, Talks};
use crate::memory::{Charge, LetGo, Notice};
use crate::reactor::{Member, MemberKey, Reactor, TimerKey};
use crate::stats::{ServerStats, add, count, set};
use ending::{End, fault_counter};
use requests::{Answer, Arriving};

/// The timer of the periodic check; those of bodies have the number of their stream.
const CHECK: u64 = 0;

/// What all connections of a worker's server have in common.
pub(super) struct Shared<S> {
    pub(super) service: Rc<S>,
    pub(super) config: Arc<ServerConfig>,
    pub(super) engine: Arc<http2::Config>,
    pub(super) stats: Arc<ServerStats>,
    pub(super) shutdown: Shutdown,
}

/// A connection of the server.
struct Connection<S> {
    shared: Rc<Shared<S>>,
    reactor: Rc<Reactor>,
    key: MemberKey,
    peer: Rc<Peer>,
    seat: Seat,
    activity: Rc<Activity>,
    state: RefCell<State>,
    me: Weak<Self>,
}

struct State {
    /// `None` once the connection has ended.
    link: Option<Link>,
    /// Requests whose bodies have not arrived whole.
    arriving: AHashMap<u32, Arriving>,
    /// Those of them that began in this turn.
    begun: Vec<u32>,
    /// Answers that the peer's windows keep back.
    answers: AHashMap<u32, Answer>,
    window: RateWindow,
    /// Why the connection is being ended, once that is decided, and when it was.
    ending: Option<End>,
    ended_at: Option<Instant>,
    /// Since when there has been no request, as far as the checks have seen.
    quiet_since: Instant,
    counted: Counted,
    /// What the buffers of the socket hold.
    buffers: Charge,
    check: Option<TimerKey>,
    over: Option<oneshot::Sender<(End, Link)>>,
}

/// What the statistics know of the connection already.
#[derive(Default)]
struct Counted {
    bytes_in: u64,
    bytes_out: u64,
    refused: u64,
}

/// Serves a connection to its end; `came` was read from it before.
pub(super) async fn drive<S: Service>(
    socket: Socket,
    came: Vec<u8>,
    peer: Rc<Peer>,
    shared: &Rc<Shared<S>>,
    seat: Seat,
) {
    let now = Instant::now();
    seat.opened(now);
    let mut link = Link::new(
        socket,
        http2::Connection::server(shared.engine.clone(), now),
        REQUESTS,
        now,
    );
    link.came_before(came);
    let (over, ended) = oneshot::channel();
    let reactor = Reactor::of_worker();
    let connection = reactor.join(false, |key| {
        let activity = seat.activity().clone();
        Rc::new_cyclic(|me| Connection {
            shared: shared.clone(),
            reactor: reactor.clone(),
            key,
            peer,
            seat,
            state: RefCell::new(State {
                link: Some(link),
                arriving: AHashMap::default(),
                begun: Vec::new(),
                answers: AHashMap::default(),
                window: RateWindow::default(),
                ending: None,
                ended_at: None,
                quiet_since: now,
                counted: Counted::default(),
                buffers: Charge::new(activity.account().clone()),
                check: None,
                over: Some(over),
            }),
            activity,
            me: Weak::clone(me),
        })
    });
    let _leaves = Leaves(connection.clone());
    if let Some(link) = &mut connection.state.borrow_mut().link {
        link.join(&reactor, connection.key);
    }
    let holder: Weak<dyn LetGo> = connection.me.clone();
    connection.activity.account().held_by(holder);
    connection.next_check(now);
    let mut ended = std::pin::pin!(ended);
    let over = tokio::select! {
        over = &mut ended => over,
        () = shared.shutdown.fired() => {
            connection.drain();
            ended.await
        }
    };
    let Ok((end, link)) = over else { return };
    let stats = &shared.stats;
    set(
        &stats.memory_held,
        connection.activity.account().memory().held() as u64,
    );
    match end {
        End::Peer | End::Drained => return,
        End::Idle => return count(&stats.connections_idle),
        End::Stalled => return count(&stats.connections_stalled),
        End::Displaced => {}
        End::Greedy => count(&stats.connections_greedy),
        End::SlowHeaders => count(&stats.connections_slow_headers),
        End::Fault(fault) => count(fault_counter(stats, fault)),
    }
    // The GOAWAY reaches the peer if it still reads.
    tokio::select! {
        () = Box::pin(link.linger()) => {}
        () = connection.activity.account().has_to_let_go(), if end == End::Displaced => {}
    }
}

/// Takes a connection out of the reactor, however its task ends.
struct Leaves<S: Service>(Rc<Connection<S>>);

impl<S: Service> Drop for Leaves<S> {
    fn drop(&mut self) {
        self.0.leave();
    }
}

impl<S: Service> Member for Connection<S> {
    fn turn(self: Rc<Self>, cx: &mut Context<'_>) {
        let account = self.activity.account();
        account.listen(cx);
        match account.notice() {
            Some(Notice::Close) => return self.end_at_once(End::Greedy, Reason::ENHANCE_YOUR_CALM, cx),
            Some(Notice::Yield) if self.activity.open() == 0 => {
                return self.end_at_once(End::Displaced, Reason::NO_ERROR, cx);
            }
            // A request came meanwhile: it is answered first.
            Some(Notice::Yield) => self.begin_end(End::Idle),
            None => {}
        }
        match link::read(&*self, self.key, &self.reactor, cx) {
            Read::End => {
                // Answers to what came before it, as far as they are here and the socket takes them.
                if let Some(link) = &mut self.state.borrow_mut().link {
                    let _ = link.write(self.reactor.now(), cx);
                }
                return self.finish(End::Peer);
            }
            Read::Fault(fault) => return self.end_at_once(End::Fault(fault), fault.reason, cx),
            Read::Some | Read::Nothing | Read::Enough => {}
        }
        self.wait_for_bodies();
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
            state.count(&self.shared.stats, &self.activity);
            // A client that says goodbye may still have requests: it closes the connection itself (RFC 9113 §6.8).
            let ends =
                state.ending.is_some() && state.link.as_ref().is_some_and(|link| link.engine.is_finished());
            match written {
                Poll::Ready(Err(_)) => Some(End::Peer),
                Poll::Ready(Ok(())) if ends => state.ending,
                _ => None,
            }
        };
        // What was written may have made room for answers that waited.
        self.events(self.reactor.now());
        if let Some(end) = over {
            self.finish(end);
        }
    }

    fn timer(self: Rc<Self>, tag: u64, cx: &mut Context<'_>) {
        if tag == CHECK {
            return self.check(self.reactor.now(), cx);
        }
        let late = u32::try_from(tag).ok();
        let late = late.and_then(|number| self.state.borrow_mut().arriving.remove(&number));
        if let Some(arriving) = late {
            count(&self.shared.stats.bodies_too_slow);
            self.refuse(arriving.stream, refusal::body_too_slow(), arriving.in_progress);
        }
    }

    fn panicked(self: Rc<Self>) {
        count(&self.shared.stats.connections_panicked);
        self.leave();
    }
}

impl<S: Service> Talks for Connection<S> {
    fn link(&self) -> RefMut<'_, Option<Link>> {
        RefMut::map(self.state.borrow_mut(), |state| &mut state.link)
    }

    /// Handles what the engine has found.
    fn events(&self, now: Instant) {
        let mut next = self.next_event();
        while let Some(event) = next {
            next = match event {
                Event::Request { stream, head, end } => self.request(stream, head, end, now),
                event => {
                    self.event(event);
                    self.next_event()
                }
            };
        }
    }
}

/// Ends what waits for its service.
impl<S: Service> LetGo for Connection<S> {
    fn let_go(&self) {
        self.reactor.abort(self.key);
    }
}

impl<S> Connection<S> {
    /// Whether a flush has something to do: bytes to write, to read again, or the end. What the buffers hold is charged
    /// here in any case.
    fn needs_flush(&self) -> bool {
        let mut state = self.state.borrow_mut();
        let state = &mut *state;
        let Some(link) = &mut state.link else { return false };
        state.buffers.set(link.held());
        state.ending.is_some() || link.needs_flush()
    }
}

impl State {
    fn count(&mut self, stats: &ServerStats, activity: &Activity) {
        let Some(link) = &self.link else { return };
        let (read, wrote) = link.bytes();
        set(&stats.memory_held, activity.account().memory().held() as u64);
        add(
            &stats.bytes_in,
            read - std::mem::replace(&mut self.counted.bytes_in, read),
        );
        add(
            &stats.bytes_out,
            wrote - std::mem::replace(&mut self.counted.bytes_out, wrote),
        );
        let refused = link.engine.counts().refused;
        add(
            &stats.streams_refused,
            refused - std::mem::replace(&mut self.counted.refused, refused),
        );
    }
}
