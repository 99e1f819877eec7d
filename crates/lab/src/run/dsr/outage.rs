//! A router or a front end dies under load: how much is lost with it, and who serves its clients then. Or some of its servers do.

use std::cell::RefCell;
use std::net::SocketAddr;
use std::rc::Rc;
use std::time::Duration;

use crate::run::children::Guarded;
use crate::run::drill::{Drill, Judgement, Outcome, Part, PartRecord};
use crate::run::figure;
use ::report::Check;
use callmodel::dsr::{KillPeers, Outage};
use loadgen::{FailureKind, OperationRecord};
use report::measure::Metrics;

/// What dies.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Dead {
    /// A router, a sibling or mate of others.
    Router,
    /// The active front end of a pair.
    FrontEnd,
}

impl Dead {
    const fn name(self) -> &'static str {
        match self {
            Self::Router => "router",
            Self::FrontEnd => "front end",
        }
    }
}

/// A router that lives to the end.
#[derive(Clone, Copy, Debug)]
pub(super) struct Survivor {
    pub(super) admin: SocketAddr,
    /// Peers that it has beside MMEs.
    pub(super) peers: u32,
    /// Configured peers that are dead in the end.
    pub(super) dead: u32,
}

/// The drill.
pub(super) struct Killing {
    outage: Outage,
    dead: Dead,
    victim: Rc<RefCell<Option<Guarded>>>,
    survivors: Vec<Survivor>,
    /// Admin endpoint of the front end that takes over.
    standby: Option<SocketAddr>,
    mmes: u32,
}

impl Killing {
    pub(super) fn new(
        outage: Outage,
        dead: Dead,
        victim: Guarded,
        survivors: Vec<Survivor>,
        standby: Option<SocketAddr>,
        mmes: u32,
    ) -> Self {
        Self {
            outage,
            dead,
            victim: Rc::new(RefCell::new(Some(victim))),
            survivors,
            standby,
            mmes,
        }
    }
}

impl Drill for Killing {
    fn parts(&self) -> Vec<Part> {
        let after = self.outage.after.fraction().clamp(0.05, 0.9);
        let victim = self.victim.clone();
        vec![
            Part::new("all live", after, 1.0),
            // A `Guarded` is killed (SIGKILL) when it is dropped.
            Part::new(format!("a {} dies", self.dead.name()), (1.0 - after) / 2.0, 1.0).beginning(
                move |_| {
                    drop(victim.borrow_mut().take());
                    Ok(())
                },
            ),
            Part::new("afterwards", (1.0 - after) / 2.0, 1.0),
        ]
    }

    fn judge(&mut self, outcome: &Outcome<'_>) -> Judgement {
        let mut checks = judge_parts(outcome.parts, self.outage.outage.duration());
        checks.push(self.judge_clients());
        match (self.dead, self.standby) {
            (Dead::FrontEnd, Some(standby)) => checks.push(judge_standby(standby)),
            _ => checks.push(self.judge_alarms()),
        }
        Judgement {
            spares_bounds: true,
            ..checks.into()
        }
    }
}

impl Killing {
    /// Whether every client is connected to a router that lives.
    fn judge_clients(&self) -> Check {
        let read = |survivor: &Survivor| {
            let metrics = Metrics::read(survivor.admin)?;
            let of = |state| metrics.sum("signalbox_dsr_peers", &[("state", state)]);
            Some((of("available") - f64::from(survivor.peers), of("unavailable")))
        };
        let counts: Option<Vec<(f64, f64)>> = self.survivors.iter().map(read).collect();
        let connected = counts
            .as_ref()
            .map(|counts| counts.iter().map(|(mmes, _)| mmes).sum::<f64>());
        let dead = counts
            .as_ref()
            .map(|counts| counts.iter().map(|(_, dead)| dead).sum::<f64>());
        let expected_dead: u32 = self.survivors.iter().map(|survivor| survivor.dead).sum();
        Check::new(
            "clients are served elsewhere",
            format!(
                "{} MMEs at routers that live, {expected_dead} dead siblings",
                self.mmes
            ),
            match (connected, dead) {
                (Some(mmes), Some(dead)) => format!("{} MMEs, {} dead siblings", figure(mmes), figure(dead)),
                _ => "a router does not answer".to_owned(),
            },
            connected.is_some_and(|mmes| (mmes - f64::from(self.mmes)).abs() < 0.5)
                && dead.is_some_and(|dead| (dead - f64::from(expected_dead)).abs() < 0.5),
        )
    }

    /// Whether every router that lives has raised alarm 22051 (Peer Unavailable, critical) for the dead one.
    fn judge_alarms(&self) -> Check {
        let raised = self.survivors.iter().filter(|survivor| {
            let metrics = Metrics::read(survivor.admin);
            metrics.is_some_and(|metrics| {
                metrics.sum("signalbox_alarm_active", &[("severity", "critical")]) >= f64::from(survivor.dead)
            })
        });
        let raised = raised.count();
        Check::new(
            "alarms of the others",
            format!("22051 at {} routers", self.survivors.len()),
            format!("at {raised}"),
            raised == self.survivors.len(),
        )
    }
}

/// The parts of a drill in which servers of this kind die, those of the second process.
pub(super) fn dying(kill: &KillPeers, kind: &str) -> Vec<Part> {
    let after = kill.after.fraction().clamp(0.05, 0.95);
    let dead = format!("{} {kind} dead", kill.hss);
    vec![
        Part::new(format!("all {kind} live"), after, 1.0),
        Part::new(dead, 1.0 - after, 1.0).beginning(|simulators| {
            for victim in simulators.iter_mut().skip(1) {
                victim.kill()?;
            }
            Ok(())
        }),
    ]
}

/// A request counts for the part in which it was sent: those in flight at the moment of death are of the first.
fn judge_parts(parts: &[PartRecord], longest: Duration) -> Vec<Check> {
    let mut held = OperationRecord::default();
    for part in parts.iter().take(2) {
        held.merge(&part.record.total());
    }
    let seconds: f64 = parts.iter().take(2).map(|part| part.length.as_secs_f64()).sum();
    let outage = held.failures() as f64 / (held.offered as f64 / seconds.max(1e-3)).max(1e-9);
    let lost = held.failed[FailureKind::Connection as usize];
    let afterwards = parts.get(2).map(|part| part.record.total().failures());
    vec![
        Check::new(
            "all answered afterwards",
            "no request fails in the last part",
            afterwards.map_or_else(
                || "there is none".to_owned(),
                |failures| format!("{failures} failed"),
            ),
            afterwards == Some(0),
        ),
        Check::new(
            "only what it held is lost",
            "requests on its connections, and none refused, late or answered wrongly",
            format!(
                "{lost} lost with a connection, {} otherwise",
                held.failures() - lost
            ),
            lost == held.failures(),
        ),
        Check::new(
            "outage",
            format!("as many requests as come in {} ms at most", longest.as_millis()),
            format!("{} requests, {} ms", held.failures(), figure(outage * 1000.0)),
            outage <= longest.as_secs_f64(),
        )
        .of_time(),
    ]
}

fn judge_standby(standby: SocketAddr) -> Check {
    let read = Metrics::read(standby).map(|metrics| {
        ["signalbox_ipfe_active", "signalbox_ipfe_takeovers_total"].map(|name| metrics.sum(name, &[]))
    });
    Check::new(
        "the standby took over",
        "it is active, once",
        read.map_or_else(
            || "it does not answer".to_owned(),
            |[active, takeovers]| format!("active: {}, {} takeovers", figure(active), figure(takeovers)),
        ),
        read.is_some_and(|[active, takeovers]| active > 0.5 && (takeovers - 1.0).abs() < 0.5),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use loadgen::Record;

    fn part(offered: u64, failed: &[(FailureKind, u64)]) -> PartRecord {
        let mut record = Record::new(1);
        record.operations[0].offered = offered;
        let mut all = 0;
        for (kind, count) in failed {
            record.operations[0].failed[*kind as usize] = *count;
            all += count;
        }
        record.operations[0].succeeded = offered - all;
        PartRecord {
            name: String::new(),
            factor: 1.0,
            length: Duration::from_secs(10),
            record,
        }
    }

    fn passes(parts: &[PartRecord; 3]) -> Vec<bool> {
        let checks = judge_parts(parts, Duration::from_millis(500));
        checks.iter().map(|check| check.pass).collect()
    }

    #[test]
    fn an_outage_is_measured_in_time_of_the_whole_load() {
        let fine = || part(10_000, &[]);
        let lost = |count| part(10_000, &[(FailureKind::Connection, count)]);
        assert_eq!(passes(&[lost(9), lost(490), fine()]), [true, true, true]);
        assert_eq!(passes(&[lost(9), lost(492), fine()]), [true, true, false]);
        assert_eq!(passes(&[fine(), lost(1), lost(1)]), [false, true, true]);
        let refused = part(10_000, &[(FailureKind::Status, 1)]);
        assert_eq!(passes(&[fine(), refused, fine()]), [true, false, true]);
    }
}
