//! Answers: rerouted or delivered. Failed requests.

use std::rc::Rc;
use std::sync::Arc;

use bytes::Bytes;
use diameter::proto::{AvpFlags, AvpWriter, CommandFlags, Message, MessageMut, ResultCode, Routing};
use diameter::{Connection, Kept, Unanswered, UnansweredReason};

use super::followed::Came;
use super::mailbox::Packet;
use super::{Core, Link, Origin, RequestFlags, Transit};
use crate::config::{Exception, Messages};
use crate::edit::{Edit, edit};
use crate::events::Event;
use crate::incidents::Incident;
use crate::measures::Transaction;
use crate::snapshot::AnswerCopy;

/// Outcome of an answer.
enum AnswerAction {
    Deliver,
    Elsewhere,
    /// A sibling does not have the peer; the next one may have it.
    NextSibling,
    Redirect,
}

/// Whether an answer has what it copies from its request (RFC 6733 §6.2), beside the Hop-by-Hop Identifier by which it
/// was found.
#[inline]
fn is_answer_to<B: AsRef<[u8]>>(request: &Message<B>, answer: &MessageMut) -> bool {
    answer.end_to_end() == request.end_to_end()
        && answer.command() == request.command()
        && answer.application() == request.application()
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
        if transit.origin.flags.has(RequestFlags::COPY) {
            // Not a message in the sense of MPS.
            return self.count(Event::CopyAnswered);
        }
        self.count(Event::Answer);
        self.count(Event::Message);
        self.counters.add(Event::Bytes, message.as_bytes().len() as u64);
        if transit.origin.trace > 0 {
            self.trace(transit.origin.trace, "answer in", from, [message.as_bytes(), &[]]);
        }
        if let Some(kept) = &kept
            && !is_answer_to(kept.message(), &message)
        {
            return self.mismatched(from, transit, kept.clone(), &message);
        }
        let mut changed = None;
        let transaction;
        let action = match Routing::scan_as(&message, |_| false) {
            Ok(routing) => {
                transaction = Transaction::of(transit.application, message.command(), &routing);
                let asked = transit.origin.flags.has(RequestFlags::ASKED);
                if routing.overload_report || routing.load || (asked && routing.supports_overload) {
                    changed = self.take_reports(from, &transit, &routing, &message);
                }
                // AVPs that were removed are not in the answer any more.
                let believed =
                    changed.is_none() || from.state().is_some_and(|link| link.profile().trusts_reports);
                let flags = &mut transit.origin.flags;
                flags.set(
                    RequestFlags::ANSWER_FEATURES,
                    believed && routing.supports_overload,
                );
                flags.set(RequestFlags::ANSWER_REPORT, believed && routing.overload_report);
                self.classify(from, &transit, &routing)
            }
            Err(_) => {
                // The request may have been processed: it is not sent again.
                self.count(Event::BadAnswer);
                if let Some(kept) = kept {
                    self.fail(transit, kept, Exception::NoAnswer);
                }
                return;
            }
        };
        let message = changed.unwrap_or(message);
        let message = match &transit.original {
            Some(original) => {
                let snapshot = self.snapshot.borrow();
                let restored = snapshot.hiding.answer_in(&message, original.message());
                restored.unwrap_or(message)
            }
            None => message,
        };
        let copying = self.to_copy(&transit, kept.as_ref(), &message);
        self.conclude(from, (action, transaction), kept, transit, message, copying);
    }

    /// Sends a request elsewhere by its answer, or delivers that.
    #[inline]
    fn conclude(
        &self,
        from: &Connection<Link>,
        (action, transaction): (AnswerAction, Transaction),
        kept: Option<Kept>,
        transit: Transit,
        message: MessageMut,
        copying: Option<(Arc<AnswerCopy>, Kept, Transit)>,
    ) {
        let (origin, since) = (transit.origin, transit.since);
        let mut back = None;
        if let Some(kept) = kept {
            match self.divert(from, action, kept, transit, &message) {
                Ok(()) => return,
                Err((kept, transit)) if transit.followed.is_some() => back = Some((kept, transit)),
                Err(_) => {}
            }
        }
        self.measures.borrow_mut().answered(transaction);
        self.tools
            .hold
            .observe(self.now().saturating_duration_since(since));
        if let Some((after, request, transit)) = copying {
            self.copy_after(&after, &request, &message, transit);
        }
        let message = self.mediated(from, message);
        match back {
            None => self.deliver(origin, message),
            Some((kept, mut transit)) => {
                let kept = transit.original.take().map_or(kept, |original| *original);
                self.hand_back(kept, Came::Answer(message), transit);
            }
        }
    }

    /// The copy of a request that its answer asks for: how, the request, and what is known of it.
    #[inline]
    fn to_copy(
        &self,
        transit: &Transit,
        kept: Option<&Kept>,
        answer: &MessageMut,
    ) -> Option<(Arc<AnswerCopy>, Kept, Transit)> {
        let after = transit.copy.as_ref()?;
        if after.version != self.snapshot.borrow().version {
            return None;
        }
        let fits = after.results.is_empty() || {
            let routing = Routing::scan_as(answer, |_| false).ok()?;
            let experimental = routing.experimental_result().map(|(_, code)| code);
            let code = routing.result_code.or(experimental)?;
            after.results.contains(&code)
        };
        let request = transit.original.as_deref().or(kept)?;
        fits.then(|| (after.clone(), request.clone(), transit.for_copy()))
    }

    /// Sends the copy of a request whose answer has come.
    #[cold]
    fn copy_after(&self, after: &AnswerCopy, request: &Kept, answer: &MessageMut, transit: Transit) {
        let mut end = AvpWriter::with_capacity(0);
        end.append_encoded(request.appended());
        if let Some(key) = after.answer_in {
            end.put_raw(key, AvpFlags(0), answer.as_bytes());
        }
        static NOTHING: Bytes = Bytes::new();
        // A request that gets too long with its answer is not copied.
        if let Ok(copy) = edit(request.message(), |_| Edit::<'_>::Keep, end.as_bytes()) {
            let snapshot = self.snapshot();
            self.copy(&snapshot, after.list, copy, &NOTHING, transit);
        }
    }

    /// An answer that belongs to another request, or to none: its client would drop it, or take it for another's. The
    /// request may have been processed, so it is not sent again.
    #[cold]
    fn mismatched(&self, from: &Connection<Link>, transit: Transit, kept: Kept, answer: &MessageMut) {
        self.count(Event::AnswerMismatched);
        let ids = |command, application, end_to_end: u32| {
            format!("command {command}, application {application}, End-to-End {end_to_end:#010x}")
        };
        let request = kept.message();
        let text = format!(
            "its answer has {}; the request had {}",
            ids(answer.command(), answer.application(), answer.end_to_end()),
            ids(request.command(), request.application(), request.end_to_end()),
        );
        if let Some(link) = from.state() {
            let incident = Incident::bad_answer(&link.hop().host, text);
            self.tools.incidents.happened(&incident, self.now());
        }
        self.fail(transit, kept, Exception::NoAnswer);
    }

    /// Sends the request elsewhere where its answer asks for it; gives it back else.
    #[inline]
    #[allow(clippy::result_large_err)]
    fn divert(
        &self,
        from: &Connection<Link>,
        action: AnswerAction,
        kept: Kept,
        mut transit: Transit,
        answer: &MessageMut,
    ) -> Result<(), (Kept, Transit)> {
        match action {
            AnswerAction::Deliver => Err((kept, transit)),
            AnswerAction::NextSibling => {
                // The sibling did not have the peer: this does not count as an attempt.
                transit.sent = transit.sent.saturating_sub(1);
                self.try_again(kept, CommandFlags::default(), transit)
            }
            AnswerAction::Elsewhere => self.try_again(kept, CommandFlags::default(), transit),
            AnswerAction::Redirect => {
                if let Some(link) = from.state() {
                    self.cache_redirect(link, &kept, &transit, answer);
                }
                self.redirect(kept, transit, answer)
            }
        }
    }

    /// The answer with the changes of mediation rules; one that would get too long stays as it is.
    #[inline]
    fn mediated(&self, from: &Connection<Link>, message: MessageMut) -> MessageMut {
        let snapshot = self.snapshot.borrow();
        let Some(link) = from.state() else { return message };
        let changed = self.mediate(&snapshot, Messages::Answers, &message, &link.hop().host);
        changed.and_then(Result::ok).unwrap_or(message)
    }

    #[inline]
    fn classify(&self, from: &Connection<Link>, transit: &Transit, answer: &Routing<'_>) -> AnswerAction {
        let snapshot = self.snapshot.borrow();
        if snapshot.reroutes(transit.application, answer) {
            return AnswerAction::Elsewhere;
        }
        let code = answer.result_code.map(ResultCode);
        if code == Some(ResultCode::REDIRECT_INDICATION) && snapshot.follow_redirects {
            return AnswerAction::Redirect;
        }
        // A sibling that does not have the peer answers so; the next one may have it.
        let lost = code == Some(ResultCode::UNABLE_TO_DELIVER)
            && !snapshot.siblings().is_empty()
            && from.state().is_some_and(|link| link.profile().sibling);
        if lost {
            AnswerAction::NextSibling
        } else {
            AnswerAction::Deliver
        }
    }

    /// A request has failed at the hop it was sent to.
    pub(super) fn on_unanswered(&self, lost: Unanswered<Transit, Link>) {
        let Unanswered {
            mut context,
            why,
            kept,
            ..
        } = lost;
        // Every request is sent with `keep`.
        let Some(kept) = kept else { return };
        let again = CommandFlags::RETRANSMITTED;
        context.origin.flags.set(RequestFlags::LOST, true);
        match why {
            UnansweredReason::ConnectionLost => {
                self.elsewhere(kept, again, context, Exception::ConnectionFailure);
            }
            UnansweredReason::Timeout if self.snapshot.borrow().on_timeout => {
                self.elsewhere(kept, again, context, Exception::NoAnswer);
            }
            // The next server would get a duplicate of a request that the last one may still process.
            UnansweredReason::Stopping => self.fail(context, kept, Exception::ConnectionFailure),
            UnansweredReason::Timeout => self.fail(context, kept, Exception::NoAnswer),
        }
    }

    /// Sends an answer to the origin of its request.
    #[inline]
    pub(super) fn deliver(&self, origin: Origin, message: MessageMut) {
        if origin.flags.has(RequestFlags::COPY | RequestFlags::OWN) {
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
        let message = self.hide_answer(&connection, origin, message);
        let message = self.withhold_reports(&connection, origin, message);
        let (report, reports_load) = self.own_load(origin, &connection);
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
        if sent && reports_load {
            self.load_reported(&connection);
        }
        self.count(if sent {
            Event::AnswerSent
        } else {
            Event::AnswerLost
        });
    }
}
