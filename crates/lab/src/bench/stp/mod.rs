//! Our STP, with screening rules and without, and osmo-stp between the same units, over IPA: what both speak over TCP.
//!
//! Each unit sends SCCP of about 200 octets to the one that it is paired with; an STP routes it by point code. All programs run all
//! the time on the same cores and are loaded in turns. What counts is processor time per MSU, from `/proc`.

mod counted;
mod osmo;
mod result;

use std::net::SocketAddr;
use std::process::Command;
use std::time::Duration;

use serde_json::{Value, json};

use crate::bench::phase::Loaded;
use crate::bench::processes;
use crate::bench::routed::within;
use crate::bench::turns::{TIMEOUT, generator};
use crate::bench::{Site, Turns};
use crate::run::stp::config;
use crate::run::{Place, Progress, RigError, RunError};
use loadgen::Traffic;
use loadgen::m3ua::{Node, Nodes, Protocol};
use workload::stp::{OWN, Pairs, Unit};

pub use crate::bench::turns::Row;
pub(super) use counted::Counted;
pub use result::Comparison;

/// Names of the programs.
pub(super) const OURS: &str = "stp";
const SCREENED: &str = "stp-screened";
const THEIRS: &str = "osmo-stp";
/// Rules of the screening list, none of which fits.
const RULES: u16 = 1000;
/// The name of the screening list.
const LIST: &str = "units";
/// Octets of a frame.
const FRAME_BYTES: u16 = 200;
/// Time in which every association has to be identified.
const PATIENCE: Duration = Duration::from_secs(60);

/// How to compare.
#[derive(Clone, Debug)]
pub struct Settings {
    /// How each is loaded.
    pub turns: Turns,
    /// Units, an association each; an odd number is one more.
    pub connections: u32,
    /// Where it runs.
    pub site: Site,
}

/// Compares our STP with osmo-stp.
///
/// # Errors
/// When something does not start; [`RunError::Missing`] when osmo-stp is not installed.
pub fn compare(options: &Settings, progress: &mut Progress) -> Result<Comparison, RunError> {
    processes::find(osmo::PROGRAM, "osmo-stp")?;
    let place = options.site.place()?;
    let pairs = options.connections.div_ceil(2).clamp(1, 499) as u16;
    let units: Vec<Unit> = Pairs::new(pairs, FRAME_BYTES).units().collect();
    progress.status("starting the STPs …");
    let programs = [
        (OURS, ours(&within(&place, OURS)?, &units, 0)?),
        (SCREENED, ours(&within(&place, SCREENED)?, &units, RULES)?),
        (THEIRS, osmo::command(&place, &units)?),
    ];
    let mut relays = Vec::new();
    for (name, (command, address)) in programs {
        let function = processes::start(&place, name, command, &place.function_cpus, address)?;
        let nodes = units.iter().map(|unit| node(*unit, address)).collect();
        let mut nodes = Nodes::new(nodes, Box::new(Pairs::new(pairs, FRAME_BYTES)), TIMEOUT);
        nodes
            .connect(PATIENCE)
            .map_err(|error| RigError::Settings(format!("{name}: {error}")))?;
        let traffic = vec![Traffic::from(nodes)];
        let generator = generator(address, units.len() as u32, traffic, &place)?;
        relays.push(Loaded::new(name, function, generator));
    }
    let measured = options.turns.measure(relays, &place, progress)?;
    Ok(result::comparison(
        &measured,
        &place.function_cpus,
        options.turns.rounds,
    ))
}

fn node(unit: Unit, address: SocketAddr) -> Node {
    Node {
        name: unit.name(),
        number: unit.point_code().0,
        address,
        source: unit.address(),
        protocol: Protocol::Ipa,
    }
}

/// The command line of our STP with this number of screening rules, and where it will listen.
fn ours(place: &Place, units: &[Unit], rules: u16) -> Result<(Command, SocketAddr), RigError> {
    processes::function(place, OURS, None, |address, admin| {
        let link = |unit: &Unit| json!({ "name": unit.name(), "role": "ipa", "transport": "tcp", "peer": [unit.address()] });
        let server = |unit: &Unit| {
            let mut server = json!({
                "name": unit.name(),
                "routingContext": unit.point_code().0,
                "links": [unit.name()],
                "pointCodes": [unit.point_code().0.to_string()],
                "destination": unit.destination().point_code().0.to_string(),
            });
            if rules > 0 {
                server["screening"] = json!(LIST);
            }
            server
        };
        let lists = (rules > 0).then(|| json!({ "name": LIST, "rules": config::rules(rules) }));
        json!({ "stp": {
            "admin": admin.to_string(),
            "listen": address.to_string(),
            "workers": place.function_cpus.len(),
            "pointCodes": { "own": OWN.0.to_string() },
            "links": units.iter().map(link).collect::<Vec<Value>>(),
            "applicationServers": units.iter().map(server).collect::<Vec<Value>>(),
            "screening": lists.into_iter().collect::<Vec<Value>>(),
        }})
    })
}
