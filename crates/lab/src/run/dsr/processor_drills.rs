//! A database processor or the subscriber database server dies beside a router, or a block of numbers is damaged.

use std::cell::Cell;
use std::rc::Rc;
use std::time::{Duration, Instant};

use serde_json::Value;

use super::processors::{Beside, VICTIM, first_damaged};
use crate::run::admin::ask;
use crate::run::children::Simulator;
use crate::run::database::{Node, WRITERS};
use crate::run::drill::{Drill, Judgement, Outcome, Part, PartRecord};
use crate::run::figure;
use crate::run::rig::RigError;
use ::report::Check;
use callmodel::dsr::{Drill as Wanted, DsrModel};
use loadgen::{FailureKind, OperationRecord};
use workload::dsr::DAMAGED;

/// Time in which a processor that starts again has to have what it missed.
const CATCH_UP: Duration = Duration::from_secs(60);
/// Pause between two requests for its offset.
const PAUSE: Duration = Duration::from_millis(5);

/// The drill of the model, where it is about the database.
pub(super) fn make(beside: &Rc<Beside>, model: &DsrModel) -> Option<Box<dyn Drill>> {
    let beside = beside.clone();
    let outage = |victim| Outage {
        beside: beside.clone(),
        victim,
        seen: Rc::default(),
    };
    Some(match (&model.drill, &model.fabr) {
        (Some(Wanted::LoseProcessor(_)), _) => Box::new(outage(Victim::Processor)),
        (Some(Wanted::KillServer(_)), _) => Box::new(outage(Victim::Server)),
        (Some(Wanted::DamageBlock(_)), Some(resolution)) => Box::new(Damage {
            imsi: first_damaged(resolution),
            beside,
        }),
        _ => return None,
    })
}

/// What is killed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Victim {
    Processor,
    Server,
}

impl Victim {
    const fn name(self) -> &'static str {
        match self {
            Self::Processor => "a database processor",
            Self::Server => "the subscriber database server",
        }
    }
}

/// Writes that were acknowledged when the process was killed, and when it had started again; seconds of the start.
#[derive(Debug, Default)]
struct Seen {
    at_kill: Cell<u64>,
    at_start: Cell<u64>,
    /// From the end of the start until what was missed was in effect; none: it was not in time.
    catch_up: Cell<Option<Duration>>,
}

/// A process dies under load, and starts again.
struct Outage {
    beside: Rc<Beside>,
    victim: Victim,
    seen: Rc<Seen>,
}

impl Drill for Outage {
    fn parts(&self) -> Vec<Part> {
        let (beside, seen, victim) = (self.beside.clone(), self.seen.clone(), self.victim);
        let kill = move |_: &mut [Simulator]| -> Result<(), RigError> {
            match victim {
                Victim::Processor => beside.with_victim(Node::kill)?,
                Victim::Server => beside.database.borrow_mut().server.kill(),
            }
            seen.at_kill.set(beside.acknowledged());
            Ok(())
        };
        let (beside, seen) = (self.beside.clone(), self.seen.clone());
        let restart = move |_: &mut [Simulator]| -> Result<(), RigError> {
            seen.at_start.set(beside.acknowledged());
            match victim {
                Victim::Server => beside.database.borrow_mut().server.start(),
                Victim::Processor => {
                    let head = beside
                        .database
                        .borrow()
                        .server
                        .metric("signalbox_sds_offset", &[]);
                    beside.with_victim(Node::start)??;
                    let caught_up = beside.with_victim(|node| catch_up(node, head))?;
                    seen.catch_up.set(caught_up);
                    Ok(())
                }
            }
        };
        vec![
            Part::new("all live", 0.3, 1.0),
            Part::new(format!("{} is dead", victim.name()), 0.3, 1.0).beginning(kill),
            Part::new("it is back", 0.4, 1.0).beginning(restart),
        ]
    }

    fn judge(&mut self, outcome: &Outcome<'_>) -> Judgement {
        let mut checks: Vec<Check> = outcome.parts.iter().map(answered).collect();
        checks.push(match self.victim {
            Victim::Processor => self.judge_catch_up(),
            Victim::Server => self.judge_writes(),
        });
        let writes = self.beside.writes();
        let visibility = writes.map(|writes| writes.judge_visibility().got);
        let notes = vec![
            format!(
                "{} was killed (SIGKILL) and started again; {} writes were acknowledged until then, {} meanwhile, {} afterwards",
                self.victim.name(),
                self.seen.at_kill.get(),
                self.seen.at_start.get().saturating_sub(self.seen.at_kill.get()),
                writes
                    .map_or(0, |writes| writes.acknowledged)
                    .saturating_sub(self.seen.at_start.get()),
            ),
            format!(
                "from the acknowledgement of a write until a processor answers it: {}",
                visibility.unwrap_or_default()
            ),
        ];
        Judgement {
            checks,
            notes,
            spares_bounds: true,
            ..Judgement::default()
        }
    }
}

impl Outage {
    /// Whether the processor that was dead has what it missed, by the journal.
    fn judge_catch_up(&self) -> Check {
        let missed = self.seen.at_start.get() - self.seen.at_kill.get();
        let counted = self.beside.with_victim(|node| {
            let checkpoints = node.metric("signalbox_dp_polls_total", &[("outcome", "checkpoint")]);
            (node.metric("signalbox_dp_transactions_total", &[]), checkpoints)
        });
        let (transactions, checkpoints) = counted.unwrap_or((f64::NAN, f64::NAN));
        let caught_up = self.seen.catch_up.get();
        Check::new(
            "it catches up by the journal",
            format!("{missed} transactions that it missed at least, without a checkpoint"),
            format!(
                "{} transactions since its start, {} checkpoints; {}",
                figure(transactions),
                figure(checkpoints),
                caught_up.map_or_else(
                    || format!("it was behind after {} s", CATCH_UP.as_secs()),
                    |time| format!(
                        "it had what it missed after {} ms",
                        figure(time.as_secs_f64() * 1000.0)
                    )
                )
            ),
            missed > 0 && caught_up.is_some() && transactions >= missed as f64 && checkpoints < 0.5,
        )
    }

    /// Whether the server took writes before and afterwards, and none while it was dead.
    fn judge_writes(&self) -> Check {
        let (before, dead) = (self.seen.at_kill.get(), self.seen.at_start.get());
        let after = self.beside.writes().map_or(0, |writes| writes.acknowledged);
        Check::new(
            "writes go on",
            "some acknowledged before and afterwards, and of those in flight while the server is dead",
            format!(
                "{before} before, {} while it is dead, {} afterwards",
                dead - before,
                after - dead
            ),
            before > 0 && dead - before <= WRITERS && after > dead,
        )
    }
}

/// Waits until a processor has this offset of the journal; how long that took.
fn catch_up(node: &mut Node, head: f64) -> Option<Duration> {
    let begun = Instant::now();
    while begun.elapsed() < CATCH_UP {
        if node.metric("signalbox_dp_journal_offset", &[]) >= head {
            return Some(begun.elapsed());
        }
        std::thread::sleep(PAUSE);
    }
    None
}

/// Whether each request of a part was answered rightly, but for those that the machine was too slow for.
fn answered(part: &PartRecord) -> Check {
    let total = part.record.total();
    let wrong = total.failures() - total.failures_of(&[FailureKind::Timeout]);
    Check::new(
        format!("{}: requests are answered", part.name),
        "each by the right HSS",
        format!(
            "{} of {} rightly, {wrong} otherwise, {} late",
            total.succeeded,
            total.offered,
            total.failed[FailureKind::Timeout as usize]
        ),
        total.succeeded > 0 && wrong == 0,
    )
}

/// A block of the numbers of a processor is damaged.
struct Damage {
    beside: Rc<Beside>,
    /// The first one of the block.
    imsi: String,
}

impl Drill for Damage {
    fn judge(&mut self, outcome: &Outcome<'_>) -> Judgement {
        let mut all = OperationRecord::default();
        for part in outcome.parts {
            all.merge(&part.record.total());
        }
        let own = outcome.of_operation(outcome.parts, DAMAGED);
        Judgement {
            checks: vec![self.judge_name(), judge_damaged(&all, &own)],
            notes: vec![format!(
                "the block of IMSI {} was damaged at dp-{VICTIM} alone; the other processor answers its numbers",
                self.imsi
            )],
            spares_bounds: true,
            ..Judgement::default()
        }
    }
}

impl Damage {
    /// Whether the processor says which block is damaged, or has taken a checkpoint in its place since queries met it.
    fn judge_name(&self) -> Check {
        let page = format!("/dp/lookup/imsi:{}", self.imsi);
        let asked = self.beside.with_victim(|node| {
            let met = node.metric("signalbox_dp_queries_total", &[("outcome", "damaged")]);
            (ask(node.admin, "GET", &page), met)
        });
        let (shown, met) = asked.unwrap_or((None, 0.0));
        let shown = shown.map_or_else(String::new, |(_, body)| body);
        let error = serde_json::from_str::<Value>(&shown).unwrap_or_default()["error"].take();
        let (got, pass) = match error.as_str() {
            Some(error) => (
                error.to_owned(),
                error.contains("block at byte") && error.contains("damaged"),
            ),
            None => (format!("mended after {met} queries"), met > 0.0),
        };
        Check::new(
            "the damage is named or mended",
            "the block and its place, by `signalbox dp lookup`, until a checkpoint is in its place",
            got,
            pass,
        )
    }
}

/// Whether requests about numbers of the damaged block are answered by the other processor, as all others are.
fn judge_damaged(all: &OperationRecord, own: &OperationRecord) -> Check {
    let late = [FailureKind::Timeout];
    let of_block = own.failures() - own.failures_of(&late);
    let others = all.failures() - all.failures_of(&late) - of_block;
    Check::new(
        "its numbers are answered",
        "requests about the damaged block are answered by the other processor, and none fails",
        format!(
            "{of_block} of {} about the block failed, {others} of {} others failed",
            own.offered,
            all.offered - own.offered
        ),
        own.succeeded > 0 && of_block == 0 && others == 0,
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use loadgen::Record;

    fn record(succeeded: u64, failed: &[(FailureKind, u64)]) -> OperationRecord {
        let mut record = OperationRecord {
            offered: succeeded,
            succeeded,
            ..OperationRecord::default()
        };
        for (kind, count) in failed {
            record.failed[*kind as usize] += count;
            record.offered += count;
        }
        record
    }

    #[test]
    fn a_refusal_is_seen() {
        let of_block = record(78, &[]);
        let mut all = record(1000, &[(FailureKind::Timeout, 2)]);
        all.merge(&of_block);
        assert!(judge_damaged(&all, &of_block).pass);
        // None about the block, one of it refused, and one of another.
        assert!(!judge_damaged(&record(1000, &[]), &record(0, &[])).pass);
        let refused = record(77, &[(FailureKind::Status, 1)]);
        let mut with = record(1000, &[]);
        with.merge(&refused);
        assert!(!judge_damaged(&with, &refused).pass);
        all.merge(&record(0, &[(FailureKind::Status, 1)]));
        assert!(!judge_damaged(&all, &of_block).pass);
    }

    #[test]
    fn a_part_without_right_answers_fails() {
        let part = |one| {
            let mut record = Record::new(1);
            record.operations[0] = one;
            PartRecord {
                name: "it is back".to_owned(),
                factor: 1.0,
                length: Duration::from_secs(1),
                record,
            }
        };
        assert!(answered(&part(record(9, &[(FailureKind::Timeout, 1)]))).pass);
        assert!(!answered(&part(record(9, &[(FailureKind::Status, 1)]))).pass);
        assert!(!answered(&part(record(0, &[]))).pass);
    }
}
