//! The Policy DRA: all sessions of a subscriber at one PCRF (TS 29.213 §7), as a proxy agent (§7.4.1) or a redirect agent (§7.4.2).
//!
//! A CC-Request of Gx, Gxx or S9 that begins a session finds the PCRF of its subscriber or chooses one; the session is written
//! before its answer goes on, so that an AF which hears of the session at that moment finds it. A request of an AF (Rx) or of a
//! TDF (Sd) finds the PCRF by the addresses and numbers that it has. Requests of a session that name a host go there, the others
//! to the peer of their session.
//!
//! | file | what is there |
//! |---|---|
//! | `config`, `events` | settings, and what can happen |
//! | `facts` | what a request says of its session and subscriber |
//! | `domains` | IP domains, whose IPv4 addresses overlap |
//! | `pools` | the pool of an APN |
//! | `note` | what is kept with a transaction |
//! | `begin` | requests that begin a session: claim, choice, sending |
//! | `outcome` | what became of them: written, tried elsewhere, given up |
//! | `suspect` | bindings to a PCRF that does not serve them |
//! | `within` | requests of AFs, and of sessions that exist |
//! | `ending` | sessions that end |
//! | `redirect` | clients that go to the PCRF themselves |
//! | `report` | addresses that gateways report |
//! | `owed` | sessions that end at their PCRF, since their clients have got a failure |
//! | `order` | answers come before what their PCRF sends next |
//! | `audit` | stale sessions, about which gateways are asked |
//! | `explain` | which PCRF, since when, by which rule |

mod audit;
mod begin;
pub mod config;
mod domains;
mod ending;
mod events;
mod explain;
mod facts;
mod note;
mod order;
mod outcome;
mod owed;
mod pools;
mod redirect;
mod report;
mod suspect;
#[cfg(test)]
mod tests;
mod within;

use std::sync::Arc;
use std::time::{Duration, Instant};

use diameter_proto::known::{application, command};
use diameter_proto::{Message, Origin, ResultCode, known};
use dsr_app::appended::{OpenOnce, one_name};
use dsr_app::session::{INITIAL_REQUEST, TERMINATION_REQUEST, UPDATE_REQUEST, wrong_request_type};
use dsr_app::{Answered, Application, Explained, Flow, Lost, On, Request, Resume, Resumed, Table, Ticket};
use sbr::config::Settings;
use sbr::pool::Suspects;
use sbr::{Congestion, Desk, Kept, Opened, Party, Reserved, Session, Turn};
use serde_json::Value;

pub use events::Event;

use audit::Audit;
use domains::Domains;
use note::{Note, Stage};
use order::Answers;
use pools::Pools;
use suspect::Strikes;

/// Gxx (TS 29.212).
const GXX: u32 = 16_777_266;

/// The repository of a router: one for all applications with the same store, and for all of a reload.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) opened: Opened,
    pub(crate) desk: Desk<Ticket>,
    pub(crate) answers: Answers,
    pub(crate) strikes: Strikes,
}

/// Between two removals of what is void.
const PURGE_INTERVAL: Duration = Duration::from_secs(10);

static SHARED: OpenOnce<Shared> = OpenOnce::new();

/// The Policy DRA.
#[derive(Debug)]
pub struct Pdra {
    settings: config::Pdra,
    pools: Pools,
    domains: Arc<Domains>,
    shared: Arc<Shared>,
}

/// Its state on one worker.
#[derive(Debug, Default)]
pub struct Worker {
    resume: Resume<Found>,
    suspects: Suspects,
    audit: Audit,
    /// When it has removed what is void last.
    purged: Option<Instant>,
}

/// What it goes on with.
#[derive(Debug)]
pub enum Found {
    /// Its turn at the desk.
    Turn(Turn),
    /// Whether a PCRF may be chosen.
    Reserved(Result<Reserved, store::Error>),
    /// The session of its subscriber.
    Correlated(Result<Option<Correlated>, store::Error>),
    /// Its session.
    Recalled(Result<Option<Box<Session>>, store::Error>),
    /// The answer before it is with the client.
    Ordered,
    /// What became of its session.
    Written(Result<Kept, store::Error>),
    /// Whether its session was removed.
    Removed(Result<bool, store::Error>),
    /// What became of the session whose client goes to this PCRF.
    Redirected(Party, Result<Kept, store::Error>),
    /// Whether the session was removed whose client goes to this PCRF.
    Left(Party, Result<bool, store::Error>),
}

/// What a request of an AF or a TDF has found.
#[derive(Clone, Debug)]
pub enum Correlated {
    /// It is of a session that exists.
    Own(Box<Session>),
    /// The session of its subscriber, by this key.
    Other {
        /// The session.
        session: Box<Session>,
        /// The key.
        key: config::Key,
        /// Whether sessions at other PCRFs fitted as well.
        is_ambiguous: bool,
    },
}

impl Pdra {
    /// Opens the repository of a configuration, unless it is open.
    ///
    /// # Errors
    /// When its store cannot be opened, or is open with other settings.
    pub fn open(settings: &config::Pdra) -> Result<Self, String> {
        let repository = &settings.repository;
        let shared = SHARED.get(&repository.name(), || {
            Ok(Shared {
                opened: Opened::open(repository)?,
                desk: Desk::new(repository.max_waiting, repository.reservation.duration()),
                answers: Answers::new(repository.reservation.duration()),
                strikes: Strikes::default(),
            })
        })?;
        shared.opened.may_share(repository)?;
        Ok(Self {
            settings: settings.clone(),
            pools: Pools::new(&settings.pools),
            domains: Arc::new(Domains::new(&settings.ip_domains)),
            shared,
        })
    }

    /// Whether a reload may put these settings in the place of others, with which the router runs.
    ///
    /// # Errors
    /// When the repository is another one, or its settings are: it is open, and sessions are in it.
    pub fn may_replace(settings: &config::Pdra, before: &config::Pdra) -> Result<(), String> {
        let (new, old) = (&settings.repository, &before.repository);
        new.may_replace(old, one_name(&new.name()) == one_name(&old.name()))
    }

    /// A second has passed: counts how congested the repository is.
    fn count_congestion(&self, on: &On<'_, Self>) {
        if on.ticket.worker != 0 {
            return;
        }
        match self.shared.opened.congestion() {
            Congestion::None => {}
            Congestion::Minor => on.count(Event::Congested),
            Congestion::Major => on.count(Event::Overloaded),
        }
    }

    /// A second has passed: counts what has happened in the repository.
    fn count_repository(&self, on: &On<'_, Self>) {
        let counts = self.shared.opened.repository().take_counts();
        let removed = self.shared.strikes.take_removed();
        for (event, count) in [
            (Event::Unbound, removed),
            (Event::OlderBinding, counts.older),
            (Event::YoungerBinding, counts.younger),
            (Event::CrowdedKey, counts.crowded),
        ] {
            on.counters.add(event, count);
        }
    }

    /// Hands the turns of the desk to those that waited.
    fn wake(resume: &Resume<Found>, turns: Vec<(Ticket, Turn)>) {
        for (ticket, turn) in turns {
            // One whose time is over meanwhile settles its turn itself.
            resume.resume(ticket, Found::Turn(turn));
        }
    }

    /// The repository did not do what it should.
    fn failed<'a>(on: &On<'_, Self>) -> Flow<'a> {
        let why = "sessions cannot be read or written";
        on.refuse(Event::RepositoryFailed, ResultCode::UNABLE_TO_COMPLY, why)
    }
}

/// What a request is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// It begins a session, for which a PCRF may be chosen.
    Begins,
    /// It begins a session at the PCRF of its subscriber, or is of one that has begun.
    Finds,
    /// A PCRF begins a session at a TDF.
    Opens,
    /// It is of a session: of the client, or of the PCRF.
    Within { is_end: bool, is_of_pcrf: bool },
    /// It has no CC-Request-Type, or one that no session has (TS 29.212 §5.6.2).
    Faulty,
    /// It is of no interest.
    Other,
}

impl Kind {
    fn of<B: AsRef<[u8]>>(message: &Message<B>) -> Self {
        let within = |is_end, is_of_pcrf| Self::Within { is_end, is_of_pcrf };
        let is_credit = message.command() == command::CREDIT_CONTROL;
        let kind = is_credit.then(|| message.get(known::CC_REQUEST_TYPE).ok().flatten());
        let kind = kind.flatten();
        match (message.application(), message.command()) {
            (application::GX | GXX | application::S9, command::CREDIT_CONTROL)
                if kind == Some(INITIAL_REQUEST) =>
            {
                Self::Begins
            }
            // Unsolicited reporting (TS 29.212 §4b.5a).
            (application::SD, command::CREDIT_CONTROL) if kind == Some(INITIAL_REQUEST) => Self::Finds,
            (application::RX, command::AA) => Self::Finds,
            (application::SD, command::TDF_SESSION) => Self::Opens,
            (application::GX | GXX | application::S9 | application::SD, command::CREDIT_CONTROL) => {
                match kind {
                    Some(UPDATE_REQUEST) => within(false, false),
                    Some(TERMINATION_REQUEST) => within(true, false),
                    _ => Self::Faulty,
                }
            }
            (application::RX, command::SESSION_TERMINATION) => within(true, false),
            (
                application::GX | GXX | application::S9 | application::SD | application::RX,
                command::RE_AUTH | command::ABORT_SESSION,
            ) => within(false, true),
            _ => Self::Other,
        }
    }
}

impl Application for Pdra {
    const KIND: &'static str = "pdra";
    const FOLLOWS: bool = true;
    const TICK: Option<Duration> = Some(audit::INTERVAL);

    type Event = Event;
    type Worker = Worker;
    type Found = Found;

    fn configure(&self, worker: &mut Worker, resume: Resume<Found>) {
        worker.resume = resume;
    }

    fn request<'a>(&'a self, on: &mut On<'_, Self>, request: &Request<'_>) -> Flow<'a> {
        let flow = match Kind::of(request.message) {
            Kind::Begins => self.begin(on, request),
            Kind::Finds => self.find(on, request),
            Kind::Opens => self.open_at_tdf(on, request),
            Kind::Within { is_end, is_of_pcrf } => self.within(on, request, is_end, is_of_pcrf),
            Kind::Faulty => Err(wrong_request_type(request.message)),
            Kind::Other => Ok(Flow::Next),
        };
        let flow = flow.unwrap_or_else(|fault| {
            on.count(Event::Invalid);
            Flow::refuse(fault)
        });
        self.is_sent(on, request.message, &flow);
        flow
    }

    /// Where a request would go depends on those in flight and on the store, which only a request itself may change.
    fn explain<'a>(&'a self, request: &Request<'_>) -> Option<Explained<'a>> {
        let reason = match Kind::of(request.message) {
            Kind::Begins => {
                "begins a session: goes to the PCRF of its subscriber, else to one of the pool of its APN"
            }
            Kind::Finds => {
                "goes to the PCRF of the session that its keys lead to (`signalbox dsr pdra binding KEY`)"
            }
            Kind::Opens => "begins a session of its PCRF at a TDF: goes where it says",
            Kind::Faulty => "is refused: its CC-Request-Type is missing or unknown",
            Kind::Within { .. } => "belongs to a session (`signalbox dsr pdra session ID`)",
            Kind::Other => "is left to the routes",
        };
        Some(Explained {
            flow: Flow::Next,
            reasons: vec![reason.to_owned()],
        })
    }

    fn answer<'a>(&'a self, on: &mut On<'_, Self>, answered: &Answered<'_>) -> Flow<'a> {
        let note = Note::read(on.memo);
        self.end_refused(on, note, answered);
        let flow = match note.stage {
            Stage::Begins => self.begun(on, note, answered),
            Stage::Found => self.found(on, note, answered),
            Stage::Opens => self.opened(on, answered),
            Stage::Reports => self.reported(on, answered),
            Stage::Asks => self.audited(on, answered),
            Stage::Owes => self.owed_answered(on, note, answered),
            Stage::Within | Stage::Ends => self.passed(on, note.stage, answered),
            _ => Flow::Next,
        };
        self.has_come(on, note.stage, answered.request, &flow);
        flow
    }

    fn lost<'a>(&'a self, on: &mut On<'_, Self>, lost: &Lost<'_>) -> Flow<'a> {
        let note = Note::read(on.memo);
        let flow = match note.stage {
            Stage::Begins => self.begin_lost(on, note, lost),
            Stage::Found => self.find_lost(on, lost),
            Stage::Within | Stage::Ends | Stage::Reports => self.within_lost(on, lost),
            Stage::Owes => {
                self.owed_lost(on, note, lost);
                Flow::Next
            }
            _ => Flow::Next,
        };
        self.has_come(on, note.stage, lost.request, &flow);
        flow
    }

    fn resume<'a>(&'a self, on: &mut On<'_, Self>, resumed: &Resumed<'_>, found: Found) -> Flow<'a> {
        let note = Note::read(on.memo);
        let flow = match (found, resumed) {
            (Found::Turn(turn), Resumed::Request(request)) => self.take_turn(on, request, turn),
            (Found::Reserved(reserved), Resumed::Request(request)) => {
                self.reserved(on, request, note.token, reserved)
            }
            (Found::Correlated(correlated), Resumed::Request(request)) => {
                self.correlated(on, request, correlated)
            }
            (Found::Recalled(session), Resumed::Request(request)) => self.recalled(on, request, session),
            (Found::Ordered, Resumed::Request(request)) => self.in_order(on, request),
            (Found::Redirected(server, kept), Resumed::Request(request)) => {
                Self::redirected(on, request, &server, kept)
            }
            (Found::Left(server, removed), Resumed::Request(request)) => {
                Self::left(on, request, &server, &removed)
            }
            (Found::Written(written), _) => {
                if written.is_err() {
                    self.end_unwritten(on, note, resumed);
                }
                Self::written(on, written)
            }
            (Found::Removed(removed), _) => Self::removed(on, note.stage, &removed),
            // A turn of a transaction that is not a request any more.
            _ => Flow::Next,
        };
        self.goes_on(on, note.stage, resumed, &flow);
        flow
    }

    fn expired<'a>(&'a self, on: &mut On<'_, Self>, resumed: &Resumed<'_>) -> Flow<'a> {
        let note = Note::read(on.memo);
        let flow = match (note.stage, resumed) {
            (Stage::Waits, Resumed::Request(request)) => self.gave_up(on, request, note),
            (Stage::Looks, Resumed::Request(request)) => {
                self.settle_failed(on, request, note.token);
                Self::failed(on)
            }
            (Stage::Follows, Resumed::Request(request)) => self.in_order(on, request),
            (Stage::Removes | Stage::Asks, Resumed::Answer(_)) => Self::not_removed(on),
            (Stage::Writes, _) => {
                self.end_unwritten(on, note, resumed);
                Self::failed(on)
            }
            _ => Self::failed(on),
        };
        self.goes_on(on, note.stage, resumed, &flow);
        flow
    }

    fn unparked(&self, on: &mut On<'_, Self>, resumed: &Resumed<'_>) {
        let note = Note::read(on.memo);
        match (note.stage, resumed) {
            (Stage::Waits, Resumed::Request(request)) => self.withdraw(on, request, note),
            (Stage::Looks, Resumed::Request(request)) => self.settle_failed(on, request, note.token),
            (Stage::Writes, Resumed::Answer(_)) => self.end_unwritten(on, note, resumed),
            _ => {}
        }
        self.goes_on(on, note.stage, resumed, &Flow::Drop);
    }

    fn tick(&self, on: &mut On<'_, Self>, _: &Origin) {
        self.audit(on);
        self.count_congestion(on);
        self.send_owed(on);
        self.count_repository(on);
        let now = on.now;
        let is_due = on
            .worker
            .purged
            .is_none_or(|purged| now >= purged + PURGE_INTERVAL);
        if !is_due {
            return;
        }
        on.worker.purged = Some(now);
        self.shared.desk.purge(now);
        self.shared.answers.purge(now);
        self.shared.strikes.purge(now);
        on.worker.suspects.retain(|_, until| now < *until);
    }

    fn tables(&self) -> Vec<Table> {
        let repository = self.shared.opened.repository();
        let table = |name, entries| Table {
            name,
            entries,
            bytes: 0,
        };
        vec![
            table("sessions", repository.held()),
            table("AF sessions", repository.held_found()),
            table("beginning", self.shared.desk.len()),
            table("pending", self.shared.opened.pending()),
        ]
    }

    fn look_up(&self, subject: &str) -> Option<Value> {
        self.explain(subject)
    }
}
