//! Traces of sampled requests: W3C trace context in, spans out by OTLP.
//!
//! ```text
//! traceparent ─► begin ─ not sampled ─► None: the request costs nothing more
//!                  └ sampled ─► Span ─ dropped ─► bounded queue ─► thread `traces` ─► collector, OTLP/HTTP JSON
//!                     │          └ slow or failed, when it ends ─► late ─┘              ▲
//!                     └ scope: work for it ─► client: what it sends ─► Span ─ dropped ──┘
//! ```
//!
//! A process has one tracer, as it has one log. Until [`init`] nothing is sampled. The exporter writes the JSON
//! of OTLP itself: it is one page, where the SDK is forty crates.

mod context;
mod endpoint;
mod otlp;
mod span;

use std::collections::BTreeMap;
use std::io;
use std::path::PathBuf;
use std::sync::OnceLock;
use std::sync::mpsc::{SyncSender, sync_channel};
use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use settings::{Faults, Percent, Period, Validate};

use crate::metrics::{Alert, Counter, Registry, When};

use endpoint::Collector;

pub use context::{NotTraceContext, TRACEPARENT, TRACESTATE, TraceContext};
pub use span::{Scope, Span, begin, begin_if, client, enter, function, late};

crate::declare! {
    /// What is counted of traces.
    pub METRICS;
    counter EXPORTED = "signalbox_trace_spans_total" []: "Spans that a collector has taken.";
    counter DROPPED = "signalbox_trace_spans_dropped_total" []: "Spans that were dropped: too many waited, or no collector took them.",
        alert Alert::minor(When::Occurs, 4, "Check the collector of `traces.collector`, or lower the share of sampled requests.");
}

/// Traces of requests.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default, rename_all = "camelCase")]
pub struct Config {
    /// Collector that takes spans by OTLP over HTTP, such as `127.0.0.1:4318` or `https://otel.example.org:4318`: `/v1/traces` is
    /// appended; absent: no traces.
    pub collector: Option<String>,
    /// PEM file with the authorities of the collector's certificate, for `https`. It is read again after a failure.
    pub certificate_authority: Option<PathBuf>,
    /// Header fields of each export, such as `authorization`.
    pub headers: BTreeMap<String, String>,
    /// Share of the requests without a trace of their sender's that begin one here.
    pub share: Percent,
    /// Whether requests are traced when their sender traces them.
    pub follow: bool,
    /// Requests that took longer, or failed with a status of 500 and above, have a span each, also outside of the share; at most 100
    /// a second of each worker.
    pub slow: Period,
    /// Spans that may wait for the collector; more are dropped and counted.
    #[schemars(range(min = 1, max = 1_000_000))]
    pub queue: usize,
    /// How long spans are gathered before they are sent together.
    pub interval: Period,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            collector: None,
            certificate_authority: None,
            headers: BTreeMap::new(),
            share: Percent::new(0.1),
            follow: true,
            slow: Period::from_secs(1),
            queue: 4096,
            interval: Period::from_secs(1),
        }
    }
}

impl Validate for Config {
    fn validate(&self, faults: &mut Faults) {
        if let Some(collector) = &self.collector {
            endpoint::validate(self, collector, faults);
        }
        if self.interval.is_zero() {
            faults
                .at("interval")
                .say("must be longer than 0s", "more than 0s, such as 1s");
        }
    }
}

/// The tracer of this process.
struct Tracer {
    share: f64,
    follow: bool,
    slow: Duration,
    queue: SyncSender<span::Finished>,
    dropped: Counter,
}

static TRACER: OnceLock<Tracer> = OnceLock::new();

/// Starts tracing, if the configuration names a collector; the first call of a process counts. `version` is that of the program.
///
/// # Errors
/// When the system refuses the thread that sends spans.
pub fn init(config: &Config, registry: &Registry, version: &'static str) -> io::Result<()> {
    let (exported, dropped) = (registry.counter(&EXPORTED), registry.counter(&DROPPED));
    let Some(collector) = &config.collector else {
        return Ok(());
    };
    let (queue, spans) = sync_channel(config.queue.max(1));
    let tracer = Tracer {
        share: config.share.fraction(),
        follow: config.follow,
        slow: config.slow.duration(),
        queue,
        dropped: dropped.clone(),
    };
    if TRACER.set(tracer).is_err() {
        return Ok(());
    }
    let exporter = otlp::Exporter {
        collector: Collector::new(collector, config),
        version,
        interval: config.interval.duration(),
        exported,
        dropped,
    };
    std::thread::Builder::new()
        .name("traces".to_owned())
        .spawn(move || exporter.run(&spans))
        .map(drop)
}
