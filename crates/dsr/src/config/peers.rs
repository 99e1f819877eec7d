//! Settings of the router's peers.

use std::net::{IpAddr, SocketAddr};

use diameter::proto::peer::{Duplicate, PeerSettings, Reopen};
use function::diameter_names::check_names;
use ipnet::IpNet;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use settings::{Faults, Percent, Period, Validate};
use tls::TlsFiles;

use super::nodes::is_identity;

/// A configured peer.
#[derive(Clone, Debug, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default, rename_all = "camelCase")]
pub struct Peer {
    /// Its DiameterIdentity, which its Origin-Host must equal.
    pub host: String,
    /// Addresses to connect to, tried in turn; empty: the peer connects to the router.
    #[schemars(with = "Vec<String>")]
    pub addresses: Vec<SocketAddr>,
    /// Names to connect to, resolved before each attempt (RFC 6733 §5.2) and tried after `addresses`:
    /// `hss1.example.org:3868` is a host; `example.org` has NAPTR records for Diameter, else SRV records of
    /// `_diameter._tcp`, else is a host at port 3868 (with TLS: `_diameters._tcp`, 5868).
    pub names: Vec<String>,
    /// Networks it may connect from, beside its `addresses`; any other that gives its name is refused
    /// (DIAMETER_UNKNOWN_PEER), unless a certificate proves the name (`matchIdentity`). Without either: from this
    /// machine. `0.0.0.0/0` and `::/0` admit every client that knows the name.
    #[schemars(with = "Vec<String>")]
    pub networks: Vec<IpNet>,
    /// Our address when connecting; absent: the system's choice.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bind: Option<IpAddr>,
    /// Further addresses of ours over SCTP, when connecting: paths that the association moves to where one fails.
    pub bind_also: Vec<IpAddr>,
    /// Transport of the connection.
    pub transport: TransportKind,
    /// Names of the local nodes that each have a connection with it; empty: the first local node.
    pub local_nodes: Vec<String>,
    /// The message processor that holds its connections; absent: spread evenly.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub worker: Option<usize>,
    /// TLS when connecting; absent: in the clear.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tls: Option<TlsFiles>,
    /// Whether TLS begins after CER and CEA in the clear, as RFC 3588 has it (RFC 6733 §13.1), in place of the first byte. A
    /// server that offers none is disconnected.
    pub inband_security: bool,
    /// Whether its requests without the P flag are relayed. RFC 6733 §3 forbids it, but some stacks leave the flag out
    /// unless an application sets it; the flag stays as it is.
    pub relay_without_p_flag: bool,
    /// Timers and policy of its connections.
    pub timers: Timers,
    /// Table of peer route rules for its requests; empty: that of the application, else the default table.
    pub peer_route_table: String,
    /// Table of application route rules for its requests; empty: that of the application, else the default
    /// table.
    pub application_route_table: String,
    /// Timeout of its answers; absent: `routing.transaction.answer`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub answer_timeout: Option<Period>,
    /// DRMP priority of its requests that have none (0 most important, 15 least); absent: 10.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 15))]
    pub priority: Option<u8>,
    /// Bound of the requests per second that the router accepts from it; absent: `ingress` of the router.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ingress: Option<Ingress>,
    /// Applications it may send requests of; others are answered DIAMETER_APPLICATION_UNSUPPORTED. Empty: any.
    pub accepts: Vec<u32>,
    /// Whether it belongs to a foreign network: `topologyHiding` applies.
    pub untrusted: bool,
    /// Whether the DRMP priority (RFC 7944) of its requests counts; absent: unless `untrusted`. Where it does not,
    /// `priority` does.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trust_priority: Option<bool>,
    /// Whether its overload reports (RFC 7683) take effect and are relayed, and those of others are sent to it; absent:
    /// unless `untrusted`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trust_overload_reports: Option<bool>,
    /// Whether it is another message processor of this router, in another process. It has the same configuration; a
    /// message from one sibling is never sent to another.
    pub sibling: bool,
    /// Admin endpoint of a sibling, which is queried each second for its demand on throttle groups that are shared with it
    /// (`throttleGroups[].sharedWithSiblings`). Absent: it has an equal part of their rates.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>", extend("format" = "socket-address"))]
    pub admin: Option<SocketAddr>,
    /// Whether it is the other router of a mated pair, which carries our traffic when this router is unavailable, and
    /// vice versa: while it is available, `indicators.mpCpuWithMate` is the threshold of alarm 10204.
    pub mate: bool,
    /// The sibling that has its connection; empty: this router has it.
    pub via: String,
}

/// Bound of the requests per second of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default, rename_all = "camelCase")]
pub struct Ingress {
    /// Requests within this rate are green: discarded last under overload. 0: all are.
    pub reserved: u32,
    /// Requests beyond this rate are discarded. 0: unbounded.
    pub maximum: u32,
}

impl Validate for Ingress {
    fn validate(&self, faults: &mut Faults) {
        if self.maximum > 0 && self.reserved > self.maximum {
            faults
                .at("reserved")
                .say("is more than maximum", "at most maximum");
        }
    }
}

/// A rate for requests to several peers together.
#[derive(Clone, Debug, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default, rename_all = "camelCase")]
pub struct ThrottleGroup {
    /// Name.
    pub name: String,
    /// The peers' DiameterIdentities.
    pub peers: Vec<String>,
    /// Requests per second to all of them; each message processor keeps the share of the available peers that it owns.
    pub rate: u32,
    /// Whether siblings (`peers[].sibling`) have the group as well, with connections of their own to its peers: each that
    /// is available has a part of the rate. The parts follow the demand of each where the siblings know one another's
    /// admin endpoints (`peers[].admin`), else they are equal.
    pub shared_with_siblings: bool,
    /// Below the rate, less important requests already go to other peers: levels by rising load.
    pub levels: Vec<ThrottleLevel>,
}

/// A level of an egress throttle group.
#[derive(Clone, Debug, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default, rename_all = "camelCase")]
pub struct ThrottleLevel {
    /// The share of the rate from which the level is in effect.
    pub at: Percent,
    /// Requests less important than this DRMP priority are not sent to the group.
    #[schemars(range(min = 0, max = 15))]
    pub priority: u8,
}

/// Transport of a connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum TransportKind {
    /// TCP.
    #[default]
    Tcp,
    /// SCTP of the system's kernel; where the kernel has none, connecting and listening fail with that reason.
    Sctp,
}

impl TransportKind {
    pub(crate) const fn driver(self) -> diameter::Transport {
        match self {
            Self::Tcp => diameter::Transport::Tcp,
            Self::Sctp => diameter::Transport::Sctp,
        }
    }
}

impl Validate for Peer {
    fn validate(&self, faults: &mut Faults) {
        if self.inband_security && self.tls.is_none() {
            let right = "tls, or inbandSecurity: false";
            faults.at("inbandSecurity").say("needs keys", right);
        }
        if !is_identity(&self.host) {
            faults.at("host").say(
                format!("`{}` is not a valid DiameterIdentity", self.host),
                "a name such as hss1.epc.example.org",
            );
        }
        if let Some(files) = &self.tls {
            files.validate_peer("tls", faults);
        }
        if !self.bind_also.is_empty() && (self.transport != TransportKind::Sctp || self.bind.is_none()) {
            faults
                .at("bindAlso")
                .say("needs SCTP and a first address", "transport: sctp, and bind");
        }
        faults.within("timers", &self.timers);
        faults.within("ingress", &self.ingress);
        if !self.via.is_empty() && self.is_connected_to() {
            faults
                .at("via")
                .say("and addresses or names exclude one another", "one of them");
        }
        if self.admin.is_some() && !self.sibling {
            faults
                .at("admin")
                .say("is queried of siblings only", "sibling: true, or no admin");
        }
        check_names(&self.names, faults);
    }
}

/// Peers that may connect without an entry of their own. The first rule that matches counts.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default, rename_all = "camelCase")]
pub struct DynamicPeers {
    /// Origin-Realms that are accepted: exactly, or with a leading dot all realms below. Empty: any.
    pub realms: Vec<String>,
    /// Networks from which they may connect. Empty: any.
    #[schemars(with = "Vec<String>")]
    pub networks: Vec<IpNet>,
    /// Whether only over TLS.
    pub tls_only: bool,
    /// Bound of such peers at one message processor.
    pub max: usize,
    /// Timers and policy of their connections.
    pub timers: Timers,
    /// Applications they may send requests of; others are answered DIAMETER_APPLICATION_UNSUPPORTED. Empty: any.
    pub accepts: Vec<u32>,
    /// Whether their requests without the P flag are relayed (RFC 6733 §3 forbids it).
    pub relay_without_p_flag: bool,
    /// Bound of the requests per second that the router accepts from each; absent: `ingress` of the router.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ingress: Option<Ingress>,
    /// Whether they belong to foreign networks: `topologyHiding` applies.
    pub untrusted: bool,
    /// Whether the DRMP priority (RFC 7944) of their requests counts; absent: unless `untrusted`. Where it does not,
    /// `priority` does.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trust_priority: Option<bool>,
    /// Whether their overload reports (RFC 7683) take effect and are relayed, and those of others are sent to them;
    /// absent: unless `untrusted`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trust_overload_reports: Option<bool>,
    /// DRMP priority of their requests that have none; absent: 10.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 15))]
    pub priority: Option<u8>,
    /// Table of peer route rules for their requests; empty: that of the application, else the default table.
    pub peer_route_table: String,
    /// Table of application route rules for their requests; empty: that of the application, else the default
    /// table.
    pub application_route_table: String,
}

impl Validate for DynamicPeers {
    fn validate(&self, faults: &mut Faults) {
        if self.max == 0 {
            faults
                .at("max")
                .say("admits no peer", "at least 1, or no such rule");
        }
        faults.within("timers", &self.timers);
        faults.within("ingress", &self.ingress);
    }
}

impl Default for DynamicPeers {
    /// The networks of this machine itself: loopback.
    fn default() -> Self {
        Self {
            realms: Vec::new(),
            networks: this_machine(),
            tls_only: false,
            max: 1024,
            timers: Timers::default(),
            accepts: Vec::new(),
            relay_without_p_flag: false,
            ingress: None,
            untrusted: false,
            trust_priority: None,
            trust_overload_reports: None,
            priority: None,
            peer_route_table: String::new(),
            application_route_table: String::new(),
        }
    }
}

impl Peer {
    /// Whether the router connects to it; else it connects to the router.
    pub(crate) fn is_connected_to(&self) -> bool {
        !self.addresses.is_empty() || !self.names.is_empty()
    }

    /// The networks it may connect from, beside its addresses.
    pub(crate) fn admitted_from(&self) -> Vec<IpNet> {
        match self.networks.is_empty() && self.addresses.is_empty() {
            true => this_machine(),
            false => self.networks.clone(),
        }
    }

    /// Whether any client that knows its name may connect, from any address.
    pub(crate) fn is_open_to_all(&self) -> bool {
        self.networks.iter().any(|network| network.prefix_len() == 0)
    }
}

/// The loopback addresses.
fn this_machine() -> Vec<IpNet> {
    let loopback = |ip: IpAddr, bits| IpNet::new(ip, bits).ok();
    [
        loopback(IpAddr::from([127, 0, 0, 0]), 8),
        loopback(std::net::Ipv6Addr::LOCALHOST.into(), 128),
    ]
    .into_iter()
    .flatten()
    .collect()
}

impl DynamicPeers {
    pub(crate) fn driver(&self) -> diameter::DynamicPeers {
        diameter::DynamicPeers {
            realms: self.realms.clone(),
            networks: self.networks.clone(),
            tls_only: self.tls_only,
            max: self.max,
            settings: self.timers.driver(),
        }
    }
}

/// Timers and policy of a connection (RFC 6733 §5, RFC 3539).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default, rename_all = "camelCase")]
pub struct Timers {
    /// Watchdog interval (RFC 3539 `Twinit`), at least 6 s.
    pub watchdog: Period,
    /// How long the peer may take to accept a connection.
    pub connect: Period,
    /// How long the peer may take to send CEA.
    pub capabilities: Period,
    /// How long the peer may take to send DPA.
    pub disconnect: Period,
    /// Pause before the first new attempt to connect; doubled for each further one …
    pub reconnect_min: Period,
    /// … up to this.
    pub reconnect_max: Period,
    /// Policy for a second connection of a peer that is connected.
    pub duplicate: DuplicatePolicy,
    /// The losses after which a new connection of a configured peer must have three answered watchdogs, while requests
    /// prefer other peers (RFC 3539 §3.4.1, state REOPEN).
    pub reopen: ReopenPolicy,
}

/// The losses after which a new connection is in state REOPEN.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum ReopenPolicy {
    /// After none.
    Never,
    /// After a connection that was closed because watchdogs went unanswered.
    AfterSilence,
    /// As `afterSilence`, and after one that broke without DPR.
    #[default]
    AfterLoss,
    /// After every one, also one that a DPR has ended.
    Always,
}

/// Policy for a second connection of a peer that is connected.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum DuplicatePolicy {
    /// Refuse the new connection (RFC 6733 §5.6) and send a DWR on the old one.
    Reject,
    /// Replace the old connection when both come from one address, else refuse.
    #[default]
    ReplaceSameAddress,
    /// Replace the old connection.
    Replace,
}

impl Default for Timers {
    fn default() -> Self {
        let driver = PeerSettings::default();
        Self {
            watchdog: Period(driver.watchdog),
            connect: Period(driver.connect_timeout),
            capabilities: Period(driver.capabilities_timeout),
            disconnect: Period(driver.disconnect_timeout),
            reconnect_min: Period(driver.reconnect_min),
            reconnect_max: Period(driver.reconnect_max),
            duplicate: DuplicatePolicy::default(),
            reopen: ReopenPolicy::default(),
        }
    }
}

impl Timers {
    pub(crate) fn driver(&self) -> PeerSettings {
        PeerSettings {
            watchdog: self.watchdog.duration(),
            connect_timeout: self.connect.duration(),
            capabilities_timeout: self.capabilities.duration(),
            disconnect_timeout: self.disconnect.duration(),
            reconnect_min: self.reconnect_min.duration(),
            reconnect_max: self.reconnect_max.duration(),
            duplicate: match self.duplicate {
                DuplicatePolicy::Reject => Duplicate::Reject,
                DuplicatePolicy::ReplaceSameAddress => Duplicate::ReplaceSameAddress,
                DuplicatePolicy::Replace => Duplicate::Replace,
            },
            reopen: match self.reopen {
                ReopenPolicy::Never => Reopen::Never,
                ReopenPolicy::AfterSilence => Reopen::AfterSilence,
                ReopenPolicy::AfterLoss => Reopen::AfterLoss,
                ReopenPolicy::Always => Reopen::Always,
            },
            ..PeerSettings::default()
        }
    }
}

/// The shortest watchdog interval (RFC 3539 §3.4.1).
const SHORTEST_WATCHDOG: Period = Period::from_secs(6);

impl Validate for Timers {
    fn validate(&self, faults: &mut Faults) {
        // RFC 3539 §3.4.1: Twinit "MUST NOT be set lower than 6 seconds".
        if self.watchdog < SHORTEST_WATCHDOG {
            let wrong = format!("is {}, shorter than RFC 3539 permits", self.watchdog);
            faults.at("watchdog").say(wrong, "at least 6s, such as 30s");
        }
        if self.reconnect_max < self.reconnect_min {
            faults
                .at("reconnectMax")
                .say("is shorter than reconnectMin", "at least reconnectMin");
        }
    }
}
