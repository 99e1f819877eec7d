//! The SCPs of other regions: one process that listens at an address for each.

use std::net::{Ipv4Addr, SocketAddr};

use crate::run::children::Guarded;
use crate::run::figure;
use crate::run::rig::{Place, Probe, RigError, free_address, write_config};
use ::report::Check;
use callmodel::scp::{InterScp, ScpModel};
use loadgen::engine::TlsFiles;
use report::measure::Metrics;

use super::{Scale, config, start_function};

/// Tolerance of the share of requests through other SCPs, beside chance: the SCP under test does not know a producer
/// for a moment when its profile changes.
const SLACK: f64 = 0.01;
const REQUESTS: &str = "signalbox_scp_requests_total";

/// The SCPs of other regions.
pub(super) struct NextScps {
    pub(super) process: Guarded,
    pub(super) listening: Vec<SocketAddr>,
    admin: SocketAddr,
}

/// The address of the SCP of a region.
pub(super) fn address_of(region: u32) -> Ipv4Addr {
    Ipv4Addr::new(127, 2, 0, u8::try_from(region).unwrap_or(u8::MAX))
}

/// All regions but the first.
pub(super) fn others(inter: &InterScp) -> impl Iterator<Item = u32> + use<> {
    1..inter.regions
}

impl NextScps {
    /// Starts them.
    pub(super) fn start(
        inter: &InterScp,
        place: &Place,
        tls: Option<&TlsFiles>,
        scale: &Scale,
    ) -> Result<Self, RigError> {
        let (port, admin) = (free_address()?.port(), free_address()?);
        let listening: Vec<SocketAddr> = others(inter)
            .map(|region| (address_of(region), port).into())
            .collect();
        let file = place.folder.join("next-scp.yaml");
        write_config(&file, config::next(&listening, admin, tls, scale), None)?;
        Ok(Self {
            process: start_function(place, "scp", &place.lab_cpus, &file, listening[0])?,
            listening,
            admin,
        })
    }

    /// Checks that the model's share of the requests went through them.
    pub(super) fn probe(&self, model: &ScpModel, scp: SocketAddr) -> Probe {
        let (next, share) = (self.admin, model.crossing());
        Box::new(move || {
            let count =
                |admin| Metrics::read(admin).map_or(0.0, |metrics: Metrics| metrics.sum(REQUESTS, &[]));
            crossed(count(next), count(scp), share)
        })
    }
}

fn crossed(next: f64, all: f64, share: f64) -> Check {
    let got = next / all.max(1.0);
    let chance = 4.0 * (share * (1.0 - share) / all.max(1.0)).sqrt();
    Check::new(
        "through SCPs of other regions",
        format!("{:.1}% of the requests, but for chance", share * 100.0),
        format!("{:.2}% ({} of {})", got * 100.0, figure(next), figure(all)),
        all > 0.0 && (got - share).abs() <= SLACK + chance,
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn too_few_and_too_many_are_seen() {
        assert!(crossed(40_100.0, 100_000.0, 0.4).pass);
        assert!(!crossed(0.0, 100_000.0, 0.4).pass);
        assert!(!crossed(60_000.0, 100_000.0, 0.4).pass);
        assert!(!crossed(0.0, 0.0, 0.4).pass);
    }
}
