//! Asks consumers for their associations, and the NRF for consumers.

use std::cell::RefCell;
use std::time::Instant;

use bounded::{Cache, Limits};
use http::{Method, StatusCode};
use nrf_client::instance_path;
use sbi::client::Origin;

use crate::association::{Association, Kind};
use crate::config::Audit;
use crate::worker::Worker;

/// What a consumer says of an association.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Answer {
    /// It has it, or does not say that it has not.
    Known,
    /// It has it no more.
    Unknown,
    /// There is no answer in time.
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
        let Some(question) = worker.notices().question(association) else {
            return Answer::None;
        };
        let Ok(origin) = Origin::of_uri(&question.target) else {
            return Answer::None;
        };
        let (now, key) = (Instant::now(), origin.to_string());
        let is_silent = self.silent.borrow().get_if(&*key, |until| *until > now).is_some();
        if is_silent {
            return Answer::None;
        }
        let deadline = settings.timeout.duration();
        match worker.peers().notify(&origin, &question, deadline).await {
            Some(StatusCode::NOT_FOUND | StatusCode::GONE) => Answer::Unknown,
            Some(status) if !status.is_server_error() => Answer::Known,
            _ => {
                let mut silent = self.silent.borrow_mut();
                silent.set_limits(Limits::entries(settings.max_consumers));
                silent.insert(key, Instant::now() + settings.remember.duration());
                Answer::None
            }
        }
    }

    /// Whether the NRF does not know the consumer of an association; false where the NRF, or the consumer's identity, is
    /// not known.
    pub(super) async fn is_lost(&self, worker: &Worker, association: &Association, settings: &Audit) -> bool {
        let member = match association.kind {
            Kind::Sm => "smfId",
            _ => "servingNfId",
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
