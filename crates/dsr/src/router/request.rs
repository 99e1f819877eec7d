//! A request: looked at, routed, dispatched.

use std::rc::Rc;
use std::sync::Arc;

use bytes::Bytes;
use diameter::proto::overload::priority;
use diameter::proto::{CommandFlags, Fault, MessageMut, Routing};
use diameter::{Connection, Forward, Kept, Node, RefusedReason};
use smallvec::SmallVec;

use super::mailbox::Packet;
use super::{Core, LEAST_WAIT, Link, Origin, Router, Target, Transit};
use crate::config::Exception;
use crate::events::Event;
use crate::registry::{Hop, HopState};
use crate::routing::{Choice, View};
use crate::snapshot::{Action, Snapshot};

/// What is to become of a request.
enum Decision {
    Send(Target),
    Refuse(Fault),
    Except(Exception),
    Abandon,
}

impl Core {
    /// A request came.
    pub(super) fn on_request(
        &self,
        node_index: u8,
        node: &Node<Router>,
        from: &Rc<Connection<Link>>,
        message: MessageMut,
    ) {
        let Some(link) = from.state() else { return };
        self.count(Event::Request);
        let snapshot = self.snapshot();
        let origin = Origin {
            worker: self.worker as u16,
            node: node_index,
            connection: from.id(),
            hop_by_hop: message.hop_by_hop(),
        };
        let profile = link.profile();
        let application = message.application();
        let mut transit = Transit {
            origin,
            until: node.now() + snapshot.lifetime,
            tried: SmallVec::new(),
            table: snapshot.table(&profile, application).map(|table| table as u16),
            version: snapshot.version,
            application,
            from: Some(link.hop().id),
        };
        self.count(Event::Message);
        match self.look(&snapshot, &message, &transit) {
            Decision::Send(target) => {
                transit.tried.push(target.hop);
                self.dispatch(target, message, from.route_record(), transit);
            }
            Decision::Refuse(fault) => self.refuse(origin, &message, &fault),
            Decision::Except(why) => self.except(origin, &message, why),
            Decision::Abandon => self.count(Event::Abandoned),
        }
    }

    /// The first look: is it right, has it been here, where to?
    fn look(&self, snapshot: &Arc<Snapshot>, message: &MessageMut, transit: &Transit) -> Decision {
        let routing = match Routing::scan_as(message, |name| snapshot.is_own(name)) {
            Ok(routing) => routing,
            Err(error) => {
                self.count(Event::BadRequest);
                return Decision::Refuse(error.into());
            }
        };
        if let Err(fault) = message.check_flags() {
            self.count(Event::BadRequest);
            return Decision::Refuse(fault);
        }
        if routing.loops {
            return Decision::Except(Exception::LoopDetected);
        }
        let view = View::new(
            message.application(),
            message.command(),
            routing.priority.unwrap_or(priority::DEFAULT),
            &routing,
        );
        self.route(snapshot, &view, transit)
    }

    /// Where a request goes: what its table says, to a hop that was not tried.
    fn route(&self, snapshot: &Arc<Snapshot>, view: &View<'_>, transit: &Transit) -> Decision {
        let table = match transit.version == snapshot.version {
            true => transit.table.map(usize::from),
            // The configuration changed since: positions may mean other tables.
            false => snapshot.table(&snapshot.profile(""), transit.application),
        };
        let choice = Choice {
            tried: &transit.tried,
            from: transit.from,
            dice: self.dice(),
        };
        let target = match snapshot.action(table, view) {
            Action::List(position) => snapshot
                .list(*position)
                .and_then(|list| list.choose(&choice))
                .map(|hop| Target::of(hop)),
            Action::Implicit | Action::Table(_) => view
                .routing
                .destination_host
                .and_then(|host| self.implicit(host, &choice)),
            Action::Answer(fault) => return Decision::Refuse(fault.clone()),
            Action::Abandon => return Decision::Abandon,
        };
        match target {
            Some(target) => Decision::Send(target),
            None => Decision::Except(Exception::NoRoute),
        }
    }

    /// The peer that a Destination-Host names, if it is connected.
    fn implicit(&self, host: &[u8], choice: &Choice<'_>) -> Option<Target> {
        let mut hops = self.hops.borrow_mut();
        let hops = hops.find(host)?;
        let usable = |state: HopState| {
            hops.iter().filter(move |hop| {
                hop.state() == state && !choice.tried.contains(&hop.id) && choice.from != Some(hop.id)
            })
        };
        let count = usable(HopState::Available).count();
        let turn = choice.dice as usize % count.max(1);
        let hop = usable(HopState::Available)
            .nth(turn)
            .or_else(|| usable(HopState::Degraded).next())?;
        Some(Target::of(hop))
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

    /// Sends a request to a hop that lives here.
    pub(super) fn send(&self, hop: u32, message: MessageMut, append: &Bytes, transit: Transit) {
        let Some((node, connection)) = self.link(hop, transit.application) else {
            let kept = Kept::new(message.freeze(), append.clone());
            return self.elsewhere(
                kept,
                CommandFlags::default(),
                transit,
                Exception::ConnectionFailure,
            );
        };
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

    /// Sends a kept request to a hop that lives here.
    pub(super) fn send_kept(&self, hop: u32, kept: Kept, flags: CommandFlags, transit: Transit) {
        let Some((node, connection)) = self.link(hop, transit.application) else {
            return self.elsewhere(kept, flags, transit, Exception::ConnectionFailure);
        };
        let deadline = self.deadline(&connection, &transit);
        match node.forward_kept(&connection, kept, deadline, flags, transit) {
            Ok(()) => self.count(Event::RequestSent),
            Err((why, kept, transit)) => self.elsewhere(kept, flags, transit, reason(why)),
        }
    }

    fn deadline(&self, connection: &Connection<Link>, transit: &Transit) -> std::time::Instant {
        let now = self.now();
        let timeout = connection.state().and_then(|link| link.profile().answer_timeout);
        let timeout = timeout.unwrap_or_else(|| self.snapshot().answer_timeout);
        (now + timeout).min(transit.until).max(now + LEAST_WAIT)
    }

    /// Tries a request elsewhere; when nothing is left, answers it.
    pub(super) fn elsewhere(&self, kept: Kept, flags: CommandFlags, transit: Transit, why: Exception) {
        if let Err((kept, transit)) = self.try_again(kept, flags, transit) {
            self.except(transit.origin, kept.message(), why);
        }
    }

    /// Tries a request elsewhere, with these flags added to its own. Gives it back when nothing is left: no
    /// attempt, no time, no hop.
    #[allow(clippy::result_large_err)]
    pub(super) fn try_again(
        &self,
        kept: Kept,
        flags: CommandFlags,
        mut transit: Transit,
    ) -> Result<(), (Kept, Transit)> {
        let snapshot = self.snapshot();
        if transit.tried.len() >= usize::from(snapshot.attempts) || self.now() >= transit.until {
            return Err((kept, transit));
        }
        let target = {
            let message = kept.message();
            // It was scanned when it came.
            let Ok(routing) = Routing::scan_as(message, |_| false) else {
                return Err((kept, transit));
            };
            let (application, command) = (message.application(), message.command());
            let view = View::new(
                application,
                command,
                routing.priority.unwrap_or(priority::DEFAULT),
                &routing,
            );
            match self.route(&snapshot, &view, &transit) {
                Decision::Send(target) => target,
                _ => return Err((kept, transit)),
            }
        };
        transit.tried.push(target.hop);
        self.count(Event::Rerouted);
        self.count(Event::Message);
        if target.worker == self.worker {
            self.send_kept(target.hop, kept, flags, transit);
            return Ok(());
        }
        let packet = Packet::Again {
            hop: target.hop,
            kept,
            flags,
            transit,
        };
        self.count(Event::HandedOver);
        match self.post.send(target.worker, packet) {
            Err(Packet::Again { kept, transit, .. }) => Err((kept, transit)),
            _ => Ok(()),
        }
    }
}

impl Target {
    pub(super) fn of(hop: &Hop) -> Self {
        Self {
            hop: hop.id,
            worker: hop.home(),
        }
    }
}

fn reason(why: RefusedReason) -> Exception {
    match why {
        RefusedReason::NotOpen => Exception::ConnectionFailure,
        RefusedReason::QueueFull | RefusedReason::PendingFull | RefusedReason::TooLong => {
            Exception::Exhausted
        }
    }
}
