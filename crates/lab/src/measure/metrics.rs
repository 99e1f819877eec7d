//! What a function says of itself at its admin endpoint, as Prometheus text.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

/// How long a function may take to tell.
const PATIENCE: Duration = Duration::from_secs(5);
/// More than this is not read.
const MOST: u64 = 64 << 20;

/// The metrics of a function at one moment.
#[derive(Clone, Debug, Default)]
pub struct Metrics {
    text: String,
}

impl Metrics {
    /// Asks the admin endpoint; `None` when it does not answer.
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

    /// The sum of a metric over all its series that have these labels; 0 when there is none.
    #[must_use]
    pub fn sum(&self, name: &str, labels: &[(&str, &str)]) -> f64 {
        let wanted: Vec<String> = labels
            .iter()
            .map(|(key, value)| format!("{key}=\"{value}\""))
            .collect();
        let value = |line: &str| -> Option<f64> {
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
        };
        self.text.lines().filter_map(value).sum()
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
            text: "HTTP/1.1 200 OK\r\n\r\n# TYPE a counter\na{producer=\"x:1\",outcome=\"2xx\"} 3\n\
                   a{producer=\"y:1\",outcome=\"2xx\"} 4\na{producer=\"y:1\",outcome=\"reset\"} 5\nab 7\nb 2.5\n"
                .to_owned(),
        };
        assert_eq!(metrics.sum("a", &[]), 12.0);
        assert_eq!(metrics.sum("a", &[("outcome", "2xx")]), 7.0);
        assert_eq!(
            metrics.sum("a", &[("producer", "y:1"), ("outcome", "reset")]),
            5.0
        );
        assert_eq!(metrics.sum("a", &[("come", "2xx")]), 0.0);
        assert_eq!(metrics.sum("b", &[]), 2.5);
        assert_eq!(metrics.sum("c", &[]), 0.0);
    }
}
