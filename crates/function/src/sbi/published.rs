//! Addresses under which others reach a function. One that listens at all addresses of its machine (`0.0.0.0`, `[::]`)
//! publishes those from which it reaches the NRFs: no peer can send anything to `0.0.0.0`.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, ToSocketAddrs, UdpSocket};

use ::sbi::client::Origin;

/// Addresses of documentation (RFC 5737, RFC 3849) stand for any far peer. Nothing is sent to them: the system is asked
/// which of its addresses it would use.
const FAR: [IpAddr; 2] = [
    IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1)),
    IpAddr::V6(Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 1)),
];

/// The addresses that others can use of those at which the function listens, each once; `towards` are the API roots of
/// its NRFs.
#[must_use]
pub(crate) fn published(listens: &[SocketAddr], towards: &[String]) -> Vec<SocketAddr> {
    let mut found = Vec::new();
    let mut add = |address: SocketAddr| {
        if !found.contains(&address) {
            found.push(address);
        }
    };
    for address in listens {
        match address.ip() {
            ip if !ip.is_unspecified() => add(*address),
            // A listener at `[::]` takes both families.
            ip => {
                let families: &[bool] = if ip.is_ipv6() { &[true, false] } else { &[false] };
                let sources = families.iter().filter_map(|v6| source(*v6, towards));
                sources.for_each(|ip| add(SocketAddr::new(ip, address.port())));
            }
        }
    }
    found
}

/// The address of this machine from which it reaches the first NRF of the family that has one, else any far peer.
fn source(v6: bool, towards: &[String]) -> Option<IpAddr> {
    let nrfs = towards.iter().filter_map(|root| {
        let origin: Origin = root.parse().ok()?;
        let host = origin.host().trim_matches(['[', ']']).to_owned();
        (host, origin.port()).to_socket_addrs().ok()
    });
    let far = FAR.iter().map(|ip| SocketAddr::new(*ip, 9));
    let mut all = nrfs
        .flatten()
        .chain(far)
        .filter(|address| address.is_ipv6() == v6);
    all.find_map(|address| {
        let any: IpAddr = if v6 {
            Ipv6Addr::UNSPECIFIED.into()
        } else {
            Ipv4Addr::UNSPECIFIED.into()
        };
        let socket = UdpSocket::bind((any, 0)).ok()?;
        socket.connect(address).ok()?;
        let ip = socket.local_addr().ok()?.ip();
        (!ip.is_unspecified()).then_some(ip)
    })
}

/// Whether a root of URIs has `0.0.0.0` or `[::]` for its host.
#[must_use]
pub fn is_unspecified(root: &str) -> bool {
    let origin: Option<Origin> = root.parse().ok();
    origin.is_some_and(|origin| {
        let host = origin.host().trim_matches(['[', ']']);
        host.parse::<IpAddr>().is_ok_and(|ip| ip.is_unspecified())
    })
}

/// Where the function is, for its profile: by the root of its URIs where that has a name or another address than those at
/// which it listens, else by `addresses`.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Place {
    /// A name in place of addresses, with its port.
    pub(super) name: Option<(String, u16)>,
    pub(super) addresses: Vec<SocketAddr>,
}

impl Place {
    /// `listens`: where it listens; `root`: of its URIs.
    pub(super) fn of(listens: &[SocketAddr], root: &str, towards: &[String]) -> Self {
        let somewhere = listens.iter().all(|address| !address.ip().is_unspecified());
        let origin: Option<Origin> = root.parse().ok().filter(|_| !somewhere);
        let Some(origin) = origin else {
            return Self {
                name: None,
                addresses: published(listens, towards),
            };
        };
        let host = origin.host().trim_matches(['[', ']']);
        match host.parse::<IpAddr>() {
            Ok(ip) => {
                let mut addresses = vec![SocketAddr::new(ip, origin.port())];
                // The other family of a listener at `[::]`, and further listeners.
                let others = published(listens, towards).into_iter();
                addresses.extend(
                    others.filter(|other| other.is_ipv6() != ip.is_ipv6() || listens.contains(other)),
                );
                addresses.dedup();
                Self {
                    name: None,
                    addresses,
                }
            }
            // A name of one label is none that a profile may have (TS 29.571 §5.2.2).
            Err(_) if model::shape::rules::fqdn(host).is_err() => Self {
                name: None,
                addresses: published(listens, towards),
            },
            Err(_) => Self {
                name: Some((host.to_owned(), origin.port())),
                addresses: Vec::new(),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(text: &str) -> SocketAddr {
        text.parse().unwrap()
    }

    #[test]
    fn all_addresses_become_the_one_that_reaches_the_nrf() {
        let nrf = ["http://127.0.0.1:8010".to_owned()];
        assert_eq!(
            published(&[address("0.0.0.0:8030")], &nrf),
            [address("127.0.0.1:8030")]
        );
        let both = published(&[address("[::]:8030")], &nrf);
        assert!(both.contains(&address("127.0.0.1:8030")));
        assert!(both.iter().all(|one| !one.ip().is_unspecified()), "{both:?}");
        let several = [address("127.0.0.1:1"), address("[::1]:2"), address("0.0.0.0:1")];
        assert_eq!(published(&several, &nrf), several[..2]);
    }

    #[test]
    fn the_root_of_the_operator_prevails_over_all_addresses() {
        let (any, nrf) = ([address("0.0.0.0:8030")], ["http://127.0.0.1:8010".to_owned()]);
        let place = |root| Place::of(&any, root, &nrf);
        assert_eq!(place("http://192.0.2.7:80").addresses, [address("192.0.2.7:80")]);
        assert_eq!(
            place("http://bsf.example.com:80").name,
            Some(("bsf.example.com".to_owned(), 80))
        );
        assert_eq!(place("http://bsf:80").addresses, [address("127.0.0.1:8030")]);
        let own = Place::of(&[address("127.0.0.1:8030")], "http://bsf.example.com:80", &nrf);
        assert_eq!(
            own.addresses,
            [address("127.0.0.1:8030")],
            "what it listens at stays"
        );
    }
}
