//! One worker's share of the NRF: what the handlers of requests work with.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use function::{Meters, Seat, Shedder};
use nrf_client::OwnTokens;
use registry::{Reader, Snapshot};
use sbi::Fields;
use sbi::client::Client;
use sbi::headers::TargetApiRoot;
use sbi::problem::{Cause, Problem};
use telemetry::trace::Scope;
use tokio::sync::oneshot;

use crate::alternates::Alternates;
use crate::config::Config;
use crate::discovery::{Plans, Query};
use crate::events::{ADMISSION, Counters, Event, FORWARD_TIME, SLF_TIME};
use crate::forwarding::{Destination, Forwarder, Served};
use crate::gate::Gate;
use crate::live::Effective;
use crate::pace::Pace;
use crate::registrar::{Done, What, Write};
use crate::shared::Nrf;
use crate::slf::Slf;
use crate::tokens::Issuer;

/// One worker's NRF: its view of the registry, its clients, its caches.
pub struct Worker {
    now: Arc<Effective>,
    shared: Arc<Nrf>,
    client: Client,
    reader: RefCell<Reader>,
    plans: Rc<Plans>,
    slf: Rc<Slf>,
    forwarder: Forwarder,
    /// What is registered with NRFs that are registered here.
    served: Rc<Served>,
    /// Tokens of this NRF for the services of others.
    tokens: Rc<OwnTokens>,
    gate: Gate,
    shedder: Rc<Shedder>,
    counters: Arc<Counters>,
}

impl Worker {
    /// A worker by what is in effect now. What the one before has cached and measured stays, as far as its settings do.
    pub(crate) fn new(nrf: &Arc<Nrf>, seat: &Seat<Nrf>, now: Arc<Effective>, before: Option<&Self>) -> Self {
        let config = &now.config;
        let counters = nrf.counts.of(seat.context.index);
        let client = match before {
            Some(before) => before.client.clone(),
            None => {
                let settings = Arc::new(config.client.clone());
                let live = seat.live.clone();
                let guard = function::sbi::guard(move || live.load().destinations.clone());
                let (tls, names) = (seat.listeners.client_tls(), nrf.names.clone());
                Client::guarded(settings, tls, names, Some(guard))
            }
        };
        let plans = before
            .filter(|before| {
                let before = &before.now.config;
                before.discovery == config.discovery
                    && before.forwarding.own_plmns == config.forwarding.own_plmns
            })
            .map_or_else(
                || Rc::new(Plans::new(&config.discovery, config.forwarding.plmns())),
                |before| before.plans.clone(),
            );
        let shedder = match before {
            Some(before) => {
                before.shedder.reconfigure(config.overload.shedding());
                before.shedder.clone()
            }
            None => {
                let meters = Meters::new(&ADMISSION, &seat.registry, seat.context.index);
                Rc::new(Shedder::new(config.overload.shedding(), meters))
            }
        };
        let time = |metric| seat.registry.histograms(metric).get(&[]);
        let slf = before
            .filter(|before| {
                let before = &before.now;
                before.config.slf == config.slf
                    && before.config.outgoing == config.outgoing
                    && Arc::ptr_eq(&before.issuer, &now.issuer)
            })
            .map_or_else(
                || {
                    let (client, counters) = (client.clone(), counters.clone());
                    let names = nrf.names.clone().filter(|_| config.dns_srv).map(Alternates::new);
                    Rc::new(Slf::new(
                        config,
                        client,
                        counters,
                        now.issuer.clone(),
                        names,
                        time(&SLF_TIME),
                    ))
                },
                |before| before.slf.clone(),
            );
        let tokens = before
            .filter(|before| before.now.config.nf_instance_id == config.nf_instance_id)
            .map_or_else(
                || Rc::new(OwnTokens::new(&config.nf_instance_id, "NRF")),
                |before| before.tokens.clone(),
            );
        let forwarder = Forwarder::new(
            &config.forwarding,
            client.clone(),
            counters.clone(),
            &config.nf_instance_id,
            tokens.clone(),
            nrf.names.clone().filter(|_| config.dns_srv).map(Alternates::new),
            time(&FORWARD_TIME),
        )
        .paced(Pace::new(config.forwarding.rate, worker::count(config.workers)));
        Self {
            reader: RefCell::new(Reader::new(nrf.published.clone())),
            shared: nrf.clone(),
            client,
            plans,
            slf,
            forwarder,
            served: before.map_or_else(Rc::default, |before| before.served.clone()),
            tokens,
            gate: Gate::new(&now),
            shedder,
            counters,
            now,
        }
    }

    pub(crate) fn snapshot(&self) -> Arc<Snapshot> {
        self.reader.borrow_mut().load().clone()
    }

    pub(crate) fn config(&self) -> &Config {
        &self.now.config
    }

    /// Root of the URIs that the NRF hands out.
    pub(crate) fn root(&self) -> &str {
        // It is set when the function is bound.
        self.config().api_root.trim_end_matches('/')
    }

    pub(crate) fn instance(&self) -> &str {
        &self.config().nf_instance_id
    }

    pub(crate) fn instance_uri(&self, id: &model::NfInstanceId) -> String {
        format!("{}/nnrf-nfm/v1/nf-instances/{id}", self.root())
    }

    pub(crate) fn max_profile(&self) -> usize {
        self.config().max_profile_size.as_usize()
    }

    pub(crate) fn max_subscription(&self) -> usize {
        self.config().subscriptions.max_size.as_usize()
    }

    /// Whether questions may go to the home NRF that a consumer names; if not, what was expected.
    pub(crate) fn check_home_nrf(&self, uri: Option<&str>) -> Result<(), &'static str> {
        let Some(root) = uri.and_then(crate::forwarding::root_of) else {
            return Ok(());
        };
        if !self.config().forwarding.allows_home_nrf(&root.origin) {
            self.counters.count(Event::TargetDenied);
            return Err("expected one of forwarding.allowedHomeNrfs");
        }
        self.check_target(&root)
    }

    /// Whether requests may go to an API root that comes from a request or a profile; if not, what was expected.
    fn check_target(&self, root: &TargetApiRoot) -> Result<(), &'static str> {
        let checked = self.now.destinations.check(&root.origin);
        checked.inspect_err(|_| self.counters.count(Event::TargetDenied))
    }

    /// Whether other NRFs may have registered what is unknown here.
    pub(crate) fn is_in_cluster(&self) -> bool {
        self.config().cluster.enabled
    }

    pub(crate) fn protects_itself(&self) -> bool {
        self.gate.wants_tokens()
    }

    pub(crate) fn plans(&self) -> &Plans {
        &self.plans
    }

    pub(crate) fn slf(&self) -> &Slf {
        &self.slf
    }

    pub(crate) fn forwarder(&self) -> &Forwarder {
        &self.forwarder
    }

    /// The settings in effect, and what is derived from them.
    pub(crate) fn effective(&self) -> &Effective {
        &self.now
    }

    /// Shows which SCPs on the route to location functions did not answer.
    pub(crate) fn show_scps(&self, index: usize) {
        if let Some(shown) = self.shared.scps_down.get(index) {
            shown.store(self.slf.scps_down(), Ordering::Relaxed);
        }
    }

    /// The NRF that is registered here and has a match for a discovery that has none here.
    pub(crate) fn served_elsewhere(
        &self,
        query: &Query,
        supi: Option<&str>,
        gpsi: Option<&str>,
        headers: &Fields,
    ) -> Option<Destination> {
        let settings = &self.config().forwarding;
        if !settings.by_nrf_info || !self.forwarder.routes().may_go_on(headers) {
            return None;
        }
        let allowed = |root: &TargetApiRoot| self.check_target(root).is_ok();
        let found = self
            .served
            .find(&self.snapshot(), self.instance(), query, supi, gpsi, allowed);
        found.map(|targets| Destination {
            targets,
            through: None,
            only_when_empty: true,
            is_home: false,
        })
    }

    pub(crate) fn issuer(&self) -> &Issuer {
        &self.now.issuer
    }

    pub(crate) fn gate(&self) -> &Gate {
        &self.gate
    }

    pub(crate) fn shedder(&self) -> &Shedder {
        &self.shedder
    }

    pub(crate) fn counters(&self) -> &Counters {
        &self.counters
    }

    /// Hands a change to the registrar and waits until it is kept.
    pub(crate) async fn write(&self, what: What) -> Result<Done, Problem> {
        let (reply, done) = oneshot::channel();
        let reads = matches!(what, What::Find { .. });
        let most = self.config().max_waiting_bytes.as_usize();
        let sent = self.shared.waiting.hold(what.bytes(), most).and_then(|held| {
            let scope = Scope::of_thread();
            let write = Write {
                what,
                reply,
                held,
                scope,
            };
            self.shared.writes.try_send(write).ok()
        });
        if sent.is_none() {
            self.counters.count(Event::WriteOverflow);
            return Err(Problem::new(Cause::NfCongestion).detail("too many changes are pending; retry later"));
        }
        let stopped = |_| Problem::new(Cause::NfFailover).detail("the NRF is stopping");
        let outcome = done.await.map_err(stopped)?;
        let refused = outcome
            .as_ref()
            .is_err_and(|problem| problem.status().is_client_error());
        if refused && !reads {
            self.counters.count(Event::BadRequest);
        }
        outcome
    }
}
