//! HAProxy as a relay of bytes: no Diameter is read, each connection of an MME becomes one to the HSS.

use std::net::SocketAddr;
use std::process::Command;

use super::BYTES;
use crate::bench::processes;
use crate::run::{Guarded, Place, RigError, RunError, free_address};

const PROGRAM: &str = "haproxy";

/// Whether it is installed.
pub(super) fn find() -> Result<(), RunError> {
    processes::find(PROGRAM, "haproxy")
}

/// Starts it with one thread on the cores of the function, in front of this HSS; returns its address.
pub(super) fn start(place: &Place, hss: Option<SocketAddr>) -> Result<(Guarded, SocketAddr), RigError> {
    let address = free_address()?;
    let hss = hss.ok_or_else(|| RigError::Settings("no HSS listens".to_owned()))?;
    let text = format!(
        "global\n  nbthread 1\n  maxconn 4000\ndefaults\n  mode tcp\n  timeout connect 5s\n  timeout client 300s\n  \
         timeout server 300s\nfrontend in\n  bind {address}\n  default_backend out\nbackend out\n  server hss {hss}\n"
    );
    let file = place.folder.join("haproxy-tcp.cfg");
    std::fs::write(&file, text).map_err(RigError::io(format!("writing {}", file.display())))?;
    let mut command = Command::new(PROGRAM);
    command.arg("-db").arg("-f").arg(&file);
    let child = processes::start(place, BYTES, command, &place.function_cpus, address)?;
    Ok((child, address))
}
