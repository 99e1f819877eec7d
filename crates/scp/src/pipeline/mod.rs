//! The steps of a message: [`Pipeline::answer`] and [`Pipeline::relay`] list them in their order, each with the reason
//! for its position. A step is a file of its name and owns its state; `message` has the data between the steps.
//! docs/scp.md describes the same steps for operators.
//!
//! ```text
//! arrival ─ own ─ admission ─ loops ─ mediator ─ deadline ─ planner ─ relay ─ answer
//!                                                            │       └─ for each attempt: authorizer, limits,
//!                                                   targets, NRF           mediator, connection
//! ```
//!
//! A worker has one pipeline. A reload makes another from the last one: it has the new settings, and each step takes
//! over the state that they do not invalidate. A request ends with the pipeline that it began with.

mod admission;
mod alternates;
mod answer;
mod arrival;
mod attempts;
mod authorizer;
mod copies;
mod deadline;
mod facts;
mod loops;
mod mediator;
mod message;
mod own;
mod planner;
mod recorder;
mod relay;
mod reverse;
mod targets;
mod view;
mod why;

use std::rc::Rc;
use std::sync::Arc;

use ahash::AHashMap;
use arc_swap::ArcSwap;
use function::Shedder;
use routing::network::Network;
use routing::target::{Has, OwnNames};
use sbi::client::Client;
use sbi::dns::Dns;
use sbi::{Request, Response};
use telemetry::{Alarms, Registry};
use tokio::sync::mpsc;

use self::admission::Admission;
use self::answer::Answer;
use self::arrival::Arrival;
use self::authorizer::Authorizer;
use self::copies::Copies;
use self::deadline::Deadline;
use self::mediator::Mediator;
use self::message::{Admitted, Arrived, Outgoing, Step};
use self::own::OwnResources;
use self::planner::Planner;
use self::recorder::Silent;
use self::relay::{Planned, Relay};
use self::view::View;
use crate::discovery::Vouched;
use crate::events::{Metrics, Services};
use crate::feed::Tap;
use crate::live::{Current, Live};
use crate::peers::{Answers, Callbacks, Doubts, Heard};
use crate::protection::{Board, Federation, PeerState, PeerStates, Peers};
use crate::refusal::Refusal;

pub(crate) use why::{Question, routes};

/// What all workers share.
#[derive(Clone)]
pub(crate) struct Shared {
    pub(crate) live: Arc<Current>,
    pub(crate) network: Arc<ArcSwap<Network>>,
    pub(crate) changes: mpsc::Sender<Heard>,
    pub(crate) callbacks: Arc<Callbacks>,
    pub(crate) names: Option<Dns>,
    pub(crate) metrics: Metrics,
    /// The authorities of this SCP.
    pub(crate) own: Arc<OwnNames>,
    pub(crate) registry: Registry,
    pub(crate) alarms: Alarms,
    pub(crate) board: Arc<Board>,
    pub(crate) federation: Arc<Federation>,
    pub(crate) vouched: Arc<Vouched>,
    pub(crate) answers: Arc<Answers>,
    pub(crate) doubts: Arc<Doubts>,
    /// State of producers, for operators.
    pub(crate) states: Arc<PeerStates>,
    /// Hasher of values that peers choose; the same in all workers.
    pub(crate) hasher: ahash::RandomState,
}

/// The connections of a worker.
#[derive(Clone)]
pub(crate) struct Clients {
    /// To known destinations.
    pub(crate) known: Client,
    /// To unknown destinations: it connects to fewer addresses, and its connections do not evict those of `known`.
    pub(crate) unknown: Client,
}

/// Inputs of the steps of a worker.
pub(crate) struct Setup<'a> {
    pub(crate) shared: &'a Shared,
    pub(crate) live: &'a Arc<Live>,
    pub(crate) clients: &'a Clients,
    /// Number of the worker.
    pub(crate) index: usize,
    view: Rc<View>,
}

/// The steps of one worker.
pub struct Pipeline {
    pub(crate) live: Arc<Live>,
    arrival: Arrival,
    own: OwnResources,
    tap: Option<Rc<Tap>>,
    clients: Clients,
    services: Rc<Services>,
    admission: Admission,
    mediator: Rc<Mediator>,
    planner: Rc<Planner>,
    relay: Relay,
    answer: Answer,
}

impl Pipeline {
    /// Builds the steps by the present settings. Each takes its state over from `before`, as far as the settings allow.
    pub(crate) fn new(
        shared: &Shared,
        live: &Arc<Live>,
        clients: &Clients,
        index: usize,
        before: Option<&Self>,
    ) -> Self {
        let setup = Setup {
            shared,
            live,
            clients,
            index,
            view: match before {
                Some(before) => before.planner.view.clone(),
                None => Rc::new(View::new(shared.network.clone())),
            },
        };
        let producers = match before {
            Some(before) => {
                let producers = before.relay.producers.clone();
                let protection = &live.config.protection;
                producers.reconfigure(&before.live.config.protection, protection, live.rates.clone());
                producers
            }
            None => Rc::new(Peers::new(
                &live.config.protection,
                &shared.metrics,
                shared.alarms.clone(),
                live.rates.clone(),
                shared.board.clone(),
                index,
                live.config.client.max_origins as usize,
            )),
        };
        let authorizer = Authorizer::new(&setup, before.map(|before| &before.relay.authorizer));
        let planner = Rc::new(Planner::new(
            &setup,
            producers.clone(),
            authorizer.tokens.clone(),
            before.map(|before| &*before.planner),
        ));
        let mediator = Rc::new(Mediator::new(
            live.engine.clone(),
            shared.metrics.mediated.clone(),
        ));
        Self {
            arrival: Arrival::new(&setup),
            own: OwnResources::new(&setup),
            tap: tap_of(live, index, before),
            clients: clients.clone(),
            services: match before {
                Some(before) => before.services.clone(),
                None => Rc::new(Services::new(&shared.metrics)),
            },
            admission: Admission::new(&setup, before.map(|before| &before.admission)),
            relay: Relay::new(&setup, producers, planner.clone(), authorizer, mediator.clone()),
            mediator,
            planner,
            answer: Answer::new(&setup),
            live: live.clone(),
        }
    }

    /// Answers a request.
    pub(crate) async fn answer(self: Rc<Self>, mut request: Request) -> Response {
        // 1. Arrival first: every later step uses the path that the producer receives.
        let (address, unsure) = match self.arrival.read(&mut request) {
            Ok(arrived) => arrived,
            Err(refused) => return self.answer.refuse(*refused),
        };
        // 2. Own resources are served whatever the load: NRFs, other SCPs and probes depend on them.
        if let Some(mut response) = self.own.answer(&request, address.path()) {
            self.sign(&mut response);
            return response;
        }
        let copies = Copies::begin(self.tap.as_ref(), &request);
        let mut arrived = Arrived {
            has: Has::among(request.headers()),
            metrics: self.services.of(address.service()),
            request,
            address,
            unsure,
        };
        // 3. Admission before anything that costs more than a refusal.
        let response = match self.admission.admit(&mut arrived) {
            Ok(admitted) => {
                let _in_flight = self.admission.in_flight();
                let relayed = self.relay(admitted, copies.as_ref()).await;
                let mut response = relayed.unwrap_or_else(|refused| self.answer.refuse(*refused));
                self.answer.add_load(&mut response);
                response
            }
            Err(refused) => self.answer.refuse(*refused),
        };
        arrived.metrics.answered(response.status());
        if let Some(copies) = &copies {
            copies.answered(&response);
        }
        response
    }

    /// Names this SCP in an error that it answers itself (TS 29.500 §6.10.8.2).
    pub(crate) fn sign(&self, response: &mut Response) {
        if response.status().is_client_error() || response.status().is_server_error() {
            self.answer.sign(response);
        }
    }

    async fn relay(&self, mut admitted: Admitted<'_>, copies: Option<&Copies>) -> Step<Response> {
        let config = &self.live.config;
        // 4. Loops before rules: a rule must not run again for each round of a loop.
        let headers = admitted.arrived.request.headers();
        let hops = loops::hops(
            headers,
            admitted.arrived.has,
            &self.answer.name,
            config.max_forward_hops,
        )?;
        // 5. Mediation before planning: rules may steer, and rename the service.
        self.mediator.request(&mut admitted)?;
        let arrived = &*admitted.arrived;
        let policy = match self.live.policies.of_all() {
            Some(policy) => policy,
            None => self.live.policies.of(arrived.address.service()),
        };
        // 6. The deadline before planning: a late request must not reach an NRF or a producer.
        let deadline = Deadline::of(arrived.request.headers(), arrived.has, &config.late_requests)?;
        // 7. Planning, once for all attempts.
        let plan = self.planner.plan(&admitted, policy, &deadline, &Silent).await;
        let mut plan = plan.map_err(|problem| Refusal::Target.with(problem))?;
        let Admitted {
            arrived,
            caller,
            priority,
        } = &mut admitted;
        let (via, name) = (&self.answer.via, &self.answer.name);
        let mut outgoing = Outgoing::new(arrived, hops, deadline, via, name);
        outgoing.waited = plan.waited;
        // 8. Relay: authorization, limits of the producer and mediation at `requestEgress` for each attempt, as they
        //    depend on the producer.
        let planned = Planned {
            plan: &mut plan,
            policy,
            caller,
            outgoing: &mut outgoing,
            priority: *priority,
            metrics: &arrived.metrics,
            copies,
        };
        let mut exchange = self.relay.exchange(planned);
        let mut reply = exchange.run().await?;
        drop(exchange);
        // 9. Answer: rules get the unchanged answer of the producer, then this SCP adds its own headers.
        self.mediator.response(&outgoing, &mut reply.response)?;
        let response = self.answer.finish(reply, &outgoing, policy);
        let time = arrived.request.received.elapsed();
        arrived
            .metrics
            .own_time
            .observe(time.saturating_sub(outgoing.waited));
        Ok(response)
    }

    /// State of producers in this worker.
    pub(crate) fn peer_states(&self) -> Vec<PeerState> {
        let mut connections = AHashMap::<String, u32>::new();
        for (origin, stats) in [&self.clients.known, &self.clients.unknown]
            .iter()
            .flat_map(|one| one.peers())
        {
            let open = u32::try_from(stats.connections).unwrap_or(u32::MAX);
            *connections.entry(origin.authority().to_owned()).or_default() += open;
        }
        self.relay
            .producers
            .states(std::time::Instant::now(), &connections)
    }

    /// The connections of this worker.
    pub(crate) fn clients(&self) -> &Clients {
        &self.clients
    }

    /// Overload control of this worker.
    pub(crate) fn shedder(&self) -> &Shedder {
        self.admission.load().shedder()
    }

    /// Takes over a new sample of the load of this worker, and of the memory of its connections in percent.
    pub(crate) fn sampled(&self, memory: u8) {
        self.admission.load().holds(memory);
        self.answer.advertise(self.admission.load());
        self.relay.producers.reports.hear(std::time::Instant::now());
    }

    /// Load of this SCP in percent, as it is reported to others.
    pub(crate) fn load_percent(&self) -> u8 {
        self.live.own_load.percent()
    }

    /// Targets that this worker has resolved.
    pub(crate) fn remembered_targets(&self) -> usize {
        self.planner.targets.remembered_count()
    }

    /// Memory of the route cache of this worker, in bytes.
    pub(crate) fn route_cache_bytes(&self) -> usize {
        self.planner.remembered_bytes()
    }

    /// Discovery answers in the cache of this worker.
    pub(crate) fn cached_discoveries(&self) -> usize {
        self.planner.searcher.remembered()
    }
}

/// This worker's tap of the feed in effect: that of `before`, if the feed is the same.
fn tap_of(live: &Live, index: usize, before: Option<&Pipeline>) -> Option<Rc<Tap>> {
    let feed = live.feed.as_ref()?;
    let before = before.filter(|before| {
        let of = before.live.feed.as_ref();
        of.is_some_and(|of| Arc::ptr_eq(of, feed))
    });
    match before {
        Some(before) => before.tap.clone(),
        None => Some(Rc::new(feed.tap(index)?)),
    }
}
