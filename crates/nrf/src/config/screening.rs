//! Screening of registrations.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use settings::{Faults, Validate};

/// Lists that a profile must pass to be registered. An empty list accepts every profile.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default, rename_all = "camelCase")]
pub struct Screening {
    /// NF types that may register; empty: all.
    pub allowed_nf_types: Vec<String>,
    /// NF types that may not.
    pub denied_nf_types: Vec<String>,
    /// FQDNs of profile or services must match one of these regular expressions.
    pub allowed_fqdns: Vec<String>,
    /// FQDNs must match none of these.
    pub denied_fqdns: Vec<String>,
    /// IPv4 and IPv6 addresses of profile or services must lie in one of these networks (`10.0.0.0/8`).
    pub allowed_networks: Vec<ipnet::IpNet>,
    /// Addresses must lie in none of these.
    pub denied_networks: Vec<ipnet::IpNet>,
    /// Ports that nothing in a profile may lead to, such as those of admin endpoints: end points (80 and 443 where they name
    /// none), whole roots as `apiPrefix`, callback URIs, `scpPorts` and `seppPorts`.
    pub denied_ports: Vec<u16>,
    /// NF types by NF instance id: an instance that is listed registers only as one of its types.
    pub nf_types_by_instance: BTreeMap<String, Vec<String>>,
    /// PLMNs of a profile must be among these (`001-01`).
    pub allowed_plmns: Vec<String>,
}

impl Validate for Screening {
    fn validate(&self, faults: &mut Faults) {
        for (key, list) in [
            ("allowedFqdns", &self.allowed_fqdns),
            ("deniedFqdns", &self.denied_fqdns),
        ] {
            for (at, text) in list.iter().enumerate() {
                if let Err(reason) = model::Pattern::new(text) {
                    let wrong = format!("`{text}` is not a regular expression: {reason}");
                    faults
                        .at(format!("{key}[{at}]"))
                        .say(wrong, "one such as `^udm[0-9]+\\.example\\.com$`");
                }
            }
        }
        for id in self.nf_types_by_instance.keys() {
            if model::NfInstanceId::parse(id).is_err() {
                faults.at("nfTypesByInstance").say(
                    format!("`{id}` is not a UUID"),
                    "NF instance ids with lists of NF types",
                );
            }
        }
        for (at, text) in self.allowed_plmns.iter().enumerate() {
            if text.parse::<model::PlmnId>().is_err() {
                let wrong = format!("`{text}` is not a PLMN");
                faults
                    .at(format!("allowedPlmns[{at}]"))
                    .say(wrong, "MCC-MNC: 001-01");
            }
        }
    }
}
