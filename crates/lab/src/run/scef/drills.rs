//! What happens to an SCEF under load, and what must come of it.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use super::{Launch, await_settled, simulator};
use crate::call::Listener;
use crate::run::admin;
use crate::run::children::{Guarded, Simulator};
use crate::run::drill::{Drill, Judgement, Outcome, Part, PartRecord};
use crate::run::dsr::await_connections;
use crate::run::figure;
use crate::run::rig::{Probe, RigError};
use ::report::Check;
use callmodel::scef::{Drill as Wanted, ScefModel};
use loadgen::{FailureKind, OperationRecord};
use settings::Percent;
use simulators::{Misbehaviour, RoleName};
use workload::scef::{Books, Kind, OPERATIONS, Tally};

/// How long what is owed may take to come once the load is over. A slow SCS/AS is tried at growing intervals.
const SETTLING: Duration = Duration::from_secs(45);
/// The longest time that a notification of one SCS/AS may take while another one is slow.
const UNAFFECTED: Duration = Duration::from_secs(1);
/// Seconds of requests that may be in flight when something dies.
const IN_FLIGHT: f64 = 1.0;
/// Failures that a kill explains: the connection was lost, there was none, or a peer was not connected yet (503).
const EXPLAINED: [FailureKind; 5] = [
    FailureKind::Connection,
    FailureKind::Reset,
    FailureKind::Timeout,
    FailureKind::Overflow,
    FailureKind::Refused,
];
/// Operations that need no HSS.
const WITHOUT_HSS: [&str; 3] = ["mtData", "moData", "report"];

/// The books of a run, and where SCS/AS take notifications: the first one, and the others.
pub(super) struct Settled {
    pub(super) books: Arc<Books>,
    pub(super) listeners: [Listener; 2],
}

/// The drill of a model, the SCEF where the drill has not taken it, and the checks of a run without one.
pub(super) fn make(
    model: &ScefModel,
    launch: Launch,
    function: Guarded,
    settled: Settled,
) -> (Option<Box<dyn Drill>>, Option<Guarded>, Vec<Probe>) {
    match model.drill {
        None => {
            let probes = probes(settled);
            (None, Some(function), probes)
        }
        Some(Wanted::Kill) => {
            let drill = Killed::new(launch, function, settled);
            (Some(Box::new(drill)), None, Vec::new())
        }
        Some(Wanted::LoseHss) => {
            let drill = HssLost {
                model: model.clone(),
                launch,
                settled,
                readiness: Rc::default(),
            };
            (Some(Box::new(drill)), Some(function), Vec::new())
        }
        Some(Wanted::SlowServer) => (Some(Box::new(SlowServer(settled))), Some(function), Vec::new()),
    }
}

/// A check of each kind.
fn probes(settled: Settled) -> Vec<Probe> {
    let settled = Rc::new(settled);
    let each = Kind::ALL.into_iter().map(|kind| -> Probe {
        let settled = settled.clone();
        Box::new(move || {
            await_settled(&settled.books, SETTLING);
            judge(kind, settled.books.tally(kind), false)
        })
    });
    each.collect()
}

/// Checks of each kind, when everything had its time. After a crash a notification may come twice: its SCS/AS has accepted it, and the
/// SCEF has not written that yet.
fn judge_all(books: &Books, crashed: bool) -> Vec<Check> {
    await_settled(books, SETTLING);
    let each = Kind::ALL.into_iter();
    each.map(|kind| judge(kind, books.tally(kind), crashed && kind != Kind::Data))
        .collect()
}

fn judge(kind: Kind, tally: Tally, may_repeat: bool) -> Check {
    Check::new(
        kind.name(),
        match may_repeat {
            true => "each that was accepted comes",
            false => "each that was accepted comes, and none comes twice",
        },
        format!(
            "{} accepted, {} missing, {} twice; {} came whose request had no answer",
            tally.owed, tally.missing, tally.twice, tally.unasked
        ),
        tally.owed > 0 && tally.missing == 0 && (may_repeat || tally.twice == 0),
    )
}

/// Requests of a part: every one right, but those of some seconds.
fn all_right(part: Option<&PartRecord>, name: &str, seconds: f64) -> Check {
    let record = part.map(|part| part.record.total()).unwrap_or_default();
    let length = part.map_or(1.0, |part| part.length.as_secs_f64());
    let lost = record.offered as f64 / length.max(1e-3) * seconds;
    Check::new(
        format!("requests {name}"),
        match seconds > 0.0 {
            true => "none fails, but those in flight at the moment",
            false => "none fails",
        },
        format!("{} of {} failed", record.failures(), record.offered),
        record.offered > 0 && record.failures() as f64 <= lost,
    )
}

/// The SCEF is killed and started again.
struct Killed {
    launch: Launch,
    settled: Settled,
    state: Rc<RefCell<Restart>>,
}

#[derive(Default)]
struct Restart {
    /// None while it is dead.
    process: Option<Guarded>,
    /// From the restart until it listens.
    ready: Option<Duration>,
}

impl Killed {
    fn new(launch: Launch, process: Guarded, settled: Settled) -> Self {
        let state = Restart {
            process: Some(process),
            ready: None,
        };
        Self {
            launch,
            settled,
            state: Rc::new(RefCell::new(state)),
        }
    }
}

impl Drill for Killed {
    fn parts(&self) -> Vec<Part> {
        let state = self.state.clone();
        let kill = move |_: &mut [Simulator]| {
            // Dropping it kills it (SIGKILL).
            state.borrow_mut().process = None;
            Ok(())
        };
        vec![
            Part::new("before the kill", 0.3, 1.0),
            Part::new("the kill and the restart", 0.4, 1.0).beginning(kill),
            Part::new("after the restart", 0.3, 1.0),
        ]
    }

    fn act(&mut self, _: Duration, _: Duration, _: &mut [Simulator]) -> Result<(), RigError> {
        let mut state = self.state.borrow_mut();
        if state.process.is_none() {
            let (process, ready) = self.launch.start()?;
            (state.process, state.ready) = (Some(process), Some(ready));
        }
        Ok(())
    }

    fn judge(&mut self, outcome: &Outcome<'_>) -> Judgement {
        let mut checks = judge_all(&self.settled.books, true);
        let total = outcome.window.record.total();
        let explained = total.failures_of(&EXPLAINED);
        let others = total.failures() - explained;
        checks.push(Check::new(
            "requests that failed",
            "for their connection, or because a peer was not connected yet",
            format!("{explained} of {} so, {others} otherwise", total.offered),
            others == 0,
        ));
        let ready = self.state.borrow().ready;
        checks.push(Check::new(
            "the SCEF died and came back",
            "killed and restarted",
            match ready {
                Some(ready) => format!("ready {} s after its start", figure(ready.as_secs_f64())),
                None => "it did not".to_owned(),
            },
            ready.is_some(),
        ));
        checks.push(all_right(outcome.parts.first(), "before the kill", IN_FLIGHT));
        checks.push(all_right(outcome.parts.get(2), "after the restart", 0.0));
        Judgement {
            checks,
            notes: vec![
                "the SCEF was killed (SIGKILL) under load and started again at once; its processor time is not measured".to_owned(),
            ],
            spares_bounds: true,
            ..Judgement::default()
        }
    }
}

/// The HSS is killed and started again.
struct HssLost {
    model: ScefModel,
    launch: Launch,
    settled: Settled,
    /// What `/readyz` said at the end of the time without it.
    readiness: Rc<RefCell<Option<String>>>,
}

impl Drill for HssLost {
    fn parts(&self) -> Vec<Part> {
        let die = |simulators: &mut [Simulator]| {
            if let Some(hss) = simulators.first_mut() {
                hss.kill()?;
            }
            Ok(())
        };
        let (model, launch, readiness) = (self.model.clone(), self.launch.clone(), self.readiness.clone());
        let revive = move |simulators: &mut [Simulator]| {
            let page = admin::ask(launch.addresses.admin, "GET", "/readyz");
            *readiness.borrow_mut() = page.map(|(_, text)| text);
            if let Some(hss) = simulators.first_mut() {
                let address = hss.addresses.first().copied();
                let times = (model.latency, model.report_after);
                *hss = simulator(&launch.place, RoleName::ExposureHss, times, address)?;
                await_connections(hss, 1)?;
            }
            Ok(())
        };
        vec![
            Part::new("with the HSS", 0.25, 1.0),
            Part::new("without the HSS", 0.45, 1.0).beginning(die),
            Part::new("with the HSS again", 0.3, 1.0).beginning(revive),
        ]
    }

    fn judge(&mut self, outcome: &Outcome<'_>) -> Judgement {
        let mut checks = judge_all(&self.settled.books, false);
        let mut unaffected = OperationRecord::default();
        for name in WITHOUT_HSS {
            unaffected.merge(&outcome.of_operation(outcome.parts, name));
        }
        checks.push(Check::new(
            "data and reports without the HSS",
            "none fails, all the time",
            format!("{} of {} failed", unaffected.failures(), unaffected.offered),
            unaffected.offered > 0 && unaffected.failures() == 0,
        ));
        let without = outcome.parts.get(1..2).unwrap_or_default();
        let mut refused = OperationRecord::default();
        for name in OPERATIONS.into_iter().filter(|name| !WITHOUT_HSS.contains(name)) {
            refused.merge(&outcome.of_operation(without, name));
        }
        let answered = refused.failures_of(&[FailureKind::Refused]);
        let most = refused.failures() - answered;
        checks.push(Check::new(
            "what needs the HSS",
            "refused with 503 while it is dead, but for requests in flight",
            format!(
                "{answered} of {} refused, {most} failed otherwise",
                refused.offered
            ),
            answered > 0 && most as f64 <= refused.offered as f64 * 0.5,
        ));
        let readiness = self.readiness.borrow();
        let named = readiness.as_ref().is_some_and(|text| text.contains("HSS"));
        checks.push(Check::new(
            "readiness",
            "/readyz names the HSS while it is dead",
            readiness
                .as_ref()
                .map_or("no answer", |_| if named { "it does" } else { "it does not" }),
            named,
        ));
        checks.push(all_right(outcome.parts.first(), "with the HSS", IN_FLIGHT));
        checks.push(all_right(outcome.parts.get(2), "with the HSS again", 0.0));
        Judgement {
            checks,
            spares_bounds: true,
            ..Judgement::default()
        }
    }
}

/// The first SCS/AS does not answer notifications, then answers 503, then answers again.
struct SlowServer(Settled);

impl Drill for SlowServer {
    fn parts(&self) -> Vec<Part> {
        let [first, _] = &self.0.listeners;
        let part = |name: &str, share, misbehave: Misbehaviour| {
            let handle = first.handle();
            Part::new(name, share, 1.0).beginning(move |_| {
                handle.misbehave(misbehave.clone());
                Ok(())
            })
        };
        let all = Percent::new(100.0);
        let silent = Misbehaviour {
            silence: all,
            ..Misbehaviour::default()
        };
        let refusing = Misbehaviour {
            error: all,
            error_status: 503,
            ..Misbehaviour::default()
        };
        vec![
            part("all SCS/AS answer", 0.2, Misbehaviour::default()),
            part("one SCS/AS is silent", 0.3, silent),
            part("one SCS/AS answers 503", 0.3, refusing),
            part("all SCS/AS answer again", 0.2, Misbehaviour::default()),
        ]
    }

    fn judge(&mut self, outcome: &Outcome<'_>) -> Judgement {
        let mut checks = judge_all(&self.0.books, true);
        let total = outcome.window.record.total();
        checks.push(Check::new(
            "requests",
            "none fails: accepting does not wait for notifications",
            format!("{} of {} failed", total.failures(), total.offered),
            total.offered > 0 && total.failures() == 0,
        ));
        let kinds = [Kind::Status, Kind::Uplink, Kind::Report, Kind::Trigger];
        let slowest = kinds
            .into_iter()
            .map(|kind| self.0.books.tally(kind).slowest)
            .max();
        let slowest = slowest.unwrap_or_default();
        checks.push(
            Check::new(
                "notifications of the other SCS/AS",
                format!("within {} ms of the acceptance", UNAFFECTED.as_millis()),
                format!("{} ms at most", figure(slowest.as_secs_f64() * 1000.0)),
                slowest <= UNAFFECTED,
            )
            .of_time(),
        );
        Judgement {
            checks,
            spares_bounds: true,
            ..Judgement::default()
        }
    }
}
