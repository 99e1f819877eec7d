//! Metrics of an SCP. Handles are resolved before the data path uses them, or stored with the service, consumer or
//! producer that they count.

use std::cell::{OnceCell, RefCell};
use std::rc::Rc;

use ahash::AHashMap;
use function::AdmissionMetrics;
use http::StatusCode;
use telemetry::metrics::{Counter, Family, Histogram};
use telemetry::{Alert, Registry, When};

use crate::refusal::Refusal;

/// The metrics of admission.
pub(crate) const ADMISSION: AdmissionMetrics = function::admission_metrics!("scp");

telemetry::declare! {
    /// Metrics of requests.
    pub METRICS;
    counter REQUESTS = "signalbox_scp_requests_total" ["service", "status"]: "Requests answered, by API name and class of status.",
        alert Alert::major(When::ShareAbove { label: "status", begins: "5", share: 0.05 }, 10, "`signalbox_scp_refused_total` counts refusals of the SCP by reason; the others are failures of producers, whose standing `signalbox scp why` shows.");
    counter CONSUMERS = "signalbox_scp_consumer_requests_total" ["consumer"]: "Requests received, by consumer.";
    counter ATTEMPTS = "signalbox_scp_attempts_total" ["producer", "outcome"]: "Requests sent to producers, by outcome: 1xx to 5xx, connect, timeout, reset, other.";
    counter REROUTES = "signalbox_scp_reroutes_total" ["service"]: "Attempts at another producer after one had failed.";
    counter REFUSED = "signalbox_scp_refused_total" ["reason"]: "Requests that this SCP refused or could not serve, by reason.";
    counter DISCOVERIES = "signalbox_scp_discoveries_total" ["outcome"]: "Delegated discoveries: cached, waited for the answer to another request, asked, renewed because a producer in the cached answer has left, changed or failed, local, expired (an earlier answer while no NRF answers), empty, failed.";
    counter NAMED_NRFS = "signalbox_scp_named_nrf_discoveries_total" ["outcome"]: "Discoveries at an NRF that the request names: asked, refused because the NRF is not allowed, full because too many unknown NRFs are in use.";
    counter PASSED_OVER = "signalbox_scp_passed_over_total" ["reason"]: "Producers that were not considered: ejected, open, outstanding, rate, connectionRate, oci.";
    counter MEDIATED = "signalbox_scp_mediated_total" ["point"]: "Messages to which a mediation rule applied.";
    counter LEARNED = "signalbox_scp_learned_total" ["how"]: "Changes of profiles: notified, audited; notifications lost because too many were pending, stranger because their path belongs to no subscription, unconfirmed because the NRF contradicts them; full: producers ignored above nrf.maxProducers.";
    counter ALTERNATES = "signalbox_scp_dns_alternates_total" ["outcome"]: "DNS queries for alternates of producers: found, none, failed.";
    counter FEDERATION = "signalbox_scp_federation_total" ["outcome"]: "Reports to and from SCPs that share rates: sent, failed, heard, refused.";
    gauge FEDERATED = "signalbox_scp_federation_peers" []: "SCPs that share rates and have reported within silentAfter.";
    counter NRF_FAILURES = "signalbox_scp_nrf_failures_total" []: "Requests to NRFs without an answer or with a server error (5xx).";
    histogram OWN_TIME = "signalbox_scp_own_seconds" ["service"] in SECONDS: "Time of answered requests in this SCP, without the waits for NRFs and producers.",
        alert Alert::minor(When::QuantileAbove(0.1), 10, "Give the SCP more workers or cores, or spread the load: it adds this much to each request.");
    histogram PRODUCER_TIME = "signalbox_scp_producer_seconds" ["service"] in SECONDS: "Time from the request to the answer of a producer.";
    gauge PRODUCERS = "signalbox_scp_producers" ["nf_type"]: "Known producers.";
    gauge OVERLOAD = "signalbox_scp_overload_level" ["worker"]: "Overload level of a worker, 0 for none.";
    gauge DNS_NAMES = "signalbox_scp_dns_names" []: "Names whose records are cached.";
    counter DNS_ASKED = "signalbox_scp_dns_questions_total" []: "Queries sent to name servers.";
    counter DNS_FAILED = "signalbox_scp_dns_failures_total" []: "Queries that no name server answered.";
    gauge CACHE = "signalbox_scp_discovery_cache_entries" ["worker"]: "Discovery answers in the cache of a worker.";
    gauge EJECTED = "signalbox_scp_ejected_producers" ["worker"]: "Producers and SCPs that are ejected.",
        alert Alert::minor(When::Above(0.0), 5, "Check the producers that failed (`signalbox scp why`): they get no requests until they answer again.");
    gauge OPEN = "signalbox_scp_open_circuits" ["worker"]: "Producers and SCPs whose circuit is not closed.";
    gauge OUTSTANDING = "signalbox_scp_outstanding_requests" ["worker"]: "Requests in flight to producers.";
    gauge CONNECTIONS = "signalbox_scp_producer_connections" ["worker"]: "Connections to producers and SCPs.";
    gauge ROUTE_CACHE = "signalbox_scp_route_cache_bytes" ["worker"]: "Memory of the cached API roots and discovery queries of a worker (routeCache).";
    gauge TARGETS = "signalbox_scp_remembered_targets" ["worker"]: "Targets that a worker has resolved: API roots, endpoints of producers, discovery answers.";
    gauge ANSWER_BYTES = "signalbox_scp_discovery_answer_bytes" []: "Memory of the discovery answers of all workers (discovery.cacheMemory).";
    gauge ANSWERS = "signalbox_scp_discovery_answers" []: "Cached discovery answers and queries in flight of all workers.";
}

/// Every metric, ready to count.
#[derive(Clone, Debug)]
pub(crate) struct Metrics {
    pub(crate) requests: Family<Counter>,
    pub(crate) consumers: Family<Counter>,
    pub(crate) attempts: Family<Counter>,
    pub(crate) reroutes: Family<Counter>,
    pub(crate) producer_time: Family<Histogram>,
    pub(crate) own_time: Family<Histogram>,
    pub(crate) refused: Refusals,
    pub(crate) nrf_failures: Counter,
    pub(crate) federation_sent: Counter,
    pub(crate) federation_failed: Counter,
    pub(crate) federation_heard: Counter,
    pub(crate) federation_refused: Counter,
    pub(crate) federated: telemetry::metrics::Gauge,
    pub(crate) alternates_found: Counter,
    pub(crate) alternates_none: Counter,
    pub(crate) alternates_failed: Counter,
    pub(crate) discovery_hit: Counter,
    pub(crate) discovery_waited: Counter,
    pub(crate) discovery_asked: Counter,
    pub(crate) discovery_renewed: Counter,
    pub(crate) discovery_local: Counter,
    pub(crate) discovery_expired: Counter,
    pub(crate) discovery_empty: Counter,
    pub(crate) discovery_failed: Counter,
    pub(crate) named_asked: Counter,
    pub(crate) named_refused: Counter,
    pub(crate) named_full: Counter,
    pub(crate) over_ejected: Counter,
    pub(crate) over_open: Counter,
    pub(crate) over_outstanding: Counter,
    pub(crate) over_rate: Counter,
    pub(crate) over_connection_rate: Counter,
    pub(crate) over_oci: Counter,
    pub(crate) mediated: [Counter; 4],
    pub(crate) notified: Counter,
    pub(crate) audited: Counter,
    pub(crate) notification_lost: Counter,
    pub(crate) stranger: Counter,
    pub(crate) unconfirmed: Counter,
    pub(crate) too_many: Counter,
    pub(crate) overload: Family<telemetry::metrics::Gauge>,
    pub(crate) cache: Family<telemetry::metrics::Gauge>,
    pub(crate) route_cache: Family<telemetry::metrics::Gauge>,
    pub(crate) targets: Family<telemetry::metrics::Gauge>,
}

impl Metrics {
    pub(crate) fn new(registry: &Registry) -> Self {
        let discoveries = registry.counters(&DISCOVERIES);
        let over = registry.counters(&PASSED_OVER);
        let named = registry.counters(&NAMED_NRFS);
        let mediated = registry.counters(&MEDIATED);
        let learned = registry.counters(&LEARNED);
        let federation = registry.counters(&FEDERATION);
        let alternates = registry.counters(&ALTERNATES);
        Self {
            requests: registry.counters(&REQUESTS),
            consumers: registry.counters(&CONSUMERS),
            attempts: registry.counters(&ATTEMPTS),
            reroutes: registry.counters(&REROUTES),
            producer_time: registry.histograms(&PRODUCER_TIME),
            own_time: registry.histograms(&OWN_TIME),
            refused: Refusals::new(registry),
            nrf_failures: registry.counter(&NRF_FAILURES),
            federation_sent: federation.get(&["sent"]),
            federation_failed: federation.get(&["failed"]),
            federation_heard: federation.get(&["heard"]),
            federation_refused: federation.get(&["refused"]),
            federated: registry.gauge(&FEDERATED),
            alternates_found: alternates.get(&["found"]),
            alternates_none: alternates.get(&["none"]),
            alternates_failed: alternates.get(&["failed"]),
            discovery_hit: discoveries.get(&["cached"]),
            discovery_waited: discoveries.get(&["waited"]),
            discovery_asked: discoveries.get(&["asked"]),
            discovery_renewed: discoveries.get(&["renewed"]),
            discovery_local: discoveries.get(&["local"]),
            discovery_expired: discoveries.get(&["expired"]),
            discovery_empty: discoveries.get(&["empty"]),
            discovery_failed: discoveries.get(&["failed"]),
            named_asked: named.get(&["asked"]),
            named_refused: named.get(&["refused"]),
            named_full: named.get(&["full"]),
            over_ejected: over.get(&["ejected"]),
            over_open: over.get(&["open"]),
            over_outstanding: over.get(&["outstanding"]),
            over_rate: over.get(&["rate"]),
            over_connection_rate: over.get(&["connectionRate"]),
            over_oci: over.get(&["oci"]),
            mediated: [
                "requestIngress",
                "requestEgress",
                "responseIngress",
                "responseEgress",
            ]
            .map(|point| mediated.get(&[point])),
            notified: learned.get(&["notified"]),
            audited: learned.get(&["audited"]),
            notification_lost: learned.get(&["lost"]),
            stranger: learned.get(&["stranger"]),
            unconfirmed: learned.get(&["unconfirmed"]),
            too_many: learned.get(&["full"]),
            overload: registry.gauges(&OVERLOAD),
            cache: registry.gauges(&CACHE),
            route_cache: registry.gauges(&ROUTE_CACHE),
            targets: registry.gauges(&TARGETS),
        }
    }
}

/// Metrics of one service; a worker stores them with the name of the service.
#[derive(Debug)]
pub(crate) struct ServiceMetrics {
    /// By class of status, `1xx` at 0.
    answered: [Counter; 5],
    pub(crate) rerouted: Counter,
    /// Of producers.
    pub(crate) time: Histogram,
    pub(crate) own_time: Histogram,
}

const CLASSES: [&str; 5] = ["1xx", "2xx", "3xx", "4xx", "5xx"];

/// Position of a status in lists by class.
fn class(status: StatusCode) -> usize {
    usize::from(status.as_u16() / 100).clamp(1, 5) - 1
}

impl ServiceMetrics {
    fn new(metrics: &Metrics, service: &str) -> Self {
        Self {
            answered: CLASSES.map(|class| metrics.requests.get(&[service, class])),
            rerouted: metrics.reroutes.get(&[service]),
            time: metrics.producer_time.get(&[service]),
            own_time: metrics.own_time.get(&[service]),
        }
    }

    pub(crate) fn answered(&self, status: StatusCode) {
        self.answered[class(status)].inc();
    }
}

/// Counters of refusals, found without a lock: under overload refusing must be cheap.
#[derive(Clone, Debug)]
pub(crate) struct Refusals([Counter; Refusal::ALL.len()]);

impl Refusals {
    fn new(registry: &Registry) -> Self {
        let refused = registry.counters(&REFUSED);
        Self(std::array::from_fn(|at| refused.get(&[Refusal::ALL[at].label()])))
    }

    pub(crate) fn count(&self, refusal: Refusal) {
        self.0[refusal as usize].inc();
    }
}

/// Services a worker keeps counters of; further ones share those of `other`.
const SERVICES: usize = 512;
/// The name that stands for all further services.
const OTHER: &str = "other";
/// Longest API name with its own series, in bytes; longer ones count as `other`: API names come from consumers and
/// appear in each line of the metrics.
const LONGEST_SERVICE: usize = 64;

/// The counters of a worker, by service.
#[derive(Debug)]
pub(crate) struct Services {
    metrics: Metrics,
    known: RefCell<AHashMap<Box<str>, Rc<ServiceMetrics>>>,
}

impl Services {
    pub(crate) fn new(metrics: &Metrics) -> Self {
        Self {
            metrics: metrics.clone(),
            known: RefCell::default(),
        }
    }

    /// The counters of a service; `offered`: whether a known producer or a setting names it. Names that consumers invent
    /// get no series.
    pub(crate) fn of(&self, service: &str, offered: impl FnOnce() -> bool) -> Rc<ServiceMetrics> {
        let mut known = self.known.borrow_mut();
        if let Some(one) = known.get(service) {
            return one.clone();
        }
        let fits = service.len() <= LONGEST_SERVICE
            && known.len() < SERVICES
            && (model::ServiceName::from(service).is_known() || offered());
        let name = if fits { service } else { OTHER };
        if let Some(one) = known.get(name) {
            return one.clone();
        }
        let made = Rc::new(ServiceMetrics::new(&self.metrics, name));
        known.insert(name.into(), made.clone());
        made
    }
}

/// Outcomes of the attempts at one producer. A series begins with its first event, because most producers have few
/// outcomes.
#[derive(Debug)]
pub(crate) struct AttemptMetrics {
    attempts: Family<Counter>,
    producer: Box<str>,
    counters: [OnceCell<Counter>; OUTCOMES.len()],
}

/// The classes of status, and the ends without an answer.
const OUTCOMES: [&str; 10] = [
    "1xx", "2xx", "3xx", "4xx", "5xx", "connect", "timeout", "reset", "refused", "other",
];

/// How an attempt ends without an answer.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Unanswered {
    Connect = 5,
    Timeout,
    Reset,
    /// The stream was refused (REFUSED_STREAM).
    Refused,
    Other,
}

impl AttemptMetrics {
    pub(crate) fn new(metrics: &Metrics, producer: &str) -> Self {
        Self {
            attempts: metrics.attempts.clone(),
            producer: producer.into(),
            counters: std::array::from_fn(|_| OnceCell::new()),
        }
    }

    pub(crate) fn answered(&self, status: StatusCode) {
        self.count(class(status));
    }

    pub(crate) fn unanswered(&self, how: Unanswered) {
        self.count(how as usize);
    }

    fn count(&self, outcome: usize) {
        let counter =
            self.counters[outcome].get_or_init(|| self.attempts.get(&[&*self.producer, OUTCOMES[outcome]]));
        counter.inc();
    }
}
