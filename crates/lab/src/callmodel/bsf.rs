//! The traffic of a BSF (TS 29.521): bindings that PCFs register, deregister and look up.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use settings::{Faults, Validate};

/// Bindings that stand when a run begins, unless it is told otherwise; models have millions.
pub const USUAL_SESSIONS: u64 = 100_000;

/// The traffic of a BSF at its service-based interface.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct BsfModel {
    /// What PCFs and other consumers send, each in transactions per second over all sites at the full rate.
    pub operations: Operations,
    /// Bindings that stand, over all sites.
    #[schemars(range(min = 1))]
    pub sessions: u64,
    /// PDU sessions of each subscriber, in data networks of their own.
    #[serde(default = "one")]
    #[schemars(range(min = 1, max = 2))]
    pub sessions_per_subscriber: u32,
    /// Sites, each with a BSF and a store.
    #[serde(default = "one")]
    #[schemars(range(min = 1, max = 16))]
    pub sites: u32,
    /// Those of them that carry traffic.
    #[serde(default = "one")]
    #[schemars(range(min = 1, max = 16))]
    pub sites_with_traffic: u32,
    /// Whether the BSF discards requests when it is congested.
    #[serde(default)]
    pub congestion_control: bool,
}

fn one() -> u32 {
    1
}

/// Transactions per second that arrive at the service-based interface.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default, rename_all = "camelCase")]
pub struct Operations {
    /// New bindings.
    pub binding_create: f64,
    /// Ends of bindings.
    pub binding_delete: f64,
    /// Discoveries, by the address of a UE.
    pub binding_discover: f64,
}

impl Operations {
    /// All of it.
    #[must_use]
    pub fn total(&self) -> f64 {
        self.binding_create + self.binding_delete + self.binding_discover
    }
}

impl BsfModel {
    /// Bindings that stand when a run begins.
    #[must_use]
    pub fn sessions_for_run(&self, asked: Option<u64>) -> u64 {
        asked.unwrap_or(self.sessions.min(USUAL_SESSIONS))
    }
}

impl Validate for BsfModel {
    fn validate(&self, faults: &mut Faults) {
        let Operations {
            binding_create,
            binding_delete,
            binding_discover,
        } = self.operations;
        for (key, rate) in [
            ("bindingCreate", binding_create),
            ("bindingDelete", binding_delete),
            ("bindingDiscover", binding_discover),
        ] {
            if !rate.is_finite() || rate < 0.0 {
                faults
                    .at(format!("operations.{key}"))
                    .say("is not a rate", "transactions per second, 0 or more");
            }
        }
        if binding_create <= 0.0 {
            faults.at("operations.bindingCreate").say(
                "without it there is nothing to find or delete",
                "transactions per second, above 0",
            );
        }
        if self.sites_with_traffic > self.sites {
            faults.at("sitesWithTraffic").say(
                format!("{} of {} sites", self.sites_with_traffic, self.sites),
                format!("at most {}", self.sites),
            );
        }
    }
}
