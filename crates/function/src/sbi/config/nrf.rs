//! Registration at the NRF.

use sbi::headers::{SbiHeader as _, TargetApiRoot};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use settings::{Faults, Period, Validate};

/// Registration at the NRF (TS 29.510 §5.2.2.2).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default, rename_all = "camelCase")]
pub struct Nrf {
    /// API roots of NRFs, tried in turn (`http://127.0.0.1:8010`); none: the function does not register.
    pub api_roots: Vec<String>,
    /// Whether the names in `apiRoots` are looked up as services (SRV records of `_http._tcp.NAME` or `_https._tcp.NAME`): hosts
    /// and ports of NRFs in the order of priority and weight. A name without such records is used as it is.
    pub dns_srv: bool,
    /// Time between heart-beats that the function asks for; the NRF may give another.
    pub heart_beat: Period,
    /// How long the NRF may take to answer.
    pub timeout: Period,
    /// Further members of the profile: what is specific to the NF type (`bsfInfo`, `pcfInfo`), `locality`, `priority`,
    /// `capacity`, `plmnList` …
    pub profile: serde_json::Map<String, Value>,
}

impl Default for Nrf {
    fn default() -> Self {
        Self {
            api_roots: Vec::new(),
            dns_srv: false,
            heart_beat: Period::from_secs(10),
            timeout: Period::from_secs(2),
            profile: serde_json::Map::new(),
        }
    }
}

impl Validate for Nrf {
    fn validate(&self, faults: &mut Faults) {
        for (index, root) in self.api_roots.iter().enumerate() {
            check_root(root, &format!("apiRoots[{index}]"), faults);
        }
        if self.heart_beat.duration().as_secs() == 0 {
            faults.at("heartBeat").say("is too short", "at least 1s");
        }
    }
}

/// Checks that a text is an API root, and no more: each request adds the path of its service, which would be there twice.
pub fn check_root(root: &str, at: &str, faults: &mut Faults) {
    let Ok(parsed) = TargetApiRoot::parse(root) else {
        let right = "http://host:port or https://host:port, with the prefix of its paths if there is one";
        return faults.at(at).say("is not an API root", right);
    };
    let is_of_service = |segment: &str| {
        let name = segment.split_once('-').map(|(name, _)| name);
        let is_named = name.is_some_and(|name| name.len() > 2 && name.starts_with('n'));
        is_named || matches!(segment, "oauth2" | "v1" | "v2")
    };
    if parsed.prefix.split('/').any(is_of_service) {
        faults.at(at).say(
            "has the path of a service behind the API root",
            format!("the API root alone, `{}`", parsed.origin),
        );
    }
}
