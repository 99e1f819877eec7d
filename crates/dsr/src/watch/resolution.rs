//! The measurement and the alarms of full address resolution, by the guide's numbers. 19900 is of the database processor itself.

use telemetry::{Alarms, Severity};

use super::alarms::{FAILURE_RATE, PROCESSOR_CONGESTED, PROCESSOR_STATE, ROUTED_SERVICE, SERVICE_STATE};
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
                let detail = format!("{errors} of {queries} queries met a damaged entry, or got no answer");
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

/// The alarms of connections to database processors.
pub(super) fn processors(alarms: &Alarms, last: &Sample, new: &Sample) {
    let (last, new) = (&last.resolution, &new.resolution);
    let (made, lost) = (
        new.connected.saturating_sub(last.connected),
        new.lost.saturating_sub(last.lost),
    );
    let detail = (made + lost > 0).then(|| format!("{made} made, {lost} lost in the last second"));
    alarms.set(&PROCESSOR_STATE, DATABASE, detail);
    let refused = new.refused.saturating_sub(last.refused);
    let detail = (refused > 0).then(|| format!("{refused} queries in the last second"));
    alarms.set(&PROCESSOR_CONGESTED, DATABASE, detail);
    let detail = (new.cut_off > 0).then(|| format!("{} message processors", new.cut_off));
    alarms.set(&SERVICE_STATE, DATABASE, detail);
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
