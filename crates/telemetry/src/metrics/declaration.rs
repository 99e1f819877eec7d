//! Declarations: name, help, unit and labels of each metric, in one place per crate.

use std::collections::BTreeSet;
use std::fmt::Write;

use super::alert::Alert;
use super::meaning::Unit;

/// What kind of metric a name stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Only grows.
    Counter,
    /// Goes up and down.
    Gauge,
    /// How often how large, by buckets.
    Histogram(Buckets),
}

impl Kind {
    /// The word for it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Counter => "counter",
            Self::Gauge => "gauge",
            Self::Histogram(_) => "histogram",
        }
    }
}

/// Upper bounds of a histogram's buckets, and by how much they are divided when shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Buckets {
    /// Inclusive upper bounds, rising, in the unit that is recorded.
    pub bounds: &'static [u64],
    /// Recorded units per shown unit: a histogram in seconds records nanoseconds.
    pub scale: u64,
}

impl Buckets {
    /// Latency from 50 µs to 10 s, in seconds; three buckets per decade and a finer step about 1 ms.
    pub const SECONDS: Self = Self {
        bounds: &[
            50_000,
            100_000,
            250_000,
            500_000,
            750_000,
            1_000_000,
            2_500_000,
            5_000_000,
            10_000_000,
            25_000_000,
            50_000_000,
            100_000_000,
            250_000_000,
            500_000_000,
            1_000_000_000,
            2_500_000_000,
            5_000_000_000,
            10_000_000_000,
        ],
        scale: 1_000_000_000,
    };

    /// Sizes from 64 bytes to 16 MiB.
    pub const BYTES: Self = Self {
        bounds: &[
            64,
            256,
            1 << 10,
            4 << 10,
            16 << 10,
            64 << 10,
            256 << 10,
            1 << 20,
            4 << 20,
            16 << 20,
        ],
        scale: 1,
    };
}

/// A metric by name. Made with [`declare!`](crate::declare). [`Declaration::unit`] and [`Declaration::signal`] follow from
/// these, so that no declaration repeats them.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Declaration {
    /// `signalbox_<function>_<what>_<unit>`, counters end in `_total`.
    pub name: &'static str,
    /// Counter, gauge or histogram.
    pub kind: Kind,
    /// One sentence for the reference and for `# HELP`.
    pub help: &'static str,
    /// Names of the labels, in the order in which their values are given.
    pub labels: &'static [&'static str],
    /// When an operator must look at it.
    pub alert: Option<Alert>,
}

/// Declares the metrics of a crate, each once, and a list of all for the lint and the reference.
///
/// ```
/// use telemetry::{Alert, When};
///
/// telemetry::declare! {
///     /// Everything this example counts.
///     pub METRICS;
///     counter REQUESTS = "signalbox_example_requests_total" ["operation", "outcome"]: "Requests answered.";
///     gauge PROFILES = "signalbox_example_profiles" []: "Profiles registered.";
///     histogram LATENCY = "signalbox_example_request_seconds" ["operation"] in SECONDS: "Time to the answer.",
///         alert Alert::minor(When::QuantileAbove(0.5), 10, "Add workers.");
/// }
/// let registry = telemetry::Registry::new();
/// let requests = registry.counters(&REQUESTS);
/// let answered = requests.get(&["discover", "ok"]); // once, at the start
/// answered.inc(); // with each message
/// assert!(telemetry::metrics::lint(METRICS).is_empty());
/// ```
#[macro_export]
macro_rules! declare {
    ($(#[$meta:meta])* $vis:vis $all:ident; $($rest:tt)*) => {
        $crate::declare!(@each [$vis] [] $($rest)*);
        $crate::declare!(@all [$(#[$meta])* $vis $all] [] $($rest)*);
    };
    (@each [$vis:vis] [] ) => {};
    (@each [$vis:vis] [] counter $name:ident = $text:literal [$($label:literal),* $(,)?]: $help:literal $(, alert $alert:expr)?; $($rest:tt)*) => {
        #[doc = $help]
        $vis const $name: $crate::Declaration = $crate::Declaration {
            name: $text, kind: $crate::metrics::Kind::Counter, help: $help,
            labels: &[$($label),*],
            alert: $crate::declare!(@alert $($alert)?),
        };
        $crate::declare!(@each [$vis] [] $($rest)*);
    };
    (@each [$vis:vis] [] gauge $name:ident = $text:literal [$($label:literal),* $(,)?]: $help:literal $(, alert $alert:expr)?; $($rest:tt)*) => {
        #[doc = $help]
        $vis const $name: $crate::Declaration = $crate::Declaration {
            name: $text, kind: $crate::metrics::Kind::Gauge, help: $help,
            labels: &[$($label),*],
            alert: $crate::declare!(@alert $($alert)?),
        };
        $crate::declare!(@each [$vis] [] $($rest)*);
    };
    (@each [$vis:vis] [] histogram $name:ident = $text:literal [$($label:literal),* $(,)?] in $buckets:ident: $help:literal $(, alert $alert:expr)?; $($rest:tt)*) => {
        #[doc = $help]
        $vis const $name: $crate::Declaration = $crate::Declaration {
            name: $text,
            kind: $crate::metrics::Kind::Histogram($crate::metrics::Buckets::$buckets),
            help: $help,
            labels: &[$($label),*],
            alert: $crate::declare!(@alert $($alert)?),
        };
        $crate::declare!(@each [$vis] [] $($rest)*);
    };
    (@alert) => { None };
    (@alert $alert:expr) => { Some($alert) };
    (@all [$(#[$meta:meta])* $vis:vis $all:ident] [$($name:ident)*]) => {
        $(#[$meta])*
        $vis const $all: &[$crate::Declaration] = &[$($name),*];
    };
    (@all $head:tt [$($names:ident)*] $kind:ident $name:ident = $text:literal $labels:tt in $buckets:ident : $help:literal $(, alert $alert:expr)?; $($rest:tt)*) => {
        $crate::declare!(@all $head [$($names)* $name] $($rest)*);
    };
    (@all $head:tt [$($names:ident)*] $kind:ident $name:ident = $text:literal $labels:tt : $help:literal $(, alert $alert:expr)?; $($rest:tt)*) => {
        $crate::declare!(@all $head [$($names)* $name] $($rest)*);
    };
}

/// Units that a name may end in (before `_total` of a counter), as Prometheus recommends base units.
const UNITS: [&str; 3] = ["seconds", "bytes", "ratio"];

/// What is wrong with declarations, for a test in each crate that has some: names that do not follow
/// `signalbox_<function>_<what>[_<unit>][_total]`, help that says nothing, labels that cannot be.
#[must_use]
pub fn lint(declarations: &[Declaration]) -> Vec<String> {
    let mut wrong = Vec::new();
    let mut names = BTreeSet::new();
    for Declaration {
        name,
        kind,
        help,
        labels,
        alert,
    } in declarations
    {
        let mut say = |what: &str| wrong.push(format!("{name}: {what}"));
        let words: Vec<&str> = name.split('_').collect();
        if words.first() != Some(&"signalbox") || words.len() < 3 {
            say("is not signalbox_<function>_<what>…");
        }
        let lower = |text: &str| {
            !text.is_empty() && text.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit())
        };
        if !words.iter().copied().all(lower) {
            say("is not lower case words joined by one underscore each");
        }
        match kind {
            Kind::Counter if words.last() != Some(&"total") => say("is a counter without _total"),
            Kind::Gauge | Kind::Histogram(_) if words.last() == Some(&"total") => {
                say("ends in _total without being a counter");
            }
            Kind::Histogram(buckets) => {
                if !words
                    .last()
                    .is_some_and(|unit| UNITS.contains(unit) || *unit == "count")
                {
                    say("is a histogram that does not end in its unit (_seconds, _bytes, _count)");
                }
                if !buckets.bounds.is_sorted_by(|a, b| a < b) || buckets.bounds.is_empty() {
                    say("has bounds that do not rise");
                }
            }
            Kind::Counter | Kind::Gauge => {}
        }
        for odd in [
            "milliseconds",
            "ms",
            "microseconds",
            "us",
            "kib",
            "kb",
            "mb",
            "percent",
            "count",
        ] {
            let histogram = matches!(kind, Kind::Histogram(_));
            if words.contains(&odd) && !(odd == "count" && histogram) {
                say("uses a unit other than seconds, bytes or ratio");
            }
        }
        if help.len() < 10 || !help.ends_with('.') || !help.starts_with(|c: char| c.is_uppercase()) {
            say("needs help: one sentence, with capital and full stop");
        }
        for label in *labels {
            if !label.split('_').all(lower) || ["le", "quantile", "instance", "job"].contains(label) {
                say(&format!(
                    "has the label {label}, which is reserved or not lower case"
                ));
            }
        }
        if labels.iter().collect::<BTreeSet<_>>().len() != labels.len() {
            say("has a label twice");
        }
        if !names.insert(*name) {
            say("is declared twice");
        }
        if let Some(unit) = Unit::missing(name, help) {
            say(&format!(
                "measures {unit}, which its name does not have as a unit"
            ));
        }
        if let Some(fault) = alert.as_ref().and_then(|alert| alert.fault(*kind, labels)) {
            say(fault);
        }
    }
    wrong
}

/// The Markdown reference of declared metrics.
#[must_use]
pub fn reference(title: &str, declarations: &[Declaration]) -> String {
    let mut page = format!("# {title}\n\n| name | kind | labels | meaning |\n|---|---|---|---|\n");
    for Declaration {
        name,
        kind,
        help,
        labels,
        ..
    } in declarations
    {
        let kind = kind.as_str();
        let labels: Vec<String> = labels.iter().map(|label| format!("`{label}`")).collect();
        let _ = writeln!(
            page,
            "| `{name}` | {kind} | {} | {} |",
            labels.join(", "),
            help.replace('|', "\\|")
        );
    }
    page
}

#[cfg(test)]
mod tests {
    use super::*;

    crate::declare! {
        /// All of them.
        METRICS;
        counter GOOD = "signalbox_test_requests_total" ["operation"]: "Requests that were answered.";
        gauge LEVEL = "signalbox_test_depth" []: "How deep it is.";
        histogram TIME = "signalbox_test_request_seconds" [] in SECONDS: "Time to the answer.";
    }

    #[test]
    fn good_declarations_pass() {
        assert_eq!(METRICS.len(), 3);
        assert_eq!(lint(METRICS), Vec::<String>::new());
        assert_eq!((GOOD.labels, LEVEL.kind), (&["operation"][..], Kind::Gauge));
        let page = reference("Metrics", METRICS);
        assert!(page.contains("| `signalbox_test_request_seconds` | histogram |  | Time to the answer. |"));
        assert_eq!(TIME.name, "signalbox_test_request_seconds");
    }

    #[test]
    fn each_bad_habit_is_named() {
        let bad = |name, kind, help, labels| {
            lint(&[Declaration {
                name,
                kind,
                help,
                labels,
                alert: None,
            }])
            .join("\n")
        };
        let help = "What it is.";
        assert!(bad("nrf_requests_total", Kind::Counter, help, &[]).contains("signalbox_<function>"));
        assert!(bad("signalbox_nrf_requests", Kind::Counter, help, &[]).contains("without _total"));
        assert!(bad("signalbox_nrf_x_total", Kind::Gauge, help, &[]).contains("without being"));
        assert!(bad("signalbox_nrf_wait_ms", Kind::Gauge, help, &[]).contains("unit"));
        assert!(bad("signalbox_nrf_Wait", Kind::Gauge, help, &[]).contains("lower case"));
        assert!(bad("signalbox_nrf_wait", Kind::Histogram(Buckets::SECONDS), help, &[]).contains("unit"));
        assert!(bad("signalbox_nrf_wait", Kind::Gauge, "todo", &[]).contains("sentence"));
        assert!(bad("signalbox_nrf_wait", Kind::Gauge, help, &["le"]).contains("reserved"));
        assert!(lint(&[GOOD, GOOD]).join("").contains("twice"));
    }
}
