//! Bindings of sessions at the BSF.

use function::sbi::config::check_root;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use settings::{Faults, Period, Validate};

/// Registration of sessions at the BSF (Nbsf_Management, TS 29.521 §4.2.2), so that AFs find this PCF. A session does not
/// depend on it: while no BSF answers, registrations are tried again, and those that find no room are dropped and counted.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default, rename_all = "camelCase")]
pub struct Bsf {
    /// API roots of BSFs, tried in turn (`http://127.0.0.1:8030`); none, and `discover` is false: sessions are not registered.
    pub api_roots: Vec<String>,
    /// Whether the PCF discovers BSFs at the NRF, where `apiRoots` has none (`nrf.apiRoots`).
    pub discover: bool,
    /// Time for which a worker caches what it has discovered, also that there is no BSF.
    pub discovery_time: Period,
    /// How long the BSF may take to answer.
    pub timeout: Period,
    /// How long the answer to a registration may come after `timeout`: the binding that it names is the session's, or is removed
    /// where the session has another by then. As many as `parallel` are awaited. 0: such an answer is ignored, and the binding
    /// stays at the BSF.
    pub late_timeout: Period,
    /// Attempts of one registration or removal.
    pub attempts: u32,
    /// Pause before the second attempt; doubles before each further one.
    pub retry_pause: Period,
    /// Registrations and removals that each worker has in flight.
    pub parallel: usize,
    /// Registrations and removals that are pending at each worker; beyond, they are dropped.
    pub queue: usize,
    /// Further members of each binding, which come before those that the PCF makes: `pcfFqdn`, `pcfSetId`, `bindLevel` … With
    /// `diameter.enabled` a binding has `pcfDiamHost` and `pcfDiamRealm` without them.
    pub binding: serde_json::Map<String, Value>,
    /// `snssai` of the bindings of Gx sessions, which have no slice.
    pub gx_slice: serde_json::Map<String, Value>,
}

impl Default for Bsf {
    fn default() -> Self {
        Self {
            api_roots: Vec::new(),
            discover: false,
            discovery_time: Period::from_secs(30),
            timeout: Period::from_secs(2),
            late_timeout: Period::from_secs(20),
            attempts: 5,
            retry_pause: Period::from_millis(500),
            parallel: 128,
            queue: 10_000,
            binding: serde_json::Map::new(),
            gx_slice: [("sst".to_owned(), Value::from(1))].into_iter().collect(),
        }
    }
}

impl Validate for Bsf {
    fn validate(&self, faults: &mut Faults) {
        for (index, root) in self.api_roots.iter().enumerate() {
            check_root(root, &format!("apiRoots[{index}]"), faults);
        }
        for (name, value) in [
            ("parallel", self.parallel),
            ("queue", self.queue),
            ("attempts", self.attempts as usize),
        ] {
            if value == 0 {
                faults.at(name).say("is 0", "at least 1");
            }
        }
    }
}
