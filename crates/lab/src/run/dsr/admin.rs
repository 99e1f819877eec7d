//! What a router's admin endpoint says of itself.

use std::io::{Read, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

/// How long the router may take to tell its metrics, and how much of them is read.
const ASKING: Duration = Duration::from_secs(5);
const MOST_METRICS: u64 = 8 << 20;

/// The metrics of a function at one moment.
#[derive(Debug)]
pub(super) struct Metrics(String);

impl Metrics {
    /// Asks for them; none when the function does not tell.
    pub(super) fn ask(admin: SocketAddr) -> Option<Self> {
        let mut stream = TcpStream::connect_timeout(&admin, ASKING).ok()?;
        stream.set_read_timeout(Some(ASKING)).ok()?;
        write!(
            stream,
            "GET /metrics HTTP/1.1\r\nHost: {admin}\r\nConnection: close\r\n\r\n"
        )
        .ok()?;
        let mut text = Vec::new();
        stream.take(MOST_METRICS).read_to_end(&mut text).ok()?;
        Some(Self(String::from_utf8_lossy(&text).into_owned()))
    }

    /// The value of a metric without labels.
    pub(super) fn get(&self, name: &str) -> Option<f64> {
        let mut lines = self.0.lines();
        lines.find_map(|line| line.strip_prefix(name)?.strip_prefix(' ')?.trim().parse().ok())
    }

    /// The values of a metric with labels, whatever they are.
    pub(super) fn all(&self, name: &str) -> Vec<f64> {
        let labelled = self
            .0
            .lines()
            .filter_map(|line| line.strip_prefix(name)?.strip_prefix('{'));
        labelled
            .filter_map(|rest| rest.rsplit_once("} ")?.1.trim().parse().ok())
            .collect()
    }

    /// The value of a metric with exactly this label among others.
    pub(super) fn labelled(&self, name: &str, label: &str) -> Option<f64> {
        let mut lines = self.0.lines();
        lines.find_map(|line| {
            let (labels, value) = line.strip_prefix(name)?.strip_prefix('{')?.rsplit_once("} ")?;
            labels
                .split(',')
                .any(|one| one == label)
                .then(|| value.trim().parse().ok())?
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_found_by_name_and_label() {
        let said = Metrics(
            "HTTP/1.1 200 OK\r\n\r\n# TYPE a counter\na_total 7\na_total_more 8\n\
             b{state=\"up\",x=\"1\"} 2\nb{state=\"down\",x=\"1\"} 3\n"
                .to_owned(),
        );
        assert_eq!(said.get("a_total"), Some(7.0));
        assert_eq!(said.all("b"), [2.0, 3.0]);
        assert_eq!(said.labelled("b", "state=\"down\""), Some(3.0));
        assert_eq!((said.get("c"), said.labelled("b", "state=\"no\"")), (None, None));
    }
}
