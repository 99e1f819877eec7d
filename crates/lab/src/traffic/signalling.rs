//! A simulated MSC and a simulated HLR, both connected to a signal transfer point with M3UA over TCP: the MSC sends to global titles,
//! which the STP translates to the HLR, and the HLR sends to the MSC by point code.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use serde_json::{Value, json};

use super::{Counts, PATIENCE, PAUSE, wait};
use crate::run::stp::{config, nodes, to_one_hlr};
use callmodel::stp::Mix;
use settings::Percent;
use workload::stp::{Network, OWN, Party, Share, TITLES};

/// Titles that the MSC sends to.
const TITLES_IN_USE: u32 = 1000;
/// Between two messages.
const BETWEEN: Duration = Duration::from_millis(250);

fn network() -> Arc<Network> {
    let half = Percent::new(50.0);
    let mix = Mix {
        translation: half,
        mtp_routing: half,
        ..Mix::default()
    };
    let model = to_one_hlr(mix, TITLES_IN_USE);
    Arc::new(Network::new(&model, 1))
}

/// The settings of an STP with these two nodes, but for where it listens.
#[must_use]
pub fn transfer_point() -> Value {
    let network = network();
    let nodes: Vec<Party> = network.parties().collect();
    let mut stp = config::around(OWN, &nodes, None);
    let groups = config::groups(&network);
    let group = groups.first().map_or(Value::Null, |group| group["name"].clone());
    let entry = json!({ "digits": TITLES, "group": group, "routing": "subsystem", "subsystem": 6 });
    stp["translation"] = json!({
        "groups": groups,
        "sets": [{ "name": "e164", "numberingPlan": 1, "entries": [entry] }],
    });
    stp
}

/// Keeps both connected and sends messages until the end.
pub(super) fn run(stp: SocketAddr, stop: &AtomicBool, counts: &Counts) {
    while !stop.load(Ordering::Relaxed) {
        // A message that does not arrive may mean that the STP closed a connection: connect again.
        live(stp, stop, counts);
        wait(PAUSE, stop);
    }
}

fn live(stp: SocketAddr, stop: &AtomicBool, counts: &Counts) {
    let whole = Share {
        thread: 0,
        threads: 1,
    };
    let Ok(mut nodes) = nodes(&network(), whole, (stp, PATIENCE), PATIENCE) else {
        return counts.count(false);
    };
    while !stop.load(Ordering::Relaxed) {
        let is_right = nodes.exchange(1, PATIENCE).is_ok_and(|right| right == 1);
        counts.count(is_right);
        if !is_right {
            return;
        }
        wait(BETWEEN, stop);
    }
}
