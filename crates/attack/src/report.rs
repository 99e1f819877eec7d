//! Results of attacks: a line each, a table, a JSON file.

use std::fmt::Write as _;

use serde_json::{Value, json};

use crate::attack::Attack;
use crate::honest::Fared;

/// Result of one attack.
#[derive(Clone, Debug, Default)]
pub struct Outcome {
    /// Its name.
    pub attack: &'static str,
    /// What it does.
    pub about: &'static str,
    /// The function under attack.
    pub function: &'static str,
    /// Honest requests answered.
    pub answered: u64,
    /// Honest requests that failed.
    pub errors: u64,
    /// Median of the honest answers, in milliseconds.
    pub p50_ms: f64,
    /// Their 99th percentile.
    pub p99_ms: f64,
    /// The slowest.
    pub max_ms: f64,
    /// Resident memory before, in MiB.
    pub rss_before_mib: u64,
    /// The most of it during the attack.
    pub rss_peak_mib: u64,
    /// Growth of the log.
    pub log_bytes: u64,
    /// Processor time of the process.
    pub cpu_s: f64,
    /// How long it took.
    pub seconds: f64,
    /// Notes of the script.
    pub notes: Vec<String>,
    /// The bars that were missed, in words; empty: passed.
    pub missed: Vec<String>,
}

impl Outcome {
    /// Of an attack that has not begun.
    #[must_use]
    pub fn of(attack: &Attack) -> Self {
        Self {
            attack: attack.name,
            about: attack.about,
            function: attack.stage.function(),
            ..Self::default()
        }
    }

    /// Takes over the results of the honest client.
    pub fn take(&mut self, fared: &Fared) {
        (self.answered, self.errors) = (fared.answered, fared.errors);
        self.p50_ms = fared.percentile(0.5);
        self.p99_ms = fared.percentile(0.99);
        self.max_ms = fared.percentile(1.0);
    }

    /// Whether every bar held.
    #[must_use]
    pub fn withstood(&self) -> bool {
        self.missed.is_empty()
    }

    /// Its row of the table.
    #[must_use]
    pub fn row(&self) -> String {
        let verdict = match self.withstood() {
            true => "withstood".to_owned(),
            false => format!("MISSED: {}", self.missed.join("; ")),
        };
        format!(
            "{:<32} {:<4} {:>6}/{:<4} {:>6.1} {:>7.1} {:>7.1} {:>5} → {:<5} {:>9} {:>6.2} {:>5.1}  {verdict}",
            self.attack,
            self.function,
            self.answered,
            self.errors,
            self.p50_ms,
            self.p99_ms,
            self.max_ms,
            self.rss_before_mib,
            self.rss_peak_mib,
            self.log_bytes,
            self.cpu_s,
            self.seconds,
        )
    }

    fn json(&self) -> Value {
        json!({
            "attack": self.attack, "about": self.about, "function": self.function,
            "honest": {"answered": self.answered, "errors": self.errors, "p50Ms": self.p50_ms, "p99Ms": self.p99_ms,
                       "maxMs": self.max_ms},
            "rssBeforeMiB": self.rss_before_mib, "rssPeakMiB": self.rss_peak_mib, "logBytes": self.log_bytes,
            "cpuSeconds": self.cpu_s, "seconds": self.seconds, "notes": self.notes, "missed": self.missed,
            "withstood": self.withstood()
        })
    }
}

/// The head of the table.
pub const HEAD: &str = "attack                           func answered/err  p50 ms  p99 ms  max ms  RSS MiB       log bytes  CPU s  took  verdict";

/// The table's last line.
#[must_use]
pub fn summary(outcomes: &[Outcome]) -> String {
    let withstood = outcomes.iter().filter(|outcome| outcome.withstood()).count();
    let mut text = format!("{withstood} of {} attacks withstood", outcomes.len());
    for outcome in outcomes.iter().filter(|outcome| !outcome.withstood()) {
        let _ = write!(text, "\n  {}: {}", outcome.attack, outcome.missed.join("; "));
    }
    text
}

/// The report as JSON.
#[must_use]
pub fn json(outcomes: &[Outcome], dose: &str) -> String {
    let attacks: Vec<Value> = outcomes.iter().map(Outcome::json).collect();
    let report = json!({
        "dose": dose,
        "withstood": outcomes.iter().filter(|outcome| outcome.withstood()).count(),
        "attacks": attacks
    });
    format!("{report:#}\n")
}
