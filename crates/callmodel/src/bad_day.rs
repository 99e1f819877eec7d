//! Mixed traffic through NRF, SCP, BSF and Diameter router while one incident follows the other.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use settings::{Faults, Period, Validate};

/// Traffic, and the incidents of a bad day.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct BadDayModel {
    /// Requests per second, of six kinds.
    pub requests: f64,
    /// What happens, one after the other.
    pub incidents: Vec<Incident>,
    /// The longest time until alarm and readiness report an incident.
    pub reported_within: Period,
    /// The longest time until requests are answered as before, once the cause has ended.
    pub recovered_within: Period,
}

/// Something that goes wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum Incident {
    /// The NRF is killed, and starts again.
    NrfKilled,
    /// One of two producers is killed, and starts under another NF instance id at another address.
    ProducerRenewed,
    /// The name of a producer leads to another address; nothing listens at the old one any more.
    NameMoved,
    /// The database of the BSF is stopped, and starts again.
    DatabaseStopped,
    /// The certificate of the SCP is replaced without its key, then with it.
    CertificateRotated,
    /// The SCP reloads a configuration with a mistake, then the right one.
    WrongReload,
    /// The disk of the NRF's store is full, and has room again.
    DiskFull,
    /// A producer and an HSS hang with their connections open, and go on.
    PeerHangs,
}

impl Validate for BadDayModel {
    fn validate(&self, faults: &mut Faults) {
        if !self.requests.is_finite() || self.requests <= 0.0 {
            faults
                .at("requests")
                .say("is not a rate", "requests per second, above 0");
        }
        if self.incidents.is_empty() {
            faults.at("incidents").say("is empty", "at least one incident");
        }
    }
}
