//! Requests of AFs and TDFs, which find the PCRF of their subscriber, and requests of sessions that exist.

use std::sync::Arc;

use diameter_proto::known::{self, application};
use diameter_proto::{Fault, ResultCode};
use dsr_app::session::session_id;
use dsr_app::{Answered, Flow, Loss, Lost, On, Request};
use sbr::{Begun, Congestion, MAX_SESSION_ID, Party, Repository, Session};

use crate::config::{Key, Mode, NotFound};
use crate::domains::Domains;
use crate::events::Event;
use crate::facts::Facts;
use crate::note::{Note, Rule, Stage};
use crate::{Correlated, Found, Kind, Pdra, report};

/// NO_STATE_MAINTAINED (RFC 6733 §8.11): such as an AAR for P-CSCF restoration (TS 29.214 §4.4.7).
const NO_STATE_MAINTAINED: i32 = 1;

impl Pdra {
    /// A request of an AF or TDF has come.
    pub(crate) fn find<'a>(
        &'a self,
        on: &mut On<'_, Self>,
        request: &Request<'_>,
    ) -> Result<Flow<'a>, Fault> {
        let facts = Facts::read(request.message, request.view)?;
        note(on, Stage::Searches, Rule::default());
        let repository = self.shared.opened.repository().clone();
        let work = correlate(
            repository,
            facts,
            self.settings.keys.clone(),
            self.domains.clone(),
        );
        let then = on.worker.resume.with(on.ticket, Found::Correlated);
        Ok(match self.shared.opened.begin(work, then) {
            Begun::Done(found) => self.correlated(on, request, found),
            Begun::GoesOn => Flow::Later(self.settings.wait.duration()),
            Begun::Refused => Self::failed(on),
        })
    }

    /// The repository has answered.
    pub(crate) fn correlated<'a>(
        &'a self,
        on: &mut On<'_, Self>,
        request: &Request<'_>,
        found: Result<Option<Correlated>, store::Error>,
    ) -> Flow<'a> {
        let named = request.view.routing.destination_host;
        let has_host = named.is_some();
        let server = match &found {
            Ok(Some(Correlated::Own(session) | Correlated::Other { session, .. })) => {
                Some(session.server.host.as_bytes())
            }
            _ => named,
        };
        let session = request.view.routing.session_id.unwrap_or_default();
        self.shared.opened.begins_again(session, server);
        match found {
            Ok(Some(Correlated::Own(session))) => {
                note(on, Stage::Within, Rule::default());
                self.touch_read(&session);
                if self.redirects() {
                    self.redirect_found(on, request, &session.server)
                } else if has_host {
                    Flow::Next
                } else {
                    to(&session.server)
                }
            }
            Ok(Some(Correlated::Other {
                session,
                key,
                is_ambiguous,
            })) => {
                on.count(Event::Correlated);
                if is_ambiguous {
                    on.count(Event::Ambiguous);
                }
                let rule = match key {
                    Key::Ipv6 => Rule::Ipv6,
                    Key::Ipv4 => Rule::Ipv4,
                    Key::Msisdn => Rule::Msisdn,
                    Key::Imsi => Rule::Imsi,
                };
                note(on, Stage::Found, rule);
                if self.redirects() {
                    self.redirect_found(on, request, &session.server)
                } else {
                    to(&session.server)
                }
            }
            Ok(None) => {
                on.count(Event::NotFound);
                // Of a session from before, whose PCRF the AF knows.
                note(on, Stage::Found, Rule::Named);
                match &self.settings.on_not_found {
                    NotFound::Answer(answer) if !has_host => Flow::refuse(answer.fault()),
                    NotFound::Answer(_) | NotFound::Route => Flow::Next,
                }
            }
            Err(_) => Self::failed(on),
        }
    }

    /// The answer to a request of an AF or TDF that begins its session.
    pub(crate) fn found<'a>(
        &'a self,
        on: &mut On<'_, Self>,
        note: Note,
        answered: &Answered<'_>,
    ) -> Flow<'a> {
        match self.begun_at_client(answered) {
            Some(facts) => {
                let (client, server) = (facts.sender.clone(), self.server(on, answered));
                self.keep_unbound(on, facts, client, server, note.rule)
            }
            None => {
                let result = answered.answer.get(known::RESULT_CODE).ok().flatten();
                self.suspect(on, answered.request, result.map(ResultCode));
                Flow::Next
            }
        }
    }

    /// A request of a PCRF that begins a session at a TDF has come.
    pub(crate) fn open_at_tdf<'a>(
        &'a self,
        on: &mut On<'_, Self>,
        request: &Request<'_>,
    ) -> Result<Flow<'a>, Fault> {
        Facts::of_session(request.message)?;
        note(on, Stage::Opens, Rule::Opened);
        Ok(Flow::Next)
    }

    /// The answer to a request of a PCRF that begins a session at a TDF (TS 29.212 §4b.5.1): the TDF is the client of what
    /// follows.
    pub(crate) fn opened<'a>(&'a self, on: &mut On<'_, Self>, answered: &Answered<'_>) -> Flow<'a> {
        let Some(facts) = self.begun_at_client(answered) else {
            return Flow::Next;
        };
        let text = |value: Result<Option<&str>, Fault>| value.ok().flatten().unwrap_or_default().to_owned();
        let client = Party {
            host: text(answered.answer.get(known::ORIGIN_HOST)),
            realm: text(answered.answer.get(known::ORIGIN_REALM)),
        };
        let server = facts.sender.clone();
        self.keep_unbound(on, facts, client, server, Rule::Opened)
    }

    /// The session of an AF or a TDF that an answer has begun; none: it was refused, or no state of it is kept. With PA2 its end
    /// passes the router by.
    fn begun_at_client(&self, answered: &Answered<'_>) -> Option<Facts> {
        let is_kept = answered.answer.get(known::AUTH_SESSION_STATE) != Ok(Some(NO_STATE_MAINTAINED));
        let result = answered.answer.get(known::RESULT_CODE).ok().flatten()?;
        let has_begun = ResultCode(result).is_success() && is_kept && self.settings.mode == Mode::Pa1;
        has_begun.then(|| Facts::of_session(answered.request).ok())?
    }

    /// Writes a session that binds no subscriber. Its answer waits for that.
    fn keep_unbound<'a>(
        &'a self,
        on: &mut On<'_, Self>,
        facts: Facts,
        client: Party,
        server: Party,
        rule: Rule,
    ) -> Flow<'a> {
        let repository = self.shared.opened.repository().clone();
        let session = Session {
            id: facts.session,
            application: facts.application,
            client,
            server,
            rule: rule.as_str().to_owned(),
            began: repository.now(),
            ..Session::default()
        };
        let then = on.worker.resume.with(on.ticket, Found::Written);
        let write = async move { then(repository.keep(session).await) };
        self.write(on, write).unwrap_or_else(|| Self::failed(on))
    }

    /// A request of an AF or TDF got no answer.
    pub(crate) fn find_lost<'a>(&'a self, on: &mut On<'_, Self>, lost: &Lost<'_>) -> Flow<'a> {
        if !matches!(lost.why, Loss::NoPeer | Loss::Timeout | Loss::Disconnected) {
            return Flow::Next;
        }
        on.count(Event::Unreachable);
        self.suspect(on, lost.request, Some(ResultCode::UNABLE_TO_DELIVER));
        match &self.settings.on_unreachable {
            Some(answer) => Flow::refuse(answer.fault()),
            None => Flow::Next,
        }
    }

    /// A request of a session got no answer.
    pub(crate) fn within_lost<'a>(&'a self, on: &On<'_, Self>, lost: &Lost<'_>) -> Flow<'a> {
        let is_of_client = matches!(
            Kind::of(lost.request),
            Kind::Within {
                is_of_pcrf: false,
                ..
            }
        );
        if is_of_client && matches!(lost.why, Loss::NoPeer | Loss::Timeout | Loss::Disconnected) {
            self.suspect(on, lost.request, Some(ResultCode::UNABLE_TO_DELIVER));
        }
        Flow::Next
    }

    /// A request of a session has come. One that names a host goes there (TS 29.213 §7.4.1), the others to the peer of their
    /// session.
    pub(crate) fn within<'a>(
        &'a self,
        on: &mut On<'_, Self>,
        request: &Request<'_>,
        is_end: bool,
        is_of_pcrf: bool,
    ) -> Result<Flow<'a>, Fault> {
        let session = session_id(request.message, MAX_SESSION_ID)?;
        if report::is_report(request, is_end || is_of_pcrf) {
            Facts::read(request.message, request.view)?;
        }
        // A TDF answers the request by which a PCRF begins their session, and may go on at once.
        let may_overtake = is_of_pcrf || request.message.application() == application::SD;
        let behind = may_overtake.then(|| self.behind_answer(on, session));
        Ok(match behind.flatten() {
            Some(flow) => flow,
            None => self.go_within(on, request, session, is_end, is_of_pcrf),
        })
    }

    /// A request of a session goes on.
    pub(crate) fn go_within<'a>(
        &'a self,
        on: &mut On<'_, Self>,
        request: &Request<'_>,
        session: &[u8],
        is_end: bool,
        is_of_pcrf: bool,
    ) -> Flow<'a> {
        let is_led = self.redirects() && !is_of_pcrf;
        if request.view.routing.destination_host.is_some() && !is_led {
            note(on, stage(request, is_end, is_of_pcrf), Rule::default());
            if !is_end && !is_of_pcrf && !self.shared.opened.repository().was_used(session) {
                self.touch(session);
            }
            return Flow::Next;
        }
        note(on, Stage::Recalls, Rule::default());
        let (repository, id) = (self.shared.opened.repository().clone(), session.to_vec());
        let work = async move { Ok(repository.session(&id).await?.map(Box::new)) };
        let then = on.worker.resume.with(on.ticket, Found::Recalled);
        match self.shared.opened.begin(work, then) {
            Begun::Done(session) => self.lead_within(on, request, session, is_end, is_of_pcrf),
            Begun::GoesOn => Flow::Later(self.settings.wait.duration()),
            Begun::Refused => Self::failed(on),
        }
    }

    /// A request has waited for the answer before it, or for too long.
    pub(crate) fn in_order<'a>(&'a self, on: &mut On<'_, Self>, request: &Request<'_>) -> Flow<'a> {
        match (
            Kind::of(request.message),
            session_id(request.message, MAX_SESSION_ID),
        ) {
            (Kind::Within { is_end, is_of_pcrf }, Ok(session)) => {
                self.go_within(on, request, session, is_end, is_of_pcrf)
            }
            (_, Err(fault)) => Flow::refuse(fault),
            _ => Flow::Next,
        }
    }

    /// The repository has answered.
    pub(crate) fn recalled<'a>(
        &'a self,
        on: &mut On<'_, Self>,
        request: &Request<'_>,
        session: Result<Option<Box<Session>>, store::Error>,
    ) -> Flow<'a> {
        match Kind::of(request.message) {
            Kind::Within { is_end, is_of_pcrf } => self.lead_within(on, request, session, is_end, is_of_pcrf),
            _ => Flow::Next,
        }
    }

    /// A request of a session goes to the peer of that.
    fn lead_within<'a>(
        &'a self,
        on: &mut On<'_, Self>,
        request: &Request<'_>,
        session: Result<Option<Box<Session>>, store::Error>,
        is_end: bool,
        is_of_pcrf: bool,
    ) -> Flow<'a> {
        match session {
            Ok(session) if self.redirects() && !is_of_pcrf => {
                self.redirect_within(on, request, session, is_end)
            }
            Ok(Some(session)) => {
                note(on, stage(request, is_end, is_of_pcrf), Rule::default());
                self.touch_read(&session);
                to(if is_of_pcrf {
                    &session.client
                } else {
                    &session.server
                })
            }
            Ok(None) => Self::unknown(on),
            Err(_) => Self::failed(on),
        }
    }

    pub(crate) fn unknown<'a>(on: &On<'_, Self>) -> Flow<'a> {
        let why = "the session is not known, and the request names no host";
        on.refuse(Event::UnknownSession, ResultCode::UNKNOWN_SESSION_ID, why)
    }

    /// Notes the use of a session that was read, where that was not written for long.
    pub(crate) fn touch_read(&self, session: &Session) {
        if self.shared.opened.repository().is_due(session) {
            self.touch(&session.id);
        }
    }

    /// Notes the use of a session.
    pub(crate) fn touch(&self, id: &[u8]) {
        if self.shared.opened.congestion() > Congestion::None {
            return;
        }
        let (repository, id) = (self.shared.opened.repository().clone(), id.to_vec());
        // Mostly it is a read that shows nothing to be due. What fails, the next message notes.
        self.shared
            .opened
            .begin(async move { repository.touch(&id).await }, |_| ());
    }
}

/// How far a request of a session is when it is sent.
fn stage(request: &Request<'_>, is_end: bool, is_of_pcrf: bool) -> Stage {
    if is_end {
        Stage::Ends
    } else if report::is_report(request, is_of_pcrf) {
        Stage::Reports
    } else {
        Stage::Within
    }
}

pub(crate) fn note(on: &mut On<'_, Pdra>, stage: Stage, rule: Rule) {
    let note = Note {
        stage,
        rule,
        ..Note::default()
    };
    note.write(on.memo);
}

fn to<'a>(party: &Party) -> Flow<'a> {
    Flow::to(party.realm.clone(), party.host.clone())
}

/// The session that a request is of, or else that of its subscriber.
pub(crate) async fn correlate(
    repository: Repository,
    facts: Facts,
    keys: Vec<Key>,
    domains: Arc<Domains>,
) -> Result<Option<Correlated>, store::Error> {
    let own = repository.session(&facts.session).await?;
    if let Some(session) = own.filter(|session| session.application == facts.application) {
        return Ok(Some(Correlated::Own(Box::new(session))));
    }
    for key in keys {
        let mut fitting = by_key(&repository, &facts, key).await?;
        fitting.retain(|session| facts.fits(session, domains.of(session)));
        let likeness = |session: &Session| facts.likeness(session, domains.of(session));
        // Of those that are as like, the newest one, which is the first.
        let Some(most) = fitting.iter().map(&likeness).max() else {
            continue;
        };
        let mut fitting = fitting.into_iter().filter(|session| likeness(session) == most);
        let Some(session) = fitting.next() else { continue };
        let is_ambiguous = fitting.any(|other| other.server.host != session.server.host);
        let session = Box::new(session);
        return Ok(Some(Correlated::Other {
            session,
            key,
            is_ambiguous,
        }));
    }
    Ok(None)
}

async fn by_key(repository: &Repository, facts: &Facts, key: Key) -> Result<Vec<Session>, store::Error> {
    match key {
        Key::Ipv6 => match facts.prefixes.first() {
            Some(prefix) => repository.by_prefix(prefix).await,
            None => Ok(Vec::new()),
        },
        Key::Ipv4 => match facts.ipv4 {
            Some(address) => repository.by_ipv4(address).await,
            None => Ok(Vec::new()),
        },
        Key::Msisdn if !facts.msisdn.is_empty() => repository.by_msisdn(&facts.msisdn).await,
        Key::Imsi if !facts.imsi.is_empty() => repository.by_imsi(&facts.imsi).await,
        Key::Msisdn | Key::Imsi => Ok(Vec::new()),
    }
}
