//! Requests, failures and latency of a function, from two readings of its metrics.

use std::collections::BTreeMap;

use serde_json::{Value, json};

/// What of the metrics of a function is counted.
struct Sources {
    function: &'static str,
    /// What is counted, for people.
    unit: &'static str,
    requests: &'static [&'static str],
    /// Series of these are failures where this label begins with one of these.
    by_label: &'static [(&'static str, &'static str, &'static [&'static str])],
    /// Every series of these is failures.
    failures: &'static [&'static str],
    /// Time to the answer, or where `peers` has some the function's own time.
    own: &'static [&'static str],
    /// Time of peers.
    peers: &'static [&'static str],
}

const SERVER_ERROR: &[&str] = &["5"];

const SOURCES: &[Sources] = &[
    Sources {
        function: "nrf",
        unit: "requests",
        requests: &["signalbox_nrf_responses_total"],
        by_label: &[("signalbox_nrf_responses_total", "status", SERVER_ERROR)],
        failures: &[],
        own: &["signalbox_nrf_request_seconds"],
        peers: &[],
    },
    Sources {
        function: "scp",
        unit: "requests",
        requests: &["signalbox_scp_requests_total"],
        by_label: &[("signalbox_scp_requests_total", "status", SERVER_ERROR)],
        failures: &[],
        own: &["signalbox_scp_own_seconds"],
        peers: &["signalbox_scp_producer_seconds"],
    },
    Sources {
        function: "bsf",
        unit: "requests",
        requests: &["signalbox_bsf_responses_total", "signalbox_bsf_rx_requests_total"],
        by_label: &[("signalbox_bsf_responses_total", "status", SERVER_ERROR)],
        failures: &["signalbox_bsf_rx_unanswered_total"],
        own: &[
            "signalbox_bsf_request_seconds",
            "signalbox_bsf_rx_request_seconds",
        ],
        peers: &[],
    },
    Sources {
        function: "pcf",
        unit: "requests",
        requests: &[
            "signalbox_pcf_responses_total",
            "signalbox_pcf_diameter_requests_total",
        ],
        by_label: &[("signalbox_pcf_responses_total", "status", SERVER_ERROR)],
        failures: &["signalbox_pcf_diameter_refusals_total"],
        own: &["signalbox_pcf_request_seconds"],
        peers: &[],
    },
    Sources {
        function: "scef",
        unit: "requests",
        requests: &[
            "signalbox_scef_responses_total",
            "signalbox_scef_diameter_requests_total",
        ],
        by_label: &[("signalbox_scef_responses_total", "status", SERVER_ERROR)],
        failures: &["signalbox_scef_diameter_refused_total"],
        own: &["signalbox_scef_request_seconds"],
        peers: &[],
    },
    Sources {
        function: "sds",
        unit: "requests",
        requests: &["signalbox_sds_responses_total"],
        by_label: &[("signalbox_sds_responses_total", "status", SERVER_ERROR)],
        failures: &[],
        own: &["signalbox_sds_request_seconds"],
        peers: &[],
    },
    Sources {
        function: "dsr",
        unit: "requests",
        requests: &["signalbox_dsr_requests_total"],
        by_label: &[],
        failures: &["signalbox_dsr_refused_requests_total"],
        own: &["signalbox_dsr_request_seconds"],
        peers: &[],
    },
    Sources {
        function: "ipfe",
        unit: "connections",
        requests: &["signalbox_ipfe_connections_total"],
        by_label: &[],
        failures: &["signalbox_ipfe_refused_connections_total"],
        own: &[],
        peers: &[],
    },
    Sources {
        function: "stp",
        unit: "messages",
        requests: &["signalbox_stp_received_messages_total"],
        by_label: &[],
        failures: &["signalbox_stp_undelivered_messages_total"],
        own: &[],
        peers: &[],
    },
    Sources {
        function: "enum",
        unit: "queries",
        requests: &["signalbox_enum_queries_total"],
        // Those that are answered SERVFAIL.
        by_label: &[(
            "signalbox_enum_answers_total",
            "outcome",
            &["no_profile", "damaged"],
        )],
        failures: &["signalbox_enum_unsent_answers_total"],
        own: &[],
        peers: &[],
    },
    Sources {
        function: "dp",
        unit: "queries",
        requests: &["signalbox_dp_queries_total"],
        by_label: &[(
            "signalbox_dp_queries_total",
            "outcome",
            &["damaged", "congested", "unavailable"],
        )],
        failures: &[],
        own: &[],
        peers: &[],
    },
];

/// Whether this is the name of a kind of function.
pub(crate) fn is_kind(name: &str) -> bool {
    SOURCES.iter().any(|sources| sources.function == name)
}

/// Cumulative counts of a histogram by upper bound, all series together; bounds as they are written.
type Buckets = BTreeMap<Bound, f64>;

/// An upper bound, ordered; infinity is the last.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Bound(f64);

impl Eq for Bound {}

impl PartialOrd for Bound {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Bound {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.0.total_cmp(&other.0)
    }
}

/// One reading of the metrics of a function.
#[derive(Clone, Debug, Default)]
pub(crate) struct Counts {
    unit: &'static str,
    requests: f64,
    failures: f64,
    own: Buckets,
    peers: Buckets,
}

impl Counts {
    /// Reads what counts for this kind of function; none for a kind that is not known.
    pub(crate) fn read(kind: &str, text: &str) -> Option<Self> {
        let sources = SOURCES.iter().find(|sources| sources.function == kind)?;
        let mut counts = Self {
            unit: sources.unit,
            ..Self::default()
        };
        for series in text.lines().filter_map(Series::parse) {
            counts.add(sources, &series);
        }
        Some(counts)
    }

    fn add(&mut self, sources: &Sources, series: &Series<'_>) {
        let (name, value) = (series.name, series.value);
        if sources.requests.contains(&name) {
            self.requests += value;
        }
        let mut by_label = sources.by_label.iter().filter(|(counter, ..)| *counter == name);
        let is_failure = sources.failures.contains(&name)
            || by_label.any(|(_, label, starts)| {
                let value = series.label(label).unwrap_or_default();
                starts.iter().any(|start| value.starts_with(start))
            });
        if is_failure {
            self.failures += value;
        }
        let Some(histogram) = name.strip_suffix("_bucket") else {
            return;
        };
        let bound = || {
            let text = series.label("le")?;
            let bound = text.parse::<f64>().ok()?;
            (!bound.is_nan()).then_some(Bound(bound))
        };
        let buckets = if sources.own.contains(&histogram) {
            &mut self.own
        } else if sources.peers.contains(&histogram) {
            &mut self.peers
        } else {
            return;
        };
        if let Some(bound) = bound() {
            *buckets.entry(bound).or_default() += value;
        }
    }

    /// What happened between an earlier reading and this one; none when the function was restarted in between.
    pub(crate) fn since(&self, earlier: &Self, seconds: f64) -> Option<Figures> {
        let requests = self.requests - earlier.requests;
        let failures = self.failures - earlier.failures;
        let was_reset = requests < 0.0 || failures < 0.0;
        if was_reset || seconds <= 0.0 {
            return None;
        }
        let quantile = |now: &Buckets, before: &Buckets| quantile(&difference(now, before)?, 0.99);
        Some(Figures {
            unit: self.unit,
            seconds,
            per_second: requests / seconds,
            failure_share: (requests > 0.0).then(|| (failures / requests).min(1.0)),
            p99: quantile(&self.own, &earlier.own),
            p99_peers: quantile(&self.peers, &earlier.peers),
        })
    }
}

/// What a function did within a time.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Figures {
    unit: &'static str,
    seconds: f64,
    pub(crate) per_second: f64,
    /// None without requests.
    failure_share: Option<f64>,
    /// Seconds, none without requests.
    p99: Option<f64>,
    p99_peers: Option<f64>,
}

impl Figures {
    pub(crate) fn json(&self) -> Value {
        let round = |value: f64| (value * 1e6).round() / 1e6;
        json!({
            "unit": self.unit,
            "measuredOverSeconds": self.seconds.round(),
            "perSecond": (self.per_second * 10.0).round() / 10.0,
            "failureShare": self.failure_share.map(round),
            "p99Seconds": self.p99.map(round),
            "p99PeersSeconds": self.p99_peers.map(round),
        })
    }
}

fn difference(now: &Buckets, before: &Buckets) -> Option<Buckets> {
    let mut all = Buckets::new();
    for (bound, count) in now {
        let count = count - before.get(bound).copied().unwrap_or_default();
        if count < 0.0 {
            return None;
        }
        all.insert(*bound, count);
    }
    Some(all)
}

/// A quantile as Prometheus computes it: linear within the bucket; above the last finite bound that bound.
fn quantile(buckets: &Buckets, share: f64) -> Option<f64> {
    let total = *buckets.last_key_value()?.1;
    if total <= 0.0 {
        return None;
    }
    let rank = share * total;
    let (mut lower, mut below) = (0.0, 0.0);
    for (bound, count) in buckets {
        if *count >= rank {
            let within = (rank - below) / (count - below).max(f64::MIN_POSITIVE);
            let is_last = bound.0.is_infinite();
            return Some(if is_last {
                lower
            } else {
                lower + (bound.0 - lower) * within
            });
        }
        (lower, below) = (bound.0, *count);
    }
    None
}

/// A line of the text format of Prometheus.
struct Series<'a> {
    name: &'a str,
    labels: &'a str,
    value: f64,
}

impl<'a> Series<'a> {
    /// None for comments, and for what is not a series.
    fn parse(line: &'a str) -> Option<Self> {
        if line.starts_with('#') {
            return None;
        }
        let end = line.find(['{', ' '])?;
        let (name, rest) = line.split_at_checked(end)?;
        // A value of a label may have braces of its own; the value of the series has none.
        let (labels, value) = match rest.strip_prefix('{') {
            Some(rest) => rest.rsplit_once('}')?,
            None => ("", rest),
        };
        let value = value.split_whitespace().next()?.parse::<f64>().ok()?;
        value.is_finite().then_some(Self { name, labels, value })
    }

    /// The value of a label, escapes as they are: those asked for have none.
    fn label(&self, name: &str) -> Option<&'a str> {
        let mut rest = self.labels;
        loop {
            let (key, after) = rest.split_once("=\"")?;
            let end = closing_quote(after)?;
            let value = after.get(..end)?;
            if key.trim_start_matches(',') == name {
                return Some(value);
            }
            rest = after.get(end + 1..)?;
        }
    }
}

fn closing_quote(text: &str) -> Option<usize> {
    let mut is_escaped = false;
    text.bytes().position(|byte| {
        let is_end = byte == b'"' && !is_escaped;
        is_escaped = byte == b'\\' && !is_escaped;
        is_end
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scp(ok: u32, bad: u32, fast: u32, slow: u32) -> Counts {
        let all = fast + slow;
        let text = format!(
            "# TYPE signalbox_scp_requests_total counter\n\
             signalbox_scp_requests_total{{service=\"a,status=\\\"5xx\\\"}}\",status=\"2xx\"}} {ok}\n\
             signalbox_scp_requests_total{{service=\"b\",status=\"5xx\"}} {bad}.0\n\
             signalbox_scp_requests_total_created 1\n\
             signalbox_scp_own_seconds_bucket{{service=\"a\",le=\"0.001\"}} {fast}\n\
             signalbox_scp_own_seconds_bucket{{service=\"a\",le=\"0.002\"}} {all}\n\
             signalbox_scp_own_seconds_bucket{{service=\"a\",le=\"+Inf\"}} {all}\n\
             broken{{ 7\nsignalbox_scp_requests_total NaN\n"
        );
        Counts::read("scp", &text).unwrap()
    }

    #[test]
    fn rates_failures_and_latency_are_those_between_two_readings() {
        let figures = scp(300, 20, 100, 100).since(&scp(100, 10, 100, 0), 10.0).unwrap();
        assert_eq!(figures.per_second, 21.0);
        assert!((figures.failure_share.unwrap() - 10.0 / 210.0).abs() < 1e-9);
        assert!((figures.p99.unwrap() - 0.00199).abs() < 1e-9, "{figures:?}");
        assert_eq!(figures.p99_peers, None);
    }

    #[test]
    fn a_restart_and_silence_are_not_figures() {
        assert_eq!(scp(1, 0, 1, 0).since(&scp(2, 0, 1, 0), 10.0), None);
        let idle = scp(2, 0, 1, 0).since(&scp(2, 0, 1, 0), 10.0).unwrap();
        assert_eq!((idle.per_second, idle.failure_share, idle.p99), (0.0, None, None));
        assert!(Counts::read("amf", "").is_none());
    }

    #[test]
    fn refused_diameter_requests_and_servfail_are_failures() {
        let share = |kind: &str, text: &str| {
            let counts = Counts::read(kind, text).unwrap();
            let figures = counts.since(&Counts::read(kind, "").unwrap(), 10.0).unwrap();
            (figures.per_second, figures.failure_share)
        };
        let pcf = "signalbox_pcf_responses_total{status=\"2xx\"} 6\nsignalbox_pcf_responses_total{status=\"5xx\"} 1\n\
             signalbox_pcf_diameter_requests_total 13\nsignalbox_pcf_diameter_refusals_total 4\n";
        assert_eq!(share("pcf", pcf), (2.0, Some(0.25)));
        let enum_server = "signalbox_enum_queries_total{transport=\"udp\",type=\"NAPTR\"} 20\n\
             signalbox_enum_answers_total{outcome=\"unknown\"} 10\nsignalbox_enum_answers_total{outcome=\"damaged\"} 3\n\
             signalbox_enum_unsent_answers_total 2\n";
        assert_eq!(share("enum", enum_server), (2.0, Some(0.25)));
        assert!(is_kind("enum"));
    }

    #[test]
    fn a_quantile_above_the_last_bound_is_that_bound() {
        let buckets: Buckets = [(Bound(1.0), 1.0), (Bound(f64::INFINITY), 100.0)].into();
        assert_eq!(quantile(&buckets, 0.99), Some(1.0));
    }
}
