//! Requests on their way through the applications that a rule leads them to.

use std::ops::Deref;
use std::rc::Rc;
use std::sync::Arc;

use diameter::Connection;
use diameter::proto::{MessageMut, Routing};
use dsr_app::{Destination, Flow, Installed, Memo, Out, Request, Seated, Turn, View};
use smallvec::SmallVec;

use super::parked::{Parking, Stage};
use super::request::{Decision, Examined, Step};
use super::{Core, Link, Tools, Transit};
use crate::config::Exception;
use crate::edit::readdress;
use crate::snapshot::Snapshot;

/// The configuration as one worker has it, with its applications.
#[derive(Debug)]
pub(super) struct Local {
    snapshot: Arc<Snapshot>,
    /// By position.
    places: Vec<Option<Place>>,
}

impl Deref for Local {
    type Target = Arc<Snapshot>;

    fn deref(&self) -> &Arc<Snapshot> {
        &self.snapshot
    }
}

/// An application on this worker.
pub(super) struct Place {
    /// As in the snapshot.
    pub(super) id: u32,
    pub(super) seat: Rc<dyn Seated>,
    follows: bool,
}

impl std::fmt::Debug for Place {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.seat.application().fmt(f)
    }
}

impl Local {
    /// Takes the applications of a snapshot into use; those that were there before keep their state.
    pub(super) fn new(snapshot: Arc<Snapshot>, worker: usize, tools: &Tools, before: Option<&Self>) -> Self {
        let hosting = &tools.hosting;
        let place = |id: u32, application: &Arc<dyn Installed>| {
            let before = before.and_then(|before| before.place_of(id));
            let tally = hosting.tally_of(&**application);
            let before = before.map(|before| before.seat.as_any());
            let seat = application
                .clone()
                .seat(worker, &*tally, hosting.resumer(), before);
            let follows = seat.follows();
            Place { id, seat, follows }
        };
        let slots = snapshot.slots().iter().map(Option::as_ref);
        let places = slots.map(|slot| slot.map(|slot| place(slot.id, &slot.application)));
        Self {
            places: places.collect(),
            snapshot,
        }
    }

    /// The application of this id.
    pub(super) fn place_of(&self, id: u32) -> Option<&Place> {
        self.places().find(|place| place.id == id)
    }

    pub(super) fn places(&self) -> impl Iterator<Item = &Place> {
        self.places.iter().flatten()
    }

    /// The ids of the applications at these positions.
    fn ids(&self, chain: &[usize]) -> SmallVec<[u32; 4]> {
        let place = |position: &usize| Some(self.places.get(*position)?.as_ref()?.id);
        chain.iter().filter_map(place).collect()
    }

    /// The positions of the applications of these ids; those that are not there any more are left out.
    fn positions(&self, ids: &[u32]) -> SmallVec<[usize; 4]> {
        let is = |place: &Option<Place>, id: u32| place.as_ref().is_some_and(|place| place.id == id);
        let position = |id: &u32| self.places.iter().position(|place| is(place, *id));
        ids.iter().filter_map(position).collect()
    }
}

/// The peer of a connection, as applications know it.
pub(super) fn peer_of(connection: &Connection<Link>) -> &str {
    connection.state().map_or("", |link| &link.hop().host)
}

impl Core {
    /// Shows a request to the rest of its chain; none: the chain is at its end, and the request is unchanged.
    pub(super) fn walk<'s>(
        &self,
        local: &Local,
        chain: &'s [usize],
        message: &MessageMut,
        view: &View<'_>,
        peer: &str,
        transit: &mut Transit,
    ) -> Option<Step<'s>> {
        let mut rest = chain;
        while let [position, after @ ..] = rest {
            rest = after;
            let Some(Some(place)) = local.places.get(*position) else {
                continue;
            };
            let request = Request {
                message,
                view,
                peer,
                names: self.names(transit.origin.node),
            };
            let (mut memo, mut out) = (Memo::default(), Out::default());
            let flow = place.seat.request(self.turn(&mut memo, &mut out), &request);
            self.send_own(place.id, out);
            if let Some(step) = self.take_turn(local, place, flow, memo, message, rest, transit) {
                return Some(step);
            }
        }
        None
    }

    /// What an application's verdict on a request means; none: the request goes on unchanged.
    #[allow(clippy::too_many_arguments)]
    fn take_turn<'s>(
        &self,
        local: &Local,
        place: &Place,
        flow: Flow<'_>,
        memo: Memo,
        message: &MessageMut,
        rest: &'s [usize],
        transit: &mut Transit,
    ) -> Option<Step<'s>> {
        if place.follows && matches!(flow, Flow::Next | Flow::To(_) | Flow::Changed(_)) {
            transit.follow(place.id, memo);
        }
        Some(match flow {
            Flow::Next => return None,
            Flow::To(Destination { realm, host }) => match readdress(message, &realm, &host) {
                Ok(changed) => Step::Changed(changed, Examined::Applied(rest)),
                Err(_) => Step::Done(Decision::Except(Exception::Exhausted)),
            },
            Flow::Changed(message) => Step::Changed(message, Examined::Applied(rest)),
            Flow::Answer(fault) => Step::Done(Decision::Refuse(fault.into_owned())),
            Flow::Reply(reply) => Step::Done(Decision::Reply(reply)),
            Flow::Drop => Step::Done(Decision::Abandon),
            Flow::Later(wait) => Step::Done(Decision::Park(Box::new(Parking {
                application: place.id,
                memo,
                wait,
                rest: local.ids(rest),
            }))),
        })
    }

    /// Goes on with a request that an application had parked, by this verdict.
    pub(super) fn go_on(
        &self,
        local: &Local,
        parking: Parking,
        flow: Flow<'_>,
        from: &Rc<Connection<Link>>,
        mut message: MessageMut,
        mut transit: Transit,
    ) {
        let positions = local.positions(&parking.rest);
        let mut rest = &positions[..];
        let place = local.place_of(parking.application);
        let turned = place
            .and_then(|place| self.take_turn(local, place, flow, parking.memo, &message, rest, &mut transit));
        let mut step = turned;
        let decision = loop {
            match step {
                Some(Step::Done(decision)) => break decision,
                Some(Step::Changed(changed, examined)) => {
                    message = changed;
                    if let Examined::Applied(after) = examined {
                        rest = after;
                    }
                }
                None => {}
            }
            // It was scanned when it came.
            let Ok(routing) = Routing::scan_as(&message, |name| local.is_own(name)) else {
                break Decision::Except(Exception::Exhausted);
            };
            let (application, command) = (message.application(), message.command());
            let view = View::new(application, command, transit.priority, &routing);
            step = self.walk(local, rest, &message, &view, peer_of(from), &mut transit);
            if step.is_none() {
                break self.route(local, &view, &transit);
            }
        };
        self.carry_out(local, decision, message, transit, from);
    }

    /// A turn of an application.
    #[inline]
    pub(super) fn turn<'t>(&self, memo: &'t mut Memo, out: &'t mut Out) -> Turn<'t> {
        Turn {
            now: self.now(),
            ticket: self.parked.ticket(),
            memo,
            out,
            is_congested: !self.congestion.borrow().is_calm(),
        }
    }

    /// Takes what an application sends, for a later turn of this worker: until then nothing else is parked under the ticket
    /// that the application has at hand.
    #[inline]
    pub(super) fn send_own(&self, application: u32, out: Out) {
        if !out.is_empty() {
            let own = out.into_iter();
            let own = own.map(|(request, memo)| (application, request, memo));
            self.own.borrow_mut().extend(own);
            self.wake_time();
        }
    }

    /// Parks a request.
    #[cold]
    pub(super) fn park_request(
        &self,
        parking: Parking,
        message: MessageMut,
        transit: Transit,
        from: &Rc<Connection<Link>>,
    ) {
        let stage = Stage::Request {
            message,
            from: from.clone(),
        };
        self.park(parking, transit, stage);
    }
}
