//! Destinations to which this SCP connects because a request names them. A request can name any address, so the SCP
//! accepts an address only if it belongs to a known producer, a setting, or a known function that expects a callback.

use std::net::{IpAddr, SocketAddr};

use ahash::AHashSet;
use ipnet::IpNet;
use sbi_proto::Origin;
use sbi_proto::headers::{SbiHeader as _, TargetApiRoot};

use crate::network::Network;

/// Settings about destinations.
#[derive(Clone, Debug, Default)]
pub struct Reach<'a> {
    /// Whether requests may name unknown destinations.
    pub everywhere: bool,
    /// Networks in which requests may name unknown destinations.
    pub networks: &'a [IpNet],
    /// API roots that settings name: NRFs, next hops, targets of mediation.
    pub roots: Vec<&'a str>,
    /// Admin endpoints of this process; the SCP never sends requests to them.
    pub admin: Vec<SocketAddr>,
}

/// Destinations that requests may name beside those of producers.
#[derive(Clone, Debug)]
pub struct Bounds {
    everywhere: bool,
    networks: Vec<IpNet>,
    /// Origins that settings name.
    named: AHashSet<Origin>,
    /// Admin endpoints of this process.
    admin: Vec<SocketAddr>,
}

/// Whether a destination that a request names is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// The destination belongs to a setting or a known function.
    Known,
    /// The destination is unknown, and the settings allow it.
    Unknown,
}

impl Bounds {
    /// Builds the bounds of these settings.
    pub fn new(settings: Reach<'_>) -> Self {
        Self {
            everywhere: settings.everywhere,
            networks: settings.networks.to_vec(),
            named: settings
                .roots
                .into_iter()
                .filter_map(|root| Some(TargetApiRoot::parse(root).ok()?.origin))
                .collect(),
            admin: settings.admin,
        }
    }

    /// Classifies a destination that is not a known producer; `None` if the SCP refuses to send there.
    /// `callback`: whether the request says that it is one (TS 29.500 §6.10.7).
    pub fn place(&self, origin: &Origin, callback: bool, network: &Network) -> Option<Place> {
        let host = origin.host();
        let address: Option<IpAddr> = host.parse().ok();
        if address.is_some_and(|ip| self.is_never(SocketAddr::new(ip, origin.port()))) {
            return None;
        }
        if self.named.contains(origin) || (callback && network.has_host(host)) {
            return Some(Place::Known);
        }
        let listed = address.is_some_and(|ip| self.lists(ip));
        (self.everywhere || listed).then_some(Place::Unknown)
    }

    /// Whether the SCP may connect to this address of a known destination.
    pub fn lets_pass(&self, address: SocketAddr) -> bool {
        !self.is_never(address)
    }

    /// Whether the SCP may connect to this address of an unknown destination.
    pub fn lets_pass_unknown(&self, address: SocketAddr) -> bool {
        !self.is_never(address) && (self.everywhere || self.lists(address.ip()))
    }

    fn lists(&self, ip: IpAddr) -> bool {
        let ip = ip.to_canonical();
        self.networks.iter().any(|network| network.contains(&ip))
    }

    /// Whether the SCP never connects to this address: unspecified, link-local, multicast and broadcast addresses, and
    /// the admin endpoints of this process.
    fn is_never(&self, address: SocketAddr) -> bool {
        let ip = address.ip().to_canonical();
        let unfit = match ip {
            IpAddr::V4(ip) => {
                ip.is_unspecified()
                    || ip.is_link_local()
                    || ip.is_multicast()
                    || ip.is_broadcast()
                    || ip.octets()[0] == 0
            }
            IpAddr::V6(ip) => ip.is_unspecified() || ip.is_unicast_link_local() || ip.is_multicast(),
        };
        let is_admin = |admin: &SocketAddr| {
            let at = admin.ip().to_canonical();
            // A wildcard listener is at every address of this machine; any address with its port is refused.
            admin.port() == address.port() && admin.port() > 0 && (at == ip || at.is_unspecified())
        };
        unfit || self.admin.iter().any(is_admin)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::network::Producer;
    use serde_json::json;
    use std::sync::Arc;

    fn network() -> Network {
        let profile = json!({
            "nfInstanceId": "a", "nfType": "AMF", "nfStatus": "REGISTERED", "fqdn": "amf.example.org",
            "ipv4Addresses": ["10.0.0.7"], "ipv6Addresses": ["fd00::7"]
        });
        Network::new([Arc::new(Producer::from_value(&profile).unwrap())])
    }

    fn place(bounds: &Bounds, text: &str, callback: bool) -> Option<Place> {
        bounds.place(&text.parse().unwrap(), callback, &network())
    }

    #[test]
    fn unknown_destinations_are_refused_unless_listed() {
        let mut reach = Reach {
            roots: vec!["http://10.0.0.1:8010/prefix"],
            admin: vec!["0.0.0.0:9020".parse().unwrap()],
            ..Reach::default()
        };
        let bounds = Bounds::new(reach.clone());
        for unknown in [
            "http://10.0.0.8:80",
            "http://127.0.0.1:80",
            "http://amf.example.com",
            "http://[::1]:80",
        ] {
            assert_eq!(place(&bounds, unknown, false), None, "{unknown}");
            assert_eq!(place(&bounds, unknown, true), None, "{unknown}");
        }
        assert_eq!(place(&bounds, "http://10.0.0.1:8010", false), Some(Place::Known));
        // Callbacks may go to the hosts of known functions, whatever the port.
        for host in [
            "http://10.0.0.7:1234",
            "http://amf.example.org:99",
            "http://[fd00::7]:5",
        ] {
            assert_eq!(place(&bounds, host, false), None, "{host}");
            assert_eq!(place(&bounds, host, true), Some(Place::Known), "{host}");
        }
        assert_eq!(
            place(&bounds, "http://10.0.0.7:9020", true),
            None,
            "an admin endpoint"
        );
        let networks = ["10.0.0.0/24".parse().unwrap()];
        reach.networks = &networks;
        let bounds = Bounds::new(reach);
        assert_eq!(place(&bounds, "http://10.0.0.8:80", false), Some(Place::Unknown));
        assert_eq!(place(&bounds, "http://10.0.1.8:80", false), None);
        assert_eq!(
            place(&bounds, "http://amf.example.com", false),
            None,
            "a name is in no network"
        );
        assert_eq!(
            place(&bounds, "http://[::ffff:10.0.0.8]:80", false),
            Some(Place::Unknown)
        );
    }

    #[test]
    fn some_addresses_are_never_connected_to() {
        let admin = ["127.0.0.1:9020", "127.0.0.1:9010"];
        let bounds = Bounds::new(Reach {
            everywhere: true,
            admin: admin.iter().map(|at| at.parse().unwrap()).collect(),
            ..Reach::default()
        });
        for never in [
            "169.254.169.254:80",
            "[fe80::1]:80",
            "0.0.0.0:80",
            "0.1.2.3:80",
            "[::]:80",
            "224.0.0.1:80",
            "255.255.255.255:80",
            "[ff02::1]:80",
            "[::ffff:169.254.1.1]:80",
            "127.0.0.1:9020",
            "[::ffff:127.0.0.1]:9010",
        ] {
            let address: SocketAddr = never.parse().unwrap();
            assert!(
                !bounds.lets_pass(address) && !bounds.lets_pass_unknown(address),
                "{never}"
            );
            assert_eq!(place(&bounds, &format!("http://{never}"), true), None, "{never}");
        }
        assert!(bounds.lets_pass_unknown("127.0.0.1:9030".parse().unwrap()));
        let closed = Bounds::new(Reach::default());
        let address = "127.0.0.1:9030".parse().unwrap();
        assert!(closed.lets_pass(address) && !closed.lets_pass_unknown(address));
    }
}
