//! Diameter Rx.

use std::net::SocketAddr;

use diameter::{Security, TlsConfig};
use function::diameter_names::check_names;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use settings::{Faults, Listen, Period, Validate};
use tls::{TlsFiles, Watched};

/// The agent for Rx requests (TS 29.214; TS 29.513 §8.2, TS 29.213 §7 for the procedures).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default, rename_all = "camelCase")]
pub struct Rx {
    /// Whether there is one.
    pub enabled: bool,
    /// Addresses it listens at.
    pub listen: Listen,
    /// Addresses it listens at over SCTP of the system's kernel (RFC 6733 §2.1); where the kernel has none, the start
    /// fails and says so.
    pub sctp_listen: Listen,
    /// TLS from the first byte, for those who connect and for all of `peers` (RFC 6733 §13.1); absent: in the
    /// clear. It needs `authorities`; a certificate is required (`requireClientCertificate`) and has to be about the name that its
    /// peer gives.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tls: Option<TlsFiles>,
    /// Its DiameterIdentity.
    pub host: String,
    /// Its realm.
    pub realm: String,
    /// Whether it passes requests on or says where to send them.
    #[schemars(extend("x-reload" = true))]
    pub mode: RxMode,
    /// Peers it connects to: PCFs by the name that bindings give as `pcfDiamHost`, relays, AFs. Others may
    /// connect to it.
    pub peers: Vec<RxPeer>,
    /// Peers that requests go to when the PCF or AF is not connected itself, in this order.
    #[schemars(extend("x-reload" = true))]
    pub relays: Vec<String>,
    /// How long an answer may take.
    #[schemars(extend("x-reload" = true))]
    pub timeout: Period,
    /// How often a request is sent, the first time included, while connections end before the answer; all within
    /// `timeout`.
    #[schemars(extend("x-reload" = true))]
    pub attempts: usize,
    /// Sessions whose path is remembered, in memory and in the store. Those forgotten are routed by
    /// Destination-Host, as RFC 6733 has it.
    pub max_sessions: usize,
    /// Whether the path of a session is kept in the store, so that its requests find the way after a restart, on
    /// any worker, and through another BSF on the same database. The AF has its answer once the path is durable.
    #[schemars(extend("x-reload" = true))]
    pub keep_sessions: bool,
    /// How long the store keeps a path after the last request of its Rx session.
    pub session_lifetime: Period,
    /// Requests of one peer that are accepted in a second; 0: any number.
    #[schemars(extend("x-reload" = true))]
    pub peer_rate: u32,
    /// Requests for which a binding or a path is being looked up, in each worker; further ones are refused.
    #[schemars(extend("x-reload" = true))]
    pub max_lookups: usize,
    /// Requests on their way from one worker to another; further ones are refused.
    pub max_crossing: usize,
    /// Whether a request is refused that has an AVP with the M flag that this BSF does not know, as a proxy has
    /// to (RFC 6733 §4.1). A redirect agent never looks.
    #[schemars(extend("x-reload" = true))]
    pub check_mandatory: bool,
    /// Whether overload reports (RFC 7683) and loads (RFC 8583) are requested of PCFs and obeyed: a reduction diverts
    /// sessions that begin to another PCF of the set or refuses them, then requests of sessions that exist.
    #[schemars(extend("x-reload" = true))]
    pub overload_reports: bool,
    /// Origin-Realms of peers that may connect: exactly, or with a leading dot all realms below. Empty: any.
    pub realms: Vec<String>,
    /// Peers that may be connected to each worker without being among `peers`.
    pub max_peers: usize,
    /// Result of a request whose session has no binding.
    #[schemars(extend("x-reload" = true))]
    pub no_binding: NoBinding,
    /// Redirect mode: how long an AF may use an answer for the session.
    #[schemars(extend("x-reload" = true))]
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
    #[serde(default)]
    #[schemars(with = "Vec<String>")]
    pub addresses: Vec<SocketAddr>,
    /// Names of where to connect, resolved before each attempt (RFC 6733 §5.2) and tried after `addresses`:
    /// `pcf1.example.org:3868` is a host; `example.org` has NAPTR records for Diameter, else SRV records of
    /// `_diameter._tcp`, else is a host at port 3868 (with TLS: `_diameters._tcp`, 5868).
    #[serde(default)]
    pub names: Vec<String>,
    /// What carries the messages.
    #[serde(default)]
    pub transport: RxTransport,
}

/// What carries Diameter messages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum RxTransport {
    /// TCP, with `rx.tls` TLS.
    #[default]
    Tcp,
    /// SCTP of the system's kernel, without TLS.
    Sctp,
}

impl Default for Rx {
    fn default() -> Self {
        Self {
            enabled: true,
            listen: Listen::local(3830),
            sctp_listen: Listen(Vec::new()),
            tls: None,
            host: "bsf.example.org".to_owned(),
            realm: "example.org".to_owned(),
            mode: RxMode::default(),
            peers: Vec::new(),
            relays: Vec::new(),
            timeout: Period::from_secs(5),
            attempts: 3,
            max_sessions: 1_000_000,
            keep_sessions: true,
            session_lifetime: Period::from_secs(7 * 86_400),
            peer_rate: 0,
            max_lookups: 10_000,
            max_crossing: 10_000,
            check_mandatory: true,
            overload_reports: true,
            realms: Vec::new(),
            max_peers: 1_024,
            no_binding: NoBinding::default(),
            redirect_cache_time: Period::from_secs(60),
        }
    }
}

impl Rx {
    /// How connections are secured; their files are among those that `watched` checks.
    ///
    /// # Errors
    /// When a file cannot be used.
    pub(crate) fn security(&self, watched: &Watched) -> Result<Security, String> {
        let Some(files) = self.tls.as_ref().filter(|_| self.enabled) else {
            return Ok(Security::None);
        };
        // `authorities` are given, so that a certificate is required where the setting does not say otherwise.
        TlsConfig::open(watched, "rx.tls", files).map(Security::Tls)
    }
}

impl Validate for RxPeer {
    fn validate(&self, faults: &mut Faults) {
        check_names(&self.names, faults);
    }
}

impl Validate for Rx {
    fn validate(&self, faults: &mut Faults) {
        if let Some(files) = &self.tls {
            files.validate_peer("tls", faults);
        }
        for (name, value) in [("host", &self.host), ("realm", &self.realm)] {
            if value.is_empty() || !value.is_ascii() {
                faults.at(name).say(
                    "is not a valid DiameterIdentity",
                    "a name such as bsf.example.org",
                );
            }
        }
        let over_sctp = |peer: &RxPeer| peer.transport == RxTransport::Sctp;
        if self.tls.is_some() && (!self.sctp_listen.0.is_empty() || self.peers.iter().any(over_sctp)) {
            faults
                .at("tls")
                .say("is not available over SCTP", "no tls, or TCP alone");
        }
        if self.max_sessions < 2 {
            faults.at("maxSessions").say("is too small", "at least 2");
        }
        for (name, value) in [
            ("maxLookups", self.max_lookups),
            ("maxCrossing", self.max_crossing),
            ("maxPeers", self.max_peers),
            ("attempts", self.attempts),
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
            if peer.host.is_empty() || peer.addresses.is_empty() && peer.names.is_empty() {
                faults.at(format!("peers[{index}]")).say(
                    "has no host or no addresses",
                    "a name, and at least one address or one of `names`",
                );
            }
            faults.within(format!("peers[{index}]"), peer);
        }
    }
}
