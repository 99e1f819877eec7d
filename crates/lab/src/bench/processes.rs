//! The programs of a comparison.

use std::net::SocketAddr;
use std::process::{Command, Stdio};
use std::time::Duration;

use serde_json::Value;

use crate::run::{Guarded, Place, RigError, RunError, free_address, write_config};
use loadgen::client::{Client, Request};

/// How long an exchange for setting up may take.
pub(super) const PATIENCE: Duration = Duration::from_secs(90);

/// Whether a program can be started.
pub(super) fn find(program: &'static str, packages: &'static str) -> Result<(), RunError> {
    let asked = Command::new(program)
        .arg("-v")
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    asked
        .map(|_| ())
        .map_err(|_| RunError::Missing { program, packages })
}

/// The command line of one of our functions with these settings, and of the user's over them; where it will listen.
pub(super) fn function(
    place: &Place,
    name: &'static str,
    over: Option<&std::path::Path>,
    settings: impl FnOnce(SocketAddr, SocketAddr) -> Value,
) -> Result<(Command, SocketAddr), RigError> {
    let (address, admin) = (free_address()?, free_address()?);
    let file = place.folder.join(format!("{name}.yaml"));
    write_config(&file, settings(address, admin), over)?;
    Ok((place.function(name, &file)?, address))
}

/// Starts a program and waits until it listens.
pub(super) fn start(
    place: &Place,
    name: &str,
    mut command: Command,
    cpus: &[usize],
    address: SocketAddr,
) -> Result<Guarded, RigError> {
    command.stdin(Stdio::null()).stdout(Stdio::null());
    let mut child = Guarded::start(name, command, cpus, &place.folder.join(format!("{name}.log")))?;
    child.wait_for(address)?;
    Ok(child)
}

/// Sends registrations to an NRF.
pub(super) fn register(nrf: SocketAddr, profiles: &[Request]) -> Result<(), RigError> {
    let answers = Client::connect(nrf, PATIENCE)
        .and_then(|mut client| client.exchange(profiles))
        .map_err(RigError::io(format!("registering at the NRF at {nrf}")))?;
    match answers.iter().find(|answer| !(200..300).contains(&answer.status)) {
        None => Ok(()),
        Some(refused) => Err(RigError::Settings(format!(
            "the NRF at {nrf} answers {} to a registration: {}",
            refused.status,
            refused.text()
        ))),
    }
}

/// The command line of HAProxy as a proxy on one thread, and where it will listen.
pub(super) fn haproxy(place: &Place, producers: &[SocketAddr]) -> Result<(Command, SocketAddr), RigError> {
    use std::fmt::Write;
    let address = free_address()?;
    let file = place.folder.join("haproxy.cfg");
    let mut text = format!(
        "global\n  nbthread 1\n  maxconn 4000\ndefaults\n  mode http\n  timeout connect 5s\n  timeout client 60s\n  \
         timeout server 60s\n  http-reuse always\nfrontend in\n  bind {address} proto h2\n  default_backend out\n\
         backend out\n  balance roundrobin\n"
    );
    for (number, producer) in producers.iter().enumerate() {
        // Writing to a String cannot fail.
        let _ = writeln!(text, "  server producer{number} {producer} proto h2");
    }
    std::fs::write(&file, text).map_err(RigError::io(format!("writing {}", file.display())))?;
    let mut command = Command::new("haproxy");
    command.arg("-f").arg(&file);
    Ok((command, address))
}

/// The command line of nghttpx as a proxy on one thread, and where it will listen.
pub(super) fn nghttpx(producers: &[SocketAddr]) -> Result<(Command, SocketAddr), RigError> {
    let address = free_address()?;
    let mut command = Command::new("nghttpx");
    command.arg(format!("--frontend={},{};no-tls", address.ip(), address.port()));
    for producer in producers {
        command.arg(format!(
            "--backend={},{};;proto=h2",
            producer.ip(),
            producer.port()
        ));
    }
    command.args([
        "--workers=1",
        "--single-process",
        "--conf=/dev/null",
        "--accesslog-file=/dev/null",
        "--backend-connections-per-host=8",
        "--errorlog-file=/dev/stderr",
    ]);
    Ok((command, address))
}
