//! One worker's share of the PCF: what the handlers of requests work with.

use std::cell::RefCell;
use std::pin::pin;
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};

use ::policy::{Scratch, Service};
use diameter::proto::known;
use function::sbi::config::Overload;
use function::sbi::{Completion, Door, NotBegun, RequestQueue, State, TurnedAway, Use, Weight, elsewhere};
use function::{Admission, Drmp, Seat, Shedder};
use model::shape::{Fault, Shape};
use sbi::client::{Client, Origin};
use sbi::identity::Actor;
use sbi::problem::{Cause, Problem};
use sbi::{Request, Response};
use serde_json::Value;
use worker::Random;

use crate::activity::{Activity, PolicyEvents};
use crate::association::AssociationId;
use crate::association::messages::Message;
use crate::bindings::Bindings;
use crate::config::Config;
use crate::events::{ADMISSION, Counters, Event, QUEUE};
use crate::finished::Finished;
use crate::latency::Latencies;
use crate::live::Effective;
use crate::messenger::Messenger;
use crate::notices::Notices;
use crate::orders::{Order, Orders};
use crate::outbound::Peers;
use crate::projects::Pair;
use crate::repository::Repository;
use crate::restarts::Restarts;
use crate::schedule::Schedule;
use crate::shape;
use crate::shared::Pcf;
use crate::sources::{Sources, Versions};
use crate::turns::{Turn, Turns};
use crate::writes::Writes;

/// A worker as its listeners see it.
pub(crate) type Front = function::Front<Pcf>;

/// Does something at the first worker again and again, with a pause after each time, until the worker ends.
pub(crate) async fn sweep(front: &Front, pause: Duration, mut round: impl AsyncFnMut(&Rc<Worker>)) {
    while front.seat().context.index == 0 {
        let worker = front.worker();
        round(&worker).await;
        drop(worker);
        tokio::time::sleep(pause).await;
    }
}

/// What a worker keeps between evaluations, for each service its project and the built-in one.
#[derive(Debug, Default)]
struct Scratches {
    project: [RefCell<Scratch>; 3],
    built_in: [RefCell<Scratch>; 3],
}

/// One worker's PCF.
pub struct Worker {
    now: Arc<Effective>,
    shared: Arc<Pcf>,
    peers: Rc<Peers>,
    messenger: Rc<Messenger>,
    door: Door,
    queue: Rc<RequestQueue>,
    scratches: Rc<Scratches>,
    turns: Rc<Turns>,
    bindings: Rc<Bindings>,
    schedule: Rc<Schedule>,
    random: Rc<Random>,
    sources: Rc<Sources>,
    writes: Rc<Writes>,
    /// Each pause before a RAR is sent again has a reference; the worker has the first.
    retries: Rc<()>,
    counters: Arc<Counters>,
    index: usize,
}

impl Worker {
    /// A worker by what is in effect now. What the one before has measured stays, as far as its settings do.
    pub(crate) fn new(
        shared: &Arc<Pcf>,
        seat: &Seat<Pcf>,
        now: Arc<Effective>,
        before: Option<&Self>,
    ) -> Self {
        let index = seat.context.index;
        let config = &now.config;
        let gate = now
            .verification
            .gate(&config.tokens, &config.identity, &config.nf_instance_id, "PCF");
        let door = Door::new(
            &config.overload,
            gate,
            shared.workers,
            before.map(|before| &before.door),
            (&ADMISSION, &seat.registry, index),
        );
        door.shedder().enforce(config.overload.enabled);
        let bounds = config.request_queue.bounds();
        let queue = match before {
            Some(before) => before.queue.clone(),
            None => RequestQueue::new(bounds, &QUEUE, &seat.registry, index),
        };
        queue.reconfigure(bounds);
        shared.activity.reconfigure(&config.activity_log);
        shared.policy_events.reconfigure(&config.policy_events);
        let counters = shared.counts.of(index);
        let peers = match before {
            Some(before) => before.peers.clone(),
            None => {
                let settings = Arc::new(now.config.client.clone());
                let live = seat.live.clone();
                let guard = function::sbi::guard(move || live.load().destinations.clone());
                let (tls, names) = (seat.listeners.sbi.client_tls(), shared.names.clone());
                let client = Client::guarded(settings, tls, names, Some(guard));
                let names = shared.names.clone();
                let measures = (counters.clone(), shared.latencies.clone());
                let peers = Peers::new(&now.config, client, names, measures);
                let live = seat.live.clone();
                let redirections = move |from: &http::Uri, to: &Origin| {
                    live.load().destinations.permits_redirection(from, to)
                };
                Rc::new(peers.following(redirections))
            }
        };
        let messenger = match before {
            Some(before) => before.messenger.clone(),
            None => {
                let (tls, names) = (seat.listeners.notifier_tls.clone(), shared.names.clone());
                Rc::new(Messenger::new(&config.notifier, tls, names, counters.clone()))
            }
        };
        let (scratches, turns, bindings, schedule, random) = before.map_or_else(Default::default, |before| {
            (
                before.scratches.clone(),
                before.turns.clone(),
                before.bindings.clone(),
                before.schedule.clone(),
                before.random.clone(),
            )
        });
        let pds = &now.config.pds;
        let sources = match before {
            Some(before) => {
                before.sources.cache.borrow_mut().reconfigure(&pds.cache);
                before.sources.profiles.borrow_mut().reconfigure(&pds.cache);
                before.sources.clone()
            }
            None => Rc::new(Sources::new(&now.config, peers.nrfs(), now.directory.as_ref())),
        };
        let worker = Self {
            shared: shared.clone(),
            peers,
            messenger,
            door,
            queue,
            scratches,
            turns,
            bindings,
            schedule,
            random,
            sources,
            counters,
            retries: before.map_or_else(Rc::default, |before| before.retries.clone()),
            writes: before.map_or_else(Rc::default, |before| before.writes.clone()),
            index,
            now,
        };
        worker.prepare();
        worker
    }

    /// Makes script engines ready ahead of the first request.
    fn prepare(&self) {
        for (place, pair) in self.now.projects.all().into_iter().enumerate() {
            for (project, scratches) in [
                (&pair.project, &self.scratches.project),
                (&pair.built_in, &self.scratches.built_in),
            ] {
                if let Some(scratch) = scratches.get(place) {
                    project.prepare(&mut scratch.borrow_mut());
                }
            }
        }
    }

    pub(crate) fn config(&self) -> &Config {
        &self.now.config
    }

    /// What completes answers.
    pub(crate) fn completion(&self) -> &Completion {
        &self.now.completion
    }

    /// Root of the URIs that the PCF hands out.
    pub(crate) fn root(&self) -> &str {
        // It is set when the function is bound.
        self.config().api_root.trim_end_matches('/')
    }

    pub(crate) fn repository(&self) -> &Repository {
        &self.shared.repository
    }

    pub(crate) fn latencies(&self) -> &Latencies {
        &self.shared.latencies
    }

    pub(crate) fn notices(&self) -> &Notices {
        &self.shared.notices
    }

    /// What is kept of traced subscribers.
    pub(crate) fn activity(&self) -> &Arc<Activity> {
        &self.shared.activity
    }

    /// Records of policy events.
    pub(crate) fn policy_events(&self) -> &PolicyEvents {
        &self.shared.policy_events
    }

    /// Sends requests to other functions, over connections of this worker.
    pub(crate) fn peers(&self) -> &Rc<Peers> {
        &self.peers
    }

    /// Sends the messages of a decision that was written to servers of the operator. Nothing waits for that.
    pub(crate) fn notify(&self, messages: Vec<Message>) {
        if !messages.is_empty() {
            self.messenger.send(&self.now.targets, messages);
        }
    }

    /// Bindings that are pending at the BSF.
    pub(crate) fn bindings(&self) -> &Bindings {
        &self.bindings
    }

    /// Deliveries of UE policies.
    pub(crate) fn schedule(&self) -> &Rc<Schedule> {
        &self.schedule
    }

    pub(crate) fn shedder(&self) -> &Shedder {
        self.door.shedder()
    }

    /// Requests that are begun and queued.
    pub(crate) fn queue(&self) -> &Rc<RequestQueue> {
        &self.queue
    }

    pub(crate) fn random(&self) -> &Random {
        &self.random
    }

    pub(crate) fn counters(&self) -> &Arc<Counters> {
        &self.counters
    }

    /// Where the data of subscribers are.
    pub(crate) fn sources(&self) -> &Rc<Sources> {
        &self.sources
    }

    /// A place among the RARs that are sent again after a pause, of which there are `diameter.maxOrders`; none: there is no
    /// room. It is free when it is dropped.
    pub(crate) fn retry(&self) -> Option<Rc<()>> {
        let room = Rc::strong_count(&self.retries) <= self.config().diameter.max_orders;
        room.then(|| self.retries.clone())
    }

    /// What is being written to the UDR.
    pub(crate) fn writes(&self) -> &Rc<Writes> {
        &self.writes
    }

    /// Versions of the data of subscribers.
    pub(crate) fn versions(&self) -> &Versions {
        &self.shared.versions
    }

    /// Refuses a URI of a consumer that requests are not sent to; `pointer` is its place in the body.
    pub(crate) fn check_uri(&self, pointer: &str, uri: &str) -> Result<(), Problem> {
        // The PCF appends `update`, `terminate` or `notify` to each of them (TS 29.512 §5.5.2, TS 29.514 §5.5.2).
        self.check_target(pointer, uri, Use::Base)
    }

    /// As [`Self::check_uri`], of a URI that is used as it stands, or not.
    pub(crate) fn check_target(&self, pointer: &str, uri: &str, used: Use) -> Result<(), Problem> {
        let checked = self.now.destinations.check_uri(uri, used);
        checked.map_err(|expected| {
            self.count(Event::TargetDenied);
            let shown: String = uri.chars().take(255).collect();
            Problem::new(Cause::MandatoryIeIncorrect)
                .detail(format!("notifications are not sent to {shown}"))
                .invalid_param(pointer, expected)
        })
    }

    pub(crate) fn max_body(&self) -> usize {
        self.config().max_body_size.as_usize()
    }

    /// The projects of a service.
    pub(crate) fn projects(&self, service: Service) -> &Pair {
        self.now.projects.of(service)
    }

    /// What evaluations of a service's project keep, and those of the built-in one.
    pub(crate) fn scratches(&self, service: Service) -> (&RefCell<Scratch>, &RefCell<Scratch>) {
        let ([sm, am, ue], [sm_built_in, am_built_in, ue_built_in]) =
            (&self.scratches.project, &self.scratches.built_in);
        match service {
            Service::Sm => (sm, sm_built_in),
            Service::Am => (am, am_built_in),
            Service::Ue => (ue, ue_built_in),
        }
    }

    /// What the operator makes of the media of AFs.
    pub(crate) fn mapping(&self) -> &pcc::Mapping {
        &self.config().media
    }

    pub(crate) fn workers(&self) -> usize {
        self.shared.workers
    }

    pub(crate) fn state(&self) -> State {
        self.shared.operational.state()
    }

    /// AF sessions over Rx that have ended a moment ago.
    pub(crate) fn finished(&self) -> &Finished {
        &self.shared.finished
    }

    /// What the workers of the PCF share.
    pub(crate) fn shared(&self) -> &Arc<Pcf> {
        &self.shared
    }

    /// URIs of resources at other functions that were removed a moment ago.
    pub(crate) fn removed(&self) -> &Finished {
        &self.shared.removed
    }

    /// PCEFs that have restarted.
    pub(crate) fn restarts(&self) -> &Restarts {
        &self.shared.restarts
    }

    pub(crate) fn orders(&self) -> &Orders {
        &self.shared.orders
    }

    /// Sends a request to a Diameter peer, through the node of this worker or that of another.
    pub(crate) fn send(&self, order: Order) {
        if !self.shared.orders.send(self.index, order) {
            self.count(Event::DiameterDropped);
        }
    }

    /// Waits until no other request of this worker changes an association.
    pub(crate) async fn turn(&self, id: AssociationId) -> Turn {
        // The one that has the turn may await a UDR.
        elsewhere(pin!(self.turns.of(id))).await
    }

    pub(crate) fn count(&self, event: Event) {
        self.counters.count(event);
    }

    /// Why this request is not admitted now.
    pub(crate) fn turned_away(&self, request: &Request, creates: bool, weight: Weight) -> Option<Problem> {
        let delay = self.queue.delay(Instant::now());
        let what = (creates, weight);
        let (why, problem) = self.door.turned_away_ahead(request, self.state(), what, delay)?;
        self.count(Event::of(why));
        Some(problem)
    }

    /// The answer to a request whose handler was not begun.
    pub(crate) fn not_begun(&self, why: NotBegun) -> Response {
        let (event, admission) = match why {
            NotBegun::Full => (TurnedAway::Discarded, Admission::Refused),
            NotBegun::Late => (TurnedAway::Late, Admission::Late),
        };
        self.count(Event::of(event));
        let problem = function::sbi::refusal(admission);
        problem
            .unwrap_or_else(|| Problem::new(Cause::NfCongestion))
            .into_response()
    }

    /// Whether this worker has too much to do for a Diameter request that begins a session, by its priority (DRMP, RFC 7944).
    pub(crate) fn discards(&self, request: &diameter::endpoint::Request) -> bool {
        let now = Instant::now();
        let priority = request.message.get(known::DRMP).ok().flatten();
        let priority = Drmp(priority.and_then(|priority| u8::try_from(priority).ok()));
        let waited = self.shedder().waited(now, request.from.unread_since());
        let admission = self.shedder().admit(now, waited, Overload::DIAMETER, &priority);
        if admission == Admission::Admitted {
            return false;
        }
        self.count(Event::Discarded);
        true
    }

    /// The answer to a request whose sender may not use the service.
    pub(crate) fn denied(&self, request: &Request, service: &str) -> Option<Response> {
        let (why, response) = self.door.denied(request, service, self.root())?;
        self.count(Event::of(why));
        Some(response)
    }

    /// The sender of an admitted request, of a notification where no `services` are named.
    pub(crate) fn actor(&self, request: &Request, services: &[&str]) -> Result<Actor, Problem> {
        self.door.gate().actor(request, services)
    }

    /// Checks a value that a sender has sent, and takes out of it what counts as absent, which is counted.
    ///
    /// # Errors
    /// What is wrong beyond that.
    pub(crate) fn settle(&self, shape: &Shape, value: &mut Value, sender: &str) -> Result<(), Vec<Fault>> {
        let dropped = shape::settle(shape, value, self.config().tolerance.strict)?;
        if !dropped.is_empty() {
            self.shared.tolerated.note(sender, &dropped);
        }
        Ok(())
    }
}
