//! Deadlines, watchdogs, stalls: the periodic tick of a node.

use std::time::{Duration, Instant};

use diameter_proto::peer::Input;
use diameter_proto::pending::TICK;

use super::Node;
use super::application::{Application, NodeEvent, UnansweredReason};
use crate::connection::{Ending, count};

/// Interval at which connections and peers are checked.
const SLOW_TICK: Duration = Duration::from_millis(50);
/// Time after which a pending request is copied out of its read buffer.
const OWN_AFTER: Duration = Duration::from_millis(500);
/// Time that a peer may take to close after us.
const LINGER: Duration = Duration::from_secs(2);
/// Time that answers to abandoned requests have to reach other workers and their peers when the node stops.
const STOP_ANSWERS: Duration = Duration::from_millis(50);
/// Interval at which `stop` checks whether all is done.
const STOP_STEP: Duration = Duration::from_millis(10);

impl<A: Application> Node<A> {
    pub(super) fn spawn_ticks(&self) {
        let weak = std::rc::Rc::downgrade(&self.0);
        let task = tokio::task::spawn_local(async move {
            let mut slow = tokio::time::Instant::now();
            loop {
                let Some(inner) = weak.upgrade() else { return };
                let node = Node(inner);
                let now = node.refresh();
                node.contained(None, || node.expire(now));
                if tokio::time::Instant::now() >= slow {
                    node.contained(None, || node.slow_tick(now));
                    slow = tokio::time::Instant::now() + SLOW_TICK;
                }
                let pause = if node.pending() > 0 { TICK } else { SLOW_TICK };
                drop(node);
                tokio::time::sleep(pause).await;
            }
        });
        self.0.tasks.borrow_mut().push(task);
    }

    fn expire(&self, now: Instant) {
        loop {
            let overdue = self.0.pending.borrow_mut().expire(now);
            let Some((owner, waiting)) = overdue else { break };
            let connection = self
                .0
                .connections
                .borrow()
                .get(owner as usize)
                .map(|link| link.connection.clone());
            // A connection gives up its requests before it is removed, so it is present.
            let Some(connection) = connection else { continue };
            count(&connection.figures().timeouts, 1);
            if let Some((key, _)) = connection.binding.get() {
                self.drive(key, Input::Unanswered, None);
            }
            self.give_up(&connection, waiting, UnansweredReason::Timeout);
        }
        let mut kept = self.0.kept.borrow_mut();
        while kept
            .front()
            .is_some_and(|(since, ..)| now.saturating_duration_since(*since) > OWN_AFTER)
        {
            let Some((_, owner, id)) = kept.pop_front() else {
                break;
            };
            let mut pending = self.0.pending.borrow_mut();
            if let Some(kept) = pending
                .get_mut(owner, id)
                .and_then(|waiting| waiting.kept.as_mut())
            {
                kept.make_own();
            }
        }
    }

    fn slow_tick(&self, now: Instant) {
        let limits = self.limits();
        let over = |since: Option<Instant>, limit: Duration| {
            since.is_some_and(|since| now.saturating_duration_since(since) > limit)
        };
        for connection in self.connections() {
            let remote = connection.remote();
            let stall = if connection.ending.get() == Ending::AfterFlush {
                let since = connection.leaving.get().unwrap_or(now);
                connection.leaving.set(Some(since));
                over(Some(since), LINGER).then_some("close")
            } else if connection.peer().is_none() && over(Some(connection.since()), limits.handshake) {
                Some("handshake")
            } else if over(connection.write_stalled.get(), limits.write_stall) {
                Some("write")
            } else if over(connection.read_stalled.get(), limits.read_stall) {
                Some("read")
            } else {
                None
            };
            if let Some(what) = stall {
                if connection.ending.get() == Ending::Open {
                    let host = self.host_of(&connection);
                    let host = host.as_deref();
                    self.app().event(self, NodeEvent::Stalled { remote, host, what });
                }
                connection.end(Ending::Now);
            } else if connection.write_stalled.get().is_some() {
                connection.queue.borrow_mut().make_own();
            }
        }
        let due: Vec<usize> = {
            let peers = self.0.peers.borrow();
            let is_due = |deadline: Option<Instant>| deadline.is_some_and(|due| due <= now);
            peers
                .slots
                .iter()
                .filter(|(_, slot)| is_due(slot.machine.deadline()))
                .map(|(key, _)| key)
                .collect()
        };
        for key in due {
            self.drive(key, Input::Timer, None);
        }
    }

    /// Stops in order: no new connections, a `grace` period for pending answers, a DPR of this cause to every peer,
    /// then the end.
    pub async fn stop(&self, grace: Duration, cause: i32) {
        self.0.stopping.set(true);
        let deadline = tokio::time::Instant::now() + grace;
        while self.pending() > 0 && tokio::time::Instant::now() < deadline {
            tokio::time::sleep(STOP_STEP).await;
        }
        self.refresh();
        // Callers of pending requests get an error before the connections end; nothing is sent elsewhere by then.
        if self.pending() > 0 {
            for connection in self.connections() {
                self.give_up_pending(&connection, UnansweredReason::Stopping);
            }
            tokio::time::sleep(STOP_ANSWERS).await;
            self.refresh();
        }
        let keys: Vec<usize> = self.0.peers.borrow().slots.iter().map(|(key, _)| key).collect();
        for key in keys {
            self.drive(key, Input::Stop(cause), None);
        }
        let deadline = tokio::time::Instant::now() + LINGER;
        while !self.connections().is_empty() && tokio::time::Instant::now() < deadline {
            tokio::time::sleep(STOP_STEP).await;
        }
        for connection in self.connections() {
            connection.end(Ending::Now);
        }
        for task in self.0.tasks.borrow_mut().drain(..) {
            task.abort();
        }
    }
}
