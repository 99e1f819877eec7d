//! Names of what Prometheus records, which alerts look at.

/// The share of values above which [`When::QuantileAbove`](telemetry::When::QuantileAbove) looks.
pub(crate) const QUANTILE: f64 = 0.99;

/// The recorded share of a counter that has the label of its alert.
pub(crate) fn share(counter: &str) -> String {
    format!("instance:{}:share_rate5m", base(counter))
}

/// The recorded growth of a counter as a share of that of another.
pub(crate) fn part(counter: &str, of: &str) -> String {
    format!("instance:{}:part_of_{}_rate5m", base(counter), base(of))
}

/// The recorded 99th percentile of a histogram.
pub(crate) fn quantile(histogram: &str) -> String {
    format!("instance:{histogram}:p99_rate5m")
}

fn base(counter: &str) -> &str {
    counter.strip_suffix("_total").unwrap_or(counter)
}
