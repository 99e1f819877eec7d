//! Where this SCP connects because a request says so. A request can name any place, so a place must be known: as
//! that of a producer, as one of the settings, or as the host of a function that awaits a callback.

use std::net::{IpAddr, SocketAddr};

use ahash::AHashSet;
use ipnet::IpNet;
use sbi::client::Origin;
use sbi::headers::{SbiHeader as _, TargetApiRoot};

use crate::config::Config;
use crate::mediation::Action;
use crate::network::Network;

/// Places that requests may name beside those of producers.
#[derive(Debug)]
pub(crate) struct Bounds {
    everywhere: bool,
    networks: Vec<IpNet>,
    /// Named by settings.
    named: AHashSet<Origin>,
    /// Where this process is looked after.
    admin: Vec<SocketAddr>,
}

/// How far a place that a request names is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// Of settings, or of a function that is known.
    Known,
    /// Of nobody that is known, and let through by settings.
    Unknown,
}

impl Bounds {
    pub(crate) fn new(config: &Config) -> Self {
        let nrf = &config.nrf;
        let nrfs = nrf.sets.iter().flat_map(|set| &set.roots);
        let nrfs = nrf.roots.iter().chain(&nrf.named.roots).chain(nrfs);
        let rules = config.mediation.groups.iter().flat_map(|group| &group.rules);
        let steered = rules
            .flat_map(|rule| &rule.then)
            .filter_map(|action| match action {
                Action::Route(steering) => steering.api_root.as_ref(),
                _ => None,
            });
        let named = nrfs.chain(config.next_hops.values().flatten()).chain(steered);
        Self {
            everywhere: config.forward_to_unknown,
            networks: config.allowed_networks.clone(),
            named: named
                .filter_map(|root| Some(TargetApiRoot::parse(root).ok()?.origin))
                .collect(),
            admin: std::iter::once(config.admin)
                .chain(config.other_admins.iter().copied())
                .collect(),
        }
    }

    /// What is known of a place where no producer is known to be; `None` where nothing is sent.
    /// `callback`: whether the request says that it is one (TS 29.500 §6.10.7).
    pub(crate) fn place(&self, origin: &Origin, callback: bool, network: &Network) -> Option<Place> {
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
    pub(crate) fn lets_pass(&self, address: SocketAddr) -> bool {
        !self.is_never(address)
    }

    /// Whether a connection may be made to this address of a place that nobody knows.
    pub(crate) fn lets_pass_unknown(&self, address: SocketAddr) -> bool {
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
        let mut config = Config {
            admin: "0.0.0.0:9020".parse().unwrap(),
            ..Config::default()
        };
        config.nrf.roots = vec!["http://10.0.0.1:8010/prefix".into()];
        let bounds = Bounds::new(&config);
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
        config.allowed_networks = vec!["10.0.0.0/24".parse().unwrap()];
        let bounds = Bounds::new(&config);
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
        let config = Config {
            forward_to_unknown: true,
            other_admins: vec!["127.0.0.1:9010".parse().unwrap()],
            ..Config::default()
        };
        let bounds = Bounds::new(&config);
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
        let closed = Bounds::new(&Config::default());
        let address = "127.0.0.1:9030".parse().unwrap();
        assert!(closed.lets_pass(address) && !closed.lets_pass_unknown(address));
    }
}
