//! Latency and status of each operation.

use std::cell::RefCell;
use std::time::Instant;

use telemetry::{Counter, Declaration, Family, Histogram, Registry};

/// The two metrics of a function's operations; made by [`operation_metrics!`](crate::operation_metrics).
#[derive(Clone, Copy, Debug)]
pub struct OperationMetrics {
    /// Time to the answer.
    pub latency: Declaration,
    /// Answers by status.
    pub responses: Declaration,
}

impl OperationMetrics {
    /// Both, for the list of a function's metrics.
    #[must_use]
    pub const fn declarations(&self) -> [Declaration; 2] {
        [self.latency, self.responses]
    }
}

/// Declares the metrics of a function's operations: `operation_metrics!("nrf")`.
#[macro_export]
macro_rules! operation_metrics {
    ($function:literal) => {
        $crate::sbi::OperationMetrics {
            latency: $crate::telemetry::Declaration {
                name: concat!("signalbox_", $function, "_request_seconds"),
                kind: $crate::telemetry::metrics::Kind::Histogram(
                    $crate::telemetry::metrics::Buckets::SECONDS,
                ),
                help: "Time from a request to its answer, by operation.",
                labels: &["operation"],
                alert: Some($crate::telemetry::Alert::minor(
                    $crate::telemetry::When::QuantileAbove(0.5),
                    10,
                    "Compare it with the waiting time of requests and the time of commits: add workers or instances for the one, a faster disk or database for the other.",
                )),
            },
            responses: $crate::telemetry::Declaration {
                name: concat!("signalbox_", $function, "_responses_total"),
                kind: $crate::telemetry::metrics::Kind::Counter,
                help: "Answers, by operation and HTTP status.",
                labels: &["operation", "status"],
                alert: Some($crate::telemetry::Alert::major(
                    $crate::telemetry::When::ShareAbove { label: "status", begins: "5", share: 0.05 },
                    10,
                    "The label `operation` and the log say what fails; check alarms, overload and the store.",
                )),
            },
        }
    };
}

/// The metrics of one worker, resolved before requests need them.
pub(super) struct Operations {
    names: Box<[&'static str]>,
    /// None where the function has metrics of its own for its operations.
    each: Box<[Operation]>,
    responses: Option<Family<Counter>>,
}

struct Operation {
    name: &'static str,
    latency: Histogram,
    /// By status, the first that occurred first; there are at most 900.
    by_status: RefCell<Vec<(u16, Counter)>>,
}

impl Operations {
    pub(super) fn new(
        names: &[&'static str],
        metrics: Option<&OperationMetrics>,
        registry: &Registry,
    ) -> Self {
        let each = metrics.map(|metrics| {
            let latency = registry.histograms(&metrics.latency);
            let operation = |name: &&'static str| Operation {
                name,
                latency: latency.get(&[name]),
                by_status: RefCell::default(),
            };
            names.iter().map(operation).collect()
        });
        Self {
            names: names.into(),
            each: each.unwrap_or_default(),
            responses: metrics.map(|metrics| registry.counters(&metrics.responses)),
        }
    }

    /// The name of an operation.
    pub(super) fn name(&self, operation: usize) -> &'static str {
        self.names.get(operation).copied().unwrap_or("other")
    }

    /// The trace of an operation that was answered now, whose request was received at this moment.
    pub(super) fn exemplify(&self, operation: usize, received: Instant, trace: u128) {
        if let Some(operation) = self.each.get(operation) {
            operation.latency.exemplify(received.elapsed(), trace);
        }
    }

    /// Records an operation that was answered now, whose request was received at this moment.
    pub(super) fn answered(&self, operation: usize, status: u16, received: Instant) {
        let Some((operation, responses)) = self.each.get(operation).zip(self.responses.as_ref()) else {
            return;
        };
        operation.latency.observe(received.elapsed());
        let mut known = operation.by_status.borrow_mut();
        match known.iter().find(|(code, _)| *code == status) {
            Some((_, counter)) => counter.inc(),
            None => {
                let counter = responses.get(&[operation.name, &status.to_string()]);
                counter.inc();
                known.push((status, counter));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operations_are_counted_by_status() {
        let registry = Registry::new();
        let operations = Operations::new(
            &["GET", "other"],
            Some(&crate::operation_metrics!("test")),
            &registry,
        );
        operations.answered(0, 200, Instant::now());
        operations.answered(0, 200, Instant::now());
        operations.answered(1, 404, Instant::now());
        operations.answered(7, 404, Instant::now());
        let text = registry.render();
        for line in [
            r#"signalbox_test_responses_total{operation="GET",status="200"} 2"#,
            r#"signalbox_test_responses_total{operation="other",status="404"} 1"#,
            r#"signalbox_test_request_seconds_count{operation="GET"} 2"#,
        ] {
            assert!(text.contains(line), "{line}\n{text}");
        }
    }
}
