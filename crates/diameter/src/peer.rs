//! Peers as applications see them.

use std::sync::Arc;

use diameter_proto::peer::Capabilities;

/// Identifies a peer of a node. A configured peer keeps its id from `add_peer` to `remove_peer`, whatever happens to
/// its connections; a dynamic one as long as it is connected.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct PeerId {
    pub(crate) slot: u32,
    pub(crate) generation: u32,
}

/// A peer whose connection has just become open.
#[derive(Clone, Debug)]
pub struct PeerUp {
    /// Its id with this node, the same for every connection the peer makes.
    pub id: PeerId,
    /// Its capabilities.
    pub remote: Arc<Capabilities>,
    /// Application ids in common.
    pub common: Vec<u32>,
    /// Whether the peer is one of the configured ones.
    pub configured: bool,
    /// Whether the connection is under TLS.
    pub tls: bool,
}
