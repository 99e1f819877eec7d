//! What the comparison came to.

use std::fmt;
use std::time::Duration;

use hdrhistogram::Histogram;
use serde::{Deserialize, Serialize};

use super::{ANSWER_BYTES, REQUEST_BYTES, Settings, Subject, latency};
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

/// The time one subject takes at one rate, the same for all.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LatencyRow {
    /// What.
    pub name: String,
    /// Part of the most that Model C carries.
    pub share: f64,
    /// Requests answered rightly per second.
    pub rps: f64,
    /// Median, from when a request was to be sent to the end of its answer.
    pub p50_ms: f64,
    /// 99th percentile of that.
    pub p99_ms: f64,
    /// 99.9th percentile of that.
    pub p999_ms: f64,
    /// The median less that of `direct`.
    pub added_p50_ms: f64,
    /// The 99th percentile less that of `direct`.
    pub added_p99_ms: f64,
    /// Processor time of the proxy per relayed request, in microseconds; 0 without a proxy.
    pub cpu_us_per_request: f64,
    /// Use of the proxies' cores by anybody, 0 to 1; 0 when they are not pinned.
    pub proxy_cores_busy: f64,
    /// Use of the cores of generator and producers by anybody, 0 to 1; 0 when they are not pinned.
    pub lab_cores_busy: f64,
    /// Use of a core by the generator alone, 0 to 1.
    pub generator_busy: f64,
    /// Requests without a right answer.
    pub failed: u64,
}

/// All of it; `target/bench/scp.json`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Comparison {
    /// Each as fast as it goes with the client's requests in flight.
    pub rows: Vec<Row>,
    /// All at the same rate, half of what Model C carries, in an open loop.
    pub half_load: Vec<Row>,
    /// The rate of `half_load`, in requests per second.
    pub half_load_rps: f64,
    /// At a tenth, a quarter and half of what Model C carries.
    pub latency: Vec<LatencyRow>,
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

/// The rows of all rates, all subjects of a rate together.
fn latency_rows(subjects: &[Subject], place: &Place) -> Vec<LatencyRow> {
    let ms = |phase: &latency::Phase, quantile| phase.latency.value_at_quantile(quantile) as f64 / 1e3;
    let direct = subjects.iter().find(|one| one.proxy.is_none());
    let mut rows = Vec::new();
    for (at, share) in latency::SHARES.into_iter().enumerate() {
        for subject in subjects {
            let phase = &subject.latency[at];
            let added = |quantile| {
                direct.map_or(f64::NAN, |direct| {
                    round(ms(phase, quantile) - ms(&direct.latency[at], quantile), 3)
                })
            };
            let (proxy_cores_busy, lab_cores_busy, generator_busy) = phase.busy(place);
            rows.push(LatencyRow {
                name: subject.name.to_owned(),
                share,
                rps: round(phase.succeeded as f64 / phase.seconds.max(1e-3), 0),
                p50_ms: ms(phase, 0.5),
                p99_ms: ms(phase, 0.99),
                p999_ms: ms(phase, 0.999),
                added_p50_ms: added(0.5),
                added_p99_ms: added(0.99),
                cpu_us_per_request: round(phase.cpu.as_secs_f64() * 1e6 / phase.succeeded.max(1) as f64, 2),
                proxy_cores_busy: round(proxy_cores_busy, 3),
                lab_cores_busy: round(lab_cores_busy, 3),
                generator_busy: round(generator_busy, 3),
                failed: phase.offered.saturating_sub(phase.succeeded),
            });
        }
    }
    rows
}

pub(super) fn comparison(subjects: &[Subject], most: f64, settings: &Settings, place: &Place) -> Comparison {
    let rows: Vec<Row> = subjects.iter().map(|one| row(one, &one.full)).collect();
    let latency = latency_rows(subjects, place);
    let half_load: Vec<Row> = latency[latency.len() - subjects.len()..]
        .iter()
        .map(|one| Row {
            name: one.name.clone(),
            cpu_us_per_request: one.cpu_us_per_request,
            rps: one.rps,
            p50_ms: one.p50_ms,
            p99_ms: one.p99_ms,
            failed: one.failed,
        })
        .collect();
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
    let failed: u64 =
        rows.iter().map(|row| row.failed).sum::<u64>() + latency.iter().map(|row| row.failed).sum::<u64>();
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
        half_load_rps: round(most * latency::SHARES[latency::SHARES.len() - 1], 0),
        latency,
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
        writeln!(
            f,
            "In an open loop, at parts of what Model C carries (latency from when a request was to be sent):\n  {:<4} {:<12} \
             {:>10} {:>9} {:>9} {:>10} {:>11} {:>8} {:>8} {:>10}",
            "", "", "requests/s", "p50 ms", "p99 ms", "+p50 ms", "+p99 ms", "proxy", "lab", "generator"
        )?;
        for row in &self.latency {
            writeln!(
                f,
                "  {:>3.0}% {:<12} {:>10.0} {:>9.3} {:>9.3} {:>10.3} {:>11.3} {:>7.0}% {:>7.0}% {:>9.0}%",
                row.share * 100.0,
                row.name,
                row.rps,
                row.p50_ms,
                row.p99_ms,
                row.added_p50_ms,
                row.added_p99_ms,
                row.proxy_cores_busy * 100.0,
                row.lab_cores_busy * 100.0,
                row.generator_busy * 100.0
            )?;
        }
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
