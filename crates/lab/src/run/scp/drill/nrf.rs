//! The NRF is killed, is gone for half of the time, and comes back.

use std::net::SocketAddr;
use std::time::Duration;

use super::{missed, read};
use crate::run::children::Simulator;
use crate::run::drill::{Drill, Judgement, Outcome};
use crate::run::figure;
use crate::run::rig::{Place, RigError};
use crate::run::scp::nrf::Nrf;
use crate::run::scp::start_function;
use ::report::Check;
use report::measure::Metrics;

/// When, in parts of the length.
const KILLED: f64 = 0.25;
const BACK: f64 = 0.75;
const DISCOVERIES: &str = "signalbox_scp_discoveries_total";

/// The drill.
pub(in crate::run::scp) struct StopNrf {
    place: Place,
    admin: SocketAddr,
    address: SocketAddr,
    file: std::path::PathBuf,
    process: Option<crate::run::children::Guarded>,
    /// What the SCP said: at the start, when the NRF was killed, when it came back.
    marks: Vec<Metrics>,
}

impl StopNrf {
    pub(in crate::run::scp) fn new(place: &Place, admin: SocketAddr, nrf: Nrf) -> Self {
        Self {
            place: place.clone(),
            admin,
            address: nrf.address,
            file: nrf.file,
            process: Some(nrf.process),
            marks: Vec::new(),
        }
    }
}

impl Drill for StopNrf {
    fn act(&mut self, at: Duration, length: Duration, _: &mut [Simulator]) -> Result<(), RigError> {
        let part = at.as_secs_f64() / length.as_secs_f64().max(1e-3);
        match self.marks.len() {
            0 => self.marks.push(read(self.admin)?),
            1 if part >= KILLED => {
                self.marks.push(read(self.admin)?);
                // Dropping it kills it.
                self.process = None;
            }
            2 if part >= BACK => {
                self.marks.push(read(self.admin)?);
                let cpus = &self.place.lab_cpus;
                self.process = Some(start_function(
                    &self.place,
                    "nrf",
                    cpus,
                    &self.file,
                    self.address,
                )?);
            }
            _ => {}
        }
        Ok(())
    }

    fn judge(&mut self, outcome: &Outcome<'_>) -> Judgement {
        let end = read(self.admin).unwrap_or_default();
        let [start, killed, back] = &self.marks[..] else {
            return missed("the NRF is killed and comes back");
        };
        let total = outcome.window.record.total();
        let discovered = |from: &Metrics, to: &Metrics, how: &str| {
            let labels = [("outcome", how)];
            to.sum(DISCOVERIES, &labels) - from.sum(DISCOVERIES, &labels)
        };
        let asked =
            [(start, killed), (killed, back), (back, &end)].map(|(from, to)| discovered(from, to, "asked"));
        let local = discovered(killed, back, "local");
        let failures = back.sum("signalbox_scp_nrf_failures_total", &[])
            - killed.sum("signalbox_scp_nrf_failures_total", &[]);
        let checks = vec![
            Check::new(
                "requests while the NRF is gone and after",
                "none fails",
                format!("{} of {} failed", total.failures(), figure(total.offered as f64)),
                total.failures() == 0,
            ),
            Check::new(
                "what is known is used",
                "discoveries answered by what was learned, while the NRF is missed",
                format!(
                    "{} discoveries from the profiles that were learned, {} from answers that were still valid; \
                     {} requests to the NRF failed",
                    figure(local),
                    figure(discovered(killed, back, "cached")),
                    figure(failures)
                ),
                local > 0.0 && failures > 0.0,
            ),
            Check::new(
                "the NRF is asked again",
                "discoveries at the NRF after it is back",
                format!(
                    "{} before, {} while it was gone, {} after",
                    figure(asked[0]),
                    figure(asked[1]),
                    figure(asked[2])
                ),
                asked[2] > 0.0,
            ),
        ];
        Judgement {
            checks,
            notes: vec![
                "the NRF was killed (SIGKILL) at a quarter of the time and started again at three quarters of it; \
                 `discovery.order` is nrfThenScp"
                    .to_owned(),
            ],
            spares_bounds: false,
            destinations: None,
        }
    }
}
