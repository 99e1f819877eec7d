//! What a comparison came to.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::{OURS, RELAY, THEIRS};
use crate::bench::turns::{self, Measured, Row, round, times};
use crate::run::{RigError, Simulator};
use ::report::Check;
use report::measure::Machine;

/// Ours may take at most this share of freeDiameter's processor time per message.
const BAR: f64 = 0.2;
/// Ours may take at most this many times the processor time of the relay.
const BAR_RELAY: f64 = 2.0;

/// Where the sessions and calls of a program have begun, as its PCRFs have counted; of all rounds, the search for the highest rate
/// included.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Placement {
    /// The program.
    pub name: String,
    /// Gx sessions that have begun.
    pub sessions: u64,
    /// Those of them at another PCRF than a session of their subscriber.
    pub stray_sessions: u64,
    /// AARs.
    pub media: u64,
    /// Those of them at another PCRF than the Gx session of their address.
    pub stray_media: u64,
    /// Other requests that were wrong where they came.
    pub wrong: u64,
}

/// Routers under one load; `target/bench/pdra.json`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Comparison {
    /// Each near the most that it carries.
    pub rows: Vec<Row>,
    /// All at the same rate, which the slowest holds.
    pub equal_rate: Vec<Row>,
    /// What came to which PCRF.
    pub placements: Vec<Placement>,
    /// Our processor time by freeDiameter's, by `rows`.
    pub ratio: f64,
    /// The same by `equal_rate`.
    pub ratio_equal_rate: f64,
    /// Our processor time by that of the relay, by `equal_rate`.
    pub by_relay_equal_rate: f64,
    /// Messages of a request: its answer, and its share of the RARs that follow with their answers.
    pub messages_of_request: f64,
    /// Rounds of each.
    pub rounds: u32,
    /// The cores that each was kept to.
    pub pinned_cpus: Vec<usize>,
    /// Where it was measured.
    pub machine: Machine,
    /// What is wanted.
    pub checks: Vec<Check>,
    /// What went wrong, by examples.
    pub notes: Vec<String>,
}

impl Placement {
    pub(super) fn of(name: &str, pcrfs: &mut Simulator) -> Result<Self, RigError> {
        let stats = pcrfs.stats()?;
        let strays = stats.stray_sessions + stats.stray_media;
        Ok(Self {
            name: name.to_owned(),
            sessions: stats.sessions,
            stray_sessions: stats.stray_sessions,
            media: stats.media,
            stray_media: stats.stray_media,
            wrong: stats.bad_requests.saturating_sub(strays),
        })
    }

    /// In words.
    fn strays(&self) -> String {
        let of = |part: u64, all: u64| {
            let share = part as f64 * 100.0 / all.max(1) as f64;
            format!("{part} of {all} ({share:.1}%)")
        };
        let sessions = of(self.stray_sessions, self.sessions);
        format!("sessions {sessions}, AARs {}", of(self.stray_media, self.media))
    }
}

pub(super) fn comparison(
    measured: &[Measured],
    placements: Vec<Placement>,
    messages_of_request: f64,
    pinned: &[usize],
    rounds: u32,
) -> Comparison {
    let [full, equal] = turns::rows(measured);
    let (ratio, ratio_equal_rate) = (times(&full, OURS, THEIRS), times(&equal, OURS, THEIRS));
    let by_relay = times(&equal, OURS, RELAY);
    Comparison {
        checks: checks(&placements, ratio_equal_rate, by_relay),
        notes: turns::examples(measured),
        rows: full,
        equal_rate: equal,
        placements,
        ratio: round(ratio, 3),
        ratio_equal_rate: round(ratio_equal_rate, 3),
        by_relay_equal_rate: round(by_relay, 2),
        messages_of_request: round(messages_of_request, 2),
        rounds,
        pinned_cpus: pinned.to_vec(),
        machine: Machine::this(),
    }
}

fn checks(placements: &[Placement], ratio: f64, by_relay: f64) -> Vec<Check> {
    let at_most = |most: f64, whose: &str, ratio: f64| {
        Check::new(
            format!("processor time by {whose}, at one rate"),
            format!("at most {most} times"),
            format!("{ratio:.2} times"),
            ratio <= most,
        )
    };
    let ours = placements.iter().find(|placement| placement.name == OURS);
    vec![
        at_most(BAR, "freeDiameter's", ratio),
        at_most(BAR_RELAY, "that of the relay", by_relay),
        Check::new(
            "sessions and AARs at the wrong PCRF",
            "none",
            ours.map_or_else(String::new, Placement::strays),
            ours.is_some_and(|ours| {
                ours.sessions > 0 && ours.stray_sessions + ours.stray_media + ours.wrong == 0
            }),
        ),
    ]
}

impl Comparison {
    /// The tables as Markdown, ratios first.
    #[must_use]
    pub fn markdown(&self) -> String {
        use fmt::Write;
        let mut text = format!(
            "Gx and Rx sessions at four PCRFs (one behind the relay); `make bench-pdra` on {} ({} cores)\n\n\
             | load | what | processor time by freeDiameter's | µs a message | requests/s | p50 ms | p99 ms |\n\
             |---|---|--:|--:|--:|--:|--:|\n",
            self.machine.cpu_model, self.machine.cores
        );
        let messages = self.messages_of_request.max(1.0);
        text += &turns::table((&self.rows, &self.equal_rate), THEIRS, messages);
        text.push_str("\n| at the wrong PCRF | |\n|---|---|\n");
        for placement in self.placements.iter().filter(|placement| placement.name != RELAY) {
            // Writing to a String cannot fail.
            let _ = writeln!(text, "| {} | {} |", placement.name, placement.strays());
        }
        text
    }
}

impl fmt::Display for Comparison {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}", self.markdown())?;
        for check in &self.checks {
            writeln!(f, "{check}")?;
        }
        self.notes.iter().try_for_each(|note| writeln!(f, "  {note}"))
    }
}
