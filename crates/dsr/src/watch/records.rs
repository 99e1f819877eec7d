//! The measurements of session and binding repositories, by the guide's numbers: averages over `indicators.interval`.

use dsr_app::Application;
use dsr_ocdra::Ocdra;
use dsr_pdra::Pdra;

use super::indicators::Indicate;
use crate::rows::{ApplicationRow, IndicatorRow};

/// A measurement of the guide.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Measurement(u32, &'static str);

/// All sessions of Policy DRAs.
const POLICY_SESSIONS: Measurement = Measurement(11_372, "SbrPolicySessionRecsAvg");
/// Those of them that bind their subscriber.
const POLICY_BINDINGS: Measurement = Measurement(11_374, "SbrPolicyBindingRecsAvg");
/// Sessions of online charging DRAs.
const CHARGING_SESSIONS: Measurement = Measurement(11_441, "SbrOcSessionRecsAvg");

/// Records of an application at one time.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Records {
    measurement: Measurement,
    application: String,
    count: usize,
}

/// The records of these tables.
pub(super) fn of(rows: &[ApplicationRow]) -> Vec<Records> {
    let mut all = Vec::new();
    for row in rows.iter().filter(|row| row.table == "sessions") {
        let mut add = |measurement, count| {
            all.push(Records {
                measurement,
                application: row.name.clone(),
                count,
            });
        };
        match row.kind {
            Pdra::KIND => {
                let is_of_afs =
                    |other: &&ApplicationRow| other.name == row.name && other.table == "AF sessions";
                let of_afs = rows.iter().find(is_of_afs).map_or(0, |other| other.entries);
                add(POLICY_SESSIONS, row.entries);
                add(POLICY_BINDINGS, row.entries.saturating_sub(of_afs));
            }
            Ocdra::KIND => add(CHARGING_SESSIONS, row.entries),
            _ => {}
        }
    }
    all
}

impl Indicate<'_> {
    /// Averages of the records of each application.
    pub(super) fn records(&mut self) {
        let (new, all) = (self.between.new, self.samples);
        for one in &new.records {
            let is_it = |other: &&Records| {
                other.measurement == one.measurement && other.application == one.application
            };
            let counts = all.iter().filter_map(|sample| sample.records.iter().find(is_it));
            let (mut sum, mut samples) = (0.0, 0.0);
            for records in counts {
                sum += records.count as f64;
                samples += 1.0;
            }
            self.rows.push(IndicatorRow {
                id: one.measurement.0,
                name: one.measurement.1,
                instance: one.application.clone(),
                value: if samples > 0.0 {
                    sum / samples
                } else {
                    one.count as f64
                },
                unit: "records",
                profile: None,
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sessions_of_afs_are_no_bindings_and_charging_counts_apart() {
        let row = |kind, table, entries| ApplicationRow {
            name: "a".to_owned(),
            kind,
            table,
            entries,
            bytes: 0,
        };
        let rows = [
            row(Pdra::KIND, "sessions", 7),
            row(Pdra::KIND, "AF sessions", 3),
            row(Ocdra::KIND, "sessions", 5),
            row("fabr", "sessions", 9),
        ];
        let counts: Vec<_> = of(&rows)
            .iter()
            .map(|one| (one.measurement.0, one.count))
            .collect();
        assert_eq!(counts, [(11_372, 7), (11_374, 4), (11_441, 5)]);
    }
}
