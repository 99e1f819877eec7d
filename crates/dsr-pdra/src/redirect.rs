//! The application as a redirect agent (TS 29.213 §7.4.2): it answers with the name of the PCRF, to which clients go themselves.
//!
//! It keeps a session of a gateway when it names the PCRF, and removes it when the gateway asks where to end it: what the PCRF
//! answers does not pass the router.

use diameter_proto::{CommandFlags, Fault, MessageBuilder, ResultCode, known};
use dsr_app::{Flow, On, Reply, Request};
use sbr::{Begun, Kept, Party, Session};

use crate::begin::Beginning;
use crate::config::Mode;
use crate::events::Event;
use crate::facts::Facts;
use crate::note::{Note, Rule, Stage};
use crate::within::note;
use crate::{Found, Pdra};

/// For which requests of its client an indication holds (Redirect-Host-Usage, RFC 6733 §6.13).
#[derive(Clone, Copy)]
enum Usage {
    /// For the one that is answered: a gateway asks again when it ends its session.
    DontCache,
    /// For all of its session, this number of seconds at most.
    AllSession(u32),
}

impl Pdra {
    pub(crate) fn redirects(&self) -> bool {
        self.settings.mode == Mode::Redirect
    }

    /// A request that begins a session has its PCRF: the client learns so when the session is written.
    pub(crate) fn redirect_session<'a>(
        &'a self,
        on: &mut On<'_, Self>,
        beginning: &Beginning<'_>,
        token: u64,
        rule: Rule,
        server: &Party,
    ) -> Flow<'a> {
        let note = Note {
            rule,
            token,
            ..Note::default()
        };
        let to = server.clone();
        let found = move |kept| Found::Redirected(to, kept);
        let then = on.worker.resume.with(on.ticket, found);
        let kept = self.keep(on, note, beginning.clone(), (server.clone(), false), then);
        kept.unwrap_or_else(|| {
            self.fail(on, &beginning.key, token);
            Self::failed(on)
        })
    }

    /// The session was written, or was not.
    pub(crate) fn redirected<'a>(
        on: &On<'_, Self>,
        request: &Request<'_>,
        server: &Party,
        kept: Result<Kept, store::Error>,
    ) -> Flow<'a> {
        match Self::written(on, kept) {
            Flow::Next => indicate(on, request, &server.host, Usage::DontCache),
            refused => refused,
        }
    }

    /// A request of an AF or TDF has its PCRF. Nothing is kept of its session, whose other requests need not come here.
    pub(crate) fn redirect_found<'a>(
        &'a self,
        on: &On<'_, Self>,
        request: &Request<'_>,
        server: &Party,
    ) -> Flow<'a> {
        let seconds = self.settings.repository.stale.duration().as_secs();
        let usage = Usage::AllSession(u32::try_from(seconds).unwrap_or(u32::MAX));
        indicate(on, request, &server.host, usage)
    }

    /// A request of a session that exists; none: it is not known. A PCRF that it names is where it goes then.
    pub(crate) fn redirect_within<'a>(
        &'a self,
        on: &mut On<'_, Self>,
        request: &Request<'_>,
        session: Option<Box<Session>>,
        is_end: bool,
    ) -> Flow<'a> {
        let Ok(facts) = Facts::of_session(request.message) else {
            return Self::unknown(on);
        };
        match session {
            Some(session) if is_end && session.is_of(facts.application, &facts.sender) => {
                self.leave(on, request, *session)
            }
            Some(session) => {
                self.touch_read(&session);
                indicate(on, request, &session.server.host, Usage::DontCache)
            }
            None if self.pools.has(&facts.destination_host) => {
                indicate(on, request, &facts.destination_host, Usage::DontCache)
            }
            None => Self::unknown(on),
        }
    }

    /// Removes a session whose client ends it at its PCRF.
    fn leave<'a>(&'a self, on: &mut On<'_, Self>, request: &Request<'_>, session: Session) -> Flow<'a> {
        note(on, Stage::Removes, Rule::default());
        let Session { id, server, .. } = session;
        let (repository, to) = (self.shared.opened.repository().clone(), server.clone());
        let then = on
            .worker
            .resume
            .with(on.ticket, move |removed| Found::Left(to, removed));
        let removal = async move { repository.end(&id).await };
        match self.shared.opened.begin(removal, then) {
            Begun::Done(removed) => Self::left(on, request, &server, &removed),
            Begun::GoesOn => Flow::Later(self.settings.wait.duration()),
            Begun::Refused => Self::failed(on),
        }
    }

    /// A session was removed, or is stale in time.
    pub(crate) fn left<'a>(
        on: &On<'_, Self>,
        request: &Request<'_>,
        server: &Party,
        removed: &Result<bool, store::Error>,
    ) -> Flow<'a> {
        match Self::removed(on, Stage::Removes, removed) {
            Flow::Next => indicate(on, request, &server.host, Usage::DontCache),
            refused => refused,
        }
    }
}

/// Answers with the PCRF to which the client sends its request again (RFC 6733 §6.1.8, §6.12 to §6.14). Its address has the default
/// port and transport (RFC 6733 §4.3.1).
fn indicate<'a>(on: &On<'_, Pdra>, request: &Request<'_>, host: &str, usage: Usage) -> Flow<'a> {
    let code = ResultCode::REDIRECT_INDICATION;
    let mut builder = MessageBuilder::answer(request.message);
    builder
        .result(code, request.names)
        .put(known::REDIRECT_HOST, &*format!("aaa://{host}"));
    match usage {
        Usage::DontCache => builder.put(known::REDIRECT_HOST_USAGE, 0),
        Usage::AllSession(seconds) => builder
            .put(known::REDIRECT_HOST_USAGE, 1)
            .put(known::REDIRECT_MAX_CACHE_TIME, seconds),
    };
    builder.copy_proxies(request.message);
    let flags = builder.flags_mut();
    *flags = flags.with(CommandFlags::ERROR);
    match builder.finish() {
        Ok(message) => {
            on.count(Event::Redirected);
            Flow::Reply(Reply {
                message,
                result: (0, code.0),
            })
        }
        Err(_) => {
            let why = "the answer gets too long";
            Flow::refuse(Fault::new(ResultCode::UNABLE_TO_COMPLY, why))
        }
    }
}
