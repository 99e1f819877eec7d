//! A request: looked at, routed, dispatched.

use std::rc::Rc;
use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use diameter::proto::overload::priority;
use diameter::proto::{CommandFlags, Fault, Message, MessageMut, ResultCode, Routing};
use diameter::{Connection, Forward, Kept, Node, RefusedReason};
use smallvec::SmallVec;

use super::mailbox::Packet;
use super::{Core, LEAST_WAIT, Link, Marks, Origin, Router, Target, Transit};
use crate::config::{Colour, Exception};
use crate::edit::readdress;
use crate::events::Event;
use crate::rbar::Outcome;
use crate::registry::{Hop, HopState, Hops};
use crate::routing::{Choice, View};
use crate::snapshot::{Action, Installed, Meets, Profile, Snapshot};

/// What is to become of a request.
pub(super) enum Decision {
    /// It goes there; and a copy to the list at that position.
    Send(Target, Option<usize>),
    Refuse(Fault),
    Except(Exception),
    Abandon,
    /// It is not let in: there is too much to do.
    Discard,
}

/// How far a request has come. A step that changes the message is followed by a new look at it.
#[derive(Clone, Copy)]
enum Stage {
    /// As it was read.
    New,
    /// Let in, with the names that are right in here.
    Inside,
    /// Done with applications.
    Routed,
}

/// What came of a look.
enum Step {
    Changed(MessageMut, Stage),
    Done(Decision),
}

/// What a look needs to know, besides the message.
struct Sight<'s> {
    snapshot: &'s Arc<Snapshot>,
    profile: &'s Profile,
    link: &'s Link,
    colour: Colour,
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
                marks: Marks::default(),
                trace: 0,
            },
            since: node.now(),
            until: node.now() + snapshot.lifetime,
            tried: SmallVec::new(),
            table: snapshot.table(&profile, application).map(|table| table as u16),
            version: snapshot.version,
            application,
            from: Some(link.hop().id),
            priority: priority::DEFAULT,
            original: None,
        };
        let Some(colour) = self.colour(link) else {
            self.count(Event::IngressDiscarded);
            let rule = &snapshot.config.overload.answer;
            return self.answer_by(transit.origin, &message, rule);
        };
        let sight = Sight {
            snapshot: &snapshot,
            profile: &profile,
            link,
            colour,
        };
        let mut stage = Stage::New;
        let decision = loop {
            match self.look(&sight, stage, &message, &mut transit) {
                Step::Changed(changed, next) => (message, stage) = (changed, next),
                Step::Done(decision) => break decision,
            }
        };
        if transit.origin.trace > 0 {
            self.trace(
                transit.origin.trace,
                "request in",
                from,
                [message.as_bytes(), &[]],
            );
        }
        if matches!(decision, Decision::Discard) {
            // Not a message in the sense of MPS.
            self.count(Event::OverloadDiscarded);
            return self.answer_by(transit.origin, &message, &snapshot.config.overload.answer);
        }
        self.count(Event::Message);
        match decision {
            Decision::Send(target, copy) => {
                if let Some(list) = copy {
                    self.copy(&snapshot, list, &message, from.route_record(), &transit);
                }
                transit.tried.push(target.hop);
                let append = self.appended(&snapshot, from, &mut transit.origin);
                self.dispatch(target, message, append, transit);
            }
            Decision::Refuse(fault) => self.refuse(transit.origin, &message, &fault),
            Decision::Except(why) => self.except(transit.origin, &message, why),
            Decision::Abandon | Decision::Discard => self.count(Event::Abandoned),
        }
    }

    /// One look: is it right and let in, what does it meet, where to?
    fn look(&self, sight: &Sight<'_>, stage: Stage, message: &MessageMut, transit: &mut Transit) -> Step {
        let snapshot = sight.snapshot;
        let routing = match Routing::scan_as(message, |name| snapshot.is_own(name)) {
            Ok(routing) => routing,
            Err(error) => {
                self.count(Event::BadRequest);
                return Step::Done(Decision::Refuse(error.into()));
            }
        };
        if matches!(stage, Stage::New)
            && let Some(step) = self.admit(sight, message, &routing, transit)
        {
            return step;
        }
        let view = View::new(
            message.application(),
            message.command(),
            transit.priority,
            &routing,
        );
        if !snapshot.trace.is_empty() && transit.origin.trace == 0 {
            transit.origin.trace = self.trace_point(snapshot, &sight.link.hop().host, &view);
        }
        if !matches!(stage, Stage::Routed)
            && let Some(meets) = snapshot.meets(sight.profile, &view)
        {
            match meets {
                Meets::Route => {}
                Meets::Answer(fault) => return Step::Done(Decision::Refuse(fault.clone())),
                Meets::Abandon => return Step::Done(Decision::Abandon),
                Meets::Application(position) => {
                    if let Some(step) = self.apply(snapshot.installed(*position), &view, message) {
                        return step;
                    }
                }
            }
        }
        Step::Done(self.route(snapshot, &view, transit))
    }

    /// Whether a new request is let in; none: it is, as it is.
    fn admit(
        &self,
        sight: &Sight<'_>,
        message: &MessageMut,
        routing: &Routing<'_>,
        transit: &mut Transit,
    ) -> Option<Step> {
        let default = sight.profile.priority.unwrap_or(priority::DEFAULT);
        transit.priority = routing.priority.unwrap_or(default);
        let marks = &mut transit.origin.marks;
        marks.set(Marks::DOIC, routing.supports_overload);
        marks.set(Marks::HOST_ROUTED, routing.destination_host.is_some());
        marks.set(Marks::SIBLING, sight.profile.sibling);
        if self.discards(transit.priority, sight.colour) {
            return Some(Step::Done(Decision::Discard));
        }
        let accepts = &sight.profile.applications;
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
        if routing.loops {
            return Some(Step::Done(Decision::Except(Exception::LoopDetected)));
        }
        let hiding = sight
            .snapshot
            .hiding
            .as_ref()
            .filter(|_| sight.profile.untrusted)?;
        let found = hiding.request_in(message, routing)?;
        self.count(Event::Hidden);
        Some(Step::Changed(found, Stage::Inside))
    }

    /// A request meets an application. None: it goes on as it is.
    fn apply(&self, application: &Installed, view: &View<'_>, message: &MessageMut) -> Option<Step> {
        let Installed::Rbar(rbar) = application else {
            return None;
        };
        self.count(Event::Resolved);
        match rbar.resolve(view) {
            Outcome::Forward => None,
            Outcome::To(destination) => {
                self.count(Event::ResolvedTo);
                Some(match readdress(message, &destination.realm, &destination.host) {
                    Ok(changed) => Step::Changed(changed, Stage::Routed),
                    Err(_) => Step::Done(Decision::Except(Exception::Exhausted)),
                })
            }
            Outcome::Answer(fault) => Some(Step::Done(Decision::Refuse(fault.clone()))),
            Outcome::Abandon => Some(Step::Done(Decision::Abandon)),
        }
    }

    /// Where a request goes: what its table says, to a hop that was not tried.
    pub(super) fn route(&self, snapshot: &Arc<Snapshot>, view: &View<'_>, transit: &Transit) -> Decision {
        let table = match transit.version == snapshot.version {
            true => transit.table.map(usize::from),
            // The configuration changed since: positions may mean other tables. A client of another worker is
            // looked up by its application.
            false => match transit.from.and_then(|hop| self.profile_of(hop)) {
                Some(profile) => snapshot.table(&profile, transit.application),
                None => snapshot.table(&snapshot.profile(""), transit.application),
            },
        };
        if let Some(fault) = self.abates(view, transit) {
            return Decision::Refuse(fault);
        }
        let choice = self.choice(snapshot, transit);
        let leads = snapshot.action(table, view);
        let target = match &leads.action {
            Action::List(position) => {
                let list = snapshot.list(*position);
                match list.map(|list| self.choose(list, &choice, view, transit)) {
                    Some(Ok(hop)) => hop.map(|hop| Target::of(hop)),
                    Some(Err(fault)) => return Decision::Refuse(fault),
                    None => None,
                }
            }
            Action::Implicit | Action::Table(_) => view
                .routing
                .destination_host
                .and_then(|host| self.implicit(snapshot, host, &choice)),
            Action::Answer(fault) => return Decision::Refuse(fault.clone()),
            Action::Abandon => return Decision::Abandon,
        };
        match target {
            Some(target) => Decision::Send(target, leads.copy),
            None => Decision::Except(Exception::NoRoute),
        }
    }

    pub(super) fn choice<'c>(&self, snapshot: &'c Snapshot, transit: &'c Transit) -> Choice<'c> {
        let from_sibling = transit.origin.marks.has(Marks::SIBLING);
        Choice {
            tried: &transit.tried,
            from: transit.from,
            // What came from a sibling goes to none: it is for a peer of ours.
            barred: if from_sibling { snapshot.siblings() } else { &[] },
            dice: self.dice(),
        }
    }

    /// The peer that a Destination-Host names, if it is connected: here, or to a sibling.
    pub(super) fn implicit(&self, snapshot: &Snapshot, host: &[u8], choice: &Choice<'_>) -> Option<Target> {
        let mut known = self.hops.borrow_mut();
        if let Some(hops) = known.find(host) {
            return turn(hops, choice);
        }
        if let Some(hops) = snapshot.via(host) {
            return turn(hops, choice);
        }
        // Some sibling may know it: each is asked in turn, and says if not (see `again`).
        let siblings = snapshot.siblings();
        let untried = |hop: &&Arc<Hop>| siblings.contains(&hop.id) && choice.permits(hop);
        let available = |hop: &&Arc<Hop>| hop.state() == HopState::Available;
        if siblings.is_empty() {
            return None;
        }
        known
            .all()
            .find(|hop| untried(hop) && available(hop))
            .map(|hop| Target::of(hop))
    }

    /// Sends a request to a hop, here or by the worker on which the hop lives.
    fn dispatch(&self, target: Target, message: MessageMut, append: &Bytes, transit: Transit) {
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
        if let Err(Packet::Request { message, transit, .. }) = self.post.send(target.worker, packet) {
            self.except(transit.origin, &message, Exception::Exhausted);
        }
    }

    /// Sends a copy of a request to a route list. Nobody waits for its answer.
    #[cold]
    fn copy(
        &self,
        snapshot: &Arc<Snapshot>,
        list: usize,
        message: &MessageMut,
        append: &Bytes,
        transit: &Transit,
    ) {
        let choice = self.choice(snapshot, transit);
        let Some(hop) = snapshot.list(list).and_then(|list| list.choose(&choice)) else {
            return;
        };
        let Ok(copy) = Message::parse(BytesMut::from(message.as_bytes())) else {
            return;
        };
        let mut origin = transit.origin;
        origin.marks.set(Marks::COPY, true);
        let copied = Transit {
            origin,
            // It is sent once.
            until: self.now(),
            tried: SmallVec::from_slice(&[hop.id]),
            original: None,
            ..*transit
        };
        self.count(Event::Copied);
        self.count(Event::Message);
        self.dispatch(Target::of(hop), copy, append, copied);
    }

    /// Sends a request to a hop that lives here.
    pub(super) fn send(&self, hop: u32, message: MessageMut, append: &Bytes, mut transit: Transit) {
        static NOTHING: Bytes = Bytes::new();
        let link = match self.permit(hop, &transit) {
            Ok(link) => link,
            Err(why) => {
                let kept = Kept::new(message.freeze(), append.clone());
                return self.elsewhere(kept, CommandFlags::default(), transit, why);
            }
        };
        let (node, connection) = link;
        let (message, append) = match self.hide_request(&connection, &message, append) {
            Some(hidden) => {
                transit.original = Some(Box::new(Kept::new(message.freeze(), append.clone())));
                (hidden, &NOTHING)
            }
            None => (message, append),
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
        match node.forward(&connection, message, how, transit) {
            Ok(()) => self.count(Event::RequestSent),
            Err(refused) => {
                let why = reason(refused.why);
                let kept = Kept::new(refused.message.freeze(), append.clone());
                self.elsewhere(kept, CommandFlags::default(), refused.context, why);
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
        if let Some(group) = self.snapshot.borrow().throttle_of(hop) {
            let mut throttles = self.throttles.borrow_mut();
            let now = self.now();
            if throttles
                .get_mut(group)
                .is_some_and(|throttle| !throttle.permits(now, transit.priority))
            {
                self.count(Event::Throttled);
                return Err(Exception::Exhausted);
            }
        }
        Ok(link)
    }

    /// A request for a foreign network with our names hidden; none: it goes as it is.
    #[inline]
    pub(super) fn hide_request<B: AsRef<[u8]>>(
        &self,
        to: &Connection<Link>,
        message: &Message<B>,
        append: &[u8],
    ) -> Option<MessageMut> {
        let snapshot = self.snapshot.borrow();
        let hiding = snapshot.hiding.as_ref()?;
        if !to.state()?.profile().untrusted {
            return None;
        }
        let hidden = hiding.request_out(message, append)?;
        self.count(Event::Hidden);
        Some(hidden)
    }

    pub(super) fn deadline(&self, connection: &Connection<Link>, transit: &Transit) -> std::time::Instant {
        let now = self.now();
        let timeout = connection.state().and_then(|link| link.profile().answer_timeout);
        let timeout = timeout.unwrap_or_else(|| self.snapshot.borrow().answer_timeout);
        (now + timeout).min(transit.until).max(now + LEAST_WAIT)
    }
}

/// Of several connections with one peer, each in turn; what is in doubt only when nothing better is there.
fn turn(hops: &Hops, choice: &Choice<'_>) -> Option<Target> {
    let usable = |state: HopState| {
        hops.iter()
            .filter(move |hop| hop.state() == state && choice.permits(hop))
    };
    let count = usable(HopState::Available).count();
    let turn = choice.dice as usize % count.max(1);
    let hop = usable(HopState::Available)
        .nth(turn)
        .or_else(|| usable(HopState::Degraded).next())?;
    Some(Target::of(hop))
}

impl Target {
    pub(super) fn of(hop: &Hop) -> Self {
        Self {
            hop: hop.id,
            worker: hop.home(),
        }
    }
}

pub(super) fn reason(why: RefusedReason) -> Exception {
    match why {
        RefusedReason::NotOpen => Exception::ConnectionFailure,
        RefusedReason::QueueFull | RefusedReason::PendingFull | RefusedReason::TooLong => {
            Exception::Exhausted
        }
    }
}
