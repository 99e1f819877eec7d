//! Emergency sessions.

use pcc::usage::network;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use settings::{Faults, Validate};

/// Emergency sessions: they are decided by local policy, without data, counters and quotas of a subscriber, whom they need not
/// have (TS 23.503 §6.1.1.3, TS 23.203 §6.1.10).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default, rename_all = "camelCase")]
pub struct Emergency {
    /// DNNs (APNs) of emergency sessions, without operator identifier; none: sessions with `invalidSupi` alone.
    pub dnns: Vec<String>,
    /// Whether an AF session with media at such a session has to name an emergency service (Service-URN, `servUrn`); one that does not
    /// is refused with UNAUTHORIZED_NON_EMERGENCY_SESSION (5066). For P-CSCFs that send no Service-URN it is false.
    pub require_service_urn: bool,
}

impl Emergency {
    /// Whether sessions of a DNN or APN are emergency sessions.
    #[must_use]
    pub fn has(&self, dnn: &str) -> bool {
        let mut dnns = self.dnns.iter();
        dnns.any(|known| network(known).eq_ignore_ascii_case(network(dnn)))
    }
}

impl Default for Emergency {
    fn default() -> Self {
        Self {
            dnns: vec!["sos".to_owned()],
            require_service_urn: true,
        }
    }
}

impl Validate for Emergency {
    fn validate(&self, faults: &mut Faults) {
        if self.dnns.iter().any(String::is_empty) {
            faults.at("dnns").say("has an empty DNN", "a DNN such as sos");
        }
    }
}
