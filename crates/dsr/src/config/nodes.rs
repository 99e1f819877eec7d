//! Who the router is, and what one message processor may hold.

use std::net::IpAddr;

use ipnet::IpNet;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use settings::{ByteSize, Faults, Listen, Period, Validate};
use tls::TlsFiles;

use super::TransportKind;

/// An identity of the router.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default, rename_all = "camelCase")]
pub struct LocalNode {
    /// Name by which peers refer to it in this file.
    pub name: String,
    /// Its DiameterIdentity, the Origin-Host of CER and CEA.
    pub host: String,
    /// Its realm.
    pub realm: String,
    /// Addresses at which it accepts connections; empty: it only connects. Over SCTP, addresses with the same port and of
    /// the same family are one end point with several homes.
    pub listen: Listen,
    /// Transport of the connections that it accepts.
    pub transport: TransportKind,
    /// Host-IP-Address in CER and CEA; empty: the address of each connection, over SCTP all of `listen`.
    pub addresses: Vec<IpAddr>,
    /// Application ids to announce; empty: the relay application (RFC 6733 §2.4), which stands for all.
    pub applications: Vec<u32>,
    /// Product-Name in CER and CEA.
    pub product: String,
    /// TLS on accepted connections (RFC 6733 §13.1); absent: in the clear.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tls: Option<TlsFiles>,
    /// Whether TLS begins after CER and CEA in the clear, as RFC 3588 has it, in place of the first byte. A CER without
    /// Inband-Security-Id 1 is refused then.
    pub inband_security: bool,
    /// Networks of IP front ends that announce each client with a PROXY header (`backends[].proxyProtocol`). Bounds and rules
    /// by address count for the client then; a connection from these networks without the header is closed.
    #[schemars(with = "Vec<String>")]
    pub front_ends: Vec<IpNet>,
    /// Further listeners under the same name: SCTP beside TCP, TLS beside clear text (RFC 6733 §2.1).
    pub listen_also: Vec<Listener>,
    /// Whether a CER without Host-IP-Address is refused (RFC 6733 §5.3.1 requires it). Nothing depends on it, so by default
    /// such a peer is admitted, counted (`signalbox_dsr_incomplete_capabilities_total`) and logged once.
    pub strict: bool,
}

/// A further listener of a local node.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default, rename_all = "camelCase")]
pub struct Listener {
    /// Addresses at which it accepts connections. Over SCTP, addresses with the same port and of the same family are one
    /// end point with several homes.
    pub listen: Listen,
    /// Transport of the connections that it accepts.
    pub transport: TransportKind,
    /// TLS on accepted connections (RFC 6733 §13.1); absent: in the clear.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tls: Option<TlsFiles>,
    /// Whether TLS begins after CER and CEA in the clear, as RFC 3588 has it, in place of the first byte.
    pub inband_security: bool,
    /// Networks of IP front ends that announce each client with a PROXY header.
    #[schemars(with = "Vec<String>")]
    pub front_ends: Vec<IpNet>,
}

impl LocalNode {
    /// Every listener, the first one of `listen` itself.
    pub(crate) fn listeners(&self) -> impl Iterator<Item = Listener> {
        let first = Listener {
            listen: self.listen.clone(),
            transport: self.transport,
            tls: self.tls.clone(),
            inband_security: self.inband_security,
            front_ends: self.front_ends.clone(),
        };
        std::iter::once(first).chain(self.listen_also.iter().cloned())
    }
}

impl Validate for Listener {
    fn validate(&self, faults: &mut Faults) {
        if let Some(files) = &self.tls {
            files.validate_peer("tls", faults);
        }
        if self.tls.is_some() && self.transport == TransportKind::Sctp {
            faults
                .at("tls")
                .say("is not available over SCTP", "transport: tcp, or no tls");
        }
        if self.inband_security && self.tls.is_none() {
            let right = "tls, or inbandSecurity: false";
            faults.at("inbandSecurity").say("needs keys", right);
        }
        if !self.front_ends.is_empty() && self.transport == TransportKind::Sctp {
            let right = "transport: tcp: an IP front end relays TCP only";
            faults.at("frontEnds").say("is not available over SCTP", right);
        }
    }
}

impl Default for LocalNode {
    fn default() -> Self {
        Self {
            name: "dsr".to_owned(),
            host: "dsr.signalbox.example".to_owned(),
            realm: "signalbox.example".to_owned(),
            listen: Listen::local(3868),
            transport: TransportKind::default(),
            addresses: Vec::new(),
            applications: Vec::new(),
            product: "Signalbox DSR".to_owned(),
            tls: None,
            inband_security: false,
            front_ends: Vec::new(),
            listen_also: Vec::new(),
            strict: false,
        }
    }
}

/// Whether this may be a DiameterIdentity: a name of letters, digits, dots, hyphens and underscores.
pub(crate) fn is_identity(name: &str) -> bool {
    !name.is_empty()
        && name.len() <= 255
        && name
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'-' | b'_'))
}

impl Validate for LocalNode {
    fn validate(&self, faults: &mut Faults) {
        for (index, listener) in self.listeners().enumerate() {
            match index.checked_sub(1) {
                None => listener.validate(faults),
                Some(further) => {
                    let at = format!("listenAlso[{further}]");
                    if listener.listen.first().is_none() {
                        let right = "an address to listen at";
                        faults.at(format!("{at}.listen")).say("is empty", right);
                    }
                    faults.within(&at, &listener);
                }
            }
        }
        for (key, value) in [("host", &self.host), ("realm", &self.realm)] {
            if !is_identity(value) {
                faults.at(key).say(
                    format!("`{value}` is not a valid DiameterIdentity"),
                    "a name such as dsr1.epc.example.org",
                );
            }
        }
    }
}

/// Bounds of one message processor. Each that is met is counted.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default, rename_all = "camelCase")]
pub struct NodeLimits {
    /// Whether the profile (`overload.profile`, `profileMps`) sizes the buffers when the router starts: `pending` and
    /// `pendingPerPeer` hold the requests that come in during `routing.transaction.answer` at the hard limit of the
    /// profile, `pendingBytes` and `pendingBytesPerPeer` these at `indicators.messageSize` each, `handover` the messages of
    /// a second. The values given for them do not count then.
    pub by_profile: bool,
    /// The longest message accepted; a longer one ends its connection.
    pub message: ByteSize,
    /// Bytes queued for one peer that reads slowly; beyond, its requests go elsewhere.
    pub queue: ByteSize,
    /// Connections of one local node.
    pub connections: usize,
    /// Connections that have not yet sent a valid CER.
    pub handshakes: usize,
    /// Of which from one address; the oldest makes room for one more.
    pub handshakes_per_address: usize,
    /// How long a new connection may take to complete TLS and CER.
    pub handshake: Period,
    /// Pending requests, all peers together.
    pub pending: usize,
    /// Of which with one peer.
    pub pending_per_peer: usize,
    /// Bytes of pending requests that are kept for another try, all peers of a local node together.
    pub pending_bytes: ByteSize,
    /// Of which with one peer.
    pub pending_bytes_per_peer: ByteSize,
    /// A connection whose peer reads nothing for this time while messages are queued is closed.
    pub write_stall: Period,
    /// Timeout of an incomplete message: its connection is closed after it.
    pub read_stall: Period,
    /// Messages of the base protocol (CER, DWR, DPR and their answers) and answers without a request that one
    /// connection may bring per second; beyond, it is closed (`signalbox_dsr_flooding_connections_total`). The late
    /// answer to an abandoned request does not count. 0: not bounded.
    pub base_rate: u32,
    /// Messages that a processor handles for one connection before others have their turn.
    pub turn: usize,
    /// Time after which such a turn ends, checked after each 16 messages.
    pub turn_time: Period,
    /// Under load, the least interval at which a processor polls its sockets, so that each system call carries several
    /// messages: where it expects more than one message in that time, 10,000 per second for 100us. A longer interval
    /// saves processor time at lower rates, and adds up to its length to the latency of each direction. 0s: no
    /// interval.
    pub gather: Period,
    /// Messages in transit from one processor to another; beyond, requests are answered DIAMETER_TOO_BUSY and answers
    /// are lost.
    pub handover: usize,
}

impl Default for NodeLimits {
    fn default() -> Self {
        let driver = diameter::Limits::default();
        Self {
            by_profile: false,
            message: ByteSize(driver.message as u64),
            queue: ByteSize(driver.queue as u64),
            connections: driver.connections,
            handshakes: driver.handshakes,
            handshakes_per_address: driver.handshakes_per_address,
            handshake: Period(driver.handshake),
            pending: driver.pending,
            pending_per_peer: driver.pending_per_peer,
            pending_bytes: ByteSize(driver.pending_bytes as u64),
            pending_bytes_per_peer: ByteSize(driver.pending_bytes_per_peer as u64),
            write_stall: Period(driver.write_stall),
            read_stall: Period(driver.read_stall),
            base_rate: driver.base_rate,
            turn: driver.turn,
            turn_time: Period(driver.turn_time),
            gather: Period(driver.gather),
            handover: 65_536,
        }
    }
}

impl NodeLimits {
    /// Buffers for a processor of this many messages per second, in which requests wait this long for their answers.
    pub(super) fn size(&mut self, messages_per_second: f64, answer: std::time::Duration, message: ByteSize) {
        // A request with its answer is two messages.
        let requests = messages_per_second / 2.0 * answer.as_secs_f64();
        self.pending = (requests.ceil() as usize).max(1);
        self.pending_per_peer = self.pending;
        // One message of the longest kind always has room.
        let bytes = (self.pending as u64).saturating_mul(message.bytes());
        self.pending_bytes = ByteSize(bytes.max(self.message.bytes()));
        self.pending_bytes_per_peer = self.pending_bytes;
        self.handover = (messages_per_second.ceil() as usize).max(1);
    }

    pub(crate) fn driver(&self) -> diameter::Limits {
        diameter::Limits {
            message: self.message.as_usize(),
            queue: self.queue.as_usize(),
            connections: self.connections,
            handshakes: self.handshakes,
            handshakes_per_address: self.handshakes_per_address,
            handshake: self.handshake.duration(),
            pending: self.pending,
            pending_per_peer: self.pending_per_peer,
            pending_bytes: self.pending_bytes.as_usize(),
            pending_bytes_per_peer: self.pending_bytes_per_peer.as_usize(),
            write_stall: self.write_stall.duration(),
            read_stall: self.read_stall.duration(),
            base_rate: self.base_rate,
            turn: self.turn,
            turn_time: self.turn_time.duration(),
            gather: self.gather.duration(),
            ..diameter::Limits::default()
        }
    }
}

impl Validate for NodeLimits {
    fn validate(&self, faults: &mut Faults) {
        let counts = [
            ("connections", self.connections),
            ("handshakes", self.handshakes),
            ("handshakesPerAddress", self.handshakes_per_address),
            ("pending", self.pending),
            ("pendingPerPeer", self.pending_per_peer),
            ("handover", self.handover),
            ("turn", self.turn),
        ];
        for (key, value) in counts {
            if value == 0 {
                faults.at(key).say("permits no request", "at least 1");
            }
        }
    }
}
