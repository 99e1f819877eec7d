//! Diameter: Gx, Rx and Sy.

use std::net::SocketAddr;

use diameter::{Security, TlsConfig};
use ipnet::IpNet;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use settings::{Faults, Listen, Period, Validate};
use tls::{TlsFiles, Watched};

/// The Diameter node of the PCF: PCEFs over Gx (TS 29.212), AFs over Rx (TS 29.214), OCSs over Sy (TS 29.219).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default, rename_all = "camelCase")]
pub struct Diameter {
    /// Whether there is one.
    pub enabled: bool,
    /// Addresses it listens at.
    pub listen: Listen,
    /// TLS from the first byte, for peers that connect and for all of `peers` (RFC 6733 §13.1); absent: in the clear. It
    /// needs `authorities`; a certificate is required (`requireClientCertificate`) and has to be about the name that its peer gives.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tls: Option<TlsFiles>,
    /// Its DiameterIdentity.
    pub host: String,
    /// Its realm.
    pub realm: String,
    /// Further realms that it serves: a request without a Destination-Host for any other is answered DIAMETER_REALM_NOT_SERVED.
    /// With a leading dot all realms below.
    #[schemars(extend("x-reload" = true))]
    pub served_realms: Vec<String>,
    /// Further hosts that it answers for, such as other PCFs of its database, whose requests a router sends here while they are
    /// unreachable: one for any other is answered DIAMETER_UNABLE_TO_DELIVER. With a leading dot all hosts below.
    #[schemars(extend("x-reload" = true))]
    pub served_hosts: Vec<String>,
    /// Peers it connects to, such as a Diameter router. Others may connect to it.
    pub peers: Vec<DiameterPeer>,
    /// Peers that send requests of others (relays, the BSF), by DiameterIdentity; with a leading dot all below. Those of `peers`
    /// are agents as well. Any other peer speaks for itself: a request whose Origin-Host is not the peer's is answered
    /// DIAMETER_UNKNOWN_SESSION_ID.
    #[schemars(extend("x-reload" = true))]
    pub agents: Vec<String>,
    /// Whether a request is refused that has an AVP with the M flag that this PCF does not know, at any depth, as RFC 6733 §4.1 demands.
    #[schemars(extend("x-reload" = true))]
    pub check_mandatory: bool,
    /// Origin-Realms of peers that may connect: exactly, or with a leading dot all realms below. Empty: any, which is for
    /// `listen` on loopback alone, unless `networks` or `tls` says who may connect.
    pub realms: Vec<String>,
    /// Networks that peers may connect from (`192.0.2.0/24`). Empty: any, as for `realms`.
    #[schemars(with = "Vec<String>")]
    pub networks: Vec<IpNet>,
    /// Peers that may be connected to each worker without being among `peers`.
    pub max_peers: usize,
    /// Requests that a worker works on at once; further ones are refused with DIAMETER_TOO_BUSY.
    pub max_calls: usize,
    /// Requests to peers that a worker holds until they are sent, and RARs that it holds until they are sent again; further ones
    /// are dropped.
    pub max_orders: usize,
    /// How long a PCEF or AF may take for its answer.
    #[schemars(extend("x-reload" = true))]
    pub timeout: Period,
    /// Attempts of a RAR to a PCEF that does not answer. After the first each one has the whole decision.
    #[schemars(extend("x-reload" = true))]
    pub attempts: u32,
    /// Pause before the second attempt; it doubles with each further one.
    #[schemars(extend("x-reload" = true))]
    pub retry_pause: Period,
    /// Longest pause before an attempt.
    #[schemars(extend("x-reload" = true))]
    pub max_retry_pause: Period,
}

/// A peer to connect to.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct DiameterPeer {
    /// Its DiameterIdentity.
    pub host: String,
    /// Its addresses, tried in turn.
    #[schemars(with = "Vec<String>")]
    pub addresses: Vec<SocketAddr>,
}

impl Default for Diameter {
    fn default() -> Self {
        Self {
            enabled: true,
            listen: Listen::local(3840),
            tls: None,
            host: "pcf.example.org".to_owned(),
            realm: "example.org".to_owned(),
            served_realms: Vec::new(),
            served_hosts: Vec::new(),
            peers: Vec::new(),
            agents: Vec::new(),
            check_mandatory: true,
            realms: Vec::new(),
            networks: Vec::new(),
            max_peers: 1_024,
            max_calls: 10_000,
            max_orders: 10_000,
            timeout: Period::from_secs(5),
            attempts: 4,
            retry_pause: Period::from_secs(1),
            max_retry_pause: Period::from_secs(30),
        }
    }
}

impl Diameter {
    /// How connections are secured; their files are among those that `watched` checks.
    ///
    /// # Errors
    /// When a file cannot be used.
    pub(crate) fn security(&self, watched: &Watched) -> Result<Security, String> {
        let Some(files) = self.tls.as_ref().filter(|_| self.enabled) else {
            return Ok(Security::None);
        };
        // `authorities` are given, so that a certificate is required where the setting does not say otherwise.
        TlsConfig::open(watched, "diameter.tls", files).map(Security::Tls)
    }
}

impl Diameter {
    /// A node that others can reach says which peers it serves.
    fn validate_admission(&self, faults: &mut Faults) {
        let is_open = self.realms.is_empty() && self.networks.is_empty() && !self.proves_peers();
        let mut reachable = self.listen.iter().filter(|address| !address.ip().is_loopback());
        if let Some(address) = reachable.next().filter(|_| self.enabled && is_open) {
            let reason = format!("is {address}, where any peer may connect");
            faults.at("listen").say(
                reason,
                "diameter.realms or diameter.networks, tls with requireClientCertificate, or a loopback address",
            );
        }
    }

    /// Whether each peer proves its name by a certificate.
    fn proves_peers(&self) -> bool {
        let files = self.tls.as_ref();
        files.is_some_and(|files| files.require_client_certificate != Some(false) && files.match_identity())
    }
}

impl Validate for Diameter {
    fn validate(&self, faults: &mut Faults) {
        if let Some(files) = &self.tls {
            files.validate_peer("tls", faults);
        }
        for (name, value) in [("host", &self.host), ("realm", &self.realm)] {
            if value.is_empty() || !value.bytes().all(|byte| byte.is_ascii_graphic()) {
                faults.at(name).say(
                    "is not a valid DiameterIdentity",
                    "a name such as pcf.example.org",
                );
            }
        }
        for (name, list) in [
            ("servedRealms", &self.served_realms),
            ("servedHosts", &self.served_hosts),
            ("agents", &self.agents),
        ] {
            for (index, value) in list.iter().enumerate() {
                let identity = value.strip_prefix('.').unwrap_or(value);
                if identity.is_empty() || !identity.bytes().all(|byte| byte.is_ascii_graphic()) {
                    faults.at(format!("{name}[{index}]")).say(
                        "is not a valid DiameterIdentity",
                        "a name such as example.org, or .example.org for all below",
                    );
                }
            }
        }
        self.validate_admission(faults);
        for (name, value) in [
            ("maxPeers", self.max_peers),
            ("maxCalls", self.max_calls),
            ("maxOrders", self.max_orders),
            ("attempts", self.attempts as usize),
        ] {
            if value == 0 {
                faults.at(name).say("is 0", "at least 1");
            }
        }
        if self.timeout.is_zero() {
            faults.at("timeout").say("is 0", "some time, such as 5s");
        }
        for (index, peer) in self.peers.iter().enumerate() {
            if peer.host.is_empty() || peer.addresses.is_empty() {
                faults
                    .at(format!("peers[{index}]"))
                    .say("has no host or no addresses", "a name and at least one address");
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mistakes(change: impl FnOnce(&mut Diameter)) -> usize {
        let mut settings = Diameter::default();
        change(&mut settings);
        let mut faults = Faults::default();
        settings.validate(&mut faults);
        faults.into_vec().len()
    }

    #[test]
    fn a_node_that_others_can_reach_says_which_peers_it_serves() {
        let reachable = || Listen(vec!["192.0.2.1:3868".parse().unwrap()]);
        assert_eq!(mistakes(|_| {}), 0, "loopback");
        assert_eq!(mistakes(|settings| settings.listen = reachable()), 1);
        let admitted = |change: fn(&mut Diameter)| {
            mistakes(|settings| {
                settings.listen = reachable();
                change(settings);
            })
        };
        assert_eq!(
            admitted(|settings| settings.realms = vec!["example.org".to_owned()]),
            0
        );
        assert_eq!(
            admitted(|settings| settings.networks = vec!["192.0.2.0/24".parse().unwrap()]),
            0
        );
        assert_eq!(admitted(|settings| settings.enabled = false), 0);
        let files = |required| TlsFiles {
            certificate: "a.pem".into(),
            key: "a.key".into(),
            authorities: Some("ca.pem".into()),
            require_client_certificate: required,
            ..TlsFiles::default()
        };
        for (required, expected) in [(None, 0), (Some(true), 0), (Some(false), 1)] {
            let found = mistakes(|settings| {
                settings.listen = reachable();
                settings.tls = Some(files(required));
            });
            assert_eq!(found, expected, "{required:?}");
        }
    }
}
