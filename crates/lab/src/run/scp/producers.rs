//! The producers of a run.

use std::net::SocketAddr;

use settings::Period;

use super::certificates::Tls;
use crate::run::children::Simulator;
use crate::run::rig::{Place, RigError};
use callmodel::scp::{Drill, ScpModel};
use loadgen::engine::TlsFiles;
use simulators::{FarSettings, ProducerSettings, ReportingSettings, RoleName, Settings};
use workload::scp::{Addresses, Population, locality_of};

/// The producers of a run.
pub(super) struct Producers {
    pub(super) simulators: Vec<Simulator>,
    /// Where each process listens.
    pub(super) addresses: Vec<SocketAddr>,
    pub(super) well: Addresses,
    pub(super) failing: Option<Addresses>,
}

impl Producers {
    pub(super) fn start(model: &ScpModel, place: &Place, tls: Option<&Tls>) -> Result<Self, RigError> {
        let files = tls.map(|tls| &tls.producers);
        let one = |name: &str, settings: &Settings| {
            Simulator::start(&place.program, name, settings, &place.lab_cpus, &place.folder)
        };
        let own = |simulator: &Simulator| Addresses::Own(simulator.addresses[0].port());
        if model.drill == Some(Drill::KillProducer) {
            let mut simulators = Vec::new();
            for number in 1..=model.profiles {
                let settings = producer_settings(model, settings::Listen::local(0), files);
                simulators.push(one(&format!("producer-{number}"), &settings)?);
            }
            let addresses: Vec<SocketAddr> = simulators.iter().map(|one| one.addresses[0]).collect();
            return Ok(Self {
                simulators,
                well: Addresses::Shared(addresses.clone()),
                addresses,
                failing: None,
            });
        }
        // One port at all addresses of the machine: each producer has an address of its own.
        let anywhere = settings::Listen::from(SocketAddr::from(([0, 0, 0, 0], 0)));
        if let Some(sites) = model.sites {
            let mut simulators = Vec::new();
            for (site, region) in sites.all() {
                let settings = site_settings(model, region, anywhere.clone(), files);
                simulators.push(one(&locality_of(site), &settings)?);
            }
            let addresses: Vec<SocketAddr> = simulators.iter().map(|one| one.addresses[0]).collect();
            return Ok(Self {
                simulators,
                well: Addresses::Sites(addresses.iter().map(SocketAddr::port).collect()),
                addresses,
                failing: None,
            });
        }
        let well = one("producers", &producer_settings(model, anywhere.clone(), files))?;
        let mut simulators = vec![well];
        let mut failing = None;
        if model.alternate_routed.fraction() > 0.0 {
            let mut settings = producer_settings(model, anywhere, files);
            settings.latency = model.lan_latency;
            settings.producer = ProducerSettings {
                status: 503,
                body_bytes: 100,
                ..ProducerSettings::default()
            };
            let simulator = one("failing", &settings)?;
            failing = Some(own(&simulator));
            simulators.push(simulator);
        }
        Ok(Self {
            well: own(&simulators[0]),
            addresses: simulators.iter().map(|one| one.addresses[0]).collect(),
            simulators,
            failing,
        })
    }

    /// The producer that will be killed.
    pub(super) fn take_victim(&mut self) -> Result<Simulator, RigError> {
        match self.simulators.is_empty() {
            true => Err(RigError::Settings("the run has no producer to kill".to_owned())),
            false => Ok(self.simulators.remove(0)),
        }
    }
}

/// Settings of the producers of a site.
pub(super) fn site_settings(
    model: &ScpModel,
    region: u32,
    listen: settings::Listen,
    tls: Option<&TlsFiles>,
) -> Settings {
    let mut settings = producer_settings(model, listen, tls);
    if region > 0 {
        settings.latency = settings.producer.far.latency;
    }
    settings
}

/// Settings of a process of producers that are well.
pub(super) fn producer_settings(
    model: &ScpModel,
    listen: settings::Listen,
    tls: Option<&TlsFiles>,
) -> Settings {
    let [near, far] = model
        .ways()
        .map(|way| Period::from_millis(way.as_millis() as u64));
    let regions = (0..).zip(model.regions());
    Settings {
        role: RoleName::Producer,
        listen,
        latency: near,
        producer: ProducerSettings {
            status: 201,
            body_bytes: model.response_bytes,
            reporting: ReportingSettings {
                lci: model.lci,
                oci: model.oci,
                overloaded: model
                    .oci
                    .map_or_else(Vec::new, |oci| Population::some(model, oci.instances)),
            },
            far: FarSettings {
                latency: far,
                numbers: regions
                    .filter(|(_, region)| *region > 0)
                    .map(|(number, _)| number)
                    .collect(),
            },
        },
        tls: tls.cloned(),
        ..Settings::default()
    }
}
