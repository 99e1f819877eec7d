//! Answers: sessions that are written, changed and ended.

use diameter_proto::{ResultCode, known};
use dsr_app::session::{OVERTAKES, result, taken};
use dsr_app::{Answered, Flow, On};
use sbr::{Begun, Change, ChargingSession, Kept, Outcome, Party};

use crate::elsewhere::Failure;
use crate::events::Event;
use crate::facts::Facts;
use crate::note::{Note, Rule, Stage};
use crate::{Found, HOLD, Ocdra, PATIENCE};

/// CC-Session-Failover (RFC 8506 §8.4); an absent one is FAILOVER_NOT_SUPPORTED.
const FAILOVER_SUPPORTED: i32 = 1;

impl Ocdra {
    /// The answer to a request that begins a session.
    pub(crate) fn begun<'a>(
        &'a self,
        on: &mut On<'_, Self>,
        note: Note,
        answered: &Answered<'_>,
    ) -> Flow<'a> {
        let Ok(facts) = Facts::read(answered.request) else {
            return Flow::Next;
        };
        match result(answered.answer) {
            Some(result) if result.is_success() => self.keep(on, note, facts, answered),
            result => {
                let failure = Failure::of(result);
                let other = failure.and_then(|failure| self.elsewhere(on, note, answered.request, failure));
                other.unwrap_or_else(|| {
                    let flow = self.give_up(on, note, &facts, failure);
                    match result {
                        Some(ResultCode::UNKNOWN_SESSION_ID) if note.has_session => {
                            self.end_for_client(on, &facts)
                        }
                        _ => flow,
                    }
                })
            }
        }
    }

    /// The answer to a one-time event.
    pub(crate) fn event_answered<'a>(
        &'a self,
        on: &mut On<'_, Self>,
        note: Note,
        answered: &Answered<'_>,
    ) -> Flow<'a> {
        let failure = Failure::of(result(answered.answer));
        let other = failure.and_then(|failure| self.elsewhere(on, note, answered.request, failure));
        other.unwrap_or(Flow::Next)
    }

    /// Who has a session: the one that was asked, or another OCS that has answered in its place. A name that no pool has does
    /// not get sessions.
    fn server(&self, on: &On<'_, Self>, facts: &Facts, answered: &Answered<'_>) -> Party {
        let by = answered.answer.get(known::ORIGIN_HOST).ok().flatten();
        let by = by.unwrap_or_default();
        let asked = &facts.destination;
        let is_other = !by.eq_ignore_ascii_case(&asked.host);
        if is_other {
            on.count(Event::AnsweredElsewhere);
        }
        let host = if is_other && self.pools.has(by) {
            by
        } else {
            &asked.host
        };
        Party {
            host: host.to_owned(),
            realm: asked.realm.clone(),
        }
    }

    /// Writes a session that has begun. Its answer waits for that.
    fn keep<'a>(
        &'a self,
        on: &mut On<'_, Self>,
        note: Note,
        facts: Facts,
        answered: &Answered<'_>,
    ) -> Flow<'a> {
        let sessions = self.sessions();
        let server = self.server(on, &facts, answered);
        let pool = self.pools.holding(note.pool, &server.host);
        let session = ChargingSession {
            id: facts.session,
            client: facts.sender,
            server: server.clone(),
            pool: pool.map(|pool| pool.name.clone()).unwrap_or_default(),
            rule: note.rule.as_str().to_owned(),
            has_failover: failover(answered) == Some(true),
            began: sessions.now(),
            expires: 0,
        };
        let (shared, resume) = (self.shared.clone(), on.worker.resume.clone());
        let then = on.worker.resume.with(on.ticket, Found::Kept);
        let write = async move {
            let kept = sessions.keep(&session).await;
            let outcome = match &kept {
                Ok(Kept::Taken) => Outcome::Failed,
                // What is not written, the OCS has all the same.
                Ok(_) | Err(_) => Outcome::Kept(server),
            };
            // The answer goes on first, and then what waits for the session.
            then(kept);
            let now = std::time::Instant::now();
            let turns = shared.desk.settle(&session.id, note.token, outcome, now);
            Self::wake(&resume, turns);
        };
        self.write(on, note, write).unwrap_or_else(|| {
            self.end_failed(on, note, answered.request);
            if let Ok(facts) = Facts::read(answered.request) {
                self.settle(on, &facts.session, note.token, Outcome::Kept(facts.destination));
            }
            Self::failed(on)
        })
    }

    /// Does a write, for which an answer waits; none: too much is pending.
    fn write<'a>(
        &'a self,
        on: &mut On<'_, Self>,
        note: Note,
        write: impl Future<Output = ()> + Send + 'static,
    ) -> Option<Flow<'a>> {
        let note = Note {
            stage: Stage::Writes,
            ..note
        };
        note.write(on.memo);
        // As long as the transaction has time.
        self.shared.opened.start(write).then_some(Flow::Later(HOLD))
    }

    /// A session was written, or was not: then its client must not think that it is kept.
    pub(crate) fn kept<'a>(on: &On<'_, Self>, kept: Result<Kept, store::Error>) -> Flow<'a> {
        match kept {
            Ok(Kept::New) => on.count(Event::Kept),
            Ok(Kept::Taken) => {
                on.count(Event::Invalid);
                return Flow::refuse(taken());
            }
            Ok(_) => {}
            Err(_) => return Self::failed(on),
        }
        Flow::Next
    }

    /// The answer of an OCS to a request of a session.
    pub(crate) fn passed<'a>(
        &'a self,
        on: &mut On<'_, Self>,
        note: Note,
        answered: &Answered<'_>,
    ) -> Flow<'a> {
        let (Some(result), Ok(facts)) = (result(answered.answer), Facts::read(answered.request)) else {
            return Flow::Next;
        };
        if let Some(failure) = Failure::of(Some(result)) {
            let other = self.elsewhere(on, note, answered.request, failure);
            return other.unwrap_or(Flow::Next);
        }
        // RFC 8506 §7: the client gives its session up for any of them; what is transient it may try again.
        let is_end = note.stage == Stage::Ends && matches!(result.0 / 1000, 2 | 5);
        if is_end || result == ResultCode::UNKNOWN_SESSION_ID {
            self.end_for_client(on, &facts)
        } else if result.is_success() {
            self.change(on, note, facts, answered)
        } else {
            Flow::Next
        }
    }

    /// Writes what an answer changes of its session: who has it, and whether that may change. Mostly nothing.
    fn change<'a>(
        &'a self,
        on: &mut On<'_, Self>,
        note: Note,
        facts: Facts,
        answered: &Answered<'_>,
    ) -> Flow<'a> {
        let server = self.server(on, &facts, answered);
        let is_moved = note.rule == Rule::Moved || !server.host.eq_ignore_ascii_case(&facts.destination.host);
        let has_failover = failover(answered).filter(|has| *has != note.has_failover);
        if !is_moved && has_failover.is_none() {
            return Flow::Next;
        }
        let note = Note {
            rule: if is_moved { Rule::Moved } else { note.rule },
            ..note
        };
        let change = Change {
            moved: is_moved.then(|| (server, Rule::Moved.as_str().to_owned())),
            has_failover,
        };
        let (sessions, then) = (self.sessions(), on.worker.resume.with(on.ticket, Found::Changed));
        let write = async move { then(sessions.change(&facts.session, &change).await) };
        self.write(on, note, write).unwrap_or_else(|| Self::failed(on))
    }

    /// A session was changed.
    pub(crate) fn changed<'a>(
        on: &On<'_, Self>,
        note: Note,
        changed: Result<bool, store::Error>,
    ) -> Flow<'a> {
        match changed {
            Ok(_) => {
                if note.rule == Rule::Moved {
                    on.count(Event::Moved);
                }
                Flow::Next
            }
            Err(_) => Self::failed(on),
        }
    }

    /// The answer of a client to a request of the OCS: one that does not know its session has ended it. For a while it may not
    /// know of it yet.
    pub(crate) fn reported<'a>(&'a self, on: &mut On<'_, Self>, answered: &Answered<'_>) -> Flow<'a> {
        let is_unknown = result(answered.answer) == Some(ResultCode::UNKNOWN_SESSION_ID);
        let (true, Ok(facts)) = (is_unknown, Facts::read(answered.request)) else {
            return Flow::Next;
        };
        let is_ocs = self.pools.has(&facts.sender.host);
        let sender = facts.sender.host;
        let now = self.shared.opened.repository().now();
        self.end(on, facts.session, move |session| {
            let is_its = is_ocs || session.server.host.eq_ignore_ascii_case(&sender);
            is_its && now.saturating_sub(session.began) >= OVERTAKES
        })
    }

    /// Ends a session that its client has given up: another client may know its Session-Id.
    pub(crate) fn end_for_client<'a>(&'a self, on: &mut On<'_, Self>, facts: &Facts) -> Flow<'a> {
        let sender = facts.sender.host.clone();
        self.end(on, facts.session.clone(), move |session| session.is_of(&sender))
    }

    /// Ends a session, if `may` agrees. The answer goes on when that is done.
    fn end<'a>(
        &'a self,
        on: &mut On<'_, Self>,
        id: Vec<u8>,
        may: impl FnOnce(&ChargingSession) -> bool + Send + 'static,
    ) -> Flow<'a> {
        let note = Note {
            stage: Stage::Removes,
            ..Note::default()
        };
        note.write(on.memo);
        let sessions = self.sessions();
        let work = async move { sessions.end(&id, may).await };
        let then = on.worker.resume.with(on.ticket, Found::Removed);
        match self.shared.opened.begin(work, then) {
            Begun::Done(removed) => Self::removed(on, &removed),
            Begun::GoesOn => Flow::Later(PATIENCE),
            Begun::Refused => Self::not_removed(on),
        }
    }

    /// A session was removed, or was not that of the answer.
    pub(crate) fn removed<'a>(on: &On<'_, Self>, removed: &Result<bool, store::Error>) -> Flow<'a> {
        on.removed(removed, Event::Ended, Event::RepositoryFailed)
    }

    /// A session was not removed in time.
    pub(crate) fn not_removed<'a>(on: &On<'_, Self>) -> Flow<'a> {
        on.removed(&Err(()), Event::Ended, Event::RepositoryFailed)
    }
}

/// Whether an answer permits that another OCS takes its session over; none: it does not say.
fn failover(answered: &Answered<'_>) -> Option<bool> {
    let value = answered.answer.get(known::CC_SESSION_FAILOVER).ok().flatten()?;
    Some(value == FAILOVER_SUPPORTED)
}
