//! How a connection ends, and which timeouts its peer has exceeded.

use std::sync::atomic::AtomicU64;
use std::task::Context;
use std::time::{Duration, Instant};

use http2::{Fault, Reason};
use sbi_proto::Service;

use super::{CHECK, Connection};
use crate::link::Talks;
use crate::stats::{ServerStats, add};

/// How long a server that stops waits for the answer to its PING on a connection without requests (RFC 9113 §6.8 asks for one
/// round trip): a client that reads only when it has a request answers none.
const DRAINED_WAIT: Duration = Duration::from_secs(1);

/// Why a connection ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    /// The peer closed it.
    Peer,
    /// The peer broke the rules of HTTP/2, or a limit of the engine.
    Fault(Fault),
    Idle,
    Stalled,
    SlowHeaders,
    /// It held most while all connections together exceeded the memory limit.
    Greedy,
    /// Another connection needed its slot.
    Displaced,
    Drained,
}

/// The timeout that a peer has exceeded.
enum Overdue {
    Nothing,
    /// There has been no request for too long.
    Request,
    /// The header block of a request did not arrive in time.
    Headers,
    /// It does not read its answers, or does not close after GOAWAY.
    Peer(End),
    /// It has no request in progress and does not answer while the server stops.
    Drained,
}

/// The counter of connections that ended for this.
pub(super) fn fault_counter(stats: &ServerStats, fault: Fault) -> &AtomicU64 {
    use http2::Flood;
    match fault.flood {
        None | Some(Flood::EmptyData | Flood::HeaderBlock | Flood::StreamErrors) => &stats.connections_faulty,
        Some(Flood::Control | Flood::WindowUpdates) => &stats.connections_flooding,
        Some(Flood::Resets) => &stats.connections_resetting,
    }
}

impl<S: Service> Connection<S> {
    /// The server stops: requests in progress finish.
    pub(super) fn drain(&self) {
        self.begin_end(End::Drained);
        let check = self.state.borrow_mut().check.take();
        self.reactor.cancel_timer(check);
        self.next_check(self.reactor.now());
    }

    /// Begins to end the connection: requests in progress finish.
    pub(super) fn begin_end(&self, end: End) {
        {
            let mut state = self.state.borrow_mut();
            if state.ending.is_some() {
                return;
            }
            let Some(link) = &mut state.link else { return };
            link.engine.shut_down();
            state.ending = Some(end);
            state.ended_at = Some(Instant::now());
        }
        self.reactor.has_output(self.key);
    }

    /// Ends the connection without waiting for anything: GOAWAY, as far as the socket takes it. It names the last
    /// request that was processed; later ones are safe to repeat.
    pub(super) fn end_at_once(&self, end: End, reason: Reason, cx: &mut Context<'_>) {
        if let Some(link) = &mut self.state.borrow_mut().link {
            link.engine.close(reason);
            let _ = link.write(self.reactor.now(), cx);
        }
        self.finish(end);
    }

    /// The connection is over; its task gets the socket for the last words.
    pub(super) fn finish(&self, end: End) {
        self.peer.given_up.add_all();
        let over = {
            let mut state = self.state.borrow_mut();
            state.count(&self.shared.stats, &self.activity);
            let end = state.ending.unwrap_or(end);
            state
                .link
                .take()
                .zip(state.over.take())
                .map(|(link, over)| (over, end, link))
        };
        if let Some((over, end, link)) = over {
            // Without its task the connection has been abandoned.
            let _ = over.send((end, link));
        }
        self.leave();
    }

    /// Lets everything go that the connection holds.
    pub(super) fn leave(&self) {
        let (arriving, answers, check, link) = {
            let mut state = self.state.borrow_mut();
            state.buffers.set(0);
            // The task of the request does not wait any longer.
            state.over = None;
            (
                std::mem::take(&mut state.arriving),
                std::mem::take(&mut state.answers),
                state.check.take(),
                state.link.take(),
            )
        };
        self.reactor.cancel_timer(check);
        for (_, arriving) in arriving {
            self.reactor.cancel_timer(arriving.timer);
        }
        for (_, answer) in answers {
            self.let_answer_go(Some(answer));
        }
        drop(link);
        self.reactor.leave(self.key);
    }

    /// Period of the check of the timeouts: short enough to be exact to a quarter.
    fn check_period(&self) -> Duration {
        let config = &self.shared.config;
        let shortest = config
            .write_stall_timeout
            .min(config.idle_timeout)
            .min(config.header_timeout)
            .min(config.answer_timeout);
        let drains = self.state.borrow().ending == Some(End::Drained);
        let most = if drains { DRAINED_WAIT } else { Duration::MAX };
        (shortest.duration() / 4)
            .clamp(Duration::from_millis(5), Duration::from_secs(5))
            .min(most)
    }

    pub(super) fn next_check(&self, now: Instant) {
        let timer = self.reactor.set_timer(self.key, CHECK, now + self.check_period());
        self.state.borrow_mut().check = Some(timer);
    }

    /// Enforces the timeouts.
    pub(super) fn check(&self, now: Instant, cx: &mut Context<'_>) {
        match self.overdue(now) {
            Overdue::Nothing => {}
            Overdue::Request => self.begin_end(End::Idle),
            Overdue::Headers => {
                return self.end_at_once(End::SlowHeaders, Reason::ENHANCE_YOUR_CALM, cx);
            }
            Overdue::Drained => return self.end_at_once(End::Drained, Reason::NO_ERROR, cx),
            Overdue::Peer(end) => return self.finish(end),
        }
        self.events(now);
        self.reactor.has_output(self.key);
        self.next_check(now);
    }

    /// The timeout that the peer has exceeded. Answers that it does not read are given up.
    fn overdue(&self, now: Instant) -> Overdue {
        let config = &self.shared.config;
        let mut state = self.state.borrow_mut();
        let state = &mut *state;
        let Some(link) = &mut state.link else {
            return Overdue::Nothing;
        };
        if self.activity.moved() || self.activity.open() > 0 {
            state.quiet_since = now;
        } else {
            link.rest();
        }
        let since = |at| now.saturating_duration_since(at);
        if link.is_blocked() && since(link.progress()) >= config.write_stall_timeout.duration() {
            return Overdue::Peer(End::Stalled);
        }
        let given_up = link.engine.give_up_unsent(now, config.answer_timeout.duration());
        add(&self.shared.stats.answers_not_taken, given_up);
        match (state.ending, state.ended_at) {
            // A peer that ignores the GOAWAY is not waited for.
            (Some(end), Some(at))
                if end != End::Drained && since(at) >= config.handshake_timeout.duration() =>
            {
                Overdue::Peer(end)
            }
            (Some(End::Drained), Some(at))
                if since(at) >= DRAINED_WAIT && self.activity.open() == 0 && state.arriving.is_empty() =>
            {
                Overdue::Drained
            }
            (Some(_), _) => Overdue::Nothing,
            (None, _) => {
                let wait = link.engine.header_wait(now);
                if wait.is_some_and(|wait| wait >= config.header_timeout.duration()) {
                    Overdue::Headers
                } else if since(state.quiet_since) >= config.idle_timeout.duration() {
                    Overdue::Request
                } else {
                    Overdue::Nothing
                }
            }
        }
    }
}
