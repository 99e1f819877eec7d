//! Requests that begin a session for which a PCRF may be chosen (Gx, Gxx, S9): claim, choice, sending.

use std::sync::Arc;

use diameter_proto::{Fault, ResultCode};
use dsr_app::session::taken;
use dsr_app::{Flow, On, Request};
use sbr::pool::{choose, position};
use sbr::{Begun, Claim, Congestion, Outcome, Party, Reserved, Turn, binding_key};

use crate::config::{Early, Pool};
use crate::events::Event;
use crate::facts::Facts;
use crate::note::{Note, Rule, Stage};
use crate::{Found, Pdra};

/// A request on its way to a PCRF, as all steps need it.
#[derive(Clone, Debug)]
pub(crate) struct Beginning<'p> {
    pub(crate) facts: Facts,
    pub(crate) pool: &'p Pool,
    /// At the desk and in the repository.
    pub(crate) key: Vec<u8>,
}

/// In place of a token: the request repeats one whose session is kept, and holds its subscriber at no desk.
const NO_TOKEN: u64 = 0;

/// A pool that a reload has removed: no PCRF of it is chosen any more.
static REMOVED: Pool = Pool {
    name: String::new(),
    apns: Vec::new(),
    pcrfs: Vec::new(),
};

impl Beginning<'_> {
    /// The name of its pool, which may be removed.
    pub(crate) fn pool_name(&self) -> String {
        let subscriber = self.facts.subscriber();
        let name = self.key.strip_prefix(&*subscriber);
        let name = name.and_then(|name| name.strip_prefix(b"/")).unwrap_or_default();
        String::from_utf8_lossy(name).into_owned()
    }
}

impl Pdra {
    /// The subscriber of a request and its pool; no pool: none serves the APN.
    pub(crate) fn beginning(&self, facts: Facts) -> Option<Beginning<'_>> {
        let (pool, key) = self.place_of(&facts)?;
        Some(Beginning { facts, pool, key })
    }

    /// The pool of a request, and its key there.
    fn place_of(&self, facts: &Facts) -> Option<(&Pool, Vec<u8>)> {
        let pool = self.pools.of(&facts.apn)?;
        Some((pool, binding_key(&facts.subscriber(), &pool.name)))
    }

    /// A request that holds its subscriber at the desk under this token. A reload may have led its APN to another pool, or to none:
    /// it has the pool that it came with.
    pub(crate) fn held(&self, facts: Facts, token: u64) -> Option<Beginning<'_>> {
        let desk = &self.shared.desk;
        let now = self.place_of(&facts);
        let is_held = |key: &[u8]| token == NO_TOKEN || desk.has(key, token);
        let key = match &now {
            Some((_, key)) if is_held(key) => None,
            _ if token == NO_TOKEN => None,
            _ => desk.key_of(token),
        };
        let Some(key) = key else {
            return now.map(|(pool, key)| Beginning { facts, pool, key });
        };
        let mut before = Beginning {
            facts,
            pool: &REMOVED,
            key,
        };
        before.pool = self.pools.named(&before.pool_name()).unwrap_or(&REMOVED);
        Some(before)
    }

    pub(crate) fn follows(&self) -> bool {
        self.settings.early == Early::Follow
    }

    /// A request that begins a session has come.
    pub(crate) fn begin<'a>(
        &'a self,
        on: &mut On<'_, Self>,
        request: &Request<'_>,
    ) -> Result<Flow<'a>, Fault> {
        let facts = Facts::read(request.message, request.view)?;
        let Some(beginning) = self.beginning(facts) else {
            return Ok(Self::without_pool(on));
        };
        if self.shared.opened.congestion() == Congestion::Major {
            let why = "the repository has too much to do";
            return Ok(on.refuse(Event::Shed, ResultCode::TOO_BUSY, why));
        }
        let claim = self
            .shared
            .desk
            .claim(&beginning.key, on.ticket, self.follows(), on.now);
        Ok(match claim {
            Claim::First(token) => self.look(on, &beginning, token, None),
            Claim::Follow(token, server) => {
                on.count(Event::Followed);
                self.look(on, &beginning, token, Some(server))
            }
            Claim::Wait(token) => {
                on.count(Event::Waited);
                let note = Note {
                    stage: Stage::Waits,
                    token,
                    ticket: on.ticket,
                    ..Note::default()
                };
                note.write(on.memo);
                Flow::Later(self.settings.wait.duration())
            }
            Claim::Full => {
                let why = "too many requests of this subscriber wait";
                on.refuse(Event::Crowded, ResultCode::TOO_BUSY, why)
            }
        })
    }

    /// One that waited has its turn.
    pub(crate) fn take_turn<'a>(
        &'a self,
        on: &mut On<'_, Self>,
        request: &Request<'_>,
        turn: Turn,
    ) -> Flow<'a> {
        let (token, chosen) = match turn {
            Turn::First(token) => (token, None),
            Turn::Follow(token, server) => (token, Some(server)),
        };
        match self.again(request, token) {
            Some(beginning) => self.look(on, &beginning, token, chosen),
            None => Self::without_pool(on),
        }
    }

    /// What was read of a request when it came.
    fn again(&self, request: &Request<'_>, token: u64) -> Option<Beginning<'_>> {
        self.held(Facts::read(request.message, request.view).ok()?, token)
    }

    /// One that waited for too long gives up.
    pub(crate) fn gave_up<'a>(
        &'a self,
        on: &mut On<'_, Self>,
        request: &Request<'_>,
        note: Note,
    ) -> Flow<'a> {
        self.withdraw(on, request, note);
        let why = "another request of this subscriber has no answer yet";
        on.refuse(Event::Crowded, ResultCode::TOO_BUSY, why)
    }

    /// One that waited waits no longer.
    pub(crate) fn withdraw(&self, on: &On<'_, Self>, request: &Request<'_>, note: Note) {
        let key = self.again(request, note.token).map(|beginning| beginning.key);
        let still_waits = key.is_none_or(|key| self.shared.desk.withdraw(&key, note.token, note.ticket));
        if !still_waits {
            // Its turn has come and not reached it.
            self.settle_failed(on, request, note.token);
        }
    }

    /// A request without a session ends; the next one of its subscriber has its turn.
    pub(crate) fn settle_failed(&self, on: &On<'_, Self>, request: &Request<'_>, token: u64) {
        if let Some(beginning) = self.again(request, token) {
            self.fail(on, &beginning.key, token);
        }
    }

    /// As [`Pdra::settle_failed`].
    pub(crate) fn fail(&self, on: &On<'_, Self>, key: &[u8], token: u64) {
        if token == NO_TOKEN {
            return;
        }
        let turns = self.shared.desk.settle(key, token, Outcome::Failed, on.now);
        // Others of the subscriber go on under the same reservation.
        if !self.shared.desk.has(key, token) {
            let (repository, key) = (self.shared.opened.repository().clone(), key.to_vec());
            self.shared.opened.start(async move {
                // Else it ends by its time.
                let _ = repository.release(&key).await;
            });
        }
        Self::wake(&on.worker.resume, turns);
    }

    /// Asks for sessions that exist: the first one of its subscriber for all of them, one that follows to the `chosen` server for
    /// that of its Session-Id.
    fn look<'a>(
        &'a self,
        on: &mut On<'_, Self>,
        beginning: &Beginning<'_>,
        token: u64,
        chosen: Option<Arc<Party>>,
    ) -> Flow<'a> {
        let note = Note {
            stage: Stage::Looks,
            token,
            ..Note::default()
        };
        note.write(on.memo);
        let repository = self.shared.opened.repository().clone();
        let (id, key) = (beginning.facts.session.clone(), beginning.key.clone());
        let (application, client) = (beginning.facts.application, beginning.facts.sender.clone());
        let patience = self.settings.wait.duration();
        let work = async move {
            // A request that comes again after its answer (RFC 6733 §3, T flag), or twice.
            if let Some(session) = repository.session(&id).await? {
                return Ok(match session.binds(application, &client, Some(&key)) {
                    true => Reserved::Bound(Box::new(session)),
                    false => Reserved::Taken,
                });
            }
            if repository.is_full() {
                return Ok(Reserved::Full);
            }
            if let Some(server) = chosen {
                return Ok(Reserved::Chosen(server));
            }
            repository.reserve(&key, patience).await
        };
        let then = on.worker.resume.with(on.ticket, Found::Reserved);
        match self.shared.opened.begin(work, then) {
            Begun::Done(reserved) => self.place(on, beginning, token, reserved),
            // Beyond the wait for another router: the database answers as well.
            Begun::GoesOn => Flow::Later(patience * 2),
            Begun::Refused => {
                self.fail(on, &beginning.key, token);
                Self::failed(on)
            }
        }
    }

    /// The repository has answered.
    pub(crate) fn reserved<'a>(
        &'a self,
        on: &mut On<'_, Self>,
        request: &Request<'_>,
        token: u64,
        reserved: Result<Reserved, store::Error>,
    ) -> Flow<'a> {
        match self.again(request, token) {
            Some(beginning) => self.place(on, &beginning, token, reserved),
            None => Self::without_pool(on),
        }
    }

    fn place<'a>(
        &'a self,
        on: &mut On<'_, Self>,
        beginning: &Beginning<'_>,
        token: u64,
        reserved: Result<Reserved, store::Error>,
    ) -> Flow<'a> {
        let Beginning { facts, pool, key } = beginning;
        match reserved {
            Ok(Reserved::Bound(session)) if session.id == facts.session => {
                on.count(Event::Bound);
                // Others of the subscriber do not follow it: the binding may have moved since the session began.
                let turns = self.shared.desk.settle(key, token, Outcome::Failed, on.now);
                Self::wake(&on.worker.resume, turns);
                let tried = position(&pool.pcrfs, &session.server.host).map_or(0, |at| 1 << at);
                self.serve(on, beginning, NO_TOKEN, Rule::Repeated, tried, &session.server)
            }
            Ok(Reserved::Bound(session)) => {
                on.count(Event::Bound);
                let turns = self
                    .shared
                    .desk
                    .decide(key, token, &session.server, true, self.follows());
                Self::wake(&on.worker.resume, turns);
                let tried = position(&pool.pcrfs, &session.server.host).map_or(0, |at| 1 << at);
                self.serve(on, beginning, token, Rule::Bound, tried, &session.server)
            }
            Ok(Reserved::Chosen(server)) => self.serve(on, beginning, token, Rule::Early, 0, &server),
            Ok(Reserved::Free) => {
                // A client may name a PCRF that it knows.
                let named = position(&pool.pcrfs, &facts.destination_host);
                let named = named.and_then(|at| Some((at, pool.pcrfs.get(at)?)));
                let rule = if named.is_some() {
                    Rule::Named
                } else {
                    Rule::Weight
                };
                let chosen = named
                    .or_else(|| choose(&pool.pcrfs, &facts.subscriber(), 0, &on.worker.suspects, on.now));
                let Some((at, pcrf)) = chosen else {
                    self.fail(on, key, token);
                    let why = "the pool has no PCRF for new subscribers";
                    return on.refuse(Event::NoPcrf, ResultCode::UNABLE_TO_DELIVER, why);
                };
                on.count(Event::Chosen);
                let server = pcrf.party();
                let turns = self
                    .shared
                    .desk
                    .decide(key, token, &server, false, self.follows());
                Self::wake(&on.worker.resume, turns);
                self.serve(on, beginning, token, rule, 1 << at, &server)
            }
            Ok(Reserved::Busy) => {
                self.fail(on, key, token);
                let why = "another router chooses a PCRF for this subscriber";
                on.refuse(Event::Crowded, ResultCode::TOO_BUSY, why)
            }
            Ok(Reserved::Full) => self.full(on, key, token),
            Ok(Reserved::Taken) => {
                self.fail(on, key, token);
                on.count(Event::Invalid);
                Flow::refuse(taken())
            }
            Err(_) => {
                self.fail(on, key, token);
                Self::failed(on)
            }
        }
    }

    fn without_pool<'a>(on: &On<'_, Self>) -> Flow<'a> {
        let why = "no pool of PCRFs serves this Called-Station-Id";
        on.refuse(Event::NoPcrf, ResultCode::UNABLE_TO_DELIVER, why)
    }

    fn full<'a>(&self, on: &On<'_, Self>, key: &[u8], token: u64) -> Flow<'a> {
        self.fail(on, key, token);
        let why = "there are too many sessions";
        on.refuse(Event::Full, ResultCode::TOO_BUSY, why)
    }

    /// A request has its PCRF: it goes there, or its client does.
    fn serve<'a>(
        &'a self,
        on: &mut On<'_, Self>,
        beginning: &Beginning<'_>,
        token: u64,
        rule: Rule,
        tried: u64,
        server: &Party,
    ) -> Flow<'a> {
        if self.redirects() {
            self.redirect_session(on, beginning, token, rule, server)
        } else {
            let session = &beginning.facts.session;
            self.shared
                .opened
                .begins_again(session, Some(server.host.as_bytes()));
            Self::send(on, token, rule, tried, server)
        }
    }

    /// A request goes to a PCRF.
    fn send<'a>(on: &mut On<'_, Self>, token: u64, rule: Rule, tried: u64, server: &Party) -> Flow<'a> {
        let note = Note {
            stage: Stage::Begins,
            rule,
            sent: 1,
            token,
            tried,
            ..Note::default()
        };
        note.write(on.memo);
        Flow::to(server.realm.clone(), server.host.clone())
    }
}
