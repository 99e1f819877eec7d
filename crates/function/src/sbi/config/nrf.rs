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

/// NF types whose services have names with this beginning (TS 29.501 §4.4.1), in lower case.
const TYPES: [&str; 11] = [
    "amf", "ausf", "bsf", "chf", "nef", "nrf", "nssf", "pcf", "smf", "udm", "udr",
];

/// Checks that a text is an API root, and no more: each request adds the path of its service, which would be there twice.
pub fn check_root(root: &str, at: &str, faults: &mut Faults) {
    let Ok(parsed) = TargetApiRoot::parse(root) else {
        return faults.at(at).say(
            format!("`{root}` is not an API root"),
            "http://host:port or https://host:port, with the prefix of its paths if there is one",
        );
    };
    let is_of_service = |segment: &str| {
        let name = segment
            .strip_prefix('n')
            .and_then(|name| name.split_once('-'))
            .map(|(name, _)| name);
        name.is_some_and(|name| TYPES.contains(&name)) || matches!(segment, "oauth2" | "v1" | "v2")
    };
    if parsed.prefix.split('/').any(is_of_service) {
        faults.at(at).say(
            format!("`{root}` has the path of a service behind the API root"),
            format!("the API root alone, `{}`", parsed.origin),
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_api_root_has_no_path_of_a_service() {
        let is_right = |root: &str| {
            let mut faults = Faults::default();
            check_root(root, "apiRoots[0]", &mut faults);
            format!("{faults:?}") == format!("{:?}", Faults::default())
        };
        for right in ["http://nrf:8010", "https://nrf/core/north-1", "http://n:1/nrf"] {
            assert!(is_right(right), "{right}");
        }
        for wrong in [
            "nrf:8010",
            "http://nrf:8010/nnrf-nfm/v1",
            "http://bsf:1/x/nbsf-management",
            "http://nrf/oauth2",
        ] {
            assert!(!is_right(wrong), "{wrong}");
        }
    }
}
