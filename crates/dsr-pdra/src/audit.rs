//! The audit: gateways of stale Gx and Gxx sessions are asked whether the session exists, by a RAR without rules (TS 29.212
//! §4.5.2.2 has the PCRF send one at any time). Worker 0 does so, at a bounded pace.

use std::sync::Arc;
use std::time::{Duration, Instant};

use diameter_proto::known::{self, application, command};
use diameter_proto::{CommandFlags, MessageBuilder, MessageMut, ResultCode};
use dsr_app::session::result;
use dsr_app::{Answered, Flow, Memo, On};
use sbr::{Congestion, Repository, Session};

use crate::events::Event;
use crate::facts::Facts;
use crate::note::{Note, Stage};
use crate::{GXX, Pdra};

/// Between two looks at what is stale: a second, so that the rate of the settings is that of a look.
pub(crate) const INTERVAL: Duration = Duration::from_secs(1);

/// AUTHORIZE_ONLY (RFC 6733 §8.12).
const AUTHORIZE_ONLY: i32 = 0;

/// How far the audit is.
#[derive(Debug, Default)]
pub(crate) struct Audit {
    /// What the last look has found; none: it has not come to an end, or there was none.
    found: Arc<parking_lot::Mutex<Option<Look>>>,
    is_looking: bool,
    /// Where the next look begins, in microseconds since 1970.
    from: u64,
    /// When the next round begins: a gateway that does not answer is asked once in a round.
    next_round: Option<Instant>,
}

/// Stale sessions.
#[derive(Debug, Default)]
struct Look {
    sessions: Vec<Session>,
    /// How many of them, about which no gateway is asked, were removed.
    removed: u64,
}

impl Audit {
    /// What the last look has found, once.
    fn take(&mut self, now: Instant, most: usize, round: Duration) -> Look {
        let Some(found) = self.found.lock().take() else {
            return Look::default();
        };
        self.is_looking = false;
        let sessions = &found.sessions;
        // A moment at which more sessions expire than a look finds is passed over until the next round.
        self.from = sessions
            .last()
            .map_or(0, |session| session.expires.saturating_add(1));
        if sessions.len() < most {
            (self.from, self.next_round) = (0, Some(now + round));
        }
        found
    }

    /// Whether a look may begin.
    fn may_look(&self, now: Instant) -> bool {
        !self.is_looking && (self.from > 0 || self.next_round.is_none_or(|next| next <= now))
    }
}

impl Pdra {
    /// A second has passed: asks about what the last look has found, and looks for more.
    pub(crate) fn audit(&self, on: &mut On<'_, Self>) {
        let settings = &self.settings.repository;
        let most = settings.audit_rate as usize;
        if most == 0 || on.ticket.worker != 0 {
            return;
        }
        if on.is_congested || self.shared.opened.congestion() > Congestion::None {
            return on.count(Event::AuditSuspended);
        }
        let round = settings.stale.duration() / 8;
        let found = on.worker.audit.take(on.now, most, round);
        on.counters.add(Event::AuditEnded, found.removed);
        for session in &found.sessions {
            Self::ask(on, session);
        }
        let audit = &mut on.worker.audit;
        if audit.may_look(on.now) {
            audit.is_looking = true;
            let (repository, from) = (self.shared.opened.repository().clone(), audit.from);
            let found = audit.found.clone();
            let look = async move {
                let look = look(&repository, from, most).await;
                *found.lock() = Some(look);
            };
            audit.is_looking = self.shared.opened.spawn(look);
        }
    }

    /// Asks the gateway of a stale session.
    fn ask(on: &mut On<'_, Self>, session: &Session) {
        let Some(request) = rar(session).filter(|_| is_asked_about(session)) else {
            return;
        };
        on.count(Event::Audited);
        let mut memo = Memo::default();
        let note = Note {
            stage: Stage::Asks,
            ..Note::default()
        };
        note.write(&mut memo);
        on.out.send(request, memo);
    }

    /// The answer of a gateway: the session exists, or does not. Any other leaves it until the next round.
    pub(crate) fn audited<'a>(&'a self, on: &mut On<'_, Self>, answered: &Answered<'_>) -> Flow<'a> {
        let Ok(facts) = Facts::of_session(answered.request) else {
            return Flow::Next;
        };
        // An agent between may not know it.
        let by = answered.answer.get(known::ORIGIN_HOST).ok().flatten();
        let is_gateway = by.is_some_and(|by| by.eq_ignore_ascii_case(&facts.destination_host));
        match result(answered.answer) {
            Some(code) if code.is_success() => self.touch(&facts.session),
            Some(ResultCode::UNKNOWN_SESSION_ID) if is_gateway => {
                let repository = self.shared.opened.repository().clone();
                let removal = async move { end_stale(&repository, &facts.session).await };
                return self.remove(on, Stage::Asks, removal);
            }
            _ => {}
        }
        Flow::Next
    }
}

/// Looks for stale sessions, and removes those about which no gateway is asked.
async fn look(repository: &Repository, from: u64, most: usize) -> Look {
    // What cannot be read or removed is found in the next round.
    let sessions = repository.stale(from, most).await.unwrap_or_default();
    let mut removed = 0;
    for session in sessions.iter().filter(|session| !is_asked_about(session)) {
        removed += u64::from(end_stale(repository, &session.id).await == Ok(true));
    }
    Look { sessions, removed }
}

/// Whether there is a gateway that is asked about a session.
fn is_asked_about(session: &Session) -> bool {
    matches!(session.application, application::GX | GXX) && str::from_utf8(&session.id).is_ok()
}

/// Ends a session unless it was used meanwhile. Whether it did.
async fn end_stale(repository: &Repository, id: &[u8]) -> Result<bool, store::Error> {
    Ok(repository.is_stale(id).await? && repository.end(id).await?)
}

/// A RAR without rules, as of the PCRF of the session (TS 29.212 §5.6.4): the gateway knows no other.
fn rar(session: &Session) -> Option<MessageMut> {
    let id = std::str::from_utf8(&session.id).ok()?;
    let (client, server) = (&session.client, &session.server);
    let mut builder = MessageBuilder::request(command::RE_AUTH, session.application);
    builder
        .put(known::SESSION_ID, id)
        .put(known::AUTH_APPLICATION_ID, session.application)
        .put(known::ORIGIN_HOST, server.host.as_str())
        .put(known::ORIGIN_REALM, server.realm.as_str())
        .put(known::DESTINATION_REALM, client.realm.as_str())
        .put(known::DESTINATION_HOST, client.host.as_str())
        .put(known::RE_AUTH_REQUEST_TYPE, AUTHORIZE_ONLY);
    let mut message = builder.finish().ok()?;
    message.set_flags(message.flags().with(CommandFlags::PROXIABLE));
    Some(message)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_round_begins_when_the_one_before_is_over_and_its_time_has_come() {
        let (mut audit, now) = (Audit::default(), Instant::now());
        let round = Duration::from_secs(60);
        let session = |expires| Session {
            expires,
            ..Session::default()
        };
        let find = |audit: &mut Audit, sessions: Vec<Session>| {
            *audit.found.lock() = Some(Look { sessions, removed: 0 });
            audit.is_looking = true;
        };
        assert!(audit.may_look(now) && audit.take(now, 2, round).sessions.is_empty());
        find(&mut audit, vec![session(5), session(7)]);
        assert!(!audit.may_look(now));
        assert_eq!(audit.take(now, 2, round).sessions.len(), 2);
        // There may be more.
        assert!(audit.may_look(now) && audit.from == 8);
        find(&mut audit, vec![session(9)]);
        assert_eq!(audit.take(now, 2, round).sessions.len(), 1);
        assert!(!audit.may_look(now) && audit.from == 0);
        assert!(audit.may_look(now + round));
    }
}
