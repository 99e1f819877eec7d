//! Relays of TCP before each site, as the guide has an HAProxy there: what a BSF sends arrives later.

use std::net::SocketAddr;

use settings::Period;
use simulators::{RoleName, Settings};

use crate::run::children::Simulator;
use crate::run::rig::{Place, RigError};

/// Starts a relay before this address of a BSF. Returns it with the address that reaches the BSF through it.
pub(super) fn before(
    bsf: SocketAddr,
    name: &str,
    latency: Period,
    place: &Place,
) -> Result<(Simulator, SocketAddr), RigError> {
    let settings = Settings {
        role: RoleName::Wire,
        upstream: Some(bsf),
        latency,
        ..Settings::default()
    };
    let relay = Simulator::start(&place.program, name, &settings, &place.lab_cpus, &place.folder)?;
    let address = relay.addresses.first().copied();
    let address = address.ok_or_else(|| RigError::Settings(format!("{name} does not listen")))?;
    Ok((relay, address))
}
