//! The traffic of a service communication proxy (TS 29.500 §6.10).

mod mediation;
mod population;
mod validate;

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use settings::{ByteSize, Percent, Period};

pub use mediation::{MediationGroup, TriggerPoint};
pub use population::OfType;

use crate::priorities::PriorityShare;

/// Messages that an SCP processes for each request, as the guide counts them: the request and its answer.
pub const MESSAGES_PER_REQUEST: f64 = 2.0;

/// The traffic of an SCP.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct ScpModel {
    /// Messages per second at the full rate; a request with its answer is two.
    pub mps: f64,
    /// Consumers, producers and services of the requests.
    pub interfaces: Vec<Interface>,
    /// Profiles of producers at the NRF, shared out among the types of `interfaces`.
    #[schemars(range(min = 1, max = 10_000))]
    pub profiles: u32,
    /// Producers of one NF set.
    #[serde(default = "default_set")]
    #[schemars(range(min = 2, max = 100))]
    pub set_size: u32,
    /// Bytes of the body of a request.
    #[schemars(range(min = 20, max = 1_000_000))]
    pub request_bytes: u32,
    /// Bytes of the body of an answer.
    #[schemars(range(min = 20, max = 1_000_000))]
    pub response_bytes: u32,
    /// Time that a producer takes to answer.
    #[serde(default)]
    pub producer_latency: Period,
    /// Latency of the network between the SCP and producers of its own region, to and fro.
    #[serde(default)]
    pub lan_latency: Period,
    /// The same to another region.
    #[serde(default)]
    pub wan_latency: Period,
    /// Additional latency of the NRF's answers.
    #[serde(default)]
    pub nrf_latency: Period,
    /// Connections at the full rate, scaled with it; absent: those of `load` and the SCP's default.
    #[serde(default)]
    pub connections: Option<Connections>,
    /// Traffic to other regions, through their SCPs.
    #[serde(default)]
    pub inter_scp: Option<InterScp>,
    /// Sites of producers, all of which the SCP reaches itself; each set has one member at each site.
    #[serde(default)]
    pub sites: Option<Sites>,
    /// Share of requests whose producer the SCP discovers (Model D); the others name it (Model C).
    #[serde(default)]
    pub delegated: Percent,
    /// How long the NRF's answers to discoveries are valid.
    #[serde(default)]
    pub validity: Period,
    /// The same for producer types that differ.
    #[serde(default)]
    pub validity_by_type: BTreeMap<String, Period>,
    /// Profiles in an answer of the NRF at most; absent: the NRF's default.
    #[serde(default)]
    pub discovery_profiles: Option<u32>,
    /// First source of a delegated discovery.
    #[serde(default)]
    pub discovery_order: DiscoveryOrder,
    /// Whether the SCP fetches access tokens for delegated requests.
    #[serde(default)]
    pub tokens: bool,
    /// Parameters by which tokens of one consumer for one service differ.
    #[serde(default)]
    pub oauth: Option<OAuth>,
    /// Whether the SCP queries the NRF for each delegated discovery (`enforceReqSpecificSvcDiscovery`).
    #[serde(default)]
    pub discover_each: bool,
    /// Share of the requests whose first producer fails, so that another of its set must serve.
    #[serde(default)]
    pub alternate_routed: Percent,
    /// Alternates of producers in DNS: of the sets with a failing producer every other one is not in `nfSetIdList`, so
    /// that only SRV records name the alternates.
    #[serde(default)]
    pub dns_srv: Option<DnsSrv>,
    /// Share of the requests that a mediation rule changes.
    #[serde(default)]
    pub mediated: Percent,
    /// Mediation rules, in groups that are dealt to the services.
    #[serde(default)]
    pub mediation_rules: u32,
    /// Share of the rules that change the JSON body; the others change headers.
    #[serde(default = "default_json")]
    pub mediation_json: Percent,
    /// Groups of mediation rules.
    #[serde(default)]
    pub mediation_groups: u32,
    /// Trigger points of all groups together: a position in the message path of a service at which a group's rules are
    /// tried. Absent: one for each group, at requests that leave for a producer.
    #[serde(default)]
    pub mediation_trigger_points: Option<u32>,
    /// Rates of consumers and producers, far above what is sent.
    #[serde(default)]
    pub rate_limits: Option<RateLimits>,
    /// Consumers of each type, distinguished by `User-Agent`.
    #[serde(default = "default_consumers")]
    #[schemars(range(min = 1, max = 10_000))]
    pub consumers: u32,
    /// Addresses that consumers come from, each of a subnet of its own.
    #[serde(default = "default_consumers")]
    #[schemars(range(min = 1, max = 250))]
    pub source_addresses: u32,
    /// Profiles of each type; they add up to `profiles`. Without any, `profiles` are shared out evenly among the
    /// types of `interfaces`.
    #[serde(default)]
    pub nf_counts: BTreeMap<String, u32>,
    /// Load that producers report (`3gpp-Sbi-Lci`).
    #[serde(default)]
    pub lci: Option<Lci>,
    /// Overload that producers report (`3gpp-Sbi-Oci`).
    #[serde(default)]
    pub oci: Option<Oci>,
    /// Changes of the network of which the NRF notifies the SCP.
    #[serde(default)]
    pub notifications: Option<Notifications>,
    /// Whether consumers and producers speak TLS.
    #[serde(default)]
    pub tls: bool,
    /// Share of the requests that are idempotent (PUT); the others are POST. `methods` says it in more detail.
    #[serde(default)]
    pub idempotent: Percent,
    /// How many of the requests have which method. Without any, `idempotent` decides.
    #[serde(default)]
    pub methods: BTreeMap<Method, f64>,
    /// Subscribers, whose identities and addresses delegated discoveries name where `interfaces[].discovery` says so.
    #[serde(default = "default_subscribers")]
    #[schemars(range(min = 1, max = 10_000_000))]
    pub subscribers: u32,
    /// How many of the requests carry which `3gpp-Sbi-Message-Priority`; none: no request carries one.
    #[serde(default)]
    pub priorities: Vec<PriorityShare>,
    /// API names whose requests the SCP may repeat even if the first attempt may have had effect.
    #[serde(default)]
    pub repeatable: Vec<String>,
    /// A copy of messages to Kafka.
    #[serde(default)]
    pub feed: Option<Feed>,
    /// An event in the network while the load runs.
    #[serde(default)]
    pub drill: Option<Drill>,
}

/// A copy of messages to Kafka.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Feed {
    /// Partitions of the topic.
    #[schemars(range(min = 1, max = 1000))]
    pub partitions: u16,
    /// Settings of the SCP's feed.
    pub settings: FeedSettings,
}

/// Settings of the SCP's feed, by its own names.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct FeedSettings {
    /// Positions at which messages are copied.
    pub trigger_points: Vec<FeedPoint>,
    /// Share of the exchanges that is copied.
    pub allowed_traffic_percentage: Percent,
    /// Acknowledgement of the brokers after which a copy counts as delivered.
    pub acks: Acks,
    /// Retries of a failed batch.
    pub retry_count: u32,
    /// Pause before a retry.
    pub retry_backoff: Period,
    /// Timeout of a broker's answer.
    pub request_timeout: Period,
    /// Timeout from the copy to the broker's answer.
    pub delivery_timeout: Period,
    /// Memory of pending copies.
    pub buffer_memory: ByteSize,
    /// Time that a full batch may wait for a slot among those in flight.
    pub max_block: Period,
    /// Time that a message may wait before its batch is full.
    pub blocking_send_timeout: Period,
    /// Batches that fail in a row until the feed pauses.
    pub consecutive_failures: u32,
    /// Length of the pause.
    pub degradation_period: Period,
}

/// Acknowledgement of the brokers after which a copy counts as delivered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum Acks {
    /// That of all replicas in sync.
    #[serde(rename = "all")]
    All,
    /// That of the leader of the partition.
    #[serde(rename = "1")]
    Leader,
    /// None.
    #[serde(rename = "0")]
    None,
}

/// Position at which a message is copied.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum FeedPoint {
    /// A request as it came from the consumer.
    RxRequest,
    /// A request as it goes to a producer; each attempt is one.
    TxRequest,
    /// A response as it came from a producer.
    RxResponse,
    /// A response as it goes to the consumer.
    TxResponse,
}

/// Connections at the full rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Connections {
    /// Of all consumers to the SCP.
    #[schemars(range(min = 1))]
    pub into: u32,
    /// From the SCP to each producer at most.
    #[schemars(range(min = 1))]
    pub to_each: u32,
    /// Messages per second, requests and answers, that one connection to a producer may carry.
    #[schemars(range(min = 2))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub to_each_mps: Option<u32>,
}

/// Alternates of producers in DNS.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct DnsSrv {
    /// Producers with SRV records.
    #[schemars(range(min = 1, max = 10_000))]
    pub records: u32,
    /// Time that the name server takes to answer.
    #[serde(default)]
    pub latency: Period,
}

/// Traffic to other regions, through their SCPs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct InterScp {
    /// Regions, that of the SCP included.
    #[schemars(range(min = 2, max = 200))]
    pub regions: u32,
    /// Share of the requests to producers of `types` that go to other regions.
    pub share: Percent,
    /// Types of producers that are in other regions too; empty: all.
    #[serde(default)]
    pub types: Vec<String>,
}

/// Sites of producers. The first is that of the SCP.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Sites {
    /// Regions.
    #[schemars(range(min = 2, max = 10))]
    pub regions: u32,
    /// Sites of each region.
    #[schemars(range(min = 2, max = 10))]
    pub each: u32,
}

impl Sites {
    /// All sites, with the number of the region of each.
    pub fn all(self) -> impl Iterator<Item = (u32, u32)> {
        (0..self.regions * self.each).map(move |site| (site, site / self.each))
    }

    /// The number of sites.
    #[must_use]
    pub fn count(self) -> u32 {
        self.regions * self.each
    }
}

/// Rates of consumers and producers, far above the load, so that only their lookup costs time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct RateLimits {
    /// Consumers with a rate of their own.
    pub ingress_keys: u32,
    /// Producers with a rate of their own.
    pub egress_keys: u32,
    /// Whether the rates of producers apply to all SCPs together.
    #[serde(default)]
    pub global: bool,
}

/// Parameters by which access tokens of one consumer for one service differ.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct OAuth {
    /// Slices of consumers (`requesterSnssaiList`).
    #[schemars(range(min = 1, max = 1000))]
    pub slices: u32,
    /// Networks of consumers (`requesterPlmnList`).
    #[schemars(range(min = 1, max = 100))]
    pub plmns: u32,
    /// Share of the services whose tokens are for one instance; those of the others are for a type.
    #[serde(default)]
    pub instance_level: Percent,
}

/// Load that producers report.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Lci {
    /// Interval at which each producer has a new load.
    pub every: Period,
    /// The least change of the load, in percent points.
    #[schemars(range(min = 1, max = 50))]
    pub change: u8,
}

/// Overload that producers report.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Oci {
    /// Interval at which each of them changes its report.
    pub every: Period,
    /// Producers that report.
    #[schemars(range(min = 1))]
    pub instances: u32,
    /// The requested reduction of every other report, in percent; the reports between them end the overload.
    #[serde(default = "default_reduction")]
    #[schemars(range(min = 1, max = 100))]
    pub reduction: u8,
}

/// Changes of the network, in the guide's mix: priority or capacity 70, suspended 10, deregistered 5, API version 3,
/// endpoint 2, SUPI range 2, other 8 of a hundred.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Notifications {
    /// Changes per second.
    pub per_second: f64,
    /// Changes per second in bursts of one second, spread over the measured part.
    #[serde(default)]
    pub bursts: Vec<f64>,
    /// Changes of one kind at an interval of its own, beside those of the mix.
    #[serde(default)]
    pub every: BTreeMap<ChangeKind, Period>,
}

/// A kind of change that has an interval of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum ChangeKind {
    /// Load of a function.
    Load,
    /// Priority or capacity of a service.
    PriorityOrCapacity,
    /// A function is suspended, and registered again.
    Suspended,
    /// A service instance is added, and removed again.
    ServiceInstance,
}

/// First source of a delegated discovery.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum DiscoveryOrder {
    /// Only the NRF.
    #[default]
    Nrf,
    /// The NRF; the cached profiles when no NRF answers.
    NrfThenScp,
    /// The cached profiles; the NRF when they hold no producer.
    ScpThenNrf,
}

/// A method of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "UPPERCASE")]
pub enum Method {
    /// Creates a resource.
    Post,
    /// Reads one.
    Get,
    /// Replaces one.
    Put,
    /// Changes a part of one.
    Patch,
    /// Removes one.
    Delete,
}

impl Method {
    /// Its name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Post => "POST",
            Self::Get => "GET",
            Self::Put => "PUT",
            Self::Patch => "PATCH",
            Self::Delete => "DELETE",
        }
    }
}

impl ScpModel {
    /// The methods of requests and how many have which, relative to the others.
    #[must_use]
    pub fn methods(&self) -> Vec<(Method, f64)> {
        if !self.methods.is_empty() {
            return self
                .methods
                .iter()
                .map(|(method, weight)| (*method, *weight))
                .collect();
        }
        let put = self.idempotent.fraction();
        match put > 0.0 {
            true => vec![(Method::Post, 1.0 - put), (Method::Put, put)],
            false => vec![(Method::Post, 1.0)],
        }
    }
}

/// A parameter of a delegated discovery beside the types of both functions, by its 3GPP name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum DiscoveryParameter {
    /// The service, or both policy services of an AMF (N15).
    ServiceNames,
    /// One of a few slices.
    Snssais,
    /// The same as a preference, as the guide prints it.
    PreferredSnssais,
    /// One of a few data networks.
    Dnn,
    /// One of a hundred tracking areas.
    Tai,
    /// The place of the consumer.
    PreferredLocality,
    /// The version of the service.
    PreferredApiVersions,
    /// A subscriber.
    Supi,
    /// The data set of a UDR.
    DataSet,
    /// One of a hundred routing indicators.
    RoutingIndicator,
    /// The address of a subscriber: an IPv4 address, or for every other one `ue-ipv6-prefix`.
    #[serde(rename = "ue-ipv4-address")]
    UeIpv4Address,
    /// The domain of an IPv4 address.
    IpDomain,
}

/// An event in the network while the load runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum Drill {
    /// One producer of the set is killed at a quarter of the time and restarts at half of it.
    KillProducer,
    /// The NRF is killed at a quarter of the time and restarts at three quarters of it.
    StopNrf,
    /// Three times the rate is offered.
    Overload,
    /// The producers of the SCP's site answer 503, are killed, and restart; another site of the region answers 503 as
    /// well while they are dead.
    LoseSite,
}

/// One interface.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Interface {
    /// `N7`, or the two types where it has no name.
    pub name: String,
    /// Type of the consumer.
    pub consumer: String,
    /// Type of the producer.
    pub producer: String,
    /// The requested service.
    pub service: String,
    /// How many of the requests, relative to the other interfaces.
    #[schemars(range(min = 0))]
    pub weight: f64,
    /// Parameters of its delegated discoveries beside the types of consumer and producer.
    #[serde(default = "default_discovery")]
    pub discovery: Vec<DiscoveryParameter>,
}

fn default_discovery() -> Vec<DiscoveryParameter> {
    vec![DiscoveryParameter::ServiceNames]
}
fn default_subscribers() -> u32 {
    100_000
}
fn default_set() -> u32 {
    3
}
fn default_consumers() -> u32 {
    1
}
fn default_reduction() -> u8 {
    10
}
fn default_json() -> Percent {
    Percent::new(30.0)
}
