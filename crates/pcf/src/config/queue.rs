//! Requests that a worker works on at once.

use function::sbi::QueueBounds;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use settings::{ByteSize, Faults, Validate};

/// Handlers that await other functions for one that is begun.
const ELSEWHERE: usize = 16;

/// Requests of the service-based interfaces that a worker works on at once. Further ones are queued as they came, by
/// `3gpp-Sbi-Message-Priority` and then by the time for which their consumers wait; what deletes something, and what changes
/// something, comes before what begins something.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default, rename_all = "camelCase")]
pub struct RequestQueue {
    /// Requests of a worker whose handlers have begun. Those that await a UDR, CHF, OCS, directory or NRF do not count; from 16
    /// times as many of these on, no request begins that may ask for data of subscribers.
    pub max_begun: usize,
    /// Requests that are queued at a worker; the least important are refused (503). Deletions do not count and are not refused.
    pub max_queued: usize,
    /// Bytes of the queued requests of a worker.
    pub max_bytes: ByteSize,
}

impl Default for RequestQueue {
    fn default() -> Self {
        Self {
            max_begun: 256,
            max_queued: 16_384,
            max_bytes: ByteSize::mib(64),
        }
    }
}

impl RequestQueue {
    /// The bounds of each worker.
    pub(crate) fn bounds(&self) -> QueueBounds {
        QueueBounds {
            begun: self.max_begun,
            elsewhere: self.max_begun.saturating_mul(ELSEWHERE),
            queued: self.max_queued,
            queued_bytes: self.max_bytes.as_usize(),
        }
    }
}

impl Validate for RequestQueue {
    fn validate(&self, faults: &mut Faults) {
        if self.max_begun == 0 {
            faults
                .at("maxBegun")
                .say("serves no request", "at least 1, such as 256");
        }
    }
}
