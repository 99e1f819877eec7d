//! Where this SCP connects because a request says so. A request can name any place, so a place must be known: as
//! that of a producer, as one of the settings, or as the host of a function that awaits a callback.

use std::net::{IpAddr, SocketAddr};

use ahash::AHashSet;
use ipnet::IpNet;
use sbi_proto::Origin;
use sbi_proto::headers::{SbiHeader as _, TargetApiRoot};

use crate::network::Network;

/// What settings say of places.
#[derive(Clone, Debug, Default)]
pub struct Reach<'a> {
    /// Whether a place that is not known may be named.
    pub everywhere: bool,
    /// Networks in which a place may be named.
    pub networks: &'a [IpNet],
    /// API roots that settings name: NRFs, next hops, targets of mediation.
    pub roots: Vec<&'a str>,
    /// Admin endpoints of this process; nothing is ever sent there.
    pub admin: Vec<SocketAddr>,
}

/// Places that requests may name beside those of producers.
#[derive(Clone, Debug)]
pub struct Bounds {
    everywhere: bool,
    networks: Vec<IpNet>,
    /// Named by settings.
    named: AHashSet<Origin>,
    /// Where this process is looked after.
    admin: Vec<SocketAddr>,
}

/// How far a place that a request names is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// Of settings, or of a function that is known.
    Known,
    /// Of nobody that is known, and let through by settings.
    Unknown,
}

impl Bounds {
    /// Of settings.
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

    /// What is known of a place where no producer is known to be; `None` where nothing is sent.
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

    /// Whether a connection may be made to this address of a place that is known.
    pub fn lets_pass(&self, address: SocketAddr) -> bool {
        !self.is_never(address)
    }

    /// Whether a connection may be made to this address of a place that nobody knows.
    pub fn lets_pass_unknown(&self, address: SocketAddr) -> bool {
        !self.is_never(address) && (self.everywhere || self.lists(address.ip()))
    }

    fn lists(&self, ip: IpAddr) -> bool {
        let ip = ip.to_canonical();
        self.networks.iter().any(|network| network.contains(&ip))
    }

    /// Where nothing is ever sent: addresses that mean another one on every link or many at once, and the places
    /// where this process is looked after.
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
            // One that listens everywhere is at every address of this machine; that of others is not told apart.
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
    fn what_nobody_knows_is_refused_unless_it_is_listed() {
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
        // Callbacks go to the hosts of functions that are known, whatever the port.
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
