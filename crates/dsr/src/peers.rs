//! The peers of a worker's nodes: those that are configured are added, changed and removed, and rules let others
//! in, as configurations come.

use ahash::AHashMap;
use diameter::proto::known::disconnect_cause;
use diameter::{AddPeerError, Node, PeerConfig, PeerId};
use function::diameter_names::lookup;
use sbi::dns::Dns;
use tls::Watched;

use crate::config::{DynamicPeers, Peer};
use crate::derived::Effective;
use crate::listen::security;
use crate::registry::HopState;
use crate::router::Router;
use crate::snapshot::nodes_of;

/// The configured peers that a worker's nodes have.
#[derive(Debug, Default)]
pub(crate) struct ConfiguredPeers {
    /// Those it has added, by node and host.
    configured: AHashMap<(usize, String), (PeerId, Peer)>,
    /// The rules for others.
    dynamic: Vec<DynamicPeers>,
}

impl ConfiguredPeers {
    /// Adds, changes and removes peers so that the nodes have those of the configuration that live here, and let
    /// others in by its rules. False when that has to be done again: a peer whose connection changes has to have
    /// left first.
    pub(crate) fn follow(&mut self, now: &Effective, nodes: &[Node<Router>], worker: usize) -> bool {
        let (config, registry, watched) = (&now.config, &now.registry, now.watched());
        let mut wanted: AHashMap<(usize, String), &Peer> = AHashMap::new();
        let hops = registry.by_host();
        for peer in config.peers.iter().filter(|peer| peer.via.is_empty()) {
            let host = peer.host.to_ascii_lowercase();
            for node in nodes_of(config, peer) {
                let here = hops.get(host.as_bytes()).is_some_and(|hops| {
                    hops.iter()
                        .any(|hop| usize::from(hop.node) == node && hop.home() == worker)
                });
                if here {
                    wanted.insert((node, host.clone()), peer);
                }
            }
        }
        self.configured.retain(|(node, host), (id, known)| {
            let keep = wanted
                .get(&(*node, host.clone()))
                .is_some_and(|peer| same_connection(known, peer));
            if !keep && let Some(driver) = nodes.get(*node) {
                // RFC 6733 §5.4.3: after REBOOTING the peer comes back, to the connection as it is configured now.
                let cause = match wanted.contains_key(&(*node, host.clone())) {
                    true => disconnect_cause::REBOOTING,
                    false => disconnect_cause::DO_NOT_WANT_TO_TALK_TO_YOU,
                };
                driver.remove_peer(*id, cause);
                let hop = hops
                    .get(host.as_bytes())
                    .and_then(|hops| hops.iter().find(|hop| usize::from(hop.node) == *node));
                if let Some(hop) = hop
                    && !wanted.contains_key(&(*node, host.clone()))
                {
                    hop.unconfigure();
                    if hop.state() == HopState::Down {
                        registry.release(hop);
                    }
                }
            }
            keep
        });
        let mut done = true;
        for (key, peer) in wanted {
            let Some(node) = nodes.get(key.0) else { continue };
            if let Some((id, known)) = self.configured.get_mut(&key) {
                if known.networks != peer.networks {
                    node.set_networks(*id, peer.admitted_from());
                }
                if known.timers != peer.timers {
                    node.configure_peer(*id, peer.timers.driver());
                }
                known.clone_from(peer);
                continue;
            }
            if peer.is_open_to_all() {
                tracing::warn!(
                    peer = peer.host,
                    "peers[].networks lets any address connect under this name"
                );
            }
            let made = match peer_config(peer, watched, now.dns()) {
                Ok(made) => made,
                Err(reason) => {
                    tracing::error!(peer = peer.host, reason, "peer cannot be added");
                    continue;
                }
            };
            match node.add_peer(made) {
                Ok(id) => {
                    self.configured.insert(key, (id, peer.clone()));
                }
                // It is leaving, here or at another worker.
                Err(AddPeerError::Exists(_) | AddPeerError::Elsewhere(..)) => done = false,
                Err(reason) => tracing::error!(peer = peer.host, %reason, "peer cannot be added"),
            }
        }
        // Afterwards: a peer that has just been configured needs no rule any more to stay.
        if self.dynamic != config.dynamic_peers {
            self.dynamic.clone_from(&config.dynamic_peers);
            for node in nodes {
                node.set_dynamic(self.dynamic.iter().map(DynamicPeers::driver).collect());
            }
        }
        done
    }
}

/// Whether a changed peer can keep its connection.
fn same_connection(old: &Peer, new: &Peer) -> bool {
    old.addresses == new.addresses
        && old.names == new.names
        && old.transport == new.transport
        && (old.bind, &old.bind_also) == (new.bind, &new.bind_also)
        && (&old.tls, old.inband_security) == (&new.tls, new.inband_security)
}

fn peer_config(peer: &Peer, watched: &Watched, dns: Option<&Dns>) -> Result<PeerConfig, String> {
    let mut made = PeerConfig::connect(&peer.host, peer.addresses.iter().copied());
    made.networks = peer.admitted_from();
    made.bind = peer.bind.iter().chain(&peer.bind_also).copied().collect();
    made.transport = peer.transport.driver();
    made.lookup = lookup(&peer.names, made.transport, peer.tls.is_some(), dns);
    made.settings = peer.timers.driver();
    made.security = security(watched, peer.tls.as_ref(), peer.inband_security)?;
    Ok(made)
}
