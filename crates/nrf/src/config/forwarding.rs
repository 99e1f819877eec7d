//! Other NRFs.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use settings::{Faults, Period, Validate};

/// Which questions other NRFs answer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default, rename_all = "camelCase")]
pub struct Forwarding {
    /// Rules in order; the first that fits counts.
    pub rules: Vec<ForwardingRule>,
    /// Whether queries with `hnrf-uri`, or for other PLMNs only, go to the NRF of the home network.
    pub roaming: bool,
    /// PLMNs of this network (`001-01`).
    pub own_plmns: Vec<String>,
    /// How long another NRF may take.
    pub timeout: Period,
    /// NRFs a query may pass at most, this one included.
    pub max_hops: u8,
}

/// One rule.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default, rename_all = "camelCase")]
pub struct ForwardingRule {
    /// Target NF types; empty: all.
    pub nf_types: Vec<String>,
    /// Service names, one of which the query must name; empty: all.
    pub services: Vec<String>,
    /// Operations the rule is for.
    pub operations: Vec<ForwardedOperation>,
    /// API roots of the other NRFs, in order of preference.
    pub targets: Vec<String>,
    /// Ask only when nothing is found here: no profile to discover, to issue a token for, or of the type that
    /// a subscription is about.
    pub when_empty: bool,
}

/// What can be forwarded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum ForwardedOperation {
    /// Nnrf_NFDiscovery (TS 29.510 §5.3.2.2.3).
    Discovery,
    /// Nnrf_AccessToken (TS 29.510 §5.4.2.2.3).
    AccessToken,
    /// Nnrf_NFManagement_NFStatusSubscribe (TS 29.510 §5.2.2.5.4); the subscription is the other NRF's.
    Subscription,
}

impl Default for ForwardingRule {
    fn default() -> Self {
        Self {
            nf_types: Vec::new(),
            services: Vec::new(),
            operations: vec![ForwardedOperation::Discovery],
            targets: Vec::new(),
            when_empty: false,
        }
    }
}

impl Default for Forwarding {
    fn default() -> Self {
        Self {
            rules: Vec::new(),
            roaming: true,
            own_plmns: Vec::new(),
            timeout: Period::from_secs(2),
            max_hops: 4,
        }
    }
}

impl Validate for Forwarding {
    fn validate(&self, faults: &mut Faults) {
        for (i, rule) in self.rules.iter().enumerate() {
            if rule.targets.is_empty() {
                faults
                    .at(format!("rules[{i}].targets"))
                    .say("is empty", "at least one API root");
            }
            for (j, root) in rule.targets.iter().enumerate() {
                if root.parse::<sbi::client::Origin>().is_err() {
                    let at = format!("rules[{i}].targets[{j}]");
                    faults
                        .at(at)
                        .say(format!("`{root}` is not an API root"), "http://host:port");
                }
            }
        }
        for (i, plmn) in self.own_plmns.iter().enumerate() {
            if plmn.parse::<model::PlmnId>().is_err() {
                faults
                    .at(format!("ownPlmns[{i}]"))
                    .say(format!("`{plmn}` is not a PLMN"), "MCC-MNC: 001-01");
            }
        }
    }
}
