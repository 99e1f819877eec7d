//! The audit of bindings.

use function::brake::Bounds;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use settings::{Faults, Percent, Period, Validate};
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
    /// While more than this share of the PCFs that bindings name are not registered, and three or more of them, no
    /// binding is removed for that: it is rather the NRF that has lost them.
    pub most_gone: Percent,
    /// Bindings of a table that are removed in a second, at most.
    pub removal_rate: u32,
    /// The share of a table's bindings that may be removed within `brakePeriod`. Beyond, bindings stay and an alarm is
    /// raised until an operator releases the brake (`PUT /bsf/audit`).
    pub most_removed: Percent,
    /// Bindings of a table that may be removed within `brakePeriod` whatever share they are.
    pub free_removals: u32,
    /// The time in which removals are counted.
    pub brake_period: Period,
    /// How long a binding without `pcfId` stays when nothing writes it: no NRF can say what became of its PCF. Not less
    /// than `walk.olderThan`; 0: for ever.
    pub lifetime: Period,
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
            most_gone: Percent::new(50.0),
            removal_rate: 5_000,
            most_removed: Percent::new(50.0),
            free_removals: 1_000,
            brake_period: Period::from_secs(3_600),
            lifetime: Period::from_secs(0),
            remember: Period::from_secs(60),
            max_pcfs: 10_000,
            subscribe: true,
            subscription_validity: Period::from_secs(86_400),
        }
    }
}

impl Audit {
    /// How much the audit may remove.
    pub(crate) fn bounds(&self) -> Bounds {
        Bounds {
            removal_rate: self.removal_rate,
            most_removed: self.most_removed,
            free_removals: self.free_removals,
            period: self.brake_period.duration(),
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
        if self.removal_rate == 0 {
            faults
                .at("removalRate")
                .say("is 0", "at least 1; walk.enabled: false for no audit");
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
