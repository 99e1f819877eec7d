//! A Policy DRA under test: gateways and applications before it, a pool of PCRFs behind it, and what happens to them.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};

use super::outage::dying;
use super::{MOST_NODES, REALM, await_connections, start_router};
use crate::run::children::{Guarded, Simulator};
use crate::run::drill::{Drill, Judgement, Outcome, Part, PartRecord};
use crate::run::figure;
use crate::run::policy::fits;
use crate::run::rig::{Place, Probe, RigError};
use ::report::Check;
use callmodel::dsr::KillPeers;
use callmodel::pdra::Sessions;
use loadgen::diameter::{Introduction, Requests};
use loadgen::{FailureKind, OperationRecord};
use settings::Percent;
use workload::pcrf::{Counts, OPERATIONS, PcrfClients, Plan};

/// The folder of the sessions.
pub(super) const REPOSITORY: &str = "sbr";
/// The data network of the sessions.
const APN: &str = "ims";

/// Gateways and applications of a run.
pub(crate) struct Gateways {
    sessions: Sessions,
    /// Whether nodes of other numbers are at another site.
    are_at_sites: bool,
    pub(super) counts: Arc<Counts>,
}

impl Gateways {
    pub(super) fn new(sessions: &Sessions) -> Self {
        Self {
            sessions: sessions.clone(),
            are_at_sites: false,
            counts: Arc::default(),
        }
    }

    /// Those of several sites: calls of a session are at the site of its gateway.
    pub(super) fn at_sites(sessions: &Sessions) -> Self {
        Self {
            are_at_sites: true,
            ..Self::new(sessions)
        }
    }

    /// Those of a thread: this number of gateways, and as many applications.
    fn clients(&self, nodes: usize, (thread, threads): (usize, usize)) -> PcrfClients {
        let own = &self.sessions;
        let threads = threads.max(1);
        let plan = Plan {
            gx: own.gx,
            rx: own.rx,
            realm: REALM.to_owned(),
            apn: APN.to_owned(),
            subscribers: u64::from(own.subscribers),
            usage: false,
            nodes,
            first: thread as u32,
            step: threads as u32,
            first_node: first_node((thread, threads)),
            most_sessions: own.sessions as usize / threads + 1,
            each: u32::from(own.each),
            has_alternate_keys: true,
            are_in_pairs: self.are_at_sites,
        };
        PcrfClients::new(plan, &self.counts)
    }

    pub(super) fn nodes(&self, nodes: usize, thread: (usize, usize)) -> Vec<Introduction> {
        self.clients(nodes, thread).nodes()
    }

    pub(super) fn requests(&self, nodes: usize, thread: (usize, usize)) -> Box<dyn Requests> {
        Box::new(self.clients(nodes, thread))
    }

    /// Whether the RARs of the PCRFs reach the gateway and the application of their session.
    pub(super) fn re_auths(&self) -> Probe {
        let (counts, own) = (self.counts.clone(), self.sessions.clone());
        Box::new(move || {
            let seen = counts.seen();
            let [gx, rx] = [
                (seen.gx.2, seen.accepted[0], seen.sent[0], own.gx_rar),
                (seen.rx.0, seen.accepted[1], seen.sent[1], own.rx_rar),
            ]
            .map(|(got, accepted, sent, share)| follows(got, (accepted, sent), share));
            Check::new(
                "RARs reach their session",
                format!("about {} over Gx and {} over Rx", gx.1, rx.1),
                format!("{} and {}", seen.gx.2, seen.rx.0),
                gx.0 && rx.0,
            )
        })
    }
}

/// The number of the first node of a thread, above those of the threads before.
pub(super) fn first_node((thread, threads): (usize, usize)) -> usize {
    thread * MOST_NODES.div_ceil(threads)
}

/// Whether as many RARs have come as follow from a share of the requests that were accepted, or sent: RARs follow too from those that
/// are answered too late. And how many that are.
pub(super) fn follows(got: u64, (accepted, sent): (u64, u64), share: Percent) -> (bool, String) {
    let of = |requests: u64| (requests as f64 * share.fraction()).round() as u64;
    let (least, most) = (of(accepted), of(sent));
    let is_right = fits(least, got) || fits(most, got) || (least..=most).contains(&got);
    (is_right, format!("{least} to {most}"))
}

/// A Policy DRA with one pool of PCRFs.
pub(super) fn application(hosts: &[String], place: &Place) -> Result<Value, RigError> {
    let pcrfs: Vec<Value> = hosts.iter().map(|host| json!({ "host": host })).collect();
    Ok(json!({
        "name": "policy",
        "pdra": {
            "repository": { "store": { "embedded": { "directory": place.empty_folder(REPOSITORY)? } } },
            "pools": [{ "name": "all", "pcrfs": pcrfs }],
            // Also a request that was in flight at a PCRF that dies goes to another one.
            "rebind": "unanswered",
            // As long as clients wait: how long a session takes to be on the disk is the machine's.
            "wait": "5s",
        },
    }))
}

/// What is late on a busy machine, and what a killed router explains.
pub(super) const LATE: [FailureKind; 1] = [FailureKind::Timeout];
const KILLED: [FailureKind; 4] = [
    FailureKind::Timeout,
    FailureKind::Connection,
    FailureKind::Reset,
    FailureKind::Overflow,
];

/// Failures of a record that these do not explain.
pub(super) fn wrong(record: &OperationRecord, explained: &[FailureKind]) -> u64 {
    record.failures() - record.failures_of(explained)
}

/// That a part has no failures that a killed router does not explain: clients come back when their pause is over.
fn all_right(name: &str, part: Option<&PartRecord>) -> Check {
    let record = part.map(|part| part.record.total()).unwrap_or_default();
    let wrong = wrong(&record, &KILLED);
    Check::new(
        name,
        "no request refused or answered wrongly; some for their connection",
        format!("{wrong} of {}; {} right", record.offered, record.succeeded),
        record.succeeded > 0 && wrong == 0,
    )
}

/// That each session which was acknowledged is known afterwards.
pub(super) fn unknown(counts: &Counts) -> Check {
    let unknown = counts.seen().unknown;
    Check::new(
        "sessions that were acknowledged",
        "none unknown afterwards",
        format!("{} requests of unknown sessions", figure(unknown as f64)),
        unknown == 0,
    )
}

/// That no request of a session is at a PCRF that has it not.
pub(super) fn astray(outcome: &Outcome<'_>) -> Check {
    let astray = outcome.simulators().next().map_or(0, |stats| stats.bad_requests);
    Check::new(
        "sessions stay together",
        "no request at a PCRF that has not its session",
        format!("{astray} such requests"),
        astray == 0,
    )
}

/// PCRFs die under load.
pub(super) struct PcrfsDie(pub(super) KillPeers);

impl Drill for PcrfsDie {
    fn parts(&self) -> Vec<Part> {
        dying(&self.0, "PCRFs")
    }

    fn judge(&mut self, outcome: &Outcome<'_>) -> Judgement {
        let all = outcome.of_operation(outcome.parts, OPERATIONS[0]);
        let astray = outcome.simulators().next().map_or(0, |stats| stats.bad_requests);
        Judgement {
            checks: vec![
                Check::new(
                    "sessions begin at the others",
                    "no CCR-I refused or lost",
                    format!("{} of {}", wrong(&all, &LATE), all.offered),
                    all.offered > 0 && wrong(&all, &LATE) == 0,
                ),
                Check::new(
                    "sessions stay together",
                    "no request at a PCRF that has not its session",
                    format!("{astray} at one that lives"),
                    astray == 0,
                ),
            ],
            // The sessions at the dead ones fail until they end.
            spares_bounds: true,
            ..Judgement::default()
        }
    }
}

/// How the router is started.
pub(super) struct Launch {
    pub(super) place: Place,
    pub(super) made: Value,
    pub(super) over: Option<std::path::PathBuf>,
    pub(super) address: std::net::SocketAddr,
    pub(super) pcrfs: u16,
}

/// The router is killed under load and starts again.
pub(super) struct RouterDies {
    launch: Launch,
    counts: Arc<Counts>,
    /// None while it is dead.
    process: Rc<RefCell<Option<Guarded>>>,
}

impl RouterDies {
    pub(super) fn new(launch: Launch, process: Guarded, counts: &Arc<Counts>) -> Self {
        Self {
            launch,
            counts: counts.clone(),
            process: Rc::new(RefCell::new(Some(process))),
        }
    }
}

impl Drill for RouterDies {
    fn parts(&self) -> Vec<Part> {
        let process = self.process.clone();
        vec![
            Part::new("before", 0.3, 1.0),
            // Dropping it kills it (SIGKILL).
            Part::new("the kill and the restart", 0.4, 1.0).beginning(move |_| {
                *process.borrow_mut() = None;
                Ok(())
            }),
            Part::new("after", 0.3, 1.0),
        ]
    }

    fn act(&mut self, _: Duration, _: Duration, pcrfs: &mut [Simulator]) -> Result<(), RigError> {
        if self.process.borrow().is_some() {
            return Ok(());
        }
        let Launch {
            place,
            made,
            over,
            address,
            pcrfs: count,
        } = &self.launch;
        let started = start_router(place, made.clone(), over.as_deref(), *address)?;
        *self.process.borrow_mut() = Some(started);
        if let Some(pcrfs) = pcrfs.first_mut() {
            await_connections(pcrfs, *count)?;
        }
        Ok(())
    }

    fn judge(&mut self, outcome: &Outcome<'_>) -> Judgement {
        Judgement {
            checks: vec![
                all_right("requests before", outcome.parts.first()),
                all_right("requests after", outcome.parts.last()),
                unknown(&self.counts),
                astray(outcome),
            ],
            notes: vec![
                "the router was killed (SIGKILL) under load and started again at once; its processor time is not measured"
                    .to_owned(),
            ],
            spares_bounds: true,
            ..Judgement::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn gateways_of_all_threads_have_names_of_their_own() {
        let model = callmodel::find("dsr/pdra").unwrap().model.dsr.unwrap();
        let gateways = Gateways::new(&model.pdra.unwrap());
        for threads in 1..=4 {
            let mut names = HashSet::new();
            for thread in 0..threads {
                let count = (thread..MOST_NODES).step_by(threads).count();
                let nodes = gateways.nodes(count, (thread, threads));
                names.extend(nodes.into_iter().map(|node| node.origin.host));
            }
            // As many PCEFs as P-CSCFs.
            assert_eq!(names.len(), 2 * MOST_NODES, "{threads} threads");
        }
    }
}
