//! Sessions of gateways and applications at several PCRFs, which a Policy DRA keeps together.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use settings::{Faults, Percent, Validate};

use crate::policy::Rates;

/// Gx sessions and their Rx sessions. The PCRFs are as many as `hss` says.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Sessions {
    /// CCR-Is, CCR-Us and CCR-Ts per second.
    pub gx: Rates,
    /// Initial AARs, later AARs and STRs per second.
    pub rx: Rates,
    /// Share of CCR-Us after which a PCRF sends a RAR.
    pub gx_rar: Percent,
    /// Share of AARs after which a PCRF sends a RAR.
    pub rx_rar: Percent,
    /// Subscribers; sessions are of one after the other.
    #[schemars(range(min = 1))]
    pub subscribers: u32,
    /// Sessions of a subscriber that begin one after the other, or at once.
    #[schemars(range(min = 1, max = 16))]
    pub each: u8,
    /// Gx sessions that stand, at most.
    #[schemars(range(min = 1))]
    pub sessions: u32,
}

impl Sessions {
    /// Requests of gateways and applications per second at the full rate.
    #[must_use]
    pub fn requests(&self) -> f64 {
        self.gx.total() + self.rx.total()
    }

    /// Requests of PCRFs per second at the full rate.
    #[must_use]
    pub fn re_auths(&self) -> f64 {
        self.gx.update * self.gx_rar.fraction() + (self.rx.create + self.rx.update) * self.rx_rar.fraction()
    }
}

impl Validate for Sessions {
    fn validate(&self, faults: &mut Faults) {
        let are_valid = self.gx.are_valid() && self.rx.are_valid();
        if !are_valid || self.gx.create <= 0.0 || self.gx.delete <= 0.0 {
            faults.at("gx").say(
                "and `rx` let no session begin, or none end",
                "requests per second of at least 0, with some CCR-Is and CCR-Ts",
            );
        }
        if self.subscribers == 0 || self.sessions == 0 {
            faults
                .at("subscribers")
                .say("or `sessions` are 0", "at least 1 of each");
        }
        if !(1..=16).contains(&self.each) {
            let wrong = format!("{} sessions are more than a subscriber keeps, or none", self.each);
            faults.at("each").say(wrong, "1 to 16");
        }
    }
}
