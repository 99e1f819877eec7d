//! Delivery in simulated time.

use std::cell::RefCell;
use std::rc::Rc;

use ahash::AHashMap;
use proptest::prelude::*;

use super::*;
use crate::Bound;

type Counts = Rc<RefCell<AHashMap<Event, usize>>>;

fn policy() -> Policy {
    Policy {
        total: Bound {
            notifications: 100,
            bytes: 10_000,
        },
        per_subscription: Bound {
            notifications: 10,
            bytes: 1_000,
        },
        parallel: 8,
        attempts: 3,
        pause: Duration::from_millis(100),
        max_pause: Duration::from_secs(10),
        timeout: Duration::from_secs(2),
        redirects: 2,
        alternates: 0,
        rate: 0,
    }
}

fn outbox(policy: Policy) -> (Outbox<impl FnMut(Event)>, Counts) {
    let counts = Counts::default();
    let counting = counts.clone();
    let count = move |event| *counting.borrow_mut().entry(event).or_default() += 1;
    (Outbox::new(policy, count), counts)
}

fn get(counts: &Counts, event: Event) -> usize {
    counts.borrow().get(&event).copied().unwrap_or(0)
}

fn about(subscription: usize, subject: usize, version: usize) -> Notification {
    Notification {
        subscription: format!("s{subscription}").into(),
        subject: subject.to_string().into(),
        whole: true,
        target: format!("http://s{subscription}.example/callback")
            .parse()
            .unwrap(),
        callback: "Nnf_Service_Notify",
        body: version.to_string().into_bytes().into(),
        set: None,
        mark: 0,
    }
}

fn version(notification: &Notification) -> usize {
    String::from_utf8_lossy(&notification.body).parse().unwrap()
}

fn sent(step: Step) -> Flight {
    match step {
        Step::Send(flight) => flight,
        other => panic!("{other:?} instead of a request"),
    }
}

#[test]
fn a_full_queue_keeps_the_newest_state_of_each_subject() {
    let (mut outbox, counts) = outbox(policy());
    let now = Instant::now();
    outbox.push(about(1, 0, 0));
    let slow = sent(outbox.next(now));
    // Twenty states of one subject, between them one state each of five others.
    for version in 1..=20 {
        outbox.push(about(1, 1, version));
        if version % 4 == 0 {
            outbox.push(about(1, 1 + version / 4, version));
        }
    }
    assert_eq!(outbox.pending().notifications, 10);
    assert_eq!(get(&counts, Event::Dropped), 15);
    outbox.answered(slow, Answer::Delivered, now, 0.5);
    let mut last = AHashMap::new();
    for _ in 0..10 {
        let flight = sent(outbox.next(now));
        last.insert(
            flight.notification.subject.to_string(),
            version(&flight.notification),
        );
        outbox.answered(flight, Answer::Delivered, now, 0.5);
    }
    assert_eq!(last["1"], 20);
    for subject in 2..=6 {
        assert_eq!(last[&subject.to_string()], 4 * (subject - 1));
    }
    assert!(
        matches!(outbox.next(now), Step::Idle),
        "all that was dropped was replaced"
    );
}

/// Subscribers that do not answer may be more than what may be in flight: the others have half of it for themselves.
#[test]
fn those_that_do_not_answer_leave_room_for_the_others() {
    let policy = Policy {
        parallel: 4,
        attempts: 2,
        ..policy()
    };
    let (mut outbox, counts) = outbox(policy);
    let mut now = Instant::now();
    let (mut flights, mut delivered) = (VecDeque::new(), 0);
    for subscription in 0..12 {
        outbox.push(about(subscription, 0, 0));
    }
    for second in 1..60 {
        for subject in 1..3 {
            outbox.push(about(100 + subject, subject, second));
        }
        // Those in flight of subscribers that are alive land at once, the others after two seconds.
        let mut alive = 2;
        while let Step::Send(flight) = outbox.next(now) {
            if flight.notification.subscription.len() == 4 {
                outbox.answered(flight, Answer::Delivered, now, 0.5);
                alive -= 1;
                delivered += 1;
            } else {
                flights.push_back((now + Duration::from_secs(2), flight));
            }
        }
        assert!(
            alive == 0 || second < 12,
            "{alive} are held up in second {second}"
        );
        now += Duration::from_secs(1);
        while flights.front().is_some_and(|(until, _)| *until <= now) {
            let (_, flight) = flights.pop_front().unwrap();
            outbox.push(flight.notification.clone());
            outbox.answered(flight, Answer::Retry(None), now, 0.5);
        }
    }
    assert!(delivered > 100 && get(&counts, Event::Failed) > 10);
}

/// A destination that does not answer may have ever new subscriptions: none of them takes the room of the others.
#[test]
fn a_silent_destination_with_ever_new_subscriptions_leaves_room() {
    let policy = Policy {
        parallel: 4,
        attempts: 100,
        ..policy()
    };
    let (mut outbox, _) = outbox(policy);
    let mut now = Instant::now();
    let (mut flights, mut next) = (VecDeque::new(), 0);
    for second in 0..30 {
        for _ in 0..3 {
            next += 1;
            let target = "http://silent.example/callback".parse().unwrap();
            outbox.push(Notification {
                target,
                ..about(1_000 + next, 0, 0)
            });
        }
        for subject in 1..3 {
            outbox.push(about(100 + subject, subject, second));
        }
        let mut alive = 2;
        while let Step::Send(flight) = outbox.next(now) {
            if flight.target().host() == Some("silent.example") {
                flights.push_back((now + Duration::from_secs(2), flight));
            } else {
                outbox.answered(flight, Answer::Delivered, now, 0.5);
                alive -= 1;
            }
        }
        assert!(alive == 0 || second < 4, "{alive} are held up in second {second}");
        now += Duration::from_secs(1);
        while flights.front().is_some_and(|(until, _)| *until <= now) {
            let (_, flight) = flights.pop_front().unwrap();
            outbox.answered(flight, Answer::Retry(None), now, 0.5);
        }
    }
}

/// Nor does it take the room in which others are remembered that have missed something.
#[test]
fn what_others_have_missed_is_made_up_for_beside_a_silent_destination() {
    let policy = Policy {
        attempts: 1_000,
        parallel: 2,
        ..policy()
    };
    let bound = policy.total.notifications;
    let (mut outbox, _) = outbox(policy);
    let mut now = Instant::now();
    let silent = |number: usize| Notification {
        target: "http://silent.example/callback".parse().unwrap(),
        ..about(1_000 + number, 0, 0)
    };
    outbox.push(silent(0));
    let Step::Send(flight) = outbox.next(now) else {
        panic!()
    };
    outbox.answered(flight, Answer::Retry(None), now, 0.5);
    // It has all the notifications that may wait, and has missed all that may be missed.
    for number in 1..3 * bound {
        outbox.push(silent(number));
    }
    assert_eq!(outbox.pending().notifications, bound);
    let lost = about(1, 7, 0);
    let (subscription, subject) = (lost.subscription.clone(), lost.subject.clone());
    outbox.overflowed(1, vec![lost.into()]);
    for _ in 0..100 {
        match outbox.next(now) {
            Step::Resync(of, subjects) => {
                assert_eq!((of, subjects), (subscription.clone(), vec![subject]));
                outbox.resynced(&subscription, vec![about(1, 7, 1)]);
                let sent = std::iter::from_fn(|| match outbox.next(now) {
                    Step::Send(flight) => Some(flight),
                    _ => None,
                });
                assert!(sent.take(2).any(|flight| version(flight.notification()) == 1));
                return;
            }
            Step::Send(flight) => outbox.answered(flight, Answer::Retry(None), now, 0.5),
            Step::Wait(until) => now = until,
            step => panic!("{step:?}"),
        }
    }
    panic!("what was missed is not made up for");
}

#[test]
fn attempts_pause_twice_as_long_each_time_and_heed_retry_after() {
    let (mut outbox, counts) = outbox(policy());
    let mut now = Instant::now();
    outbox.push(about(1, 1, 1));
    outbox.push(about(1, 2, 1));
    for pause in [100, 200] {
        let flight = sent(outbox.next(now));
        assert_eq!(&*flight.notification.subject, "1", "the order holds");
        outbox.answered(flight, Answer::Retry(None), now, 0.5);
        let until = now + Duration::from_millis(pause);
        assert!(matches!(outbox.next(now), Step::Wait(at) if at == until));
        now = until;
    }
    let flight = sent(outbox.next(now));
    outbox.answered(flight, Answer::Retry(None), now, 0.5);
    assert_eq!(get(&counts, Event::Failed), 1);
    let given_up: Vec<_> = outbox
        .take_given_up()
        .into_iter()
        .map(|one| one.subject)
        .collect();
    assert_eq!(given_up, ["1".into()]);
    let second = sent(outbox.next(now));
    outbox.answered(second, Answer::Retry(Some(Duration::from_secs(3))), now, 0.0);
    assert!(matches!(outbox.next(now), Step::Wait(at) if at == now + Duration::from_secs(3)));
    now += Duration::from_secs(3);
    let again = sent(outbox.next(now));
    outbox.answered(again, Answer::Retry(Some(Duration::from_secs(3_600))), now, 1.0);
    assert!(matches!(outbox.next(now), Step::Wait(at) if at == now + Duration::from_secs(10)));
}

#[test]
fn what_failed_is_resynchronised_when_the_subscriber_answers_again() {
    let (mut outbox, counts) = outbox(Policy {
        attempts: 1,
        ..policy()
    });
    let now = Instant::now();
    outbox.push(about(1, 1, 1));
    let flight = sent(outbox.next(now));
    outbox.answered(flight, Answer::Retry(None), now, 0.5);
    assert!(
        matches!(outbox.next(now), Step::Idle),
        "the subscriber is unreachable"
    );
    outbox.push(about(1, 2, 1));
    let flight = sent(outbox.next(now));
    outbox.answered(flight, Answer::Delivered, now, 0.5);
    let Step::Resync(subscription, subjects) = outbox.next(now) else {
        panic!("subject 1 was lost");
    };
    assert_eq!((&*subscription, subjects), ("s1", vec!["1".into()]));
    // It changes while its state is fetched: the state that was fetched is old.
    outbox.push(about(1, 1, 3));
    outbox.resynced(&subscription, vec![about(1, 1, 2)]);
    let flight = sent(outbox.next(now));
    assert_eq!(version(&flight.notification), 3);
    outbox.answered(flight, Answer::Delivered, now, 0.5);
    assert!(matches!(outbox.next(now), Step::Idle) && outbox.is_idle());
    assert_eq!(get(&counts, Event::Resynced), 0);
}

#[test]
fn redirections_and_alternates_are_bounded() {
    let (mut outbox, counts) = outbox(Policy {
        attempts: 1,
        alternates: 2,
        ..policy()
    });
    let now = Instant::now();
    let place = |host: &str| -> Uri { format!("http://{host}/callback").parse().unwrap() };
    outbox.push(about(1, 1, 1));
    for target in ["s1.example", "there", "there"] {
        let flight = sent(outbox.next(now));
        assert_eq!(*flight.target(), place(target));
        outbox.answered(flight, Answer::Redirect(place("there")), now, 0.5);
    }
    let Step::Resolve(flight) = outbox.next(now) else {
        panic!("the subscriber sends requests round in circles");
    };
    let places = ["s1.example", "a1", "a2", "a3"].map(place);
    outbox.resolved(flight, places.into());
    let flight = sent(outbox.next(now));
    assert_eq!(*flight.target(), place("a1"));
    outbox.answered(flight, Answer::Refused, now, 0.5);
    let flight = sent(outbox.next(now));
    assert_eq!(*flight.target(), place("a2"));
    outbox.answered(flight, Answer::Delivered, now, 0.5);
    assert!(outbox.is_idle());
    let counted = [
        Event::Redirected,
        Event::Rerouted,
        Event::Delivered,
        Event::Failed,
    ];
    assert_eq!(counted.map(|event| get(&counts, event)), [2, 1, 1, 0]);
}

#[test]
fn requests_keep_the_pace() {
    let (mut outbox, counts) = outbox(Policy { rate: 10, ..policy() });
    let begun = Instant::now();
    let mut now = begun;
    for one in 0..31 {
        outbox.push(about(one, 1, 1));
    }
    while get(&counts, Event::Delivered) < 31 {
        match outbox.next(now) {
            Step::Send(flight) => outbox.answered(flight, Answer::Delivered, now, 0.5),
            Step::Wait(until) => now = until,
            other => panic!("{other:?}"),
        }
    }
    let spent = now - begun;
    assert!(
        (Duration::from_millis(2_900)..Duration::from_millis(3_300)).contains(&spent),
        "{spent:?}"
    );
}

#[test]
fn bytes_are_bounded_and_what_never_fits_is_dropped() {
    let (mut outbox, counts) = outbox(policy());
    let sized = |subject, size: usize| Notification {
        body: vec![b'1'; size].into(),
        ..about(1, subject, 0)
    };
    outbox.push(sized(1, 1_001));
    assert_eq!(get(&counts, Event::Dropped), 1);
    for subject in 0..5 {
        outbox.push(sized(subject, 300));
    }
    assert_eq!(
        outbox.pending(),
        Pending {
            notifications: 3,
            bytes: 900
        }
    );
    assert_eq!(get(&counts, Event::Dropped), 3);
}

#[derive(Clone, Debug)]
enum Op {
    /// A subject changes: all subscriptions are notified.
    Change(usize),
    /// A request is answered.
    Answer(usize, Answer),
    /// A resynchronisation comes to its end.
    Resynced(usize),
    Wait(u64),
    /// Something was dropped in front of the outbox.
    Overflow(usize, usize),
}

fn op() -> impl Strategy<Value = Op> {
    let place: Uri = "http://there.example/".parse().unwrap();
    let answer = prop_oneof![
        4 => Just(Answer::Delivered),
        2 => Just(Answer::Retry(None)),
        1 => Just(Answer::Retry(Some(Duration::from_secs(1)))),
        1 => Just(Answer::Redirect(place)),
    ];
    prop_oneof![
        8 => (0..SUBJECTS).prop_map(Op::Change),
        6 => (0..8_usize, answer).prop_map(|(which, answer)| Op::Answer(which, answer)),
        2 => (0..8_usize).prop_map(Op::Resynced),
        2 => (0..500_u64).prop_map(Op::Wait),
        1 => (0..SUBSCRIPTIONS, 0..SUBJECTS).prop_map(|(one, subject)| Op::Overflow(one, subject)),
    ]
}

const SUBSCRIPTIONS: usize = 4;
const SUBJECTS: usize = 6;

/// A function with subscribers that all subscribe to all subjects.
struct World<C> {
    outbox: Outbox<C>,
    now: Instant,
    versions: [usize; SUBJECTS],
    flights: Vec<Flight>,
    resyncs: Vec<(Arc<str>, Vec<Notification>)>,
    delivered: AHashMap<(String, String), usize>,
    pushed: usize,
}

impl<C: FnMut(Event)> World<C> {
    fn change(&mut self, subject: usize) {
        self.versions[subject] += 1;
        for subscription in 0..SUBSCRIPTIONS {
            self.outbox
                .push(about(subscription, subject, self.versions[subject]));
            self.pushed += 1;
        }
    }

    /// Takes the next steps; the next instant at which something is to be done.
    fn step(&mut self) -> Option<Instant> {
        loop {
            match self.outbox.next(self.now) {
                Step::Send(flight) => self.flights.push(flight),
                Step::Resolve(_) => panic!("there are no alternates"),
                Step::Resync(subscription, subjects) => {
                    let subscriber: usize = subscription[1..].parse().unwrap();
                    let state = subjects.iter().map(|subject| {
                        let subject: usize = subject.parse().unwrap();
                        about(subscriber, subject, self.versions[subject])
                    });
                    self.resyncs.push((subscription.clone(), state.collect()));
                }
                Step::Wait(until) => return Some(until),
                Step::Idle => return None,
            }
        }
    }

    fn answer(&mut self, which: usize, answer: Answer) {
        if self.flights.is_empty() {
            return;
        }
        let flight = self.flights.remove(which % self.flights.len());
        if answer == Answer::Delivered {
            let notification = &flight.notification;
            let key = (
                notification.subscription.to_string(),
                notification.subject.to_string(),
            );
            let version = version(notification);
            let before = self.delivered.insert(key, version);
            assert!(before.is_none_or(|before| before <= version), "out of order");
        }
        self.outbox.answered(flight, answer, self.now, 0.3);
    }

    fn resynced(&mut self, which: usize) {
        if !self.resyncs.is_empty() {
            let (subscription, state) = self.resyncs.remove(which % self.resyncs.len());
            self.outbox.resynced(&subscription, state);
        }
    }

    fn check(&self, counts: &Counts, policy: &Policy, overflowed: usize) {
        let pending = self.outbox.pending();
        assert!(pending.notifications <= policy.total.notifications);
        assert!(pending.bytes <= policy.total.bytes);
        assert!(self.flights.len() + self.resyncs.len() <= policy.parallel);
        let mut places: Vec<_> = self
            .flights
            .iter()
            .map(|flight| &flight.notification.subscription)
            .collect();
        places.sort();
        places.dedup();
        assert_eq!(places.len(), self.flights.len(), "one request per subscription");
        let ended = [Event::Delivered, Event::Failed, Event::Dropped].map(|event| get(counts, event));
        assert_eq!(
            self.pushed + get(counts, Event::Resynced) + overflowed,
            ended.iter().sum::<usize>() + pending.notifications + self.flights.len(),
            "every notification is accounted for"
        );
    }
}

proptest! {
    /// Whatever is answered and dropped: order and bounds hold, nothing is lost without being counted, and a
    /// subscriber that answers again ends with the present state of every subject.
    #[test]
    fn every_subscriber_ends_with_the_present_state(
        ops in proptest::collection::vec(op(), 1..200),
        per_subscription in 1..8_usize,
        parallel in 1..6_usize,
    ) {
        let policy = Policy {
            total: Bound { notifications: SUBSCRIPTIONS * SUBJECTS, bytes: 60 },
            per_subscription: Bound { notifications: per_subscription, bytes: 40 },
            parallel,
            ..policy()
        };
        let (outbox, counts) = outbox(policy.clone());
        let mut world = World {
            outbox,
            now: Instant::now(),
            versions: [0; SUBJECTS],
            flights: Vec::new(),
            resyncs: Vec::new(),
            delivered: AHashMap::new(),
            pushed: 0,
        };
        let mut overflowed = 0;
        for op in ops {
            match op {
                Op::Change(subject) => world.change(subject),
                Op::Answer(which, answer) => world.answer(which, answer),
                Op::Resynced(which) => world.resynced(which),
                Op::Wait(millis) => world.now += Duration::from_millis(millis),
                Op::Overflow(subscription, subject) => {
                    world.versions[subject] += 1;
                    let lost = about(subscription, subject, 0);
                    world.outbox.overflowed(1, vec![lost.into()]);
                    overflowed += 1;
                    for other in (0..SUBSCRIPTIONS).filter(|other| *other != subscription) {
                        world.outbox.push(about(other, subject, world.versions[subject]));
                        world.pushed += 1;
                    }
                }
            }
            world.step();
            world.check(&counts, &policy, overflowed);
        }
        // All subscribers answer from now on, and one more subject changes.
        world.change(0);
        for _ in 0..10_000 {
            let wake = world.step();
            if world.flights.is_empty() && world.resyncs.is_empty() {
                match wake {
                    Some(until) => world.now = until,
                    None => break,
                }
            }
            world.answer(0, Answer::Delivered);
            world.resynced(0);
            world.check(&counts, &policy, overflowed);
        }
        prop_assert!(world.outbox.is_idle());
        for subject in 0..SUBJECTS {
            for subscription in 0..SUBSCRIPTIONS {
                let key = (format!("s{subscription}"), subject.to_string());
                let seen = world.delivered.get(&key).copied().unwrap_or(0);
                prop_assert_eq!(seen, world.versions[subject], "{:?}", key);
            }
        }
    }
}
