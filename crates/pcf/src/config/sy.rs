//! Policy counters of an OCS.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use settings::{Faults, Validate};

use super::pds::ChfFallback;

/// Policy counters by Sy (TS 29.219), over the peers of `diameter`: the OCS itself, or a router.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default, rename_all = "camelCase")]
pub struct Sy {
    /// Whether sessions have policy counters of an OCS.
    pub enabled: bool,
    /// Destination-Realm of requests; empty: `diameter.realm`.
    pub realm: String,
    /// Destination-Host of requests; absent: any OCS of the realm.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub host: Option<String>,
    /// Sessions that have their policy counters of an OCS, and none of a CHF.
    pub sessions: Vec<SySessions>,
    /// Identifiers of the policy counters (Policy-Counter-Identifier); none: all that the OCS has for the subscriber. A reload
    /// with others reaches a session at its next event, by an intermediate SLR.
    pub counters: Vec<String>,
    /// What happens to a request while no OCS answers in time.
    pub fallback: ChfFallback,
    /// Statuses by counter, in place of those of the OCS, where `fallback` is `default`.
    pub default: BTreeMap<String, String>,
}

/// Sessions of one interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum SySessions {
    /// Of PCEFs.
    Gx,
    /// Of SMFs.
    N7,
}

impl Default for Sy {
    fn default() -> Self {
        Self {
            enabled: false,
            realm: String::new(),
            host: None,
            sessions: vec![SySessions::Gx],
            counters: Vec::new(),
            fallback: ChfFallback::default(),
            default: BTreeMap::new(),
        }
    }
}

impl Validate for Sy {
    fn validate(&self, faults: &mut Faults) {
        let is_name = |name: &str| name.bytes().all(|byte| byte.is_ascii_graphic());
        if !is_name(&self.realm) {
            faults
                .at("realm")
                .say("is not a valid DiameterIdentity", "a name such as example.org");
        }
        if self
            .host
            .as_ref()
            .is_some_and(|host| host.is_empty() || !is_name(host))
        {
            faults.at("host").say(
                "is not a valid DiameterIdentity",
                "a name such as ocs.example.org",
            );
        }
    }
}
