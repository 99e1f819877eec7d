//! One of two NRFs on one database is killed under load: its consumers go on with the other one.

use std::net::SocketAddr;
use std::time::Duration;

use crate::run::children::{Guarded, Simulator};
use crate::run::drill::{Drill, Judgement, Outcome};
use crate::run::figure;
use crate::run::rig::RigError;
use ::report::Check;
use loadgen::FailureKind;
use report::measure::Metrics;

/// When the NRF is killed, in parts of the length.
const KILLED: f64 = 1.0 / 3.0;
/// The part of a second's requests that may be lost with their connections.
const LOST: f64 = 1.0;

/// The drill.
pub(super) struct KillOne {
    /// The admin endpoint of the NRF that stays.
    admin: SocketAddr,
    victim: Option<Guarded>,
    functions: usize,
    /// What the NRF that stays reported before the death.
    before: Option<Metrics>,
}

impl KillOne {
    pub(super) fn new(admin: SocketAddr, victim: Guarded, functions: usize) -> Self {
        Self {
            admin,
            victim: Some(victim),
            functions,
            before: None,
        }
    }
}

impl Drill for KillOne {
    fn act(&mut self, at: Duration, length: Duration, _: &mut [Simulator]) -> Result<(), RigError> {
        if at.as_secs_f64() >= KILLED * length.as_secs_f64() && self.victim.is_some() {
            self.before = Metrics::read(self.admin);
            // Dropping it kills it.
            self.victim = None;
        }
        Ok(())
    }

    fn judge(&mut self, outcome: &Outcome<'_>) -> Judgement {
        let read =
            |metrics: &Option<Metrics>, name| metrics.as_ref().map_or(-1.0, |read| read.sum(name, &[]));
        let end = Metrics::read(self.admin);
        let total = outcome.window.record.total();
        let lost = total.failures_of(&[FailureKind::Connection, FailureKind::Reset, FailureKind::Timeout]);
        let others = total.failures() - lost;
        let rate = total.offered as f64 / outcome.window.seconds();
        let members = "signalbox_nrf_cluster_members";
        let (two, one) = (read(&self.before, members), read(&end, members));
        let suspended = read(&end, "signalbox_nrf_suspensions_total");
        let known = read(&end, "signalbox_nrf_profiles");
        let checks = vec![
            Check::new(
                "requests lost with the NRF that died",
                format!("at most those of {LOST} s, all of them for their connection"),
                format!(
                    "{lost} of {} ({} a second); {others} failed otherwise",
                    total.offered,
                    figure(rate)
                ),
                lost as f64 <= rate * LOST && others == 0,
            ),
            Check::new(
                "the death is noticed",
                "two members, then one",
                format!("{}, then {}", figure(two), figure(one)),
                two == 2.0 && one == 1.0,
            ),
            Check::new(
                "registrations",
                format!("{} functions at least, none suspended", self.functions),
                format!("{} functions, {} suspended", figure(known), figure(suspended)),
                known >= self.functions as f64 && suspended == 0.0,
            ),
        ];
        Judgement {
            checks,
            notes: vec![
                "one of the two NRFs was killed (SIGKILL) at a third of the time; the processor time is that of the other one"
                    .to_owned(),
            ],
            spares_bounds: false,
            destinations: None,
        }
    }
}
