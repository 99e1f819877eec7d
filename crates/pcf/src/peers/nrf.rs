//! This PCF at the NRFs: its profile and its registration (TS 29.510 §5.2.2.2).

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use nrf_client::Presence;
use serde_json::{Value, json};
use telemetry::{AlarmKind, Alarms, Severity};

use crate::config::Config;
use crate::state::{State, Switches};

/// The services that it registers, each with the version of its OpenAPI file.
const SERVICES: &[(&str, &str)] = &[
    ("npcf-smpolicycontrol", "1.2.4"),
    ("npcf-am-policy-control", "1.2.1"),
    ("npcf-ue-policy-control", "1.2.1"),
    ("npcf-policyauthorization", "1.2.3"),
];

/// Pause between attempts to register.
const RETRY: Duration = Duration::from_secs(1);

/// No NRF answers or accepts the registration. The number is ours.
const NOT_REGISTERED: AlarmKind = AlarmKind {
    number: 10560,
    name: "PCF Not Registered",
    severity: Severity::Major,
    text: "No NRF has accepted the registration of the function, so consumers do not find it.",
    advice: "Check `nrf.apiRoots` and the log; the alarm clears by itself.",
};

/// A PCF as an NRF knows it.
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

    /// New consumers do not discover a PCF that is being shut down in steps (TS 29.510 §6.1.6.3.7).
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
        let services: Vec<Value> = SERVICES
            .iter()
            .map(|(name, full_version)| {
                json!({
                    "serviceInstanceId": name,
                    "serviceName": name,
                    "versions": [{"apiVersionInUri": "v1", "apiFullVersion": full_version}],
                    "scheme": scheme,
                    "nfServiceStatus": "REGISTERED",
                    "ipEndPoints": [{service_member: ip, "port": port}],
                })
            })
            .collect();
        let mut profile = json!({
            "nfInstanceId": self.config.nf_instance_id,
            "nfType": "PCF",
            "nfStatus": self.status(),
            "heartBeatTimer": self.config.nrf.heart_beat.duration().as_secs(),
            "load": self.switches.load(),
            member: addresses,
            "pcfInfo": {},
            "nfServices": services,
        });
        for (name, value) in &self.config.nrf.profile {
            profile[name.as_str()] = value.clone();
        }
        profile
    }
}
