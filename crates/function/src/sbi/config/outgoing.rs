//! Destinations that others may name.

use std::net::IpAddr;

use ipnet::IpNet;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Where requests and registered profiles may make this function send to: URIs for notifications and their redirections,
/// addresses of alternates, what profiles offer. API roots in these settings are exempt. The function checks addresses as they
/// stand in a URI, and again what a name resolves to before it connects. It always refuses: unspecified, multicast and
/// broadcast addresses, addresses of IPv6 that stand for one of IPv4, the admin endpoints of its process, its own listeners (not the NRF, whose queries may name it), and loopback
/// addresses unless it listens at one (or at all addresses) itself or `allowedNetworks` has them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default, rename_all = "camelCase")]
pub struct Outgoing {
    /// Addresses must lie in one of these networks; empty: anywhere. A name has to resolve to such an address.
    pub allowed_networks: Vec<IpNet>,
    /// Addresses must lie in none of these.
    pub denied_networks: Vec<IpNet>,
    /// Whether a redirection (307, 308) of a notification may lead to another host than the one that answers so.
    pub redirect_to_other_hosts: bool,
}

impl Default for Outgoing {
    fn default() -> Self {
        let link_local = [
            IpNet::new_assert(IpAddr::from([169, 254, 0, 0]), 16),
            IpNet::new_assert(IpAddr::from([0xfe80, 0, 0, 0, 0, 0, 0, 0]), 10),
        ];
        Self {
            allowed_networks: Vec::new(),
            denied_networks: link_local.into(),
            redirect_to_other_hosts: false,
        }
    }
}
