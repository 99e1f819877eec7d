//! What operators want of the peers that live on a worker, done.

use std::sync::Arc;

use diameter::Node;
use diameter::proto::known::disconnect_cause;
use diameter::proto::peer::State;

use super::{Core, Router};
use crate::registry::{Administration, Hop};

impl Core {
    /// Does what operators want of the peers that live here.
    pub(super) fn follow_administration(&self) {
        let administered = |hop: &Arc<Hop>| hop.administration() != Administration::Enabled;
        if !self.hops.borrow_mut().all().any(administered) {
            return;
        }
        for (index, node) in self.nodes().iter().enumerate() {
            for peer in node.peers().into_iter().filter(|peer| peer.configured) {
                let Some(hop) = self.hop_of(&peer.host, index) else {
                    continue;
                };
                let is_closed = peer.state == State::Closed;
                match hop.administration() {
                    Administration::Enabled | Administration::Draining => {}
                    Administration::Disabled => {
                        node.disconnect(peer.id, disconnect_cause::DO_NOT_WANT_TO_TALK_TO_YOU);
                    }
                    Administration::Leaving => {
                        node.disconnect(peer.id, disconnect_cause::REBOOTING);
                        hop.administered(Administration::Leaving, Administration::Returning);
                    }
                    Administration::Returning if is_closed => {
                        self.connect(node, &peer.host, peer.id);
                        hop.administered(Administration::Returning, Administration::Enabled);
                    }
                    Administration::Returning => {}
                }
            }
        }
    }

    /// Connects to a peer that has addresses; the others connect to us.
    fn connect(&self, node: &Node<Router>, host: &str, id: diameter::PeerId) {
        let config = self.snapshot().config.clone();
        let ours = |peer: &&crate::config::Peer| peer.host.eq_ignore_ascii_case(host);
        if config
            .peers
            .iter()
            .find(ours)
            .is_some_and(crate::config::Peer::is_connected_to)
        {
            node.connect(id);
        }
    }
}
