//! What an OCS did not carry out: another one gets it, or none.
//!
//! A request that an OCS may have got is charged twice by two OCSs that do not know of each other. It goes to a second one only
//! where they do: by CC-Session-Failover of the session (RFC 8506 §5.7) or by `shared` of the pool. It has the T flag then, by
//! which the second one finds that it came before (RFC 8506 §7, RFC 6733 §3).

use diameter_proto::{Message, ResultCode, Routing, known};
use dsr_app::session::retransmission;
use dsr_app::{Flow, Loss, Lost, On};
use sbr::pool::{choose, position};
use sbr::{Outcome, Party};

use crate::Ocdra;
use crate::events::Event;
use crate::facts::{Facts, subscriber};
use crate::note::{Note, Rule, Stage};

/// Why an OCS did not carry a request out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Failure {
    /// It did not get it.
    Unreachable,
    /// It has too much to do (RFC 6733 §7.1.3).
    Busy,
    /// It may have got it.
    Unanswered,
    /// This router has too much to do: it was not sent.
    Full,
}

impl Failure {
    /// Of an answer that says so: what DIAMETER_UNABLE_TO_DELIVER and DIAMETER_TOO_BUSY answer was not carried out.
    pub(crate) fn of(result: Option<ResultCode>) -> Option<Self> {
        match result? {
            ResultCode::UNABLE_TO_DELIVER => Some(Self::Unreachable),
            ResultCode::TOO_BUSY => Some(Self::Busy),
            _ => None,
        }
    }
}

impl From<Loss> for Failure {
    fn from(why: Loss) -> Self {
        match why {
            Loss::NoPeer => Self::Unreachable,
            Loss::Full => Self::Full,
            // An application behind may have dropped an answer.
            Loss::Timeout | Loss::Disconnected | Loss::Dropped => Self::Unanswered,
        }
    }
}

impl Ocdra {
    /// A request to an OCS got no answer.
    pub(crate) fn unanswered<'a>(&'a self, on: &mut On<'_, Self>, note: Note, lost: &Lost<'_>) -> Flow<'a> {
        let failure = Failure::from(lost.why);
        if lost.why != Loss::Dropped
            && let Some(other) = self.elsewhere(on, note, lost.request, failure)
        {
            return other;
        }
        match (note.stage, Facts::read(lost.request)) {
            (Stage::Begins, Ok(facts)) => self.give_up(on, note, &facts, Some(failure)),
            _ => {
                Self::count_failure(on, note, failure);
                Flow::Next
            }
        }
    }

    /// A request that begins a session ends without one; those with its Session-Id go on. One that an OCS may have got stays
    /// with that OCS.
    pub(crate) fn give_up<'a>(
        &'a self,
        on: &On<'_, Self>,
        note: Note,
        facts: &Facts,
        failure: Option<Failure>,
    ) -> Flow<'a> {
        let may_have_it = failure == Some(Failure::Unanswered)
            || (failure.is_some() && (note.is_doubtful || note.has_session));
        let outcome = match may_have_it {
            true => Outcome::Doubtful(Party {
                host: facts.destination.host.clone(),
                realm: facts.destination.realm.clone(),
            }),
            false => Outcome::Failed,
        };
        if let Some(failure) = failure {
            Self::count_failure(on, note, failure);
        }
        self.settle(on, &facts.session, note.token, outcome);
        Flow::Next
    }

    fn count_failure(on: &On<'_, Self>, note: Note, failure: Failure) {
        match failure {
            Failure::Unanswered => on.count(Event::Doubtful),
            Failure::Unreachable if note.is_doubtful => on.count(Event::Doubtful),
            Failure::Unreachable if note.has_session => on.count(Event::Unreachable),
            Failure::Unreachable => on.count(Event::NoOcs),
            Failure::Busy | Failure::Full => {}
        }
    }

    /// Sends a request to another OCS of its pool, where that is permitted and there is one.
    pub(crate) fn elsewhere<'a>(
        &'a self,
        on: &mut On<'_, Self>,
        note: Note,
        request: &Message,
        failure: Failure,
    ) -> Option<Flow<'a>> {
        let asked = request.get(known::DESTINATION_HOST).ok().flatten();
        let asked = asked.unwrap_or_default();
        let pool = self.pools.holding(note.pool, asked)?;
        let failed = position(&pool.servers, asked);
        if matches!(failure, Failure::Unreachable | Failure::Unanswered)
            && let Some(server) = failed.and_then(|at| pool.servers.get(at))
        {
            let until = on.now + self.settings.suspect.duration();
            on.worker.suspects.insert(server.host.clone(), until);
        }
        let is_doubtful = note.is_doubtful || failure == Failure::Unanswered;
        let may_move = pool.shared || note.has_failover || !(note.has_session || is_doubtful);
        if !may_move || failure == Failure::Full || note.sent >= self.settings.attempts {
            return None;
        }
        let tried = note.tried | failed.map_or(0, |at| 1 << at);
        let routing = Routing::scan_as(request, |_| false).ok()?;
        let subscriber = subscriber(&routing);
        let (at, server) = choose(&pool.servers, &subscriber, tried, &on.worker.suspects, on.now)?;
        let flow = if is_doubtful {
            Flow::Changed(retransmission(request, &server.realm, &server.host)?)
        } else {
            Flow::to(server.realm.as_str(), server.host.as_str())
        };
        on.count(Event::Again);
        if note.stage == Stage::Begins
            && let Ok(facts) = Facts::read(request)
        {
            self.begins_again(&facts, &server.host, pool.shared);
        }
        let note = Note {
            rule: if note.has_session {
                Rule::Moved
            } else {
                Rule::Further
            },
            sent: note.sent + 1,
            tried: tried | 1 << at,
            is_doubtful,
            ..note
        };
        note.write(on.memo);
        Some(flow)
    }
}
