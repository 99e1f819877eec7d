//! The data of a report.

use serde::{Deserialize, Serialize};

use crate::figure::figure;
use crate::measure::Machine;
use hdrhistogram::Histogram;

/// `report.json`: the figures of a run. Other tools read it; fields are added, never changed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Report {
    /// Name of the call model.
    pub model: String,
    /// When the measured part began (RFC 3339).
    pub started: String,
    /// Length of the measured part.
    pub duration_s: f64,
    /// Where it was measured.
    pub machine: Machine,
    /// What was measured, and what else the machine did meanwhile. Older reports do not have it.
    #[serde(default)]
    pub conditions: Conditions,
    /// Ingress transactions per second that the schedule asked for.
    pub offered_tps: f64,
    /// Ingress transactions per second that were answered rightly.
    pub achieved_tps: f64,
    /// Share of the offered that were answered rightly.
    pub success_ratio: f64,
    /// Of all transactions. Older reports do not have it.
    #[serde(default)]
    pub latency_ms: Latency,
    /// By operation.
    pub operations: Vec<OperationFigures>,
    /// The functions under test.
    pub functions: Vec<FunctionFigures>,
    /// What the guide printed, in the same fields.
    pub guide: GuideFigures,
    /// What had to hold.
    pub checks: Vec<Check>,
    /// The highest rate that held, when it was searched for.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub knee: Option<Knee>,
    /// The same in messages, where the function's guide counts those.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub messages: Option<MessageFigures>,
    /// What the function sent to other functions meanwhile, where its guide counts that into the rate.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub egress: Option<EgressFigures>,
    /// Messages of the services of the guide's function beside ours, where the guide prints those.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub services: Vec<ServiceFigures>,
    /// What the sessions that stood before the load took, where the function keeps some.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub store: Option<StoreFigures>,
    /// Where requests went, second by second, of a drill that is about that.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub destinations: Option<Destinations>,
    /// Whether every check passed.
    pub verdict: Verdict,
}

/// The program under test, and what may have disturbed the measurement.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Conditions {
    /// Release and commit of the program, as its `--version` prints them.
    pub program: String,
    /// Clock source of the kernel, such as `tsc` or `hpet`.
    pub clock_source: String,
    /// Frequency of the first core in MHz when the report was made; 0: unknown.
    pub cpu_mhz: f64,
    /// Cores that a hypervisor took away while the figures were measured; none: not measured.
    pub stolen_cores: Option<f64>,
    /// Cores that processes of neither the function nor the lab used meanwhile; none: not measured.
    pub foreign_cores: Option<f64>,
}

/// The share of the machine's cores that others may use before times are no longer those of the function alone.
const BUSY: f64 = 0.1;

impl Conditions {
    /// Whether other processes, or a hypervisor, had so much of these cores that times show them.
    #[must_use]
    pub fn are_busy(&self, cores: usize) -> bool {
        let others = self.stolen_cores.unwrap_or(0.0) + self.foreign_cores.unwrap_or(0.0);
        others > BUSY * (cores as f64).max(1.0)
    }
}

/// Figures in messages: those that came in and went out again.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct MessageFigures {
    /// Messages of each transaction.
    pub per_transaction: f64,
    /// Messages per second, of transactions that were answered rightly.
    pub mps: f64,
    /// The function's processor time per message, in microseconds.
    pub cpu_us_per_message: f64,
    /// What the guide reached; 0: it prints none.
    pub guide_mps: f64,
    /// What the guide's processor use comes to; 0: it prints none.
    pub guide_cpu_us_per_message: f64,
}

impl MessageFigures {
    /// These figures in words, and the guide's, of those it prints.
    #[must_use]
    pub fn words(&self) -> (String, Option<String>) {
        let words = |mps, cpu| {
            let each = if cpu > 0.0 {
                format!(", {} µs each", figure(cpu))
            } else {
                String::new()
            };
            format!("{} MPS{each}", figure(mps))
        };
        let guide = words(self.guide_mps, self.guide_cpu_us_per_message);
        (
            words(self.mps, self.cpu_us_per_message),
            (self.guide_mps > 0.0).then_some(guide),
        )
    }
}

/// Requests of the function to other functions, beside the ingress transactions.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct EgressFigures {
    /// By receiver, as the receivers counted them: name and requests per second.
    pub receivers: Vec<(String, f64)>,
    /// All of them, per second.
    pub tps: f64,
    /// The function's processor time per transaction in or out, in microseconds.
    pub cpu_us_per_transaction: f64,
    /// Transactions in and out that the guide reached, per second.
    pub guide_tps: f64,
    /// What the guide's processor use comes to for each of them; 0: it prints none.
    pub guide_cpu_us_per_transaction: f64,
}

/// Messages of a service of the guide's function for each ingress transaction, and those of ours that do the same.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ServiceFigures {
    /// The guide's service.
    pub service: String,
    /// Its messages per second, requests and answers; null: not printed.
    pub guide_mps: Option<f64>,
    /// The same for each ingress transaction.
    pub guide_per_transaction: Option<f64>,
    /// Its mean latency.
    pub guide_latency_ms: Option<f64>,
    /// Our messages per second; null: done within the process.
    pub mps: Option<f64>,
    /// The same for each ingress transaction.
    pub per_transaction: Option<f64>,
    /// Our mean latency, of what arrives.
    pub latency_ms: Option<f64>,
}

/// Sessions that stood before the load, and what they took then.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct StoreFigures {
    /// What keeps them: `embedded`, `galera`, `sites`.
    pub engine: String,
    /// How many, over all sites with traffic.
    pub preloaded_sessions: u64,
    /// Whether they were there from an earlier run.
    pub adopted: bool,
    /// Bytes of the stores on disk (embedded).
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub disk_bytes: Option<u64>,
    /// The same for each session.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub disk_bytes_per_session: Option<f64>,
    /// Resident memory of the functions of these sites when they were ready, all of it.
    pub resident_bytes: u64,
    /// The same for each session.
    pub resident_bytes_per_session: f64,
    /// From the start of a function to the first connection that it serves, the longest.
    pub ready_s: f64,
}

/// What came of an operation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct OperationFigures {
    /// Its name.
    pub name: String,
    /// How many were offered.
    pub count: u64,
    /// How many of them failed.
    pub errors: u64,
    /// From the intended time of sending to the end of the answer.
    pub latency_ms: Latency,
}

/// Percentiles in milliseconds. A guide leaves out what it does not print.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Latency {
    /// Arithmetic mean.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub mean: Option<f64>,
    /// Median.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub p50: Option<f64>,
    /// 90th percentile.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub p90: Option<f64>,
    /// 95th percentile.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub p95: Option<f64>,
    /// 99th percentile.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub p99: Option<f64>,
    /// 99.9th percentile.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub p999: Option<f64>,
    /// Longest.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub max: Option<f64>,
}

/// Milliseconds, to three digits after the point.
fn millis(micros: f64) -> f64 {
    micros.round() / 1000.0
}

impl Latency {
    /// Of recorded requests; empty when there are none.
    #[must_use]
    pub fn of(histogram: &Histogram<u32>) -> Self {
        if histogram.is_empty() {
            return Self::default();
        }
        let at = |quantile| Some(millis(histogram.value_at_quantile(quantile) as f64));
        Self {
            mean: Some(millis(histogram.mean())),
            p50: at(0.5),
            p90: at(0.9),
            p95: at(0.95),
            p99: at(0.99),
            p999: at(0.999),
            max: Some(millis(histogram.max() as f64)),
        }
    }
}

/// What a function used.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct FunctionFigures {
    /// Its name.
    pub name: String,
    /// The cores it was kept to; empty for any.
    pub pinned_cpus: Vec<usize>,
    /// Cores in use on average.
    pub cpu_cores_avg: f64,
    /// Cores in use in the second with the most. Older reports do not have it.
    #[serde(default)]
    pub cpu_cores_max: f64,
    /// Processor time per right ingress transaction, in microseconds.
    pub cpu_us_per_transaction: f64,
    /// The most resident memory, in MiB.
    pub rss_mb_max: f64,
    /// Resident memory on average, in MiB. Older reports do not have it.
    #[serde(default)]
    pub rss_mb_avg: f64,
    /// Processor time by the roles of threads. Older reports do not have it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub roles: Vec<RoleFigures>,
    /// Connections that peers made to it.
    pub connections_in: u32,
    /// Connections that it made.
    pub connections_out: u32,
    /// Bytes it received on the wire, before encryption.
    pub bytes_in: u64,
    /// Bytes it sent.
    pub bytes_out: u64,
}

/// What the threads of one role used, such as the workers.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RoleFigures {
    /// Name of the threads, without their number.
    pub name: String,
    /// The most of them at one time.
    pub threads: u32,
    /// Cores in use on average.
    pub cpu_cores_avg: f64,
    /// Cores in use in the second with the most.
    pub cpu_cores_max: f64,
}

/// What the guide printed.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct GuideFigures {
    /// The document.
    pub source: String,
    /// Length of its run.
    pub duration_s: f64,
    /// Ingress transactions per second aimed at.
    pub offered_tps: f64,
    /// Transactions per second reached.
    pub achieved_tps: f64,
    /// Latencies, by our operation where there is one, else by the guide's own name.
    pub operations: Vec<GuideRow>,
    /// Processor time and connections, as one function.
    pub functions: Vec<FunctionFigures>,
}

/// A latency of the guide.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct GuideRow {
    /// Our operation, or the guide's name of the stretch.
    pub name: String,
    /// The guide's name of the stretch.
    pub stretch: String,
    /// What it printed.
    pub latency_ms: Latency,
}

/// Something that had to hold.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Check {
    /// What.
    pub name: String,
    /// What was expected, in words.
    pub expected: String,
    /// What was found.
    pub got: String,
    /// Whether it held.
    pub pass: bool,
    /// Whether it measures time, and so also how fast and how busy the machine is; other checks judge content alone.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub of_time: bool,
}

impl Check {
    /// A check and what came of it.
    pub fn new(
        name: impl Into<String>,
        expected: impl Into<String>,
        got: impl Into<String>,
        pass: bool,
    ) -> Self {
        Self {
            name: name.into(),
            expected: expected.into(),
            got: got.into(),
            pass,
            of_time: false,
        }
    }

    /// Marks a check that measures time.
    #[must_use]
    pub fn of_time(self) -> Self {
        self.of_time_if(true)
    }

    /// Marks a check that measured time in this run: a request without an answer in time, and none with a wrong one.
    #[must_use]
    pub fn of_time_if(self, of_time: bool) -> Self {
        Self { of_time, ..self }
    }
}

impl std::fmt::Display for Check {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mark = if self.pass { "✓" } else { "✗" };
        write!(
            f,
            "{mark} {}: {} (expected: {})",
            self.name, self.got, self.expected
        )
    }
}

/// The highest rate that held.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Knee {
    /// Ingress transactions per second.
    pub tps: f64,
    /// What kept it from more, in words.
    pub limited_by: String,
}

/// Whether a run passed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// Every check held.
    Pass,
    /// At least one did not.
    Fail,
    /// Those that did not hold measure time, and the machine was busy with something else: the run shows nothing.
    Invalid,
}

impl Verdict {
    /// Judges checks. A check of content that did not hold is a failure on any machine.
    #[must_use]
    pub fn of(checks: &[Check], conditions: &Conditions, cores: usize) -> Self {
        let mut failed = checks.iter().filter(|check| !check.pass).peekable();
        if failed.peek().is_none() {
            return Self::Pass;
        }
        match conditions.are_busy(cores) && failed.all(|check| check.of_time) {
            true => Self::Invalid,
            false => Self::Fail,
        }
    }

    /// A word for it.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Pass => "passed",
            Self::Fail => "failed",
            Self::Invalid => "not valid",
        }
    }
}

/// Where the requests of a run went, counted at the producers.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Destinations {
    /// Sites of producers; the first is that of the function.
    pub sites: Vec<Site>,
    /// What became of requests, by second.
    pub seconds: Vec<Second>,
}

/// A site of producers.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Site {
    /// Its name.
    pub name: String,
    /// The region that it belongs to.
    pub region: String,
}

/// One second. Lists have a figure for each site, in the order of [`Destinations::sites`].
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Second {
    /// Seconds from the begin of the measured part to the end of this one.
    pub t: f64,
    /// What is done to the network meanwhile.
    pub phase: String,
    /// Requests that producers have served.
    pub served: Vec<u64>,
    /// Requests that producers have refused.
    pub refused: Vec<u64>,
    /// Requests that the function has answered itself, as it found no producer for them.
    pub refused_by_function: u64,
}

impl Destinations {
    /// Regions, each once, with the positions of their sites.
    #[must_use]
    pub fn regions(&self) -> Vec<(&str, Vec<usize>)> {
        let mut regions: Vec<(&str, Vec<usize>)> = Vec::new();
        for (at, site) in self.sites.iter().enumerate() {
            match regions.iter_mut().find(|(name, _)| *name == site.region) {
                Some((_, sites)) => sites.push(at),
                None => regions.push((&site.region, vec![at])),
            }
        }
        regions
    }
}

/// `series.json`: what renderings need besides the report.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Series {
    /// Title of the call model.
    pub title: String,
    /// What the traffic is like.
    pub summary: String,
    /// Second by second.
    pub timeline: Vec<Point>,
    /// The spread of latencies, by operation.
    pub spreads: Vec<Spread>,
    /// Failures by kind.
    pub failures: Vec<(String, u64)>,
    /// The first failures in words.
    pub examples: Vec<String>,
    /// Processes of the lab itself.
    pub lab: Vec<LabProcess>,
    /// The steps of the search for the knee.
    pub steps: Vec<Step>,
    /// How the guide's processor time comes about: service, arithmetic, cores.
    pub guide_cpu: Vec<(String, String, f64)>,
    /// What of the guide's deployment is not in that.
    pub guide_cpu_excludes: String,
    /// Contradictions of the guide: about, printed, taken.
    pub choices: Vec<(String, String, String)>,
    /// What a reader should know of this run.
    pub notes: Vec<String>,
}

/// A second of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Point {
    /// Seconds from the start of the generator.
    pub t: f64,
    /// Whether it belongs to the measured part.
    pub measured: bool,
    /// Transactions per second the schedule asked for.
    pub offered: f64,
    /// Transactions per second answered rightly.
    pub achieved: f64,
    /// Failures per second.
    pub failed: f64,
    /// Median latency in milliseconds.
    pub p50: f64,
    /// 99th percentile in milliseconds.
    pub p99: f64,
    /// Cores in use by the function.
    pub cpu: f64,
    /// Cores in use by the generator.
    pub generator_cpu: f64,
    /// Requests without an answer.
    pub in_flight: u64,
}

/// How the latencies of an operation are spread, in milliseconds.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Spread {
    /// The operation.
    pub name: String,
    /// Latency at [`Spread::QUANTILES`].
    pub at: Vec<f64>,
}

impl Spread {
    /// The quantiles of [`Spread::at`].
    pub const QUANTILES: [f64; 9] = [0.0, 0.01, 0.25, 0.5, 0.75, 0.9, 0.99, 0.999, 1.0];

    /// Of recorded requests.
    #[must_use]
    pub fn of(name: &str, histogram: &Histogram<u32>) -> Self {
        let at = |quantile| millis(histogram.value_at_quantile(quantile) as f64);
        Self {
            name: name.to_owned(),
            at: Self::QUANTILES.map(at).to_vec(),
        }
    }
}

/// A process of the lab.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct LabProcess {
    /// What it plays.
    pub name: String,
    /// Cores in use on average.
    pub cpu_cores_avg: f64,
    /// Requests it sent or received in the whole run.
    pub requests: u64,
}

/// A step of the search for the knee.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Step {
    /// Transactions per second asked for.
    pub tps: f64,
    /// Transactions per second answered rightly.
    pub achieved_tps: f64,
    /// Share of the offered answered rightly.
    pub success_ratio: f64,
    /// 99th percentile in milliseconds.
    pub p99_ms: f64,
    /// Cores in use by the function.
    pub cpu_cores: f64,
    /// Cores that others took of those the function was kept to.
    #[serde(default)]
    pub other_cores: f64,
    /// Share of the generator's busiest thread that was in use.
    pub generator_busy: f64,
    /// Whether it held; if not, why.
    pub failed: Option<String>,
}

#[cfg(test)]
mod tests {
    use super::MessageFigures;

    #[test]
    fn figures_that_the_guide_does_not_print_are_left_out() {
        let words = |guide_mps, guide_cpu_us_per_message| {
            let figures = MessageFigures {
                per_transaction: 2.0,
                mps: 16_005.0,
                cpu_us_per_message: 20.0,
                guide_mps,
                guide_cpu_us_per_message,
            };
            figures.words()
        };
        assert_eq!(words(0.0, 0.0), ("16,005 MPS, 20 µs each".to_owned(), None));
        assert_eq!(words(16_000.0, 0.0).1.as_deref(), Some("16,000 MPS"));
        assert_eq!(
            words(36_000.0, 220.0).1.as_deref(),
            Some("36,000 MPS, 220 µs each")
        );
    }
}
