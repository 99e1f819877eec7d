//! Identities and listeners of the router: read and bound before it starts, so that mistakes keep it from starting.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use diameter::proto::peer::{ApplicationId, Capabilities};
use diameter::{BoundListener, NodeConfig, Security, TlsConfig};
use function::StartError;
use ipnet::IpNet;
use parking_lot::Mutex;
use tls::{TlsFiles, Watched};

use crate::config::{Config, LocalNode, TransportKind};

/// The local nodes of the router: identities, TLS, and listeners for every worker.
#[derive(Debug)]
pub struct Bound {
    /// By local node.
    pub(crate) nodes: Vec<NodeConfig>,
    /// By worker, by local node; a worker takes its own.
    listeners: Mutex<Listeners>,
    addresses: Vec<SocketAddr>,
    pub(crate) watched: Arc<Watched>,
    secure: bool,
}

/// A listener of one worker, the security of its connections, and the front ends whose PROXY headers count.
#[derive(Debug)]
pub(crate) struct Entrance {
    pub(crate) listener: BoundListener,
    pub(crate) security: Security,
    pub(crate) front_ends: Vec<IpNet>,
}

/// Per worker, per local node, its listeners.
type Listeners = Vec<Vec<Vec<Entrance>>>;

impl Bound {
    /// Reads TLS files and binds every address for a number of workers.
    ///
    /// # Errors
    /// When a file or an address cannot be used.
    pub(crate) fn new(config: &Config, workers: usize) -> Result<Self, StartError> {
        let watched = Arc::<Watched>::default();
        let nodes = config
            .local_nodes
            .iter()
            .map(|local| node(config, local))
            .collect();
        let (listeners, addresses) = bind(config, &watched, workers)?;
        let mut all = config.local_nodes.iter().flat_map(LocalNode::listeners);
        Ok(Self {
            nodes,
            listeners: Mutex::new(listeners),
            addresses,
            watched,
            secure: all.all(|listener| listener.tls.is_some()),
        })
    }

    /// The listeners of a worker, by local node.
    pub(crate) fn take(&self, worker: usize) -> Vec<Vec<Entrance>> {
        let mut listeners = self.listeners.lock();
        listeners.get_mut(worker).map(std::mem::take).unwrap_or_default()
    }
}

impl function::Listeners for Bound {
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
    if local.addresses.is_empty() {
        // All of them where the transport is SCTP (RFC 6733 §5.3.5).
        let sctp = local
            .listeners()
            .filter(|one| one.transport == TransportKind::Sctp);
        let homes = sctp.flat_map(|one| one.listen.iter().map(|address| address.ip()).collect::<Vec<_>>());
        capabilities
            .addresses
            .extend(homes.filter(|ip| !ip.is_unspecified()));
    }
    capabilities.product.clone_from(&local.product);
    NodeConfig {
        limits: config.limits.driver(),
        strict: local.strict,
        ..NodeConfig::new(capabilities)
    }
}

/// How connections are secured by these files, which `watched` keeps current: from the first byte, or after the
/// capabilities exchange.
pub(crate) fn security(
    watched: &Watched,
    files: Option<&TlsFiles>,
    inband: bool,
) -> Result<Security, String> {
    let Some(files) = files else {
        return Ok(Security::None);
    };
    let key = files.certificate.display().to_string();
    let keys = TlsConfig::open(watched, &key, files)?;
    Ok(match inband {
        true => Security::Inband(keys),
        false => Security::Tls(keys),
    })
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

fn bind(
    config: &Config,
    watched: &Watched,
    workers: usize,
) -> Result<(Listeners, Vec<SocketAddr>), StartError> {
    let nodes = config.local_nodes.len();
    let mut listeners: Listeners = (0..workers)
        .map(|_| (0..nodes).map(|_| Vec::new()).collect())
        .collect();
    let mut addresses = Vec::new();
    let all = config.local_nodes.iter().enumerate();
    let all = all.flat_map(|(node, local)| local.listeners().map(move |listener| (node, listener)));
    for (node, wanted) in all {
        let security = security(watched, wanted.tls.as_ref(), wanted.inband_security);
        let security = security.map_err(StartError::Config)?;
        let transport = wanted.transport.driver();
        for end_point in diameter::end_points(&wanted.listen.0, transport) {
            let Some((first, others)) = end_point.split_first() else {
                continue;
            };
            let others: Vec<IpAddr> = others.iter().map(SocketAddr::ip).collect();
            let (bound, address) = worker::bind_each(*first, workers, |address| {
                let listener = BoundListener::bind_all(address, &others, transport)
                    .map_err(|source| StartError::Listen { address, source })?;
                let at = listener.address();
                Ok::<_, StartError>((listener, at))
            })?;
            for (mine, listener) in listeners.iter_mut().zip(bound) {
                mine[node].push(Entrance {
                    listener,
                    security: security.clone(),
                    front_ends: wanted.front_ends.clone(),
                });
            }
            addresses.push(address);
        }
    }
    Ok((listeners, addresses))
}
