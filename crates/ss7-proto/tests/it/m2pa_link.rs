//! Links of M2PA: two of them joined by channels that keep the order, cut at any moment, and peers that lie.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use fuzz_support::Random;
use ss7_proto::m2pa::{
    Content, Failure, Fault, Link, LinkEvent, LinkState, LinkStatus, Message, Timers, forward_number,
    messages_behind,
};

type TestLink = Link<Vec<u8>>;

/// A message of user data without numbers.
pub(crate) fn user_data(number: u32) -> Vec<u8> {
    let mut out = Vec::new();
    let msu = number.to_be_bytes();
    let content = Content::UserData {
        priority: 0,
        msu: &msu,
    };
    Message {
        bsn: 0,
        fsn: 0,
        content,
    }
    .write(&mut out);
    out
}

pub(crate) fn status(status: LinkStatus) -> Vec<u8> {
    let (bsn, fsn) = (0x00ff_ffff, 0x00ff_ffff);
    let mut out = Vec::new();
    let content = Content::LinkStatus(status);
    Message { bsn, fsn, content }.write(&mut out);
    out
}

fn msu(bsn: u32, fsn: u32) -> Vec<u8> {
    let mut out = Vec::new();
    let content = Content::UserData {
        priority: 0,
        msu: b"msu",
    };
    Message { bsn, fsn, content }.write(&mut out);
    out
}

/// The statuses among messages.
fn statuses(messages: impl IntoIterator<Item = Vec<u8>>) -> Vec<LinkStatus> {
    let read = |octets: Vec<u8>| match Message::parse(&octets).unwrap().content {
        Content::LinkStatus(status) => Some(status),
        _ => None,
    };
    messages.into_iter().filter_map(read).collect()
}

fn split(octets: &[u8]) -> Vec<Vec<u8>> {
    let (mut all, mut at) = (Vec::new(), 0);
    while let Some(length) = octets.get(at + 4..at + 8) {
        let length = u32::from_be_bytes(length.try_into().unwrap()) as usize;
        all.push(octets[at..at + length].to_vec());
        at += length;
    }
    all
}

/// One end of a link, what it has sent and not delivered yet, and what it has accepted.
struct End {
    link: TestLink,
    /// By stream: each keeps its own order only.
    streams: [VecDeque<Vec<u8>>; 2],
    accepted: Vec<u32>,
    events: Vec<LinkEvent>,
}

impl End {
    fn new() -> Self {
        let mut end = Self {
            link: Link::new(Timers::default()),
            streams: Default::default(),
            accepted: Vec::new(),
            events: Vec::new(),
        };
        end.with(|link, out| link.associated(out));
        end
    }

    fn with<T>(&mut self, act: impl FnOnce(&mut TestLink, &mut Vec<u8>) -> T) -> T {
        let mut out = Vec::new();
        let outcome = act(&mut self.link, &mut out);
        for octets in split(&out) {
            let stream = Message::parse(&octets).unwrap().stream();
            self.streams[usize::from(stream)].push_back(octets);
        }
        outcome
    }

    fn receive(&mut self, octets: &[u8], now: Instant) {
        let received = self.with(|link, out| {
            let received = link.received(octets, now, out);
            (received.event, received.msu.map(<[u8]>::to_vec))
        });
        self.events.extend(received.0);
        if let Some(msu) = received.1 {
            self.accepted
                .push(u32::from_be_bytes(msu[..].try_into().unwrap()));
        }
    }

    fn tick(&mut self, now: Instant) {
        let event = self.with(|link, out| link.tick(now, out));
        self.events.extend(event);
    }
}

struct Pair {
    start: Instant,
    now: Instant,
    ends: [End; 2],
}

impl Pair {
    fn new() -> Self {
        let start = Instant::now();
        Self {
            start,
            now: start,
            ends: [End::new(), End::new()],
        }
    }

    /// Delivers one message of a stream of an end to the other; `false` when there is none.
    fn deliver(&mut self, from: usize, stream: usize) -> bool {
        let Some(octets) = self.ends[from].streams[stream].pop_front() else {
            return false;
        };
        self.ends[1 - from].receive(&octets, self.now);
        true
    }

    fn settle(&mut self) {
        while (0..4).any(|which| self.deliver(which / 2, which % 2)) {}
    }

    /// Lets time pass until the next timer of either.
    fn advance(&mut self) {
        let wake = self.ends.iter().filter_map(|end| end.link.wake()).min();
        self.now = wake.expect("a timer runs");
        for end in &mut self.ends {
            end.tick(self.now);
        }
        self.settle();
    }

    fn align(emergency: [bool; 2]) -> Self {
        let mut pair = Self::new();
        let now = pair.now;
        pair.settle();
        for (end, emergency) in pair.ends.iter_mut().zip(emergency) {
            end.with(|link, out| link.start(emergency, now, out));
        }
        while pair
            .ends
            .iter()
            .any(|end| end.link.state() != LinkState::InService)
        {
            pair.settle();
            pair.advance();
        }
        pair.settle();
        pair
    }

    fn send(&mut self, from: usize, number: u32) {
        let now = self.now;
        self.ends[from]
            .with(|link, out| link.send(user_data(number), now, out))
            .unwrap();
    }
}

#[test]
fn both_ends_are_in_service_after_proving() {
    for (emergency, period) in [
        ([false, false], 30_000),
        ([true, false], 500),
        ([false, true], 500),
        ([true, true], 500),
    ] {
        let pair = Pair::align(emergency);
        let passed = pair.now.duration_since(pair.start);
        assert!(passed >= Duration::from_millis(period), "{passed:?}");
        assert!(passed < Duration::from_millis(period + 1_000), "{passed:?}");
        for end in &pair.ends {
            assert_eq!(end.events, [LinkEvent::InService]);
        }
    }
}

#[test]
fn the_end_that_starts_later_finds_the_other() {
    let mut pair = Pair::new();
    let now = pair.now;
    pair.ends[0].with(|link, out| link.start(true, now, out));
    pair.settle();
    assert_eq!(pair.ends[0].link.state(), LinkState::NotAligned);
    pair.now += Duration::from_secs(19);
    let now = pair.now;
    pair.ends[1].with(|link, out| link.start(true, now, out));
    pair.settle();
    while pair.ends[0].link.state() != LinkState::InService {
        pair.advance();
    }
    assert_eq!(pair.ends[1].link.state(), LinkState::InService);
}

/// T1, T2, T3, and *Proving* for ever.
#[test]
fn a_peer_that_does_not_go_on_is_given_up() {
    let cases: [(&[LinkStatus], Failure); 4] = [
        (&[], Failure::NotAligned),
        (&[LinkStatus::Alignment], Failure::NotProved),
        (
            &[LinkStatus::Alignment, LinkStatus::ProvingNormal],
            Failure::NotReady,
        ),
        (&[LinkStatus::ProvingEmergency], Failure::NotReady),
    ];
    for (sent, failure) in cases {
        let mut now = Instant::now();
        let mut link: TestLink = Link::new(Timers::default());
        let mut out = Vec::new();
        link.start(false, now, &mut out);
        for one in sent {
            assert_eq!(link.received(&status(*one), now, &mut out).event, None);
        }
        let event = loop {
            now = link.wake().expect("a timer runs");
            if let Some(event) = link.tick(now, &mut out) {
                break event;
            }
            // It proves for as long as it is let.
            if sent.len() == 1 && sent[0] == LinkStatus::ProvingEmergency {
                link.received(&status(sent[0]), now, &mut out);
            }
        };
        assert_eq!(event, LinkEvent::Failed(failure));
        assert_eq!(link.state(), LinkState::OutOfService);
        assert_eq!(statuses(split(&out)).last(), Some(&LinkStatus::OutOfService));
        assert_eq!(link.wake(), None);
    }
}

#[test]
fn the_first_msu_has_number_0_and_numbers_wrap() {
    let mut pair = Pair::align([true, true]);
    for number in 0..3 {
        pair.send(0, number);
        pair.settle();
        pair.ends[1].with(|link, out| link.acknowledge(out));
        let acknowledgement = pair.ends[1].streams[1][0].clone();
        let message = Message::parse(&acknowledgement).unwrap();
        assert_eq!((message.content, message.bsn), (Content::Acknowledgement, number));
        pair.settle();
        assert_eq!(pair.ends[0].link.unacknowledged(), 0);
    }
    // Once round, in steps: 24 bits.
    assert_eq!(messages_behind(0x00ff_fffe, 4, 0x00ff_ffff), Some(2));
    assert_eq!(messages_behind(0x00ff_fffe, 4, 1), Some(4));
    assert_eq!(messages_behind(0x00ff_fffe, 4, 2), None);
    assert_eq!(messages_behind(0, 2, 0x00ff_ffff), Some(0));
}

/// Nothing is lost or doubled, and retrieval gives exactly what the peer has not accepted: over channels that are read in any
/// order of the two ends and streams, cut in the middle.
#[test]
fn a_cut_leaves_exactly_what_the_peer_has_not_accepted() {
    for seed in 0..300 {
        let mut random = Random::new(seed * 2 + 1);
        let mut pair = Pair::align([true, true]);
        let mut sent = [0, 0];
        for _ in 0..random.below(400) {
            let from = random.below(2);
            match random.below(6) {
                0..=2 => {
                    pair.send(from, sent[from]);
                    sent[from] += 1;
                }
                3 => pair.ends[from].with(|link, out| link.acknowledge(out)),
                _ => {
                    pair.deliver(from, 1);
                }
            }
        }
        let retrievals = pair.ends.each_mut().map(|end| end.link.retrieve());
        for from in 0..2 {
            let accepted = pair.ends[1 - from].accepted.clone();
            let count = u32::try_from(accepted.len()).unwrap();
            assert_eq!(accepted, (0..count).collect::<Vec<u32>>(), "{seed}");
            // What is in the channel is lost with it.
            let theirs = retrievals[1 - from].accepted;
            let retrieval = &retrievals[from];
            let kept = retrieval.unacknowledged.len();
            let first = retrieval
                .unacknowledged
                .front()
                .map_or(0, |one| forward_number(one).unwrap());
            let behind = match kept {
                0 => 0,
                kept => messages_behind(first, kept, theirs).unwrap(),
            };
            let again = retrieval.unacknowledged.iter().skip(behind);
            let again: Vec<u32> = again
                .map(|octets| match Message::parse(octets).unwrap().content {
                    Content::UserData { msu, .. } => u32::from_be_bytes(msu.try_into().unwrap()),
                    other => panic!("{other:?}"),
                })
                .collect();
            assert_eq!(again, (count..sent[from]).collect::<Vec<u32>>(), "{seed}");
        }
    }
}

fn in_service() -> (TestLink, Instant) {
    let mut pair = Pair::align([true, true]);
    let link = std::mem::replace(&mut pair.ends[0].link, Link::new(Timers::default()));
    (link, pair.now)
}

#[test]
fn peers_that_lie_lose_the_link() {
    let failure = |octets: &[u8]| {
        let (mut link, now) = in_service();
        link.send(user_data(0), now, &mut Vec::new()).unwrap();
        let mut out = Vec::new();
        let received = link.received(octets, now, &mut out);
        assert_eq!(received.msu, None);
        assert_eq!(statuses(split(&out)), [LinkStatus::OutOfService]);
        match received.event {
            Some(LinkEvent::Failed(failure)) => failure,
            other => panic!("{other:?}"),
        }
    };
    let initial = 0x00ff_ffff;
    assert_eq!(failure(&msu(initial, 1)), Failure::Forward(1));
    assert_eq!(failure(&msu(initial, initial)), Failure::Forward(initial));
    assert_eq!(failure(&msu(1, 0)), Failure::Backward(1));
    assert_eq!(failure(&msu(0x00ff_fffe, 0)), Failure::Backward(0x00ff_fffe));
    for one in [
        LinkStatus::Alignment,
        LinkStatus::ProvingNormal,
        LinkStatus::ProvingEmergency,
        LinkStatus::OutOfService,
    ] {
        assert_eq!(failure(&status(one)), Failure::Status(one));
    }
    assert_eq!(failure(b""), Failure::Malformed(Fault::Length));
    assert_eq!(failure(&msu(0, 0)[..18]), Failure::Malformed(Fault::Length));
}

#[test]
fn an_msu_twice_ends_the_link() {
    let (mut link, now) = in_service();
    let first = msu(0x00ff_ffff, 0);
    assert_eq!(link.received(&first, now, &mut Vec::new()).msu, Some(&b"msu"[..]));
    let event = link.received(&first, now, &mut Vec::new()).event;
    assert_eq!(event, Some(LinkEvent::Failed(Failure::Forward(0))));
}

#[test]
fn user_data_before_alignment_is_ignored() {
    let mut link: TestLink = Link::new(Timers::default());
    let (now, mut out) = (Instant::now(), Vec::new());
    for started in [false, true] {
        if started {
            link.start(true, now, &mut out);
        }
        let state = link.state();
        let early = msu(7, 9);
        let received = link.received(&early, now, &mut out);
        assert_eq!((received.event, received.msu, link.state()), (None, None, state));
        let refused = link.send(user_data(0), now, &mut out);
        assert!(refused.is_err());
    }
}

/// The streams are independent: an MSU may come before the *Ready* that was sent before it.
#[test]
fn an_msu_is_taken_before_ready() {
    let (mut now, mut out) = (Instant::now(), Vec::new());
    let mut link: TestLink = Link::new(Timers::default());
    link.start(true, now, &mut out);
    link.received(&status(LinkStatus::Alignment), now, &mut out);
    link.received(&status(LinkStatus::ProvingEmergency), now, &mut out);
    now += Timers::default().emergency_proving;
    assert_eq!(link.tick(now, &mut out), None);
    assert_eq!(link.state(), LinkState::Ready);
    let first = msu(0x00ff_ffff, 0);
    let received = link.received(&first, now, &mut out);
    assert_eq!(
        (received.event, received.msu),
        (Some(LinkEvent::InService), Some(&b"msu"[..]))
    );
    assert_eq!(
        link.received(&status(LinkStatus::Ready), now, &mut out).event,
        None
    );
    assert_eq!(link.state(), LinkState::InService);
}

#[test]
fn an_msu_that_is_not_acknowledged_ends_the_link() {
    let mut pair = Pair::align([true, true]);
    pair.send(0, 0);
    pair.now += Duration::from_secs(1);
    pair.send(0, 1);
    pair.settle();
    // The second was sent later; the timer is that of the oldest.
    let wake = pair.ends[0].link.wake().unwrap();
    assert!(wake < pair.now + Duration::from_secs(1));
    pair.ends[0].tick(wake);
    let failed = LinkEvent::Failed(Failure::Unacknowledged);
    assert_eq!(pair.ends[0].events.last(), Some(&failed));
    assert_eq!(pair.ends[0].link.retrieve().unacknowledged.len(), 2);
}

#[test]
fn a_busy_peer_gets_nothing_and_has_until_t6() {
    for ends in [true, false] {
        let mut pair = Pair::align([true, true]);
        pair.send(0, 0);
        let now = pair.now;
        pair.ends[1].with(|link, out| link.busy(true, now, out));
        pair.settle();
        assert!(!pair.ends[0].link.takes());
        if ends {
            // It says so again and again, which does not prolong T6.
            pair.advance();
            pair.ends[1].with(|link, out| link.busy(false, now, out));
            pair.settle();
            assert!(pair.ends[0].link.takes());
        } else {
            while pair.ends[0].link.state() == LinkState::InService {
                pair.advance();
            }
            let busy = LinkEvent::Failed(Failure::Busy);
            assert_eq!(pair.ends[0].events.last(), Some(&busy));
            assert!(pair.now.duration_since(now) <= Timers::default().remote_busy);
        }
    }
}

/// RFC 4165 §4.1.4: what was sent during the outage comes again behind the recovery.
#[test]
fn a_processor_outage_loses_nothing() {
    let mut pair = Pair::align([true, true]);
    pair.send(0, 0);
    pair.settle();
    pair.ends[1].with(|link, out| link.outage(true, out));
    pair.send(0, 1);
    pair.send(0, 2);
    pair.settle();
    assert_eq!(pair.ends[0].events.last(), Some(&LinkEvent::RemoteOutage));
    assert!(!pair.ends[0].link.takes() && !pair.ends[1].link.takes());
    assert_eq!(pair.ends[1].accepted, [0]);
    pair.ends[1].with(|link, out| link.outage(false, out));
    pair.settle();
    assert_eq!(pair.ends[0].events.last(), Some(&LinkEvent::RemoteRecovered));
    pair.send(0, 3);
    pair.send(1, 0);
    pair.settle();
    assert_eq!(pair.ends[1].accepted, [0, 1, 2, 3]);
    assert_eq!(pair.ends[0].accepted, [0]);
}
