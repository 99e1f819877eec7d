//! Delivery of UE policies.

use sbi::headers::{SbiHeader as _, TargetApiRoot};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use settings::{Faults, Period, Validate};

/// Delivery of UE policies to UEs by their AMFs: N1 messages of class UPDP over Namf_Communication (TS 29.525 §4.2.2.2,
/// TS 24.501 annex D). AMFs are found at the NRF by the GUAMI or the identity of the AMF (`nrf.apiRoots`).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default, rename_all = "camelCase")]
pub struct UePolicy {
    /// Whether UE policies of associations of AMFs are delivered.
    pub deliver: bool,
    /// API root of the AMF of all associations (`http://127.0.0.1:8060`); absent: the NRF is queried.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub amf_api_root: Option<String>,
    /// T3501: time for the answer of a UE, after which the command is sent again.
    pub t3501: Period,
    /// How often a command is sent again before it is given up. TS 24.501 table D.7.1 has 4.
    pub retransmissions: u32,
    /// How long an AMF may take to answer.
    pub timeout: Period,
    /// Commands that each worker has in flight to AMFs.
    pub parallel: usize,
    /// Commands that are pending at each worker, and T3501 timers that run there. Further ones are taken up from the store
    /// later.
    pub queue: usize,
    /// Time for which a worker caches which AMF has a GUAMI.
    pub discovery_time: Period,
}

impl Default for UePolicy {
    fn default() -> Self {
        Self {
            deliver: true,
            amf_api_root: None,
            t3501: Period::from_secs(8),
            retransmissions: 4,
            timeout: Period::from_secs(2),
            parallel: 128,
            queue: 100_000,
            discovery_time: Period::from_secs(60),
        }
    }
}

impl Validate for UePolicy {
    fn validate(&self, faults: &mut Faults) {
        if let Some(root) = &self.amf_api_root
            && TargetApiRoot::parse(root).is_err()
        {
            faults.at("amfApiRoot").say(
                "is not an API root",
                "http://host:port or https://host:port, with the prefix of its paths if there is one",
            );
        }
        for (name, period) in [("t3501", &self.t3501), ("timeout", &self.timeout)] {
            if period.duration().is_zero() {
                faults.at(name).say("is 0", "at least 1ms");
            }
        }
        for (name, value) in [("parallel", self.parallel), ("queue", self.queue)] {
            if value == 0 {
                faults.at(name).say("is 0", "at least 1");
            }
        }
    }
}
