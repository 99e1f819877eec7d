//! Asks consumers for their associations, and the NRF for consumers.

use std::cell::RefCell;
use std::time::Instant;

use bounded::{Cache, Limits};
use diameter::proto::ResultCode;
use diameter::proto::known;
use http::{Method, StatusCode};
use nrf_client::instance_path;
use sbi::client::Origin;

use crate::association::gx::PcefSession;
use crate::association::{Association, Kind};
use crate::config::Audit;
use crate::pushes;
use crate::worker::Worker;

/// What a consumer says of an association.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Answer {
    /// It has it, or does not say that it has not.
    Known,
    /// It has it no more.
    Unknown,
    /// No answer has come in time.
    None,
}

/// What is known of consumers, each until it expires.
pub(super) struct Consumers {
    /// Where consumers do not answer.
    silent: RefCell<Cache<String, Instant>>,
    /// NF instances; whether the NRF knows them.
    instances: RefCell<Cache<String, (Instant, bool)>>,
}

impl Default for Consumers {
    fn default() -> Self {
        Self {
            silent: RefCell::new(Cache::new(Limits::entries(0))),
            instances: RefCell::new(Cache::new(Limits::entries(0))),
        }
    }
}

impl Consumers {
    /// Asks the consumer of an association for it. One that has not answered a moment ago is not asked.
    pub(super) async fn ask(&self, worker: &Worker, association: &Association, settings: &Audit) -> Answer {
        match association.kind {
            Kind::Gx => self.ask_pcef(worker, association, settings).await,
            _ => self.ask_sbi(worker, association, settings).await,
        }
    }

    /// Asks a PCEF by a RAR without a change (TS 29.212 §4.5.2).
    async fn ask_pcef(&self, worker: &Worker, association: &Association, settings: &Audit) -> Answer {
        let Some(session) = PcefSession::get(association) else {
            return Answer::None;
        };
        let host = session.host.clone();
        if self.is_silent(&host) {
            return Answer::None;
        }
        let Some(answer) = pushes::gx_question(worker, session, settings.timeout.duration()).await else {
            self.has_not_answered(host, settings);
            return Answer::None;
        };
        let origin = answer.get(known::ORIGIN_HOST).ok().flatten();
        if !origin.is_some_and(|origin| origin.eq_ignore_ascii_case(&host)) {
            // An agent that does not reach it, or another PCEF that a router has chosen.
            return Answer::None;
        }
        match answer.get(known::RESULT_CODE).ok().flatten().map(ResultCode) {
            Some(ResultCode::UNKNOWN_SESSION_ID) => Answer::Unknown,
            _ => Answer::Known,
        }
    }

    async fn ask_sbi(&self, worker: &Worker, association: &Association, settings: &Audit) -> Answer {
        let Some(question) = worker.notices().question(association) else {
            return Answer::None;
        };
        let Ok(origin) = Origin::of_uri(&question.target) else {
            return Answer::None;
        };
        let key = origin.to_string();
        if self.is_silent(&key) {
            return Answer::None;
        }
        let deadline = settings.timeout.duration();
        match worker.peers().notify(&origin, &question, deadline).await {
            Some(StatusCode::NOT_FOUND | StatusCode::GONE) => Answer::Unknown,
            Some(status) if !status.is_server_error() => Answer::Known,
            _ => {
                self.has_not_answered(key, settings);
                Answer::None
            }
        }
    }

    fn is_silent(&self, consumer: &str) -> bool {
        let now = Instant::now();
        self.silent
            .borrow()
            .get_if(consumer, |until| *until > now)
            .is_some()
    }

    fn has_not_answered(&self, consumer: String, settings: &Audit) {
        let mut silent = self.silent.borrow_mut();
        silent.set_limits(Limits::entries(settings.max_consumers));
        silent.insert(consumer, Instant::now() + settings.remember.duration());
    }

    /// Whether the NRF does not know the consumer of an association; false where the NRF, or the consumer's identity, is
    /// not known.
    pub(super) async fn is_lost(&self, worker: &Worker, association: &Association, settings: &Audit) -> bool {
        let member = match association.kind {
            Kind::Sm => "smfId",
            Kind::Am | Kind::Ue => "servingNfId",
            // PCEFs are not registered.
            Kind::Gx | Kind::Tdf => return false,
        };
        let Some(id) = association.text_of(member).map(str::to_ascii_lowercase) else {
            return false;
        };
        let nrfs = worker.peers().nrfs();
        if nrfs.is_empty() {
            return false;
        }
        let now = Instant::now();
        let known = self
            .instances
            .borrow()
            .get_if(&*id, |(until, _)| *until > now)
            .copied();
        if let Some((_, is_registered)) = known {
            return !is_registered;
        }
        let answer = nrfs.send(Method::GET, &instance_path(&id), None).await;
        let is_registered = match answer.map(|answer| answer.status) {
            Some(StatusCode::OK) => true,
            Some(StatusCode::NOT_FOUND) => false,
            // Nothing is known of it.
            _ => return false,
        };
        let mut instances = self.instances.borrow_mut();
        instances.set_limits(Limits::entries(settings.max_consumers));
        instances.insert(id, (now + settings.remember.duration(), is_registered));
        !is_registered
    }
}
