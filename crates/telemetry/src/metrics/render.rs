//! The page of metrics, as OpenMetrics text or in the older text format of Prometheus.

use std::fmt::{self, Write as _};

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, MetricEncoder, NoLabelSet, text};
use prometheus_client::metrics::MetricType;

use super::declaration::{Declaration, Kind};
use super::exemplar::{escaped, exemplified};
use super::registry::{Registered, Values};
use super::{Histogram, Registry};

impl Registry {
    /// The values of all metrics as OpenMetrics text.
    #[must_use]
    pub fn render(&self) -> String {
        render(std::slice::from_ref(self))
    }
}

/// The values of several registries as one page: that of a function and that of its process. Their names
/// must differ.
#[must_use]
pub fn render(registries: &[Registry]) -> String {
    let mut page = String::new();
    let mut collected = prometheus_client::registry::Registry::default();
    for registry in registries {
        collected.register_collector(Box::new(registry.clone()));
    }
    match text::encode(&mut page, &collected) {
        Ok(()) => page,
        // Writing to a String does not fail.
        Err(fmt::Error) => String::new(),
    }
}

/// A format of the page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// OpenMetrics 1.0.
    OpenMetrics,
    /// Prometheus text 0.0.4, for people, curl and `promtool`.
    Text,
}

impl Format {
    /// The format that a client prefers by its `Accept` header; text when it does not ask for OpenMetrics.
    #[must_use]
    pub fn accepted(accept: &str) -> Self {
        let open = weight(accept, "application/openmetrics-text").unwrap_or_default();
        // The most specific range counts (RFC 9110 §12.5.1). A wildcard alone asks for nothing in particular: text.
        let ranges = ["text/plain", "text/*", "*/*"];
        let text = ranges.iter().find_map(|range| weight(accept, range));
        if open > 0.0 && open >= text.unwrap_or_default() {
            Self::OpenMetrics
        } else {
            Self::Text
        }
    }

    /// Its media type.
    #[must_use]
    pub const fn content_type(self) -> &'static str {
        match self {
            Self::OpenMetrics => "application/openmetrics-text; version=1.0.0; charset=utf-8",
            Self::Text => "text/plain; version=0.0.4; charset=utf-8",
        }
    }
}

/// The weight of a media range in an `Accept` header; of several with this name, such as versions, the greatest. A version
/// of OpenMetrics that is not the page's asks for another page.
fn weight(accept: &str, name: &str) -> Option<f64> {
    let ranges = accept.split(',').filter_map(|range| {
        let mut parts = range.split(';').map(str::trim);
        let media = parts.next()?;
        let (mut quality, mut is_known) = (1.0, true);
        for (key, value) in parts.filter_map(|part| part.split_once('=')) {
            match key.trim().to_ascii_lowercase().as_str() {
                "q" => quality = value.trim().parse().unwrap_or(0.0),
                "version" if name.ends_with("openmetrics-text") => {
                    is_known = matches!(value.trim().trim_matches('"'), "1.0.0" | "0.0.1");
                }
                _ => {}
            }
        }
        (media.eq_ignore_ascii_case(name) && is_known).then_some(quality)
    });
    ranges.reduce(f64::max)
}

/// The values of several registries in a format.
#[must_use]
pub fn render_as(registries: &[Registry], format: Format) -> String {
    let page = render(registries);
    match format {
        Format::OpenMetrics => exemplified(page, registries),
        Format::Text => to_text(&page),
    }
}

/// OpenMetrics as Prometheus text: there the description of a counter carries the suffix of its samples, and the page
/// has no end mark.
fn to_text(page: &str) -> String {
    let mut text = String::with_capacity(page.len());
    let mut help = None;
    for line in page.lines() {
        if line == "# EOF" {
            continue;
        }
        if let Some(rest) = line.strip_prefix("# HELP ") {
            // The suffix depends on the type, which is on the next line.
            help = rest.split_once(' ');
            continue;
        }
        if let Some((name, kind)) = line.strip_prefix("# TYPE ").and_then(|rest| rest.split_once(' ')) {
            let suffix = if kind == "counter" { "_total" } else { "" };
            if let Some((_, said)) = help.take() {
                let _ = writeln!(text, "# HELP {name}{suffix} {said}");
            }
            let _ = writeln!(text, "# TYPE {name}{suffix} {kind}");
            continue;
        }
        text.push_str(line);
        text.push('\n');
    }
    text
}

impl Collector for Registry {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
        for Registered { declaration, values } in self.metrics() {
            let kind = match declaration.kind {
                Kind::Counter => MetricType::Counter,
                Kind::Gauge => MetricType::Gauge,
                Kind::Histogram(_) => MetricType::Histogram,
            };
            // In this format the suffix belongs to the sample, not to the metric.
            let name = declaration
                .name
                .strip_suffix("_total")
                .unwrap_or(declaration.name);
            let metric = encoder.encode_descriptor(name, declaration.help, None, kind)?;
            encode(metric, &declaration, &values)?;
        }
        Ok(())
    }
}

fn encode(mut metric: MetricEncoder<'_>, declaration: &Declaration, values: &Values) -> fmt::Result {
    match values {
        Values::Counters(family) => {
            for (labels, counter) in family.series() {
                let value = counter.value();
                with_labels(&mut metric, declaration, &labels, |one| {
                    one.encode_counter::<NoLabelSet, u64, f64>(&value, None)
                })?;
            }
        }
        Values::Levels(family) => {
            for (labels, level) in family.series() {
                let value = level.value();
                with_labels(&mut metric, declaration, &labels, |one| one.encode_gauge(&value))?;
            }
        }
        Values::Gauges(family) => {
            for (labels, gauge) in family.series() {
                let value = gauge.value();
                with_labels(&mut metric, declaration, &labels, |one| one.encode_gauge(&value))?;
            }
        }
        Values::Histograms(family) => {
            for (labels, histogram) in family.series() {
                with_labels(&mut metric, declaration, &labels, |one| {
                    encode_histogram(one, declaration, &histogram)
                })?;
            }
        }
        Values::Observed(observe) => {
            for (labels, value) in observe() {
                with_labels(&mut metric, declaration, &labels, |one| match declaration.kind {
                    Kind::Counter => one.encode_counter::<NoLabelSet, f64, f64>(&value, None),
                    Kind::Gauge | Kind::Histogram(_) => one.encode_gauge(&value),
                })?;
            }
        }
    }
    Ok(())
}

fn with_labels(
    metric: &mut MetricEncoder<'_>,
    declaration: &Declaration,
    values: &[String],
    encode: impl FnOnce(&mut MetricEncoder<'_>) -> fmt::Result,
) -> fmt::Result {
    let labels: Vec<(&str, String)> = declaration
        .labels
        .iter()
        .copied()
        .zip(values.iter().map(|value| escaped(value)))
        .collect();
    if labels.is_empty() {
        return encode(metric);
    }
    encode(&mut metric.encode_family(&labels)?)
}

fn encode_histogram(
    metric: &mut MetricEncoder<'_>,
    declaration: &Declaration,
    histogram: &Histogram,
) -> fmt::Result {
    let scale = match declaration.kind {
        Kind::Histogram(buckets) => buckets.scale as f64,
        Kind::Counter | Kind::Gauge => 1.0,
    };
    let counts = histogram.buckets();
    let bounds = histogram
        .bounds
        .iter()
        .map(|bound| *bound as f64 / scale)
        // The encoder's word for "+Inf".
        .chain(std::iter::once(f64::MAX));
    let buckets: Vec<(f64, u64)> = bounds.zip(counts.iter().copied()).collect();
    metric.encode_histogram::<NoLabelSet>(
        histogram.sum() as f64 / scale,
        counts.iter().sum(),
        &buckets,
        None,
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    crate::declare! {
        /// All of them.
        METRICS;
        counter REQUESTS = "signalbox_test_requests_total" ["operation", "outcome"]: "Requests answered.";
        gauge FLIGHT = "signalbox_test_in_flight" []: "Requests in flight.";
        gauge SHARE = "signalbox_test_share_ratio" ["of"]: "A share of something.";
        gauge SEEN = "signalbox_test_seen" []: "Read at each scrape.";
        histogram TIME = "signalbox_test_request_seconds" [] in SECONDS: "Time to the answer.";
    }

    #[test]
    fn a_page_as_prometheus_reads_it() {
        let registry = Registry::new();
        let requests = registry.counters(&REQUESTS);
        requests.get(&["discover", "ok"]).add(3);
        requests.get(&["a\"b\\c\n", ""]).inc();
        let flight = registry.level(&FLIGHT);
        flight.inc();
        flight.inc();
        flight.dec();
        registry.gauges(&SHARE).get(&["x"]).set(0.5);
        registry.observe(&SEEN, || 7.0);
        let time = registry.histogram(&TIME);
        time.observe(Duration::from_micros(60));
        time.observe(Duration::from_secs(60));
        assert_eq!(METRICS.len(), 5);
        let page = registry.render();
        for line in [
            "# TYPE signalbox_test_requests counter",
            "signalbox_test_requests_total{operation=\"discover\",outcome=\"ok\"} 3",
            "signalbox_test_requests_total{operation=\"a\\\"b\\\\c\\n\",outcome=\"\"} 1",
            "# HELP signalbox_test_in_flight Requests in flight.",
            "signalbox_test_in_flight 1",
            "signalbox_test_share_ratio{of=\"x\"} 0.5",
            "signalbox_test_seen 7.0",
            "signalbox_test_request_seconds_sum 60.00006",
            "signalbox_test_request_seconds_count 2",
            "signalbox_test_request_seconds_bucket{le=\"0.00005\"} 0",
            "signalbox_test_request_seconds_bucket{le=\"0.0001\"} 1",
            "signalbox_test_request_seconds_bucket{le=\"+Inf\"} 2",
            "# EOF",
        ] {
            assert!(page.lines().any(|one| one == line), "{line}\nis not in\n{page}");
        }
    }

    #[test]
    fn text_describes_counters_by_the_name_of_their_samples() {
        let registry = Registry::new();
        registry.counters(&REQUESTS).get(&["discover", "ok"]).inc();
        registry.level(&FLIGHT).inc();
        assert_eq!(
            render_as(&[registry], Format::Text),
            "# HELP signalbox_test_in_flight Requests in flight.\n\
             # TYPE signalbox_test_in_flight gauge\n\
             signalbox_test_in_flight 1\n\
             # HELP signalbox_test_requests_total Requests answered.\n\
             # TYPE signalbox_test_requests_total counter\n\
             signalbox_test_requests_total{operation=\"discover\",outcome=\"ok\"} 1\n"
        );
    }

    #[test]
    fn the_accept_header_chooses_the_format() {
        for accept in [
            "application/openmetrics-text;version=1.0.0;q=0.5,text/plain;version=0.0.4;q=0.3,*/*;q=0.2",
            "application/openmetrics-text",
            "application/openmetrics-text; version=\"1.0.0\"; Q=0.8, */*;q=0.1",
            // Prometheus 3.
            "application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.6,text/plain;version=0.0.4;q=0.5,*/*;q=0.1",
            // A version that is not the page's beside one that is.
            "application/openmetrics-text;version=2.0.0,application/openmetrics-text;version=1.0.0;q=0.5",
        ] {
            assert_eq!(Format::accepted(accept), Format::OpenMetrics, "{accept}");
        }
        for accept in [
            "",
            "*/*",
            "text/html",
            "text/plain, application/openmetrics-text;q=0.1",
            "application/openmetrics-text;q=0",
            "application/openmetrics-text;Q=0.5, text/*",
            "application/openmetrics-text;q=0.5, */*",
            "application/openmetrics-text;version=2.0.0",
            "application/openmetrics-text;q=x, text/plain;q=0.1",
        ] {
            assert_eq!(Format::accepted(accept), Format::Text, "{accept}");
        }
    }

    #[test]
    fn a_family_is_bounded() {
        let registry = Registry::with_series(3);
        let requests = registry.counters(&REQUESTS);
        for peer in 0..10 {
            requests.get(&[&format!("peer{peer}"), "ok"]).inc();
        }
        let page = registry.render();
        assert!(
            page.contains("{operation=\"other\",outcome=\"other\"} 7"),
            "{page}"
        );
        assert_eq!(requests.series().len(), 4);
    }

    #[test]
    fn the_same_declaration_is_the_same_metric() {
        let registry = Registry::new();
        let time = registry.histogram(&TIME);
        let _ = registry.counter(&SEEN);
        registry.histogram(&TIME).record(1);
        assert_eq!((time.count(), time.quantile(0.5)), (1, Some(50_000)));
        assert_eq!(registry.declarations().len(), 2);
    }
}
