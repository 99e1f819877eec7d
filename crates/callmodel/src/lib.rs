//! Call models: an operator's traffic as data.
//!
//! A call model says how much of what is sent, how many functions of which size there are, how slow their
//! peers are, and what the vendor's benchmark guide measured for the same mix. Models live as YAML under
//! `callmodels/`, are part of the binary, and any file of the same form can be given by its path.
//! `callmodels/README.md` explains the format for writers of models.
//!
//! * [`CallModel`]: what every model has, and one section: [`nrf`], [`scp`], [`bsf`], [`dsr`], [`stp`], [`scef`], [`policy`], [`whole`] or [`bad_day`];
//! * [`find`], [`names`]: the models of this binary, and models from files;
//! * [`Guide`]: the figures of a benchmark guide; [`subscribers`]: the subscribers of the simulated network.

pub mod bad_day;
pub mod bsf;
pub mod dsr;
pub mod equipment;
mod guide;
mod library;
pub mod nrf;
pub mod ocdra;
pub mod pdra;
pub mod policy;
mod priorities;
pub mod resolution;
pub mod roaming;
pub mod scef;
pub mod scp;
pub mod stp;
pub mod subscribers;
pub mod whole;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use settings::{Faults, Percent, Period, Validate};

pub use guide::{Counterpart, Guide, GuideCpu, GuideLatency, GuideService};
pub use library::{Found, LoadError, find, names};
pub use priorities::PriorityShare;

/// A call model.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct CallModel {
    /// One line that names the model.
    pub title: String,
    /// What the traffic is like, in a few sentences.
    pub summary: String,
    /// Where the facts are from.
    pub source: Source,
    /// Where the source contradicts itself or is silent, what it says and what this model takes.
    #[serde(default)]
    pub choices: Vec<Choice>,
    /// How much, and over how many connections.
    pub load: Load,
    /// When a run has passed, and where the knee is.
    pub bounds: Bounds,
    /// What the guide measured for this traffic, if it is of a guide.
    #[serde(default)]
    pub guide: Option<Guide>,
    /// The traffic of an NRF. Each model has the section of exactly one function.
    #[serde(default)]
    pub nrf: Option<nrf::NrfModel>,
    /// The traffic of a Diameter signaling router.
    #[serde(default)]
    pub dsr: Option<dsr::DsrModel>,
    /// The traffic of a signal transfer point.
    #[serde(default)]
    pub stp: Option<stp::StpModel>,
    /// The traffic of a BSF.
    #[serde(default)]
    pub bsf: Option<bsf::BsfModel>,
    /// The traffic of a service communication proxy.
    #[serde(default)]
    pub scp: Option<scp::ScpModel>,
    /// The traffic of an SCEF.
    #[serde(default)]
    pub scef: Option<scef::ScefModel>,
    /// The traffic of a PCF.
    #[serde(default)]
    pub policy: Option<policy::PolicyModel>,
    /// Calls through every function.
    #[serde(default)]
    pub core: Option<whole::CoreModel>,
    /// Traffic through every function while one incident follows the other.
    #[serde(default)]
    pub bad_day: Option<bad_day::BadDayModel>,
}

/// Where the facts of a model are from.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Source {
    /// The document.
    pub guide: String,
    /// Its release.
    pub release: String,
    /// The section that describes this traffic.
    pub section: String,
    /// The tables used.
    #[serde(default)]
    pub tables: Vec<String>,
}

/// A contradiction or gap of the source, and how the model resolves it.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Choice {
    /// What it is about.
    pub about: String,
    /// What the source says.
    pub printed: String,
    /// What the model takes, and why.
    pub taken: String,
}

/// How much is sent.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Load {
    /// Connections that the load is spread over.
    #[schemars(range(min = 1, max = 10_000))]
    pub connections: u32,
    /// A request without an answer after this time has failed.
    #[serde(default = "default_timeout")]
    pub timeout: Period,
    /// Requests that may be without an answer at once; an arrival beyond that counts as failed.
    #[serde(default = "default_in_flight")]
    #[schemars(range(min = 1))]
    pub max_in_flight: u32,
    /// How arrivals are spaced.
    #[serde(default)]
    pub arrivals: Arrivals,
    /// Seed of everything random, so that two runs send the same.
    #[serde(default = "default_seed")]
    pub seed: u64,
}

fn default_timeout() -> Period {
    Period::from_secs(5)
}
fn default_in_flight() -> u32 {
    60_000
}
fn default_seed() -> u64 {
    29_510
}

/// How arrivals are spaced.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum Arrivals {
    /// Independently of one another, as those of many users are.
    #[default]
    Poisson,
    /// At equal distances.
    Constant,
}

/// When a run has passed.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Bounds {
    /// The least share of transactions that must succeed.
    pub success: Percent,
    /// The 99th percentile of the latency of all transactions may not pass this, induced latencies included.
    pub p99: Period,
    /// How far outgoing traffic (queries, notifications) may be from what the mix implies.
    #[serde(default = "default_outgoing")]
    pub outgoing: Percent,
    /// While searching for the knee: the least share that must succeed.
    pub knee_success: Percent,
    /// While searching for the knee: the bound of the 99th percentile.
    pub knee_p99: Period,
}

fn default_outgoing() -> Percent {
    Percent::new(2.0)
}

/// The function a model is for.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Function<'a> {
    /// Network repository function.
    Nrf(&'a nrf::NrfModel),
    /// Diameter signaling router.
    Dsr(&'a dsr::DsrModel),
    /// Signal transfer point.
    Stp(&'a stp::StpModel),
    /// Binding support function.
    Bsf(&'a bsf::BsfModel),
    /// Service communication proxy.
    Scp(&'a scp::ScpModel),
    /// Service capability exposure function.
    Scef(&'a scef::ScefModel),
    /// Policy control function.
    Policy(&'a policy::PolicyModel),
    /// Every function.
    Core(&'a whole::CoreModel),
    /// Every function, while one incident follows the other.
    BadDay(&'a bad_day::BadDayModel),
}

impl CallModel {
    /// The function this model is for; `None` only for a model that has not been validated.
    #[must_use]
    pub fn function(&self) -> Option<Function<'_>> {
        let nrf = self.nrf.as_ref().map(Function::Nrf);
        nrf.or_else(|| self.dsr.as_ref().map(Function::Dsr))
            .or_else(|| self.stp.as_ref().map(Function::Stp))
            .or_else(|| self.bsf.as_ref().map(Function::Bsf))
            .or_else(|| self.scp.as_ref().map(Function::Scp))
            .or_else(|| self.scef.as_ref().map(Function::Scef))
            .or_else(|| self.policy.as_ref().map(Function::Policy))
            .or_else(|| self.core.as_ref().map(Function::Core))
            .or_else(|| self.bad_day.as_ref().map(Function::BadDay))
    }

    /// Messages that the function's guide counts for each transaction, where it counts messages.
    #[must_use]
    pub fn messages_per_transaction(&self) -> Option<f64> {
        match self.function()? {
            Function::Dsr(dsr) => Some(dsr.messages_per_request()),
            Function::Scp(_) => Some(scp::MESSAGES_PER_REQUEST),
            Function::Scef(scef) => Some(scef.mps() / scef.requests().max(1e-9)),
            Function::Nrf(_)
            | Function::Stp(_)
            | Function::Bsf(_)
            | Function::Policy(_)
            | Function::Core(_)
            | Function::BadDay(_) => None,
        }
    }

    /// Whether the rate is searched for, unless one is given: what is offered is a multiple of what is carried.
    #[must_use]
    pub fn searches(&self) -> bool {
        let of_scp = self.scp.as_ref().and_then(|scp| scp.drill);
        let of_bsf = self.bsf.as_ref().and_then(|bsf| bsf.drill);
        of_scp == Some(scp::Drill::Overload) || of_bsf == Some(bsf::Drill::Overload)
    }

    /// Whether its drill has rates of its own, multiples of one that must be given.
    #[must_use]
    pub fn sets_rates(&self) -> bool {
        self.dsr.as_ref().is_some_and(|dsr| dsr.drill.is_some())
            || self.stp.as_ref().is_some_and(|stp| stp.drill.is_some())
            || self.policy.as_ref().is_some_and(|policy| policy.drill.is_some())
            || self.scef.as_ref().is_some_and(|scef| scef.drill.is_some())
    }

    /// The model without the limits that its own configuration of the function sets, and what was lifted; `None`
    /// where it sets none. A search for the highest rate would find such a limit instead of the function's capacity.
    #[must_use]
    pub fn without_limits(&self) -> Option<(Self, &'static str)> {
        let mut free = self.clone();
        let lifted = match (&mut free.dsr, &mut free.bsf) {
            (Some(dsr), _) if !dsr.discards.is_empty() => {
                dsr.discards.clear();
                "the discards of the overload levels"
            }
            // A drill of overload control has no other subject.
            (_, Some(bsf)) if bsf.congestion_control && bsf.drill.is_none() => {
                bsf.congestion_control = false;
                "congestion control"
            }
            _ => return None,
        };
        Some((free, lifted))
    }

    /// Ingress transactions per second at the model's full rate.
    #[must_use]
    pub fn ingress_tps(&self) -> f64 {
        match self.function() {
            Some(Function::Nrf(nrf)) => nrf.operations.total(),
            Some(Function::Dsr(dsr)) => dsr.requests(),
            Some(Function::Stp(stp)) => stp.mps,
            Some(Function::Bsf(bsf)) => bsf.transactions(),
            Some(Function::Scp(scp)) => scp.requests(),
            Some(Function::Scef(scef)) => scef.requests(),
            Some(Function::Policy(policy)) => policy.transactions(),
            Some(Function::Core(core)) => core.calls,
            Some(Function::BadDay(day)) => day.requests,
            None => 0.0,
        }
    }
}

impl Validate for CallModel {
    fn validate(&self, faults: &mut Faults) {
        if self.title.trim().is_empty() {
            faults
                .at("title")
                .say("is empty", "one line that names the model");
        }
        let sections = [
            self.nrf.is_some(),
            self.dsr.is_some(),
            self.stp.is_some(),
            self.bsf.is_some(),
            self.scp.is_some(),
            self.scef.is_some(),
            self.policy.is_some(),
            self.core.is_some(),
            self.bad_day.is_some(),
        ];
        match sections.iter().filter(|given| **given).count() {
            1 => {}
            0 => faults.at("").say(
                "describes no traffic",
                "the section of one function: `nrf`, `dsr`, `stp`, `bsf`, `scp`, `scef`, `policy`, `core` or `badDay`",
            ),
            _ => faults
                .at("")
                .say("describes the traffic of several functions", "the section of one"),
        }
        if let Some(nrf) = &self.nrf {
            faults.within("nrf", nrf);
        }
        if let Some(dsr) = &self.dsr {
            faults.within("dsr", dsr);
        }
        if let Some(stp) = &self.stp {
            faults.within("stp", stp);
        }
        if let Some(bsf) = &self.bsf {
            faults.within("bsf", bsf);
        }
        if let Some(scp) = &self.scp {
            faults.within("scp", scp);
        }
        if let Some(scef) = &self.scef {
            faults.within("scef", scef);
        }
        if let Some(policy) = &self.policy {
            faults.within("policy", policy);
        }
        if let Some(core) = &self.core {
            faults.within("core", core);
        }
        if let Some(day) = &self.bad_day {
            faults.within("badDay", day);
        }
        if let Some(guide) = &self.guide {
            faults.within("guide", guide);
        }
    }
}
