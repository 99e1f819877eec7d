//! Settings of a node and of its peers. Every bound has a name here.

use std::net::{IpAddr, SocketAddr};
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use diameter_proto::peer::{Capabilities, PeerSettings};
use ipnet::IpNet;
use rustls::{ClientConfig, ServerConfig};
use tls::{Current, Material, Sides, TlsFiles, Watched};

/// The port of Diameter over TCP and SCTP (RFC 6733 §2.1).
pub const PORT: u16 = 3868;
/// The port of Diameter over TLS and DTLS (RFC 6733 §2.1).
pub const TLS_PORT: u16 = 5868;

/// A node: its identity and its bounds.
#[derive(Clone, Debug)]
pub struct NodeConfig {
    /// Our capabilities in CER and CEA. Without addresses, each connection announces its own.
    pub local: Capabilities,
    /// Bounds.
    pub limits: Limits,
    /// Peers that may connect without being configured one by one.
    pub dynamic: Vec<DynamicPeers>,
    /// Whether a CER without Host-IP-Address is refused (RFC 6733 §5.3.1). Else it is an event.
    pub strict: bool,
}

impl NodeConfig {
    /// A node of the identity `local`, with default limits and no dynamic peers.
    #[must_use]
    pub fn new(local: Capabilities) -> Self {
        Self {
            local,
            limits: Limits::default(),
            dynamic: Vec::new(),
            strict: false,
        }
    }
}

/// Bounds of one worker's node.
#[derive(Clone, Debug)]
pub struct Limits {
    /// The longest message taken. A longer one is refused with `DIAMETER_INVALID_MESSAGE_LENGTH` and the
    /// connection closed, before any of it is buffered.
    pub message: usize,
    /// Bytes read at once. Larger messages grow the buffer to their own size.
    pub read_buffer: usize,
    /// Bytes queued for one peer that reads slowly; beyond, requests are refused and answers dropped.
    pub queue: usize,
    /// Connections of all kinds.
    pub connections: usize,
    /// Connections that have not yet sent a valid CER …
    pub handshakes: usize,
    /// … of which from one address; the oldest makes room for one more.
    pub handshakes_per_address: usize,
    /// How long a new connection may take to complete TLS and CER.
    pub handshake: Duration,
    /// Pending requests, all peers together …
    pub pending: usize,
    /// … of which with one peer.
    pub pending_per_peer: usize,
    /// Bytes of pending requests that are kept for another try, all peers together …
    pub pending_bytes: usize,
    /// … of which with one peer.
    pub pending_bytes_per_peer: usize,
    /// A connection whose peer reads nothing for this time while messages are queued is closed.
    pub write_stall: Duration,
    /// Timeout of an incomplete message: its connection is closed after it.
    pub read_stall: Duration,
    /// Messages of the base protocol and answers without a request that one connection may bring per second; beyond, it
    /// is closed. The late answer to a request that was given up does not count. 0: there is no bound.
    pub base_rate: u32,
    /// Messages handled for one connection in a turn of its worker; then other connections have theirs.
    pub turn: usize,
    /// Time after which such a turn ends, checked after each 16 messages.
    pub turn_time: Duration,
    /// Under load, a turn of the worker begins at most this often, so that each system call carries several messages:
    /// less CPU per message for up to this delay in each direction. A worker is under load when it expects more than
    /// one message in that time, 10,000 per second for 100 µs. Zero for never.
    pub gather: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            message: 256 * 1024,
            read_buffer: 128 * 1024,
            queue: 16 * 1024 * 1024,
            connections: 4096,
            handshakes: 256,
            handshakes_per_address: 32,
            handshake: Duration::from_secs(10),
            pending: 1 << 20,
            pending_per_peer: 1 << 17,
            pending_bytes: 256 * 1024 * 1024,
            pending_bytes_per_peer: 64 * 1024 * 1024,
            write_stall: Duration::from_secs(20),
            read_stall: Duration::from_secs(20),
            base_rate: 1000,
            turn: 1024,
            turn_time: Duration::from_micros(500),
            gather: Duration::from_micros(100),
        }
    }
}

/// Security of a connection.
#[derive(Clone, Debug, Default)]
pub enum Security {
    /// In the clear.
    #[default]
    None,
    /// TLS from the first byte (RFC 6733 §13.1, port 5868).
    Tls(TlsConfig),
    /// CER and CEA in the clear, then TLS if both announced it in Inband-Security-Id (RFC 6733 §13.1, the
    /// older way).
    Inband(TlsConfig),
}

/// Keys and trust, for both directions: Diameter peers are client and server. Clones share them: changed files take
/// effect for every later handshake, on every worker. Open connections stay.
#[derive(Clone)]
pub struct TlsConfig {
    current: Current<Sides>,
    /// Whether a client's certificate must contain its Origin-Host. A server's is always checked against the name that
    /// this node connects to.
    pub match_identity: bool,
}

impl TlsConfig {
    /// These keys and this trust.
    #[must_use]
    pub fn new(current: impl Into<Current<Sides>>, match_identity: bool) -> Self {
        Self {
            current: current.into(),
            match_identity,
        }
    }

    /// Loads keys and trust from files. `watched` reloads them when they change; `key` names them in its errors.
    ///
    /// # Errors
    /// When the files cannot be used.
    pub fn open(watched: &Watched, key: &str, files: &TlsFiles) -> Result<Self, String> {
        let current = watched.open(key, files, Material::sides)?;
        Ok(Self::new(current, files.match_identity()))
    }

    /// For a connection that is opened now.
    #[must_use]
    pub fn client(&self) -> Arc<ClientConfig> {
        self.current.load().client.clone()
    }

    /// For a connection that is accepted now.
    #[must_use]
    pub fn server(&self) -> Arc<ServerConfig> {
        self.current.load().server.clone()
    }
}

impl std::fmt::Debug for TlsConfig {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("TlsConfig")
    }
}

/// Transport of the bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Transport {
    /// TCP.
    #[default]
    Tcp,
    /// SCTP of the kernel, one-to-one style. Where the kernel has no SCTP, the connection attempt fails with that
    /// reason.
    Sctp,
}

/// A resolver of peer addresses.
#[derive(Clone)]
pub struct Lookup(Arc<dyn Fn() -> Found + Send + Sync>);

/// Addresses that are being resolved, to be tried in turn.
pub type Found = Pin<Box<dyn Future<Output = Vec<SocketAddr>> + Send>>;

impl Lookup {
    /// Starts the resolution.
    pub fn new(find: impl Fn() -> Found + Send + Sync + 'static) -> Self {
        Self(Arc::new(find))
    }

    pub(crate) fn find(&self) -> Found {
        (self.0)()
    }
}

impl std::fmt::Debug for Lookup {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Lookup")
    }
}

/// A configured peer.
#[derive(Clone, Debug)]
pub struct PeerConfig {
    /// Its DiameterIdentity, which its Origin-Host must equal.
    pub host: String,
    /// Addresses to connect to, tried in turn; over SCTP, those with the same port are one end point with several homes. Without
    /// any, this node waits for the peer to connect.
    pub addresses: Vec<SocketAddr>,
    /// Resolver of further addresses, queried before each attempt.
    pub lookup: Option<Lookup>,
    /// Networks it may connect from, besides its `addresses`. Without either: from any address.
    pub networks: Vec<IpNet>,
    /// Our address when connecting; over SCTP our addresses. Empty: the system's choice.
    pub bind: Vec<IpAddr>,
    /// Transport of the bytes.
    pub transport: Transport,
    /// TLS when connecting.
    pub security: Security,
    /// Timers and policy. `host` and `initiate` are set from the fields above.
    pub settings: PeerSettings,
}

impl PeerConfig {
    /// A peer to connect to.
    #[must_use]
    pub fn connect(host: impl Into<String>, addresses: impl IntoIterator<Item = SocketAddr>) -> Self {
        Self {
            addresses: addresses.into_iter().collect(),
            ..Self::await_from(host)
        }
    }

    /// A peer that connects to us.
    #[must_use]
    pub fn await_from(host: impl Into<String>) -> Self {
        Self {
            host: host.into(),
            addresses: Vec::new(),
            lookup: None,
            networks: Vec::new(),
            bind: Vec::new(),
            transport: Transport::Tcp,
            security: Security::None,
            settings: PeerSettings::default(),
        }
    }
}

impl PeerConfig {
    /// Whether it may connect from this address.
    #[must_use]
    pub fn may_come_from(&self, address: IpAddr) -> bool {
        let address = address.to_canonical();
        let anywhere = self.addresses.is_empty() && self.networks.is_empty();
        anywhere
            || self
                .addresses
                .iter()
                .any(|own| own.ip().to_canonical() == address)
            || self.networks.iter().any(|network| network.contains(&address))
    }
}

/// Peers that may connect without being configured one by one.
#[derive(Clone, Debug)]
pub struct DynamicPeers {
    /// Origin-Realms that are accepted: exactly, or with a leading dot all realms below. Empty: any.
    pub realms: Vec<String>,
    /// Addresses they may come from. Empty: any.
    pub networks: Vec<IpNet>,
    /// Whether only over TLS.
    pub tls_only: bool,
    /// Bound of such peers.
    pub max: usize,
    /// Timers and policy.
    pub settings: PeerSettings,
}

impl Default for DynamicPeers {
    fn default() -> Self {
        Self {
            realms: Vec::new(),
            networks: Vec::new(),
            tls_only: false,
            max: 1024,
            settings: PeerSettings::default(),
        }
    }
}

impl DynamicPeers {
    /// Whether this rule accepts a peer of that realm, at that address.
    #[must_use]
    pub fn admits(&self, realm: &str, address: IpAddr, tls: bool) -> bool {
        let realm = realm.to_ascii_lowercase();
        let realm_fits = self.realms.is_empty()
            || self.realms.iter().any(|rule| {
                let rule = rule.to_ascii_lowercase();
                match rule.strip_prefix('.') {
                    Some(parent) => realm
                        .strip_suffix(parent)
                        .is_some_and(|child| child.ends_with('.')),
                    None => realm == rule,
                }
            });
        let address = address.to_canonical();
        let address_fits = self.networks.is_empty() || self.networks.iter().any(|net| net.contains(&address));
        realm_fits && address_fits && (tls || !self.tls_only)
    }
}

/// A listener of a node.
#[derive(Clone, Debug)]
pub struct ListenConfig {
    /// Address and port. `[::]:3868` takes IPv4 too where the system maps it.
    pub address: SocketAddr,
    /// What carries the bytes.
    pub transport: Transport,
    /// TLS.
    pub security: Security,
}

impl ListenConfig {
    /// Plain TCP.
    #[must_use]
    pub const fn tcp(address: SocketAddr) -> Self {
        Self {
            address,
            transport: Transport::Tcp,
            security: Security::None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn realm_rules() {
        let rule = DynamicPeers {
            realms: vec!["epc.mnc01.example".into(), ".roaming.example".into()],
            networks: vec!["192.0.2.0/24".parse().unwrap()],
            ..DynamicPeers::default()
        };
        let inside: IpAddr = "::ffff:192.0.2.7".parse().unwrap();
        assert!(rule.admits("EPC.mnc01.example", inside, false));
        assert!(rule.admits("a.b.roaming.example", inside, false));
        assert!(!rule.admits("roaming.example", inside, false));
        assert!(!rule.admits("xroaming.example", inside, false));
        assert!(!rule.admits("epc.mnc01.example", "198.51.100.1".parse().unwrap(), false));
        let tls = DynamicPeers {
            tls_only: true,
            ..DynamicPeers::default()
        };
        assert!(tls.admits("x", inside, true) && !tls.admits("x", inside, false));
    }
}
