//! The security application: counter-measures against what roaming partners send, on S6a, Gx and whatever else leads here.
//!
//! A request of a foreign peer comes in, one to a foreign realm goes out; each meets the measures that are on for its partner,
//! in their order. What a measure finds is counted by partner and measure, written as a line, and makes the message go on, be
//! dropped or be answered. Answers are screened as well, and teach where subscribers are. Tables, measures and what they
//! compare: docs/dsa.md.
//!
//! | file | what is there |
//! |---|---|
//! | `config`, `events` | settings, and what can happen |
//! | `measure` | names and order of the measures |
//! | `csv`, `tables` | tables of an operator, compiled |
//! | `files` | files that a configuration names |
//! | `world`, `network` | countries and mobile networks |
//! | `facts` | what measures read of a message |
//! | `stateless`, `stateful` | what measures find |
//! | `record` | what is known of one subscriber, in 16 bytes |
//! | `states` | what is known of subscribers |
//! | `counted` | its memory, in tests |
//! | `races` | what was known of them until a moment ago |
//! | `durable` | the same on a store |
//! | `peers` | numbers for the names of peers |
//! | `lines` | lines about findings |
//! | `samples` | messages that were found, as pcapng |
//! | `replay` | messages of a capture |

pub mod config;
#[cfg(test)]
mod counted;
mod csv;
mod durable;
mod events;
mod facts;
mod files;
mod lines;
mod measure;
mod network;
mod peers;
mod races;
mod record;
mod replay;
mod samples;
mod stateful;
mod stateless;
mod states;
mod tables;
mod world;

use std::borrow::Cow;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Instant;

use diameter_proto::{Message, MessageMut};
use dsr_app::appended::{OpenOnce, one_name};
use dsr_app::{Answered, Application, Digits, Explained, Finding, Flow, On, Request, Resume, Table};
use sbr::Opened;
use serde_json::{Value, json};

pub use events::Event;
pub use files::{check_findings, check_samples, check_tables, files};
pub use replay::{Judged, Replay};

use durable::{Durable, Settings};
use facts::{Facts, Once};
use lines::{About, Lines};
use measure::Measure;
use peers::Peers;
use samples::Samples;
use stateful::{Bounds, Memory};
use stateless::Scene;
use states::States;
use tables::{Check, Direction, Mode, Tables, UNLISTED};

const ORIGIN_REALM: u32 = 296;
const DESTINATION_REALM: u32 = 283;

/// The application.
#[derive(Debug)]
pub struct Dsa {
    tables: Tables,
    bounds: Bounds,
    lines: Lines,
    lines_per_second: u32,
    /// With the samples in a minute of a partner and measure.
    samples: Option<(Arc<Samples>, u32)>,
    /// Distinguishes answers to requests that other tables have screened.
    version: u32,
    /// Shared by the workers; those of the application that this one replaces, where there was one.
    states: OnceLock<Arc<States>>,
    /// The store of the states; none: they are in memory alone.
    durable: Option<Arc<Opened<Durable>>>,
}

/// Stores by their directories: a reload takes the one that is open.
static OPENED: OpenOnce<Opened<Durable>> = OpenOnce::new();

/// What a worker carries over a reload.
#[derive(Debug, Default)]
pub struct Known {
    /// Shared with the other workers.
    states: Arc<States>,
    /// Of this worker: it sees the answers to the requests that it has seen.
    peers: Peers,
}

/// The store of a configuration.
fn open(config: &config::Dsa) -> Result<Option<Arc<Opened<Durable>>>, String> {
    let (Some(settings), Some(directory)) = (Settings::of(config), config.directory()) else {
        return Ok(None);
    };
    let opened = OPENED.get(&one_name(directory), || Opened::open(&settings))?;
    Ok(Some(opened))
}

fn begin_samples(settings: &config::Samples) -> Result<(Arc<Samples>, u32), String> {
    Ok((Samples::of(settings)?, settings.per_minute))
}

/// What becomes of a message that a measure finds to be wrong.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Outcome {
    Detected,
    Dropped,
    Answered,
    Excepted,
}

impl Outcome {
    const fn as_str(self) -> &'static str {
        match self {
            Self::Detected => "detected",
            Self::Dropped => "dropped",
            Self::Answered => "answered",
            Self::Excepted => "excepted",
        }
    }
}

/// What a measure found.
struct Found {
    measure: Measure,
    outcome: Outcome,
    reason: Cow<'static, str>,
}

/// A message on its way, and whose it is.
struct Passage<'p> {
    scene: Scene<'p>,
    partner: u16,
    peer: &'p str,
    /// Whether nothing is counted.
    is_rehearsal: bool,
}

impl Dsa {
    /// Reads the tables of a configuration.
    ///
    /// # Errors
    /// When a table has a mistake, no measure is on, or the file of findings cannot be opened.
    pub fn load(config: &config::Dsa) -> Result<Self, String> {
        static VERSIONS: AtomicU32 = AtomicU32::new(1);
        let tables = files::tables(config)?;
        let durable = open(config)?;
        let stored = durable.as_ref().and_then(|opened| opened.repository().states());
        Ok(Self {
            states: stored.map_or_else(OnceLock::new, |states| states.clone().into()),
            durable,
            tables,
            bounds: Bounds {
                learning: config.learning.duration(),
                lifetime: config.lifetime.duration(),
                max_subscribers: config.max_subscribers,
                max_speed: config.max_speed,
            },
            lines: Lines::new(config.findings.as_deref(), config.findings_bytes.bytes())?,
            lines_per_second: config.findings_per_second,
            samples: config.samples.as_ref().map(begin_samples).transpose()?,
            version: VERSIONS.fetch_add(1, Ordering::Relaxed),
        })
    }

    /// Whether a reload may put these settings in the place of others, with which the router runs.
    ///
    /// # Errors
    /// When the store is another one: subscribers are in the one that is open.
    pub fn may_replace(settings: &config::Dsa, before: &config::Dsa) -> Result<(), String> {
        if settings.store == before.store {
            return Ok(());
        }
        let why = "`store` has changed, which takes effect when the router starts: restart it, or reload with `store` as it was";
        Err(why.to_owned())
    }

    /// What is known; nothing before the first worker has it. Pages may ask before, and must not take its place.
    fn states(&self) -> Arc<States> {
        self.states.get().cloned().unwrap_or_default()
    }

    fn memory<'m>(&self, states: &'m States, now: Instant) -> Memory<'m> {
        Memory {
            states,
            bounds: self.bounds,
            now,
        }
    }

    fn direction<B: AsRef<[u8]>>(
        &self,
        message: &Message<B>,
        facts: &Facts<'_>,
        peer: &str,
    ) -> Option<(Direction, u16)> {
        let origin = self.realm(message, ORIGIN_REALM, &facts.origin_realm);
        let destination = self.realm(message, DESTINATION_REALM, &facts.destination_realm);
        self.tables.partners.direction(peer, origin, destination)
    }

    /// A realm of a message: of several the foreign one, which a peer further on may read.
    fn realm<'m, B: AsRef<[u8]>>(
        &self,
        message: &'m Message<B>,
        code: u32,
        place: &Once<'m>,
    ) -> Option<&'m [u8]> {
        let first = place.shown();
        if !place.contradicts() {
            return first;
        }
        let avps = message.avps().map_while(Result::ok);
        let mut all = avps.filter(|avp| avp.vendor == 0 && avp.code == code);
        let foreign = all.find(|avp| self.tables.partners.is_foreign(avp.data));
        foreign.map(|avp| avp.data).or(first)
    }

    /// Shows a message to the measures that are on for it.
    fn screen<'a>(&'a self, passage: &Passage<'_>, memory: &Memory<'_>) -> (Flow<'a>, Vec<Found>) {
        let (mut flow, mut all) = (Flow::Next, Vec::new());
        let Passage {
            scene, partner, peer, ..
        } = passage;
        for check in self.tables.checks.iter() {
            if !check.concerns(scene.direction, *partner, scene.facts.is_request) {
                continue;
            }
            // A rehearsal is not a message.
            if passage.is_rehearsal && check.measure == Measure::MsgRateMon {
                continue;
            }
            let verdict = scene.judge(check.measure);
            let Err(reason) = verdict.unwrap_or_else(|| memory.judge(check.measure, scene, peer)) else {
                continue;
            };
            let (outcome, becomes) = self.outcome(check, scene.facts, memory);
            all.push(Found {
                measure: check.measure,
                outcome,
                reason,
            });
            // The first one that does not let the message go on decides.
            if matches!(flow, Flow::Next) {
                flow = becomes;
            }
            if outcome != Outcome::Excepted && !check.goes_on {
                break;
            }
        }
        (flow, all)
    }

    fn outcome<'a>(
        &'a self,
        check: &'a Check,
        facts: &Facts<'_>,
        memory: &Memory<'_>,
    ) -> (Outcome, Flow<'a>) {
        if self.tables.exceptions.has(check.measure, facts) {
            return (Outcome::Excepted, Flow::Next);
        }
        if check.measure.learns() && memory.is_learning() {
            return (Outcome::Detected, Flow::Next);
        }
        match &check.mode {
            Mode::Detect => (Outcome::Detected, Flow::Next),
            Mode::Drop => (Outcome::Dropped, Flow::Drop),
            Mode::Answer(fault) => (Outcome::Answered, Flow::Answer(Cow::Borrowed(fault))),
        }
    }

    /// Counts what was found, and writes lines about it, and a sample of the message.
    fn report(&self, on: &On<'_, Self>, passage: &Passage<'_>, all: &[Found], octets: &[u8]) {
        let memory = self.memory(&on.worker.states, on.now);
        let partner = self.tables.partners.name(passage.partner);
        for found in all {
            memory
                .states
                .found(partner, found.measure, found.outcome.as_str());
            if found.outcome == Outcome::Excepted {
                on.count(Event::Excepted);
                continue;
            }
            on.count(Event::Found);
            let about = About {
                at: self.lines.time(),
                facts: passage.scene.facts,
                measure: found.measure,
                partner,
                peer: passage.peer,
                direction: match passage.scene.direction {
                    Direction::Ingress => "ingress",
                    Direction::Egress => "egress",
                },
                outcome: found.outcome.as_str(),
                reason: &found.reason,
            };
            let has_line = memory.states.has_line(memory.seconds(), self.lines_per_second);
            if !has_line || !self.lines.put(about.line()) {
                on.count(Event::LineLost);
            }
        }
        self.sample(on, passage, all, octets);
    }

    /// Writes a message that was found, once for all its measures whose samples of this minute are not all taken.
    fn sample(&self, on: &On<'_, Self>, passage: &Passage<'_>, all: &[Found], octets: &[u8]) {
        let Some((samples, rate)) = &self.samples else {
            return;
        };
        let states = &on.worker.states;
        let seconds = states.seconds(on.now);
        let mut why = String::new();
        for found in all.iter().filter(|found| found.outcome != Outcome::Excepted) {
            if states.has_sample(passage.partner, found.measure, seconds, *rate) {
                let separator = if why.is_empty() { "" } else { ", " };
                why += &format!("{separator}{} {}", found.measure.as_str(), found.outcome.as_str());
            }
        }
        let message = samples::Message {
            at: self.lines.time(),
            peer: passage.peer,
            is_request: passage.scene.facts.is_request,
            why: &why,
            octets,
        };
        if !why.is_empty() && !samples.put(&message) {
            on.count(Event::SampleLost);
        }
    }

    fn count(on: &On<'_, Self>, flow: &Flow<'_>) {
        match flow {
            Flow::Drop => on.count(Event::Dropped),
            Flow::Answer(_) => on.count(Event::Answered),
            _ => {}
        }
    }

    fn scene<'s, B: AsRef<[u8]>>(
        &'s self,
        message: &'s Message<B>,
        facts: &'s Facts<'s>,
        direction: Direction,
    ) -> Scene<'s> {
        Scene {
            tables: &self.tables,
            facts,
            avps: message.avps(),
            direction,
        }
    }

    /// Screens the answer to a request: it goes the other way.
    fn answer_of<'a>(
        &'a self,
        on: &On<'_, Self>,
        answer: &MessageMut,
        facts: &Facts<'_>,
        (direction, partner, peer): (Direction, u16, &str),
    ) -> Flow<'a> {
        let direction = match direction {
            Direction::Ingress => Direction::Egress,
            Direction::Egress => Direction::Ingress,
        };
        let passage = Passage {
            scene: self.scene(answer, facts, direction),
            partner,
            peer,
            is_rehearsal: false,
        };
        on.count(Event::Screened);
        let (flow, all) = self.screen(&passage, &self.memory(&on.worker.states, on.now));
        self.report(on, &passage, &all, answer.as_bytes());
        Self::count(on, &flow);
        flow
    }

    /// Whose a request was, where it went and which peer has sent it; none: it was screened by other tables, or stayed at home.
    fn recall<'o>(&self, on: &'o On<'_, Self>) -> Option<(Direction, u16, &'o str)> {
        let [kind, low, high, _, a, b, c, d, e, f, g, h, ..] = *on.memo;
        let direction = match kind {
            1 => Direction::Ingress,
            2 => Direction::Egress,
            _ => return None,
        };
        let is_same = u32::from_le_bytes([a, b, c, d]) == self.version;
        let peer = || on.worker.peers.name(u32::from_le_bytes([e, f, g, h]));
        is_same.then(|| (direction, u16::from_le_bytes([low, high]), peer()))
    }

    fn remember(&self, on: &mut On<'_, Self>, direction: Direction, partner: u16, peer: &str) {
        let memo = &mut *on.memo;
        memo[0] = match direction {
            Direction::Ingress => 1,
            Direction::Egress => 2,
        };
        memo[1..3].copy_from_slice(&partner.to_le_bytes());
        memo[4..8].copy_from_slice(&self.version.to_le_bytes());
        memo[8..12].copy_from_slice(&on.worker.peers.number_of(peer).to_le_bytes());
    }
}

impl Application for Dsa {
    const KIND: &'static str = "dsa";
    const FOLLOWS: bool = true;

    type Event = Event;
    type Worker = Known;
    type Found = ();

    fn configure(&self, worker: &mut Self::Worker, _: Resume<()>) {
        // What an application of this name and kind knew, it still knows after a reload.
        worker.states = self.states.get_or_init(|| worker.states.clone()).clone();
    }

    fn request<'a>(&'a self, on: &mut On<'_, Self>, request: &Request<'_>) -> Flow<'a> {
        for _ in 0..self.lines.take_lost() {
            on.count(Event::LineLost);
        }
        if let Some((samples, _)) = &self.samples {
            for _ in 0..samples.take_lost() {
                on.count(Event::SampleLost);
            }
        }
        if let Some(opened) = &self.durable {
            for _ in 0..opened.repository().take_failed() {
                on.count(Event::NotStored);
            }
        }
        let facts = Facts::new(request.message);
        let Some((direction, partner)) = self.direction(request.message, &facts, request.peer) else {
            return Flow::Next;
        };
        on.count(Event::Screened);
        self.remember(on, direction, partner, request.peer);
        let passage = Passage {
            scene: self.scene(request.message, &facts, direction),
            partner,
            peer: request.peer,
            is_rehearsal: false,
        };
        let (flow, all) = self.screen(&passage, &self.memory(&on.worker.states, on.now));
        self.report(on, &passage, &all, request.message.as_bytes());
        Self::count(on, &flow);
        flow
    }

    fn answer<'a>(&'a self, on: &mut On<'_, Self>, answered: &Answered<'_>) -> Flow<'a> {
        let screened = self.recall(on);
        if screened.is_none() && !stateful::teaches(answered.request.application()) {
            return Flow::Next;
        }
        let request = Facts::new(answered.request);
        let answer = Facts::new(answered.answer).answering(&request);
        let flow = screened.map_or(Flow::Next, |was| {
            self.answer_of(on, answered.answer, &answer, was)
        });
        let learns = || {
            let memory = self.memory(&on.worker.states, on.now);
            memory.learn(&request, &answer, &self.tables.distances)
        };
        if matches!(flow, Flow::Next) && !learns() {
            on.count(Event::Full);
        }
        flow
    }

    fn explain<'a>(&'a self, request: &Request<'_>) -> Option<Explained<'a>> {
        let facts = Facts::new(request.message);
        let Some((direction, partner)) = self.direction(request.message, &facts, request.peer) else {
            let reasons = vec!["not screened: it stays at home".to_owned()];
            return Some(Explained {
                flow: Flow::Next,
                reasons,
            });
        };
        let passage = Passage {
            scene: self.scene(request.message, &facts, direction),
            partner,
            peer: request.peer,
            is_rehearsal: true,
        };
        let (flow, all) = self.screen(&passage, &self.memory(&self.states(), Instant::now()));
        let (way, partner) = match direction {
            Direction::Ingress => ("from", self.tables.partners.name(partner)),
            Direction::Egress => ("to", self.tables.partners.name(partner)),
        };
        let found = all.iter().map(|found| {
            let (measure, outcome) = (found.measure.as_str(), found.outcome.as_str());
            format!("{measure}: {} ({outcome})", found.reason)
        });
        let reasons = std::iter::once(format!("screened as {way} partner {partner}")).chain(found);
        Some(Explained {
            flow,
            reasons: reasons.collect(),
        })
    }

    fn findings(&self) -> Vec<Finding> {
        self.states().findings()
    }

    fn tables(&self) -> Vec<Table> {
        let (entries, bytes) = self.states().size();
        let name = "subscribers";
        let mut tables = vec![Table { name, entries, bytes }];
        let (entries, bytes) = self.states().races_size();
        let name = "recent_places";
        tables.push(Table { name, entries, bytes });
        tables.extend(self.tables.counts().iter().cloned());
        tables
    }

    fn look_up(&self, subject: &str) -> Option<Value> {
        let digits = subject.strip_prefix("imsi:")?;
        let imsi = Digits::parse(digits.as_bytes())?;
        let states = self.states();
        let seconds = states.seconds(Instant::now());
        let record = states.get(&imsi, seconds, self.bounds.lifetime);
        let shown = |network: Option<network::Network>| network.map(|network| network.to_string());
        let mut known = match record {
            None => json!({"imsi": digits, "known": false}),
            Some(record) => json!({
                "imsi": digits,
                "known": true,
                "registered": record.is_registered(),
                "visitedNetwork": shown(record.visited()),
                "authenticatedIn": shown(record.authenticated()),
                "ageSeconds": seconds.saturating_sub(record.seconds()),
            }),
        };
        // How long the router has known subscribers: of one that is not known it says more from day to day.
        known["learningForSeconds"] = seconds.saturating_sub(states.began()).into();
        if self.durable.is_some() {
            known["stored"] = states.is_stored(&imsi).into();
        }
        Some(known)
    }
}

const _: () = assert!(UNLISTED == u16::MAX, "a partner takes two bytes of a memo");
