//! The online charging DRA: each credit-control session (Gy, Ro, RFC 8506, TS 32.299 §6) at one OCS.
//!
//! A CC-Request that begins a session is sent to an OCS of its pool; the session is written before its answer goes on. All later
//! requests of the session, of its client and of its OCS, are led by their Session-Id. No request is at two OCSs, unless the
//! first is known not to have got it, or the session may fail over (CC-Session-Failover, RFC 8506 §5.7): then the second gets
//! it with the T flag.
//!
//! | file | what is there |
//! |---|---|
//! | `config`, `events` | settings, and what can happen |
//! | `facts` | what a request says of its session |
//! | `pools` | the pool of a realm |
//! | `note` | what is kept with a transaction |
//! | `begin` | requests that begin a session, and one-time events: the choice of an OCS |
//! | `within` | requests of sessions that exist |
//! | `outcome` | answers: sessions that are written, changed and ended |
//! | `owed` | sessions that end at their OCS, since their clients have got a failure |
//! | `elsewhere` | what an OCS did not answer: another one, or none |
//! | `explain` | which OCS, since when, by which rule |

mod begin;
pub mod config;
mod elsewhere;
mod events;
mod explain;
mod facts;
mod note;
mod outcome;
mod owed;
mod pools;
#[cfg(test)]
mod tests;
mod within;

use std::sync::Arc;
use std::time::{Duration, Instant};

use diameter_proto::known::{application, command};
use diameter_proto::{Message, Origin, ResultCode, known};
use dsr_app::appended::{OpenOnce, one_name};
use dsr_app::session::{
    EVENT_REQUEST, INITIAL_REQUEST, TERMINATION_REQUEST, UPDATE_REQUEST, is_failure_of_router,
    wrong_request_type,
};
use dsr_app::{Answered, Application, Explained, Flow, Lost, On, Request, Resume, Resumed, Table, Ticket};
use sbr::config::Settings;
use sbr::pool::Suspects;
use sbr::{ChargingSession, ChargingSessions, Congestion, Desk, Kept, Opened, Outcome, Party, Turn};
use serde_json::Value;

pub use events::Event;

use note::{Note, Stage};
use pools::Pools;

/// Requests with one Session-Id that wait for the first of them, at most.
const MOST_WAITING: usize = 16;
/// Time that a request without an outcome holds its Session-Id, and that an OCS which did not answer gets what comes again:
/// longer than a client repeats a request (Tx of RFC 8506 §13 is 10 s). Requests in the router must not live as long.
pub const HOLD: Duration = Duration::from_secs(60);
/// Time that a request waits for another with its Session-Id, or for the repository, at most.
const PATIENCE: Duration = Duration::from_secs(10);
/// Between two removals of what is void, and two checks of congestion.
const PURGE_INTERVAL: Duration = Duration::from_secs(10);

/// The repository of a router: one for all applications with the same store, and for all of a reload.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) opened: Opened<ChargingSessions>,
    /// Session-Ids with requests in flight that begin a session.
    pub(crate) desk: Desk<Ticket>,
}

static SHARED: OpenOnce<Shared> = OpenOnce::new();

/// The online charging DRA.
#[derive(Debug)]
pub struct Ocdra {
    settings: config::Ocdra,
    pools: Pools,
    shared: Arc<Shared>,
}

/// Its state on one worker.
#[derive(Debug, Default)]
pub struct Worker {
    resume: Resume<Found>,
    suspects: Suspects,
    /// When it has removed what is void last.
    purged: Option<Instant>,
}

/// What is read of a session.
type Recalled = Result<Option<Box<ChargingSession>>, store::Error>;

/// What it goes on with.
#[derive(Debug)]
pub enum Found {
    /// Its turn, after another request with its Session-Id.
    Turn(Turn),
    /// The session that it begins, and the OCS of another request with its Session-Id.
    Looked(Recalled, Option<Arc<Party>>),
    /// Its session.
    Recalled(Recalled),
    /// What became of a session that was to be kept.
    Kept(Result<Kept, store::Error>),
    /// A session was changed, and perhaps moved.
    Changed(Result<bool, store::Error>),
    /// Whether a session was removed.
    Removed(Result<bool, store::Error>),
}

impl Ocdra {
    /// Opens the repository of a configuration, unless it is open.
    ///
    /// # Errors
    /// When its store cannot be opened, or is open with other settings.
    pub fn open(settings: &config::Ocdra) -> Result<Self, String> {
        let repository = &settings.repository;
        let shared = SHARED.get(&repository.name(), || {
            Ok(Shared {
                opened: Opened::open(repository)?,
                desk: Desk::new(MOST_WAITING, HOLD),
            })
        })?;
        shared.opened.may_share(repository)?;
        Ok(Self {
            settings: settings.clone(),
            pools: Pools::new(&settings.pools),
            shared,
        })
    }

    /// Whether a reload may put these settings in the place of others, with which the router runs.
    ///
    /// # Errors
    /// When the repository is another one, or its settings are: it is open, and sessions are in it.
    pub fn may_replace(settings: &config::Ocdra, before: &config::Ocdra) -> Result<(), String> {
        let (new, old) = (&settings.repository, &before.repository);
        new.may_replace(old, one_name(&new.name()) == one_name(&old.name()))
    }

    fn sessions(&self) -> ChargingSessions {
        self.shared.opened.repository().clone()
    }

    /// Hands turns to those that waited.
    fn wake(resume: &Resume<Found>, turns: Vec<(Ticket, Turn)>) {
        for (ticket, turn) in turns {
            // One whose time is over meanwhile settles its turn itself.
            resume.resume(ticket, Found::Turn(turn));
        }
    }

    /// A request that begins a session has an outcome, or one that waited for it goes on.
    fn settle(&self, on: &On<'_, Self>, id: &[u8], token: u64, outcome: Outcome) {
        let turns = self.shared.desk.settle(id, token, outcome, on.now);
        Self::wake(&on.worker.resume, turns);
    }

    fn crowded<'a>(on: &On<'_, Self>) -> Flow<'a> {
        let why = "another request with this Session-Id has no answer yet";
        on.refuse(Event::Crowded, ResultCode::TOO_BUSY, why)
    }

    /// The repository did not do what it should.
    fn failed<'a>(on: &On<'_, Self>) -> Flow<'a> {
        let why = "sessions cannot be read or written";
        on.refuse(Event::RepositoryFailed, ResultCode::UNABLE_TO_COMPLY, why)
    }

    /// One that waited waits no longer.
    fn withdraw(&self, on: &On<'_, Self>, request: &Request<'_>, note: Note) {
        let Ok(facts) = facts::Facts::read(request.message) else {
            return;
        };
        if !self.shared.desk.withdraw(&facts.session, note.token, note.ticket) {
            // Its turn has come and not reached it.
            self.settle(on, &facts.session, note.token, Outcome::Failed);
        }
    }

    /// A request that looked for its session ends without one.
    fn unlooked(&self, on: &On<'_, Self>, request: &Request<'_>, note: Note) {
        if let Ok(facts) = facts::Facts::read(request.message) {
            self.settle(on, &facts.session, note.token, Outcome::Failed);
        }
    }
}

/// What a request is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// It begins a session.
    Begins,
    /// It is a one-time event (RFC 8506 §6).
    Event,
    /// It is of a session: of the client, or of the OCS.
    Within { is_end: bool, is_of_server: bool },
    /// It has no CC-Request-Type, or an unknown one.
    Faulty,
    /// It is of no interest.
    Other,
}

impl Kind {
    fn of<B: AsRef<[u8]>>(message: &Message<B>) -> Self {
        if message.application() != application::CREDIT_CONTROL {
            return Self::Other;
        }
        let within = |is_end, is_of_server| Self::Within { is_end, is_of_server };
        match message.command() {
            command::CREDIT_CONTROL => match message.get(known::CC_REQUEST_TYPE).ok().flatten() {
                Some(INITIAL_REQUEST) => Self::Begins,
                Some(UPDATE_REQUEST) => within(false, false),
                Some(TERMINATION_REQUEST) => within(true, false),
                Some(EVENT_REQUEST) => Self::Event,
                _ => Self::Faulty,
            },
            command::RE_AUTH | command::ABORT_SESSION => within(false, true),
            _ => Self::Other,
        }
    }
}

impl Application for Ocdra {
    const KIND: &'static str = "ocdra";
    const FOLLOWS: bool = true;
    const TICK: Option<Duration> = Some(Duration::from_secs(1));

    type Event = Event;
    type Worker = Worker;
    type Found = Found;

    fn configure(&self, worker: &mut Worker, resume: Resume<Found>) {
        worker.resume = resume;
    }

    fn request<'a>(&'a self, on: &mut On<'_, Self>, request: &Request<'_>) -> Flow<'a> {
        let flow = match Kind::of(request.message) {
            Kind::Begins => self.begin(on, request),
            Kind::Event => self.event(on, request),
            Kind::Within { is_of_server, .. } => self.within(on, request, is_of_server),
            Kind::Faulty => Err(wrong_request_type(request.message)),
            Kind::Other => Ok(Flow::Next),
        };
        flow.unwrap_or_else(|fault| {
            on.count(Event::Invalid);
            Flow::refuse(fault)
        })
    }

    fn explain<'a>(&'a self, request: &Request<'_>) -> Option<Explained<'a>> {
        Some(self.rehearse(request))
    }

    fn answer<'a>(&'a self, on: &mut On<'_, Self>, answered: &Answered<'_>) -> Flow<'a> {
        let note = Note::read(on.memo);
        if note.stage == Stage::Begins && is_failure_of_router(answered) {
            self.end_failed(on, note, answered.request);
        }
        match note.stage {
            Stage::Begins => self.begun(on, note, answered),
            Stage::Event => self.event_answered(on, note, answered),
            Stage::Within | Stage::Ends => self.passed(on, note, answered),
            Stage::OfServer => self.reported(on, answered),
            Stage::Owes => self.owed_answered(on, note, answered),
            _ => Flow::Next,
        }
    }

    fn lost<'a>(&'a self, on: &mut On<'_, Self>, lost: &Lost<'_>) -> Flow<'a> {
        let note = Note::read(on.memo);
        match note.stage {
            Stage::Begins | Stage::Event | Stage::Within | Stage::Ends => self.unanswered(on, note, lost),
            Stage::Owes => {
                self.owed_lost(on, note, lost);
                Flow::Next
            }
            _ => Flow::Next,
        }
    }

    fn resume<'a>(&'a self, on: &mut On<'_, Self>, resumed: &Resumed<'_>, found: Found) -> Flow<'a> {
        let note = Note::read(on.memo);
        match (found, resumed) {
            (Found::Turn(turn), Resumed::Request(request)) => self.take_turn(on, request, turn),
            (Found::Looked(session, server), Resumed::Request(request)) => {
                self.looked(on, request, note.token, (session, server))
            }
            (Found::Recalled(session), Resumed::Request(request)) => self.recalled(on, request, session),
            (Found::Kept(kept), _) => {
                if kept.is_err() {
                    self.end_unwritten(on, note, resumed);
                }
                Self::kept(on, kept)
            }
            (Found::Changed(changed), _) => Self::changed(on, note, changed),
            (Found::Removed(removed), _) => Self::removed(on, &removed),
            // A turn of a transaction that is not a request any more.
            _ => Flow::Next,
        }
    }

    fn expired<'a>(&'a self, on: &mut On<'_, Self>, resumed: &Resumed<'_>) -> Flow<'a> {
        let note = Note::read(on.memo);
        self.unparked(on, resumed);
        match note.stage {
            Stage::Waits => Self::crowded(on),
            Stage::Removes => Self::not_removed(on),
            _ => Self::failed(on),
        }
    }

    fn unparked(&self, on: &mut On<'_, Self>, resumed: &Resumed<'_>) {
        let note = Note::read(on.memo);
        match (note.stage, resumed) {
            (Stage::Waits, Resumed::Request(request)) => self.withdraw(on, request, note),
            (Stage::Looks, Resumed::Request(request)) => self.unlooked(on, request, note),
            (Stage::Writes, Resumed::Answer(_)) => self.end_unwritten(on, note, resumed),
            // What is being written settles itself.
            _ => {}
        }
    }

    fn tick(&self, on: &mut On<'_, Self>, _: &Origin) {
        self.send_owed(on);
        let now = on.now;
        let purged = on.worker.purged;
        if purged.is_some_and(|purged| now < purged + PURGE_INTERVAL) {
            return;
        }
        on.worker.purged = Some(now);
        if on.ticket.worker == 0 {
            match self.shared.opened.congestion() {
                Congestion::None => {}
                Congestion::Minor => on.count(Event::Congested),
                Congestion::Major => on.count(Event::Overloaded),
            }
        }
        self.shared.desk.purge(now);
        on.worker.suspects.retain(|_, until| now < *until);
    }

    fn tables(&self) -> Vec<Table> {
        let table = |name, entries| Table {
            name,
            entries,
            bytes: 0,
        };
        vec![
            table("sessions", self.shared.opened.repository().held()),
            table("beginning", self.shared.desk.len()),
            table("pending", self.shared.opened.pending()),
        ]
    }

    fn look_up(&self, subject: &str) -> Option<Value> {
        self.look_up_session(subject)
    }
}
