//! Charging sessions of gateways at several OCSs, each of which an online charging DRA keeps at one of them.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use settings::{Faults, Percent, Validate};

use crate::policy::Rates;

/// Gy sessions and one-time events. The OCSs are as many as `hss` says.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Charging {
    /// CCR-Is, CCR-Us and CCR-Ts per second.
    pub gy: Rates,
    /// CCRs of one-time events (EVENT_REQUEST) per second.
    pub events: f64,
    /// Share of CCR-Us after which an OCS sends a RAR.
    pub rar: Percent,
    /// Share of sessions whose answers have CC-Session-Failover FAILOVER_SUPPORTED.
    pub failover: Percent,
    /// Subscribers; sessions are of one after the other.
    #[schemars(range(min = 1))]
    pub subscribers: u32,
    /// Sessions that stand, at most.
    #[schemars(range(min = 1))]
    pub sessions: u32,
}

impl Charging {
    /// Requests of gateways per second at the full rate.
    #[must_use]
    pub fn requests(&self) -> f64 {
        self.gy.total() + self.events
    }

    /// Requests of OCSs per second at the full rate.
    #[must_use]
    pub fn re_auths(&self) -> f64 {
        self.gy.update * self.rar.fraction()
    }
}

impl Validate for Charging {
    fn validate(&self, faults: &mut Faults) {
        let is_event_rate = self.events.is_finite() && self.events >= 0.0;
        if !self.gy.are_valid() || !is_event_rate || self.gy.create <= 0.0 || self.gy.delete <= 0.0 {
            faults.at("gy").say(
                "and `events` let no session begin, or none end",
                "requests per second of at least 0, with some CCR-Is and CCR-Ts",
            );
        }
        if self.subscribers == 0 || self.sessions == 0 {
            faults
                .at("subscribers")
                .say("or `sessions` are 0", "at least 1 of each");
        }
    }
}

/// The number of a session in its Session-Id: the last but one part.
#[must_use]
pub fn session_number(id: &str) -> Option<u32> {
    id.rsplit(';').nth(1)?.parse().ok()
}

/// Whether the session of this number may move to another OCS, of which this share may.
#[must_use]
pub fn fails_over(session: u32, share: Percent) -> bool {
    f64::from(session % 100) < share.percent()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_of_the_sessions_may_move() {
        let may = |share| {
            let share = Percent::new(share);
            (0..1000).filter(|session| fails_over(*session, share)).count()
        };
        assert_eq!([may(0.0), may(50.0), may(100.0)], [0, 500, 1000]);
    }

    #[test]
    fn a_session_id_has_a_number() {
        assert_eq!(session_number("ctf001.epc.example;0000000042;gy"), Some(42));
        for wrong in ["", "ctf001", ";", "ctf001;x;gy"] {
            assert_eq!(session_number(wrong), None, "{wrong}");
        }
    }
}
