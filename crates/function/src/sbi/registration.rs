//! A function at the NRFs: its profile and its registration (TS 29.510 §5.2.2.2).

use std::net::{IpAddr, SocketAddr};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use ::sbi::client::Client;
use ::sbi::dns::Dns;
use nrf_client::{Nrfs, Presence, Turns, deregister, stay_registered};
use serde_json::{Value, json};
use telemetry::admin::REGISTRATION;
use telemetry::{AlarmKind, Alarms, Health};

use super::config::Nrf;
use super::operational::Operational;
use super::published::Place;
use worker::Shutdown;

/// Pause between attempts to register.
const RETRY: Duration = Duration::from_secs(1);

/// What is the same in the profile of every function of a type.
#[derive(Debug)]
pub struct Profile {
    /// The NF type (`BSF`).
    pub nf_type: &'static str,
    /// The member with what is specific to the type (`bsfInfo`).
    pub info: &'static str,
    /// The services, each with the version of its OpenAPI file.
    pub services: &'static [(&'static str, &'static str)],
    /// The types of consumers that may use a service (`allowedNfTypes`, TS 29.510 §6.1.6.2.3); none: all.
    pub allowed_nf_types: fn(&str) -> &'static [&'static str],
    /// Raised while no NRF accepts the registration.
    pub not_registered: AlarmKind,
}

/// The NRFs of the configuration, as an instance of the type sends requests to them.
#[must_use]
pub fn nrfs(settings: &Nrf, nf_type: &str, instance: &str, client: Client, names: Option<Dns>) -> Nrfs {
    let turns = Turns::new(&settings.api_roots);
    let nrfs = Nrfs::new(turns, client, settings.timeout.duration());
    let nrfs = nrfs.by_services(names.filter(|_| settings.dns_srv));
    nrfs.as_instance(instance, nf_type)
}

/// A function as an NRF knows it.
#[derive(Debug)]
pub struct Registration {
    /// What it is.
    pub profile: &'static Profile,
    /// Its `nfInstanceId`.
    pub instance: String,
    /// How it registers.
    pub settings: Nrf,
    /// Whether its service-based interface has TLS.
    pub secure: bool,
    /// Where it listens.
    pub listens: Vec<SocketAddr>,
    /// The root of its URIs.
    pub root: String,
    /// Its state and load.
    pub operational: Arc<Operational>,
    /// Where its alarm is raised.
    pub alarms: Alarms,
    /// Where it says whether, where and since when it is registered.
    pub health: Health,
}

impl Registration {
    /// Stays registered at the NRFs until the shutdown, then deregisters.
    pub async fn stay_until(&self, shutdown: Shutdown, nrfs: &Rc<Nrfs>) {
        tokio::select! {
            () = stay_registered(nrfs, self) => {}
            () = shutdown.fired() => {}
        }
        deregister(nrfs, self.id()).await;
    }
}

impl Presence for Registration {
    fn id(&self) -> &str {
        &self.instance
    }

    fn status(&self) -> &'static str {
        self.operational.state().nf_status()
    }

    fn load(&self) -> u8 {
        self.operational.load()
    }

    fn heart_beat(&self) -> Duration {
        self.settings.heart_beat.duration()
    }

    fn retry(&self) -> Duration {
        RETRY
    }

    fn report(&self, outcome: Result<&str, &str>) {
        let registration = self.health.dependency(REGISTRATION);
        let not_registered = &self.profile.not_registered;
        match outcome {
            Ok(nrf) => {
                registration.succeeded(&format!("registered at {nrf}"));
                self.alarms.clear(not_registered, "nrf");
            }
            Err(reason) => {
                let roots = self.settings.api_roots.join(", ");
                let reason = format!("no NRF has accepted the registration ({roots}): {reason}");
                registration.failed(&reason);
                self.alarms.raise(not_registered, "nrf", reason);
            }
        }
    }

    fn profile(&self) -> Value {
        let scheme = if self.secure { "https" } else { "http" };
        let place = Place::of(&self.listens, &self.root, &self.settings.api_roots);
        let points: Vec<Value> = match &place.name {
            Some((_, port)) => vec![json!({"port": port})],
            None => place.addresses.iter().map(end_point).collect(),
        };
        let service = |(name, full_version): &(&str, &str)| {
            let mut service = json!({
                "serviceInstanceId": name,
                "serviceName": name,
                "versions": [{"apiVersionInUri": "v1", "apiFullVersion": full_version}],
                "scheme": scheme,
                "nfServiceStatus": "REGISTERED",
                "ipEndPoints": points,
            });
            if let Some((name, _)) = &place.name {
                service["fqdn"] = json!(name);
            }
            let allowed = (self.profile.allowed_nf_types)(name);
            if !allowed.is_empty() {
                service["allowedNfTypes"] = json!(allowed);
            }
            service
        };
        let services: Vec<Value> = self.profile.services.iter().map(service).collect();
        let mut profile = json!({
            "nfInstanceId": self.instance,
            "nfType": self.profile.nf_type,
            "nfStatus": self.status(),
            "heartBeatTimer": self.settings.heart_beat.duration().as_secs(),
            "load": self.load(),
            self.profile.info: {},
        });
        // A list without an item is not one (TS 29.510 §6.1.6.2.2).
        if !services.is_empty() {
            profile["nfServices"] = json!(services);
        }
        if let Some((name, _)) = &place.name {
            profile["fqdn"] = json!(name);
        }
        for (member, v6) in [("ipv4Addresses", false), ("ipv6Addresses", true)] {
            let of_family = place.addresses.iter().filter(|address| address.is_ipv6() == v6);
            let mut ips: Vec<IpAddr> = of_family.map(SocketAddr::ip).collect();
            ips.dedup();
            if !ips.is_empty() {
                profile[member] = json!(ips);
            }
        }
        for (name, value) in &self.settings.profile {
            profile[name.as_str()] = value.clone();
        }
        profile
    }
}

fn end_point(address: &SocketAddr) -> Value {
    let member = match address {
        SocketAddr::V4(_) => "ipv4Address",
        SocketAddr::V6(_) => "ipv6Address",
    };
    json!({member: address.ip(), "port": address.port()})
}
