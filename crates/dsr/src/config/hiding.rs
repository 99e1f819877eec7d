//! What foreign networks may not see.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use settings::{Faults, Validate};

use super::nodes::is_identity;

/// Topology hiding towards peers that are `untrusted`. Changes while running.
#[derive(Clone, Debug, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default, rename_all = "camelCase")]
pub struct TopologyHiding {
    /// Realms of the network that is hidden.
    pub realms: Vec<String>,
    /// Path: the name that stands for every Route-Record of those realms; empty: paths are not hidden.
    pub path_pseudo_host: String,
    /// Hosts, such as MMEs, SGSNs, PCRFs and AFs, with the names they have outside.
    pub hosts: Vec<HiddenHost>,
    /// The name that all of `hssHosts` have outside; requests for it are routed without a Destination-Host.
    /// Empty: HSSs are not hidden.
    pub hss_pseudo_host: String,
    /// HSSs that `hssPseudoHost` stands for.
    pub hss_hosts: Vec<String>,
}

/// A host with the name it has outside.
#[derive(Clone, Debug, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default, rename_all = "camelCase")]
pub struct HiddenHost {
    /// Its DiameterIdentity.
    pub actual: String,
    /// Its name outside.
    pub pseudo: String,
}

impl Validate for TopologyHiding {
    fn validate(&self, faults: &mut Faults) {
        for (index, host) in self.hosts.iter().enumerate() {
            for (key, name) in [("actual", &host.actual), ("pseudo", &host.pseudo)] {
                if !is_identity(name) {
                    faults
                        .at(format!("hosts[{index}].{key}"))
                        .say(format!("`{name}` is not a valid DiameterIdentity"), "a host name");
                }
            }
            let same = |other: &&HiddenHost| other.pseudo.eq_ignore_ascii_case(&host.pseudo);
            if self.hosts[..index].iter().any(|other| same(&other)) {
                faults
                    .at(format!("hosts[{index}].pseudo"))
                    .say("stands for another host as well", "a name of its own");
            }
        }
        if self.hss_pseudo_host.is_empty() != self.hss_hosts.is_empty() {
            faults
                .at("hssPseudoHost")
                .say("and hssHosts belong together", "both, or neither");
        }
    }
}
