//! What happens to an STP and its nodes while the load runs, and the checks of the outcome.

use std::cell::RefCell;
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::Launch;
use super::mate::Mate;
use super::pair::Pair;
use crate::run::admin::ask;
use crate::run::checks::is_of_time;
use crate::run::children::{Guarded, Simulator};
use crate::run::drill::{Act, Drill, Judgement, Outcome, Part};
use crate::run::figure;
use crate::run::files;
use crate::run::rig::{Rig, RigError};
use ::report::Check;
use callmodel::stp::{Drill as Wanted, StpModel};
use loadgen::FailureKind;
use loadgen::m3ua::{Absence, Counts};
use report::measure::Metrics;
use workload::stp::Network;

/// Time in which the STP has to show what a part of a drill waits for.
pub(super) const PATIENCE: Duration = Duration::from_secs(120);
/// Failures that a lost association explains: there was none, no answer came, or the message returned.
const EXPLAINED: [FailureKind; 4] = [
    FailureKind::Connection,
    FailureKind::Timeout,
    FailureKind::Overflow,
    FailureKind::Status,
];

/// The node that the drill of a model takes away.
pub(super) fn absence(model: &StpModel, network: &Network) -> Absence {
    let lost = network
        .servers()
        .next()
        .filter(|_| matches!(model.drill, Some(Wanted::LoseHlr | Wanted::Oscillate)));
    lost.map_or_else(Absence::default, |hlr| Absence::of(hlr.point_code().0))
}

/// Adds the drill of a model, and the function.
pub(super) fn add(
    model: &StpModel,
    launch: Launch,
    function: Guarded,
    network: &Arc<Network>,
    (counts, absence): (Arc<Counts>, Absence),
    (mate, pair): (Option<Mate>, Option<Pair>),
    rig: &mut Rig,
) {
    let Some(wanted) = model.drill else {
        rig.function = Some(function);
        return;
    };
    let all = Associations {
        admin: launch.admin,
        count: network.parties().count(),
        counts: counts.clone(),
    };
    match wanted {
        Wanted::LoseHlr | Wanted::Oscillate => {
            rig.function = Some(function);
            rig.drill = Some(Box::new(Lost {
                all,
                link: network
                    .servers()
                    .next()
                    .map_or_else(String::new, |hlr| hlr.name()),
                counts,
                absence,
                oscillates: wanted == Wanted::Oscillate,
                changes: 0,
            }));
        }
        Wanted::Kill => {
            let state = State {
                process: Some(function),
                ..State::default()
            };
            rig.drill = Some(Box::new(Killed {
                launch,
                all,
                state: Rc::new(RefCell::new(state)),
            }));
        }
        Wanted::CutLinks => {
            rig.function = Some(function);
            if let Some((process, address, drill)) = mate.map(|mate| mate.into_drill(launch.admin)) {
                rig.sites.push(process);
                rig.site_addresses.push(address);
                rig.drill = Some(drill);
            }
        }
        Wanted::LoseMate => {
            rig.function = Some(function);
            rig.drill = pair.map(Pair::into_drill);
        }
        Wanted::Reload => {
            rig.function = Some(function);
            rig.drill = Some(Box::new(Reloaded {
                launch: Rc::new(launch),
                network: network.clone(),
                counts,
                outcome: Rc::default(),
            }));
        }
    }
}

/// The associations of all nodes.
#[derive(Clone)]
struct Associations {
    admin: SocketAddr,
    count: usize,
    counts: Arc<Counts>,
}

impl Associations {
    /// Waits until both sides have every association active.
    fn wait(&self) -> Result<(), RigError> {
        let end = Instant::now() + PATIENCE;
        let all = self.count as f64;
        loop {
            let there = Metrics::read(self.admin).map(|all| all.sum("signalbox_stp_link_available", &[]));
            let (here, there) = (Counts::read(&self.counts.active) as f64, there.unwrap_or(0.0));
            if here >= all && there >= all {
                return Ok(());
            }
            if Instant::now() > end {
                return Err(RigError::Settings(format!(
                    "{} of {all} associations are active at the nodes, {} at the STP, after {} s",
                    figure(here),
                    figure(there),
                    PATIENCE.as_secs()
                )));
            }
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

/// The check of a part in which every message arrives.
pub(super) fn all_right(outcome: &Outcome<'_>, name: &str, in_flight: bool) -> Check {
    let part = outcome.parts.iter().find(|part| part.name == name);
    let record = part.map(|part| part.record.total()).unwrap_or_default();
    let length = part.map_or(1.0, |part| part.length.as_secs_f64());
    // Messages of a second may be in flight when an association ends.
    let excused = if in_flight {
        record.offered as f64 / length.max(1e-3)
    } else {
        0.0
    };
    let expected = if in_flight {
        "every one right, but those in flight when the association ended"
    } else {
        "every one right"
    };
    Check::new(
        format!("messages {name}"),
        expected,
        format!("{} of {} right", record.succeeded, record.offered),
        record.offered > 0 && record.failures() as f64 <= excused,
    )
    .of_time_if(is_of_time(&record))
}

/// The check that all failures are of a kind that a lost association explains.
pub(super) fn explained(outcome: &Outcome<'_>) -> Check {
    let total = outcome.window.record.total();
    let explained = total.failures_of(&EXPLAINED);
    Check::new(
        "messages that failed",
        "only for a lost association: none arrived wrong",
        format!("{explained} for it, {} otherwise", total.failures() - explained),
        explained == total.failures(),
    )
}

pub(super) const BEFORE: &str = "before";
const WITHOUT: &str = "without the HLR";
const RETURN: &str = "while the HLR comes back";
const KILL: &str = "while the STP is killed and starts";
pub(super) const AFTER: &str = "after";

/// The part of the run in which the HLR is away, or comes and goes.
const ABSENT: [f64; 2] = [0.25, 0.6];

/// The association of an HLR is lost and comes back.
struct Lost {
    all: Associations,
    link: String,
    counts: Arc<Counts>,
    absence: Absence,
    /// Whether it comes back and ends again each second meanwhile.
    oscillates: bool,
    /// How often it did.
    changes: u64,
}

impl Lost {
    /// What the STP counts as not delivered for want of the HLR, and what it has written that the HLR did not get.
    fn losses(&self) -> [f64; 2] {
        let read = Metrics::read(self.all.admin);
        let causes = ["unreachable", "recovery", "association", "congested"];
        read.map_or([f64::NAN; 2], |all| {
            let undelivered = |why| all.sum("signalbox_stp_undelivered_messages_total", &[("why", why)]);
            let written = all.sum("signalbox_stp_sent_messages_total", &[("link", &self.link)]);
            let arrived = Counts::read(&self.counts.arrived_there) as f64;
            [causes.into_iter().map(undelivered).sum(), written - arrived]
        })
    }
}

impl Drill for Lost {
    fn parts(&self) -> Vec<Part> {
        let act = |is_away: bool| -> Act {
            let absence = self.absence.clone();
            Box::new(move |_: &mut [Simulator]| {
                absence.set(is_away);
                Ok(())
            })
        };
        let all = self.all.clone();
        vec![
            Part::new(BEFORE, ABSENT[0], 1.0),
            Part::new(WITHOUT, ABSENT[1] - ABSENT[0], 1.0).beginning(act(true)),
            Part::new(RETURN, 0.15, 1.0).beginning(act(false)),
            Part::new(AFTER, 0.25, 1.0).beginning(move |_| all.wait()),
        ]
    }

    fn act(&mut self, at: Duration, length: Duration, _: &mut [Simulator]) -> Result<(), RigError> {
        let [from, to] = ABSENT.map(|share| length.mul_f64(share));
        if self.oscillates && (from..to).contains(&at) {
            let second = (at - from).as_secs();
            self.changes = self.changes.max(second);
            self.absence.set(second.is_multiple_of(2));
        }
        Ok(())
    }

    fn judge(&mut self, outcome: &Outcome<'_>) -> Judgement {
        let total = outcome.window.record.total();
        let unsent = total.failures_of(&[FailureKind::Connection, FailureKind::Overflow]);
        let [undelivered, unread] = self.losses();
        let [elsewhere, late, strays, returned] = [
            &self.counts.elsewhere,
            &self.counts.late_elsewhere,
            &self.counts.strays,
            &self.counts.returned,
        ]
        .map(Counts::read);
        let counted = Check::new(
            "messages for the lost HLR",
            "those that failed are its own and not sent, counted by the STP, or were written when the association ended",
            format!(
                "{} failed: {unsent} not sent, {} counted by the STP ({returned} returned), {} written, {strays} late",
                total.failures(),
                figure(undelivered),
                figure(unread),
            ),
            total.failures() > 0
                && undelivered + unread + (unsent + strays) as f64 >= total.failures() as f64,
        )
        // A machine on which others are late has some in flight at the end.
        .of_time_if(late > 0);
        let others = Check::new(
            "messages between other nodes",
            "none failed",
            format!("{elsewhere} failed, {late} did not arrive in time"),
            elsewhere + late == 0,
        )
        .of_time_if(elsewhere == 0);
        let mut notes = Vec::new();
        if self.oscillates {
            notes.push(format!(
                "the route to the HLR changed {} times, once a second",
                self.changes + 2
            ));
        }
        Judgement {
            checks: vec![
                all_right(outcome, BEFORE, true),
                all_right(outcome, AFTER, false),
                explained(outcome),
                counted,
                others,
            ],
            notes,
            spares_bounds: true,
            ..Judgement::default()
        }
    }
}

/// The STP is killed and started again.
struct Killed {
    launch: Launch,
    all: Associations,
    state: Rc<RefCell<State>>,
}

#[derive(Default)]
struct State {
    /// None while it is dead.
    process: Option<Guarded>,
    /// From the restart until it listens, with full tables.
    ready: Option<Duration>,
}

impl Drill for Killed {
    fn parts(&self) -> Vec<Part> {
        let state = self.state.clone();
        let kill = move |_: &mut [Simulator]| {
            // Dropping it kills it (SIGKILL).
            state.borrow_mut().process = None;
            Ok(())
        };
        let all = self.all.clone();
        vec![
            Part::new(BEFORE, 0.3, 1.0),
            Part::new(KILL, 0.3, 1.0).beginning(kill),
            Part::new(AFTER, 0.4, 1.0).beginning(move |_| all.wait()),
        ]
    }

    fn act(&mut self, _: Duration, _: Duration, _: &mut [Simulator]) -> Result<(), RigError> {
        let mut state = self.state.borrow_mut();
        if state.process.is_none() {
            let begun = Instant::now();
            state.process = Some(self.launch.start()?);
            state.ready = Some(begun.elapsed());
        }
        Ok(())
    }

    fn judge(&mut self, outcome: &Outcome<'_>) -> Judgement {
        let state = self.state.borrow();
        let back = Check::new(
            "the STP died and came back",
            "killed, restarted, every association active again",
            state.ready.map_or_else(
                || "it did not".to_owned(),
                |ready| format!("ready {} s after its start", figure(ready.as_secs_f64())),
            ),
            state.ready.is_some(),
        );
        let failed = outcome.parts.iter().map(|part| part.record.total().failures());
        Judgement {
            checks: vec![
                back,
                explained(outcome),
                all_right(outcome, BEFORE, true),
                all_right(outcome, AFTER, false),
            ],
            notes: vec![format!(
                "the STP was killed (SIGKILL) under load and started again at once; {} messages failed meanwhile; its \
                 processor time is not measured",
                failed.sum::<u64>()
            )],
            spares_bounds: true,
            destinations: None,
        }
    }
}

/// Translations are replaced by a reload.
struct Reloaded {
    launch: Rc<Launch>,
    network: Arc<Network>,
    counts: Arc<Counts>,
    outcome: Rc<RefCell<Option<Result<Duration, String>>>>,
}

const REPLACE: &str = "while translations are replaced";

impl Drill for Reloaded {
    fn parts(&self) -> Vec<Part> {
        let (launch, network, outcome) = (self.launch.clone(), self.network.clone(), self.outcome.clone());
        let replace = move |_: &mut [Simulator]| {
            files::write(&launch.translations(), |out| network.write_translations(1, out))?;
            network.shift().begin();
            let begun = Instant::now();
            *outcome.borrow_mut() = Some(match ask(launch.admin, "POST", "/config/reload") {
                Some((200, _)) => Ok(begun.elapsed()),
                Some((status, body)) => Err(format!("{status}: {body}")),
                None => Err("the admin endpoint did not answer".to_owned()),
            });
            Ok(())
        };
        let (network, counts) = (self.network.clone(), self.counts.clone());
        let complete = move |_: &mut [Simulator]| {
            let end = Instant::now() + PATIENCE;
            while Counts::read(&counts.seconds) == 0 {
                if Instant::now() > end {
                    let words = "no message goes by the new translations";
                    return Err(RigError::Settings(words.to_owned()));
                }
                std::thread::sleep(Duration::from_millis(5));
            }
            // One has gone by them: those that are sent from now on have to.
            network.shift().complete();
            Ok(())
        };
        vec![
            Part::new(BEFORE, 0.3, 1.0),
            Part::new(REPLACE, 0.2, 1.0).beginning(replace),
            Part::new(AFTER, 0.5, 1.0).beginning(complete),
        ]
    }

    fn judge(&mut self, outcome: &Outcome<'_>) -> Judgement {
        let (got, pass) = match &*self.outcome.borrow() {
            None => ("it was not asked for".to_owned(), false),
            Some(Err(why)) => (why.clone(), false),
            Some(Ok(taken)) => (format!("reloaded in {} s", figure(taken.as_secs_f64())), true),
        };
        let replaced = Check::new(
            "translations are replaced",
            "by a reload, and no later message goes by the former ones",
            got,
            pass,
        );
        let parts = [BEFORE, REPLACE, AFTER].map(|part| all_right(outcome, part, false));
        Judgement::from([vec![replaced], parts.to_vec()].concat())
    }
}
