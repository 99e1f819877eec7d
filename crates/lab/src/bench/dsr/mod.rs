//! Our Diameter router and freeDiameter as relays between the same MMEs and HSSs, and HAProxy as a relay of their bytes.
//!
//! All programs run all the time on the same cores, one is loaded while the others have nothing to do, then the next,
//! for several rounds. What counts is processor time per request, from `/proc`. HAProxy forwards TCP without a look at
//! what is in it: what the kernel takes for the same bytes over the same number of connections, and no relay can save
//! except by fewer system calls.

mod haproxy;
mod result;

use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use crate::bench::freediameter::{self, Served};
use crate::bench::phase::Loaded;
use crate::bench::turns::{TIMEOUT, generator};
use crate::bench::{Site, Turns};
use crate::run::{Progress, RigError, RunError, dsr as rig, free_address};
use callmodel::dsr::DsrModel;
use simulators::diameter::DiameterSettings;
use workload::dsr;

pub use result::{Comparison, Row};

/// Names of the programs.
const OURS: &str = "dsr";
const THEIRS: &str = "freediameter";
const BYTES: &str = "haproxy-tcp";

/// How to compare.
#[derive(Clone, Debug)]
pub struct Settings {
    /// How each is loaded.
    pub turns: Turns,
    /// MMEs, a connection each.
    pub connections: u32,
    /// Average size of ULRs and ULAs.
    pub message_bytes: u32,
    /// Where it runs.
    pub site: Site,
}

/// Compares our router with freeDiameter as relays between the same MMEs and HSSs.
///
/// # Errors
/// When something does not start; [`RunError::Missing`] when there is no freeDiameter.
pub fn compare(options: &Settings, progress: &mut Progress) -> Result<Comparison, RunError> {
    freediameter::find()?;
    haproxy::find()?;
    let place = options.site.place()?;
    let model = DsrModel {
        message_bytes: options.message_bytes,
        ..DsrModel::default()
    };
    progress.status("starting the relays and the HSSs …");
    let mut hss = rig::start_hss(&model, &place)?;
    let address = free_address()?;
    let settings = rig::config(&model, &place, (address, free_address()?), &hss.addresses)?;
    let ours = rig::start_router(&place, settings, None, address)?;
    rig::await_connections(&mut hss, model.hss)?;
    let served = Served {
        clients: dsr::REALM,
        names: DiameterSettings::default(),
        servers: &hss.addresses,
        rules: String::new(),
    };
    let (theirs, their_address) = freediameter::start(&place, &served)?;
    rig::await_connections(&mut hss, model.hss * 2)?;
    // It cannot route: all of its requests are for the first HSS.
    let (bytes, bytes_address) = haproxy::start(&place, hss.addresses.first().copied())?;

    let plan = plan_of(&model)?;
    let unrouted = plan_of(&DsrModel { hss: 1, ..model })?;
    let mut relays = Vec::new();
    for (name, function, address, plan) in [
        (OURS, ours, address, &plan),
        (THEIRS, theirs, their_address, &plan),
        (BYTES, bytes, bytes_address, &unrouted),
    ] {
        let answered = Arc::new(AtomicU64::new(0));
        let traffic = rig::traffic(plan, address, options.connections, 1, TIMEOUT, &answered);
        let generator = generator(address, options.connections, traffic, &place)?;
        relays.push(Loaded::new(name, function, generator));
    }
    let measured = options.turns.measure(relays, &place, progress)?;
    Ok(result::comparison(
        measured,
        plan.message_bytes(),
        &place.function_cpus,
        options.turns.rounds,
    ))
}

fn plan_of(model: &DsrModel) -> Result<Arc<dsr::Plan>, RigError> {
    dsr::Plan::new(model)
        .map(Arc::new)
        .map_err(|error| RigError::Settings(error.to_string()))
}
