//! An answer: rerouted or delivered. And requests that get none.

use diameter::proto::{CommandFlags, MessageMut, Routing};
use diameter::{Kept, Unanswered, UnansweredReason};

use super::mailbox::Packet;
use super::{Core, Link, Origin, Transit};
use crate::config::Exception;
use crate::events::Event;

impl Core {
    /// An answer came.
    pub(super) fn on_answer(&self, transit: Transit, kept: Option<Kept>, message: MessageMut) {
        self.count(Event::Answer);
        self.count(Event::Message);
        let reroute = match Routing::scan_as(&message, |_| false) {
            Ok(routing) => self.snapshot.borrow().reroutes(transit.application, &routing),
            Err(_) => {
                // Nobody else is to be bothered with it; whether the request was done, nobody can tell.
                self.count(Event::BadAnswer);
                if let Some(kept) = kept {
                    self.except(transit.origin, kept.message(), Exception::NoAnswer);
                }
                return;
            }
        };
        let origin = transit.origin;
        if reroute
            && let Some(kept) = kept
            && self.try_again(kept, CommandFlags::default(), transit).is_ok()
        {
            return;
        }
        self.deliver(origin, message);
    }

    /// A request will not be answered by the hop it was sent to.
    pub(super) fn on_unanswered(&self, lost: Unanswered<Transit, Link>) {
        let Unanswered {
            context, why, kept, ..
        } = lost;
        // Every request is sent with `keep`.
        let Some(kept) = kept else { return };
        let again = CommandFlags::RETRANSMITTED;
        match why {
            UnansweredReason::ConnectionLost => {
                self.elsewhere(kept, again, context, Exception::ConnectionFailure);
            }
            UnansweredReason::Timeout if self.snapshot.borrow().on_timeout => {
                self.elsewhere(kept, again, context, Exception::NoAnswer);
            }
            UnansweredReason::Timeout => self.except(context.origin, kept.message(), Exception::NoAnswer),
        }
    }

    /// Sends an answer to where its request came from.
    #[inline]
    pub(super) fn deliver(&self, origin: Origin, message: MessageMut) {
        if usize::from(origin.worker) == self.worker {
            return self.deliver_here(origin, message);
        }
        self.count(Event::HandedOver);
        let packet = Packet::Answer { origin, message };
        if self.post.send(usize::from(origin.worker), packet).is_err() {
            self.count(Event::AnswerLost);
        }
    }

    /// Sends an answer to a peer of this worker; on the connection it has now, if the request's is gone.
    #[inline]
    pub(super) fn deliver_here(&self, origin: Origin, message: MessageMut) {
        let node = self.nodes.borrow().get(usize::from(origin.node)).cloned();
        let Some(node) = node else { return };
        let connection = match node.connection(origin.connection) {
            Some(connection) if connection.is_open() => connection,
            _ => match self.follow(&node, origin) {
                Some(connection) => connection,
                None => return self.count(Event::AnswerLost),
            },
        };
        let sent = node.answer(&connection, message, origin.hop_by_hop);
        self.count(if sent {
            Event::AnswerSent
        } else {
            Event::AnswerLost
        });
    }
}
