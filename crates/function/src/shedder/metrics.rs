//! Metrics of admission.

use std::cell::RefCell;
use std::time::Duration;

use overload::PRIORITIES;
use telemetry::{Counter, Declaration, Family, Gauge, Histogram, Registry};

/// The metrics of a function's admission; made by [`admission_metrics!`](crate::admission_metrics).
#[derive(Clone, Copy, Debug)]
pub struct AdmissionMetrics {
    /// Time that requests have waited.
    pub waiting: Declaration,
    /// The most important priority that is refused.
    pub threshold: Declaration,
    /// Requests refused, by priority.
    pub refused: Declaration,
}

impl AdmissionMetrics {
    /// All, for the list of a function's metrics.
    #[must_use]
    pub const fn declarations(&self) -> [Declaration; 3] {
        [self.waiting, self.threshold, self.refused]
    }
}

/// Declares the metrics of a function's admission: `admission_metrics!("nrf")`.
#[macro_export]
macro_rules! admission_metrics {
    ($function:literal) => {
        $crate::AdmissionMetrics {
            waiting: $crate::telemetry::Declaration {
                name: concat!("signalbox_", $function, "_waiting_seconds"),
                kind: $crate::telemetry::metrics::Kind::Histogram(
                    $crate::telemetry::metrics::Buckets::SECONDS,
                ),
                help: "Time that requests were queued before a worker began to serve them.",
                labels: &["worker"],
                alert: None,
            },
            threshold: $crate::telemetry::Declaration {
                name: concat!("signalbox_", $function, "_admission_threshold"),
                kind: $crate::telemetry::metrics::Kind::Gauge,
                help: "The most important message priority of which requests are refused under overload, 32 for none.",
                labels: &["worker"],
                alert: None,
            },
            refused: $crate::telemetry::Declaration {
                name: concat!("signalbox_", $function, "_overload_refusals_total"),
                kind: $crate::telemetry::metrics::Kind::Counter,
                help: "Requests refused under overload, by message priority.",
                labels: &["priority"],
                alert: None,
            },
        }
    };
}

/// The metrics of one worker.
pub struct Meters {
    waiting: Histogram,
    threshold: Gauge,
    refused: Family<Counter>,
    /// By priority, resolved with the first refusal.
    by_priority: RefCell<[Option<Counter>; PRIORITIES]>,
}

impl Meters {
    /// Those of this worker.
    #[must_use]
    pub fn new(metrics: &AdmissionMetrics, registry: &Registry, worker: usize) -> Self {
        let name = worker.to_string();
        let threshold = registry.gauges(&metrics.threshold).get(&[&name]);
        threshold.set(PRIORITIES as f64);
        Self {
            waiting: registry.histograms(&metrics.waiting).get(&[&name]),
            threshold,
            refused: registry.counters(&metrics.refused),
            by_priority: RefCell::new([const { None }; PRIORITIES]),
        }
    }

    pub(super) fn waited(&self, waited: Duration) {
        self.waiting.observe(waited);
    }

    pub(super) fn threshold(&self, edge: usize) {
        self.threshold.set(edge as f64);
    }

    pub(super) fn refused(&self, priority: u8) {
        let priority = usize::from(priority).min(PRIORITIES - 1);
        if let Some(counter) = self.by_priority.borrow_mut().get_mut(priority) {
            counter
                .get_or_insert_with(|| self.refused.get(&[&priority.to_string()]))
                .inc();
        }
    }
}
