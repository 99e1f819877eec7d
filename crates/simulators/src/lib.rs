//! Simulated peers, each a process of its own, so that the function under test is measured alone.
//!
//! `README.md` is for their users. A simulator is started as `signalbox lab-sim SETTINGS` with a settings file
//! ([`Settings`]). It writes the addresses it listens on as a line of JSON on standard output, reads commands
//! as lines on standard input (`stats`, `misbehave {…}`), and ends when standard input does, so that no
//! simulator outlives the laboratory that started it.
//!
//! * [`Server`] with a [`Role`]: peers over HTTP/2; [`diameter`]: HSSs and PCFs; [`Wire`]: a delay before any server;
//!   [`NameServer`]: names of producers.
//! * [`Misbehaviour`]: errors, delays, silence and resets, drawn by chance, changed while a simulator runs.
//! * [`policy`]: UDR, CHF and AMF of a PCF; [`Notices`]: what its consumers are notified of; [`Commands`]: what its UEs are
//!   commanded.
//! * [`network`]: names, addresses and profiles of the simulated network, which the traffic towards it shares.

mod commands;
mod control;
pub mod diameter;
mod exchange;
mod link;
mod misbehave;
mod names;
pub mod network;
mod notices;
pub mod policy;
mod reporting;
mod roles;
mod server;
mod settings;
mod stats;
mod wire;

use std::net::SocketAddr;
use std::path::Path;
use std::process::ExitCode;

pub use commands::{Command, Commands, Ues};
pub use control::Ready;
pub use exchange::{Reply, Request};
pub use misbehave::Misbehaviour;
pub use names::NameServer;
pub use notices::Notices;
pub use reporting::ReportingSettings;
pub use roles::{Judge, Role};
pub use server::{Handle, Server};
pub use settings::{
    AlternatesOf, FarSettings, GroupRange, MovedName, NameServerSettings, PolicyCounters, PolicySubscribers,
    ProducerSettings, RemoteNrfSettings, RoleName, Settings, SlfSettings,
};
pub use stats::{Counters, Stats};
pub use wire::Wire;

/// Runs a simulator to its end: what `signalbox lab-sim` does. `args` are those after the subcommand.
#[must_use]
pub fn main(args: &[String]) -> ExitCode {
    let [file] = args else {
        eprintln!("usage: signalbox lab-sim SETTINGS.yaml");
        return ExitCode::from(2);
    };
    let settings = match ::settings::from_file::<Settings>(Path::new(file)) {
        Ok(settings) => settings,
        Err(report) => {
            eprintln!("{report}");
            return ExitCode::from(2);
        }
    };
    match serve(&settings) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("simulator: {error}");
            ExitCode::FAILURE
        }
    }
}

fn serve(settings: &Settings) -> std::io::Result<()> {
    if settings.role.is_diameter() {
        let server = diameter::DiameterServer::bind(settings)?;
        let addresses: Vec<SocketAddr> = server.addresses().to_vec();
        control::start(server.handle(), &addresses)?;
        return server.run();
    }
    if settings.role == RoleName::Wire {
        let wire = Wire::bind(settings)?;
        control::start(wire.handle(), &[wire.address()])?;
        return wire.run();
    }
    if settings.role == RoleName::NameServer {
        let server = NameServer::bind(settings)?;
        control::start(server.handle(), &[server.address()])?;
        return server.run();
    }
    let server = Server::bind(settings)?;
    let addresses: Vec<SocketAddr> = server.addresses().to_vec();
    let handle = server.handle();
    control::start(handle, &addresses)?;
    server.run()
}
