//! Relays of TCP before a function, as the guides have a proxy or a distant site there: what the function sends arrives later.

use std::net::SocketAddr;

use settings::Period;
use simulators::{RoleName, Settings};

use super::children::Simulator;
use super::rig::{Place, RigError};

/// Starts a relay before this address of a function. Returns it with the address that reaches the function through it.
pub(super) fn before(
    function: SocketAddr,
    name: &str,
    latency: Period,
    place: &Place,
) -> Result<(Simulator, SocketAddr), RigError> {
    let settings = Settings {
        role: RoleName::Wire,
        upstream: Some(function),
        latency,
        ..Settings::default()
    };
    let relay = Simulator::start(&place.program, name, &settings, &place.lab_cpus, &place.folder)?;
    let address = relay.addresses.first().copied();
    let address = address.ok_or_else(|| RigError::Settings(format!("{name} does not listen")))?;
    Ok((relay, address))
}
