//! An online charging DRA under test: gateways before it, a pool of OCSs behind it, and what happens to them.

use std::path::PathBuf;
use std::sync::Arc;

use serde_json::{Value, json};

use super::accounts::{Accounts, Books};
use super::outage::dying;
use super::pdra::{REPOSITORY, first_node, follows};
use super::{REALM, server_processes};
use crate::run::drill::{Drill, Judgement, Outcome, Part};
use crate::run::rig::{Place, Probe, RigError};
use ::report::Check;
use callmodel::dsr::{DsrModel, KillPeers};
use callmodel::ocdra::Charging;
use loadgen::diameter::{Introduction, Requests};
use settings::Percent;
use workload::charging::{ChargingClients, Counts, Kind, Messages, Plan};

/// Gateways of a run.
#[derive(Clone)]
pub(crate) struct Ctfs {
    charging: Charging,
    messages: Arc<Messages>,
    /// Sessions that begin before the load.
    pub(super) standing: u32,
    pub(super) counts: Arc<Counts>,
}

impl Ctfs {
    /// # Errors
    /// When a message is invalid, which a test rules out.
    pub(super) fn new(charging: &Charging) -> Result<Self, RigError> {
        let messages = Messages::new(REALM, u64::from(charging.subscribers));
        Ok(Self {
            messages: Arc::new(messages.map_err(|error| RigError::Settings(error.to_string()))?),
            charging: charging.clone(),
            standing: 0,
            counts: Arc::default(),
        })
    }

    /// The gateways of a thread, this number of them.
    pub(super) fn plan(&self, nodes: usize, (thread, threads): (usize, usize)) -> Plan {
        let (own, threads) = (&self.charging, threads.max(1));
        Plan {
            gy: own.gy,
            events: own.events,
            nodes,
            first_node: first_node((thread, threads)),
            first: thread as u32,
            step: threads as u32,
            standing: self.standing,
            most_sessions: own.sessions.max(self.standing) as usize / threads + 1,
        }
    }

    pub(super) fn messages(&self) -> &Messages {
        &self.messages
    }

    fn clients(&self, nodes: usize, thread: (usize, usize)) -> ChargingClients {
        ChargingClients::new(self.plan(nodes, thread), &self.messages, &self.counts)
    }

    pub(super) fn nodes(&self, nodes: usize, thread: (usize, usize)) -> Vec<Introduction> {
        let plan = self.plan(nodes, thread);
        (plan.first_node..plan.first_node + nodes)
            .map(workload::charging::ctf)
            .collect()
    }

    pub(super) fn requests(&self, nodes: usize, thread: (usize, usize)) -> Box<dyn Requests> {
        Box::new(self.clients(nodes, thread))
    }

    /// Whether RARs reach the gateway of their session, and each request number one OCS.
    pub(super) fn probes(&self, books: Vec<Books>) -> Vec<Probe> {
        let (counts, share) = (self.counts.clone(), self.charging.rar);
        let re_auths: Probe = Box::new(move || {
            let seen = counts.seen();
            let [sent, accepted] = seen.updates;
            let (is_right, expected) = follows(seen.re_auths, (accepted, sent), share);
            let got = seen.re_auths.to_string();
            Check::new(
                "RARs reach their session",
                format!("about {expected}"),
                got,
                is_right,
            )
        });
        let (counts, failover, standing) = (self.counts.clone(), self.charging.failover, self.standing);
        let numbers: Probe = Box::new(move || match Accounts::read(&books, failover) {
            Ok(accounts) => accounts.judge(&with(&counts, standing)),
            Err(error) => unreadable(error),
        });
        vec![re_auths, numbers]
    }

    /// OCSs that die under load.
    pub(super) fn dying(&self, kill: KillPeers, books: Vec<Books>) -> OcssDie {
        OcssDie {
            kill,
            books,
            failover: self.charging.failover,
            standing: self.standing,
            counts: self.counts.clone(),
        }
    }
}

/// What the gateways know, with the sessions that began before the load.
fn with(counts: &Counts, standing: u32) -> workload::charging::Seen {
    let mut seen = counts.seen();
    seen.sent += u64::from(standing);
    seen.answered += u64::from(standing);
    seen
}

fn unreadable(error: String) -> Check {
    Check::new(
        "each request number at one OCS",
        "what the OCSs have counted",
        error,
        false,
    )
}

/// An online charging DRA with one pool of OCSs.
pub(super) fn application(hosts: &[String], place: &Place) -> Result<Value, RigError> {
    let servers: Vec<Value> = hosts.iter().map(|host| json!({ "host": host })).collect();
    Ok(json!({
        "name": "charging",
        "ocdra": {
            "repository": { "store": { "embedded": { "directory": place.empty_folder(REPOSITORY)? } } },
            "pools": [{ "name": "all", "servers": servers }],
        },
    }))
}

/// Where the OCSs of a process of this name write what they have counted.
pub(super) fn journal(place: &Place, name: &str) -> PathBuf {
    place.folder.join(format!("{name}.journal"))
}

/// The books of all OCSs of a model.
pub(super) fn books(model: &DsrModel, place: &Place) -> Vec<Books> {
    let processes = server_processes(model).into_iter();
    processes
        .map(|process| Books {
            path: journal(place, process.name),
            die: process.dies,
        })
        .collect()
}

/// OCSs die under load.
pub(super) struct OcssDie {
    kill: KillPeers,
    books: Vec<Books>,
    failover: Percent,
    standing: u32,
    counts: Arc<Counts>,
}

impl Drill for OcssDie {
    fn parts(&self) -> Vec<Part> {
        dying(&self.kill, "OCSs")
    }

    fn judge(&mut self, outcome: &Outcome<'_>) -> Judgement {
        let begun = outcome.of_operation(outcome.parts.last(), Kind::Initial.operation());
        let astray = outcome.simulators().next().map_or(0, |stats| stats.bad_requests);
        let mut checks = vec![
            Check::new(
                "sessions begin at the others",
                "most of them after the OCSs have died",
                format!("{} of {}", begun.succeeded, begun.offered),
                begun.succeeded * 2 > begun.offered,
            ),
            Check::new(
                "sessions stay together",
                "no request at an OCS that has not its session",
                format!("{astray} at one that lives"),
                astray == 0,
            ),
        ];
        match Accounts::read(&self.books, self.failover) {
            Ok(accounts) => {
                checks.push(accounts.judge(&with(&self.counts, self.standing)));
                checks.push(accounts.judge_refused(&self.counts.refused(), self.failover));
            }
            Err(error) => checks.push(unreadable(error)),
        }
        Judgement {
            checks,
            // The sessions at the dead ones that must stay there fail.
            spares_bounds: true,
            ..Judgement::default()
        }
    }
}
