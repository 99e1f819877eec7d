//! What became of a request that begins a session: written, tried elsewhere, given up.

use diameter_proto::{Message, ResultCode, known};
use dsr_app::session::{retransmission, taken};
use dsr_app::{Answered, Flow, Loss, Lost, On};
use sbr::pool::{choose, position};
use sbr::{Kept, Outcome, Party, Session};

use crate::begin::Beginning;
use crate::config::Rebind;
use crate::events::Event;
use crate::facts::Facts;
use crate::note::{Note, Rule, Stage};
use crate::{Found, Pdra};

/// Why another PCRF might do.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Failure {
    /// It did not get the request.
    Unreachable,
    /// It has too much to do: a subscriber without a session may go elsewhere.
    Busy,
    /// It may have got it.
    Unanswered,
}

impl Pdra {
    /// What the request that was sent says, which holds its subscriber under this token.
    fn sent(&self, request: &Message, token: u64) -> Option<Beginning<'_>> {
        self.held(Facts::read_sent(request)?, token)
    }

    /// The answer to a request that begins a session.
    pub(crate) fn begun<'a>(
        &'a self,
        on: &mut On<'_, Self>,
        note: Note,
        answered: &Answered<'_>,
    ) -> Flow<'a> {
        let Some(beginning) = self.sent(answered.request, note.token) else {
            return Flow::Next;
        };
        let result = answered.answer.get(known::RESULT_CODE).ok().flatten();
        match result.map(ResultCode) {
            Some(result) if result.is_success() => {
                let server = self.server(on, answered);
                let then = on.worker.resume.with(on.ticket, Found::Written);
                let is_moved = self.has_moved(note, &beginning, &server);
                let key = beginning.key.clone();
                let kept = self.keep(on, note, beginning, (server, is_moved), then);
                kept.unwrap_or_else(|| {
                    self.fail(on, &key, note.token);
                    self.end_failed(on, note, answered.request);
                    Self::failed(on)
                })
            }
            // It was not carried out, so that another PCRF may get it (RFC 6733 §7.1.3).
            Some(result @ (ResultCode::UNABLE_TO_DELIVER | ResultCode::TOO_BUSY)) => {
                let is_busy = result == ResultCode::TOO_BUSY;
                let failure = if is_busy {
                    Failure::Busy
                } else {
                    Failure::Unreachable
                };
                let elsewhere = self.elsewhere(on, note, &beginning, answered.request, failure);
                elsewhere.unwrap_or_else(|| {
                    self.suspect(on, answered.request, Some(result));
                    self.give_up(on, &beginning, note)
                })
            }
            result => {
                self.suspect(on, answered.request, result);
                self.give_up(on, &beginning, note)
            }
        }
    }

    fn give_up<'a>(&'a self, on: &On<'_, Self>, beginning: &Beginning<'_>, note: Note) -> Flow<'a> {
        self.fail(on, &beginning.key, note.token);
        Flow::Next
    }

    /// Whether a session is at another PCRF than its subscriber was, because that one has failed or has passed it on.
    fn has_moved(&self, note: Note, beginning: &Beginning<'_>, server: &Party) -> bool {
        let asked = &beginning.facts.destination_host;
        let is_passed_on = !asked.is_empty() && !server.host.eq_ignore_ascii_case(asked);
        let desk = &self.shared.desk;
        let follows_moved = note.rule == Rule::Early && desk.has_moved(&beginning.key, note.token);
        note.rule == Rule::Rebound || is_passed_on || follows_moved
    }

    /// Who serves a session: the one that was asked, or another PCRF that has answered in its place. A name that no pool has
    /// does not become a binding.
    pub(crate) fn server(&self, on: &On<'_, Self>, answered: &Answered<'_>) -> Party {
        let request = answered.request;
        let asked = request.get(known::DESTINATION_HOST).ok().flatten();
        let asked = asked.unwrap_or_default();
        let host = answered
            .answer
            .get(known::ORIGIN_HOST)
            .ok()
            .flatten()
            .unwrap_or_default();
        // A realm leads to the PCRF that was asked; what an answer says of its own is not checked by anything.
        let realm = request.get(known::DESTINATION_REALM).ok().flatten();
        let realm = realm.unwrap_or_default();
        let is_other = !host.eq_ignore_ascii_case(asked);
        if is_other && !asked.is_empty() {
            on.count(Event::AnsweredElsewhere);
        }
        let is_valid = !is_other || asked.is_empty() || self.pools.has(host);
        Party {
            host: if is_valid { host } else { asked }.to_owned(),
            realm: realm.to_owned(),
        }
    }

    /// Writes a session that has begun at this PCRF, to which its subscriber may have moved. Its answer waits for that, and goes on by
    /// `then`; none: it is not written, and its request has no outcome yet.
    pub(crate) fn keep<'a>(
        &'a self,
        on: &mut On<'_, Self>,
        note: Note,
        beginning: Beginning<'_>,
        (server, is_moved): (Party, bool),
        then: impl FnOnce(Result<Kept, store::Error>) + Send + 'static,
    ) -> Option<Flow<'a>> {
        let pool = beginning.pool_name();
        let Beginning { facts, key, .. } = beginning;
        let repository = self.shared.opened.repository().clone();
        let session = Session {
            id: facts.session.clone(),
            application: facts.application,
            client: facts.sender.clone(),
            server: server.clone(),
            apn: facts.apn.clone(),
            pool,
            rule: note.rule.as_str().to_owned(),
            binding: Some(facts.binding(key.clone())),
            began: repository.now(),
            expires: 0,
        };
        let (shared, resume) = (self.shared.clone(), on.worker.resume.clone());
        let write = async move {
            let kept = repository.keep_as(session, is_moved).await;
            let outcome = match &kept {
                Ok(Kept::New | Kept::Instead | Kept::Again | Kept::Readdressed) => Outcome::Kept(server),
                Ok(Kept::Full | Kept::Taken) | Err(_) => Outcome::Failed,
            };
            let now = std::time::Instant::now();
            let turns = shared.desk.settle(&key, note.token, outcome, now);
            Self::wake(&resume, turns);
            then(kept);
        };
        self.write(on, write)
    }

    /// Does a write, for which an answer waits; none: too much is pending.
    pub(crate) fn write<'a>(
        &'a self,
        on: &mut On<'_, Self>,
        write: impl Future<Output = ()> + Send + 'static,
    ) -> Option<Flow<'a>> {
        let note = Note {
            stage: Stage::Writes,
            rule: Note::read(on.memo).rule,
            ..Note::default()
        };
        note.write(on.memo);
        // As long as the transaction has time.
        let time = self.settings.repository.reservation.duration();
        self.shared.opened.start(write).then_some(Flow::Later(time))
    }

    /// A session was written, or was not: then its client must not think that it is kept.
    pub(crate) fn written<'a>(on: &On<'_, Self>, written: Result<Kept, store::Error>) -> Flow<'a> {
        let event = match written {
            Ok(Kept::New) => Event::Kept,
            Ok(Kept::Instead) => Event::KeptInstead,
            Ok(Kept::Again) => return Flow::Next,
            Ok(Kept::Readdressed) => Event::Readdressed,
            Ok(Kept::Full) => Event::Full,
            Ok(Kept::Taken) => {
                on.count(Event::Invalid);
                return Flow::refuse(taken());
            }
            Err(_) => return Self::failed(on),
        };
        on.count(event);
        Flow::Next
    }

    /// A request that begins a session got no answer.
    pub(crate) fn begin_lost<'a>(&'a self, on: &mut On<'_, Self>, note: Note, lost: &Lost<'_>) -> Flow<'a> {
        let Some(beginning) = self.sent(lost.request, note.token) else {
            return Flow::Next;
        };
        let failure = match lost.why {
            Loss::NoPeer => Failure::Unreachable,
            Loss::Timeout | Loss::Disconnected => Failure::Unanswered,
            Loss::Full | Loss::Dropped => return self.give_up(on, &beginning, note),
        };
        let elsewhere = self.elsewhere(on, note, &beginning, lost.request, failure);
        elsewhere.unwrap_or_else(|| {
            self.suspect(on, lost.request, Some(ResultCode::UNABLE_TO_DELIVER));
            self.give_up(on, &beginning, note)
        })
    }

    /// Sends a request to another PCRF of its pool, where the settings permit that and there is one.
    fn elsewhere<'a>(
        &'a self,
        on: &mut On<'_, Self>,
        note: Note,
        beginning: &Beginning<'_>,
        request: &Message,
        failure: Failure,
    ) -> Option<Flow<'a>> {
        let Beginning { facts, pool, key } = beginning;
        let failed = position(&pool.pcrfs, &facts.destination_host);
        let suspect = failed.and_then(|at| pool.pcrfs.get(at));
        if let Some(pcrf) = suspect.filter(|_| failure != Failure::Busy) {
            let until = on.now + self.settings.suspect.duration();
            on.worker.suspects.insert(pcrf.host.clone(), until);
        }
        let is_certain = || self.shared.desk.is_certain(key, note.token);
        let is_bound = match note.rule {
            Rule::Bound | Rule::Repeated => true,
            // One that follows has a PCRF to keep when that has a session of its subscriber.
            Rule::Early => is_certain(),
            _ => false,
        };
        let may_rebind = match failure {
            Failure::Busy => false,
            Failure::Unreachable => self.settings.rebind >= Rebind::Unreachable,
            Failure::Unanswered => self.settings.rebind >= Rebind::Unanswered,
        };
        if note.sent >= self.settings.attempts || (is_bound && !may_rebind) {
            return None;
        }
        let tried = note.tried | failed.map_or(0, |at| 1 << at);
        let (at, pcrf) = choose(
            &pool.pcrfs,
            &facts.subscriber(),
            tried,
            &on.worker.suspects,
            on.now,
        )?;
        on.count(if is_bound { Event::Rebound } else { Event::Again });
        let server = pcrf.party();
        let turns = self
            .shared
            .desk
            .decide(key, note.token, &server, false, self.follows());
        let is_moved = is_bound || note.rule == Rule::Rebound;
        if is_moved {
            self.shared.desk.moves(key, note.token);
        }
        Self::wake(&on.worker.resume, turns);
        self.shared
            .opened
            .begins_again(&facts.session, Some(server.host.as_bytes()));
        let note = Note {
            rule: if is_moved { Rule::Rebound } else { Rule::Further },
            sent: note.sent + 1,
            tried: tried | 1 << at,
            ..note
        };
        note.write(on.memo);
        // RFC 6733 §5.5.4: one that may have been carried out gets the T flag.
        match failure {
            Failure::Unreachable | Failure::Busy => Some(Flow::to(server.realm, server.host)),
            Failure::Unanswered => {
                let again = retransmission(request, &server.realm, &server.host)?;
                Some(Flow::Changed(again))
            }
        }
    }
}
