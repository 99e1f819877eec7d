//! Waiting until the SCP under test knows its network.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use super::PATIENCE;
use crate::run::rig::RigError;
use callmodel::scp::ScpModel;
use loadgen::client::{Client, Request};
use report::measure::Metrics;
use workload::scp::{Population, Whom};

/// Waits until the SCP says that it knows all producers.
pub(super) fn learned(admin: SocketAddr, population: &Population) -> Result<(), RigError> {
    let end = Instant::now() + PATIENCE;
    let wanted = population.members.len() as f64;
    loop {
        let known = Metrics::read(admin).map_or(0.0, |metrics| metrics.sum("signalbox_scp_producers", &[]));
        if known >= wanted {
            return Ok(());
        }
        if Instant::now() > end {
            return Err(RigError::Settings(format!(
                "the SCP has learned {known} of {wanted} producers"
            )));
        }
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// Waits until an SCP that runs already can stand in for a producer that fails, which it can only when it has
/// learned the set.
pub(super) fn stands_in(model: &ScpModel, scp: SocketAddr, population: &Population) -> Result<(), RigError> {
    let io = || RigError::io("asking the SCP");
    let end = Instant::now() + PATIENCE;
    for interface in &model.interfaces {
        loop {
            let mut client = Client::connect(scp, PATIENCE).map_err(io())?;
            let request = Request::new("POST", format!("/{}/v1/contexts", interface.service))
                .header(
                    "3gpp-sbi-target-apiroot",
                    population.target(&interface.producer, 0, Whom::Failing),
                )
                .with("application/json", "{}");
            let answers = client.exchange(&[request]).map_err(io())?;
            if answers[0].status == 201 {
                break;
            }
            if Instant::now() > end {
                return Err(RigError::Settings(format!(
                    "the SCP finds no other producer for {}: {} {}",
                    interface.name,
                    answers[0].status,
                    answers[0].text()
                )));
            }
            std::thread::sleep(Duration::from_millis(100));
        }
    }
    Ok(())
}
