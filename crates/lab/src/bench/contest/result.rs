//! What a comparison came to: the contests, the loads and the machine.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::{Loads, Section, text};
use crate::run::figure;
use ::report::Check;
use report::measure::Machine;

/// A comparison; `target/bench/<what>.json`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Comparison {
    /// The command that makes it.
    pub command: String,
    /// The contests.
    pub sections: Vec<Section>,
    /// Bytes of a request's body and of an answer's.
    pub bytes: (u64, u64),
    /// Connections of the closed loop, and requests in flight on each.
    pub in_flight: (u32, u32),
    /// Connections of the open loop.
    pub clients: u32,
    /// Rounds of each subject under each load.
    pub rounds: u32,
    /// How long each round took.
    pub round_s: f64,
    /// The cores of the subjects.
    pub pinned_cpus: Vec<usize>,
    /// Where it was measured.
    pub machine: Machine,
    /// What is wanted.
    pub checks: Vec<Check>,
}

impl Comparison {
    pub(in crate::bench) fn new(
        command: &str,
        sections: Vec<Section>,
        bytes: (u64, u64),
        loads: &Loads,
        pinned_cpus: Vec<usize>,
        checks: impl Fn(&Section) -> Vec<Check>,
    ) -> Self {
        Self {
            command: command.to_owned(),
            checks: sections.iter().flat_map(checks).collect(),
            sections,
            bytes,
            in_flight: (loads.connections, loads.streams),
            clients: loads.clients,
            rounds: loads.rounds,
            round_s: loads.duration.as_secs_f64(),
            pinned_cpus,
            machine: Machine::this(),
        }
    }

    /// The tables as Markdown, ratios first.
    #[must_use]
    pub fn markdown(&self) -> String {
        text::markdown(&self.command, &self.machine, &self.sections)
    }
}

impl fmt::Display for Comparison {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "Requests of {} bytes, answers of {}; saturated with {} × {} in flight, open loop over {} connections; {} \
             interleaved rounds of {} s",
            figure(self.bytes.0 as f64),
            figure(self.bytes.1 as f64),
            self.in_flight.0,
            self.in_flight.1,
            self.clients,
            self.rounds,
            figure(self.round_s)
        )?;
        let machine = &self.machine;
        writeln!(
            f,
            "{} ({} cores), {}",
            machine.cpu_model, machine.cores, machine.kernel
        )?;
        self.sections
            .iter()
            .try_for_each(|section| text::table(f, section))?;
        self.checks.iter().try_for_each(|check| writeln!(f, "  {check}"))
    }
}
