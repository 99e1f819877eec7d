//! Exemplars of histograms (OpenMetrics 1.0): the trace of the latest traced value of each bucket.
//!
//! The encoder takes none that it has not recorded itself, so they are put behind the lines that it has written.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::sync::OnceLock;
use std::time::{SystemTime, UNIX_EPOCH};

use parking_lot::Mutex;

use super::Registry;
use super::declaration::{Declaration, Kind};
use super::registry::{Registered, Values};

/// A traced value.
#[derive(Clone, Copy, Debug)]
pub(super) struct Exemplar {
    pub(super) trace: u128,
    /// In the unit of the bounds.
    pub(super) value: u64,
    pub(super) at: SystemTime,
}

/// Those of a histogram, by bucket; nothing before the first one.
#[derive(Debug, Default)]
pub(super) struct Exemplars(OnceLock<Mutex<Box<[Option<Exemplar>]>>>);

impl Exemplars {
    /// The latest one of a bucket, of this many buckets.
    pub(super) fn set(&self, bucket: usize, count: usize, exemplar: Exemplar) {
        let all = self.0.get_or_init(|| Mutex::new(vec![None; count].into()));
        if let Some(place) = all.lock().get_mut(bucket) {
            *place = Some(exemplar);
        }
    }

    fn all(&self) -> Option<Box<[Option<Exemplar>]>> {
        self.0.get().map(|all| all.lock().clone())
    }
}

/// The exemplars of a series, and how many units of its bounds are one of its metric's.
type Series = (Box<[Option<Exemplar>]>, f64);

/// The page with the exemplars of these registries.
pub(super) fn exemplified(page: String, registries: &[Registry]) -> String {
    let all: HashMap<String, Series> = registries.iter().flat_map(of_registry).collect();
    if all.is_empty() {
        return page;
    }
    let mut out = String::with_capacity(page.len() + all.len() * 1024);
    let (mut series, mut bucket) = (String::new(), 0);
    for line in page.lines() {
        out.push_str(line);
        if let Some(of) = series_of(line) {
            bucket = if of == series { bucket + 1 } else { 0 };
            series = of;
            let found = all
                .get(&series)
                .and_then(|(exemplars, scale)| Some((exemplars.get(bucket)?.as_ref()?, scale)));
            if let Some((Exemplar { trace, value, at }, scale)) = found {
                let at = at.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs_f64();
                // Writing to a String does not fail.
                let _ = write!(
                    out,
                    " # {{trace_id=\"{trace:032x}\"}} {} {at:.3}",
                    *value as f64 / scale
                );
            }
        }
        out.push('\n');
    }
    out
}

/// The series of a registry that have exemplars, by what [`series_of`] makes of their lines.
fn of_registry(registry: &Registry) -> Vec<(String, Series)> {
    let mut found = Vec::new();
    for Registered { declaration, values } in registry.metrics() {
        let (Values::Histograms(family), Kind::Histogram(buckets)) = (&values, declaration.kind) else {
            continue;
        };
        for (labels, histogram) in family.series() {
            if let Some(exemplars) = histogram.exemplars.all() {
                found.push((key(&declaration, &labels), (exemplars, buckets.scale as f64)));
            }
        }
    }
    found
}

fn key(declaration: &Declaration, values: &[String]) -> String {
    let labels = declaration.labels.iter().zip(values);
    let labels: Vec<String> = labels
        .map(|(name, value)| format!("{name}=\"{}\"", escaped(value)))
        .collect();
    format!("{}_bucket{{{}", declaration.name, labels.join(","))
}

/// The encoder writes label values as they are; a peer's name with a quote in it must not end the label.
pub(super) fn escaped(value: &str) -> String {
    value
        .replace('\\', "\\\\")
        .replace('"', "\\\"")
        .replace('\n', "\\n")
}

/// Name and labels of a line that is a bucket, without the bound `le`.
fn series_of(line: &str) -> Option<String> {
    let (name, rest) = line.split_once('{')?;
    let labels = rest.rsplit_once('}')?.0;
    if !name.ends_with("_bucket") {
        return None;
    }
    // A quote within a value is escaped.
    let at = match labels.strip_prefix("le=\"") {
        Some(_) => 0,
        None => labels.rfind(",le=\"")? + 1,
    };
    let (before, bound) = labels.split_at(at);
    let after = bound.get(4..)?.split_once('"')?.1;
    let (before, after) = (before.trim_end_matches(','), after.trim_start_matches(','));
    let comma = if before.is_empty() || after.is_empty() {
        ""
    } else {
        ","
    };
    Some(format!("{name}{{{before}{comma}{after}"))
}

#[cfg(test)]
mod tests {
    use super::super::render::{Format, render_as};
    use super::*;
    use std::time::Duration;

    crate::declare! {
        /// Both.
        METRICS;
        histogram TIME = "signalbox_test_request_seconds" ["operation"] in SECONDS: "Time to the answer.";
        histogram WAIT = "signalbox_test_wait_seconds" [] in SECONDS: "Time before.";
    }

    #[test]
    fn the_latest_traced_value_of_a_bucket_stands_beside_it() {
        assert_eq!(METRICS.len(), 2);
        let registry = Registry::new();
        let times = registry.histograms(&TIME);
        let (get, put) = (times.get(&["GET, \"a\""]), times.get(&["PUT"]));
        let wait = registry.histogram(&WAIT);
        for histogram in [&get, &put, &wait] {
            histogram.observe(Duration::from_millis(3));
        }
        get.exemplify(Duration::from_millis(4), 1);
        get.exemplify(Duration::from_millis(3), 0xabc);
        wait.exemplify(Duration::from_secs(3_600), 0xdef);
        let page = render_as(std::slice::from_ref(&registry), Format::OpenMetrics);
        let with = |name: &str| -> Vec<&str> {
            let lines = page.lines().filter(|line| line.starts_with(name));
            lines.filter(|line| line.contains(" # {")).collect()
        };
        let got = with("signalbox_test_request_seconds_bucket");
        let [latest] = got[..] else {
            panic!("{got:?}\n{page}")
        };
        assert!(latest.contains("operation=\"GET, \\\"a\\\"\""), "{latest}");
        let exemplar = " 1 # {trace_id=\"00000000000000000000000000000abc\"} 0.003 ";
        assert!(latest.contains(exemplar), "{latest}");
        let waited = with("signalbox_test_wait_seconds_bucket");
        assert!(
            waited.len() == 1 && waited[0].contains("le=\"+Inf\""),
            "{waited:?}"
        );
        assert!(page.ends_with("# EOF\n"));
        assert!(!render_as(&[registry], Format::Text).contains("trace_id"));
    }
}
