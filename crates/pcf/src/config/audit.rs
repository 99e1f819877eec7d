//! The audit of policy associations.

use function::brake::Bounds;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use settings::{Faults, Percent, Period, Validate};
use store::AuditConfig;

/// The audit: the consumers (SMFs, AMFs, PCEFs) of associations that nothing has written for long are asked by a notification
/// without a change (TS 29.512 §4.2.3.2, TS 29.507 §4.2.4.2, TS 29.525 §4.2.4.2; PCEFs by a RAR, TS 29.212 §4.5.2). Where a
/// consumer does not know its association any more (404, DIAMETER_UNKNOWN_SESSION_ID), or is lost itself, the association is
/// removed, with its AF sessions, subscriptions and binding.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default, rename_all = "camelCase")]
pub struct Audit {
    /// Whether, how fast and how often associations are checked. One whose consumer answers counts as written.
    pub walk: AuditConfig,
    /// How long a consumer may take to answer.
    pub timeout: Period,
    /// How long a consumer that does not answer is not asked about other associations, and how long an answer of the NRF
    /// about an NF instance holds.
    pub remember: Period,
    /// Consumers that are remembered, and NF instances.
    pub max_consumers: usize,
    /// Walks in a row in which a consumer does not answer and is not registered at the NRF before an association is removed. It
    /// needs the NF instance id in the association (`smfId`, `servingNfId`) and the NRFs of `nrf.apiRoots`.
    pub attempts: u32,
    /// How long an association stays of which its consumer has neither sent a request nor answered, registered or not. Not less than
    /// `walk.olderThan`; 0: for ever.
    pub lifetime: Period,
    /// Associations that are removed in a second, at most.
    pub removal_rate: u32,
    /// The share of all associations that may be removed within `brakePeriod`. Beyond, they stay and an alarm is raised until an
    /// operator releases the brake (`PUT /pcf/audit`).
    pub most_removed: Percent,
    /// Associations that may be removed within `brakePeriod` whatever share they are.
    pub free_removals: u32,
    /// The time in which removals are counted.
    pub brake_period: Period,
}

impl Default for Audit {
    fn default() -> Self {
        Self {
            walk: AuditConfig {
                enabled: false,
                ..AuditConfig::default()
            },
            timeout: Period::from_secs(2),
            remember: Period::from_secs(60),
            max_consumers: 10_000,
            attempts: 3,
            lifetime: Period::from_secs(0),
            removal_rate: 100,
            most_removed: Percent::new(10.0),
            free_removals: 100,
            brake_period: Period::from_secs(3_600),
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
        for (name, value) in [
            ("attempts", self.attempts as usize),
            ("removalRate", self.removal_rate as usize),
            ("maxConsumers", self.max_consumers),
        ] {
            if value == 0 {
                faults.at(name).say("is 0", "at least 1");
            }
        }
        if self.timeout.is_zero() {
            faults.at("timeout").say("is 0", "some time, such as 2s");
        }
        if !self.lifetime.is_zero() && self.lifetime.duration() < self.walk.older_than.duration() {
            faults.at("lifetime").say(
                "is less than walk.olderThan",
                "at least walk.olderThan, or 0 for no end",
            );
        }
    }
}
