//! Drills of a router: what happens to it and its peers while the load runs, and the checks of the outcome: HSSs that
//! die, MMEs that reconnect, more load than the router may take.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::outage::dying;
use super::pdra::PcrfsDie;
use crate::run::drill::{Drill, Judgement, Outcome, Part, PartRecord};
use crate::run::figure;
use crate::run::rig::{RigError, write_config};
use ::report::Check;
use callmodel::dsr::{
    Drill as Wanted, DsrModel, KillPeers, MESSAGES_PER_REQUEST, OverloadDrill, PriorityShare, Reconnect,
};
use loadgen::diameter::{HabitCounts, Habits};
use loadgen::{FailureKind, OperationRecord};
use report::measure::Metrics;

/// The hard limit of a message processor, as a multiple of its profile (the router's default).
const HARD_LIMIT: f64 = 2.5;
/// Time that the router may take to apply its configuration.
const PATIENCE: Duration = Duration::from_secs(10);
/// How far the discarded share of a level may be from the configured one, in percent of all requests.
const TOLERANCE: f64 = 2.0;
/// The least goodput beyond the limit, as a share of the highest.
const GOODPUT: f64 = 0.9;
/// Time that a request may be in flight in the router when peers die.
const ANSWER: Duration = Duration::from_secs(1);
const LIFETIME: Duration = Duration::from_secs(3);

/// The router that a drill is about.
pub(super) struct Router {
    pub(super) admin: SocketAddr,
    pub(super) process: u32,
    pub(super) file: PathBuf,
    /// What the lab made of its configuration, and what the user laid over it.
    pub(super) made: Value,
    pub(super) over: Option<PathBuf>,
    pub(super) workers: u16,
    /// The MMEs that are connected to it.
    pub(super) mmes: u32,
    /// Counts their reconnections and watchdogs.
    pub(super) counts: Arc<HabitCounts>,
}

/// How many HSSs are to die.
pub(super) fn victims(model: &DsrModel) -> u16 {
    match &model.drill {
        Some(Wanted::KillPeers(kill)) => kill.hss,
        _ => 0,
    }
}

/// Reconnections and other behaviour of the MMEs besides requests.
pub(super) fn habits(model: &DsrModel) -> Habits {
    Habits {
        reconnect: match &model.drill {
            Some(Wanted::Reconnect(reconnect)) => Some(reconnect.every.duration()),
            _ => None,
        },
        watchdog: match &model.drill {
            Some(Wanted::Overload(overload)) => Some(overload.watchdog.duration()),
            _ => None,
        },
        counts: Arc::default(),
    }
}

/// Settings of the router that the drill needs, at this number of requests per second.
pub(super) fn settings(model: &DsrModel, requests: f64, dsr: &mut Value) {
    match &model.drill {
        // An OCS that answers late may have counted a request: it is not given up before the clients give it up.
        Some(Wanted::KillPeers(_)) if model.ocdra.is_some() => {}
        Some(Wanted::KillPeers(kill)) => {
            dsr["routing"]["transaction"] = json!({
                // A request may be sent to several dead HSSs in turn before the router detects that they are dead.
                "attempts": (kill.hss + 1).clamp(2, 16),
                "answer": format!("{}ms", ANSWER.as_millis()),
                "lifetime": format!("{}ms", LIFETIME.as_millis()),
            });
        }
        Some(Wanted::Overload(overload)) => {
            let messages = requests * MESSAGES_PER_REQUEST / f64::from(model.da_mps.max(1));
            dsr["overload"]["profileMps"] = json!((messages / HARD_LIMIT).round() as u32);
            dsr["overload"]["hardLimitPercent"] = json!((HARD_LIMIT * 100.0) as u32);
            dsr["overload"]["sparePriority"] = json!(overload.spare_priority);
        }
        Some(_) | None => {}
    }
}

/// The drill that the model asks for.
pub(super) fn make(model: &DsrModel, router: Router) -> Option<Box<dyn Drill>> {
    let counts = router.counts.clone();
    Some(match model.drill.clone()? {
        Wanted::KillPeers(kill) if model.pdra.is_some() => Box::new(PcrfsDie(kill)),
        Wanted::KillPeers(kill) => Box::new(Killing { kill, router }),
        // Those are of several processes: `cluster`, `sites` and `processors` make them, `pdra` that of a process that starts again, `database`
        // that of a node.
        Wanted::KillRouter(_)
        | Wanted::KillFrontEnd(_)
        | Wanted::RestartRouter(_)
        | Wanted::KillDatabase(_)
        | Wanted::CutSites(_)
        | Wanted::LoseProcessor(_)
        | Wanted::KillServer(_)
        | Wanted::DamageBlock(_)
        | Wanted::Learning(_) => return None,
        Wanted::Reconnect(reconnect) => Box::new(Returning {
            reconnect,
            router,
            counts,
        }),
        Wanted::Overload(overload) => Box::new(Overload {
            overload,
            router: Arc::new(router),
            counts,
            priorities: model.priorities.clone(),
            discards: model.discards.iter().map(|share| share.fraction()).collect(),
        }),
    })
}

/// A check of the metrics that the router reports.
fn reported(
    admin: SocketAddr,
    name: &str,
    expected: impl Into<String>,
    judge: impl FnOnce(&Metrics) -> (String, bool),
) -> Check {
    let metrics = Metrics::read(admin);
    let (got, pass) = metrics.as_ref().map_or_else(
        || ("the router does not report its metrics".to_owned(), false),
        judge,
    );
    Check::new(name, expected, got, pass)
}

// ---- peers that die ---------------------------------------------------------------------------------------

struct Killing {
    kill: KillPeers,
    router: Router,
}

impl Drill for Killing {
    fn parts(&self) -> Vec<Part> {
        dying(&self.kill, "HSSs")
    }

    fn judge(&mut self, outcome: &Outcome<'_>) -> Judgement {
        judge_killing(outcome, self.router.admin, &self.kill).into()
    }
}

fn judge_killing(outcome: &Outcome<'_>, admin: SocketAddr, kill: &KillPeers) -> Vec<Check> {
    let mut all = OperationRecord::default();
    for part in outcome.parts {
        all.merge(&part.record.total());
    }
    let (late, lost) = (
        all.failed[FailureKind::Timeout as usize],
        all.failed[FailureKind::Connection as usize],
    );
    let slowest = Duration::from_micros(all.latency.max());
    let again = outcome.simulators().next().map_or(0, |stats| stats.retransmitted);
    vec![
        Check::new(
            "no request hangs",
            format!(
                "no request without an answer; none later than the lifetime of {} s",
                LIFETIME.as_secs()
            ),
            format!(
                "{late} without an answer, {lost} lost, the slowest after {} ms",
                figure(slowest.as_secs_f64() * 1000.0)
            ),
            late == 0 && lost == 0 && slowest <= LIFETIME + Duration::from_millis(100),
        ),
        reported(
            admin,
            "re-sent with the T flag",
            "the requests that were in flight, and no more than the router counts",
            |said| {
                let rerouted = said.sum("signalbox_dsr_reroutes_total", &[]);
                (
                    format!(
                        "{again} with the T flag at the other HSSs; the router sent {} again",
                        figure(rerouted)
                    ),
                    again > 0 && again as f64 <= rerouted,
                )
            },
        ),
        reported(
            admin,
            "dead peers are detected",
            format!("{} unavailable", kill.hss),
            |said| {
                let gone = said.sum("signalbox_dsr_peers", &[("state", "unavailable")]);
                (figure(gone), (gone - f64::from(kill.hss)).abs() < 0.5)
            },
        ),
    ]
}

// ---- clients that reconnect -------------------------------------------------------------------------------

struct Returning {
    reconnect: Reconnect,
    router: Router,
    counts: Arc<HabitCounts>,
}

impl Drill for Returning {
    fn parts(&self) -> Vec<Part> {
        vec![Part::new("MMEs reconnect", 1.0, 1.0)]
    }

    fn judge(&mut self, outcome: &Outcome<'_>) -> Judgement {
        let length: Duration = outcome.parts.iter().map(|part| part.length).sum();
        let every = self.reconnect.every.duration();
        let times = f64::from(self.router.mmes) * length.as_secs_f64() / every.as_secs_f64();
        judge_returning(self.router.admin, &self.counts, times).into()
    }
}

fn judge_returning(admin: SocketAddr, counts: &HabitCounts, times: f64) -> Vec<Check> {
    let (returns, strays, lost) = (counts.reconnects(), counts.strays(), counts.lost());
    vec![
        Check::new(
            "reconnected",
            format!("without DPR, at least {} times", figure((times * 0.5).max(1.0))),
            returns.to_string(),
            returns as f64 >= (times * 0.5).max(1.0),
        )
        .of_time(),
        Check::new(
            "answers on the right connection",
            "no answer without a request",
            format!("{strays} such answers"),
            strays == 0,
        ),
        Check::new(
            "connections stand",
            "none lost but those that were replaced",
            format!("{lost} lost"),
            lost == 0,
        ),
        reported(
            admin,
            "answers follow their client",
            "some were delivered on the new connection; none was lost",
            |said| {
                let [followed, lost, withheld] = ["followed", "lost", "withheld"]
                    .map(|what| said.sum(&format!("signalbox_dsr_{what}_answers_total"), &[]));
                (
                    format!(
                        "{} delivered there, {} lost, {} withheld",
                        figure(followed),
                        figure(lost),
                        figure(withheld)
                    ),
                    followed > 0.0 && lost + withheld < 0.5,
                )
            },
        ),
    ]
}

// ---- too much load ----------------------------------------------------------------------------------------

/// Sets the assumed load of the router (none: the measured load) and waits until it is at this level.
fn assume(router: &Router, load: Option<f64>, level: usize) -> Result<(), RigError> {
    let mut made = router.made.clone();
    if let Some(load) = load {
        made["dsr"]["overload"]["assumedLoad"] = json!(format!("{load}%"));
    }
    write_config(&router.file, made, router.over.as_deref())?;
    let process = i32::try_from(router.process)
        .ok()
        .and_then(rustix::process::Pid::from_raw);
    let signalled = process.map(|id| rustix::process::kill_process(id, rustix::process::Signal::HUP));
    if !matches!(signalled, Some(Ok(()))) {
        return Err(RigError::Settings(
            "SIGHUP to the router failed, so it does not reload its settings".to_owned(),
        ));
    }
    let end = Instant::now() + PATIENCE;
    let there = |levels: &[f64]| {
        levels.len() == usize::from(router.workers.max(1))
            && levels.iter().all(|now| (now - level as f64).abs() < 0.5)
    };
    loop {
        let levels = Metrics::read(router.admin).map(|said| said.values("signalbox_dsr_congestion_level"));
        // Without an assumed load the measured one decides.
        if load.is_none() || levels.as_deref().is_some_and(there) {
            return Ok(());
        }
        if Instant::now() > end {
            return Err(RigError::Settings(format!(
                "the router is at {levels:?} instead of congestion level {level}"
            )));
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}

struct Overload {
    overload: OverloadDrill,
    router: Arc<Router>,
    counts: Arc<HabitCounts>,
    priorities: Vec<PriorityShare>,
    /// What each level discards.
    discards: Vec<f64>,
}

impl Drill for Overload {
    fn parts(&self) -> Vec<Part> {
        let names = ["DOC", "CL1", "CL2", "CL3"];
        let mut parts = vec![Part::new("no congestion", 1.0, self.overload.calm)];
        for (index, load) in self.overload.loads.iter().enumerate() {
            let (router, load) = (self.router.clone(), load.percent());
            let name = names.get(index).copied().unwrap_or("a level");
            let part = Part::new(name, 1.0, self.overload.calm);
            parts.push(part.beginning(move |_| assume(&router, Some(load), index + 1)));
        }
        for (index, factor) in self.overload.ramp.iter().enumerate() {
            let part = Part::new(format!("{factor} × the limit"), 1.0, *factor);
            let router = self.router.clone();
            parts.push(match index {
                0 => part.beginning(move |_| assume(&router, None, 0)),
                _ => part,
            });
        }
        parts
    }

    fn judge(&mut self, outcome: &Outcome<'_>) -> Judgement {
        let spare = self.overload.spare_priority;
        let discards = std::iter::once(0.0).chain(self.discards.iter().copied());
        let mut checks: Vec<Check> = outcome
            .parts
            .iter()
            .zip(discards)
            .map(|(part, share)| level(part, share, &self.priorities, spare))
            .collect();
        let levels = 1 + self.overload.loads.len();
        checks.push(goodput(outcome.parts.get(levels..).unwrap_or_default()));
        checks.push(spared(outcome.parts, &self.priorities, spare));
        checks.push(watched(&self.counts, self.overload.watchdog_within.duration()));
        let servers: u64 = outcome
            .simulators()
            .map(|one| one.accepted - one.connections)
            .sum();
        let lost = self.counts.lost();
        checks.push(Check::new(
            "connections stand",
            "none lost, to MMEs nor to HSSs",
            format!("{lost} lost to MMEs, {servers} to HSSs"),
            lost + servers == 0,
        ));
        Judgement {
            spares_bounds: true,
            destinations: None,
            ..checks.into()
        }
    }
}

/// The share of a part's requests of each priority that was refused.
fn refused(part: &PartRecord) -> Vec<f64> {
    let each = part.record.operations.iter();
    each.map(|one| one.failed[FailureKind::Status as usize] as f64 / (one.offered as f64).max(1.0))
        .collect()
}

/// What `share` of all requests is of each priority, taken from the least important first.
fn taken(share: f64, priorities: &[PriorityShare], spare: u8) -> Vec<f64> {
    let mut order: Vec<usize> = (0..priorities.len()).collect();
    order.sort_by_key(|at| std::cmp::Reverse(priorities[*at].priority));
    let mut left = share;
    let mut taken = vec![0.0; priorities.len()];
    for at in order {
        let own = priorities[at].share.fraction();
        if priorities[at].priority <= spare || own <= 0.0 {
            continue;
        }
        let here = left.min(own);
        taken[at] = here / own;
        left -= here;
    }
    taken
}

/// Whether a level discards the configured share, from the right priorities.
fn level(part: &PartRecord, share: f64, priorities: &[PriorityShare], spare: u8) -> Check {
    let total = part.record.total();
    let offered = (total.offered as f64).max(1.0);
    let expected = taken(share, priorities, spare);
    let all: f64 = expected
        .iter()
        .zip(priorities)
        .map(|(of, priority)| of * priority.share.fraction())
        .sum();
    let got = refused(part);
    let share_got = total.failed[FailureKind::Status as usize] as f64 / offered;
    let others = total.failures() - total.failed[FailureKind::Status as usize];
    let words = |shares: &[f64]| {
        let each = shares.iter().zip(priorities);
        let each = each.map(|(share, one)| format!("{:.1}% of priority {}", share * 100.0, one.priority));
        each.collect::<Vec<_>>().join(", ")
    };
    // The shares of priorities in what was sent vary by chance, most where few were sent.
    let chance = |count: f64| TOLERANCE / 100.0 + 3.0 / count.max(1.0).sqrt();
    let near = got
        .iter()
        .zip(&expected)
        .zip(priorities)
        .all(|((got, expected), priority)| {
            let own = priority.share.fraction();
            (got - expected).abs() <= (chance(offered) / own.max(0.01)).max(chance(offered * own))
        });
    Check::new(
        format!("{} discards", part.name),
        format!("{:.0}% of all requests: {}", all * 100.0, words(&expected)),
        format!("{:.1}%: {}", share_got * 100.0, words(&got)),
        near && (share_got - all).abs() <= chance(offered) && others == 0,
    )
}

/// Whether the goodput beyond the limit is near the highest.
fn goodput(ramp: &[PartRecord]) -> Check {
    let rates: Vec<f64> = ramp
        .iter()
        .map(|part| part.record.total().succeeded as f64 / part.length.as_secs_f64().max(1e-3))
        .collect();
    let most = rates.iter().copied().fold(0.0, f64::max);
    let least = ramp
        .iter()
        .zip(&rates)
        .filter(|(part, _)| part.factor >= 1.0)
        .map(|(_, rate)| *rate)
        .fold(f64::INFINITY, f64::min);
    let words: Vec<String> = ramp
        .iter()
        .zip(&rates)
        .map(|(part, rate)| format!("{} at {}", figure(*rate), part.name))
        .collect();
    Check::new(
        "goodput",
        format!(
            "at least {:.0}% of the highest, at every rate from the limit on",
            GOODPUT * 100.0
        ),
        format!(
            "{:.1}% ({} requests/s)",
            100.0 * least / most.max(1e-9),
            words.join(", ")
        ),
        most > 0.0 && least >= most * GOODPUT,
    )
    .of_time()
}

/// Whether the most important are never refused.
fn spared(parts: &[PartRecord], priorities: &[PriorityShare], spare: u8) -> Check {
    let mut gone = 0;
    for part in parts {
        for (record, priority) in part.record.operations.iter().zip(priorities) {
            if priority.priority <= spare {
                gone += record.failures();
            }
        }
    }
    Check::new(
        "the most important pass",
        format!("no request of priority 0 to {spare} refused, at any level"),
        format!("{gone} refused"),
        gone == 0,
    )
}

/// Whether watchdogs were answered in time.
fn watched(counts: &HabitCounts, within: Duration) -> Check {
    let (asked, answered) = counts.watchdogs();
    let slowest = counts.slowest_watchdog();
    Check::new(
        "watchdogs never starve",
        format!("every DWR is answered within {} ms", within.as_millis()),
        format!(
            "{answered} of {asked} answered, the slowest after {} ms",
            figure(slowest.as_secs_f64() * 1000.0)
        ),
        // The last ones sent may still be in flight.
        answered > 0 && answered * 100 >= asked * 99 && slowest <= within,
    )
    .of_time()
}

#[cfg(test)]
mod tests {
    use super::*;
    use loadgen::Record;
    use settings::Percent;

    fn mix() -> Vec<PriorityShare> {
        [(0, 10.0), (5, 30.0), (10, 60.0)]
            .map(|(priority, share)| PriorityShare {
                priority,
                share: Percent::new(share),
            })
            .to_vec()
    }

    fn part(factor: f64, offered: [u64; 3], refused: [u64; 3]) -> PartRecord {
        let mut record = Record::new(3);
        for (at, one) in record.operations.iter_mut().enumerate() {
            one.offered = offered[at];
            one.failed[FailureKind::Status as usize] = refused[at];
            one.succeeded = offered[at] - refused[at];
        }
        PartRecord {
            name: "CL2".to_owned(),
            factor,
            length: Duration::from_secs(1),
            record,
        }
    }

    #[test]
    fn discards_come_from_the_least_important() {
        assert_eq!(taken(0.5, &mix(), 1), [0.0, 0.0, 0.5 / 0.6]);
        let most = taken(0.95, &mix(), 1);
        assert!(most[0] == 0.0 && most[1] == 1.0 && most[2] == 1.0, "{most:?}");
        let good = part(1.0, [1000, 3000, 6000], [0, 0, 5000]);
        assert!(level(&good, 0.5, &mix(), 1).pass);
        // The same number, but of the wrong priorities; and too few.
        for wrong in [[1000, 3000, 1000], [0, 0, 4000]] {
            let check = level(&part(1.0, [1000, 3000, 6000], wrong), 0.5, &mix(), 1);
            assert!(!check.pass, "{check:?}");
        }
    }

    #[test]
    fn goodput_and_the_spared_are_seen() {
        let held = [
            part(1.0, [100, 300, 600], [0; 3]),
            part(3.0, [300, 900, 1800], [0, 260, 1800]),
        ];
        assert!(goodput(&held).pass, "{:?}", goodput(&held));
        let fell = [
            part(1.0, [100, 300, 600], [0; 3]),
            part(3.0, [300, 900, 1800], [0, 900, 1000]),
        ];
        assert!(!goodput(&[held[0].clone(), part(3.0, [300, 900, 1800], [0, 500, 1800])]).pass);
        assert!(spared(&fell, &mix(), 1).pass);
        assert!(!spared(&[part(1.0, [10, 10, 10], [1, 0, 0])], &mix(), 1).pass);
    }
}
