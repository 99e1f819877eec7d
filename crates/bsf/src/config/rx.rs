//! Diameter Rx.

use std::net::SocketAddr;

use diameter::tls::FollowedTls;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use settings::{Faults, Listen, Period, Validate};

/// The agent for Rx requests (TS 29.214; TS 29.513 §8.2, TS 29.213 §7 for the procedures).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default, rename_all = "camelCase")]
pub struct Rx {
    /// Whether there is one.
    pub enabled: bool,
    /// Addresses it listens at.
    pub listen: Listen,
    /// TLS from the first byte, for those who connect and for all of `peers` (RFC 6733 §13.1); absent: in the
    /// clear. It needs `authorities`; a certificate has to be about the name that its peer gives.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tls: Option<sbi::tls::TlsFiles>,
    /// Its DiameterIdentity.
    pub host: String,
    /// Its realm.
    pub realm: String,
    /// Whether it passes requests on or says where to send them.
    pub mode: RxMode,
    /// Peers it connects to: PCFs by the name that bindings give as `pcfDiamHost`, relays, AFs. Others may
    /// connect to it.
    pub peers: Vec<RxPeer>,
    /// Peers that requests go to when the PCF or AF is not connected itself, in this order.
    pub relays: Vec<String>,
    /// How long an answer may take.
    pub timeout: Period,
    /// Sessions whose path is remembered, in memory and in the store. Those forgotten are routed by
    /// Destination-Host, as RFC 6733 has it.
    pub max_sessions: usize,
    /// Whether the path of a session is kept in the store, so that its requests find the way after a restart, on
    /// any worker, and through another BSF on the same database. The AF has its answer once the path is durable.
    pub keep_sessions: bool,
    /// How long a path that nobody uses is kept in the store.
    pub session_lifetime: Period,
    /// Requests of one peer that are accepted in a second; 0: any number.
    pub peer_rate: u32,
    /// Requests for which a binding or a path is being looked up, in each worker; further ones are refused.
    pub max_lookups: usize,
    /// Requests on their way from one worker to another; further ones are refused.
    pub max_crossing: usize,
    /// Whether a request is refused that has an AVP with the M flag that this BSF does not know, as a proxy has
    /// to (RFC 6733 §4.1). A redirect agent never looks.
    pub check_mandatory: bool,
    /// Origin-Realms of peers that may connect: exactly, or with a leading dot all realms below. Empty: any.
    pub realms: Vec<String>,
    /// Peers that may be connected to each worker without being among `peers`.
    pub max_peers: usize,
    /// Result of a request whose session has no binding.
    pub no_binding: NoBinding,
    /// Redirect mode: how long an AF may use an answer for the session.
    pub redirect_cache_time: Period,
}

/// What the agent does with a request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum RxMode {
    /// It passes it on and keeps the session on one path.
    #[default]
    Proxy,
    /// It answers with the PCF's name (DIAMETER_REDIRECT_INDICATION).
    Redirect,
}

/// Result of a request whose session has no binding.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum NoBinding {
    /// DIAMETER_UNABLE_TO_DELIVER (3002).
    #[default]
    UnableToDeliver,
    /// IP-CAN_SESSION_NOT_AVAILABLE (5065, TS 29.214 §5.5), as a PCF would say.
    IpCanSessionNotAvailable,
}

/// A peer to connect to.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct RxPeer {
    /// Its DiameterIdentity.
    pub host: String,
    /// Its addresses, tried in turn.
    #[schemars(with = "Vec<String>")]
    pub addresses: Vec<SocketAddr>,
}

impl Default for Rx {
    fn default() -> Self {
        Self {
            enabled: true,
            listen: Listen::local(3830),
            tls: None,
            host: "bsf.example.org".to_owned(),
            realm: "example.org".to_owned(),
            mode: RxMode::default(),
            peers: Vec::new(),
            relays: Vec::new(),
            timeout: Period::from_secs(5),
            max_sessions: 1_000_000,
            keep_sessions: true,
            session_lifetime: Period::from_secs(7 * 86_400),
            peer_rate: 0,
            max_lookups: 10_000,
            max_crossing: 10_000,
            check_mandatory: true,
            realms: Vec::new(),
            max_peers: 1_024,
            no_binding: NoBinding::default(),
            redirect_cache_time: Period::from_secs(60),
        }
    }
}

impl Rx {
    /// What secures connections, if there is an agent and it is to use TLS.
    ///
    /// # Errors
    /// When a file cannot be read, or they do not fit together.
    pub(crate) fn open_tls(&self) -> Result<Option<FollowedTls>, String> {
        let Some(files) = self.tls.as_ref().filter(|_| self.enabled) else {
            return Ok(None);
        };
        let files = diameter::tls::TlsFiles {
            certificates: files.certificate.clone(),
            key: files.key.clone(),
            trust: files.authorities.clone().unwrap_or_default(),
            mutual: files.require_client_certificate,
            match_identity: true,
        };
        let opened = FollowedTls::open(files).map_err(|error| format!("rx.tls: {error}"))?;
        Ok(Some(opened))
    }
}

impl Validate for Rx {
    fn validate(&self, faults: &mut Faults) {
        if self.tls.as_ref().is_some_and(|tls| tls.authorities.is_none()) {
            faults.at("tls.authorities").say(
                "is missing",
                "a PEM file with those whose certificates are trusted",
            );
        }
        for (name, value) in [("host", &self.host), ("realm", &self.realm)] {
            if value.is_empty() || !value.is_ascii() {
                faults
                    .at(name)
                    .say("is no DiameterIdentity", "a name such as bsf.example.org");
            }
        }
        if self.max_sessions < 2 {
            faults.at("maxSessions").say("is too small", "at least 2");
        }
        for (name, value) in [
            ("maxLookups", self.max_lookups),
            ("maxCrossing", self.max_crossing),
            ("maxPeers", self.max_peers),
        ] {
            if value == 0 {
                faults.at(name).say("is 0", "at least 1");
            }
        }
        if self.session_lifetime.is_zero() {
            faults.at("sessionLifetime").say("is 0", "some time, such as 7d");
        }
        if self.timeout.is_zero() {
            faults.at("timeout").say("is 0", "some time");
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
