//! Identities and listeners of the router: read and bound before it starts, so that mistakes keep it from starting.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use diameter::proto::peer::{ApplicationId, Capabilities};
use diameter::{BoundListener, NodeConfig, Security, TlsConfig};
use function::StartError;
use parking_lot::Mutex;
use tls::{TlsFiles, Watched};

use crate::config::{Config, LocalNode, TransportKind};

/// The local nodes of the router: identities, TLS, and listeners for every worker.
#[derive(Debug)]
pub struct Bound {
    /// By local node.
    pub(crate) nodes: Vec<(NodeConfig, Security)>,
    /// By worker, by local node; a worker takes its own.
    listeners: Mutex<Listeners>,
    addresses: Vec<SocketAddr>,
    pub(crate) watched: Arc<Watched>,
    secure: bool,
}

/// Per worker, per local node, its listeners.
type Listeners = Vec<Vec<Vec<BoundListener>>>;

impl Bound {
    /// Reads TLS files and binds every address for a number of workers.
    ///
    /// # Errors
    /// When a file or an address cannot be used.
    pub(crate) fn new(config: &Config, workers: usize) -> Result<Self, StartError> {
        let watched = Arc::<Watched>::default();
        let nodes = config.local_nodes.iter();
        let nodes = nodes.map(|local| Ok((node(config, local), security(&watched, local.tls.as_ref())?)));
        let nodes: Result<Vec<_>, String> = nodes.collect();
        let nodes = nodes.map_err(StartError::Config)?;
        let (listeners, addresses) = bind(config, workers)?;
        Ok(Self {
            nodes,
            listeners: Mutex::new(listeners),
            addresses,
            watched,
            secure: config.local_nodes.iter().all(|node| node.tls.is_some()),
        })
    }

    /// The listeners of a worker, by local node.
    pub(crate) fn take(&self, worker: usize) -> Vec<Vec<BoundListener>> {
        let mut listeners = self.listeners.lock();
        listeners.get_mut(worker).map(std::mem::take).unwrap_or_default()
    }
}

impl function::Listeners for Bound {
    /// They listen from the moment they are bound; workers accept.
    fn listen(&self) -> Result<(), StartError> {
        Ok(())
    }

    fn addresses(&self) -> &[SocketAddr] {
        &self.addresses
    }

    fn interfaces(&self) -> Vec<(&'static str, String)> {
        let scheme = if self.secure { "aaas" } else { "aaa" };
        let uri = |address| ("Diameter", format!("{scheme}://{address}"));
        self.addresses.iter().map(uri).collect()
    }

    /// Those of local nodes and peers.
    fn watched(&self) -> Option<&Arc<Watched>> {
        Some(&self.watched)
    }
}

/// Behaviour and capabilities of a local node.
fn node(config: &Config, local: &LocalNode) -> NodeConfig {
    let applications: Vec<ApplicationId> = match local.applications.is_empty() {
        true => vec![ApplicationId::RELAY],
        false => local.applications.iter().map(|id| announced(*id)).collect(),
    };
    let mut capabilities = Capabilities::new(&local.host, &local.realm).with_applications(applications);
    capabilities.addresses.clone_from(&local.addresses);
    if local.addresses.is_empty() && local.transport == TransportKind::Sctp {
        // All of them where the transport is SCTP (RFC 6733 §5.3.5).
        let homes = local.listen.iter().map(|address| address.ip());
        capabilities
            .addresses
            .extend(homes.filter(|ip| !ip.is_unspecified()));
    }
    capabilities.product.clone_from(&local.product);
    NodeConfig {
        limits: config.limits.driver(),
        ..NodeConfig::new(capabilities)
    }
}

/// How connections are secured by these files, which `watched` keeps current.
pub(crate) fn security(watched: &Watched, files: Option<&TlsFiles>) -> Result<Security, String> {
    let Some(files) = files else {
        return Ok(Security::None);
    };
    let key = files.certificate.display().to_string();
    TlsConfig::open(watched, &key, files).map(Security::Tls)
}

/// Applications of 3GPP have ids from here on and are announced with its vendor id.
const VENDOR_SPECIFIC: u32 = 16_777_216;

fn announced(id: u32) -> ApplicationId {
    match id {
        u32::MAX => ApplicationId::RELAY,
        VENDOR_SPECIFIC.. => ApplicationId::tgpp(id),
        _ => ApplicationId::auth(id),
    }
}

fn bind(config: &Config, workers: usize) -> Result<(Listeners, Vec<SocketAddr>), StartError> {
    let nodes = config.local_nodes.len();
    let mut listeners: Listeners = (0..workers)
        .map(|_| (0..nodes).map(|_| Vec::new()).collect())
        .collect();
    let mut addresses = Vec::new();
    for (node, local) in config.local_nodes.iter().enumerate() {
        let transport = local.transport.driver();
        for end_point in diameter::end_points(&local.listen.0, transport) {
            let Some((wanted, others)) = end_point.split_first() else {
                continue;
            };
            let others: Vec<IpAddr> = others.iter().map(SocketAddr::ip).collect();
            let (bound, address) = worker::bind_each(*wanted, workers, |address| {
                let listener = BoundListener::bind_all(address, &others, transport)
                    .map_err(|source| StartError::Listen { address, source })?;
                let at = listener.address();
                Ok::<_, StartError>((listener, at))
            })?;
            for (mine, listener) in listeners.iter_mut().zip(bound) {
                mine[node].push(listener);
            }
            addresses.push(address);
        }
    }
    Ok((listeners, addresses))
}
