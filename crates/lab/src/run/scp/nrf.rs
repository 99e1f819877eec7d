//! The NRF of a run, and the profiles and subscriptions that it gets.

use std::net::SocketAddr;
use std::path::PathBuf;

use super::certificates::Tls;
use super::{PATIENCE, config, start_function};
use crate::run::children::{Guarded, Simulator};
use crate::run::rig::{Place, RigError, free_address, write_config};
use callmodel::scp::ScpModel;
use loadgen::client::{Client, Request};
use simulators::{RoleName, Settings};
use workload::scp::Population;

/// An NRF, which may be killed and started again.
pub(super) struct Nrf {
    pub(super) process: Guarded,
    pub(super) address: SocketAddr,
    pub(super) file: PathBuf,
}

impl Nrf {
    pub(super) fn start(model: &ScpModel, place: &Place, tls: Option<&Tls>) -> Result<Self, RigError> {
        let address = free_address()?;
        // A run begins with an empty NRF, also in a folder that was used before.
        let store = place.empty_folder("nrf-store")?;
        let file = place.folder.join("nrf.yaml");
        let made = config::nrf(model, address, &store, tls.map(|tls| &tls.nrf))?;
        write_config(&file, made, None)?;
        let process = start_function(place, "nrf", &place.lab_cpus, &file, address)?;
        Ok(Self {
            process,
            address,
            file,
        })
    }
}

/// A wire to the NRF, by which its answers come later.
pub(super) fn start_wire(model: &ScpModel, place: &Place, nrf: SocketAddr) -> Result<Simulator, RigError> {
    let settings = Settings {
        role: RoleName::Wire,
        latency: model.nrf_latency,
        upstream: Some(nrf),
        ..Settings::default()
    };
    let started = Simulator::start(
        &place.program,
        "nrf-wire",
        &settings,
        &place.lab_cpus,
        &place.folder,
    )?;
    Ok(started)
}

/// Registers the producers.
pub(super) fn register(nrf: SocketAddr, population: &Population) -> Result<(), RigError> {
    let io = || RigError::io("registering the producers");
    let mut client = Client::connect(nrf, PATIENCE).map_err(io())?;
    let requests: Vec<Request> = population
        .members
        .iter()
        .map(|member| {
            Request::new("PUT", format!("/nnrf-nfm/v1/nf-instances/{}", member.id))
                .with("application/json", member.profile.to_string())
        })
        .collect();
    let answers = client.exchange(&requests).map_err(io())?;
    match answers.iter().find(|answer| !(200..300).contains(&answer.status)) {
        None => Ok(()),
        Some(refused) => Err(RigError::Settings(format!(
            "the NRF answered {} to a registration: {}",
            refused.status,
            refused.text()
        ))),
    }
}
