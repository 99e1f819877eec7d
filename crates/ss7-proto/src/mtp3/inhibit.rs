//! Inhibiting of links by an operator of either side (Q.704 §10): the link stays in service for management and tests, and carries no
//! MSUs of users.

use std::time::Instant;

use super::link_set::{LinkSet, LinkSetEvent};
use super::{Inhibiting, Management};

/// Who keeps MSUs of users from a link.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Inhibited {
    /// Neither side.
    No,
    /// This side, which waits for the answer of the peer.
    Requested,
    /// This side.
    Local,
    /// The peer.
    Remote,
    /// Both sides.
    Both,
}

/// What a request to inhibit a link, or its end, has led to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum InhibitOutcome {
    /// This side has inhibited the link.
    Inhibited,
    /// The peer has inhibited it.
    InhibitedByPeer,
    /// The peer has denied it.
    Denied,
    /// The peer has not answered, and the link is as it was before.
    Unanswered,
    /// Neither side inhibits it any more.
    Uninhibited,
}

/// Why a request cannot be made.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Refusal {
    /// Destinations would become inaccessible (§10.2.1).
    #[error("no other link of its link set carries traffic")]
    LastLink,
    /// It is inhibited, or about to be.
    #[error("this side has inhibited it already")]
    Inhibited,
    /// It is not.
    #[error("this side has not inhibited it")]
    NotInhibited,
    /// No message can reach the peer.
    #[error("no link of its link set is available")]
    Unavailable,
}

/// The marks of one link.
#[derive(Debug, Default)]
pub(super) struct Inhibition {
    local: Local,
    remote: Remote,
    /// T1: when other links take its selections.
    diversion: Option<Instant>,
}

/// A message that waits for its answer, and whether it was repeated.
#[derive(Clone, Copy, Debug)]
struct Pending {
    until: Instant,
    repeated: bool,
}

#[derive(Clone, Copy, Debug, Default)]
enum Local {
    #[default]
    Free,
    /// LIN was sent.
    Requested(Pending),
    /// Until the next LLT.
    Inhibited(Instant),
    /// LUN was sent.
    Ending(Pending),
}

#[derive(Clone, Copy, Debug, Default)]
enum Remote {
    #[default]
    Free,
    /// Until the next LRT.
    Inhibited(Instant),
    /// LFU was sent.
    Ending(Pending),
}

impl Inhibition {
    pub(super) fn wake(&self) -> Option<Instant> {
        let local = match self.local {
            Local::Free => None,
            Local::Requested(pending) | Local::Ending(pending) => Some(pending.until),
            Local::Inhibited(test) => Some(test),
        };
        let remote = match self.remote {
            Remote::Free => None,
            Remote::Inhibited(test) => Some(test),
            Remote::Ending(pending) => Some(pending.until),
        };
        [local, remote, self.diversion].into_iter().flatten().min()
    }

    /// The link is out of service: its changeover moves its selections.
    pub(super) const fn failed(&mut self) {
        self.diversion = None;
    }

    const fn state(&self) -> Inhibited {
        match (self.local, self.remote) {
            (Local::Free, Remote::Free) => Inhibited::No,
            (Local::Requested(_), Remote::Free) => Inhibited::Requested,
            (Local::Inhibited(_) | Local::Ending(_), Remote::Free) => Inhibited::Local,
            (Local::Free | Local::Requested(_), _) => Inhibited::Remote,
            (Local::Inhibited(_) | Local::Ending(_), _) => Inhibited::Both,
        }
    }
}

impl LinkSet {
    /// Who keeps MSUs of users from a link.
    #[must_use]
    pub fn inhibited(&self, link: usize) -> Inhibited {
        self.links
            .get(link)
            .map_or(Inhibited::No, |link| link.inhibition.state())
    }

    pub(super) fn is_inhibited(&self, link: usize) -> bool {
        !matches!(self.inhibited(link), Inhibited::No | Inhibited::Requested)
    }

    /// Asks the peer to inhibit a link (LIN).
    ///
    /// # Errors
    /// Why that cannot be.
    pub fn inhibit(
        &mut self,
        link: usize,
        now: Instant,
        events: &mut Vec<LinkSetEvent>,
    ) -> Result<(), Refusal> {
        let until = now + self.timers.inhibit;
        if !self.may_inhibit(link) {
            return Err(Refusal::LastLink);
        }
        let one = self.links.get_mut(link).ok_or(Refusal::Unavailable)?;
        if !matches!(one.inhibition.local, Local::Free) {
            return Err(Refusal::Inhibited);
        }
        one.inhibition.local = Local::Requested(Pending {
            until,
            repeated: false,
        });
        self.say(link, Inhibiting::Inhibit, events);
        Ok(())
    }

    /// Asks the peer to end an inhibition of this side (LUN).
    ///
    /// # Errors
    /// Why that cannot be.
    pub fn uninhibit(
        &mut self,
        link: usize,
        now: Instant,
        events: &mut Vec<LinkSetEvent>,
    ) -> Result<(), Refusal> {
        if self.up().next().is_none() {
            return Err(Refusal::Unavailable);
        }
        match self.links.get(link).map(|link| link.inhibition.local) {
            Some(Local::Inhibited(_)) => {
                self.end(link, now, events);
                Ok(())
            }
            Some(Local::Ending(_)) => Ok(()),
            _ => Err(Refusal::NotInhibited),
        }
    }

    /// A message of the peer about inhibiting the link with a code.
    pub fn inhibiting(
        &mut self,
        code: u8,
        message: Inhibiting,
        now: Instant,
        events: &mut Vec<LinkSetEvent>,
    ) {
        let Some(link) = self.position(code) else {
            return;
        };
        let Some(Inhibition { local, remote, .. }) = self.links.get(link).map(|link| &link.inhibition) else {
            return;
        };
        match (message, *local, *remote) {
            (Inhibiting::Inhibit, _, Remote::Free) if !self.may_inhibit(link) => {
                self.say(link, Inhibiting::InhibitDenied, events);
            }
            (Inhibiting::Inhibit, _, former) => {
                self.with(link, |one, test| one.remote = Remote::Inhibited(now + test));
                self.say(link, Inhibiting::InhibitAcknowledgement, events);
                if matches!(former, Remote::Free) {
                    self.drain(link, now);
                    report(link, InhibitOutcome::InhibitedByPeer, events);
                }
            }
            (Inhibiting::InhibitAcknowledgement, Local::Requested(_), _) => {
                self.with(link, |one, test| one.local = Local::Inhibited(now + test));
                self.drain(link, now);
                report(link, InhibitOutcome::Inhibited, events);
                // The other links may have failed since the request.
                self.force(now, events);
            }
            (Inhibiting::InhibitDenied, Local::Requested(_), _) => {
                self.with(link, |one, _| one.local = Local::Free);
                report(link, InhibitOutcome::Denied, events);
            }
            (Inhibiting::Uninhibit, ..) => {
                self.say(link, Inhibiting::UninhibitAcknowledgement, events);
                if !matches!(remote, Remote::Free) {
                    self.with(link, |one, _| one.remote = Remote::Free);
                    self.released(link, now, events);
                }
            }
            (Inhibiting::UninhibitAcknowledgement, Local::Ending(_), _) => {
                self.with(link, |one, _| one.local = Local::Free);
                self.released(link, now, events);
            }
            (Inhibiting::ForcedUninhibit, Local::Inhibited(_), _) => self.end(link, now, events),
            // The peer has a mark that this side has not: LUN clears it (§10).
            (Inhibiting::ForcedUninhibit | Inhibiting::RemoteTest, Local::Free | Local::Requested(_), _) => {
                self.say(link, Inhibiting::Uninhibit, events);
            }
            (Inhibiting::LocalTest, _, Remote::Free) => self.say(link, Inhibiting::ForcedUninhibit, events),
            _ => {}
        }
    }

    /// Without another link that carries traffic inhibitions end, as far as the peer answers (§10.3).
    pub(super) fn force(&mut self, now: Instant, events: &mut Vec<LinkSetEvent>) {
        if (0..self.links.len()).any(|link| self.is_usable(link)) {
            return;
        }
        let until = now + self.timers.forced_uninhibit;
        for link in 0..self.links.len() {
            let Some(one) = self.links.get(link).filter(|_| self.is_up(link)) else {
                continue;
            };
            let (local, remote) = (one.inhibition.local, one.inhibition.remote);
            if matches!(local, Local::Inhibited(_)) {
                self.end(link, now, events);
            }
            if matches!(remote, Remote::Inhibited(_)) {
                let pending = Pending {
                    until,
                    repeated: false,
                };
                self.with(link, |one, _| one.remote = Remote::Ending(pending));
                self.say(link, Inhibiting::ForcedUninhibit, events);
            }
        }
    }

    pub(super) fn tick_inhibitions(&mut self, now: Instant, events: &mut Vec<LinkSetEvent>) {
        let mut is_unanswered = false;
        for link in 0..self.links.len() {
            let Some(one) = self.links.get(link).map(|link| &link.inhibition) else {
                continue;
            };
            let (local, remote) = (one.local, one.remote);
            if one.diversion.is_some_and(|at| at <= now) {
                self.with(link, |one, _| one.diversion = None);
                self.divert(link);
            }
            is_unanswered |= self.tick_local(link, local, now, events);
            is_unanswered |= self.tick_remote(link, remote, now, events);
        }
        if is_unanswered {
            self.force(now, events);
        }
    }

    /// Returns whether a request to end an inhibition was not answered.
    fn tick_local(
        &mut self,
        link: usize,
        local: Local,
        now: Instant,
        events: &mut Vec<LinkSetEvent>,
    ) -> bool {
        let timers = self.timers;
        let again = |after| Pending {
            until: now + after,
            repeated: true,
        };
        match local {
            Local::Requested(pending) if pending.until <= now && pending.repeated => {
                self.with(link, |one, _| one.local = Local::Free);
                report(link, InhibitOutcome::Unanswered, events);
            }
            Local::Requested(pending) if pending.until <= now => {
                self.with(link, |one, _| one.local = Local::Requested(again(timers.inhibit)));
                self.say(link, Inhibiting::Inhibit, events);
            }
            Local::Ending(pending) if pending.until <= now && pending.repeated => {
                self.with(link, |one, test| one.local = Local::Inhibited(now + test));
                report(link, InhibitOutcome::Unanswered, events);
                return true;
            }
            Local::Ending(pending) if pending.until <= now => {
                self.with(link, |one, _| one.local = Local::Ending(again(timers.uninhibit)));
                self.say(link, Inhibiting::Uninhibit, events);
            }
            Local::Inhibited(test) if test <= now => {
                self.with(link, |one, test| one.local = Local::Inhibited(now + test));
                self.say(link, Inhibiting::LocalTest, events);
            }
            _ => {}
        }
        false
    }

    /// Returns whether a request to end an inhibition was not answered.
    fn tick_remote(
        &mut self,
        link: usize,
        remote: Remote,
        now: Instant,
        events: &mut Vec<LinkSetEvent>,
    ) -> bool {
        match remote {
            Remote::Ending(pending) if pending.until <= now && pending.repeated => {
                self.with(link, |one, test| one.remote = Remote::Inhibited(now + test));
                return true;
            }
            Remote::Ending(pending) if pending.until <= now => {
                let again = Pending {
                    until: now + self.timers.forced_uninhibit,
                    repeated: true,
                };
                self.with(link, |one, _| one.remote = Remote::Ending(again));
                self.say(link, Inhibiting::ForcedUninhibit, events);
            }
            Remote::Inhibited(test) if test <= now => {
                self.with(link, |one, test| one.remote = Remote::Inhibited(now + test));
                self.say(link, Inhibiting::RemoteTest, events);
            }
            _ => {}
        }
        false
    }

    /// Whether the destinations of the set stay accessible without a link, and without those that this side has asked the peer to
    /// inhibit: requests of both sides may cross.
    fn may_inhibit(&self, link: usize) -> bool {
        let stays = |other| self.is_up(other) && self.inhibited(other) == Inhibited::No;
        (0..self.links.len()).any(|other| other != link && stays(other))
    }

    /// Ends an inhibition of this side.
    fn end(&mut self, link: usize, now: Instant, events: &mut Vec<LinkSetEvent>) {
        let pending = Pending {
            until: now + self.timers.uninhibit,
            repeated: false,
        };
        self.with(link, |one, _| one.local = Local::Ending(pending));
        self.say(link, Inhibiting::Uninhibit, events);
    }

    /// The traffic of a link is held for T1, then other links carry it (time-controlled changeover).
    fn drain(&mut self, link: usize, now: Instant) {
        self.keep_away(link, now);
        let until = self.is_up(link).then(|| now + self.timers.diversion);
        self.with(link, |one, _| one.diversion = until);
    }

    /// A link carries traffic again: what was held for want of one leaves the inhibited links.
    pub(super) fn drain_others(&mut self, link: usize, now: Instant) {
        for other in 0..self.links.len() {
            if other != link && self.is_inhibited(other) {
                self.drain(other, now);
            }
        }
    }

    /// What a link carries still after its T1, since it was to move to another one, leaves after a further T1.
    pub(super) fn drain_inhibited(&mut self, link: usize, now: Instant) {
        if self.is_inhibited(link) && self.is_up(link) {
            let until = now + self.timers.diversion;
            self.with(link, |one, _| one.diversion = Some(until));
        }
    }

    /// An inhibition has ended, and the link takes its traffic back unless the other side inhibits it.
    fn released(&mut self, link: usize, now: Instant, events: &mut Vec<LinkSetEvent>) {
        if self.is_inhibited(link) {
            return;
        }
        self.with(link, |one, _| one.diversion = None);
        report(link, InhibitOutcome::Uninhibited, events);
        if self.is_up(link) {
            self.drain_others(link, now);
            self.bring_back(link, now, events);
        }
    }

    /// Changes the marks of a link; `change` gets the interval of tests as well.
    fn with(&mut self, link: usize, change: impl FnOnce(&mut Inhibition, std::time::Duration)) {
        let test = self.timers.inhibit_test;
        if let Some(link) = self.links.get_mut(link) {
            change(&mut link.inhibition, test);
        }
    }

    /// Sends a message by a link that carries traffic, else by any that is up.
    fn say(&self, link: usize, message: Inhibiting, events: &mut Vec<LinkSetEvent>) {
        let usable = self.up().find(|link| self.is_usable(*link));
        if let Some(by) = usable.or_else(|| self.up().next()) {
            self.send(link, by, Management::Inhibiting(message), events);
        }
    }
}

fn report(link: usize, outcome: InhibitOutcome, events: &mut Vec<LinkSetEvent>) {
    events.push(LinkSetEvent::Inhibition { link, outcome });
}
