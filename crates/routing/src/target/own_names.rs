//! The names and addresses of this SCP.

use std::net::{IpAddr, SocketAddr};

/// Authorities of this SCP. A request for one of them names no producer.
#[derive(Debug, Default)]
pub struct OwnNames {
    names: Vec<Name>,
    /// Whether the SCP listens on all addresses: then the local address of each connection is its own.
    everywhere: bool,
}

/// A host, and its port where that is not the scheme's.
#[derive(Debug, PartialEq, Eq)]
struct Name {
    host: String,
    address: Option<IpAddr>,
    port: Option<u16>,
}

impl Name {
    fn of(authority: &str) -> Self {
        let (host, port) = parts(authority);
        Self {
            host: host.to_ascii_lowercase(),
            address: address_of(host),
            port,
        }
    }

    /// Whether an authority is another text of this name.
    fn is(&self, host: &str, port: Option<u16>) -> bool {
        self.port == port
            && (self.host.eq_ignore_ascii_case(host)
                || (self.address.is_some() && self.address == address_of(host)))
    }
}

impl OwnNames {
    /// Collects the addresses of the listeners, and the names of the SCP without a port. A further name is one with the
    /// ports of the listeners, and as it stands; without a port it has that of the scheme (RFC 9110 §4.2).
    pub fn new(addresses: &[SocketAddr], root: Option<&str>, fqdn: &str, further: &[String]) -> Self {
        let names = || std::iter::once(fqdn).chain(further.iter().map(String::as_str));
        let with_ports = addresses.iter().flat_map(|address| {
            let port = address.port();
            let named = names().map(move |name| format!("{name}:{port}"));
            [address.to_string(), format!("localhost:{port}")]
                .into_iter()
                .chain(named)
        });
        let all = with_ports
            .chain(root.map(str::to_owned))
            .chain(names().map(str::to_owned));
        Self {
            names: all.map(|name| Name::of(&name)).collect(),
            everywhere: addresses.iter().any(|address| address.ip().is_unspecified()),
        }
    }

    /// Whether an authority is one of them; `local` is this end of the connection on which it was named.
    pub fn has(&self, authority: &str, local: SocketAddr) -> bool {
        let (host, port) = parts(authority);
        self.names.iter().any(|one| one.is(host, port)) || (self.everywhere && is_local(host, port, local))
    }
}

/// The host of an authority without the dot of the root, and its port; none for those of the schemes, which may be left
/// out.
fn parts(authority: &str) -> (&str, Option<u16>) {
    let (host, port) = match authority.rsplit_once(':') {
        Some((host, port)) if !port.contains(']') => (host, port.parse().ok()),
        _ => (authority, None),
    };
    let host = host.strip_suffix('.').unwrap_or(host);
    (host, port.filter(|port| !matches!(port, 80 | 443)))
}

fn address_of(host: &str) -> Option<IpAddr> {
    let bare = host.strip_prefix('[').and_then(|host| host.strip_suffix(']'));
    let address: IpAddr = bare.unwrap_or(host).parse().ok()?;
    Some(address.to_canonical())
}

fn is_local(host: &str, port: Option<u16>, local: SocketAddr) -> bool {
    let own = Some(local.port()).filter(|port| !matches!(port, 80 | 443));
    port == own && address_of(host) == Some(local.ip().to_canonical())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn listening_everywhere_makes_the_address_of_a_connection_an_own_one() {
        let at = |text: &str| text.parse::<SocketAddr>().unwrap();
        let one = OwnNames::new(
            &[at("127.0.0.1:8020")],
            Some("scp.example.org:8020"),
            "scp.test",
            &["scp.core".into(), "10.96.0.7:80".into()],
        );
        for own in [
            "scp.core:8020",
            "SCP.core",
            "10.96.0.7:80",
            "127.0.0.1:8020",
            "SCP.example.org:8020",
            "scp.test",
            "scp.test:8020",
            "localhost:8020",
            "localhost:08020",
            "scp.core.:8020",
            "scp.core:80",
            "SCP.CORE.",
            "10.96.0.7",
            "10.96.0.7:080",
        ] {
            assert!(one.has(own, at("127.0.0.1:8020")), "{own}");
        }
        for other in [
            "scp.core:8021",
            "scp.core.test:8020",
            "10.96.0.8",
            "10.96.0.7:81",
            "scp.cor",
        ] {
            assert!(!one.has(other, at("127.0.0.1:8020")), "{other}");
        }
        let six = OwnNames::new(
            &[at("[2001:db8::1]:8020")],
            None,
            "scp.test",
            &["2001:db8::2".into()],
        );
        assert!(six.has("[2001:DB8:0::1]:8020", at("[2001:db8::1]:8020")));
        assert!(!one.has("127.0.0.3:8020", at("127.0.0.3:8020")));
        let everywhere = OwnNames::new(&[at("0.0.0.0:8020")], None, "scp.test", &[]);
        assert!(everywhere.has("127.0.0.3:8020", at("127.0.0.3:8020")));
        assert!(everywhere.has("127.0.0.3:8020", at("[::ffff:127.0.0.3]:8020")));
        assert!(!everywhere.has("127.0.0.3:8021", at("127.0.0.3:8020")));
        assert!(!everywhere.has("127.0.0.4:8020", at("127.0.0.3:8020")));
        assert!(everywhere.has("127.0.0.3", at("127.0.0.3:80")));
    }
}
