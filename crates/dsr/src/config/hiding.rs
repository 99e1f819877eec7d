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
    /// Names that hosts and realms have for clients of some networks, in some applications; the first scope of a client counts.
    pub scopes: Vec<HidingScope>,
}

/// Clients, and the names that they know. It does not depend on whether their peer is `untrusted`.
#[derive(Clone, Debug, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default, rename_all = "camelCase")]
pub struct HidingScope {
    /// Application ids, such as 16777238 (Gx) and 16777236 (Rx); empty: all.
    pub applications: Vec<u32>,
    /// Realms of the clients (the Origin-Realm of their requests), and those below them; empty: all.
    pub networks: Vec<String>,
    /// Hosts, such as PCRFs, and realms with the names that the clients know.
    pub names: Vec<HiddenHost>,
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
        validate_names("hosts", &self.hosts, faults);
        if self.scopes.len() > MOST_SCOPES {
            let expected = format!("at most {MOST_SCOPES}");
            faults
                .at("scopes")
                .say(format!("has {} entries", self.scopes.len()), expected);
        }
        for (index, scope) in self.scopes.iter().enumerate() {
            let at = format!("scopes[{index}].names");
            if scope.names.is_empty() {
                faults.at(&at).say("is empty", "at least one name");
            }
            validate_names(&at, &scope.names, faults);
            let actual = |name: &String| {
                let is = |host: &HiddenHost| host.actual.eq_ignore_ascii_case(name);
                scope.names.iter().any(is)
            };
            if scope.names.iter().any(|host| actual(&host.pseudo)) {
                faults
                    .at(&at)
                    .say("has a pseudo that is an actual name as well", "other names");
            }
        }
        if self.hss_pseudo_host.is_empty() != self.hss_hosts.is_empty() {
            faults
                .at("hssPseudoHost")
                .say("and hssHosts belong together", "both, or neither");
        }
    }
}

/// A request in flight has the number of its scope in a byte.
const MOST_SCOPES: usize = 255;

/// Names that can be replaced by others, and back.
fn validate_names(at: &str, names: &[HiddenHost], faults: &mut Faults) {
    for (index, host) in names.iter().enumerate() {
        for (key, name) in [("actual", &host.actual), ("pseudo", &host.pseudo)] {
            if !is_identity(name) {
                faults
                    .at(format!("{at}[{index}].{key}"))
                    .say(format!("`{name}` is not a valid DiameterIdentity"), "a host name");
            }
        }
        let same = |other: &HiddenHost| other.pseudo.eq_ignore_ascii_case(&host.pseudo);
        if names.iter().take(index).any(same) {
            faults
                .at(format!("{at}[{index}].pseudo"))
                .say("stands for another host as well", "a name of its own");
        }
    }
}
