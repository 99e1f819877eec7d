//! Requests of sessions that exist: led by their Session-Id, whatever host they name.

use diameter_proto::{Fault, ResultCode};
use dsr_app::session::taken;
use dsr_app::{Flow, On, Request};
use sbr::{Begun, Change, ChargingSession, Congestion};

use crate::config::UnknownSession;
use crate::events::Event;
use crate::facts::Facts;
use crate::note::{Note, Stage};
use crate::{Found, Kind, Ocdra, PATIENCE, Recalled};

impl Ocdra {
    /// A request of a session has come.
    pub(crate) fn within<'a>(
        &'a self,
        on: &mut On<'_, Self>,
        request: &Request<'_>,
        is_of_server: bool,
    ) -> Result<Flow<'a>, Fault> {
        let facts = if is_of_server {
            Facts::read(request.message)?
        } else {
            Facts::of_ccr(request.message)?
        };
        Ok(self.recall(on, request, &facts, 0))
    }

    /// Looks for the session of a request, for the `looks`-th time.
    pub(crate) fn recall<'a>(
        &'a self,
        on: &mut On<'_, Self>,
        request: &Request<'_>,
        facts: &Facts,
        looks: u8,
    ) -> Flow<'a> {
        let note = Note {
            stage: Stage::Recalls,
            sent: looks,
            ..Note::default()
        };
        note.write(on.memo);
        match self.read_session(on, facts.session.clone(), Found::Recalled) {
            Begun::Done(found) => self.lead(on, request, facts, found),
            Begun::GoesOn => Flow::Later(PATIENCE),
            Begun::Refused => Self::failed(on),
        }
    }

    /// The repository has answered.
    pub(crate) fn recalled<'a>(
        &'a self,
        on: &mut On<'_, Self>,
        request: &Request<'_>,
        found: Recalled,
    ) -> Flow<'a> {
        match Facts::read(request.message) {
            Ok(facts) => self.lead(on, request, &facts, found),
            Err(fault) => Flow::refuse(fault),
        }
    }

    /// Sends a request to the other end of its session.
    fn lead<'a>(
        &'a self,
        on: &mut On<'_, Self>,
        request: &Request<'_>,
        facts: &Facts,
        found: Recalled,
    ) -> Flow<'a> {
        let Kind::Within { is_end, is_of_server } = Kind::of(request.message) else {
            return Flow::Next;
        };
        match found {
            Ok(Some(session)) if is_of_server => {
                self.touch(&session);
                let note = Note {
                    stage: Stage::OfServer,
                    ..Note::default()
                };
                note.write(on.memo);
                on.count(Event::Led);
                Flow::to(session.client.realm, session.client.host)
            }
            Ok(Some(session)) if !session.is_of(&facts.sender.host) => {
                on.count(Event::Invalid);
                Flow::refuse(taken())
            }
            Ok(Some(session)) => {
                self.touch(&session);
                let note = Note {
                    stage: if is_end { Stage::Ends } else { Stage::Within },
                    sent: 1,
                    has_session: true,
                    has_failover: session.has_failover,
                    ..Note::default()
                };
                let pool = self.pool_of(&session.pool, &facts.destination.realm);
                note.in_pool(pool, &session.server).write(on.memo);
                on.count(Event::Led);
                Flow::to(session.server.realm, session.server.host)
            }
            Ok(None) => self.unknown(on, request, facts),
            Err(_) => Self::failed(on),
        }
    }

    /// A request whose session is not there: a request of the OCS may overtake the answer by which it begins.
    fn unknown<'a>(&'a self, on: &mut On<'_, Self>, request: &Request<'_>, facts: &Facts) -> Flow<'a> {
        let note = Note::read(on.memo);
        if note.sent == 0 {
            return match self.shared.desk.wait(&facts.session, on.ticket, on.now) {
                Some(token) => Self::wait(on, token),
                // It may have begun since the repository was read.
                None => self.recall(on, request, facts, 1),
            };
        }
        on.count(Event::UnknownSession);
        match self.settings.unknown_session {
            UnknownSession::Answer => {
                let why = "the session is not known";
                Flow::refuse(Fault::new(ResultCode::UNKNOWN_SESSION_ID, why))
            }
            UnknownSession::Route => {
                Note::default().write(on.memo);
                Flow::Next
            }
        }
    }

    /// Notes the use of a session, where that was not written for long.
    fn touch(&self, session: &ChargingSession) {
        let opened = &self.shared.opened;
        if !opened.repository().is_due(session) || opened.congestion() > Congestion::None {
            return;
        }
        let (sessions, id) = (self.sessions(), session.id.clone());
        self.shared.opened.start(async move {
            // What fails, the next message notes.
            let _ = sessions.change(&id, &Change::default()).await;
        });
    }
}
