//! What is around the SCP of a run.

use std::net::SocketAddr;
use std::sync::Arc;

use super::certificates::Tls;
use super::feed::Broker;
use super::next::NextScps;
use super::nrf::{self, Nrf};
use super::producers::Producers;
use super::scale::Scale;
use crate::run::Options;
use crate::run::children::{Guarded, Simulator};
use crate::run::rig::{Place, RigError};
use callmodel::scp::{DnsSrv, ScpModel};
use simulators::{AlternatesOf, NameServerSettings, RoleName, Settings};
use workload::scp::{Addresses, Population};

/// Producers, the NRF that knows them, SCPs of other regions, a broker.
pub(super) struct Network {
    pub(super) population: Arc<Population>,
    pub(super) producers: Producers,
    /// None once a drill has it.
    pub(super) nrf: Option<Nrf>,
    /// Where the SCP asks the NRF.
    pub(super) asked: SocketAddr,
    /// The name server, where the model has records in DNS.
    pub(super) names: Option<SocketAddr>,
    /// SCPs of other regions, where the model has some.
    pub(super) next: Option<NextScps>,
    /// Where messages are copied to, or why there is none, where the model copies them.
    pub(super) broker: Option<Result<Broker, String>>,
}

impl Network {
    pub(super) fn start(
        model: &ScpModel,
        options: &Options,
        place: &Place,
        tls: Option<&Tls>,
        scale: &Scale,
    ) -> Result<Self, RigError> {
        let scheme = if tls.is_some() { "https" } else { "http" };
        let mut producers = Producers::start(model, place, tls)?;
        let population = Population::new(model, scheme, &producers.well, producers.failing.as_ref());
        let nrf = Nrf::start(model, place, tls)?;
        nrf::register(nrf.address, &population)?;
        let asked = match model.nrf_latency.is_zero() {
            true => nrf.address,
            false => {
                let wire = nrf::start_wire(model, place, nrf.address)?;
                let address = wire.addresses[0];
                producers.simulators.push(wire);
                address
            }
        };
        let names = match (model.dns_srv, &producers.well) {
            (Some(dns), Addresses::Own(port)) => {
                let server = start_names(dns, *port, place, &population)?;
                let address = server.addresses[0];
                producers.simulators.push(server);
                Some(address)
            }
            _ => None,
        };
        // An SCP that runs already knows neither SCPs of other regions nor a broker of this run.
        let is_ours = options.target.is_none();
        let next = match model.inter_scp.as_ref().filter(|_| is_ours) {
            Some(inter) => Some(NextScps::start(inter, place, tls.map(|tls| &tls.next), scale)?),
            None => None,
        };
        let broker = match model.feed.as_ref().filter(|_| is_ours) {
            Some(feed) => Some(Broker::find(
                feed,
                options.kafka,
                place,
                tls.map(|tls| &tls.broker),
            )?),
            None => None,
        };
        Ok(Self {
            population: Arc::new(population),
            producers,
            nrf: Some(nrf),
            asked,
            names,
            next,
            broker,
        })
    }

    /// Whether messages are copied.
    pub(super) fn feeds(&self) -> bool {
        matches!(self.broker, Some(Ok(_)))
    }

    /// What a reader of the report should know of the copies.
    pub(super) fn note_of_feed(&self) -> Option<String> {
        self.broker.as_ref().map(|broker| match broker {
            Ok(broker) => broker.note(),
            Err(why) => format!("{why}; the model ran without its copy of messages"),
        })
    }

    /// Its processes: simulators, and functions beside the SCP.
    pub(super) fn into_processes(self) -> (Vec<Simulator>, Vec<Guarded>) {
        let broker = self.broker.and_then(Result::ok).and_then(|broker| broker.process);
        let beside = broker.into_iter();
        let beside = beside.chain(self.nrf.map(|nrf| nrf.process));
        let beside = beside.chain(self.next.map(|next| next.process));
        (self.producers.simulators, beside.collect())
    }
}

/// Starts the name server.
fn start_names(
    dns: DnsSrv,
    port: u16,
    place: &Place,
    population: &Population,
) -> Result<Simulator, RigError> {
    let members = (0..).zip(&population.members);
    let with_records = members.filter(|(_, member)| !member.alternates.is_empty());
    let settings = Settings {
        role: RoleName::NameServer,
        latency: dns.latency,
        names: NameServerSettings {
            port,
            alternates: with_records
                .map(|(of, member)| AlternatesOf {
                    of,
                    are: member.alternates.clone(),
                })
                .collect(),
            ..NameServerSettings::default()
        },
        ..Settings::default()
    };
    let (program, folder) = (&place.program, &place.folder);
    Ok(Simulator::start(
        program,
        "names",
        &settings,
        &place.lab_cpus,
        folder,
    )?)
}
