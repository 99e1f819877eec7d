//! Drills of an SCP.

pub(super) mod kill;
pub(super) mod living;
pub(super) mod nrf;
pub(super) mod overload;

use crate::load::OperationRecord;
use crate::run::companion::Outcome;

/// The operations whose names fit, added up.
fn total(outcome: &Outcome<'_>, fits: impl Fn(&str) -> bool) -> OperationRecord {
    sum(outcome.names, &outcome.window.record.operations, fits)
}

fn sum(names: &[String], records: &[OperationRecord], fits: impl Fn(&str) -> bool) -> OperationRecord {
    let mut total = OperationRecord::default();
    let fitting = names.iter().zip(records).filter(|(name, _)| fits(name));
    fitting.for_each(|(_, record)| total.merge(record));
    total
}
