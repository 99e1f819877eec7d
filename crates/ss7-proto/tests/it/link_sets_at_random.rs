//! Two ends of a link set whose links fail, return and are inhibited at random, while messages take their time: once all links are
//! back and free, both ends agree and nothing is held.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use ss7_proto::mtp3::{Carrier, Inhibited, LinkSet, LinkSetEvent, LinkSetTimers, Management};

const LINKS: usize = 3;

/// The same numbers in each run (Knuth's multiplier).
struct Random(u64);

impl Random {
    fn below(&mut self, end: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (self.0 >> 33) as usize % end
    }
}

/// A link at one end.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Phase {
    Down,
    Untested,
    Up,
    /// It has failed, which the set does not know yet.
    Failing,
}

struct World {
    random: Random,
    now: Instant,
    ends: [LinkSet; 2],
    phases: [[Phase; 2]; LINKS],
    /// Messages on their way, by link and the end that gets them.
    queues: [[VecDeque<(u8, Management)>; 2]; LINKS],
}

impl World {
    fn new(seed: u64) -> Self {
        let codes: Vec<u8> = (0..LINKS as u8).collect();
        let set = || LinkSet::new(LinkSetTimers::default(), &codes, 16);
        Self {
            random: Random(seed),
            now: Instant::now(),
            ends: [set(), set()],
            phases: [[Phase::Down; 2]; LINKS],
            queues: Default::default(),
        }
    }

    fn act(&mut self, end: usize, act: impl FnOnce(&mut LinkSet, Instant, &mut Vec<LinkSetEvent>)) {
        let mut events = Vec::new();
        act(&mut self.ends[end], self.now, &mut events);
        for event in events {
            match event {
                LinkSetEvent::Send { by, code, message } if self.is_joined(by) => {
                    self.queues[by][1 - end].push_back((code, message));
                }
                LinkSetEvent::Fail(link) => self.fail(link),
                _ => {}
            }
        }
    }

    fn is_joined(&self, link: usize) -> bool {
        let carries = |phase: &Phase| matches!(phase, Phase::Untested | Phase::Up);
        self.phases[link].iter().all(carries)
    }

    fn fail(&mut self, link: usize) {
        for end in [0, 1] {
            self.queues[link][end].clear();
            if self.phases[link][end] != Phase::Down {
                self.phases[link][end] = Phase::Failing;
            }
        }
    }

    fn begin(&mut self, link: usize) {
        let may_start = self.ends.iter().all(|end| end.may_start(link));
        if may_start && self.phases[link] == [Phase::Down; 2] {
            self.phases[link] = [Phase::Untested; 2];
            self.ends.iter_mut().for_each(|end| end.in_service(link));
        }
    }

    /// What has become of a link gets to a set.
    fn report(&mut self, link: usize, end: usize) {
        match self.phases[link][end] {
            Phase::Untested => {
                self.phases[link][end] = Phase::Up;
                self.act(end, |set, now, events| set.restored(link, now, events));
            }
            Phase::Failing => {
                self.phases[link][end] = Phase::Down;
                self.act(end, |set, now, events| set.failed(link, 0, now, events));
            }
            Phase::Down | Phase::Up => {}
        }
    }

    fn deliver(&mut self, link: usize, end: usize) {
        if let Some((code, message)) = self.queues[link][end].pop_front() {
            self.act(end, |set, now, events| match message {
                Management::Inhibiting(message) => set.inhibiting(code, message, now, events),
                message => set.received(code, message, events),
            });
        }
    }

    fn uninhibit(&mut self, link: usize, end: usize) {
        self.act(end, |set, now, events| {
            let _ = set.uninhibit(link, now, events);
        });
    }

    fn pass(&mut self, time: Duration) {
        self.now += time;
        for end in [0, 1] {
            self.act(end, LinkSet::tick);
        }
    }

    fn step(&mut self) {
        let (link, end) = (self.random.below(LINKS), self.random.below(2));
        match self.random.below(24) {
            0 => self.fail(link),
            1 | 2 => self.begin(link),
            3 => self.act(end, |set, now, events| {
                let _ = set.inhibit(link, now, events);
            }),
            4 => self.uninhibit(link, end),
            5..8 => {
                let time = self.random.below(1_500) as u64;
                self.pass(Duration::from_millis(time));
            }
            8..12 => self.report(link, end),
            _ => self.deliver(link, end),
        }
    }

    /// Everything arrives, and time passes.
    fn settle(&mut self) {
        for _ in 0..64 {
            for (link, end) in (0..LINKS).flat_map(|link| [(link, 0), (link, 1)]) {
                self.report(link, end);
                self.begin(link);
                while !self.queues[link][end].is_empty() {
                    self.deliver(link, end);
                }
            }
            self.pass(Duration::from_millis(500));
        }
    }

    fn is_free(&self) -> bool {
        let carries = |one| matches!(one, Carrier::Link(_));
        self.ends.iter().all(|end| {
            end.carriers().all(carries) && (0..LINKS).all(|link| end.inhibited(link) == Inhibited::No)
        })
    }
}

#[test]
fn nothing_stays_held_whatever_links_and_operators_do() {
    for seed in 0..2_000 {
        let mut world = World::new(seed);
        for _ in 0..400 {
            world.step();
        }
        world.settle();
        // Some link carries each selection, whatever is inhibited.
        for end in &world.ends {
            assert!(
                end.carriers().all(|one| matches!(one, Carrier::Link(_))),
                "seed {seed}: {:?}",
                end.carriers().collect::<Vec<_>>()
            );
        }
        for (link, end) in (0..LINKS).flat_map(|link| [(link, 0), (link, 1)]) {
            world.uninhibit(link, end);
        }
        world.settle();
        // What only one end knows of ends by tests (T22, T23).
        world.pass(LinkSetTimers::default().inhibit_test);
        world.settle();
        assert!(world.is_free(), "seed {seed}");
    }
}
