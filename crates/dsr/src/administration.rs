//! Peers that an operator drains, disables, enables or reconnects while the router runs.
//!
//! The control thread writes the wish into the hop; the worker on which the peer lives does it within a second. A wish
//! lasts until the next one, or until the router restarts or the peer leaves the configuration.

use crate::registry::Administration;
use crate::shared::Dsr;

/// What an operator wants.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Verb {
    /// Requests are sent to the peer again; it is connected to.
    Enable,
    /// The peer gets no new requests; its connection stays, answers come.
    Drain,
    /// The peer is disconnected and kept away.
    Disable,
    /// Its connection is ended in order and made again.
    Reconnect,
}

impl Verb {
    /// The verb of a path.
    pub(crate) fn from_name(name: &str) -> Option<Self> {
        Some(match name {
            "enable" => Self::Enable,
            "drain" => Self::Drain,
            "disable" => Self::Disable,
            "reconnect" => Self::Reconnect,
            _ => return None,
        })
    }
}

impl Dsr {
    /// Does this with a configured peer, at every local node that has a connection with it.
    ///
    /// # Errors
    /// When no configured peer has that name.
    pub fn administer(&self, host: &str, verb: Verb) -> Result<(), String> {
        let hops = self.hops();
        let hops = hops.get(host.to_ascii_lowercase().as_bytes());
        let mut known = false;
        for hop in hops.into_iter().flatten().filter(|hop| hop.is_configured()) {
            known = true;
            let wanted = match (verb, hop.administration()) {
                (Verb::Drain, _) => Administration::Draining,
                (Verb::Disable, _) => Administration::Disabled,
                (Verb::Reconnect, _) => Administration::Leaving,
                (Verb::Enable, Administration::Disabled) => Administration::Returning,
                (Verb::Enable, Administration::Draining) => Administration::Enabled,
                (Verb::Enable, now) => now,
            };
            tracing::info!(peer = &*hop.host, ?verb, "peer is administered");
            hop.administer(wanted);
        }
        match known {
            true => Ok(()),
            false => Err(format!("`{host}` is not a configured peer of this router")),
        }
    }
}
