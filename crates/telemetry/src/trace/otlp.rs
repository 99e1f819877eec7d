//! Spans to a collector: OTLP/HTTP with JSON (opentelemetry-proto, `ExportTraceServiceRequest`).

use std::collections::BTreeMap;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::{Duration, Instant, UNIX_EPOCH};

use serde_json::{Value, json};

use super::endpoint::Collector;
use super::span::Finished;
use crate::metrics::Counter;

/// Spans sent together at most.
const BATCH: usize = 512;

/// Sends spans.
pub(super) struct Exporter {
    pub(super) collector: Collector,
    /// That of the program.
    pub(super) version: &'static str,
    pub(super) interval: Duration,
    pub(super) exported: Counter,
    pub(super) dropped: Counter,
}

impl Exporter {
    /// Sends what comes until nothing can come any more.
    pub(super) fn run(mut self, spans: &Receiver<Finished>) {
        // Instances of a function differ by it; functions of one process share it.
        let instance = format!("{:032x}", rand::random::<u128>());
        let mut reachable = true;
        loop {
            let (batch, more) = gather(spans, self.interval);
            if !batch.is_empty() {
                let count = batch.len() as u64;
                match self.collector.send(&request(&batch, &instance, self.version)) {
                    Ok(()) => self.exported.add(count),
                    Err(reason) => {
                        self.dropped.add(count);
                        // Once, not with each batch.
                        if reachable {
                            tracing::warn!(
                                collector = self.collector.url(),
                                reason,
                                "the collector takes no spans"
                            );
                        }
                        reachable = false;
                        continue;
                    }
                }
                reachable = true;
            }
            if !more {
                return;
            }
        }
    }
}

/// Waits for a span, then for others within the interval. The flag says whether more can come.
fn gather(spans: &Receiver<Finished>, interval: Duration) -> (Vec<Finished>, bool) {
    let Ok(first) = spans.recv() else {
        return (Vec::new(), false);
    };
    let mut batch = vec![first];
    let began = Instant::now();
    while batch.len() < BATCH {
        let left = interval.saturating_sub(began.elapsed());
        match spans.recv_timeout(left) {
            Ok(span) => batch.push(span),
            Err(RecvTimeoutError::Timeout) => break,
            Err(RecvTimeoutError::Disconnected) => return (batch, false),
        }
    }
    (batch, true)
}

/// The body of an export: spans by the function that served or sent them.
fn request(batch: &[Finished], instance: &str, version: &str) -> Value {
    let mut functions: BTreeMap<&str, Vec<Value>> = BTreeMap::new();
    for span in batch {
        functions.entry(span.function).or_default().push(as_json(span));
    }
    let resources = functions.into_iter().map(|(function, spans)| {
        json!({
            "resource": { "attributes": [
                text("service.name", function),
                text("service.namespace", "signalbox"),
                text("service.instance.id", instance),
                text("service.version", version),
            ] },
            "scopeSpans": [{ "scope": { "name": "signalbox" }, "spans": spans }],
        })
    });
    json!({ "resourceSpans": resources.collect::<Vec<_>>() })
}

fn text(key: &str, value: &str) -> Value {
    json!({ "key": key, "value": { "stringValue": value } })
}

fn as_json(span: &Finished) -> Value {
    /// `STATUS_CODE_ERROR`.
    const ERROR: u8 = 2;
    let start = span
        .start
        .duration_since(UNIX_EPOCH)
        .map_or(0, |since| since.as_nanos());
    let mut attributes: Vec<Value> = span
        .attributes
        .iter()
        .map(|(key, value)| text(key, value))
        .collect();
    if let Some(status) = span.status {
        attributes.push(json!({
            "key": "http.response.status_code",
            "value": { "intValue": status.to_string() },
        }));
    }
    let links = span.link.iter().map(
        |link| json!({ "traceId": format!("{:032x}", link.trace), "spanId": format!("{:016x}", link.span) }),
    );
    json!({
        "traceId": format!("{:032x}", span.context.trace),
        "spanId": format!("{:016x}", span.context.span),
        "parentSpanId": span.parent.map(|parent| format!("{parent:016x}")).unwrap_or_default(),
        "name": span.name,
        "kind": span.kind as u8,
        "startTimeUnixNano": start.to_string(),
        "endTimeUnixNano": (start + u128::from(span.nanos)).to_string(),
        "attributes": attributes,
        "links": links.collect::<Vec<_>>(),
        "status": if span.failed { json!({ "code": ERROR }) } else { json!({}) },
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trace::TraceContext;
    use crate::trace::span::Kind;

    #[test]
    fn spans_as_a_collector_reads_them() {
        let span = |function, status| Finished {
            function,
            name: "Nnrf_NFDiscovery GET",
            kind: Kind::Server,
            context: TraceContext::begin(0xabc, 0x1, true),
            parent: Some(2),
            link: Some(TraceContext::begin(0xdef, 0x3, true)),
            start: UNIX_EPOCH + Duration::from_secs(1),
            began: Instant::now(),
            nanos: 5,
            status: Some(status),
            failed: status >= 500,
            attributes: vec![("nf.type", "AMF".to_owned())],
        };
        let body = request(
            &[span("nrf", 200), span("scp", 503), span("nrf", 404)],
            "1",
            "0.1.0",
        );
        assert_eq!(body["resourceSpans"].as_array().unwrap().len(), 2);
        let first = &body["resourceSpans"][0]["scopeSpans"][0]["spans"][0];
        assert_eq!(first["traceId"], "00000000000000000000000000000abc");
        assert_eq!(first["parentSpanId"], "0000000000000002");
        assert_eq!(first["endTimeUnixNano"], "1000000005");
        assert_eq!(first["status"], json!({}));
        assert_eq!(first["kind"], 2);
        assert_eq!(first["links"][0]["traceId"], "00000000000000000000000000000def");
        assert_eq!(first["links"][0]["spanId"], "0000000000000003");
        let failed = &body["resourceSpans"][1]["scopeSpans"][0]["spans"][0];
        assert_eq!(failed["status"]["code"], 2);
    }
}
