//! An answer: rerouted or delivered. And requests that get none.

use std::rc::Rc;

use diameter::proto::{CommandFlags, MessageMut, ResultCode, Routing};
use diameter::{Connection, Kept, Unanswered, UnansweredReason};

use super::mailbox::Packet;
use super::{Core, Link, Marks, Origin, Transit};
use crate::config::Exception;
use crate::events::Event;
use crate::hiding::Hiding;

/// What is to be done about an answer.
enum Liking {
    Deliver,
    Elsewhere,
    Redirect,
}

impl Core {
    /// An answer came.
    pub(super) fn on_answer(
        &self,
        from: &Rc<Connection<Link>>,
        mut transit: Transit,
        kept: Option<Kept>,
        message: MessageMut,
    ) {
        if transit.origin.marks.has(Marks::COPY) {
            // Not a message in the sense of MPS.
            return self.count(Event::CopyAnswered);
        }
        self.count(Event::Answer);
        self.count(Event::Message);
        self.counters.add(Event::Bytes, message.as_bytes().len() as u64);
        if transit.origin.trace > 0 {
            self.trace(transit.origin.trace, "answer in", from, [message.as_bytes(), &[]]);
        }
        let mut changed = None;
        let liking = match Routing::scan_as(&message, |_| false) {
            Ok(routing) => {
                let asked = transit.origin.marks.has(Marks::ASKED);
                if routing.overload_report || routing.load || (asked && routing.supports_overload) {
                    changed = self.heed(from, &transit, &routing, &message);
                }
                let marks = &mut transit.origin.marks;
                marks.set(Marks::ANSWER_FEATURES, routing.supports_overload);
                marks.set(Marks::ANSWER_REPORT, routing.overload_report);
                self.like(from, &transit, &routing)
            }
            Err(_) => {
                // Nobody else is to be bothered with it; whether the request was done, nobody can tell.
                self.count(Event::BadAnswer);
                if let Some(kept) = kept {
                    let kept = transit.original.take().map_or(kept, |original| *original);
                    self.except(transit.origin, kept.message(), Exception::NoAnswer);
                }
                return;
            }
        };
        let message = changed.unwrap_or(message);
        let message = match &transit.original {
            Some(original) => Hiding::answer_in(&message, original.message()).unwrap_or(message),
            None => message,
        };
        let (origin, since) = (transit.origin, transit.since);
        let gone = match (liking, kept) {
            (Liking::Elsewhere, Some(kept)) => self.try_again(kept, CommandFlags::default(), transit).is_ok(),
            (Liking::Redirect, Some(kept)) => self.redirect(kept, transit, &message).is_ok(),
            _ => false,
        };
        if !gone {
            self.tools
                .hold
                .observe(self.now().saturating_duration_since(since));
            self.deliver(origin, message);
        }
    }

    #[inline]
    fn like(&self, from: &Connection<Link>, transit: &Transit, answer: &Routing<'_>) -> Liking {
        let snapshot = self.snapshot.borrow();
        if snapshot.reroutes(transit.application, answer) {
            return Liking::Elsewhere;
        }
        let code = answer.result_code.map(ResultCode);
        if code == Some(ResultCode::REDIRECT_INDICATION) && snapshot.follow_redirects {
            return Liking::Redirect;
        }
        // A sibling that does not know the peer says so; the next one may.
        let lost = code == Some(ResultCode::UNABLE_TO_DELIVER)
            && !snapshot.siblings().is_empty()
            && from.state().is_some_and(|link| link.profile().sibling);
        if lost { Liking::Elsewhere } else { Liking::Deliver }
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
            UnansweredReason::Timeout => {
                let kept = context.original.map_or(kept, |original| *original);
                self.except(context.origin, kept.message(), Exception::NoAnswer);
            }
        }
    }

    /// Sends an answer to where its request came from.
    #[inline]
    pub(super) fn deliver(&self, origin: Origin, message: MessageMut) {
        if origin.marks.has(Marks::COPY) {
            return;
        }
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
            Some(connection) if connection.is_open() => {
                if let Some(link) = connection.state() {
                    link.answered(origin.hop_by_hop);
                }
                connection
            }
            _ => match self.follow(&node, origin) {
                Some(connection) => connection,
                None => return self.count(Event::AnswerLost),
            },
        };
        let message = self.hide_answer(&connection, message);
        let (report, tells) = self.own_load(origin, &connection);
        if origin.trace > 0 {
            self.trace(
                origin.trace,
                "answer out",
                &connection,
                [message.as_bytes(), &report],
            );
        }
        let sent = match report.is_empty() {
            true => node.answer(&connection, message, origin.hop_by_hop),
            false => node.answer_with(&connection, message, origin.hop_by_hop, report),
        };
        if sent && tells {
            self.load_told(&connection);
        }
        self.count(if sent {
            Event::AnswerSent
        } else {
            Event::AnswerLost
        });
    }
}
