//! Panics of the application: one ends the connection whose message or event it handled, and nothing else.

use std::net::SocketAddr;
use std::panic::{AssertUnwindSafe, catch_unwind};

use super::Node;
use super::application::{Application, NodeEvent};
use crate::connection::Ending;

impl<A: Application> Node<A> {
    /// Runs code of the node that calls the application; `None` after a panic, which is reported.
    pub(super) fn contained<T>(&self, remote: Option<SocketAddr>, step: impl FnOnce() -> T) -> Option<T> {
        let done = catch_unwind(AssertUnwindSafe(step));
        if done.is_err() {
            self.panicked(remote);
        }
        done.ok()
    }

    /// Reports a panic of the application while it handled a connection, or something that concerns no connection.
    #[cold]
    pub(super) fn panicked(&self, remote: Option<SocketAddr>) {
        tracing::error!(?remote, "the Diameter application panicked");
        // The application counts it, and may panic in that too.
        let _ = catch_unwind(AssertUnwindSafe(|| {
            self.app().event(self, NodeEvent::Panicked { remote });
        }));
    }

    /// Ends the connections of a peer whose state the application has not followed.
    pub(super) fn abandon(&self, key: usize) {
        let ids = self.with_slot(key, |slot| [slot.initiator, slot.responder]);
        for id in ids.into_iter().flatten().flatten() {
            if let Some(connection) = self.connection(id) {
                connection.end(Ending::Now);
            }
        }
    }
}
