//! PCEFs and P-CSCFs of a run, and what the PCRF must send them.

use std::sync::Arc;

use super::Site;
use crate::run::rig::{Counter, Egress, Received, RigError};
use crate::run::{Options, figure};
use ::report::Check;
use callmodel::Load;
use callmodel::policy::{Gx, PolicyModel};
use loadgen::Traffic;
use loadgen::diameter::{Clients, Peer};
use workload::pcrf::{Counts, PcrfClients, Plan};

/// Realm of the PCRF.
pub(super) const REALM: &str = "example.org";
/// RARs that may be in flight when the load is over, or belong to sessions that end meanwhile.
const SLACK: f64 = 0.02;
const FEW: f64 = 20.0;

/// The nodes of a run.
pub(super) struct Nodes<'a> {
    model: &'a PolicyModel,
    gx: &'a Gx,
    load: &'a Load,
    /// Generator threads of each site.
    threads: usize,
    /// PCEFs of each thread, and as many P-CSCFs where there are calls.
    each: usize,
}

/// Traffic of all threads, and what they count together.
pub(super) struct Made {
    pub(super) workloads: Vec<Traffic>,
    pub(super) counts: Arc<Counts>,
}

impl<'a> Nodes<'a> {
    pub(super) fn new(model: &'a PolicyModel, gx: &'a Gx, load: &'a Load, options: &Options) -> Self {
        let threads = options.generators.max(1);
        let connections = options.connections.unwrap_or(load.connections) as usize;
        let sides = if model.rx.total() > 0.0 { 2 } else { 1 };
        let all = threads * model.sites_with_traffic.max(1) as usize;
        Self {
            model,
            gx,
            load,
            threads,
            each: (connections / sides / all).max(1),
        }
    }

    pub(super) fn note(&self) -> String {
        let all = self.each * self.threads * self.model.sites_with_traffic.max(1) as usize;
        let calls = if self.model.rx.total() > 0.0 {
            format!(" and {all} P-CSCFs")
        } else {
            String::new()
        };
        format!(
            "{all} PCEFs{calls}, each with a connection; RARs are answered and not among the transactions"
        )
    }
}

/// Makes the traffic. A thread belongs to a site, at whose PCRF its sessions are.
pub(super) fn traffic(nodes: &Nodes<'_>, sites: &[Site]) -> Result<Made, RigError> {
    let counts = Arc::new(Counts::default());
    let threads = nodes.threads * sites.len().max(1);
    let mut workloads = Vec::new();
    for thread in 0..threads {
        let site = &sites[thread % sites.len().max(1)];
        let address = site.diameter.ok_or_else(|| {
            let why = "--target: Gx and Rx need a PCRF that the lab has started";
            RigError::Settings(why.to_owned())
        })?;
        let plan = Plan {
            gx: nodes.gx.rates(),
            rx: nodes.model.rx,
            realm: REALM.to_owned(),
            apn: nodes.gx.apn.clone(),
            subscribers: nodes.model.subscribers,
            usage: nodes.gx.usage,
            nodes: nodes.each,
            first: thread as u32,
            step: threads as u32,
            first_node: thread * nodes.each,
            most_sessions: usize::try_from(nodes.model.associations).unwrap_or(usize::MAX) / threads + 1,
            each: 1,
            has_alternate_keys: false,
            are_in_pairs: false,
        };
        let clients = PcrfClients::new(plan, &counts);
        let peers = clients.nodes().into_iter().map(|introduction| Peer {
            address,
            other: None,
            introduction,
        });
        let peers = peers.collect();
        let timeout = nodes.load.timeout.duration();
        workloads.push(Traffic::from(Clients::new(peers, Box::new(clients), timeout)));
    }
    Ok(Made { workloads, counts })
}

/// Who counts RARs and ASRs of the PCRF.
pub(super) fn egress(counts: &Arc<Counts>) -> Egress {
    let counts = counts.clone();
    Egress {
        name: "PCEF and P-CSCF",
        count: Received::Function(Counter(Arc::new(move || counts.received()))),
    }
}

/// Whether as many RARs came as are wanted, but for those in flight and for chance.
pub(crate) fn fits(wanted: u64, got: u64) -> bool {
    let count = wanted as f64;
    let slack = (count * SLACK).max(3.0 * count.sqrt()).max(FEW);
    (got as f64 - count).abs() <= slack && (wanted == 0 || got > 0)
}

/// Whether the rules of each call reached its PCEF and went away again, and the charging identifier its P-CSCF.
pub(super) fn re_auths(counts: &Counts) -> Check {
    let seen = counts.seen();
    let rows = [
        ("installed", seen.calls.0, seen.gx.0),
        ("removed", seen.calls.1, seen.gx.1),
        ("reported", seen.reported, seen.rx.0),
    ];
    let words = |of: fn(&(&str, u64, u64)) -> u64| {
        let each = rows
            .iter()
            .map(|row| format!("{} {}", figure(of(row) as f64), row.0));
        each.collect::<Vec<_>>().join(", ")
    };
    Check::new(
        "RARs",
        format!("as many as calls and reports: {}", words(|row| row.1)),
        format!(
            "{}; {} without rules, {} ASRs",
            words(|row| row.2),
            figure(seen.gx.2 as f64),
            figure(seen.rx.1 as f64)
        ),
        rows.iter().all(|(_, wanted, got)| fits(*wanted, *got)) && seen.rx.1 == 0,
    )
}
