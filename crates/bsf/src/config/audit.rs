//! The audit of bindings.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use settings::{Faults, Period, Validate};
use store::AuditConfig;

/// The audit: bindings whose PCF has restarted or is gone are removed (TS 23.527 §6, TS 29.521 §4.2). It needs
/// the NRFs of `nrf.apiRoots`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default, rename_all = "camelCase")]
pub struct Audit {
    /// Whether, how fast and how often bindings are looked at.
    pub walk: AuditConfig,
    /// Bindings looked at in a second when a PCF has restarted, and once after the start of this BSF.
    pub restart_rate: u32,
    /// Walks that must find a PCF neither registered nor replaced by its set before a binding is removed.
    pub attempts: u32,
    /// How long an answer of the NRF about a PCF holds.
    pub remember: Period,
    /// PCFs whose state is remembered.
    pub max_pcfs: usize,
    /// Whether the NRF is asked to tell when a PCF changes, so that a restart is noticed at once.
    pub subscribe: bool,
    /// How long the subscription is wished to hold; it is renewed before it ends.
    pub subscription_validity: Period,
}

impl Default for Audit {
    fn default() -> Self {
        Self {
            walk: AuditConfig::default(),
            restart_rate: 20_000,
            attempts: 3,
            remember: Period::from_secs(60),
            max_pcfs: 10_000,
            subscribe: true,
            subscription_validity: Period::from_secs(86_400),
        }
    }
}

impl Validate for Audit {
    fn validate(&self, faults: &mut Faults) {
        faults.within("walk", &self.walk);
        if self.restart_rate == 0 {
            faults.at("restartRate").say("is 0", "at least 1");
        }
        if self.attempts == 0 {
            faults.at("attempts").say("is 0", "at least 1");
        }
        if self.max_pcfs == 0 {
            faults.at("maxPcfs").say("is 0", "at least 1");
        }
        if self.subscription_validity.as_secs() < 60 {
            faults
                .at("subscriptionValidity")
                .say("is too short", "at least 60s");
        }
    }
}
