//! The links of a set as they carry its traffic: load sharing by signalling link selection, changeover and changeback (Q.704
//! §4.2, §5, §6).
//!
//! Each link selection has a carrier. It changes in three ways only, and each keeps the sequence: by a changeover after the carrier
//! has failed, once the peer has named the last MSU that it accepted, by a changeback to the link that shares the load
//! normally, once the peer has acknowledged that the former carrier is drained, and some time (T1) after the carrier was inhibited.
//! Between, MSUs of the link selection are held.

use std::time::Instant;

use super::inhibit::{InhibitOutcome, Inhibition};
use super::{Changeover, LinkSetTimers, Management};

/// What carries a link selection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Carrier {
    /// No link: the set is unavailable.
    None,
    /// A link, by its position.
    Link(usize),
    /// None yet: MSUs are held. The link that carried it last may have some in its queue, unless it has failed.
    Held(usize),
}

/// What the user of the set does. Links are positions.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LinkSetEvent {
    /// Sends a message that concerns the link code, behind all MSUs that are queued for `by`.
    Send {
        /// The link that carries it.
        by: usize,
        /// The link that it concerns.
        code: u8,
        /// The message.
        message: Management,
    },
    /// Takes a link out of service, then reports [`LinkSet::failed`]: the peer has ordered a changeover.
    Fail(usize),
    /// Sends MSUs of a failed link by the carriers of their link selections, before those that are held: those behind
    /// `accepted`, then those that were not sent yet. Without a number the peer's is unknown, and what was sent and not
    /// acknowledged is lost: it would be doubled otherwise.
    Divert {
        /// The failed link.
        link: usize,
        /// FSN of the last MSU that the peer has accepted.
        accepted: Option<u32>,
    },
    /// What a request to inhibit a link, or its end, has led to.
    Inhibition {
        /// The link.
        link: usize,
        /// What it is.
        outcome: InhibitOutcome,
    },
}

/// The traffic of a set of links.
#[derive(Debug)]
pub struct LinkSet {
    pub(super) timers: LinkSetTimers,
    pub(super) links: Vec<Link>,
    /// By link selection.
    carriers: Vec<Option<usize>>,
    changebacks: Vec<Changeback>,
    /// Code of the last changeback declaration.
    code: u8,
}

#[derive(Debug)]
pub(super) struct Link {
    code: u8,
    phase: Phase,
    pub(super) inhibition: Inhibition,
    /// FSN of the last MSU that this side has accepted, when the link failed last.
    accepted: Option<u32>,
    /// What the peer has ordered while the link was up here.
    order: Option<Changeover>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Phase {
    Down,
    /// In service, and not tested yet. The peer may have finished its test and send MSUs.
    Untested,
    Up,
    /// Until the peer says what it has accepted, or T2 ends.
    ChangingOver(Instant),
    /// The changeover has ended by the order of the peer, whose acknowledgement of this side's comes yet, or until T2 ends: it
    /// would be taken for that of a later changeover.
    Settling(Instant),
}

/// Link selections that move from one link to another.
#[derive(Debug)]
struct Changeback {
    to: usize,
    from: usize,
    code: u8,
    until: Instant,
    repeated: bool,
    selections: Vec<usize>,
}

impl LinkSet {
    /// With the link codes of its links, which are all down, for this many link selections (a power of two).
    #[must_use]
    pub fn new(timers: LinkSetTimers, codes: &[u8], selections: usize) -> Self {
        let link = |code: &u8| Link {
            code: *code,
            phase: Phase::Down,
            inhibition: Inhibition::default(),
            accepted: None,
            order: None,
        };
        Self {
            timers,
            links: codes.iter().map(link).collect(),
            carriers: vec![None; selections.max(1).next_power_of_two()],
            changebacks: Vec::new(),
            code: 0,
        }
    }

    /// Positions of the links that are up.
    pub fn up(&self) -> impl Iterator<Item = usize> {
        let links = self.links.iter().enumerate();
        links
            .filter(|(_, link)| link.phase == Phase::Up)
            .map(|(at, _)| at)
    }

    /// Whether a link is in service: the peer may send what it reports of destinations before the test of this side is over.
    #[must_use]
    pub fn is_in_service(&self) -> bool {
        let mut links = self.links.iter();
        links.any(|link| matches!(link.phase, Phase::Untested | Phase::Up))
    }

    /// Whether a link may be aligned: no changeover of it is in progress.
    #[must_use]
    pub fn may_start(&self, link: usize) -> bool {
        self.links.get(link).is_some_and(|link| link.phase == Phase::Down)
    }

    /// What carries each link selection.
    pub fn carriers(&self) -> impl Iterator<Item = Carrier> {
        let carriers = self.carriers.iter().enumerate();
        carriers.map(|(selection, carrier)| match carrier {
            None => Carrier::None,
            Some(link) if self.is_held(selection, *link) => Carrier::Held(*link),
            Some(link) => Carrier::Link(*link),
        })
    }

    /// When [`Self::tick`] has something to do.
    #[must_use]
    pub fn wake(&self) -> Option<Instant> {
        let overs = self.links.iter().filter_map(|link| match link.phase {
            Phase::ChangingOver(until) | Phase::Settling(until) => Some(until),
            Phase::Down | Phase::Untested | Phase::Up => None,
        });
        let backs = self.changebacks.iter().map(|back| back.until);
        let inhibitions = self.links.iter().filter_map(|link| link.inhibition.wake());
        overs.chain(backs).chain(inhibitions).min()
    }

    /// A link is in service: MSUs may come by it, and none are sent yet.
    pub fn in_service(&mut self, link: usize) {
        if self.may_start(link) {
            self.set(link, Phase::Untested);
        }
    }

    /// A link that is in service has passed its test.
    pub fn restored(&mut self, link: usize, now: Instant, events: &mut Vec<LinkSetEvent>) {
        if self.phase(link) != Phase::Untested {
            return;
        }
        self.set(link, Phase::Up);
        if self.is_inhibited(link) {
            self.force(now, events);
        } else {
            self.drain_others(link, now);
        }
        self.bring_back(link, now, events);
    }

    /// A link takes the selections that it shares normally. Those without a carrier take any link that is up.
    pub(super) fn bring_back(&mut self, link: usize, now: Instant, events: &mut Vec<LinkSetEvent>) {
        for selection in 0..self.carriers.len() {
            match self.carriers.get(selection) {
                Some(None) => self.assign(selection, Some(link)),
                Some(Some(from))
                    if *from != link && self.normal(selection) == link && self.is_usable(link) =>
                {
                    let from = *from;
                    if self.is_up(from) && !self.is_moving(selection) {
                        self.move_back(selection, from, link, now);
                    }
                }
                _ => {}
            }
        }
        for back in self.changebacks.iter().filter(|back| back.to == link) {
            events.push(self.declaration(back));
        }
    }

    /// T1 of an inhibited link has ended: others carry its selections.
    pub(super) fn divert(&mut self, link: usize) {
        for selection in 0..self.carriers.len() {
            if self.carriers.get(selection) == Some(&Some(link)) && !self.is_moving(selection) {
                let substitute = self.substitute(selection);
                self.assign(selection, substitute);
            }
        }
    }

    /// Nothing moves to a link any more: it stays where it is, unless that link is inhibited.
    pub(super) fn keep_away(&mut self, link: usize, now: Instant) {
        let all = std::mem::take(&mut self.changebacks).into_iter();
        let (ended, rest): (Vec<_>, Vec<_>) = all.partition(|back| back.to == link);
        self.changebacks = rest;
        for back in ended {
            self.drain_inhibited(back.from, now);
        }
    }

    /// A link is out of service; this side has accepted MSUs up to a number.
    pub fn failed(&mut self, link: usize, accepted: u32, now: Instant, events: &mut Vec<LinkSetEvent>) {
        let phase = self.phase(link);
        if !matches!(phase, Phase::Up | Phase::Untested) {
            return;
        }
        // What was to move back stays where it is; what was to leave changes over with the rest.
        self.keep_away(link, now);
        self.changebacks.retain(|back| back.from != link);
        self.set(link, Phase::Down);
        let order = self.links.get_mut(link).and_then(|one| {
            one.accepted = Some(accepted);
            one.inhibition.failed();
            one.order.take()
        });
        self.force(now, events);
        if phase == Phase::Untested {
            // It has carried nothing from this side.
            if let (Some(_), Some(by)) = (order, self.up().next()) {
                self.answer(link, by, events);
            }
            return;
        }
        let Some(by) = self.up().next() else {
            // No message can reach the peer, nor its answers this side.
            self.finish(link, None, events);
            for other in 0..self.links.len() {
                match self.phase(other) {
                    Phase::ChangingOver(_) => self.finish(other, None, events),
                    Phase::Settling(_) => self.set(other, Phase::Down),
                    Phase::Down | Phase::Untested | Phase::Up => {}
                }
            }
            return;
        };
        // The link may have taken their orders with it, or the answers.
        for other in 0..self.links.len() {
            let accepted = self.links.get(other).and_then(|other| other.accepted);
            if let Some(accepted) = accepted.filter(|_| self.is_changing_over(other)) {
                self.order(other, by, accepted, events);
            }
        }
        if let Some(order) = order {
            self.answer(link, by, events);
            return self.finish(link, Some(order), events);
        }
        self.set(link, Phase::ChangingOver(now + self.timers.changeover));
        self.order(link, by, accepted, events);
    }

    /// A message of the peer that concerns a link code.
    pub fn received(&mut self, code: u8, message: Management, events: &mut Vec<LinkSetEvent>) {
        let Some(link) = self.position(code) else {
            return;
        };
        let phase = self.phase(link);
        let by = self.up().find(|other| *other != link);
        match (message, phase) {
            (Management::ChangeoverOrder(order), Phase::Up | Phase::Untested) => {
                if let Some(one) = self.links.get_mut(link) {
                    one.order = Some(order);
                }
                events.push(LinkSetEvent::Fail(link));
            }
            // Both sides have ordered: the order acknowledges, too (Q.704 §5.3.2).
            (Management::ChangeoverOrder(order), Phase::ChangingOver(until)) => {
                if let Some(by) = by {
                    self.answer(link, by, events);
                }
                self.finish(link, Some(order), events);
                self.set(link, Phase::Settling(until));
            }
            (Management::ChangeoverAcknowledgement(_), Phase::Settling(_)) => self.set(link, Phase::Down),
            (Management::ChangeoverOrder(_), Phase::Down | Phase::Settling(_)) => {
                if let Some(by) = by {
                    self.answer(link, by, events);
                }
            }
            (Management::ChangeoverAcknowledgement(answer), Phase::ChangingOver(_)) => {
                self.finish(link, Some(answer), events);
            }
            (Management::ChangebackDeclaration(number), _) => {
                let by = by.or_else(|| self.up().next());
                if let Some(by) = by {
                    let message = Management::ChangebackAcknowledgement(number);
                    self.send(link, by, message, events);
                }
            }
            (Management::ChangebackAcknowledgement(number), _) => {
                let is_meant = |back: &Changeback| back.to == link && back.code == number;
                if let Some(at) = self.changebacks.iter().position(is_meant) {
                    self.arrive(at);
                }
            }
            _ => {}
        }
    }

    /// Time passes.
    pub fn tick(&mut self, now: Instant, events: &mut Vec<LinkSetEvent>) {
        self.tick_inhibitions(now, events);
        for link in 0..self.links.len() {
            match self.phase(link) {
                Phase::ChangingOver(until) if until <= now => self.finish(link, None, events),
                Phase::Settling(until) if until <= now => self.set(link, Phase::Down),
                _ => {}
            }
        }
        let mut at = 0;
        while let Some(back) = self.changebacks.get_mut(at) {
            if back.until > now {
                at += 1;
            } else if back.repeated {
                // Without an answer the traffic moves nevertheless (Q.704 §6.4.2).
                self.arrive(at);
            } else {
                back.repeated = true;
                back.until = now + self.timers.second_changeback;
                if let Some(back) = self.changebacks.get(at) {
                    events.push(self.declaration(back));
                }
                at += 1;
            }
        }
    }

    /// The link with a code.
    pub(super) fn position(&self, code: u8) -> Option<usize> {
        self.links.iter().position(|link| link.code == code)
    }

    fn phase(&self, link: usize) -> Phase {
        self.links.get(link).map_or(Phase::Down, |link| link.phase)
    }

    pub(super) fn is_up(&self, link: usize) -> bool {
        self.phase(link) == Phase::Up
    }

    /// Whether a link is up and may carry MSUs of users.
    pub(super) fn is_usable(&self, link: usize) -> bool {
        self.is_up(link) && !self.is_inhibited(link)
    }

    fn is_changing_over(&self, link: usize) -> bool {
        matches!(self.phase(link), Phase::ChangingOver(_))
    }

    fn is_moving(&self, selection: usize) -> bool {
        self.changebacks
            .iter()
            .any(|back| back.selections.contains(&selection))
    }

    fn is_held(&self, selection: usize, carrier: usize) -> bool {
        !self.is_usable(carrier) || self.is_moving(selection)
    }

    fn set(&mut self, link: usize, phase: Phase) {
        if let Some(link) = self.links.get_mut(link) {
            link.phase = phase;
            if phase == Phase::Untested {
                link.order = None;
            }
        }
    }

    fn assign(&mut self, selection: usize, carrier: Option<usize>) {
        if let Some(one) = self.carriers.get_mut(selection) {
            *one = carrier;
        }
    }

    /// The bits of a link selection from the last to the first: link sets share a destination by the first ones.
    fn reversed(&self, selection: usize) -> usize {
        let bits = self.carriers.len().trailing_zeros();
        match bits {
            0 => 0,
            bits => selection.reverse_bits() >> (usize::BITS - bits),
        }
    }

    /// The link of a selection when all are up.
    fn normal(&self, selection: usize) -> usize {
        self.reversed(selection) % self.links.len().max(1)
    }

    /// The link for a selection now.
    fn substitute(&self, selection: usize) -> Option<usize> {
        let normal = self.normal(selection);
        if self.is_usable(normal) {
            return Some(normal);
        }
        let mut up: Vec<usize> = self.up().filter(|link| self.is_usable(*link)).collect();
        if up.is_empty() {
            // The end of an inhibition is requested: MSUs are held for it.
            up = self.up().collect();
        }
        let spread = self.reversed(selection) / self.links.len().max(1);
        up.get(spread.checked_rem(up.len())?).copied()
    }

    fn move_back(&mut self, selection: usize, from: usize, to: usize, now: Instant) {
        let known = self
            .changebacks
            .iter_mut()
            .find(|back| (back.from, back.to) == (from, to));
        if let Some(known) = known {
            known.selections.push(selection);
            return;
        }
        self.code = self.code.wrapping_add(1);
        self.changebacks.push(Changeback {
            to,
            from,
            code: self.code,
            until: now + self.timers.changeback,
            repeated: false,
            selections: vec![selection],
        });
    }

    /// The declaration goes by the link that is drained, behind its MSUs.
    fn declaration(&self, back: &Changeback) -> LinkSetEvent {
        LinkSetEvent::Send {
            by: back.from,
            code: self.links.get(back.to).map_or(0, |link| link.code),
            message: Management::ChangebackDeclaration(back.code),
        }
    }

    fn arrive(&mut self, at: usize) {
        let back = self.changebacks.remove(at);
        for selection in back.selections {
            self.assign(selection, Some(back.to));
        }
    }

    fn order(&self, link: usize, by: usize, accepted: u32, events: &mut Vec<LinkSetEvent>) {
        let message = Management::ChangeoverOrder(Changeover::Extended(accepted));
        self.send(link, by, message, events);
    }

    /// Says what this side has accepted by a link.
    fn answer(&self, link: usize, by: usize, events: &mut Vec<LinkSetEvent>) {
        let accepted = self.links.get(link).and_then(|link| link.accepted);
        let changeover = accepted.map_or(Changeover::Emergency, Changeover::Extended);
        self.send(
            link,
            by,
            Management::ChangeoverAcknowledgement(changeover),
            events,
        );
    }

    pub(super) fn send(&self, link: usize, by: usize, message: Management, events: &mut Vec<LinkSetEvent>) {
        let code = self.links.get(link).map_or(0, |link| link.code);
        events.push(LinkSetEvent::Send { by, code, message });
    }

    /// The end of a changeover: other links carry the selections of the failed one.
    fn finish(&mut self, link: usize, answer: Option<Changeover>, events: &mut Vec<LinkSetEvent>) {
        self.set(link, Phase::Down);
        for selection in 0..self.carriers.len() {
            if self.carriers.get(selection) == Some(&Some(link)) {
                let substitute = self.substitute(selection);
                self.assign(selection, substitute);
            }
        }
        let accepted = match answer {
            Some(Changeover::Extended(fsn)) => Some(fsn),
            // Seven bits of 24 may name several MSUs.
            Some(Changeover::Short(_) | Changeover::Emergency) | None => None,
        };
        events.push(LinkSetEvent::Divert { link, accepted });
    }
}
