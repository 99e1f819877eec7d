//! The traffic of an NRF (TS 29.510).

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use settings::{Faults, Percent, Period, Validate};

/// The traffic of an NRF.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct NrfModel {
    /// Requests of consumers and producers, each in transactions per second at the full rate.
    pub operations: Operations,
    /// Requests of the NRF, each per second at the full rate, as the guide prints it.
    pub outgoing: Outgoing,
    /// The registered functions, by type.
    pub population: Vec<Population>,
    /// Discoveries.
    pub discovery: Vec<DiscoveryRow>,
    /// Subscriptions.
    pub subscriptions: Subscriptions,
    /// Latency of the peers.
    pub simulators: Simulators,
    /// Settings of the NRF.
    pub features: Features,
    /// Another NRF set, which shares its state with the one under test; absent: there is one set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub growth: Option<Growth>,
    /// An event while the load runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub drill: Option<Drill>,
}

/// Another NRF set.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Growth {
    /// How many functions of `population` are registered with the other set.
    #[schemars(range(min = 1))]
    pub profiles: u32,
    /// How much later the answers of the other set arrive.
    #[serde(default)]
    pub latency: Period,
}

/// An event at the NRFs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum Drill {
    /// Two NRFs share a database and the load; one of them is killed.
    KillOne,
}

/// Transactions per second that arrive at the NRF.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Operations {
    /// Registration of a new function.
    pub nf_register: f64,
    /// Change of a profile other than its load.
    pub nf_update: f64,
    /// Heart-beats, which may report a new load.
    pub nf_heartbeat: f64,
    /// Removal of a function.
    pub nf_deregister: f64,
    /// Discovery by consumers.
    pub nf_discover: f64,
    /// Discovery forwarded to this NRF by another.
    #[serde(default)]
    pub nf_discover_from_nrf: f64,
    /// New subscriptions.
    pub nf_status_subscribe: f64,
    /// Extensions of subscriptions.
    pub nf_status_subscribe_update: f64,
    /// Ends of subscriptions.
    pub nf_status_unsubscribe: f64,
    /// Retrieval of one profile.
    pub nf_profile_retrieval: f64,
    /// Retrieval of the list of functions.
    pub nf_list_retrieval: f64,
    /// Access tokens for consumers.
    pub nf_access_token: f64,
    /// Access tokens that the NRF itself needs for queries to the SLF.
    #[serde(default)]
    pub nf_access_token_for_slf: f64,
}

impl Operations {
    /// Sum of all rates.
    #[must_use]
    pub fn total(&self) -> f64 {
        self.nf_register
            + self.nf_update
            + self.nf_heartbeat
            + self.nf_deregister
            + self.discoveries()
            + self.nf_status_subscribe
            + self.nf_status_subscribe_update
            + self.nf_status_unsubscribe
            + self.nf_profile_retrieval
            + self.nf_list_retrieval
            + self.nf_access_token
            + self.nf_access_token_for_slf
    }

    /// Discoveries from consumers and other NRFs.
    #[must_use]
    pub fn discoveries(&self) -> f64 {
        self.nf_discover + self.nf_discover_from_nrf
    }
}

/// Requests of the NRF, per second at the full rate.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Outgoing {
    /// Queries to the SLF, as printed; what is sent follows from `discovery`.
    pub slf_queries: f64,
    /// Discoveries forwarded to another NRF.
    pub forwarded: f64,
    /// Notifications to subscribers.
    pub notifications: f64,
}

/// Registered functions of one type.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Population {
    /// `AMF`, `SMF` …; `SLF` stands for a UDR that offers only `nudr-group-id-map`.
    #[serde(rename = "type")]
    pub nf_type: String,
    /// How many.
    #[schemars(range(min = 1, max = 100_000))]
    pub count: u32,
    /// Bytes of a profile, from the smallest to the largest.
    pub profile_bytes: [u32; 2],
}

/// Discoveries of one type of function.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct DiscoveryRow {
    /// The target NF type.
    pub target: String,
    /// How many of these, relative to the other rows.
    #[schemars(range(min = 0))]
    pub weight: f64,
    /// Profiles that an answer must hold.
    #[schemars(range(min = 1))]
    pub profiles: u32,
    /// Cells of the type that are queried, spread over all; absent: all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub cells: Option<u32>,
    /// The combinations of query parameters in use.
    pub queries: Vec<Query>,
}

/// One combination of query parameters.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Query {
    /// The parameters beside `target-nf-type` and `requester-nf-type`, which every query has.
    pub parameters: Vec<Parameter>,
    /// Weight, relative to the other combinations of the row.
    #[serde(default = "one")]
    #[schemars(range(min = 0))]
    pub weight: f64,
    /// The number that the guide gives the combination.
    #[serde(default)]
    pub combination: Option<u32>,
}

fn one() -> f64 {
    1.0
}

/// A query parameter of TS 29.510 §6.2.3.2.3.1 that call models use.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Parameter {
    /// Names of services, all of the type's.
    ServiceNames,
    /// A subscriber; with a target type of `slfTypes` and no group, the NRF must query the SLF.
    Supi,
    /// The group of the target.
    GroupIdList,
    /// The routing indicator of a subscriber.
    RoutingIndicator,
    /// The AMF's identity.
    Guami,
    /// Slices of the requester.
    RequesterNssais,
    /// The PGW part's name.
    Pgw,
    /// Whether the target is a combined SMF and PGW.
    PgwInd,
    /// Data network.
    Dnn,
    /// Slices looked for.
    Snssais,
    /// Tracking area.
    Tai,
    /// The preferred locality of the target.
    PreferredLocality,
    /// Data set of a UDR.
    DataSet,
}

impl Query {
    /// Whether this combination makes an NRF query the SLF, given the types for which it does so.
    #[must_use]
    pub fn asks_slf(&self, target: &str, slf_types: &[String]) -> bool {
        self.has(Parameter::Supi)
            && !self.has(Parameter::GroupIdList)
            && slf_types.iter().any(|t| t == target)
    }

    /// Whether the combination has a parameter.
    #[must_use]
    pub fn has(&self, parameter: Parameter) -> bool {
        self.parameters.contains(&parameter)
    }
}

/// Subscriptions.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Subscriptions {
    /// Bound of the subscriptions that the NRF accepts.
    pub limit: u32,
    /// Those for all functions of a type.
    pub by_nf_type: u32,
    /// Those for one function.
    pub by_nf_instance: u32,
    /// Those for a set.
    pub by_nf_set: u32,
    /// Those for functions that offer a service.
    pub by_service: u32,
    /// The NRF notifies of changes of these attributes.
    pub monitored_attributes: Vec<String>,
    /// The NRF notifies of these events.
    pub events: Vec<String>,
    /// Validity of a subscription unless extended.
    #[serde(default = "validity")]
    pub validity: Period,
}

fn validity() -> Period {
    Period::from_secs(86_400)
}

impl Subscriptions {
    /// All subscriptions that exist when the load begins.
    #[must_use]
    pub fn standing(&self) -> u32 {
        self.by_nf_type + self.by_nf_instance + self.by_nf_set + self.by_service
    }
}

/// Latency of the simulated peers.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Simulators {
    /// A consumer, to take a notification.
    pub consumer: Period,
    /// The SLF.
    pub slf: Period,
    /// Another NRF that a discovery is forwarded to, there and back.
    pub remote_nrf: Period,
}

/// Settings of the NRF.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Features {
    /// Types for which the NRF queries the SLF for a subscriber's group.
    #[serde(default)]
    pub slf_types: Vec<String>,
    /// The type whose discovery is forwarded when nothing local matches.
    #[serde(default)]
    pub forwarded_type: Option<String>,
    /// Most profiles in an answer.
    pub max_profiles: u32,
    /// Validity of an answer.
    pub discovery_validity: Period,
    /// Change of load of which the NRF notifies, in percent points.
    pub load_threshold: Percent,
    /// Interval of heart-beats that the NRF requests.
    pub heartbeat: Period,
    /// Whether queries to the SLF carry an access token.
    #[serde(default)]
    pub slf_access_token: bool,
    /// SLF queries for one discovery at most.
    #[serde(default = "one_attempt")]
    pub slf_attempts: u32,
    /// Life of an access token.
    #[serde(default = "validity")]
    pub token_validity: Period,
    /// Rules that decide which consumer may get an access token for which producer.
    #[serde(default)]
    pub authorization_rules: u32,
    /// Types for which empty answers have a validity of their own.
    #[serde(default)]
    pub empty_list_rules: u32,
    /// Places that a preferred locality may be, each with the others in order of preference.
    #[serde(default)]
    pub localities: u32,
}

fn one_attempt() -> u32 {
    1
}

impl NrfModel {
    /// SLF queries per second at the full rate, as they follow from the discovery mix.
    #[must_use]
    pub fn slf_queries(&self) -> f64 {
        let total: f64 = self.discovery.iter().map(|row| row.weight).sum();
        let asking = self
            .discovery
            .iter()
            .map(|row| row.weight * self.slf_share(row))
            .sum::<f64>();
        if total > 0.0 {
            self.operations.discoveries() * asking / total
        } else {
            0.0
        }
    }

    /// The share of a row's queries that make the NRF ask the SLF.
    #[must_use]
    pub fn slf_share(&self, row: &DiscoveryRow) -> f64 {
        let all: f64 = row.queries.iter().map(|q| q.weight).sum();
        let asking: f64 = row
            .queries
            .iter()
            .filter(|q| q.asks_slf(&row.target, &self.features.slf_types))
            .map(|q| q.weight)
            .sum();
        if all > 0.0 { asking / all } else { 0.0 }
    }

    /// All functions that are registered when the load begins.
    #[must_use]
    pub fn population_total(&self) -> u32 {
        self.population.iter().map(|p| p.count).sum()
    }
}

/// Types that the lab knows how to make profiles of.
pub const TYPES: [&str; 14] = [
    "AMF", "AUSF", "BSF", "CBCF", "CHF", "GMLC", "LMF", "NEF", "PCF", "SLF", "SMF", "SMSF", "UDM", "UDR",
];

impl Validate for NrfModel {
    fn validate(&self, faults: &mut Faults) {
        for (at, row) in self.population.iter().enumerate() {
            if !TYPES.contains(&row.nf_type.as_str()) {
                faults.at(format!("population[{at}].type")).say(
                    format!("{:?} is not a type the lab makes profiles of", row.nf_type),
                    TYPES.join(", "),
                );
            }
            let [least, most] = row.profile_bytes;
            if least < 500 || most < least || most > 100_000 {
                faults.at(format!("population[{at}].profileBytes")).say(
                    format!("{least} to {most} bytes is not a range"),
                    "[least, most], from 500 to 100000",
                );
            }
        }
        for (at, row) in self.discovery.iter().enumerate() {
            let place = format!("discovery[{at}]");
            let Some(population) = self.population.iter().find(|p| p.nf_type == row.target) else {
                faults.at(format!("{place}.target")).say(
                    format!("no {} is registered", row.target),
                    "a type of `population`",
                );
                continue;
            };
            let fits = population.count.min(self.features.max_profiles);
            if row.profiles > fits {
                faults.at(format!("{place}.profiles")).say(
                    format!("{} profiles cannot be in an answer", row.profiles),
                    format!(
                        "at most {fits}: {} are registered, {} fit",
                        population.count, self.features.max_profiles
                    ),
                );
            }
            if row.weight > 0.0 && row.queries.iter().all(|q| q.weight <= 0.0) {
                faults
                    .at(format!("{place}.queries"))
                    .say("holds no query to send", "at least one with a weight above 0");
            }
        }
        if self.operations.discoveries() > 0.0 && self.discovery.iter().all(|row| row.weight <= 0.0) {
            faults
                .at("discovery")
                .say("holds nothing to look for", "rows with weights above 0");
        }
        if self.subscriptions.standing() > self.subscriptions.limit {
            faults.at("subscriptions.limit").say(
                format!(
                    "{} subscriptions stand before the load begins",
                    self.subscriptions.standing()
                ),
                "a limit that holds them",
            );
        }
        if let Some(growth) = &self.growth {
            let slfs = self.population.iter().filter(|p| p.nf_type == "SLF");
            let most = self.population_total() / 2 - slfs.map(|p| p.count).sum::<u32>();
            if growth.profiles == 0 || growth.profiles > most {
                faults.at("growth.profiles").say(
                    format!(
                        "{} functions cannot be registered with the other set",
                        growth.profiles
                    ),
                    format!("1 to {most}: half of `population`, without the SLFs"),
                );
            }
            if self.drill.is_some() {
                faults
                    .at("growth")
                    .say("goes with no drill", "`growth` or `drill`, not both");
            }
        }
        if self.outgoing.forwarded > 0.0 && self.features.forwarded_type.is_none() {
            faults
                .at("outgoing.forwarded")
                .say("nothing can be forwarded", "`features.forwardedType`, or 0 here");
        }
    }
}
