//! Metrics of the queue of requests.

use telemetry::{Counter, Declaration, Gauge, Registry};

/// The metrics of a function's queue; made by [`queue_metrics!`](crate::queue_metrics).
#[derive(Clone, Copy, Debug)]
pub struct QueueMetrics {
    /// Handlers that have begun.
    pub begun: Declaration,
    /// Handlers that await other functions.
    pub elsewhere: Declaration,
    /// Requests that are queued.
    pub queued: Declaration,
    /// Bytes of these.
    pub bytes: Declaration,
    /// Requests that found no room.
    pub refused: Declaration,
}

impl QueueMetrics {
    /// All, for the list of a function's metrics.
    #[must_use]
    pub const fn declarations(&self) -> [Declaration; 5] {
        [self.begun, self.elsewhere, self.queued, self.bytes, self.refused]
    }
}

/// Declares the metrics of a function's queue: `queue_metrics!("pcf")`.
#[macro_export]
macro_rules! queue_metrics {
    ($function:literal) => {{
        const fn gauge(name: &'static str, help: &'static str) -> $crate::telemetry::Declaration {
            $crate::telemetry::Declaration {
                name,
                kind: $crate::telemetry::metrics::Kind::Gauge,
                help,
                labels: &["worker"],
                alert: None,
            }
        }
        $crate::sbi::QueueMetrics {
            begun: gauge(
                concat!("signalbox_", $function, "_requests_begun"),
                "Requests whose handlers have begun and do not await other functions.",
            ),
            elsewhere: gauge(
                concat!("signalbox_", $function, "_requests_elsewhere"),
                "Requests whose handlers await other functions.",
            ),
            queued: gauge(
                concat!("signalbox_", $function, "_requests_queued"),
                "Requests that are queued until a handler may begin.",
            ),
            bytes: gauge(
                concat!("signalbox_", $function, "_requests_queued_bytes"),
                "Bytes of the requests that are queued until a handler may begin.",
            ),
            refused: $crate::telemetry::Declaration {
                name: concat!("signalbox_", $function, "_queue_refusals_total"),
                kind: $crate::telemetry::metrics::Kind::Counter,
                help: "Requests refused because the queue before the handlers had no room for them.",
                labels: &["worker"],
                alert: None,
            },
        }
    }};
}

/// The metrics of one worker.
pub(super) struct Meters {
    gauges: [Gauge; 4],
    refused: Counter,
}

impl Meters {
    pub(super) fn new(metrics: &QueueMetrics, registry: &Registry, worker: usize) -> Self {
        let name = worker.to_string();
        let gauge = |declaration: &Declaration| registry.gauges(declaration).get(&[&name]);
        Self {
            gauges: [
                &metrics.begun,
                &metrics.elsewhere,
                &metrics.queued,
                &metrics.bytes,
            ]
            .map(gauge),
            refused: registry.counters(&metrics.refused).get(&[&name]),
        }
    }

    pub(super) fn show(&self, values: [usize; 4]) {
        for (gauge, value) in self.gauges.iter().zip(values) {
            gauge.set(value as f64);
        }
    }

    pub(super) fn refused(&self) {
        self.refused.inc();
    }
}
