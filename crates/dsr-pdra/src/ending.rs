//! Sessions that end: the record goes before the answer that has ended the session.

use diameter_proto::{ResultCode, known};
use dsr_app::session::{OVERTAKES, result};
use dsr_app::{Answered, Flow, On};
use sbr::{Begun, Party, Repository, Session};

use crate::events::Event;
use crate::facts::Facts;
use crate::note::{Rule, Stage};
use crate::within::note;
use crate::{Found, Kind, Pdra};

impl Pdra {
    /// The answer to a request of a session: what has ended it ends the record too.
    pub(crate) fn passed<'a>(
        &'a self,
        on: &mut On<'_, Self>,
        stage: Stage,
        answered: &Answered<'_>,
    ) -> Flow<'a> {
        let Some(result) = result(answered.answer) else {
            return Flow::Next;
        };
        // The client of a session gives it up for any of them (RFC 8506 §7); what is transient it may try again.
        let has_ended = stage == Stage::Ends && matches!(result.0 / 1000, 2 | 5);
        if !has_ended && result != ResultCode::UNKNOWN_SESSION_ID {
            if matches!(
                Kind::of(answered.request),
                Kind::Within {
                    is_of_pcrf: false,
                    ..
                }
            ) {
                self.suspect(on, answered.request, Some(result));
            }
            return Flow::Next;
        }
        let Ok(facts) = Facts::of_session(answered.request) else {
            return Flow::Next;
        };
        self.remove_ended(on, stage, facts, answered)
    }

    /// Removes the session of a request, if its answer was between the ends of that.
    pub(crate) fn remove_ended<'a>(
        &'a self,
        on: &mut On<'_, Self>,
        stage: Stage,
        facts: Facts,
        answered: &Answered<'_>,
    ) -> Flow<'a> {
        let by = answered.answer.get(known::ORIGIN_HOST).ok().flatten();
        let by = by.unwrap_or_default().to_owned();
        let repository = self.shared.opened.repository().clone();
        self.remove(on, stage, async move { end(&repository, &facts, &by).await })
    }

    /// Removes the session of the answer at hand, which was at this stage. The answer goes on when that is done: what comes
    /// behind it finds the session no more.
    pub(crate) fn remove<'a>(
        &'a self,
        on: &mut On<'_, Self>,
        stage: Stage,
        removal: impl Future<Output = Result<bool, store::Error>> + Send + 'static,
    ) -> Flow<'a> {
        let stage = match stage {
            Stage::Asks => stage,
            stage if stage.comes_first() => Stage::Writes,
            _ => Stage::Removes,
        };
        note(on, stage, Rule::default());
        let then = on.worker.resume.with(on.ticket, Found::Removed);
        match self.shared.opened.begin(removal, then) {
            Begun::Done(removed) => Self::removed(on, stage, &removed),
            Begun::GoesOn => Flow::Later(self.settings.wait.duration()),
            Begun::Refused => Self::not_removed(on),
        }
    }

    /// A session was removed, or was not that of the answer.
    pub(crate) fn removed<'a>(
        on: &On<'_, Self>,
        stage: Stage,
        removed: &Result<bool, store::Error>,
    ) -> Flow<'a> {
        let ended = if stage == Stage::Asks {
            Event::AuditEnded
        } else {
            Event::Ended
        };
        on.removed(removed, ended, Event::RepositoryFailed)
    }

    /// A session was not removed in time.
    pub(crate) fn not_removed<'a>(on: &On<'_, Self>) -> Flow<'a> {
        on.removed(&Err(()), Event::Ended, Event::RepositoryFailed)
    }
}

/// Ends a session when the request and its answer are of its application and its two ends: others may know its Session-Id.
/// Whether it did.
async fn end(repository: &Repository, facts: &Facts, by: &str) -> Result<bool, store::Error> {
    match repository.session(&facts.session).await? {
        Some(session) if is_ended(&session, facts, by, repository.now()) => {
            repository.end_read(&session).await
        }
        _ => Ok(false),
    }
}

/// Whether the request with these facts, answered `by` a host, was between the ends of a session.
fn is_ended(session: &Session, facts: &Facts, by: &str, now: u64) -> bool {
    let is = |party: &Party, host: &str| party.host.eq_ignore_ascii_case(host);
    // A PCRF may answer by another name than the one it is asked by.
    let answers = |party: &Party| is(party, by) || is(party, &facts.destination_host);
    let of_client = is(&session.client, &facts.sender.host) && answers(&session.server);
    let of_server = is(&session.server, &facts.sender.host) && answers(&session.client);
    // A request of the PCRF may overtake the answer by which the client learns of the session.
    let is_known = now.saturating_sub(session.began) >= OVERTAKES;
    session.application == facts.application && (of_client || (of_server && is_known))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_is_ended_by_its_ends_alone() {
        let party = |host: &str| Party {
            host: host.to_owned(),
            realm: String::new(),
        };
        let session = Session {
            application: 1,
            client: party("pgw"),
            server: party("pcrf"),
            began: 1,
            ..Session::default()
        };
        let ended = |application, sender, asked: &str, by, now| {
            let facts = Facts {
                application,
                sender: party(sender),
                destination_host: asked.to_owned(),
                ..Facts::default()
            };
            is_ended(&session, &facts, by, now)
        };
        assert!(ended(1, "PGW", "", "pcrf", 1));
        assert!(ended(1, "pgw", "pcrf", "pcrf-of-two", 1));
        assert!(!ended(2, "pgw", "pcrf", "pcrf", 1));
        assert!(!ended(1, "af", "pcrf", "pcrf", 1));
        assert!(!ended(1, "pgw", "other", "other", 1));
        assert!(!ended(1, "pcrf", "pgw", "pgw", OVERTAKES));
        assert!(ended(1, "pcrf", "pgw", "pgw", OVERTAKES + 1));
        assert!(!ended(1, "other", "pgw", "pgw", OVERTAKES + 1));
    }
}
