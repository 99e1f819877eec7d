//! Tests of links, and the links of a set.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use ss7_proto::mtp3::{
    Carrier, Changeover, LinkSet, LinkSetEvent, LinkSetTimers, LinkTest, LinkTestOutcome, LinkTestTimers,
    Management,
};
#[test]
fn a_link_is_tested_at_once_and_again() {
    let timers = LinkTestTimers::default();
    let mut now = Instant::now();
    let mut test = LinkTest::new(timers);
    let first = test.start(now);
    assert_eq!(test.acknowledged(b"else", now), None);
    assert_eq!(test.acknowledged(&first, now), Some(LinkTestOutcome::Passed));
    assert!(test.has_passed());
    now += timers.interval;
    let Some(Ok(second)) = test.tick(now) else {
        panic!("no test");
    };
    assert_ne!(first, second);
    assert_eq!(test.acknowledged(&first, now), None);
    now += timers.acknowledgement;
    assert!(matches!(test.tick(now), Some(Ok(_))));
    now += timers.acknowledgement;
    assert_eq!(test.tick(now), Some(Err(LinkTestOutcome::Failed)));
    assert_eq!((test.wake(), test.has_passed()), (None, false));
}

/// A set whose links are up.
pub(crate) fn set(links: u8) -> (LinkSet, Instant) {
    let codes: Vec<u8> = (0..links).collect();
    let (mut set, now) = (LinkSet::new(LinkSetTimers::default(), &codes, 16), Instant::now());
    let mut events = Vec::new();
    for link in 0..links {
        set.in_service(usize::from(link));
        set.restored(usize::from(link), now, &mut events);
    }
    // The first link has carried all for a moment.
    for event in events {
        if let LinkSetEvent::Send {
            code,
            message: Management::ChangebackDeclaration(number),
            ..
        } = event
        {
            set.received(
                code,
                Management::ChangebackAcknowledgement(number),
                &mut Vec::new(),
            );
        }
    }
    assert!(set.carriers().all(|carrier| matches!(carrier, Carrier::Link(_))));
    (set, now)
}

fn is_held(carrier: &Carrier) -> bool {
    matches!(carrier, Carrier::Held(_))
}

pub(crate) fn share(set: &LinkSet, link: usize) -> BTreeSet<usize> {
    let carriers = set.carriers().enumerate();
    carriers
        .filter(|(_, one)| *one == Carrier::Link(link))
        .map(|(at, _)| at)
        .collect()
}

#[test]
fn link_selections_share_the_links() {
    for links in 1..=16 {
        let (set, _) = set(links);
        for link in 0..usize::from(links) {
            let count = share(&set, link).len();
            assert!(count >= 16 / usize::from(links), "{links} links, {link}: {count}");
            // Two link sets share a destination by the lowest bit.
            let odd = share(&set, link).iter().filter(|one| *one % 2 == 1).count();
            assert!(
                links > 4 || odd > 0 && odd < count,
                "{links} links, {link}: {odd} of {count}"
            );
        }
    }
}

#[test]
fn a_changeover_waits_for_the_number_of_the_peer() {
    let (mut set, now) = set(3);
    let (first, others) = (share(&set, 0), share(&set, 1));
    let mut events = Vec::new();
    set.failed(0, 41, now, &mut events);
    let order = Management::ChangeoverOrder(Changeover::Extended(41));
    assert_eq!(
        events,
        [LinkSetEvent::Send {
            by: 1,
            code: 0,
            message: order
        }]
    );
    let held: BTreeSet<usize> = (0..16)
        .filter(|at| set.carriers().nth(*at).is_some_and(|one| is_held(&one)))
        .collect();
    assert_eq!((held, share(&set, 1)), (first.clone(), others.clone()));
    assert!(!set.may_start(0));
    events.clear();
    let answer = Management::ChangeoverAcknowledgement(Changeover::Extended(7));
    set.received(0, answer, &mut events);
    assert_eq!(
        events,
        [LinkSetEvent::Divert {
            link: 0,
            accepted: Some(7)
        }]
    );
    // Both others take over, and none of their own has moved.
    let moved: BTreeSet<usize> = share(&set, 1).difference(&others).copied().collect();
    assert!(!moved.is_empty() && moved.is_subset(&first) && moved.len() < first.len());
    events.clear();
    set.received(0, answer, &mut events);
    assert_eq!(events, []);
    // Back, by a declaration on each link that is drained.
    set.in_service(0);
    set.restored(0, now, &mut events);
    assert_eq!(events.len(), 2);
    for event in std::mem::take(&mut events) {
        let LinkSetEvent::Send {
            by,
            code: 0,
            message: Management::ChangebackDeclaration(number),
        } = event
        else {
            panic!("{event:?}");
        };
        assert!(by != 0);
        set.received(
            0,
            Management::ChangebackAcknowledgement(number.wrapping_add(9)),
            &mut events,
        );
        set.received(0, Management::ChangebackAcknowledgement(number), &mut events);
    }
    assert_eq!((share(&set, 0), share(&set, 1), events), (first, others, vec![]));
}

#[test]
fn a_changeover_ends_by_the_order_of_the_peer() {
    let (mut set, now) = set(2);
    let mut events = Vec::new();
    // The peer sees it first.
    let order = Management::ChangeoverOrder(Changeover::Extended(5));
    set.received(1, order, &mut events);
    assert_eq!(std::mem::take(&mut events), [LinkSetEvent::Fail(1)]);
    set.failed(1, 9, now, &mut events);
    let answer = Management::ChangeoverAcknowledgement(Changeover::Extended(9));
    let wanted = [
        LinkSetEvent::Send {
            by: 0,
            code: 1,
            message: answer,
        },
        LinkSetEvent::Divert {
            link: 1,
            accepted: Some(5),
        },
    ];
    assert_eq!(std::mem::take(&mut events), wanted);
    assert_eq!(share(&set, 0).len(), 16);
    // Both at once.
    set.in_service(1);
    set.restored(1, now, &mut events);
    let until = set.wake().unwrap();
    set.tick(until, &mut events);
    set.tick(set.wake().unwrap(), &mut events);
    assert_eq!(share(&set, 1).len(), 8, "T5 ends the changeback");
    events.clear();
    set.failed(1, 3, now, &mut events);
    set.received(1, order, &mut events);
    let answer = Management::ChangeoverAcknowledgement(Changeover::Extended(3));
    assert_eq!(
        events[1..],
        [
            LinkSetEvent::Send {
                by: 0,
                code: 1,
                message: answer
            },
            LinkSetEvent::Divert {
                link: 1,
                accepted: Some(5)
            },
        ]
    );
    // The acknowledgement of this side's order comes before the link is aligned again.
    assert!(!set.may_start(1));
    let late = Management::ChangeoverAcknowledgement(Changeover::Extended(5));
    set.received(1, late, &mut events);
    assert!(set.may_start(1));
    // An order for a link that is down already is answered with what was accepted.
    events.clear();
    set.received(1, order, &mut events);
    assert_eq!(
        events,
        [LinkSetEvent::Send {
            by: 0,
            code: 1,
            message: answer
        }]
    );
    // A link that the set does not have.
    events.clear();
    set.received(7, order, &mut events);
    assert_eq!(events, []);
}

#[test]
fn without_an_answer_nothing_is_doubled() {
    let (mut set, now) = set(2);
    let mut events = Vec::new();
    set.failed(0, 1, now, &mut events);
    events.clear();
    set.tick(now + Duration::from_millis(1_499), &mut events);
    assert_eq!(events, []);
    set.tick(now + Duration::from_millis(1_500), &mut events);
    assert_eq!(
        events,
        [LinkSetEvent::Divert {
            link: 0,
            accepted: None
        }]
    );
    assert_eq!(share(&set, 1).len(), 16);
    // The last link.
    events.clear();
    set.failed(1, 1, now, &mut events);
    assert_eq!(
        events,
        [LinkSetEvent::Divert {
            link: 1,
            accepted: None
        }]
    );
    assert!(set.carriers().all(|carrier| carrier == Carrier::None));
    assert_eq!(set.up().count(), 0);
    events.clear();
    set.in_service(1);
    set.restored(1, now, &mut events);
    assert_eq!((share(&set, 1).len(), events), (16, vec![]));
}

/// The peer may have tested a link, and sent MSUs by it, when this side has not.
#[test]
fn a_link_that_is_not_tested_yet_has_accepted_what_it_has() {
    let (mut set, now) = set(2);
    let mut events = Vec::new();
    set.failed(0, 4, now, &mut events);
    set.tick(set.wake().unwrap(), &mut events);
    // An association that never was in service says nothing of the last one that was.
    set.failed(0, 0x00ff_ffff, now, &mut events);
    let answer = |fsn| LinkSetEvent::Send {
        by: 1,
        code: 0,
        message: Management::ChangeoverAcknowledgement(Changeover::Extended(fsn)),
    };
    let order = Management::ChangeoverOrder(Changeover::Extended(0x00ff_ffff));
    events.clear();
    set.received(0, order, &mut events);
    assert_eq!(std::mem::take(&mut events), [answer(4)]);
    set.in_service(0);
    set.received(0, order, &mut events);
    assert_eq!(std::mem::take(&mut events), [LinkSetEvent::Fail(0)]);
    set.failed(0, 17, now, &mut events);
    assert_eq!(std::mem::take(&mut events), [answer(17)]);
    assert!(set.may_start(0));
    set.restored(0, now, &mut events);
    assert_eq!((set.up().collect::<Vec<_>>(), events), (vec![1], vec![]));
}

/// The link that carries a changeover fails as well.
#[test]
fn two_links_that_fail_at_once() {
    let (mut three, now) = set(3);
    let mut events = Vec::new();
    three.failed(0, 4, now, &mut events);
    events.clear();
    three.failed(1, 5, now, &mut events);
    let order = |fsn| Management::ChangeoverOrder(Changeover::Extended(fsn));
    let send = |code, message| LinkSetEvent::Send { by: 2, code, message };
    assert_eq!(events, [send(0, order(4)), send(1, order(5))]);
    let (mut two, now) = set(2);
    events.clear();
    two.failed(0, 4, now, &mut events);
    events.clear();
    two.failed(1, 5, now, &mut events);
    let divert = |link| LinkSetEvent::Divert { link, accepted: None };
    assert_eq!(events, [divert(1), divert(0)]);
    assert!(two.carriers().all(|carrier| carrier == Carrier::None));
    assert_eq!(two.wake(), None);
}

/// The link that is drained for a changeback fails: its traffic changes over as a whole.
#[test]
fn a_failure_during_a_changeback() {
    let (mut set, now) = set(2);
    let mut events = Vec::new();
    set.failed(0, 1, now, &mut events);
    set.received(
        0,
        Management::ChangeoverAcknowledgement(Changeover::Extended(1)),
        &mut events,
    );
    events.clear();
    set.in_service(0);
    set.restored(0, now, &mut events);
    assert_eq!(set.carriers().filter(is_held).count(), 8);
    events.clear();
    set.failed(1, 2, now, &mut events);
    assert_eq!(set.carriers().filter(is_held).count(), 16);
    set.received(
        1,
        Management::ChangeoverAcknowledgement(Changeover::Extended(2)),
        &mut events,
    );
    assert_eq!(share(&set, 0).len(), 16);
    // The link to which the traffic was to move fails: it stays.
    set.in_service(1);
    set.restored(1, now, &mut events);
    events.clear();
    set.failed(1, 3, now, &mut events);
    assert_eq!(share(&set, 0).len(), 16);
}
