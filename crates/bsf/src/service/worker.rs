//! One worker's share of the function, and the way of a request.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;

use arc_swap::ArcSwap;
use sbi::problem::{Cause, Problem};
use sbi::{Request, Response, Service};
use tokio::sync::mpsc;

use super::gate::Gate;
use super::state::{State, Switches};
use crate::api;
use crate::binding::{PcfBinding, UeBinding};
use crate::config::Config;
use crate::events::{Counters, Event};
use crate::live::Live;
use crate::notify::{self, Notification};
use crate::overload::{SAMPLE_INTERVAL, Shedder, Verdict};
use crate::peers::pcfs;
use crate::repository::Repository;

/// What every worker is made of.
#[derive(Clone)]
pub(super) struct Parts {
    pub(super) live: Arc<ArcSwap<Live>>,
    pub(super) repository: Repository,
    pub(super) switches: Arc<Switches>,
    pub(super) notifications: mpsc::Sender<Notification>,
    /// What the NRF tells of PCFs, on its way to the audit.
    pub(super) told: mpsc::Sender<pcfs::Told>,
    pub(super) workers: usize,
}

/// A worker's BSF as its server and its Diameter agent see it: made anew when the settings have changed.
pub(crate) struct Front {
    parts: Parts,
    index: usize,
    counters: Arc<Counters>,
    live: RefCell<arc_swap::Cache<Arc<ArcSwap<Live>>, Arc<Live>>>,
    current: RefCell<(Arc<Live>, Rc<Worker>)>,
}

impl Front {
    pub(super) fn new(parts: Parts, index: usize, counters: Arc<Counters>) -> Self {
        let live = parts.live.load_full();
        let worker = Rc::new(Worker::new(&live, &parts, counters.clone(), None));
        Self {
            live: RefCell::new(arc_swap::Cache::new(parts.live.clone())),
            current: RefCell::new((live, worker)),
            parts,
            index,
            counters,
        }
    }

    /// The worker as the settings of now have it.
    pub(crate) fn current(&self) -> Rc<Worker> {
        let mut live = self.live.borrow_mut();
        let wanted = live.load();
        let mut current = self.current.borrow_mut();
        if !Arc::ptr_eq(&current.0, wanted) {
            let before = Some((&*current.0, &*current.1));
            let worker = Worker::new(wanted, &self.parts, self.counters.clone(), before);
            *current = (wanted.clone(), Rc::new(worker));
        }
        current.1.clone()
    }

    pub(crate) fn repository(&self) -> &Repository {
        &self.parts.repository
    }

    pub(crate) fn count(&self, event: Event) {
        self.counters.count(event);
    }

    /// Samples this worker's own CPU load, which decides about discards.
    pub(super) async fn watch_load(self: Rc<Self>) {
        loop {
            tokio::time::sleep(SAMPLE_INTERVAL).await;
            let congestion = self.parts.switches.congestion();
            let load = self.current().shedder.sample(congestion);
            self.parts.switches.set_load(self.index, load);
        }
    }
}

impl Service for Front {
    async fn call(self: Rc<Self>, request: Request) -> Response {
        let worker = self.current();
        let received = request.received;
        let response = worker.answer(request).await;
        let failed = response.status().is_server_error();
        self.parts
            .switches
            .answered(self.index, failed, received.elapsed());
        response
    }
}

/// One worker's BSF.
pub(crate) struct Worker {
    config: Arc<Config>,
    root: String,
    repository: Repository,
    switches: Arc<Switches>,
    notifications: mpsc::Sender<Notification>,
    told: mpsc::Sender<pcfs::Told>,
    shedder: Rc<Shedder>,
    gate: Gate,
    counters: Arc<Counters>,
}

impl Worker {
    fn new(live: &Live, parts: &Parts, counters: Arc<Counters>, before: Option<(&Live, &Worker)>) -> Self {
        let config = live.config.clone();
        // What has been measured stays as long as nothing about it has changed.
        let shedder = match before {
            Some((before, worker)) if before.config.overload == config.overload => worker.shedder.clone(),
            _ => Rc::new(Shedder::new(&config.overload, parts.workers)),
        };
        Self {
            root: config.api_root.trim_end_matches('/').to_owned(),
            repository: parts.repository.clone(),
            switches: parts.switches.clone(),
            notifications: parts.notifications.clone(),
            told: parts.told.clone(),
            shedder,
            gate: Gate::new(live),
            counters,
            config,
        }
    }

    pub(crate) fn config(&self) -> &Config {
        &self.config
    }

    pub(crate) fn root(&self) -> &str {
        &self.root
    }

    pub(crate) fn repository(&self) -> &Repository {
        &self.repository
    }

    pub(crate) fn switches(&self) -> &Switches {
        &self.switches
    }

    pub(crate) fn shedder(&self) -> &Shedder {
        &self.shedder
    }

    pub(crate) fn max_body(&self) -> usize {
        self.config.max_body_size.as_usize()
    }

    pub(crate) fn max_candidates(&self) -> usize {
        self.config.max_candidates
    }

    pub(crate) fn count(&self, event: Event) {
        self.counters.count(event);
    }

    /// Tells subscribers of a session's binding that has come or gone.
    pub(crate) async fn tell_session(&self, binding: &PcfBinding, come: bool) {
        notify::tell_session(
            &self.repository,
            &self.notifications,
            &self.counters,
            binding,
            come,
        )
        .await;
    }

    /// Tells subscribers of a UE's binding that has come or gone.
    pub(crate) async fn tell_ue(&self, binding: &UeBinding, come: bool) {
        notify::tell_ue(
            &self.repository,
            &self.notifications,
            &self.counters,
            binding,
            come,
        )
        .await;
    }

    /// Hands what the NRF tells of a PCF to the audit. False when too much waits there.
    pub(crate) fn pcf_changed(&self, told: pcfs::Told) -> bool {
        self.told.try_send(told).is_ok()
    }

    /// Why this request is not worked on.
    fn turned_away(&self, request: &Request) -> Option<Problem> {
        let creates = *request.method() == http::Method::POST;
        match self.switches.state() {
            State::Serving => {}
            State::Partial if !creates => {}
            state => {
                self.count(Event::ShutOut);
                let detail = format!("this BSF is being shut down (state {state:?})");
                return Some(Problem::of_status(http::StatusCode::SERVICE_UNAVAILABLE).detail(detail));
            }
        }
        match self.shedder.judge(request) {
            Verdict::Work => None,
            Verdict::TooMany => {
                self.count(Event::RateLimited);
                Some(Problem::new(Cause::TooManyRequests).detail("more requests a second than ingressRate"))
            }
            Verdict::TooManyOfOne => {
                self.count(Event::ConsumerLimited);
                let detail = "more requests a second than a consumer may send (consumerRate)";
                Some(Problem::new(Cause::TooManyRequests).detail(detail))
            }
            Verdict::Discard => {
                self.count(Event::Discarded);
                Some(Problem::new(Cause::NfCongestion).detail("discarded under overload"))
            }
        }
    }

    /// The answer to a request that is not let in.
    fn denied(&self, request: &Request) -> Option<Response> {
        let refused = self.gate.admit(request).err()?;
        self.count(refused.event());
        Some(refused.into_response(&self.root))
    }

    /// Whether the sender of a request may act for an NF instance.
    pub(crate) fn may_act_for(&self, request: &Request, instance: &str) -> Result<(), Problem> {
        let judged = self.gate.may_act_for(request, instance);
        judged.inspect_err(|_| self.count(Event::IdentityRefused))
    }

    /// The way of a request: may it be worked on now, may its sender ask this, whose resource is it, who
    /// answers it.
    async fn answer(self: Rc<Self>, request: Request) -> Response {
        // The path outlives the request, which the handlers take apart.
        let path = request.uri().path().to_owned();
        if let Some(problem) = self.turned_away(&request) {
            return problem.into_response();
        }
        // The NRF shows no token: what it tells is a hint, and believed only when it is asked.
        if path == pcfs::CALLBACK_PATH {
            return api::nf_status::notify(&self, request);
        }
        if let Some(denied) = self.denied(&request) {
            return denied;
        }
        let mut segments = path.trim_start_matches('/').splitn(4, '/');
        let at = (segments.next(), segments.next(), segments.next(), segments.next());
        let worker = self.clone();
        let answer = match at {
            (Some("nbsf-management"), Some("v1"), Some(resource), id) => {
                let id = id.map(str::to_owned);
                match (resource, id) {
                    ("pcfBindings", None) => api::sessions::collection(worker, request).await,
                    ("pcfBindings", Some(id)) => api::sessions::individual(worker, request, id).await,
                    ("pcf-ue-bindings", None) => api::ues::collection(worker, request).await,
                    ("pcf-ue-bindings", Some(id)) => api::ues::individual(worker, request, id).await,
                    ("pcf-mbs-bindings", None) => api::mbs::collection(worker, request).await,
                    ("pcf-mbs-bindings", Some(id)) => api::mbs::individual(worker, request, id).await,
                    ("subscriptions", None) => api::subscriptions::collection(worker, request).await,
                    ("subscriptions", Some(id)) => api::subscriptions::individual(worker, request, id).await,
                    _ => Err(unknown(&path)),
                }
            }
            (Some("nbsf-management"), Some(version), _, _) if version != "v1" => {
                Err(Problem::new(Cause::InvalidApi)
                    .detail(format!("version {version} is not served here; v1 is")))
            }
            _ => Err(unknown(&path)),
        };
        answer.unwrap_or_else(|problem| {
            self.count(match problem.status().is_server_error() {
                true => Event::Failed,
                false => Event::BadRequest,
            });
            problem.into_response()
        })
    }
}

fn unknown(path: &str) -> Problem {
    let shown: String = path.chars().take(128).collect();
    Problem::new(Cause::ResourceUriStructureNotFound).detail(format!("{shown} is not a resource of this BSF"))
}
