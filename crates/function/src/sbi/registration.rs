//! A function at the NRFs: its profile and its registration (TS 29.510 §5.2.2.2).

use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use ::sbi::client::Client;
use ::sbi::dns::Dns;
use nrf_client::{Nrfs, Presence, Turns, deregister, stay_registered};
use serde_json::{Value, json};
use telemetry::{AlarmKind, Alarms};

use super::config::Nrf;
use super::operational::Operational;
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
    /// Where it serves.
    pub address: SocketAddr,
    /// Its state and load.
    pub operational: Arc<Operational>,
    /// Where its alarm is raised.
    pub alarms: Alarms,
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

    fn report(&self, registered: bool) {
        let wrong = (!registered).then(|| "no NRF has accepted the registration".to_owned());
        self.alarms.set(&self.profile.not_registered, "nrf", wrong);
    }

    fn profile(&self) -> Value {
        let scheme = if self.secure { "https" } else { "http" };
        let (ip, port) = (self.address.ip().to_string(), self.address.port());
        let (member, service_member) = match self.address {
            SocketAddr::V4(_) => ("ipv4Addresses", "ipv4Address"),
            SocketAddr::V6(_) => ("ipv6Addresses", "ipv6Address"),
        };
        let service = |(name, full_version): &(&str, &str)| {
            let mut service = json!({
                "serviceInstanceId": name,
                "serviceName": name,
                "versions": [{"apiVersionInUri": "v1", "apiFullVersion": full_version}],
                "scheme": scheme,
                "nfServiceStatus": "REGISTERED",
                "ipEndPoints": [{service_member: ip, "port": port}],
            });
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
            member: [ip],
            self.profile.info: {},
            "nfServices": services,
        });
        for (name, value) in &self.settings.profile {
            profile[name.as_str()] = value.clone();
        }
        profile
    }
}
