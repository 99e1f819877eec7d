//! The traffic of a service communication proxy (TS 29.500 §6.10).

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use settings::{Faults, Percent, Period, Validate};

/// Messages that an SCP processes for each request, as the guide counts them: the request and its answer.
pub const MESSAGES_PER_REQUEST: f64 = 2.0;

/// The traffic of an SCP.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct ScpModel {
    /// Messages per second at the full rate; a request with its answer is two.
    pub mps: f64,
    /// Who asks whom for what.
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
    /// How long a producer takes to answer.
    #[serde(default)]
    pub producer_latency: Period,
    /// Share of requests whose producer the SCP discovers (Model D); the others name it (Model C).
    #[serde(default)]
    pub delegated: Percent,
    /// How long the NRF's answers to discoveries are valid.
    #[serde(default)]
    pub validity: Period,
    /// Whether each delegated discovery is asked of the NRF (`enforceReqSpecificSvcDiscovery`).
    #[serde(default)]
    pub discover_each: bool,
    /// Share of the requests whose first producer fails, so that another of its set must serve.
    #[serde(default)]
    pub alternate_routed: Percent,
    /// Share of the requests that a mediation rule changes.
    #[serde(default)]
    pub mediated: Percent,
    /// Mediation rules, in groups that are dealt to the services.
    #[serde(default)]
    pub mediation_rules: u32,
    /// Groups of mediation rules.
    #[serde(default)]
    pub mediation_groups: u32,
    /// Whether consumers and producers have rates (far above what is sent).
    #[serde(default)]
    pub rate_limits: bool,
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
    /// Service that is asked for.
    pub service: String,
    /// How many of the requests, relative to the other interfaces.
    #[schemars(range(min = 0))]
    pub weight: f64,
}

fn default_set() -> u32 {
    3
}

impl ScpModel {
    /// Requests per second at the full rate.
    #[must_use]
    pub fn requests(&self) -> f64 {
        self.mps / MESSAGES_PER_REQUEST
    }

    /// The types of producers and the services each offers, in the order in which they come first.
    #[must_use]
    pub fn producers(&self) -> Vec<(&str, Vec<&str>)> {
        let mut types: Vec<(&str, Vec<&str>)> = Vec::new();
        for one in &self.interfaces {
            let at = match types.iter().position(|(known, _)| *known == one.producer) {
                Some(at) => at,
                None => {
                    types.push((&one.producer, Vec::new()));
                    types.len() - 1
                }
            };
            if !types[at].1.contains(&one.service.as_str()) {
                types[at].1.push(&one.service);
            }
        }
        types
    }
}

impl Validate for ScpModel {
    fn validate(&self, faults: &mut Faults) {
        if !(self.mps.is_finite() && self.mps > 0.0) {
            faults
                .at("mps")
                .say("is no rate", "messages per second, more than 0");
        }
        let total: f64 = self.interfaces.iter().map(|one| one.weight).sum();
        if !(total.is_finite() && total > 0.0) {
            faults
                .at("interfaces")
                .say("have no weight", "at least one with a weight above 0");
        }
        if self.mediated.fraction() > 0.0 && self.mediation_rules == 0 {
            faults
                .at("mediationRules")
                .say("is 0 although requests are mediated", "at least 1");
        }
        if (self.profiles as usize) < 2 * self.producers().len() {
            faults
                .at("profiles")
                .say("is too few for the types of producers", "at least two of each");
        }
    }
}
