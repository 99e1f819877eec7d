//! What a metric means to who watches it: its unit and its signal, which follow from name, kind and labels.

use super::declaration::{Declaration, Kind};

/// What a value is measured in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// Lengths of time.
    Seconds,
    /// A moment, in seconds since 1970.
    Moment,
    /// Memory, disk, traffic.
    Bytes,
    /// Shares of a whole, from 0 to 1.
    Ratio,
    /// A count of things, or a state that the help explains.
    Count,
}

impl Unit {
    /// The word for it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Seconds => "seconds",
            Self::Moment => "seconds since 1970",
            Self::Bytes => "bytes",
            Self::Ratio => "ratio",
            Self::Count => "count",
        }
    }

    /// The unit that the help speaks of and the name does not have.
    pub(super) fn missing(name: &str, help: &str) -> Option<&'static str> {
        let has = |unit: &str| name.split('_').any(|word| word == unit);
        let (unit, first) = match help.split_whitespace().next()? {
            "Bytes" | "Memory" => ("bytes", "bytes"),
            "Time" | "Seconds" => ("seconds", "seconds"),
            "Share" | "Part" => ("ratio", "a ratio"),
            _ => return None,
        };
        (!has(unit)).then_some(first)
    }
}

/// Which question of an operator a metric answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Signal {
    /// How much is done.
    Rate,
    /// How much of it fails.
    Errors,
    /// How long it takes.
    Duration,
    /// How full it is, and in which state.
    Saturation,
}

impl Signal {
    /// All, in the order in which a dashboard shows them.
    pub const ALL: [Self; 4] = [Self::Rate, Self::Errors, Self::Duration, Self::Saturation];

    /// The word for it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Rate => "rate",
            Self::Errors => "errors",
            Self::Duration => "duration",
            Self::Saturation => "saturation",
        }
    }
}

/// Words of the names of counters that count what should not be.
const FAILURES: [&str; 43] = [
    "abandoned",
    "alarm",
    "bad",
    "braked",
    "conflicts",
    "damaged",
    "denied",
    "discards",
    "dropped",
    "exhaustions",
    "expirations",
    "failed",
    "failures",
    "faults",
    "faulty",
    "flooding",
    "forged",
    "full",
    "greedy",
    "incidents",
    "interrupted",
    "late",
    "limited",
    "lost",
    "overflows",
    "panicked",
    "refusals",
    "refused",
    "rejected",
    "rejections",
    "resetting",
    "shut",
    "slow",
    "stalled",
    "suppressed",
    "suspensions",
    "throttled",
    "timeouts",
    "troubled",
    "unanswered",
    "unreadable",
    "unroutable",
    "unwritten",
];

impl Declaration {
    /// What its values are measured in.
    #[must_use]
    pub fn unit(&self) -> Unit {
        let has = |unit: &str| self.name.split('_').any(|word| word == unit);
        if self.name.ends_with("_seconds") && self.help.contains("since 1970") {
            Unit::Moment
        } else if has("seconds") {
            Unit::Seconds
        } else if has("bytes") {
            Unit::Bytes
        } else if has("ratio") {
            Unit::Ratio
        } else {
            Unit::Count
        }
    }

    /// Which question it answers. A counter by outcome or status counts what is done; a panel shows the failures in it.
    #[must_use]
    pub fn signal(&self) -> Signal {
        let fails = self.name.split('_').any(|word| FAILURES.contains(&word));
        let is_reason = |label: &&str| matches!(*label, "reason" | "why");
        match (self.kind, self.unit()) {
            (Kind::Histogram(_), Unit::Seconds) => Signal::Duration,
            (Kind::Histogram(_), _) => Signal::Saturation,
            (Kind::Counter, Unit::Seconds) => Signal::Saturation,
            (Kind::Counter, _) if fails || self.labels.iter().any(is_reason) => Signal::Errors,
            (Kind::Counter, _) => Signal::Rate,
            (Kind::Gauge, _) if fails => Signal::Errors,
            (Kind::Gauge, Unit::Seconds) => Signal::Duration,
            (Kind::Gauge, _) => Signal::Saturation,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    crate::declare! {
        /// All of them.
        METRICS;
        counter ANSWERS = "signalbox_test_answers_total" ["status"]: "Answers by status.";
        counter FAILED = "signalbox_test_queries_failed_total" []: "Queries that failed.";
        counter REFUSED = "signalbox_test_turned_away_total" ["reason"]: "Requests by reason.";
        counter CPU = "signalbox_test_cpu_seconds_total" []: "CPU time used.";
        counter READ = "signalbox_test_bytes_in_total" []: "Bytes read.";
        gauge LAG = "signalbox_test_lag_seconds" []: "Time since it was read.";
        gauge EXPIRY = "signalbox_test_expiry_seconds" []: "When it expires, in seconds since 1970.";
        gauge LOAD = "signalbox_test_load_ratio" []: "Load of a worker.";
        gauge DEPTH = "signalbox_test_depth" []: "How deep it is.";
        histogram TIME = "signalbox_test_request_seconds" [] in SECONDS: "Time to the answer.";
    }

    #[test]
    fn unit_and_signal_follow_from_the_declaration() {
        let expected = [
            (ANSWERS, Unit::Count, Signal::Rate),
            (FAILED, Unit::Count, Signal::Errors),
            (REFUSED, Unit::Count, Signal::Errors),
            (CPU, Unit::Seconds, Signal::Saturation),
            (READ, Unit::Bytes, Signal::Rate),
            (LAG, Unit::Seconds, Signal::Duration),
            (EXPIRY, Unit::Moment, Signal::Saturation),
            (LOAD, Unit::Ratio, Signal::Saturation),
            (DEPTH, Unit::Count, Signal::Saturation),
            (TIME, Unit::Seconds, Signal::Duration),
        ];
        assert_eq!(expected.len(), METRICS.len());
        for (metric, unit, signal) in expected {
            assert_eq!(
                (metric.unit(), metric.signal()),
                (unit, signal),
                "{}",
                metric.name
            );
        }
        assert_eq!(crate::metrics::lint(METRICS), Vec::<String>::new());
    }

    #[test]
    fn a_unit_that_the_help_speaks_of_stands_in_the_name() {
        let lint = |name, help| {
            let kind = Kind::Gauge;
            crate::metrics::lint(&[Declaration {
                name,
                kind,
                help,
                labels: &[],
                alert: None,
            }])
            .join("")
        };
        for (name, help) in [
            ("signalbox_test_memory", "Bytes that are held."),
            ("signalbox_test_log", "Memory of the log."),
            ("signalbox_test_lag", "Time since the last record."),
            ("signalbox_test_load", "Share of a core."),
        ] {
            assert!(lint(name, help).contains("unit"), "{name}");
        }
        assert_eq!(
            lint("signalbox_test_lag_seconds", "Time since the last record."),
            ""
        );
        assert_eq!(
            lint("signalbox_test_takeovers", "Times that it became active."),
            ""
        );
    }
}
