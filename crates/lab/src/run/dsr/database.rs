//! Nodes of the database of a Policy DRA die under load: how long sessions wait for the next one, and which are lost.

use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use super::pdra::{LATE, astray, unknown, wrong};
use crate::run::bsf::Servers;
use crate::run::drill::{Drill, Judgement, Outcome, Part, PartRecord};
use crate::run::figure;
use crate::run::rig::RigError;
use ::report::Check;
use callmodel::dsr::{Drill as Wanted, DsrModel, Outage};
use loadgen::OperationRecord;
use workload::pcrf::Counts;

/// The cluster that the drill of a model needs.
pub(super) fn servers(model: &DsrModel) -> Result<Option<Servers>, RigError> {
    let is_wanted = matches!(&model.drill, Some(Wanted::KillDatabase(_)));
    is_wanted.then(Servers::cluster).transpose()
}

/// The drill.
pub(super) struct NodeDies {
    outage: Outage,
    /// Kills the node that the router uses.
    kill: Option<Command>,
    counts: Arc<Counts>,
}

impl NodeDies {
    pub(super) fn new(outage: Outage, servers: &Servers, counts: &Arc<Counts>) -> Self {
        Self {
            outage,
            kill: Some(servers.killing(1)),
            counts: counts.clone(),
        }
    }
}

impl Drill for NodeDies {
    fn parts(&self) -> Vec<Part> {
        let after = self.outage.after.fraction().clamp(0.05, 0.9);
        ["all nodes live", "a node dies", "afterwards"]
            .into_iter()
            .zip([after, (1.0 - after) / 2.0, (1.0 - after) / 2.0])
            .map(|(name, share)| Part::new(name, share, 1.0))
            .collect()
    }

    fn act(
        &mut self,
        at: Duration,
        length: Duration,
        _: &mut [crate::run::children::Simulator],
    ) -> Result<(), RigError> {
        let after = self.outage.after.fraction().clamp(0.05, 0.9);
        if at.as_secs_f64() < length.as_secs_f64() * after {
            return Ok(());
        }
        let Some(mut kill) = self.kill.take() else {
            return Ok(());
        };
        let killed = kill
            .output()
            .map_err(RigError::io("killing a node of the database"))?;
        match killed.status.success() {
            true => Ok(()),
            false => Err(RigError::Settings(format!(
                "the node of the database was not killed: {}",
                String::from_utf8_lossy(&killed.stderr).trim()
            ))),
        }
    }

    fn judge(&mut self, outcome: &Outcome<'_>) -> Judgement {
        let mut checks = judge_parts(outcome.parts, self.outage.outage.duration());
        checks.push(unknown(&self.counts));
        checks.push(astray(outcome));
        Judgement {
            checks,
            notes: vec![
                "the node of the database that the router uses was killed (SIGKILL) under load; the router goes on with the next one"
                    .to_owned(),
            ],
            spares_bounds: true,
            ..Judgement::default()
        }
    }
}

/// A request counts for the part in which it was sent.
fn judge_parts(parts: &[PartRecord], longest: Duration) -> Vec<Check> {
    let record = |at: usize| parts.get(at).map(|part| part.record.total()).unwrap_or_default();
    let all_right = |name: &str, record: OperationRecord| {
        let failures = wrong(&record, &[]);
        Check::new(
            name,
            "no request refused, late or answered wrongly",
            format!("{failures} of {}", record.offered),
            record.succeeded > 0 && failures == 0,
        )
        .of_time_if(record.succeeded > 0 && wrong(&record, &LATE) == 0)
    };
    let during = record(1);
    let stall = Duration::from_micros(during.latency.max());
    vec![
        all_right("requests before", record(0)),
        Check::new(
            "stall",
            format!("the slowest answer within {} ms", longest.as_millis()),
            format!(
                "{} ms; {} of {} requests refused or late meanwhile",
                figure(stall.as_secs_f64() * 1000.0),
                during.failures(),
                during.offered
            ),
            during.succeeded > 0 && stall <= longest,
        )
        .of_time(),
        all_right("requests after", record(2)),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use loadgen::{FailureKind, Record};

    fn part(refused: u64, slowest: Duration) -> PartRecord {
        let mut record = Record::new(1);
        let one = &mut record.operations[0];
        (one.offered, one.succeeded) = (100, 100 - refused);
        one.failed[FailureKind::Status as usize] = refused;
        one.latency.record(slowest.as_micros() as u64).unwrap();
        PartRecord {
            name: String::new(),
            factor: 1.0,
            length: Duration::from_secs(10),
            record,
        }
    }

    #[test]
    fn a_stall_is_judged_and_failures_may_be_during_it_alone() {
        let passes = |parts: [(u64, u64); 3]| {
            let parts = parts.map(|(refused, millis)| part(refused, Duration::from_millis(millis)));
            let checks = judge_parts(&parts, Duration::from_secs(3));
            checks.iter().map(|check| check.pass).collect::<Vec<_>>()
        };
        assert_eq!(passes([(0, 5), (7, 1_500), (0, 5)]), [true, true, true]);
        assert_eq!(passes([(1, 5), (0, 3_500), (1, 5)]), [false, false, false]);
    }

    #[test]
    fn requests_that_are_late_alone_say_how_busy_the_machine_is() {
        let of_time = |kind: FailureKind| {
            let mut before = part(0, Duration::from_millis(5));
            before.record.operations[0].succeeded -= 1;
            before.record.operations[0].failed[kind as usize] += 1;
            let checks = judge_parts(&[before], Duration::from_secs(3));
            (checks[0].pass, checks[0].of_time)
        };
        assert_eq!(of_time(FailureKind::Timeout), (false, true));
        assert_eq!(of_time(FailureKind::Status), (false, false));
    }
}
