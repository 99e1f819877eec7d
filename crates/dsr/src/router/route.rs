//! Where a request goes: rules, then a hop of a route list, the peer that it names, or one of its realm.

use std::sync::Arc;

use diameter::proto::Fault;
use dsr_app::View;
use smallvec::SmallVec;

use super::request::Decision;
use super::{Core, RequestFlags, Target, Transit};
use crate::config::Exception;
use crate::registry::{Hop, HopState, Hops};
use crate::routing::{Choice, RouteList};
use crate::snapshot::{Action, Snapshot};

impl Core {
    /// RFC 6733 §5.4: a peer that does not want to talk to us is connected to when there is something to send.
    #[cold]
    fn want_idle(&self, action: &Action, snapshot: &Snapshot, view: &View<'_>) {
        match action {
            Action::List(position) => {
                let groups = snapshot.list(*position).into_iter().flat_map(RouteList::groups);
                groups.for_each(|group| group.hops().for_each(|hop| hop.want()));
            }
            _ => {
                let Some(host) = view.routing.destination_host else {
                    return;
                };
                let mut hops = self.hops.borrow_mut();
                let hops = hops.find(host).into_iter().flatten();
                hops.for_each(|hop| hop.want());
            }
        }
    }

    /// Routes a request by its table, to a hop that was not tried.
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
        if let Some(fault) = self.abates(view, transit).or_else(|| snapshot.unserved(view)) {
            return Decision::Refuse(fault);
        }
        let mut passed = SmallVec::new();
        let choice = self.choice(snapshot, transit, view, &mut passed);
        let leads = snapshot.action(table, view);
        let is_first = transit.tried.is_empty();
        if is_first {
            self.measure(leads.count);
        }
        let target = match &leads.action {
            Action::List(_) | Action::Implicit | Action::Table(_) if !snapshot.relays(view) => None,
            Action::List(position) => match self.by_list(snapshot, *position, &choice, view, transit) {
                Ok(target) => target,
                Err(fault) => return Decision::Refuse(fault),
            },
            Action::Implicit | Action::Table(_) => match self.by_names(snapshot, &choice, view, transit) {
                Ok(target) => target,
                Err(fault) => return Decision::Refuse(fault),
            },
            Action::Answer(fault) => return Decision::Refuse(fault.clone()),
            Action::Abandon => return Decision::Abandon,
        };
        let redirected = match is_first && !self.redirects.borrow().is_empty() && snapshot.relays(view) {
            true => self.cached_redirect(snapshot, view, &choice, target),
            false => None,
        };
        let (target, renamed) = match redirected {
            Some((target, host)) => (Some(target), view.routing.destination_host.map(|_| host)),
            None => (target, None),
        };
        match target {
            Some(target) => Decision::Send(target, leads.copy.clone(), renamed),
            None => {
                self.want_idle(&leads.action, snapshot, view);
                Decision::Except(Exception::NoRoute)
            }
        }
    }

    /// A hop of the route list at that position.
    fn by_list(
        &self,
        snapshot: &Snapshot,
        position: usize,
        choice: &Choice<'_>,
        view: &View<'_>,
        transit: &Transit,
    ) -> Result<Option<Target>, Fault> {
        if transit.tried.is_empty() {
            self.measure(snapshot.list_count(position));
        }
        let Some(list) = snapshot.list(position) else {
            return Ok(None);
        };
        let hop = self.choose(list, choice, view, transit)?;
        Ok(hop.map(|hop| Target::of(hop)))
    }

    /// The peer that the Destination-Host names (RFC 6733 §6.1.5); where there is none, a peer of the realm (§6.1.6).
    fn by_names(
        &self,
        snapshot: &Snapshot,
        choice: &Choice<'_>,
        view: &View<'_>,
        transit: &Transit,
    ) -> Result<Option<Target>, Fault> {
        if let Some(host) = view.routing.destination_host {
            let target = self.implicit(snapshot, host, choice);
            let is_known = || self.hops.borrow_mut().find(host).is_some() || snapshot.via(host).is_some();
            if target.is_some() || !snapshot.has_realm_routes() || is_known() {
                return Ok(target);
            }
        }
        match snapshot.realm_route(view) {
            Some((list, count)) => {
                if transit.tried.is_empty() {
                    self.measure(count);
                }
                self.by_list(snapshot, list, choice, view, transit)
            }
            None => Ok(None),
        }
    }

    /// What has to be known to choose a hop. `passed` holds the hops that the request has passed already.
    pub(super) fn choice<'c>(
        &self,
        snapshot: &'c Snapshot,
        transit: &'c Transit,
        view: &View<'c>,
        passed: &'c mut SmallVec<[u32; 8]>,
    ) -> Choice<'c> {
        // What came from a sibling goes to none: it is for a peer of ours.
        let barred: &[u32] = match transit.origin.flags.has(RequestFlags::SIBLING) {
            true => snapshot.siblings(),
            false => &[],
        };
        let barred = match view.routing.route_records {
            0 => barred,
            _ => {
                passed.extend_from_slice(barred);
                self.add_passed(view, passed);
                passed
            }
        };
        Choice {
            tried: &transit.tried,
            from: transit.from,
            barred,
            dice: self.dice(),
            session: view.routing.session_id,
            host: view.routing.destination_host,
        }
    }

    /// RFC 6733 §6.1.7: a relay does not choose a hop that a Route-Record names.
    fn add_passed(&self, view: &View<'_>, passed: &mut SmallVec<[u32; 8]>) {
        let mut hops = self.hops.borrow_mut();
        for host in view.routing.route_records() {
            passed.extend(hops.find(host).into_iter().flatten().map(|hop| hop.id));
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
        // A sibling may have the peer: each is tried in turn, and answers if it does not (see `again`).
        let siblings = snapshot.siblings();
        let untried = |hop: &&Arc<Hop>| siblings.contains(&hop.id) && choice.permits(hop);
        let available = |hop: &&Arc<Hop>| hop.usable() == HopState::Available;
        if siblings.is_empty() {
            return None;
        }
        known
            .all()
            .find(|hop| untried(hop) && available(hop))
            .map(|hop| Target::of(hop))
    }
}

/// Of several connections with one peer, each in turn; what is in doubt only when nothing better is there.
fn turn(hops: &Hops, choice: &Choice<'_>) -> Option<Target> {
    let usable = |state: HopState| {
        hops.iter()
            .filter(move |hop| hop.usable() == state && choice.permits(hop))
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
