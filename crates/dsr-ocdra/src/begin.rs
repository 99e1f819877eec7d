//! Requests that begin a session, and one-time events: the choice of an OCS.

use std::sync::Arc;

use diameter_proto::{Fault, ResultCode, Routing};
use dsr_app::session::taken;
use dsr_app::{Flow, On, Request};
use sbr::pool::{Server, Suspects, choose, position};
use sbr::{Begun, ChargingSession, Claim, Congestion, Outcome, Party, Turn};

use crate::config::Pool;
use crate::events::Event;
use crate::facts::{Facts, subscriber};
use crate::note::{Note, Rule, Stage};
use crate::{Found, Kind, Ocdra, PATIENCE, Recalled};

/// An OCS for a request.
pub(crate) struct Choice<'p> {
    pub(crate) pool: (u8, &'p Pool),
    position: usize,
    pub(crate) server: &'p Server,
    pub(crate) rule: Rule,
}

/// Why there is none.
pub(crate) const NO_POOL: &str = "no pool of OCSs serves this Destination-Realm";
pub(crate) const NO_SERVER: &str = "the pool has no OCS for new sessions";

impl Ocdra {
    /// A request that begins a session has come. Others with its Session-Id wait for its outcome, so that none of them is at
    /// another OCS.
    pub(crate) fn begin<'a>(
        &'a self,
        on: &mut On<'_, Self>,
        request: &Request<'_>,
    ) -> Result<Flow<'a>, Fault> {
        let facts = Facts::of_ccr(request.message)?;
        if self.shared.opened.congestion() == Congestion::Major {
            let why = "the repository has too much to do";
            return Ok(on.refuse(Event::Shed, ResultCode::TOO_BUSY, why));
        }
        let claim = self.shared.desk.claim(&facts.session, on.ticket, false, on.now);
        Ok(match claim {
            Claim::First(token) => self.look(on, request, &facts, token, None),
            Claim::Follow(token, server) => self.look(on, request, &facts, token, Some(server)),
            Claim::Wait(token) => Self::wait(on, token),
            Claim::Full => Self::crowded(on),
        })
    }

    /// A request waits for another with its Session-Id.
    pub(crate) fn wait<'a>(on: &mut On<'_, Self>, token: u64) -> Flow<'a> {
        let note = Note {
            stage: Stage::Waits,
            token,
            ticket: on.ticket,
            ..Note::default()
        };
        note.write(on.memo);
        Flow::Later(PATIENCE)
    }

    /// One that waited has its turn.
    pub(crate) fn take_turn<'a>(
        &'a self,
        on: &mut On<'_, Self>,
        request: &Request<'_>,
        turn: Turn,
    ) -> Flow<'a> {
        let Ok(facts) = Facts::read(request.message) else {
            return Flow::Next;
        };
        match (Kind::of(request.message), turn) {
            (Kind::Begins, Turn::First(token)) => self.look(on, request, &facts, token, None),
            (Kind::Begins, Turn::Follow(token, server)) => {
                self.look(on, request, &facts, token, Some(server))
            }
            (_, Turn::First(token) | Turn::Follow(token, _)) => {
                self.settle(on, &facts.session, token, Outcome::Failed);
                self.recall(on, request, &facts, 1)
            }
        }
    }

    /// A request goes to the OCS that has its session, or may have it from a request before.
    fn send_again<'a>(
        &'a self,
        on: &mut On<'_, Self>,
        token: u64,
        pool: Option<(u8, &Pool)>,
        kept: Option<&ChargingSession>,
        server: &Party,
    ) -> Flow<'a> {
        on.count(Event::Repeated);
        let note = Note {
            stage: Stage::Begins,
            rule: Rule::Repeated,
            sent: 1,
            has_session: true,
            is_kept: kept.is_some(),
            has_failover: kept.is_some_and(|session| session.has_failover),
            token,
            ..Note::default()
        };
        note.in_pool(pool, server).write(on.memo);
        Flow::to(server.realm.clone(), server.host.clone())
    }

    /// A request looks for its session: the first one with its Session-Id may come again after its answer (T flag, RFC 6733 §3), and
    /// one that follows another to an OCS may be of another client.
    fn look<'a>(
        &'a self,
        on: &mut On<'_, Self>,
        request: &Request<'_>,
        facts: &Facts,
        token: u64,
        server: Option<Arc<Party>>,
    ) -> Flow<'a> {
        let note = Note {
            stage: Stage::Looks,
            token,
            ..Note::default()
        };
        note.write(on.memo);
        let to = server.clone();
        match self.read_session(on, facts.session.clone(), |found| Found::Looked(found, to)) {
            Begun::Done(found) => self.place(on, request, facts, token, (found, server)),
            Begun::GoesOn => Flow::Later(PATIENCE),
            Begun::Refused => {
                self.settle(on, &facts.session, token, Outcome::Failed);
                Self::failed(on)
            }
        }
    }

    /// The repository has answered.
    pub(crate) fn looked<'a>(
        &'a self,
        on: &mut On<'_, Self>,
        request: &Request<'_>,
        token: u64,
        found: (Recalled, Option<Arc<Party>>),
    ) -> Flow<'a> {
        match Facts::read(request.message) {
            Ok(facts) => self.place(on, request, &facts, token, found),
            Err(fault) => Flow::refuse(fault),
        }
    }

    pub(crate) fn read_session(
        &self,
        on: &On<'_, Self>,
        id: Vec<u8>,
        then: impl FnOnce(Recalled) -> Found + Send + 'static,
    ) -> Begun<Recalled> {
        let sessions = self.sessions();
        let work = async move { Ok(sessions.session(&id).await?.map(Box::new)) };
        let then = on.worker.resume.with(on.ticket, then);
        self.shared.opened.begin(work, then)
    }

    /// Sends a request that begins a session to the OCS that has it already, to the one that another request with its Session-Id
    /// went to, or to one that is chosen.
    pub(crate) fn place<'a>(
        &'a self,
        on: &mut On<'_, Self>,
        request: &Request<'_>,
        facts: &Facts,
        token: u64,
        (found, server): (Recalled, Option<Arc<Party>>),
    ) -> Flow<'a> {
        let ended = match (found, server) {
            (Ok(Some(session)), _) if session.is_of(&facts.sender.host) => {
                let desk = &self.shared.desk;
                let turns = desk.decide(&facts.session, token, &session.server, true, false);
                Self::wake(&on.worker.resume, turns);
                let pool = self.pool_of(&session.pool, &facts.destination.realm);
                self.begins_again(facts, &session.server.host, shares(pool));
                return self.send_again(on, token, pool, Some(&session), &session.server);
            }
            (Ok(Some(_)), _) => {
                on.count(Event::Invalid);
                Flow::refuse(taken())
            }
            (Ok(None), Some(server)) => {
                let pool = self.pools.of(&facts.destination.realm);
                self.begins_again(facts, &server.host, shares(pool));
                return self.send_again(on, token, pool, None, &server);
            }
            (Ok(None), None) if self.shared.opened.repository().is_full() => {
                let why = "there are too many sessions";
                on.refuse(Event::Full, ResultCode::TOO_BUSY, why)
            }
            (Ok(None), None) => match self.choice(facts, request.view.routing, &on.worker.suspects, on.now) {
                Ok(choice) => {
                    self.begins_again(facts, &choice.server.host, choice.pool.1.shared);
                    return Self::send(on, Stage::Begins, token, &choice);
                }
                Err(why) => on.refuse(Event::NoOcs, ResultCode::UNABLE_TO_DELIVER, why),
            },
            (Err(_), _) => Self::failed(on),
        };
        self.settle(on, &facts.session, token, Outcome::Failed);
        ended
    }

    /// A one-time event has come: nothing is kept of it.
    pub(crate) fn event<'a>(
        &'a self,
        on: &mut On<'_, Self>,
        request: &Request<'_>,
    ) -> Result<Flow<'a>, Fault> {
        let facts = Facts::of_ccr(request.message)?;
        let choice = self.choice(&facts, request.view.routing, &on.worker.suspects, on.now);
        Ok(match choice {
            Ok(choice) => Self::send(on, Stage::Event, 0, &choice),
            Err(why) => on.refuse(Event::NoOcs, ResultCode::UNABLE_TO_DELIVER, why),
        })
    }

    /// The OCS for a new session or an event: the one that the request names, or one of the pool of its realm.
    pub(crate) fn choice(
        &self,
        facts: &Facts,
        routing: &Routing<'_>,
        suspects: &Suspects,
        now: std::time::Instant,
    ) -> Result<Choice<'_>, &'static str> {
        let (at, pool) = self.pools.of(&facts.destination.realm).ok_or(NO_POOL)?;
        let named = position(&pool.servers, &facts.destination.host);
        let named = named.and_then(|position| Some((position, pool.servers.get(position)?)));
        // What comes again goes where it went before, if that can be reached: suspicion does not count.
        let nothing = Suspects::new();
        let suspects = if facts.is_again { &nothing } else { suspects };
        let rule = if named.is_some() {
            Rule::Named
        } else {
            Rule::Weight
        };
        let chosen = named.or_else(|| choose(&pool.servers, &subscriber(routing), 0, suspects, now));
        let (position, server) = chosen.ok_or(NO_SERVER)?;
        Ok(Choice {
            pool: (at, pool),
            position,
            server,
            rule,
        })
    }

    fn send<'a>(on: &mut On<'_, Self>, stage: Stage, token: u64, choice: &Choice<'a>) -> Flow<'a> {
        on.count(Event::Chosen);
        let note = Note {
            stage,
            rule: choice.rule,
            sent: 1,
            pool: choice.pool.0,
            token,
            tried: 1 << choice.position,
            ..Note::default()
        };
        note.write(on.memo);
        Flow::to(choice.server.realm.as_str(), choice.server.host.as_str())
    }

    /// The pool of a session, by its name; where a reload has taken that away, the one of its realm.
    pub(crate) fn pool_of(&self, name: &str, realm: &str) -> Option<(u8, &Pool)> {
        self.pools.named(name).or_else(|| self.pools.of(realm))
    }
}

/// Whether the OCSs of a pool share their sessions.
fn shares(pool: Option<(u8, &Pool)>) -> bool {
    pool.is_some_and(|(_, pool)| pool.shared)
}
