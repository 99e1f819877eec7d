//! A signal transfer point under test: its settings and files, MSCs on one side of it, HLRs and SMSCs on the other.
//!
//! The nodes are in the generator, since a message is judged where it arrives.

mod cable;
pub(crate) mod config;
mod drills;
mod mate;
mod pair;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::Value;

use super::Options;
use super::children::Guarded;
use super::dsr::start_function;
use super::rig::{Place, Rig, RigError, free_address};
use ::report::Check;
use callmodel::Load;
use callmodel::stp::{Drill as Wanted, Mix, StpModel};
use loadgen::Traffic;
use loadgen::m3ua::{Counts, Node, Nodes, Protocol};
use mate::Mate;
use pair::Pair;
use workload::stp::{Calls, Network, Party, Share};

/// Time in which every association has to become active.
const PATIENCE: Duration = Duration::from_secs(180);
/// Messages that have to arrive one after the other before the load begins.
const SETTLED: u32 = 16;
/// MSCs have numbers of three digits.
const MOST_MSCS: u32 = 999;
/// The name of the process and of its settings.
const NAME: &str = "stp";

/// Starts everything.
///
/// # Errors
/// When something does not start.
pub(super) fn start(
    model: &StpModel,
    load: &Load,
    options: &Options,
    place: &Place,
) -> Result<Rig, RigError> {
    if options.target.is_some() {
        return Err(RigError::Settings(
            "--target: an STP that runs already does not know the simulated nodes; let the lab start it, with settings \
             of its own by --function-config"
                .to_owned(),
        ));
    }
    let mscs = options.connections.unwrap_or(load.connections);
    let network = Arc::new(Network::new(model, mscs.clamp(1, MOST_MSCS) as u16));
    config::write_files(model, &network, place)?;
    let (address, admin) = (free_address()?, free_address()?);
    let mut made = config::settings(model, &network, place, (address, admin));
    let mate = match model.drill {
        Some(Wanted::CutLinks) => Some(Mate::start(&network, place, (&mut made, address))?),
        _ => None,
    };
    let pair = match model.drill {
        Some(Wanted::LoseMate) => Some(Pair::start(&network, place, (&mut made, address, admin))?),
        _ => None,
    };
    let launch = Launch {
        place: place.clone(),
        over: options.function_config.clone(),
        address,
        admin,
        made,
    };
    let function = launch.start()?;
    let (counts, absence) = (Arc::<Counts>::default(), drills::absence(model, &network));
    let threads = threads(model, options, &network);
    let mut all = Vec::new();
    for thread in 0..threads {
        let share = Share { thread, threads };
        let timeout = load.timeout.duration();
        let of = |party| {
            mate.as_ref()
                .map_or(address, |mate| mate.address_of(party, address))
        };
        all.push(nodes_at(&network, share, (&of, PATIENCE), timeout)?);
    }
    let mut workloads = Vec::new();
    for mut nodes in all {
        settle(&mut nodes)?;
        workloads.push(Traffic::from(nodes.shared(&counts, &absence)));
    }
    let mut rig = Rig {
        probes: vec![delivery(counts.clone())],
        notes: vec![note(model, &network)],
        ..Rig::new(NAME, address, workloads)
    };
    drills::add(
        model,
        launch,
        function,
        &network,
        (counts, absence),
        (mate, pair),
        &mut rig,
    );
    Ok(rig)
}

/// A model of one HLR, without a drill.
pub(crate) const fn to_one_hlr(mix: Mix, translations: u32) -> StpModel {
    StpModel {
        mps: 1.0,
        mix,
        message_bytes: 200,
        hlrs: 1,
        smscs: 0,
        translations,
        numbers: 0,
        screening_rules: 0,
        equipment: None,
        drill: None,
    }
}

fn note(model: &StpModel, network: &Network) -> String {
    format!(
        "{} MSCs, {} HLRs and {} SMSCs, an association each; {} translations",
        network.mscs().count(),
        model.hlrs,
        model.smscs,
        model.translations
    )
}

/// Generator threads: each has MSCs and HLRs of its own. A node that all send to, or that drills act on, is of one.
fn threads(model: &StpModel, options: &Options, network: &Network) -> u16 {
    if model.drill.is_some() || network.has_gateway() || network.has_control_point() {
        return 1;
    }
    let most = network.mscs().count().min(usize::from(model.hlrs));
    options.generators.clamp(1, most.max(1)) as u16
}

/// The nodes of a share, whose associations become active within a patience; a message that has not arrived after `timeout` is
/// lost.
pub(crate) fn nodes(
    network: &Arc<Network>,
    share: Share,
    (address, patience): (SocketAddr, Duration),
    timeout: Duration,
) -> Result<Nodes, RigError> {
    nodes_at(network, share, (&|_| address, patience), timeout)
}

/// As [`nodes`], of which each has an STP of its own.
fn nodes_at(
    network: &Arc<Network>,
    share: Share,
    (address, patience): (&dyn Fn(Party) -> SocketAddr, Duration),
    timeout: Duration,
) -> Result<Nodes, RigError> {
    let calls = Calls::new(network, share);
    let all = calls.parties().iter().map(|party| node(*party, address(*party)));
    let mut nodes = Nodes::new(all.collect(), Box::new(calls), timeout);
    nodes
        .connect(patience)
        .map_err(|error| RigError::Settings(error.to_string()))?;
    Ok(nodes)
}

/// Waits until messages arrive: a node that becomes available is reported to all others first (DAVA).
fn settle(nodes: &mut Nodes) -> Result<(), RigError> {
    let end = Instant::now() + PATIENCE;
    loop {
        let left = end.saturating_duration_since(Instant::now());
        let right = nodes
            .exchange(SETTLED, left)
            .map_err(RigError::io("sending the first messages"))?;
        if right == u64::from(SETTLED) {
            return Ok(());
        }
        if left.is_zero() {
            return Err(RigError::Settings(format!(
                "{right} of the last {SETTLED} messages before the load arrived right after {} s",
                PATIENCE.as_secs()
            )));
        }
    }
}

fn node(party: Party, address: SocketAddr) -> Node {
    Node {
        name: party.name(),
        number: party.point_code().0,
        address,
        source: party.address(),
        protocol: Protocol::M3ua {
            routing_context: party.routing_context(),
        },
    }
}

/// Whether each message arrived once, in its order, and nowhere else.
fn delivery(counts: Arc<Counts>) -> super::rig::Probe {
    Box::new(move || {
        let [misrouted, disordered, doubled, refused] = [
            &counts.misrouted,
            &counts.disordered,
            &counts.doubled,
            &counts.refused,
        ]
        .map(Counts::read);
        Check::new(
            "delivery",
            "no message at a wrong node, before an earlier one of its link selection, or twice; no ERR",
            format!(
                "{misrouted} at a wrong node, {disordered} out of sequence, {doubled} twice, {refused} ERR; {} late or \
                 unknown",
                Counts::read(&counts.strays)
            ),
            misrouted + disordered + doubled + refused == 0,
        )
    })
}

/// How the STP is started.
struct Launch {
    place: Place,
    over: Option<PathBuf>,
    address: SocketAddr,
    admin: SocketAddr,
    made: Value,
}

impl Launch {
    /// Starts it and waits until it listens.
    fn start(&self) -> Result<Guarded, RigError> {
        let over = self.over.as_deref();
        start_function(&self.place, ("stp", NAME), self.made.clone(), over, self.address)
    }

    /// The file of translations.
    fn translations(&self) -> PathBuf {
        config::translations(&self.place)
    }
}
