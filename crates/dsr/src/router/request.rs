//! A request: examined, admitted, dispatched.

use std::rc::Rc;
use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use diameter::proto::overload::priority;
use diameter::proto::{BuildError, CommandFlags, Fault, Message, MessageMut, ResultCode, Routing, known};
use diameter::{Connection, Forward, Kept, Node, RefusedReason};
use dsr_app::{Reply, View};
use smallvec::SmallVec;

use super::chain::Local;
use super::mailbox::Packet;
use super::parked::Parking;
use super::{Core, LEAST_WAIT, Link, Origin, RequestFlags, Router, Target, Transit};
use crate::config::{Colour, Exception, Messages};
use crate::events::Event;
use crate::hiding::Renamed;
use crate::measures::Transaction;
use crate::routing::Choice;
use crate::snapshot::{ApplicationStep, Copying, Profile, Snapshot};

/// What happens with a request.
pub(super) enum Decision {
    /// It goes there, and may be copied. A cached redirect gives it this Destination-Host.
    Send(Target, Option<Copying>, Option<Box<[u8]>>),
    Refuse(Fault),
    /// An application has answered it.
    Reply(Reply),
    /// An application parks it.
    Park(Box<Parking>),
    Except(Exception),
    Abandon,
    /// It is discarded because of overload.
    Discard,
}

/// Progress of a request. A step that changes the message is followed by another examination.
#[derive(Clone, Copy)]
pub(super) enum Examined<'s> {
    /// As it was read.
    New,
    /// Let in, with the names that are right in here.
    Inside,
    /// Changed by mediation rules.
    Mediated,
    /// Changed by an application; these are the rest of its chain, by position.
    Applied(&'s [usize]),
}

/// Outcome of an examination.
pub(super) enum Step<'s> {
    Changed(MessageMut, Examined<'s>),
    Done(Decision),
}

/// What an examination needs besides the message.
struct RequestContext<'s> {
    snapshot: &'s Local,
    profile: &'s Profile,
    from: &'s Connection<Link>,
    link: &'s Link,
}

impl Core {
    /// A request came.
    pub(super) fn on_request(
        &self,
        node_index: u8,
        node: &Node<Router>,
        from: &Rc<Connection<Link>>,
        mut message: MessageMut,
    ) {
        let Some(link) = from.state() else { return };
        self.count(Event::Request);
        self.counters.add(Event::Bytes, message.as_bytes().len() as u64);
        link.asked(message.hop_by_hop(), node.now());
        let snapshot = self.snapshot();
        let profile = link.profile();
        let application = message.application();
        let mut transit = Transit {
            origin: Origin {
                worker: self.worker as u16,
                node: node_index,
                connection: from.id(),
                hop_by_hop: message.hop_by_hop(),
                flags: RequestFlags::default(),
                trace: 0,
                scope: 0,
            },
            since: node.now(),
            until: node.now() + snapshot.lifetime,
            tried: SmallVec::new(),
            sent: 0,
            table: snapshot.table(&profile, application).map(|table| table as u16),
            version: snapshot.version,
            application,
            from: Some(link.hop().id),
            priority: priority::DEFAULT,
            original: None,
            copy: None,
            followed: None,
        };
        let context = RequestContext {
            snapshot: &snapshot,
            profile: &profile,
            from,
            link,
        };
        let mut stage = Examined::New;
        let decision = loop {
            match self.examine(&context, stage, &message, &mut transit) {
                Step::Changed(changed, next) => (message, stage) = (changed, next),
                Step::Done(decision) => break decision,
            }
        };
        if matches!(decision, Decision::Discard) {
            // Not a message in the sense of MPS.
            let rule = &snapshot.config.overload.answer;
            if rule.result_code == 0 {
                link.dropped();
            }
            return self.answer_by(transit.origin, &message, rule);
        }
        self.count(Event::Message);
        self.carry_out(&snapshot, decision, message, transit, from);
    }

    /// Does with a request what was decided.
    pub(super) fn carry_out(
        &self,
        snapshot: &Local,
        decision: Decision,
        mut message: MessageMut,
        mut transit: Transit,
        from: &Rc<Connection<Link>>,
    ) {
        if transit.followed.is_some() && !matches!(decision, Decision::Send(..) | Decision::Park(_)) {
            return self.end_followed(decision, message, transit, from.route_record());
        }
        match decision {
            Decision::Send(target, copy, renamed) => {
                if let Some(renamed) = renamed.and_then(|host| super::again::renamed(&message, &host)) {
                    message = renamed;
                }
                match copy {
                    None => {}
                    Some(Copying::Request(list)) => {
                        if let Ok(copy) = Message::parse(BytesMut::from(message.as_bytes())) {
                            self.copy(snapshot, list, copy, from.route_record(), transit.for_copy());
                        }
                    }
                    Some(Copying::Answer(after)) => transit.copy = Some(after),
                }
                transit.tried.push(target.hop);
                let append = self.appended(snapshot, from, &mut transit.origin);
                self.dispatch(target, message, append, transit);
            }
            Decision::Refuse(fault) => self.refuse(transit.origin, &message, &fault),
            Decision::Except(why) => self.except(transit.origin, &message, why),
            Decision::Reply(reply) => self.reply(&transit, message.command(), reply),
            Decision::Park(parking) => self.park_request(*parking, message, transit, from),
            Decision::Abandon | Decision::Discard => {
                if let Some(link) = from.state() {
                    link.dropped();
                }
                self.count(Event::Abandoned);
            }
        }
    }

    /// Examines a request: syntax, admission, applications, route.
    fn examine<'s>(
        &self,
        context: &RequestContext<'s>,
        stage: Examined<'s>,
        message: &MessageMut,
        transit: &mut Transit,
    ) -> Step<'s> {
        let snapshot = context.snapshot;
        let routing = match Routing::scan_as(message, |name| snapshot.is_own(name)) {
            Ok(routing) => routing,
            Err(error) => {
                // It counts for the rate of its connection as any other.
                if self.colour(context.link, priority::DEFAULT).is_none() {
                    self.count(Event::IngressDiscarded);
                    return Step::Done(Decision::Discard);
                }
                self.count(Event::BadRequest);
                return Step::Done(Decision::Refuse(error.into()));
            }
        };
        if matches!(stage, Examined::New) {
            transit.priority = priority_of(context.profile, &routing);
        }
        let view = View::new(
            message.application(),
            message.command(),
            transit.priority,
            &routing,
        );
        if matches!(stage, Examined::New) {
            if !snapshot.trace.is_empty() {
                transit.origin.trace = self.trace_point(snapshot, &context.link.hop().host, &view);
                self.trace(
                    transit.origin.trace,
                    "request in",
                    context.from,
                    [message.as_bytes(), &[]],
                );
            }
            if let Some(step) = self.admit(context, message, &view, transit) {
                return step;
            }
        }
        if matches!(stage, Examined::New | Examined::Inside)
            && let Some(changed) =
                self.mediate(snapshot, Messages::Requests, message, &context.link.hop().host)
        {
            return match changed {
                Ok(changed) => Step::Changed(changed, Examined::Mediated),
                Err(_) => Step::Done(Decision::Except(Exception::Exhausted)),
            };
        }
        let chain = match stage {
            Examined::Applied(rest) => rest,
            _ => match self.chain_of(context, &view) {
                Ok(chain) => chain,
                Err(decision) => return Step::Done(decision),
            },
        };
        if let Some(step) = self.walk(snapshot, chain, message, &view, &context.link.hop().host, transit) {
            return step;
        }
        Step::Done(self.route(snapshot, &view, transit))
    }

    /// The applications that an application route rule leads to, or what it decides itself.
    #[inline]
    fn chain_of<'s>(&self, context: &RequestContext<'s>, view: &View<'_>) -> Result<&'s [usize], Decision> {
        let Some((step, count)) = context.snapshot.application_step(context.profile, view) else {
            return Ok(&[]);
        };
        self.measure(*count);
        match step {
            ApplicationStep::Route => Ok(&[]),
            ApplicationStep::Answer(fault) => Err(Decision::Refuse(fault.clone())),
            ApplicationStep::Abandon => Err(Decision::Abandon),
            ApplicationStep::Applications(chain) => Ok(chain),
        }
    }

    /// Admits a new request; none: it is admitted unchanged.
    fn admit(
        &self,
        context: &RequestContext<'_>,
        message: &MessageMut,
        view: &View<'_>,
        transit: &mut Transit,
    ) -> Option<Step<'static>> {
        let routing = view.routing;
        let flags = &mut transit.origin.flags;
        flags.set(RequestFlags::DOIC, routing.supports_overload);
        flags.set(RequestFlags::HOST_ROUTED, routing.destination_host.is_some());
        flags.set(RequestFlags::SIBLING, context.profile.sibling);
        let Some(colour) = self.colour(context.link, transit.priority) else {
            self.count(Event::IngressDiscarded);
            return Some(Step::Done(Decision::Discard));
        };
        transit
            .origin
            .flags
            .set(RequestFlags::YELLOW, colour == Colour::Yellow);
        if self.discards(context.link, transit, colour) {
            self.count(Event::OverloadDiscarded);
            return Some(Step::Done(Decision::Discard));
        }
        let accepts = &context.profile.applications;
        if !accepts.is_empty() && !accepts.contains(&message.application()) {
            self.count(Event::NotAccepted);
            let why = format!(
                "application {} is not accepted from this peer",
                message.application()
            );
            let fault = Fault::new(ResultCode::APPLICATION_UNSUPPORTED, why);
            return Some(Step::Done(Decision::Refuse(fault)));
        }
        if let Err(fault) = message.check_flags() {
            self.count(Event::BadRequest);
            return Some(Step::Done(Decision::Refuse(fault)));
        }
        if let Some(fault) = unrelayed(message, context.profile)
            && !context.snapshot.serves(context.profile, view)
        {
            self.count(Event::BadRequest);
            return Some(Step::Done(Decision::Refuse(fault)));
        }
        if routing.loops {
            return Some(Step::Done(Decision::Except(Exception::LoopDetected)));
        }
        self.find_hidden(context, message, routing, transit)
    }

    /// A request whose client knows other names, with the real ones; none: it has none.
    #[inline]
    fn find_hidden(
        &self,
        context: &RequestContext<'_>,
        message: &MessageMut,
        routing: &Routing<'_>,
        transit: &mut Transit,
    ) -> Option<Step<'static>> {
        let hidings = &context.snapshot.hiding;
        transit.origin.scope = hidings.of_client(message.application(), routing);
        let scope = hidings.scope(transit.origin.scope);
        let untrusted = hidings.untrusted.as_ref().filter(|_| context.profile.untrusted);
        if let Some(hiding) = untrusted
            && routing
                .destination_host
                .is_some_and(|host| hiding.is_hidden(host))
        {
            // Answered as for any name that is not there.
            return Some(Step::Done(Decision::Except(Exception::NoRoute)));
        }
        let found = || {
            let first = scope.map_or(Ok(None), |scope| scope.request_in(message))?;
            let whole = first.as_ref().unwrap_or(message);
            let second = untrusted.map_or(Ok(None), |hiding| hiding.request_in(whole))?;
            Ok(second.or(first))
        };
        let Ok(found) = self.renamed(found()) else {
            return Some(Step::Done(Decision::Except(Exception::Exhausted)));
        };
        Some(Step::Changed(found?, Examined::Inside))
    }

    /// Counts what became of the names of a message.
    #[inline]
    pub(super) fn renamed(&self, renamed: Renamed) -> Renamed {
        match &renamed {
            Ok(Some(_)) => self.count(Event::Hidden),
            Ok(None) => {}
            Err(_) => self.count(Event::HidingTooLong),
        }
        renamed
    }

    /// A message with the changes of mediation rules; none: none fits.
    ///
    /// # Errors
    /// When it gets longer than a message can be.
    #[inline]
    pub(super) fn mediate(
        &self,
        snapshot: &Snapshot,
        messages: Messages,
        message: &MessageMut,
        from: &str,
    ) -> Option<Result<MessageMut, BuildError>> {
        let mediation = &snapshot.mediation;
        if mediation.is_idle(messages, message.command()) {
            return None;
        }
        let changed = mediation.change(messages, message, from, |count| self.measure(count))?;
        match &changed {
            Ok(_) => self.count(Event::Mediated),
            Err(error) => {
                self.count(Event::MediationTooLong);
                let command = message.command();
                tracing::warn!(peer = from, command, %error, "mediation rules make a message too long");
            }
        }
        Some(changed)
    }

    /// Answers a request for an application that is its server.
    fn reply(&self, transit: &Transit, command: u32, reply: Reply) {
        self.served(transit, command, &reply);
        self.deliver(transit.origin, reply.message);
    }

    /// Counts the answer of an application.
    pub(super) fn served(&self, transit: &Transit, command: u32, reply: &Reply) {
        self.count(Event::Served);
        let (vendor, code) = reply.result;
        let transaction = Transaction::refused(transit.application, command, vendor, ResultCode(code));
        self.measures.borrow_mut().answered(transaction);
        self.tools
            .hold
            .observe(self.now().saturating_duration_since(transit.since));
    }

    /// Sends a request to a hop, here or by the worker on which the hop lives.
    pub(super) fn dispatch(&self, target: Target, message: MessageMut, append: &Bytes, transit: Transit) {
        if target.worker == self.worker {
            return self.send(target.hop, message, append, transit);
        }
        let packet = Packet::Request {
            hop: target.hop,
            message,
            append: append.clone(),
            transit,
        };
        self.count(Event::HandedOver);
        if let Err(Packet::Request {
            message,
            append,
            transit,
            ..
        }) = self.post.send(target.worker, packet)
        {
            self.fail(transit, Kept::new(message.freeze(), append), Exception::Exhausted);
        }
    }

    /// Sends a copy of a request to a route list. The answer to the copy is dropped.
    #[cold]
    pub(super) fn copy(
        &self,
        snapshot: &Arc<Snapshot>,
        list: usize,
        copy: MessageMut,
        append: &Bytes,
        mut transit: Transit,
    ) {
        let choice = Choice {
            tried: &transit.tried,
            from: transit.from,
            dice: self.dice(),
            ..Choice::default()
        };
        let Some(hop) = snapshot.list(list).and_then(|list| list.choose(&choice)) else {
            return;
        };
        transit.until = self.now() + snapshot.answer_timeout;
        transit.tried = SmallVec::from_slice(&[hop.id]);
        self.count(Event::Copied);
        self.count(Event::Message);
        self.dispatch(Target::of(hop), copy, append, transit);
    }

    /// Sends a request to a hop that lives here.
    pub(super) fn send(&self, hop: u32, message: MessageMut, append: &Bytes, mut transit: Transit) {
        static NOTHING: Bytes = Bytes::new();
        if self.discards_for_another(&transit) {
            self.count(Event::OverloadDiscarded);
            if transit.followed.is_some() {
                let kept = Kept::new(message.freeze(), append.clone());
                return self.fail(transit, kept, Exception::Exhausted);
            }
            let rule = &self.snapshot().config.overload.answer;
            return self.answer_by(transit.origin, &message, rule);
        }
        let link = match self.permit(hop, &transit) {
            Ok(link) => link,
            Err(why) => {
                let kept = Kept::new(message.freeze(), append.clone());
                return self.elsewhere(kept, CommandFlags::default(), transit, why);
            }
        };
        let (node, connection) = link;
        let (message, append) = match self.hide_request(&connection, &message, append) {
            Ok(Some(hidden)) => {
                transit.original = Some(Box::new(Kept::new(message.freeze(), append.clone())));
                (hidden, &NOTHING)
            }
            Ok(None) => (message, append),
            Err(_) => {
                let kept = Kept::new(message.freeze(), append.clone());
                return self.elsewhere(kept, CommandFlags::default(), transit, Exception::Exhausted);
            }
        };
        if transit.origin.trace > 0 {
            self.trace(
                transit.origin.trace,
                "request out",
                &connection,
                [message.as_bytes(), append],
            );
        }
        let how = Forward {
            deadline: self.deadline(&connection, &transit),
            append,
            keep: true,
        };
        transit.sent = transit.sent.saturating_add(1);
        match node.forward(&connection, message, how, transit) {
            Ok(()) => self.count(Event::RequestSent),
            Err(refused) => {
                let why = reason(refused.why);
                let kept = Kept::new(refused.message.freeze(), append.clone());
                let mut transit = refused.context;
                // Nothing of it was sent.
                transit.sent = transit.sent.saturating_sub(1);
                self.elsewhere(kept, CommandFlags::default(), transit, why);
            }
        }
    }

    /// The connection of a hop that lives here, if a request may go there now.
    #[inline]
    pub(super) fn permit(
        &self,
        hop: u32,
        transit: &Transit,
    ) -> Result<(Node<Router>, Rc<Connection<Link>>), Exception> {
        let link = self
            .link(hop, transit.application)
            .ok_or(Exception::ConnectionFailure)?;
        let snapshot = self.snapshot.borrow();
        if let Some(group) = snapshot.throttle_of(hop) {
            let now = self.now();
            let mut throttles = self.throttles.borrow_mut();
            let full = throttles
                .get_mut(group)
                .is_some_and(|throttle| !throttle.permits(now, transit.priority));
            let [taken, refused] = snapshot.throttle_counts(group);
            if full {
                self.measure(refused);
                self.count(Event::Throttled);
                return Err(Exception::Exhausted);
            }
            self.measure(taken);
        }
        Ok(link)
    }

    /// A request for a foreign network, or for a client that knows other names, with ours hidden; none: it goes as it is.
    #[inline]
    pub(super) fn hide_request<B: AsRef<[u8]>>(
        &self,
        to: &Connection<Link>,
        message: &Message<B>,
        append: &[u8],
    ) -> Renamed {
        let snapshot = self.snapshot.borrow();
        let untrusted = snapshot.hiding.untrusted.as_ref();
        let untrusted = untrusted.filter(|_| to.state().is_some_and(|link| link.profile().untrusted));
        let scope = snapshot.hiding.for_client(message);
        let hidden = || {
            let first = untrusted.map_or(Ok(None), |hiding| hiding.request_out(message, append))?;
            let second = scope.map_or(Ok(None), |scope| match &first {
                Some(first) => scope.request_out(first, &[]),
                None => scope.request_out(message, append),
            })?;
            Ok(second.or(first))
        };
        self.renamed(hidden())
    }

    pub(super) fn deadline(&self, connection: &Connection<Link>, transit: &Transit) -> std::time::Instant {
        let now = self.now();
        let timeout = connection.state().and_then(|link| link.profile().answer_timeout);
        let timeout = timeout.unwrap_or_else(|| self.snapshot.borrow().answer_timeout);
        (now + timeout).min(transit.until).max(now + LEAST_WAIT)
    }
}

/// The DRMP priority of a request. RFC 7944 §10: what a peer says of it counts where the peer is trusted to.
fn priority_of(profile: &Profile, routing: &Routing<'_>) -> u8 {
    let default = profile.priority.unwrap_or(priority::DEFAULT);
    match profile.trusts_priority {
        true => routing.priority.unwrap_or(default),
        false => default,
    }
}

/// Why a relay must not forward a request, if so.
fn unrelayed(message: &MessageMut, profile: &Profile) -> Option<Fault> {
    // The base protocol is between neighbours (RFC 6733 §5): whatever its flags, the request is processed here, where
    // the command is not known (§7.1.3).
    if message.application() == known::application::COMMON {
        let why = format!(
            "command {} of application 0 is not served here",
            message.command()
        );
        return Some(Fault::new(ResultCode::COMMAND_UNSUPPORTED, why));
    }
    // §3: "If cleared, the message MUST be locally processed", and nothing here processes it.
    let is_relayed = message.flags().contains(CommandFlags::PROXIABLE) || profile.relays_without_p_flag;
    (!is_relayed).then(|| {
        let why = "the P flag is clear: this node relays only (relayWithoutPFlag of the peer admits it)";
        Fault::new(ResultCode::INVALID_HDR_BITS, why)
    })
}

pub(super) fn reason(why: RefusedReason) -> Exception {
    match why {
        RefusedReason::NotOpen => Exception::ConnectionFailure,
        RefusedReason::QueueFull | RefusedReason::PendingFull | RefusedReason::TooLong => {
            Exception::Exhausted
        }
    }
}
