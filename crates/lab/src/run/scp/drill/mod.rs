//! Drills of an SCP.

pub(super) mod kill;
pub(super) mod living;
pub(super) mod nrf;
pub(super) mod overload;

use std::net::SocketAddr;

use crate::load::OperationRecord;
use crate::measure::Metrics;
use crate::report::Check;
use crate::run::drill::{Judgement, Outcome};
use crate::run::rig::RigError;

/// What the SCP says of itself now.
fn read(admin: SocketAddr) -> Result<Metrics, RigError> {
    Metrics::read(admin).ok_or_else(|| RigError::Settings("the SCP does not tell its metrics".to_owned()))
}

/// What a drill says that did not come to its end.
fn missed(expected: &str) -> Judgement {
    Judgement {
        checks: vec![Check::new("the drill", expected, "it did not", false)],
        ..Judgement::default()
    }
}

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
