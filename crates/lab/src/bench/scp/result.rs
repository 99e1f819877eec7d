//! What the comparison came to.

use std::fmt;
use std::time::Duration;

use hdrhistogram::Histogram;
use serde::{Deserialize, Serialize};

use super::{ANSWER_BYTES, REQUEST_BYTES, Settings, Subject};
use crate::measure::Machine;
use crate::report::Check;
use crate::run::Place;

/// One run of the client.
pub(super) struct Phase {
    pub(super) succeeded: u64,
    pub(super) failed: u64,
    pub(super) seconds: f64,
    pub(super) cpu: Duration,
    /// In microseconds.
    pub(super) latency: Histogram<u64>,
}

/// All runs at one subject.
pub(super) type Sum = Phase;

impl Default for Phase {
    fn default() -> Self {
        Self {
            succeeded: 0,
            failed: 0,
            seconds: 0.0,
            cpu: Duration::ZERO,
            latency: Histogram::new(3).unwrap_or_else(|_| unreachable!("three digits are a valid precision")),
        }
    }
}

impl Phase {
    pub(super) fn add(&mut self, other: Phase) {
        self.succeeded += other.succeeded;
        self.failed += other.failed;
        self.seconds += other.seconds;
        self.cpu += other.cpu;
        self.latency += other.latency;
    }

    pub(super) fn rps(&self) -> f64 {
        self.succeeded as f64 / self.seconds.max(1e-3)
    }

    fn cpu_us(&self) -> f64 {
        self.cpu.as_secs_f64() * 1e6 / self.succeeded.max(1) as f64
    }

    fn quantile_ms(&self, quantile: f64) -> f64 {
        round(self.latency.value_at_quantile(quantile) as f64 / 1e3, 3)
    }

    pub(super) fn in_words(&self) -> String {
        format!(
            "{:>6.0} requests/s, {:>5.2} µs each, p50 {} ms, p99 {} ms, {} failed",
            self.rps(),
            self.cpu_us(),
            self.quantile_ms(0.5),
            self.quantile_ms(0.99),
            self.failed
        )
    }
}

/// One subject under one load.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Row {
    /// What.
    pub name: String,
    /// Processor time of the proxy per relayed request, in microseconds; 0 without a proxy.
    pub cpu_us_per_request: f64,
    /// Requests answered rightly per second.
    pub rps: f64,
    /// Median latency.
    pub p50_ms: f64,
    /// 99th percentile of it.
    pub p99_ms: f64,
    /// Requests without a right answer.
    pub failed: u64,
}

/// All of it; `target/bench/scp.json`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Comparison {
    /// Each as fast as it goes with the client's requests in flight.
    pub rows: Vec<Row>,
    /// All at the same rate, half of what the slowest carries.
    pub half_load: Vec<Row>,
    /// The rate of `half_load`, in requests per second.
    pub half_load_rps: f64,
    /// Processor time of Model C by that of HAProxy.
    pub ratio_to_haproxy: f64,
    /// Processor time of Model C by that of nghttpx.
    pub ratio_to_nghttpx: f64,
    /// Processor time of Model D by that of Model C.
    pub ratio_d_to_c: f64,
    /// Bytes of a request's body and of an answer's.
    pub bytes: (usize, u32),
    /// Connections, and requests in flight on each.
    pub in_flight: (u32, u32),
    /// Rounds of each.
    pub rounds: u32,
    /// The cores of the proxies.
    pub pinned_cpus: Vec<usize>,
    /// Where it was measured.
    pub machine: Machine,
    /// What is wanted.
    pub checks: Vec<Check>,
}

fn round(value: f64, digits: i32) -> f64 {
    let factor = 10_f64.powi(digits);
    (value * factor).round() / factor
}

fn row(subject: &Subject, phase: &Phase) -> Row {
    Row {
        name: subject.name.to_owned(),
        cpu_us_per_request: round(phase.cpu_us(), 2),
        rps: round(phase.rps(), 0),
        p50_ms: phase.quantile_ms(0.5),
        p99_ms: phase.quantile_ms(0.99),
        failed: phase.failed,
    }
}

pub(super) fn comparison(subjects: &[Subject], half: f64, settings: &Settings, place: &Place) -> Comparison {
    let rows: Vec<Row> = subjects.iter().map(|one| row(one, &one.full)).collect();
    let half_load: Vec<Row> = subjects.iter().map(|one| row(one, &one.half)).collect();
    let cpu = |name: &str| {
        let found = rows.iter().find(|row| row.name == name);
        found.map_or(f64::NAN, |row| row.cpu_us_per_request)
    };
    let ratio = |a: &str, b: &str| round(cpu(a) / cpu(b), 3);
    let p99 = |name: &str| {
        let found = half_load.iter().find(|row| row.name == name);
        found.map_or(f64::NAN, |row| row.p99_ms)
    };
    let (to_haproxy, d_to_c) = (
        ratio("scp-model-c", "haproxy"),
        ratio("scp-model-d", "scp-model-c"),
    );
    let added = round(p99("scp-model-c") - p99("direct"), 3);
    let failed: u64 = rows.iter().chain(&half_load).map(|row| row.failed).sum();
    let check = |name: &str, expected: &str, got: String, pass: bool| Check {
        name: name.to_owned(),
        expected: expected.to_owned(),
        got,
        pass,
    };
    let checks = vec![
        check(
            "processor time of Model C by HAProxy's",
            "at most 1.0",
            format!("{to_haproxy}"),
            to_haproxy <= 1.0,
        ),
        check(
            "processor time of Model D by Model C's",
            "at most 1.15",
            format!("{d_to_c}"),
            d_to_c <= 1.15,
        ),
        check(
            "p99 that Model C adds at half load",
            "at most 1 ms",
            format!("{added} ms"),
            added <= 1.0,
        ),
        check(
            "requests without a right answer",
            "none",
            failed.to_string(),
            failed == 0,
        ),
    ];
    Comparison {
        ratio_to_haproxy: to_haproxy,
        ratio_to_nghttpx: ratio("scp-model-c", "nghttpx"),
        ratio_d_to_c: d_to_c,
        half_load_rps: round(half, 0),
        bytes: (REQUEST_BYTES, ANSWER_BYTES),
        in_flight: (settings.connections, settings.streams),
        rounds: settings.rounds,
        pinned_cpus: place.function_cpus.clone(),
        machine: Machine::this(),
        rows,
        half_load,
        checks,
    }
}

impl fmt::Display for Comparison {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let table = |f: &mut fmt::Formatter<'_>, rows: &[Row]| -> fmt::Result {
            writeln!(
                f,
                "  {:<12} {:>12} {:>12} {:>9} {:>9}",
                "", "µs/request", "requests/s", "p50 ms", "p99 ms"
            )?;
            rows.iter().try_for_each(|row| {
                writeln!(
                    f,
                    "  {:<12} {:>12.2} {:>12.0} {:>9.3} {:>9.3}",
                    row.name, row.cpu_us_per_request, row.rps, row.p50_ms, row.p99_ms
                )
            })
        };
        writeln!(
            f,
            "As fast as each goes, {} × {} requests in flight:",
            self.in_flight.0, self.in_flight.1
        )?;
        table(f, &self.rows)?;
        writeln!(f, "At {:.0} requests per second:", self.half_load_rps)?;
        table(f, &self.half_load)?;
        writeln!(
            f,
            "Model C takes {} of HAProxy's processor time, {} of nghttpx's; Model D {} of Model C's.",
            self.ratio_to_haproxy, self.ratio_to_nghttpx, self.ratio_d_to_c
        )?;
        self.checks.iter().try_for_each(|check| {
            let mark = if check.pass { "✓" } else { "✗" };
            writeln!(
                f,
                "  {mark} {}: {} (expected: {})",
                check.name, check.got, check.expected
            )
        })
    }
}
