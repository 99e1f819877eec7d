//! Delegated discovery.

use bounded::Limits;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use settings::{ByteSize, Faults, Period, Validate};

/// Who is asked first for the producers of a request that carries discovery parameters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum Order {
    /// Only the NRF.
    #[default]
    Nrf,
    /// The NRF; what this SCP has learned when no NRF answers ("NRF followed by SCP").
    NrfThenScp,
    /// What this SCP has learned; the NRF when it knows none that fits ("SCP followed by NRF").
    ScpThenNrf,
}

impl Order {
    /// Where a discovery looks, in words.
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
    /// Who is asked first.
    pub order: Order,
    /// Whether every request is discovered with an exchange of its own at the NRF: nothing is remembered.
    pub enforce_req_specific_svc_discovery: bool,
    /// Whether a discovery without `3gpp-Sbi-Discovery-requester-nf-type` is for the NF type with which `User-Agent`
    /// begins. Consumers need not name their type twice, and no NRF answers without it.
    pub requester_from_user_agent: bool,
    /// Answers that are remembered at most, for all workers together, each as long as the NRF says (`validityPeriod`).
    pub cache_size: usize,
    /// Memory of these answers and their questions at most, for all workers together. The workers hold as much again of
    /// those that they use.
    pub cache_memory: ByteSize,
    /// Longest time an answer is remembered, whatever the NRF says.
    pub max_validity: Period,
    /// How long it is remembered that nothing was found.
    pub empty_validity: Period,
    /// How long an NRF may take to answer.
    pub timeout: Period,
    /// Questions that may wait for an answer at the same time, per worker; more are refused.
    pub max_waiting: usize,
}

impl Discovery {
    /// What the answers of all workers may take.
    pub(crate) fn limits(&self) -> Limits {
        Limits {
            entries: self.cache_size,
            bytes: self.cache_memory.as_usize(),
        }
    }

    /// What one worker may hold beside itself.
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
                .say("has room for few answers", "at least 1MiB");
        }
        if self.timeout.is_zero() {
            faults.at("timeout").say("is 0", "a period such as 1s");
        }
    }
}
