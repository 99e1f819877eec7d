//! What instructions of an STP are counted for: an MSU whose global title is translated, from one association to another.

use std::net::SocketAddr;
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use super::OURS;
use crate::bench::processes;
use crate::run::stp::{config, nodes, to_one_hlr};
use crate::run::{Place, RigError};
use callmodel::stp::{Mix, StpModel};
use settings::Percent;
use workload::stp::{Network, Share};

/// An STP between an MSC and an HLR.
#[derive(Debug)]
pub(in crate::bench) struct Counted {
    place: Place,
    model: StpModel,
    network: Arc<Network>,
}

impl Counted {
    /// With this number of translations.
    pub(in crate::bench) fn new(place: &Place, translations: u32) -> Self {
        let mix = Mix {
            translation: Percent::new(100.0),
            ..Mix::default()
        };
        let model = to_one_hlr(mix, translations);
        Self {
            place: place.clone(),
            network: Arc::new(Network::new(&model, 1)),
            model,
        }
    }

    /// Its command line, and where it will listen.
    pub(in crate::bench) fn stp(&self) -> Result<(Command, SocketAddr), RigError> {
        config::write_files(&self.model, &self.network, &self.place)?;
        processes::function(&self.place, OURS, None, |address, admin| {
            config::settings(&self.model, &self.network, &self.place, (address, admin))
        })
    }

    /// Sends messages, each when the one before has arrived.
    pub(in crate::bench) fn relay(
        &self,
        address: SocketAddr,
        count: u32,
        patience: Duration,
    ) -> Result<(), RigError> {
        let whole = Share {
            thread: 0,
            threads: 1,
        };
        let mut nodes = nodes(&self.network, whole, (address, patience), patience)?;
        let right = nodes
            .exchange(count, patience)
            .map_err(RigError::io("sending messages through the STP"))?;
        if right == u64::from(count) {
            return Ok(());
        }
        Err(RigError::Settings(format!(
            "{right} of {count} messages arrived right"
        )))
    }
}
