//! Who the router is and where it listens: read and bound before anything runs, so that mistakes are told then.

use std::net::SocketAddr;

use diameter::proto::peer::{ApplicationId, Capabilities};
use diameter::{BoundListener, NodeConfig, Security};

use crate::config::Config;
use crate::error::StartError;
use crate::keys::Keys;

/// TLS and identities, ready for use.
#[derive(Clone, Debug)]
pub(crate) struct Parts {
    pub(crate) nodes: Vec<(NodeConfig, Security)>,
}

impl Parts {
    pub(crate) fn load(config: &Config, keys: &Keys) -> Result<Self, String> {
        let nodes = config.local_nodes.iter().map(|local| {
            let applications: Vec<ApplicationId> = match local.applications.is_empty() {
                true => vec![ApplicationId::RELAY],
                false => local.applications.iter().map(|id| announced(*id)).collect(),
            };
            let mut capabilities =
                Capabilities::new(&local.host, &local.realm).with_applications(applications);
            capabilities.addresses.clone_from(&local.addresses);
            capabilities.product.clone_from(&local.product);
            let node = NodeConfig {
                limits: config.limits.driver(),
                ..NodeConfig::new(capabilities)
            };
            Ok((node, keys.security(local.tls.as_ref())?))
        });
        Ok(Self {
            nodes: nodes.collect::<Result<_, String>>()?,
        })
    }
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

/// Per worker, per local node, its listeners.
pub(crate) type Listeners = Vec<Vec<Vec<BoundListener>>>;

pub(crate) fn bind(
    config: &Config,
    parts: &Parts,
    workers: usize,
) -> Result<(Listeners, Vec<SocketAddr>), StartError> {
    let nodes = parts.nodes.len();
    let mut listeners: Listeners = (0..workers)
        .map(|_| (0..nodes).map(|_| Vec::new()).collect())
        .collect();
    let mut addresses = Vec::new();
    for (node, local) in config.local_nodes.iter().enumerate() {
        for wanted in local.listen.iter() {
            let (bound, address) = worker::bind_each(wanted, workers, |address| {
                let listener = BoundListener::bind(address, local.transport.driver())
                    .map_err(StartError::io(format!("listening at {address}")))?;
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
