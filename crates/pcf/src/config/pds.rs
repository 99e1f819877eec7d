//! Sources of the data that policies read beside the request.

use std::collections::BTreeMap;

use function::sbi::config::check_root;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use settings::{ByteSize, Faults, Period, Validate};

use super::Ldap;
use super::sy::Sy;

/// Data of subscribers: policy data of a UDR (TS 29.519), policy counters of a CHF (TS 29.594) or an OCS
/// (TS 29.219), profiles in a directory. Without sources, policies
/// read none.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default, rename_all = "camelCase")]
pub struct Pds {
    /// Time for all sources of a request together.
    #[schemars(extend("x-reload" = true))]
    pub deadline: Period,
    /// Which subscribers are served, by the sources that have been asked (UDR, directory).
    #[schemars(extend("x-reload" = true))]
    pub validate_user: ValidateUser,
    /// Policy data of subscribers.
    pub udr: Udr,
    /// Policy counters of subscribers.
    pub chf: Chf,
    /// Profiles of subscribers in a directory.
    pub ldap: Ldap,
    /// Policy counters of subscribers at an OCS.
    #[schemars(extend("x-reload" = true))]
    pub sy: Sy,
    /// Cached policy data, for each worker.
    pub cache: PdsCache,
    /// Longest time for which an answer of the NRF to a discovery holds.
    pub discovery_validity: Period,
    /// Pause before a UDR, CHF or OCS that was away is asked again for an association without an event of it; doubled after each
    /// attempt that fails, up to 64 times of it.
    #[schemars(extend("x-reload" = true))]
    pub retry_pause: Period,
    /// Ends of subscriptions in flight, for each worker; further ones are left to the UDR and the CHF.
    #[schemars(extend("x-reload" = true))]
    pub max_ends: usize,
}

/// Policy data by Nudr_DataRepository (TS 29.504, TS 29.519).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default, rename_all = "camelCase")]
pub struct Udr {
    /// Whether policy data are queried.
    pub enabled: bool,
    /// API roots of UDRs, tried in turn (`http://127.0.0.1:8050`); none: those that the NRF knows.
    pub api_roots: Vec<String>,
    /// Whether the PCF subscribes to changes of the policy data of each association.
    #[schemars(extend("x-reload" = true))]
    pub subscribe: bool,
    /// What happens to a request of a subscriber whom the UDR does not know.
    #[schemars(extend("x-reload" = true))]
    pub unknown_user: UnknownUser,
    /// What happens to a request while no UDR answers in time.
    #[schemars(extend("x-reload" = true))]
    pub fallback: UdrFallback,
    /// The policy data in place of those of the UDR, where `unknownUser` or `fallback` is `default`, and of a subscriber of whom the UDR
    /// has none (`DATA_NOT_FOUND`).
    #[schemars(extend("x-reload" = true))]
    pub default: Map<String, Value>,
}

/// Policy counters by Nchf_SpendingLimitControl (TS 29.594).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default, rename_all = "camelCase")]
pub struct Chf {
    /// Whether the PCF subscribes to policy counters.
    pub enabled: bool,
    /// API roots of CHFs, tried in turn; none: those that the NRF knows.
    pub api_roots: Vec<String>,
    /// Services of the PCF whose associations have policy counters.
    #[schemars(extend("x-reload" = true))]
    pub services: Vec<CounterService>,
    /// Identifiers of the policy counters (`policyCounterIds`); none: all that the CHF has for the subscriber.
    #[schemars(extend("x-reload" = true))]
    pub counters: Vec<String>,
    /// What happens to a request while no CHF answers in time.
    #[schemars(extend("x-reload" = true))]
    pub fallback: ChfFallback,
    /// Statuses by counter, in place of those of the CHF, where `fallback` is `default`.
    #[schemars(extend("x-reload" = true))]
    pub default: BTreeMap<String, String>,
}

/// A service whose associations have policy counters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum CounterService {
    /// Sessions (N7, Gx).
    Sm,
    /// Access and mobility.
    Am,
    /// UE policies.
    Ue,
}

/// Which subscribers are served, over N7, N15 and Gx. A source that does not answer in time leaves its `fallback` to decide.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum ValidateUser {
    /// Each source decides by its `unknownUser`.
    #[default]
    BySource,
    /// Those whom at least one source knows. Others are refused: 400 `USER_UNKNOWN`, or DIAMETER_USER_UNKNOWN (5030). `unknownUser`
    /// of the sources does not count.
    Required,
    /// All. For those whom a source does not know, policies read its `default`.
    Off,
}

/// What happens to a request of a subscriber whom the UDR does not know.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum UnknownUser {
    /// The PCF refuses it: 400 `USER_UNKNOWN` (TS 29.512 §5.7.3).
    #[default]
    Reject,
    /// Policies read `default`.
    Default,
}

/// What happens to a request while no UDR answers in time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum UdrFallback {
    /// The PCF refuses it: 503.
    Reject,
    /// Policies read `default`.
    Default,
    /// Policies read what the worker had cached of the subscriber last, whatever its age; `default` where it has nothing.
    #[default]
    Cached,
}

/// What happens to a request while no CHF answers in time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum ChfFallback {
    /// The PCF refuses it: 503.
    Reject,
    /// Policies read `default`.
    #[default]
    Default,
}

/// Bounds of the cache of policy data.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default, rename_all = "camelCase")]
pub struct PdsCache {
    /// Documents of each worker.
    #[schemars(extend("x-reload" = true))]
    pub entries: usize,
    /// Bytes of the documents of each worker, as JSON.
    #[schemars(extend("x-reload" = true))]
    pub bytes: ByteSize,
    /// Age up to which a document is used without a query. A change that the UDR notifies of ends it at once, in all workers
    /// of the PCF that the notification reaches.
    #[schemars(extend("x-reload" = true))]
    pub age: Period,
}

impl Default for Pds {
    fn default() -> Self {
        Self {
            deadline: Period::from_millis(1000),
            validate_user: ValidateUser::default(),
            udr: Udr::default(),
            chf: Chf::default(),
            ldap: Ldap::default(),
            sy: Sy::default(),
            cache: PdsCache::default(),
            discovery_validity: Period::from_secs(600),
            retry_pause: Period::from_secs(10),
            max_ends: 10_000,
        }
    }
}

impl Default for Udr {
    fn default() -> Self {
        Self {
            enabled: false,
            api_roots: Vec::new(),
            subscribe: true,
            unknown_user: UnknownUser::default(),
            fallback: UdrFallback::default(),
            default: Map::new(),
        }
    }
}

impl Default for Chf {
    fn default() -> Self {
        Self {
            enabled: false,
            api_roots: Vec::new(),
            services: vec![CounterService::Sm],
            counters: Vec::new(),
            fallback: ChfFallback::default(),
            default: BTreeMap::new(),
        }
    }
}

impl Default for PdsCache {
    fn default() -> Self {
        Self {
            entries: 100_000,
            bytes: ByteSize::mib(128),
            age: Period::from_secs(300),
        }
    }
}

impl Pds {
    /// Whether there is nothing to ask the NRF for: each source is off or has API roots.
    fn needs_no_nrf(&self) -> bool {
        let named = |enabled: bool, roots: &[String]| !enabled || !roots.is_empty();
        named(self.udr.enabled, &self.udr.api_roots) && named(self.chf.enabled, &self.chf.api_roots)
    }

    /// What is wrong where these NRFs are configured.
    pub(super) fn validate_with(&self, nrfs: &[String], faults: &mut Faults) {
        if nrfs.is_empty() && !self.needs_no_nrf() {
            faults.at("pds").say(
                "has a source without API roots, and no NRF to discover it",
                "`apiRoots` of the source, or `nrf.apiRoots`",
            );
        }
    }
}

impl Validate for Pds {
    fn validate(&self, faults: &mut Faults) {
        if self.deadline.duration().is_zero() {
            faults.at("deadline").say("is 0", "at least 1ms");
        }
        if self.retry_pause.is_zero() {
            faults.at("retryPause").say("is 0", "some time, such as 10s");
        }
        faults.within("ldap", &self.ldap);
        faults.within("sy", &self.sy);
        for (source, roots) in [("udr", &self.udr.api_roots), ("chf", &self.chf.api_roots)] {
            for (index, root) in roots.iter().enumerate() {
                check_root(root, &format!("{source}.apiRoots[{index}]"), faults);
            }
        }
    }
}
