//! How a connection to a peer ends, and how its requests end with it.

use std::task::Context;

use http2::{Fault, Reason, StreamId};

use super::Connection;
use crate::client::error::{SendError, SendErrorKind};
use crate::stats::{ServerStats, count};

/// Why the client ended a connection that the peer misused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::client) enum Blamed {
    /// It sent too many frames.
    Flood(http2::Flood),
    /// Its answers held the most memory when all connections of the worker exceeded the limit.
    Greedy,
}

impl Blamed {
    /// The reason as text, for the errors of requests on the connection.
    pub(in crate::client) fn what(self) -> &'static str {
        match self {
            Self::Flood(flood) => flood.describe(),
            Self::Greedy => "more than there is memory for",
        }
    }

    fn count(self, stats: &ServerStats) {
        match self {
            Self::Flood(_) => count(&stats.peers_flooding),
            Self::Greedy => count(&stats.peers_greedy),
        }
    }
}

impl Connection {
    /// No more requests on this connection; those on it finish.
    pub(in crate::client) fn retire(&self) {
        if !self.usable.replace(false) {
            return;
        }
        if let Some(link) = &mut self.state.borrow_mut().link {
            link.engine.shut_down();
        }
        self.reactor.has_output(self.key);
        if let Some(pool) = self.pool.upgrade() {
            pool.lost();
        }
    }

    pub(super) fn fault(&self, fault: Fault, cx: &mut Context<'_>) {
        match fault.flood {
            Some(flood) => self.end_at_once(Blamed::Flood(flood), cx),
            None => {
                // The GOAWAY, as far as the socket takes it.
                if let Some(link) = &mut self.state.borrow_mut().link {
                    let _ = link.write(self.reactor.now(), cx);
                }
                self.end(None, &fault.to_string());
            }
        }
    }

    pub(super) fn end_at_once(&self, blamed: Blamed, cx: &mut Context<'_>) {
        if let Some(link) = &mut self.state.borrow_mut().link {
            link.engine.close(Reason::ENHANCE_YOUR_CALM);
            let _ = link.write(self.reactor.now(), cx);
        }
        self.end(Some(blamed), blamed.what());
    }

    /// The connection is over: the requests that are left fail.
    pub(super) fn end(&self, blamed: Option<Blamed>, why: &str) {
        let (link, over, left, check) = {
            let mut state = self.state.borrow_mut();
            state.buffers.set(0);
            let left: Vec<StreamId> = {
                let alive = state
                    .requests
                    .iter()
                    .filter(|(_, sent)| state.places.contains_key(&sent.stream.number()));
                alive.map(|(_, sent)| sent.stream).collect()
            };
            (state.link.take(), state.over.take(), left, state.check.take())
        };
        self.reactor.cancel_timer(check);
        for stream in left {
            self.done(stream, || {
                Err(SendError::unknown(SendErrorKind::Broken(why.to_owned())))
            });
        }
        let pool = self.pool.upgrade();
        if let Some(blamed) = blamed {
            self.account.memory().stats(|stats| blamed.count(stats));
            // Before the pool makes another connection.
            if let Some(pool) = &pool {
                pool.blamed(blamed);
            }
        }
        if let Some((link, over)) = link.zip(over)
            && blamed.is_some()
        {
            // Without its task the worker has stopped.
            let _ = over.send(link);
        }
        self.reactor.leave(self.key);
        if self.usable.replace(false)
            && let Some(pool) = pool
        {
            pool.lost();
        }
    }
}
