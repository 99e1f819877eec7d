//! Limits, overload and priorities.

use function::sbi::config::check_root;
use std::collections::BTreeMap;

use function::Shedding;
use function::sbi::Conveying;
use overload::{BreakerSettings, CongestionLevels, Level, OutlierSettings, Rate, WaitingTime};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use settings::{Faults, Percent, Period, Validate};

use crate::refusal::Refusal;

/// Property that identifies a consumer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum ConsumerKey {
    /// The value of `User-Agent` (TS 29.500 §5.2.2.2: NF type, perhaps with instance id or FQDN).
    #[default]
    UserAgent,
    /// The first DNS name or URI of its TLS certificate.
    TlsName,
    /// The NF instance id that its client credentials assertion proves (`security.assertions`).
    AssertionSubject,
    /// Its IP address.
    Address,
}

/// The rate of a consumer's requests.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct ConsumerRate {
    /// The consumer as `consumerKeys` know it; `*`: each consumer without a rate of its own.
    pub consumer: String,
    /// Rate of admitted requests.
    pub rate: Rate,
}

/// The rate of requests to a producer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct ProducerRate {
    /// `host:port` of the producer, or its NF instance id; `*`: each producer without a rate of its own;
    /// absent: all producers together.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub producer: Option<String>,
    /// API names whose requests count, together; empty: all.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub services: Vec<String>,
    /// Requests that are sent.
    pub rate: Rate,
    /// Whether all SCPs share the rate: each takes its part by the demand at all of them if `federation` names the
    /// others, else by the number of registered SCPs.
    #[serde(default)]
    pub global: bool,
}

/// Use of a silent SCP's part of the global rates.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum WhenSilent {
    /// An equal part stays reserved for it: the rate is never exceeded, even when the SCPs cannot reach each other.
    #[default]
    Keep,
    /// The others use its part: no part of the rate is lost when it has failed; while SCPs cannot reach each other, each
    /// may use the whole rate.
    Release,
}

/// SCPs that share the global rates and report their demand to each other several times a second.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default, rename_all = "camelCase")]
pub struct Federation {
    /// API roots of the other SCPs; the SCP accepts reports only from them. It identifies a peer by the names of its TLS
    /// certificate, or without one by its address.
    #[schemars(length(max = 64))]
    pub peers: Vec<String>,
    /// Interval of the reports; at least 50ms.
    pub interval: Period,
    /// Time without a report after which an SCP counts as silent.
    pub silent_after: Period,
    /// Use of the part of a silent SCP.
    pub when_silent: WhenSilent,
    /// Rates in a report at most, those with the highest demand; a report of another SCP with more is refused.
    pub max_rates: usize,
}

impl Default for Federation {
    fn default() -> Self {
        Self {
            peers: Vec::new(),
            interval: Period::from_millis(500),
            silent_after: Period::from_secs(3),
            when_silent: WhenSilent::default(),
            max_rates: 20_000,
        }
    }
}

impl Validate for Federation {
    fn validate(&self, faults: &mut Faults) {
        for (i, root) in self.peers.iter().enumerate() {
            check_root(root, &format!("peers[{i}]"), faults);
        }
        if self.peers.len() > 64 {
            faults.at("peers").say("has too many", "at most 64");
        }
        if self.silent_after <= self.interval {
            faults.at("silentAfter").say(
                format!("{} is not longer than `interval`", self.silent_after),
                "a few intervals",
            );
        }
    }
}

/// Load from which this SCP discards a share of the requests.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct OverloadStep {
    /// Its begin and end: CPU time of a worker in percent of its core.
    pub level: Level,
    /// Share of all requests that is discarded, the least important first.
    pub discard: Percent,
}

/// Sets the priority of requests.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct PriorityRule {
    /// Service names; empty: all.
    #[serde(default)]
    pub services: Vec<String>,
    /// Methods; empty: all.
    #[serde(default)]
    pub methods: Vec<String>,
    /// `3gpp-Sbi-Message-Priority` that is set, 0 (most important) to 31.
    #[schemars(range(max = 31))]
    pub priority: u8,
    /// Whether a priority that the consumer has set is replaced.
    #[serde(default)]
    pub replace: bool,
}

/// Message priorities (TS 29.500 §6.8).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default, rename_all = "camelCase")]
pub struct Priorities {
    /// Priority of a request without one, as this SCP treats it.
    #[schemars(range(max = 31))]
    pub default: u8,
    /// Rules; the first that fits counts.
    pub rules: Vec<PriorityRule>,
}

impl Default for Priorities {
    fn default() -> Self {
        Self {
            default: 24,
            rules: Vec::new(),
        }
    }
}

/// Answer to the consumer; an absent member stays as it is without the profile.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default, rename_all = "camelCase")]
pub struct ErrorProfile {
    /// HTTP status.
    #[schemars(range(min = 400, max = 599))]
    pub status: Option<u16>,
    /// `cause` of the problem details; empty: none.
    pub cause: Option<String>,
    /// `title`; empty: none.
    pub title: Option<String>,
    /// `detail`; empty: none.
    pub detail: Option<String>,
    /// `Retry-After`, in whole seconds; 0: none.
    pub retry_after: Option<Period>,
}

/// Protection of this SCP and of the producers behind it. All parts are on by default except the rates, which have no
/// default.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default, rename_all = "camelCase")]
pub struct Protection {
    /// Properties that identify a consumer; the first that a request has counts.
    pub consumer_keys: Vec<ConsumerKey>,
    /// Consumers with their own account at most, per worker; further ones share one account.
    pub max_consumers: usize,
    /// Rates of consumers; requests above them are answered 429.
    pub ingress: Vec<ConsumerRate>,
    /// Rates of producers; a request that would exceed them goes to another producer or is answered 429.
    pub egress: Vec<ProducerRate>,
    /// SCPs that share the global rates.
    pub federation: Federation,
    /// Requests that may be outstanding at one producer, per worker (circuit breaking); 0: any number.
    pub max_outstanding: u32,
    /// When a failing producer is ejected.
    pub outliers: OutlierSettings,
    /// When the circuit of a producer opens, so that it gets no requests for a while.
    pub breaker: BreakerSettings,
    /// Whether `3gpp-Sbi-Oci` of producers reduces the requests to them (TS 29.500 §6.4).
    pub honour_oci: bool,
    /// Whether `3gpp-Sbi-Lci` of producers affects their selection (TS 29.500 §6.3).
    pub use_lci: bool,
    /// Time for which a reported load counts, unless the producer reports another or its profile gets one.
    pub lci_validity: Period,
    /// Whether answers carry the load of this SCP (`3gpp-Sbi-Lci` with the scope of the SCP).
    pub convey_own_lci: bool,
    /// Interval at which the conveyed load is updated.
    pub own_lci_interval: Period,
    /// A change of the own load by this many percentage points is conveyed at once.
    pub own_lci_change: u8,
    /// Whether answers report an overload of this SCP and the requested reduction of the load
    /// (`3gpp-Sbi-Oci` with the scope of the SCP).
    pub convey_own_oci: bool,
    /// How long a reported overload holds, unless it is reported again.
    pub own_oci_validity: Period,
    /// Refusal of requests, the least important first, when they wait too long for a worker.
    pub waiting: WaitingTime,
    /// Deprecated: the SCP refuses requests by their waiting time (`waiting`), not by CPU time. A percentage has no
    /// effect; `null` switches `waiting` off.
    pub target_load: Option<Percent>,
    /// Share of the CPU time of a worker that requests may always use, by their measured cost: if other work fills the
    /// worker, waiting time does not refuse more of them.
    pub kept_load: Percent,
    /// Levels of CPU time of a worker at which a share of the requests is discarded whatever their waiting time; rising.
    pub overload: Vec<OverloadStep>,
    /// Requests in flight at most, per worker; 0: any number. The last quarter is reserved for requests of higher
    /// priority, more of it the higher the priority.
    pub max_in_flight: u32,
    /// Requests of priority 0 to this one are never discarded, neither here nor for the overload of a producer.
    #[schemars(range(max = 31))]
    pub spare_priority: u8,
    /// Answers to requests that the SCP refuses or cannot serve, by reason: `assertion`, `circuitOpen`,
    /// `connectionRate`, `egressRate`, `ejected`, `forbidden`, `header`, `hops`, `inFlight`, `ingressRate`, `late`,
    /// `loop`, `mediation`, `method`, `noProducer`, `outstanding`, `overflow`, `overload`, `producerOverload`,
    /// `target`, `timeout`, `token`, `unreachable`, `unsendable`.
    pub error_profiles: BTreeMap<String, ErrorProfile>,
    /// Message priorities.
    pub priorities: Priorities,
}

impl Default for Protection {
    fn default() -> Self {
        Self {
            consumer_keys: vec![ConsumerKey::default()],
            max_consumers: 10_000,
            ingress: Vec::new(),
            egress: Vec::new(),
            federation: Federation::default(),
            max_outstanding: 10_000,
            outliers: OutlierSettings::default(),
            breaker: BreakerSettings::default(),
            honour_oci: true,
            use_lci: true,
            lci_validity: Period::from_secs(60),
            convey_own_lci: false,
            own_lci_interval: Period::from_secs(5),
            own_lci_change: 5,
            convey_own_oci: false,
            own_oci_validity: Period::from_secs(15),
            waiting: WaitingTime::default(),
            target_load: Some(Percent::new(95.0)),
            kept_load: Percent::new(100.0 * Shedding::KEPT),
            overload: Vec::new(),
            max_in_flight: 20_000,
            spare_priority: 0,
            error_profiles: BTreeMap::new(),
            priorities: Priorities::default(),
        }
    }
}

impl Protection {
    /// Whether keys and rates of consumers are the same: their accounts then outlive a reload.
    pub(crate) fn same_consumers(&self, other: &Self) -> bool {
        self.consumer_keys == other.consumer_keys
            && self.max_consumers == other.max_consumers
            && self.ingress == other.ingress
    }

    /// How the load of this SCP is advertised.
    pub(crate) fn conveying(&self) -> Conveying {
        Conveying {
            lci: self.convey_own_lci,
            lci_interval: self.own_lci_interval,
            lci_change: self.own_lci_change,
            oci: self.convey_own_oci,
            oci_validity: self.own_oci_validity,
        }
    }
}

impl Validate for Protection {
    fn validate(&self, faults: &mut Faults) {
        for (i, one) in self.ingress.iter().enumerate() {
            faults.within(format!("ingress[{i}].rate"), &one.rate);
        }
        for (i, one) in self.egress.iter().enumerate() {
            faults.within(format!("egress[{i}].rate"), &one.rate);
        }
        faults.within("waiting", &self.waiting);
        let levels: Vec<Level> = self.overload.iter().map(|step| step.level.clone()).collect();
        let mut of_levels = Faults::default();
        CongestionLevels::validate(&levels, &mut of_levels);
        if !of_levels.is_empty() {
            faults.at("overload").say(
                "its levels do not rise, or one is cleared above where it is set",
                "rising levels",
            );
        }
        if self.priorities.default > 31 {
            faults.at("priorities.default").say("is out of range", "0 to 31");
        }
        for (i, rule) in self.priorities.rules.iter().enumerate() {
            if rule.priority > 31 {
                faults
                    .at(format!("priorities.rules[{i}].priority"))
                    .say("is out of range", "0 to 31");
            }
        }
        for reason in self.error_profiles.keys() {
            // `other` was a reason of earlier releases.
            let mut labels = Refusal::ALL.iter().map(|one| one.label());
            if reason != "other" && !labels.any(|label| label == reason) {
                let labels: Vec<_> = Refusal::ALL.iter().map(|one| one.label()).collect();
                faults
                    .at(format!("errorProfiles.{reason}"))
                    .say("is not a reason", format!("one of {}", labels.join(", ")));
            }
        }
        if self.consumer_keys.is_empty() {
            faults
                .at("consumerKeys")
                .say("is empty", "at least one, such as userAgent");
        }
        if self.max_consumers == 0 {
            faults.at("maxConsumers").say("is 0", "at least 1");
        }
        faults.within("federation", &self.federation);
        faults.within("outliers", &self.outliers);
        faults.within("breaker", &self.breaker);
    }
}
