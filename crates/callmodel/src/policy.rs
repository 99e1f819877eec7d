//! The traffic of a PCF: policy associations that SMFs (TS 29.512) and AMFs (TS 29.507, TS 29.525) create, update and
//! delete, and the peers from which the PCF has its data.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use settings::{Faults, Period, Validate};

/// Associations that stand when a run begins, unless an option says otherwise; models have millions.
pub const USUAL_ASSOCIATIONS: u64 = 2_000;

/// The traffic of a PCF.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct PolicyModel {
    /// The example project that decides: `low`, `medium` or `high` complexity.
    pub project: Complexity,
    /// SM policy associations by data network.
    #[serde(default)]
    pub sm: Vec<DataNetwork>,
    /// AM policy associations.
    #[serde(default)]
    pub am: Rates,
    /// UE policy associations.
    #[serde(default)]
    pub ue: Rates,
    /// Sessions of PCEFs over Gx (TS 29.212). A model of them has none of `sm`, `am` and `ue`.
    #[serde(default)]
    pub gx: Option<Gx>,
    /// Calls of P-CSCFs over Rx (TS 29.214) in the sessions of `gx`: AARs that begin one, those that confirm it, STRs.
    #[serde(default)]
    pub rx: Rates,
    /// What the guide's PCF sends to other functions, in transactions per second over all sites.
    #[serde(default)]
    pub egress: f64,
    /// Associations that stand, over all sites.
    #[schemars(range(min = 1))]
    pub associations: u64,
    /// Subscribers that the UDR has.
    #[schemars(range(min = 1))]
    pub subscribers: u64,
    /// Sites, each with a PCF and a store.
    #[serde(default = "one")]
    #[schemars(range(min = 1, max = 16))]
    pub sites: u32,
    /// Those of them that carry traffic.
    #[serde(default = "one")]
    #[schemars(range(min = 1, max = 16))]
    pub sites_with_traffic: u32,
    /// The UDR with the policy data (TS 29.519); absent: the PCF decides without.
    #[serde(default)]
    pub udr: Option<Source>,
    /// The CHF with the policy counters (TS 29.594); absent: the PCF decides without.
    #[serde(default)]
    pub chf: Option<Source>,
    /// Whether the PCF registers SM associations at a BSF (TS 29.521).
    #[serde(default)]
    pub bsf: bool,
    /// Whether a Policy DRA is before the PCFs of all sites: gateways and P-CSCFs of `gx` and `rx` are connected to it alone.
    #[serde(default)]
    pub pdra: bool,
    /// What happens to the PCF while the load runs.
    #[serde(default)]
    pub drill: Option<Drill>,
}

/// Sessions of PCEFs, in transactions per second over all sites.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Gx {
    /// The access point name.
    pub apn: String,
    /// CCR-Is.
    pub create: f64,
    /// CCR-Us.
    pub update: f64,
    /// CCR-Ts.
    pub delete: f64,
    /// Whether CCR-Us report usage, for which the CCA grants a further quota.
    #[serde(default)]
    pub usage: bool,
}

impl Gx {
    /// Its rates.
    #[must_use]
    pub fn rates(&self) -> Rates {
        Rates {
            create: self.create,
            update: self.update,
            delete: self.delete,
        }
    }
}

/// Something that happens to a PCF under load.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum Drill {
    /// It is killed and started again on its store.
    KillPcf,
}

fn one() -> u32 {
    1
}

/// How much a policy project computes, in the three levels that operators' benchmarks distinguish.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum Complexity {
    /// Conditions and a table.
    Low,
    /// Loops, wildcards on at most three keys, fewer than six patterns.
    Medium,
    /// Scripts, JSON operations, wildcards on more keys, six patterns and more.
    High,
}

impl Complexity {
    /// The name of the example project.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Low => "low",
            Self::Medium => "medium",
            Self::High => "high",
        }
    }
}

/// A function that the PCF has data from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default, rename_all = "camelCase")]
pub struct Source {
    /// How long it takes to answer.
    pub latency: Period,
}

/// Transactions per second over all sites.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default, rename_all = "camelCase")]
pub struct Rates {
    /// New associations.
    pub create: f64,
    /// Updates of associations.
    pub update: f64,
    /// Ends of associations.
    pub delete: f64,
}

impl Rates {
    /// All of it.
    #[must_use]
    pub fn total(&self) -> f64 {
        self.create + self.update + self.delete
    }

    /// Whether all of them are rates.
    pub(crate) fn are_valid(&self) -> bool {
        let rates = [self.create, self.update, self.delete];
        rates.iter().all(|rate| rate.is_finite() && *rate >= 0.0)
    }
}

/// The sessions of a data network.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct DataNetwork {
    /// Its name.
    pub dnn: String,
    /// New associations per second over all sites.
    pub create: f64,
    /// Updates per second.
    #[serde(default)]
    pub update: f64,
    /// Deletions per second.
    pub delete: f64,
}

impl DataNetwork {
    /// Its rates.
    #[must_use]
    pub fn rates(&self) -> Rates {
        Rates {
            create: self.create,
            update: self.update,
            delete: self.delete,
        }
    }
}

impl PolicyModel {
    /// SM policy associations, over all data networks.
    #[must_use]
    pub fn sm_rates(&self) -> Rates {
        self.sm.iter().fold(Rates::default(), |sum, one| Rates {
            create: sum.create + one.create,
            update: sum.update + one.update,
            delete: sum.delete + one.delete,
        })
    }

    /// Sessions of PCEFs, per second.
    #[must_use]
    pub fn gx_rates(&self) -> Rates {
        self.gx.as_ref().map_or_else(Rates::default, Gx::rates)
    }

    /// Transactions per second that arrive from consumers; what the PCF sends follows from them.
    #[must_use]
    pub fn transactions(&self) -> f64 {
        let diameter = self.gx_rates().total() + self.rx.total();
        self.sm_rates().total() + self.am.total() + self.ue.total() + diameter
    }

    /// Associations that stand when a run begins.
    #[must_use]
    pub fn associations_for_run(&self, asked: Option<u64>) -> u64 {
        asked.unwrap_or(self.associations.min(USUAL_ASSOCIATIONS))
    }
}

impl Validate for PolicyModel {
    fn validate(&self, faults: &mut Faults) {
        let mut kinds: Vec<(String, Rates)> = self
            .sm
            .iter()
            .enumerate()
            .map(|(at, one)| (format!("sm[{at}]"), one.rates()))
            .collect();
        kinds.push(("am".to_owned(), self.am));
        kinds.push(("ue".to_owned(), self.ue));
        kinds.push(("gx".to_owned(), self.gx_rates()));
        kinds.push(("rx".to_owned(), self.rx));
        for (kind, rates) in kinds {
            for (key, rate) in [
                ("create", rates.create),
                ("update", rates.update),
                ("delete", rates.delete),
            ] {
                if !rate.is_finite() || rate < 0.0 {
                    faults
                        .at(format!("{kind}.{key}"))
                        .say("is not a rate", "transactions per second, 0 or more");
                }
            }
            if rates.total() > 0.0 && rates.create <= 0.0 {
                faults.at(format!("{kind}.create")).say(
                    "without it nothing can be updated or deleted",
                    "transactions per second, above 0",
                );
            }
        }
        for (at, one) in self.sm.iter().enumerate() {
            let is_label = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-');
            if one.dnn.is_empty() || !one.dnn.bytes().all(is_label) {
                faults.at(format!("sm[{at}].dnn")).say(
                    format!("{:?} is not a data network name", one.dnn),
                    "letters, digits, dots and hyphens",
                );
            }
        }
        let consumers = self.sm_rates().total() + self.am.total() + self.ue.total();
        if self.gx.is_some() && consumers > 0.0 {
            faults
                .at("gx")
                .say("and `sm`, `am` or `ue` exclude one another", "one of them");
        }
        if self.gx.is_none() && self.rx.total() > 0.0 {
            faults
                .at("rx")
                .say("has no sessions for its calls", "`gx`, whose sessions have them");
        }
        if self.pdra && self.gx.is_none() {
            faults
                .at("pdra")
                .say("has no sessions to keep together", "`gx`, whose sessions pass it");
        }
        if self.transactions() <= 0.0 {
            faults
                .at("")
                .say("has no traffic", "rates for `sm`, `am`, `ue` or `gx`");
        }
        if self.sites_with_traffic > self.sites {
            faults.at("sitesWithTraffic").say(
                format!("{} of {} sites", self.sites_with_traffic, self.sites),
                format!("at most {}", self.sites),
            );
        }
    }
}
