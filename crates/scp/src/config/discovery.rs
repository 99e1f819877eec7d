//! Delegated discovery.

use bounded::Limits;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use settings::{ByteSize, Faults, Period, Validate};

/// Source that the SCP queries first for the producers of a request with discovery parameters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum Order {
    /// Only the NRF: while none answers, only cached answers serve until their validity ends.
    Nrf,
    /// The NRF; while no NRF answers, the learned profiles, and where none of them matches the last answer to the same
    /// discovery, even after its validity ("NRF followed by SCP").
    #[default]
    NrfThenScp,
    /// The cached profiles of this SCP; the NRF when none of them matches ("SCP followed by NRF").
    ScpThenNrf,
}

impl Order {
    /// Describes the sources of a discovery.
    pub(crate) fn describe(self) -> &'static str {
        match self {
            Self::Nrf => "at the NRF",
            Self::NrfThenScp => "at the NRF, then among the learned profiles",
            Self::ScpThenNrf => "among the learned profiles, then at the NRF",
        }
    }
}

/// Delegated discovery (TS 29.500 §6.10.3).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default, rename_all = "camelCase")]
pub struct Discovery {
    /// Which source the SCP queries first.
    pub order: Order,
    /// Whether the SCP queries the NRF for every request and caches no answers.
    pub enforce_req_specific_svc_discovery: bool,
    /// Whether a discovery without `3gpp-Sbi-Discovery-requester-nf-type` gets the NF type with which `User-Agent`
    /// begins. Without a requester type NRFs refuse the query.
    pub requester_from_user_agent: bool,
    /// Cached answers at most, for all workers together, each for the `validityPeriod` of the NRF.
    pub cache_size: usize,
    /// Memory of these answers and their queries at most, for all workers together. The workers hold at most the same
    /// amount again for the answers that they use.
    pub cache_memory: ByteSize,
    /// Longest time an answer is cached, whatever its `validityPeriod`.
    pub max_validity: Period,
    /// Time for which an empty answer is cached.
    pub empty_validity: Period,
    /// Timeout of a query to an NRF.
    pub timeout: Period,
    /// Queries in flight to NRFs and further requests that wait for their answers at most, per worker, together; further
    /// requests are refused.
    pub max_waiting: usize,
}

impl Discovery {
    /// Describes what is served while no NRF answers.
    pub(crate) fn without_nrf(&self, known: usize) -> String {
        let learned = format!("are served with the {known} learned profiles");
        match (self.order, self.enforce_req_specific_svc_discovery) {
            (Order::NrfThenScp | Order::ScpThenNrf, _) => format!("requests {learned}"),
            (Order::Nrf, false) => format!(
                "requests to a named producer {learned}; those with a discovery with cached answers until their \
                 validity ends, and are refused then (discovery.order: nrf)"
            ),
            (Order::Nrf, true) => format!(
                "requests to a named producer {learned}; those with a discovery are refused (discovery.order: nrf, \
                 enforceReqSpecificSvcDiscovery: true)"
            ),
        }
    }

    /// Bounds of the answers of all workers.
    pub(crate) fn limits(&self) -> Limits {
        Limits {
            entries: self.cache_size,
            bytes: self.cache_memory.as_usize(),
        }
    }

    /// Bounds of the cache of one worker.
    pub(crate) fn limits_of_worker(&self, workers: usize) -> Limits {
        Limits {
            bytes: self.cache_memory.as_usize() / workers.max(1),
            ..self.limits()
        }
    }
}

impl Default for Discovery {
    fn default() -> Self {
        Self {
            order: Order::default(),
            enforce_req_specific_svc_discovery: false,
            requester_from_user_agent: true,
            cache_size: 100_000,
            cache_memory: ByteSize::mib(256),
            max_validity: Period::from_secs(3_600),
            empty_validity: Period::from_secs(1),
            timeout: Period::from_secs(1),
            max_waiting: 10_000,
        }
    }
}

impl Validate for Discovery {
    fn validate(&self, faults: &mut Faults) {
        if self.cache_size == 0 {
            faults.at("cacheSize").say("is 0", "at least 1");
        }
        if self.cache_memory < ByteSize::mib(1) {
            faults
                .at("cacheMemory")
                .say("holds too few answers", "at least 1MiB");
        }
        if self.timeout.is_zero() {
            faults.at("timeout").say("is 0", "a period such as 1s");
        }
    }
}
