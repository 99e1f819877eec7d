//! Limits of received content: patches, regular expressions, addresses that the NRF sends to.

use std::net::{IpAddr, SocketAddr};

use ipnet::IpNet;
use model::pattern;
use sbi::client::Origin;
use sbi::json::patch;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use settings::ByteSize;

/// JSON Patches of profiles and subscriptions (RFC 6902). The result is bounded by `maxProfileSize` and
/// `subscriptions.maxSize`; a patch that asks for more is answered 413.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default, rename_all = "camelCase")]
pub struct Patches {
    /// Operations of a patch at most.
    pub max_operations: usize,
    /// Bytes that all operations of a patch together may read, compare and move.
    pub max_work: ByteSize,
}

impl Default for Patches {
    fn default() -> Self {
        Self {
            max_operations: 1_000,
            max_work: ByteSize::mib(16),
        }
    }
}

impl Patches {
    pub(crate) fn limits(&self, size: ByteSize) -> patch::Limits {
        patch::Limits {
            operations: self.max_operations,
            size: size.as_usize(),
            work: self.max_work.as_usize(),
        }
    }
}

/// Regular expressions (`pattern`, `allowedNfDomains`, `addressDomains`) of a profile or a subscription; more are
/// answered 400. Each compiles to 16 KiB at most.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default, rename_all = "camelCase")]
pub struct Patterns {
    /// Distinct expressions at most.
    pub max: usize,
    /// Bytes of their compiled programs together.
    pub max_bytes: ByteSize,
}

impl Default for Patterns {
    fn default() -> Self {
        let limits = pattern::Limits::default();
        Self {
            max: limits.patterns,
            max_bytes: ByteSize::mib(1),
        }
    }
}

impl Patterns {
    pub(crate) fn limits(&self) -> pattern::Limits {
        pattern::Limits {
            patterns: self.max,
            bytes: self.max_bytes.as_usize(),
        }
    }
}

/// Where requests and profiles may make the NRF send to: notification URIs, the `hnrf-uri` of home NRFs, and what registered
/// profiles offer (NRFs with `nrfInfo`, location functions). Targets in these settings are not checked. The NRF checks
/// addresses as they stand in the URI or profile; it does not check what a name resolves to.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default, rename_all = "camelCase")]
pub struct Outgoing {
    /// Addresses must lie in one of these networks; empty: anywhere. If not empty, names are refused.
    pub allowed_networks: Vec<IpNet>,
    /// Addresses must lie in none of these. The NRF's own admin endpoint is always refused.
    pub denied_networks: Vec<IpNet>,
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
        }
    }
}

impl Outgoing {
    /// Whether the NRF may send to an origin that a request or a profile names; `admin` is its own admin endpoint.
    ///
    /// # Errors
    /// What was expected.
    pub fn check(&self, origin: &Origin, admin: SocketAddr) -> Result<(), &'static str> {
        let host = origin.host().trim_start_matches('[').trim_end_matches(']');
        let host = host.trim_end_matches('.');
        let Ok(address) = host.parse::<IpAddr>() else {
            if origin.port() == admin.port() && host.eq_ignore_ascii_case("localhost") {
                return Err("expected a port other than that of this NRF's admin endpoint");
            }
            return if self.allowed_networks.is_empty() {
                Ok(())
            } else {
                Err("expected an address in one of outgoing.allowedNetworks")
            };
        };
        let address = address.to_canonical();
        let here = address == admin.ip().to_canonical() || address.is_loopback() || address.is_unspecified();
        if origin.port() == admin.port() && here {
            return Err("expected a port other than that of this NRF's admin endpoint");
        }
        if self
            .denied_networks
            .iter()
            .any(|network| network.contains(&address))
        {
            return Err("expected an address in none of outgoing.deniedNetworks");
        }
        if !self.allowed_networks.is_empty()
            && !self
                .allowed_networks
                .iter()
                .any(|network| network.contains(&address))
        {
            return Err("expected an address in one of outgoing.allowedNetworks");
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(outgoing: &Outgoing, uri: &str) -> bool {
        let admin = SocketAddr::from(([127, 0, 0, 1], 9010));
        outgoing.check(&uri.parse().unwrap(), admin).is_err()
    }

    #[test]
    fn link_local_addresses_and_the_admin_endpoint_are_no_targets() {
        let outgoing = Outgoing::default();
        for bad in [
            "http://169.254.169.254",
            "http://[fe80::1]:80",
            "http://[::ffff:169.254.169.254]",
            "http://127.0.0.1:9010",
            "http://127.0.0.2:9010",
            "http://0.0.0.0:9010",
            "http://[::1]:9010",
            "http://localhost:9010",
            "http://LOCALHOST.:9010",
        ] {
            assert!(refused(&outgoing, bad), "{bad}");
        }
        for good in [
            "http://10.0.0.1:9010",
            "http://127.0.0.1:8010",
            "https://amf.example.org",
            "http://[2001:db8::1]",
        ] {
            assert!(!refused(&outgoing, good), "{good}");
        }
    }

    #[test]
    fn networks_can_be_named() {
        let outgoing = Outgoing {
            allowed_networks: vec!["10.0.0.0/8".parse().unwrap()],
            denied_networks: vec!["10.1.0.0/16".parse().unwrap()],
        };
        assert!(!refused(&outgoing, "http://10.0.0.1"));
        assert!(refused(&outgoing, "http://10.1.0.1") && refused(&outgoing, "http://11.0.0.1"));
        assert!(
            refused(&outgoing, "http://amf.example.org"),
            "names are refused when networks are listed"
        );
    }
}
