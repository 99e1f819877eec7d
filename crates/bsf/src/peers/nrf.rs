//! This BSF at the NRFs: its profile, and its queries (TS 29.510).

use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use nrf_client::{Nrfs, Presence, Turns};
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use sbi::client::Client;
use sbi::dns::Dns;
use serde_json::{Value, json};
use telemetry::{AlarmKind, Alarms, Severity};

use crate::config::Config;
use crate::state::{State, Switches};

/// Between attempts to register.
const RETRY: Duration = Duration::from_secs(1);

/// The NRFs of the configuration.
pub(crate) fn nrfs(config: &Config, client: Client, names: Option<Dns>) -> Rc<Nrfs> {
    let settings = &config.nrf;
    let nrfs = Nrfs::new(
        Turns::new(&settings.api_roots),
        client,
        settings.timeout.duration(),
    );
    let nrfs = nrfs.by_services(names.filter(|_| settings.dns_srv));
    Rc::new(nrfs.as_instance(&config.nf_instance_id, "BSF"))
}

/// Hosts at which instances of an NF set can be reached, as the NRF orders them; empty when it knows none or does not
/// answer.
pub(crate) async fn hosts_of_set(nrfs: &Nrfs, set: &str) -> Vec<String> {
    // TS 23.003 §28.12: set12.amfset.5gc.mnc001.mcc001
    let nf_type = set.split('.').nth(1).and_then(|label| label.strip_suffix("set"));
    let Some(nf_type) = nf_type.filter(|nf_type| !nf_type.is_empty()) else {
        return Vec::new();
    };
    let path = format!(
        "/nnrf-disc/v1/nf-instances?target-nf-type={}&requester-nf-type=BSF&target-nf-set-id={}",
        utf8_percent_encode(&nf_type.to_ascii_uppercase(), NON_ALPHANUMERIC),
        utf8_percent_encode(set, NON_ALPHANUMERIC)
    );
    let Some(body) = nrfs.get(&path).await else {
        return Vec::new();
    };
    let found: Value = serde_json::from_slice(&body).unwrap_or_default();
    let instances = found.get("nfInstances").and_then(Value::as_array);
    instances.into_iter().flatten().filter_map(host_of).collect()
}

/// Where an NF instance is, as an authority has it.
fn host_of(profile: &Value) -> Option<String> {
    let first = |name: &str| profile.get(name)?.get(0)?.as_str();
    let own = profile.get("fqdn").and_then(Value::as_str);
    own.or_else(|| first("ipv4Addresses"))
        .map(str::to_owned)
        .or_else(|| Some(format!("[{}]", first("ipv6Addresses")?)))
}

/// No NRF answers or accepts the registration. The number is ours.
const NOT_REGISTERED: AlarmKind = AlarmKind {
    number: 10540,
    name: "BSF Not Registered",
    severity: Severity::Major,
    text: "No NRF has accepted the registration of the function, so consumers do not find it.",
    advice: "Check `nrf.apiRoots` and the log; the alarm clears by itself.",
};

/// A BSF as an NRF knows it.
pub(crate) struct Registration {
    config: Arc<Config>,
    address: SocketAddr,
    switches: Arc<Switches>,
    alarms: Alarms,
}

impl Registration {
    pub(crate) fn new(
        config: Arc<Config>,
        address: SocketAddr,
        switches: Arc<Switches>,
        alarms: Alarms,
    ) -> Self {
        Self {
            config,
            address,
            switches,
            alarms,
        }
    }
}

impl Presence for Registration {
    fn id(&self) -> &str {
        &self.config.nf_instance_id
    }

    /// Who is shut down in steps is not to be found by new consumers (TS 29.510 §6.1.6.3.7).
    fn status(&self) -> &'static str {
        match self.switches.state() {
            State::Serving => "REGISTERED",
            State::Partial => "UNDISCOVERABLE",
            State::Complete => "SUSPENDED",
        }
    }

    fn load(&self) -> u8 {
        u8::try_from(self.switches.load()).unwrap_or(100)
    }

    fn heart_beat(&self) -> Duration {
        self.config.nrf.heart_beat.duration()
    }

    fn retry(&self) -> Duration {
        RETRY
    }

    fn report(&self, registered: bool) {
        let wrong = (!registered).then(|| "no NRF has accepted the registration".to_owned());
        self.alarms.set(&NOT_REGISTERED, "nrf", wrong);
    }

    fn profile(&self) -> Value {
        let scheme = if self.config.tls.is_some() {
            "https"
        } else {
            "http"
        };
        let (ip, port) = (self.address.ip().to_string(), self.address.port());
        let (member, service_member, addresses) = match self.address {
            SocketAddr::V4(_) => ("ipv4Addresses", "ipv4Address", [ip.clone()]),
            SocketAddr::V6(_) => ("ipv6Addresses", "ipv6Address", [ip.clone()]),
        };
        let mut profile = json!({
            "nfInstanceId": self.config.nf_instance_id,
            "nfType": "BSF",
            "nfStatus": self.status(),
            "heartBeatTimer": self.config.nrf.heart_beat.duration().as_secs(),
            "load": self.switches.load(),
            member: addresses,
            "bsfInfo": {},
            "nfServices": [{
                "serviceInstanceId": "nbsf-management",
                "serviceName": "nbsf-management",
                "versions": [{"apiVersionInUri": "v1", "apiFullVersion": "1.3.1"}],
                "scheme": scheme,
                "nfServiceStatus": "REGISTERED",
                "ipEndPoints": [{service_member: ip, "port": port}],
            }],
        });
        for (name, value) in &self.config.nrf.profile {
            profile[name.as_str()] = value.clone();
        }
        profile
    }
}
