//! The metrics of a function's admin endpoint, as Prometheus text.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

/// Timeout of a query to the admin endpoint.
const PATIENCE: Duration = Duration::from_secs(5);
/// Bytes of an answer that are read at most.
const MOST: u64 = 64 << 20;

/// The metrics of a function at one moment.
#[derive(Clone, Debug, Default)]
pub struct Metrics {
    text: String,
}

impl Metrics {
    /// Queries the admin endpoint; `None` when it does not answer.
    #[must_use]
    pub fn read(admin: SocketAddr) -> Option<Self> {
        let mut stream = TcpStream::connect_timeout(&admin, PATIENCE).ok()?;
        stream.set_read_timeout(Some(PATIENCE)).ok()?;
        write!(
            stream,
            "GET /metrics HTTP/1.1\r\nHost: {admin}\r\nConnection: close\r\n\r\n"
        )
        .ok()?;
        let mut bytes = Vec::new();
        stream.take(MOST).read_to_end(&mut bytes).ok()?;
        let text = String::from_utf8_lossy(&bytes).into_owned();
        text.starts_with("HTTP/1.1 200").then_some(Self { text })
    }

    /// Returns the sum of a metric over all its series that have these labels. NaN when the function has no metric of
    /// this name: a comparison with NaN is false, so a check of a missing metric fails.
    #[must_use]
    pub fn sum(&self, name: &str, labels: &[(&str, &str)]) -> f64 {
        match self.has(name) {
            true => self.series(name, labels).sum(),
            false => f64::NAN,
        }
    }

    /// The values of a metric, one for each of its series.
    #[must_use]
    pub fn values(&self, name: &str) -> Vec<f64> {
        self.series(name, &[]).collect()
    }

    fn has(&self, name: &str) -> bool {
        // OpenMetrics declares a counter without the suffix of its samples, Prometheus text with it.
        let suffixes = ["_total", "_bucket", "_count", "_sum"];
        let family = suffixes.iter().find_map(|suffix| name.strip_suffix(suffix));
        let family = family.unwrap_or(name);
        let mut types = self.text.lines().filter_map(|line| line.strip_prefix("# TYPE "));
        types.any(|line| matches!(line.split(' ').next(), Some(found) if found == family || found == name))
    }

    fn series(&self, name: &str, labels: &[(&str, &str)]) -> impl Iterator<Item = f64> {
        let wanted: Vec<String> = labels
            .iter()
            .map(|(key, value)| format!("{key}=\"{value}\""))
            .collect();
        self.text.lines().filter_map(move |line| {
            let rest = line.strip_prefix(name)?;
            let (series, value) = rest.rsplit_once(' ')?;
            let series = match series {
                "" => "",
                _ => series.strip_prefix('{')?.strip_suffix('}')?,
            };
            wanted
                .iter()
                .all(|label| has(series, label))
                .then(|| value.parse().ok())
                .flatten()
        })
    }
}

/// Whether `label` is one of the labels of a series, and not the end of a longer one.
fn has(series: &str, label: &str) -> bool {
    series
        .match_indices(label)
        .any(|(at, _)| at == 0 || series.as_bytes()[at - 1] == b',')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn series_are_summed_by_their_labels() {
        let metrics = Metrics {
            text: "HTTP/1.1 200 OK\r\n\r\n# TYPE a counter\na_total{producer=\"x:1\",outcome=\"2xx\"} 3\n\
                   a_total{producer=\"y:1\",outcome=\"2xx\"} 4\na_total{producer=\"y:1\",outcome=\"reset\"} 5\n\
                   # TYPE ab counter\nab_total 7\n# TYPE b gauge\nb 2.5\n# TYPE c gauge\n"
                .to_owned(),
        };
        assert_eq!(metrics.sum("a_total", &[]), 12.0);
        assert_eq!(metrics.sum("a_total", &[("outcome", "2xx")]), 7.0);
        assert_eq!(
            metrics.sum("a_total", &[("producer", "y:1"), ("outcome", "reset")]),
            5.0
        );
        assert_eq!(metrics.sum("a_total", &[("come", "2xx")]), 0.0);
        assert_eq!((metrics.sum("b", &[]), metrics.sum("c", &[])), (2.5, 0.0));
        assert_eq!(metrics.values("a_total"), [3.0, 4.0, 5.0]);
    }

    #[test]
    fn a_counter_is_found_as_either_format_declares_it() {
        for declared in ["# TYPE a counter", "# TYPE a_total counter"] {
            let metrics = Metrics {
                text: format!("HTTP/1.1 200 OK\r\n\r\n{declared}\na_total 3\n"),
            };
            assert_eq!(metrics.sum("a_total", &[]), 3.0);
        }
    }

    #[test]
    fn a_metric_that_is_not_there_fits_no_bound() {
        let unread = Metrics::default().sum("a_total", &[]);
        assert!(unread.is_nan() && !(unread == 0.0 || unread < 1.0 || unread >= 0.0));
    }
}
