//! Two engines in a simulated world: pipes that cut bytes anywhere, owners that are slow, resets, shutdowns.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use std::time::Instant;

use http2::{Body, Config, Connection, Event, Reason, StreamId};
use proptest::prelude::*;

use crate::support::{get, ok, post, written};

/// One step of the world.
#[derive(Clone, Debug)]
enum Step {
    /// The client asks with a body of this length.
    Ask(usize),
    /// This number of bytes moves to the server, or to the client.
    Up(usize),
    Down(usize),
    /// The server takes its events, and answers this number of requests; the client takes its events.
    Serve(usize),
    Take,
    /// The client, or the server, resets one of the streams that are open.
    Cancel(usize),
    Refuse(usize),
    Ping,
    ShutDown,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        6 => prop_oneof![Just(0), 1usize..100, 1_000usize..70_000].prop_map(Step::Ask),
        8 => prop_oneof![1usize..40, 1_000usize..60_000].prop_map(Step::Up),
        8 => prop_oneof![1usize..40, 1_000usize..60_000].prop_map(Step::Down),
        5 => (0usize..5).prop_map(Step::Serve),
        5 => Just(Step::Take),
        1 => (0usize..9).prop_map(Step::Cancel),
        1 => (0usize..9).prop_map(Step::Refuse),
        1 => Just(Step::Ping),
    ];
    let end = prop_oneof![3 => Just(None), 1 => Just(Some(Step::ShutDown))];
    (
        proptest::collection::vec(step, 1..120),
        end,
        any::<prop::sample::Index>(),
    )
        .prop_map(|(mut steps, end, at)| {
            if let Some(end) = end {
                steps.insert(at.index(steps.len()), end);
            }
            steps
        })
}

/// A window for all bodies at once.
const ROOMY: usize = 12 * 70_001;

fn config() -> impl Strategy<Value = Config> {
    (
        1u32..12,
        prop_oneof![0usize..200_000, Just(ROOMY)],
        200usize..100_000,
        1u32..9,
    )
        .prop_map(|(streams, arriving, output, frames)| Config {
            max_concurrent_streams: streams,
            max_arriving: arriving,
            max_body: 70_000,
            max_output: output,
            max_frames_per_receive: frames,
            ..Config::default()
        })
}

struct World {
    server: Connection,
    client: Connection,
    up: VecDeque<u8>,
    down: VecDeque<u8>,
    now: Instant,
    /// What was asked, by stream; and what of it is settled.
    asked: BTreeMap<u32, (StreamId, usize)>,
    settled: BTreeSet<u32>,
    /// Requests that the server has whole.
    whole: VecDeque<(StreamId, Body)>,
    serving: Vec<StreamId>,
    pongs: (usize, usize),
}

/// The bodies of a stream differ from those of others.
fn content(stream: u32, len: usize) -> Vec<u8> {
    (0..len)
        .map(|at| (at as u32 ^ stream.wrapping_mul(31)) as u8)
        .collect()
}

impl World {
    fn new(server: Config, client: Config) -> Self {
        let now = Instant::now();
        Self {
            server: Connection::server(Arc::new(server), now),
            client: Connection::client(Arc::new(client), now),
            up: VecDeque::new(),
            down: VecDeque::new(),
            now,
            asked: BTreeMap::new(),
            settled: BTreeSet::new(),
            whole: VecDeque::new(),
            serving: Vec::new(),
            pongs: (0, 0),
        }
    }

    fn step(&mut self, step: &Step) {
        match *step {
            Step::Ask(len) => {
                let number = self.asked.keys().last().map_or(1, |last| last + 2);
                let head = if len == 0 { get("/world") } else { post("/world") };
                let room = self.client.room();
                match self.client.request(&head, Body::from(content(number, len))) {
                    Ok(stream) => {
                        assert_eq!(stream.number(), number);
                        self.asked.insert(number, (stream, len));
                    }
                    Err(_) => assert_eq!(room, 0),
                }
            }
            Step::Up(most) => {
                self.up.extend(written(&mut self.client, most));
                take(&mut self.server, &mut self.up, most, self.now);
            }
            Step::Down(most) => {
                self.down.extend(written(&mut self.server, most));
                take(&mut self.client, &mut self.down, most, self.now);
            }
            Step::Serve(most) => self.serve(most),
            Step::Take => self.take(),
            Step::Cancel(at) => {
                let open = self
                    .asked
                    .iter()
                    .filter(|(number, _)| !self.settled.contains(number));
                if let Some((number, (stream, _))) = open.clone().nth(at) {
                    self.client.reset(*stream, Reason::CANCEL);
                    let number = *number;
                    self.settled.insert(number);
                }
            }
            Step::Refuse(at) => {
                if let Some(stream) = self.serving.get(at) {
                    self.server.reset(*stream, Reason::REFUSED_STREAM);
                    self.serving.remove(at);
                }
            }
            Step::Ping => {
                self.client.ping(*b"are you?");
                self.pongs.0 += 1;
            }
            Step::ShutDown => self.server.shut_down(),
        }
        assert!(self.server.streams() <= 12 && self.client.streams() <= 12);
        for engine in [&mut self.server, &mut self.client] {
            assert!(engine.held() < 3_000_000, "{}", engine.held());
            // A frame and the heads come on top of the bound.
            assert!(engine.output().len() < 100_000 + 70_000 + 200_000);
        }
    }

    fn serve(&mut self, most: usize) {
        while let Some(event) = self.server.next_event() {
            match event {
                Event::Request { stream, end, .. } => {
                    self.serving.push(stream);
                    if end {
                        self.whole.push_back((stream, Body::empty()));
                    }
                }
                Event::Body { stream, body } => {
                    let len = self.asked[&stream.number()].1;
                    assert_eq!(body.to_bytes(), content(stream.number(), len));
                    self.whole.push_back((stream, body));
                }
                Event::Reset { stream, .. } => self.serving.retain(|other| *other != stream),
                Event::Arriving { .. } | Event::Sent { .. } | Event::Settings => {}
                other => panic!("{other:?}"),
            }
        }
        for _ in 0..most {
            let Some((stream, body)) = self.whole.pop_front() else {
                return;
            };
            self.server.respond(stream, &ok(), body);
            self.serving.retain(|other| *other != stream);
        }
    }

    fn take(&mut self) {
        while let Some(event) = self.client.next_event() {
            match event {
                Event::Response { stream, end, .. } => {
                    let (_, len) = self.asked[&stream.number()];
                    assert_eq!(end, len == 0);
                    if end {
                        self.settled.insert(stream.number());
                    }
                }
                Event::Body { stream, body } => {
                    let (_, len) = self.asked[&stream.number()];
                    assert_eq!(body.to_bytes(), content(stream.number(), len));
                    self.settled.insert(stream.number());
                }
                Event::Reset { stream, reason, .. } => {
                    // Refused, or beyond the last stream of GOAWAY.
                    assert!(
                        [Reason::REFUSED_STREAM, Reason::NO_ERROR].contains(&reason),
                        "{reason:?}"
                    );
                    self.settled.insert(stream.number());
                }
                Event::Pong { .. } => self.pongs.1 += 1,
                Event::Arriving { .. } | Event::Sent { .. } | Event::Settings | Event::GoAway { .. } => {}
                other => panic!("{other:?}"),
            }
        }
    }
}

/// Hands at most `most` bytes of a pipe to an engine.
fn take(engine: &mut Connection, pipe: &mut VecDeque<u8>, most: usize, now: Instant) {
    let bytes: Vec<u8> = pipe.iter().copied().take(most).collect();
    let taken = engine.receive(&bytes, now).unwrap();
    pipe.drain(..taken);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]
    #[test]
    fn every_message_arrives_whole_or_is_reset(steps in steps(), server in config(), client in config()) {
        let roomy = server.max_arriving.min(client.max_arriving) >= ROOMY;
        let mut world = World::new(server, client);
        for step in &steps {
            world.step(step);
        }
        // Everything that can move does.
        for _ in 0..3_000 {
            for step in [Step::Up(100_000), Step::Serve(9), Step::Down(100_000), Step::Take] {
                world.step(&step);
            }
            let asleep = world.up.is_empty() && world.down.is_empty()
                && world.client.output().is_empty() && world.server.output().is_empty();
            if !asleep || !world.whole.is_empty() {
                continue;
            }
            // Bodies that share a window too small for all of them wait for one another, until their owners give one up.
            if world.serving.is_empty() && world.asked.len() == world.settled.len() {
                break;
            }
            prop_assert!(!roomy, "nothing moves and there is something left");
            if world.serving.is_empty() {
                world.step(&Step::Cancel(0));
            } else {
                let stream = world.serving.remove(0);
                world.server.reset(stream, Reason::REFUSED_STREAM);
            }
        }
        let asked: BTreeSet<u32> = world.asked.keys().copied().collect();
        prop_assert_eq!(&asked, &world.settled);
        prop_assert_eq!((world.client.streams(), world.server.streams()), (0, 0));
        prop_assert_eq!((world.client.unsent(), world.server.unsent()), (0, 0));
        prop_assert_eq!(world.pongs.0, world.pongs.1);
    }
}
