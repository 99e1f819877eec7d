//! Executes the actions of the peer machines: connections opened, abandoned, closed, messages sent, the application
//! notified.

use std::rc::Rc;

use diameter_proto::peer::{DownReason, Health, Output, Side};
use diameter_proto::{Fault, MessageMut, ResultCode, encode_one, known};

use super::application::{Application, NodeEvent, Unanswered, UnansweredReason};
use super::peers::Order;
use super::{Node, Waiting};
use crate::connection::{Connection, Ending};
use crate::peer::PeerUp;

impl<A: Application> Node<A> {
    pub(super) fn execute(&self, order: Order<A::State>) {
        let Order {
            key,
            output,
            incoming,
        } = order;
        match output {
            Output::Connect => self.spawn_connect(key),
            Output::Accept => {
                if let Some(connection) = incoming {
                    connection.binding.set(Some((key, Side::Responder)));
                    self.with_slot(key, |slot| slot.responder = Some(connection.id()));
                    self.handshake_done(&connection);
                }
            }
            Output::Reject(answer) => {
                if let Some(connection) = incoming {
                    self.rejected(key, &connection, &answer);
                    connection.enqueue_base(answer);
                    connection.end(Ending::AfterFlush);
                }
            }
            Output::Send(side, message) => {
                let id = self.with_slot(key, |slot| *slot.side(side)).flatten();
                if let Some(connection) = id.and_then(|id| self.connection(id)) {
                    connection.enqueue_base(message);
                }
            }
            Output::Close(side) => self.close(key, side),
            Output::Up {
                side,
                remote,
                common,
                secure,
            } => {
                let configured = self
                    .with_slot(key, |slot| slot.config.is_some())
                    .unwrap_or_default();
                let id = self.with_slot(key, |slot| *slot.side(side)).flatten();
                let Some(connection) = id.and_then(|id| self.connection(id)) else {
                    return;
                };
                let tls = self.is_tls(&connection);
                let Some(id) = self.with_slot(key, |slot| {
                    slot.open = Some(connection.id());
                    slot.id
                }) else {
                    return;
                };
                let up = PeerUp {
                    id,
                    remote,
                    common,
                    configured,
                    tls,
                };
                if !secure && !tls && self.offers_tls(&connection) {
                    // RFC 6733 §13.1: the peer's CEA agreed on no TLS, which this connection is configured for.
                    return self.unsecured(key, &connection);
                }
                if secure && !tls {
                    self.with_slot(key, |slot| slot.unsecured = Some(up));
                    connection.secure.set(true);
                    connection.wake();
                } else {
                    self.announce(&connection, up);
                }
            }
            Output::Health(health) => {
                let id = self.with_slot(key, |slot| slot.open).flatten();
                if let Some(connection) = id.and_then(|id| self.connection(id)) {
                    connection.health.set(health);
                    if connection.is_open() {
                        self.app().peer_health(self, &connection, health);
                    }
                    if health == Health::Suspect {
                        self.fail_over_pending(&connection);
                    }
                }
            }
            Output::Down(reason) => {
                let id = self.with_slot(key, |slot| {
                    slot.unsecured = None;
                    slot.open.take()
                });
                if let Some(connection) = id.flatten().and_then(|id| self.connection(id)) {
                    self.down(&connection, reason);
                }
            }
        }
    }

    /// The machine of a peer refuses a CER with this answer.
    #[cold]
    fn rejected(&self, key: usize, connection: &Connection<A::State>, answer: &MessageMut) {
        let code = answer.get(known::RESULT_CODE).ok().flatten().unwrap_or_default();
        let reason = answer.get(known::ERROR_MESSAGE).ok().flatten();
        let fault = &Fault::new(ResultCode(code), reason.unwrap_or_default().to_owned());
        let host = self.with_slot(key, |slot| slot.host.clone()).unwrap_or_default();
        let (remote, host) = (connection.remote(), &*host);
        self.app().event(self, NodeEvent::Refused { remote, host, fault });
    }

    /// A server does not offer the TLS that this node wants of it: the connection ends.
    #[cold]
    fn unsecured(&self, key: usize, connection: &Rc<Connection<A::State>>) {
        let host = self.with_slot(key, |slot| slot.machine.settings().host.clone());
        let error = std::io::Error::other("the server offers no TLS in Inband-Security-Id");
        let (host, error) = (host.flatten().unwrap_or_default(), &error);
        self.app()
            .event(self, NodeEvent::ConnectFailed { host: &host, error });
        connection.end(Ending::Now);
    }

    fn announce(&self, connection: &Rc<Connection<A::State>>, up: PeerUp) {
        // `up` knows TLS that was agreed on in the exchange of capabilities, the connection also that of before its first byte.
        let tls = up.tls || self.is_tls(connection);
        tracing::info!(peer = up.remote.origin.host, remote = %connection.remote(), tls, "peer is open");
        let state = self.app().peer_up(self, connection, &up);
        let route_record = encode_one(known::ROUTE_RECORD, &up.remote.origin.host);
        connection.establish(up, route_record, state);
        connection.open.set(true);
    }

    /// TLS is up on a connection whose `Up` waited for it.
    pub(super) fn announce_secured(&self, connection: &Rc<Connection<A::State>>) {
        let Some((key, _)) = connection.binding.get() else {
            return;
        };
        let up = self.with_slot(key, |slot| slot.unsecured.take()).flatten();
        if let Some(up) = up {
            self.announce(connection, PeerUp { tls: true, ..up });
            self.app().peer_health(self, connection, connection.health());
        }
    }

    fn close(&self, key: usize, side: Side) {
        let (id, connecting) = self
            .with_slot(key, |slot| {
                let connecting = if side == Side::Initiator {
                    slot.connecting.take()
                } else {
                    None
                };
                (slot.side(side).take(), connecting)
            })
            .unwrap_or_default();
        if let Some(task) = connecting {
            task.abort();
        }
        if let Some(connection) = id.and_then(|id| self.connection(id)) {
            connection.binding.set(None);
            connection.end(Ending::AfterFlush);
        }
    }

    fn down(&self, connection: &Rc<Connection<A::State>>, reason: DownReason) {
        connection.open.set(false);
        connection.health.set(Health::Down);
        connection.replaced.set(reason == DownReason::Replaced);
        if let Some(up) = connection.peer() {
            tracing::info!(peer = up.remote.origin.host, ?reason, "peer is down");
            self.app().peer_down(self, connection, reason);
        }
        if let Some(id) = connection.peer().map(|up| up.id) {
            self.with_slot(id.slot as usize, |slot| {
                if slot.id == id {
                    slot.totals.add(connection.figures());
                }
            });
        }
        // RFC 6733 §5.4: a peer that sent a DPR may still answer until the connection closes; its requests are not
        // retried elsewhere before.
        if !matches!(reason, DownReason::PeerSaid(_)) {
            self.give_up_pending(connection, UnansweredReason::ConnectionLost);
        }
    }

    /// RFC 3539 §3.4.1: pending requests of a suspect peer are sent elsewhere. Without an alternative they stay
    /// pending.
    fn fail_over_pending(&self, connection: &Rc<Connection<A::State>>) {
        let slot = connection.id().slot;
        let ids = self.0.pending.borrow().ids(slot);
        for id in ids {
            let has_alternative = self.0.pending.borrow().get(slot, id).is_some_and(|waiting| {
                self.app()
                    .has_alternative(&waiting.context, waiting.kept.as_ref())
            });
            if !has_alternative {
                continue;
            }
            let waiting = self.0.pending.borrow_mut().take(slot, id);
            if let Some(waiting) = waiting {
                self.give_up(connection, waiting, UnansweredReason::ConnectionLost);
            }
        }
    }

    /// Fails all requests that are pending on this connection.
    pub(super) fn give_up_pending(&self, connection: &Rc<Connection<A::State>>, why: UnansweredReason) {
        loop {
            let waiting = self.0.pending.borrow_mut().take_any(connection.id().slot);
            let Some(waiting) = waiting else { return };
            self.give_up(connection, waiting, why);
        }
    }

    /// Reports a request, which is not pending any more, as unanswered.
    pub(super) fn give_up(
        &self,
        connection: &Rc<Connection<A::State>>,
        waiting: Waiting<A::Context>,
        why: UnansweredReason,
    ) {
        self.release_bytes(connection, &waiting);
        let lost = Unanswered {
            context: waiting.context,
            connection: connection.clone(),
            why,
            kept: waiting.kept,
        };
        // A panic must not keep the other requests of the connection pending.
        self.contained(Some(connection.remote()), || self.app().unanswered(self, lost));
    }
}
