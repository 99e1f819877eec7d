//! The traffic of a BSF: bindings that PCFs register, deregister and query (TS 29.521), and the sessions that AFs have
//! with PCFs through its Diameter agent (TS 29.214).

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use settings::{Faults, Percent, Period, Validate};

use crate::priorities::{self, PriorityShare};

/// Bindings that exist when a run begins, unless the model or the options set another number; models have millions.
pub const USUAL_SESSIONS: u64 = 100_000;

/// The traffic of a BSF.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct BsfModel {
    /// Requests of PCFs and other consumers, each in transactions per second over all sites at the full rate.
    pub operations: Operations,
    /// Diameter requests between AFs and PCFs through its Diameter agent.
    #[serde(default)]
    pub rx: Rx,
    /// Bindings that exist when a run begins, over all sites.
    #[schemars(range(min = 1))]
    pub sessions: u64,
    /// PDU sessions of each subscriber, each in a data network of its own.
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
    /// How many of the requests of each interface have which priority: `3gpp-Sbi-Message-Priority`, and half of it as DRMP
    /// (RFC 7944), of which there are half as many; none: no request carries one.
    #[serde(default)]
    pub priorities: Vec<PriorityShare>,
    /// Features that are on beside those of every run.
    #[serde(default)]
    pub features: Features,
    /// What happens while the load runs.
    #[serde(default)]
    pub drill: Option<Drill>,
}

/// Features of a BSF that need others around it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default, rename_all = "camelCase")]
pub struct Features {
    /// Whether the BSF audits its bindings: an NRF has the PCFs.
    pub audit: bool,
    /// Whether the BSF finds its NRF by SRV records.
    pub dns_srv: bool,
    /// Whether the score of the BSF is checked.
    pub scoring: bool,
}

impl Features {
    /// Whether the BSF registers at an NRF.
    #[must_use]
    pub fn needs_nrf(&self) -> bool {
        self.audit || self.dns_srv
    }
}

/// What happens while the load runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum Drill {
    /// Three times the rate is offered.
    Overload,
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

/// Sessions of AFs with PCFs, each in transactions per second over all sites.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default, rename_all = "camelCase")]
pub struct Rx {
    /// AARs that begin a session.
    pub aar_initial: f64,
    /// AARs of an existing session.
    pub aar_update: f64,
    /// STRs.
    pub str: f64,
    /// RARs of PCFs; each follows an AAR, so there are at most as many.
    pub rar: f64,
    /// Time that a PCF takes to answer.
    pub pcf_latency: Period,
}

impl Rx {
    /// Requests of AFs.
    #[must_use]
    pub fn requests(&self) -> f64 {
        self.aar_initial + self.aar_update + self.str
    }

    /// The share of AARs that a RAR follows.
    #[must_use]
    pub fn rar_share(&self) -> Percent {
        Percent::new(100.0 * self.rar / (self.aar_initial + self.aar_update).max(1e-9))
    }
}

impl Operations {
    /// Sum of all rates.
    #[must_use]
    pub fn total(&self) -> f64 {
        self.binding_create + self.binding_delete + self.binding_discover
    }
}

impl BsfModel {
    /// Transactions per second that arrive from PCFs and AFs; the RARs of PCFs follow from them.
    #[must_use]
    pub fn transactions(&self) -> f64 {
        self.operations.total() + self.rx.requests()
    }

    /// Bindings that exist when a run begins.
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
            not_a_rate(faults, format!("operations.{key}"), rate);
        }
        let rx = &self.rx;
        for (key, rate) in [
            ("aarInitial", rx.aar_initial),
            ("aarUpdate", rx.aar_update),
            ("str", rx.str),
            ("rar", rx.rar),
        ] {
            not_a_rate(faults, format!("rx.{key}"), rate);
        }
        if rx.rar > rx.aar_initial + rx.aar_update {
            faults
                .at("rx.rar")
                .say("is above the rate of AARs", "at most one RAR for each AAR");
        }
        if binding_create <= 0.0 {
            faults.at("operations.bindingCreate").say(
                "is 0, so no binding exists to find or delete",
                "transactions per second, above 0",
            );
        }
        let overloads = self.drill == Some(Drill::Overload);
        priorities::validate(&self.priorities, overloads, faults);
        if overloads && !self.congestion_control {
            faults.at("congestionControl").say(
                "is off, so nothing is refused by its priority",
                "true, for a drill of overload",
            );
        }
        if overloads && self.sites > 1 {
            faults
                .at("sites")
                .say(format!("are {}", self.sites), "1, for a drill of overload");
        }
        if self.sites_with_traffic > self.sites {
            faults.at("sitesWithTraffic").say(
                format!("{} of {} sites", self.sites_with_traffic, self.sites),
                format!("at most {}", self.sites),
            );
        }
    }
}

fn not_a_rate(faults: &mut Faults, key: String, rate: f64) {
    if !rate.is_finite() || rate < 0.0 {
        faults
            .at(key)
            .say("is not a rate", "transactions per second, 0 or more");
    }
}
