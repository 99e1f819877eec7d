//! Inhibiting of links: two sets that are joined by their links.

use std::time::{Duration, Instant};

use ss7_proto::mtp3::{
    Carrier, InhibitOutcome, Inhibited, Inhibiting, LinkSet, LinkSetEvent, LinkSetTimers, Management, Refusal,
};

use crate::mtp3::{set, share};

/// Both ends of a link set, and what has become of requests at each.
struct Pair {
    now: Instant,
    ends: [LinkSet; 2],
    outcomes: [Vec<InhibitOutcome>; 2],
    /// Whether messages arrive.
    joined: bool,
}

impl Pair {
    fn new(links: u8) -> Self {
        let (near, now) = set(links);
        let (far, _) = set(links);
        Self {
            now,
            ends: [near, far],
            outcomes: [Vec::new(), Vec::new()],
            joined: true,
        }
    }

    /// Follows the events of an end, and those that its messages lead to.
    fn follow(&mut self, end: usize, events: Vec<LinkSetEvent>) {
        self.follow_all(events.into_iter().map(|event| (end, event)).collect());
    }

    /// As [`Self::follow`], of both ends at once.
    fn follow_all(&mut self, mut all: Vec<(usize, LinkSetEvent)>) {
        while !all.is_empty() {
            let (end, event) = all.remove(0);
            let other = 1 - end;
            let mut events = Vec::new();
            match event {
                LinkSetEvent::Inhibition { outcome, .. } => self.outcomes[end].push(outcome),
                LinkSetEvent::Send { code, message, .. } if self.joined => match message {
                    Management::Inhibiting(message) => {
                        self.ends[other].inhibiting(code, message, self.now, &mut events);
                    }
                    message => self.ends[other].received(code, message, &mut events),
                },
                LinkSetEvent::Send { .. } | LinkSetEvent::Divert { .. } | LinkSetEvent::Fail(_) => {}
            }
            all.extend(events.into_iter().map(|event| (other, event)));
        }
    }

    fn inhibit(&mut self, end: usize, link: usize) -> Result<(), Refusal> {
        let mut events = Vec::new();
        let outcome = self.ends[end].inhibit(link, self.now, &mut events);
        self.follow(end, events);
        outcome
    }

    fn uninhibit(&mut self, end: usize, link: usize) -> Result<(), Refusal> {
        let mut events = Vec::new();
        let outcome = self.ends[end].uninhibit(link, self.now, &mut events);
        self.follow(end, events);
        outcome
    }

    fn fail(&mut self, link: usize) {
        for end in [0, 1] {
            let mut events = Vec::new();
            self.ends[end].failed(link, 0, self.now, &mut events);
            self.follow(end, events);
        }
    }

    fn restore(&mut self, link: usize) {
        for end in [0, 1] {
            let mut events = Vec::new();
            self.ends[end].in_service(link);
            self.ends[end].restored(link, self.now, &mut events);
            self.follow(end, events);
        }
    }

    fn pass(&mut self, time: Duration) {
        self.now += time;
        for end in [0, 1] {
            let mut events = Vec::new();
            self.ends[end].tick(self.now, &mut events);
            self.follow(end, events);
        }
    }

    fn inhibited(&self, link: usize) -> [Inhibited; 2] {
        [0, 1].map(|end| self.ends[end].inhibited(link))
    }

    fn shares(&self, link: usize) -> [usize; 2] {
        [0, 1].map(|end| share(&self.ends[end], link).len())
    }
}

fn held(set: &LinkSet) -> usize {
    set.carriers()
        .filter(|one| matches!(one, Carrier::Held(_)))
        .count()
}

/// Q.704 §10.2: time-controlled changeover (T1), and changeback.
#[test]
fn an_inhibited_link_gives_its_traffic_away_at_both_ends_and_gets_it_back() {
    let timers = LinkSetTimers::default();
    let mut pair = Pair::new(2);
    pair.inhibit(0, 0).unwrap();
    assert_eq!(pair.inhibited(0), [Inhibited::Local, Inhibited::Remote]);
    assert_eq!(
        pair.outcomes,
        [[InhibitOutcome::Inhibited], [InhibitOutcome::InhibitedByPeer]]
    );
    assert_eq!(pair.ends.each_ref().map(held), [8, 8]);
    assert_eq!(pair.inhibit(0, 0), Err(Refusal::Inhibited));
    pair.pass(timers.diversion - Duration::from_millis(1));
    assert_eq!((pair.shares(0), pair.shares(1)), ([0, 0], [8, 8]));
    pair.pass(Duration::from_millis(1));
    assert_eq!((pair.shares(0), pair.shares(1)), ([0, 0], [16, 16]));
    // The peer inhibits it as well: it is free when both have ended it.
    assert_eq!(pair.inhibit(1, 0), Ok(()));
    assert_eq!(pair.inhibited(0), [Inhibited::Both, Inhibited::Both]);
    pair.uninhibit(0, 0).unwrap();
    assert_eq!(pair.inhibited(0), [Inhibited::Remote, Inhibited::Local]);
    assert_eq!(pair.uninhibit(0, 0), Err(Refusal::NotInhibited));
    pair.uninhibit(1, 0).unwrap();
    assert_eq!(pair.inhibited(0), [Inhibited::No, Inhibited::No]);
    assert_eq!((pair.shares(0), pair.shares(1)), ([8, 8], [8, 8]));
}

#[test]
fn a_link_that_returns_stays_inhibited() {
    let mut pair = Pair::new(3);
    pair.inhibit(1, 2).unwrap();
    pair.fail(2);
    pair.pass(LinkSetTimers::default().changeover);
    pair.restore(2);
    assert_eq!(pair.inhibited(2), [Inhibited::Remote, Inhibited::Local]);
    pair.pass(LinkSetTimers::default().diversion);
    assert_eq!((pair.shares(2), pair.ends.each_ref().map(held)), ([0, 0], [0, 0]));
}

#[test]
fn the_last_link_cannot_be_inhibited() {
    let mut pair = Pair::new(2);
    pair.inhibit(0, 1).unwrap();
    assert_eq!(pair.inhibit(0, 0), Err(Refusal::LastLink));
    assert_eq!(pair.inhibit(1, 0), Err(Refusal::LastLink));
    assert_eq!(pair.inhibit(0, 7), Err(Refusal::Unavailable));
    // What this end would have, the peer has not: LID.
    let mut pair = Pair::new(2);
    let mut events = Vec::new();
    pair.ends[1].failed(1, 0, pair.now, &mut events);
    pair.inhibit(0, 0).unwrap();
    assert_eq!(pair.outcomes[0], [InhibitOutcome::Denied]);
    assert_eq!(pair.inhibited(0), [Inhibited::No, Inhibited::No]);
}

#[test]
fn requests_of_both_ends_that_cross_leave_a_link_for_the_traffic() {
    let mut pair = Pair::new(2);
    let mut all = Vec::new();
    for end in [0, 1] {
        let mut events = Vec::new();
        pair.ends[end].inhibit(end, pair.now, &mut events).unwrap();
        all.extend(events.into_iter().map(|event| (end, event)));
    }
    pair.follow_all(all);
    assert_eq!(
        pair.outcomes,
        [[InhibitOutcome::Denied], [InhibitOutcome::Denied]]
    );
    assert_eq!((pair.shares(0), pair.shares(1)), ([8, 8], [8, 8]));
}

#[test]
fn the_failure_of_the_other_link_before_the_answer_ends_an_inhibition() {
    let mut pair = Pair::new(2);
    let (now, mut events) = (pair.now, Vec::new());
    let near = &mut pair.ends[0];
    near.inhibit(0, now, &mut Vec::new()).unwrap();
    near.failed(1, 0, now, &mut Vec::new());
    near.inhibiting(0, Inhibiting::InhibitAcknowledgement, now, &mut events);
    pair.follow(0, events);
    let wanted = [InhibitOutcome::Inhibited, InhibitOutcome::Uninhibited];
    assert_eq!(pair.outcomes[0], wanted);
    assert_eq!(pair.inhibited(0)[0], Inhibited::No);
}

/// T14, T12: each message is repeated once.
#[test]
fn without_an_answer_a_link_stays_as_it_was() {
    let timers = LinkSetTimers::default();
    let mut pair = Pair::new(2);
    pair.joined = false;
    pair.inhibit(0, 0).unwrap();
    pair.pass(timers.inhibit);
    assert_eq!(pair.inhibited(0)[0], Inhibited::Requested);
    pair.pass(timers.inhibit);
    assert_eq!(pair.inhibited(0)[0], Inhibited::No);
    assert_eq!(pair.shares(0), [8, 8]);
    pair.joined = true;
    pair.inhibit(0, 0).unwrap();
    pair.joined = false;
    pair.uninhibit(0, 0).unwrap();
    pair.pass(timers.uninhibit);
    pair.pass(timers.uninhibit);
    assert_eq!(pair.inhibited(0)[0], Inhibited::Local);
    let unanswered = InhibitOutcome::Unanswered;
    assert_eq!(
        pair.outcomes[0],
        [unanswered, InhibitOutcome::Inhibited, unanswered]
    );
}

/// §10.2.3: without another link the inhibition ends, and what was held meanwhile leaves by the link.
#[test]
fn the_failure_of_the_other_links_ends_an_inhibition() {
    for end in [0, 1] {
        let mut pair = Pair::new(2);
        pair.inhibit(end, 0).unwrap();
        pair.pass(LinkSetTimers::default().diversion);
        assert_eq!(pair.shares(1), [16, 16]);
        pair.fail(1);
        pair.pass(LinkSetTimers::default().changeover);
        assert_eq!(pair.inhibited(0), [Inhibited::No, Inhibited::No]);
        assert_eq!(pair.shares(0), [16, 16]);
    }
    // LFU and LUN are lost: they are sent again, also after their repetition.
    let mut pair = Pair::new(2);
    pair.inhibit(0, 0).unwrap();
    pair.pass(LinkSetTimers::default().diversion);
    pair.joined = false;
    pair.fail(1);
    for _ in 0..6 {
        pair.pass(LinkSetTimers::default().uninhibit);
    }
    assert_eq!(pair.inhibited(0), [Inhibited::Local, Inhibited::Remote]);
    pair.joined = true;
    for _ in 0..2 {
        pair.pass(LinkSetTimers::default().uninhibit);
    }
    assert_eq!(pair.inhibited(0), [Inhibited::No, Inhibited::No]);
    assert_eq!(pair.shares(0), [16, 16]);
}

/// LLT (T22), LRT (T23): a mark that the other end has not is removed.
#[test]
fn ends_that_differ_agree_after_a_test() {
    for (at, kind) in [(0, Inhibited::Local), (1, Inhibited::Remote)] {
        let mut pair = Pair::new(2);
        pair.inhibit(0, 0).unwrap();
        pair.pass(LinkSetTimers::default().diversion);
        pair.ends[1 - at] = set(2).0;
        assert_eq!(pair.inhibited(0)[at], kind);
        pair.pass(LinkSetTimers::default().inhibit_test);
        assert_eq!(pair.inhibited(0), [Inhibited::No, Inhibited::No], "{kind:?}");
    }
}

#[test]
fn messages_that_fit_nothing_change_nothing() {
    let (mut one, now) = set(2);
    let all = [
        Inhibiting::Uninhibit,
        Inhibiting::InhibitAcknowledgement,
        Inhibiting::UninhibitAcknowledgement,
        Inhibiting::InhibitDenied,
        Inhibiting::ForcedUninhibit,
        Inhibiting::LocalTest,
        Inhibiting::RemoteTest,
    ];
    let mut events = Vec::new();
    for message in all {
        one.inhibiting(0, message, now, &mut events);
        one.inhibiting(9, message, now, &mut events);
    }
    assert_eq!((one.inhibited(0), share(&one, 0).len()), (Inhibited::No, 8));
    assert!(
        events.len() <= all.len()
            && events
                .iter()
                .all(|event| matches!(event, LinkSetEvent::Send { .. }))
    );
    assert_eq!(one.wake(), None);
}
