//! The measurement and the alarms of full address resolution, by the guide's numbers. Its database is in the process: those of
//! the connections to a database processor (19816, 19826, 19831, 19900) have nothing to be about.

use telemetry::{Alarms, Severity};

use super::alarms::{FAILURE_RATE, ROUTED_SERVICE};
use super::indicators::Indicate;
use super::sample::Sample;
use crate::rows::IndicatorRow;

/// The subject of the alarms.
const DATABASE: &str = "fabr";
/// DpQueriesReceived, the guide's measurement of a database processor.
const QUERIES: (u32, &str) = (4170, "DpQueriesReceived");
/// Shares of failed queries from which on the alarm is major and critical; any is minor. The guide prints none.
const MAJOR: f64 = 0.01;
const CRITICAL: f64 = 0.1;

impl Indicate<'_> {
    /// Queries of a second, and how many of them failed.
    pub(super) fn resolution(&mut self) {
        let (old, new) = (&self.between.old.resolution, &self.between.new.resolution);
        let queries = new.queries.saturating_sub(old.queries);
        let errors = new.errors.saturating_sub(old.errors);
        if new.queries > 0 {
            self.rows.push(IndicatorRow {
                id: QUERIES.0,
                name: QUERIES.1,
                instance: DATABASE.to_owned(),
                value: queries as f64 / self.between.seconds,
                unit: "queries per second",
                profile: None,
            });
        }
        match severity(errors, queries) {
            Some(severity) => {
                let detail = format!("{errors} of {queries} queries met a damaged entry");
                self.alarms.raise_as(&FAILURE_RATE, severity, DATABASE, detail);
            }
            None => self.alarms.clear(&FAILURE_RATE, DATABASE),
        }
    }
}

fn severity(errors: u64, queries: u64) -> Option<Severity> {
    let share = errors as f64 / queries.max(1) as f64;
    match share {
        _ if errors == 0 => None,
        share if share >= CRITICAL => Some(Severity::Critical),
        share if share >= MAJOR => Some(Severity::Major),
        _ => Some(Severity::Minor),
    }
}

/// The alarm for requests beyond the queries of a second: of the last one, not averaged.
pub(super) fn congestion(alarms: &Alarms, last: &Sample, new: &Sample) {
    let gone = new.resolution.congested.saturating_sub(last.resolution.congested);
    let detail = (gone > 0).then(|| format!("{gone} requests in the last second"));
    alarms.set(&ROUTED_SERVICE, DATABASE, detail);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failed_queries_are_judged_by_their_share() {
        let of = |errors, queries| severity(errors, queries).map(|severity| severity.as_str());
        assert_eq!((of(0, 0), of(0, 100)), (None, None));
        assert_eq!(of(1, 1000), Some("minor"));
        assert_eq!(of(1, 100), Some("major"));
        assert_eq!(of(1, 10), Some("critical"));
    }
}
