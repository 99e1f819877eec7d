//! The names and addresses of this SCP.

use std::net::{IpAddr, SocketAddr};

/// Authorities of this SCP. A request for one of them names no producer.
#[derive(Debug, Default)]
pub struct OwnNames {
    names: Vec<String>,
    /// Whether the SCP listens on all addresses: then the local address of each connection is its own.
    everywhere: bool,
}

impl OwnNames {
    /// Collects the addresses of the listeners, and the names of the SCP without a port. A further name is one with the
    /// ports of the listeners, and as it stands.
    pub fn new(addresses: &[SocketAddr], root: Option<&str>, fqdn: &str, further: &[String]) -> Self {
        let names = || std::iter::once(fqdn).chain(further.iter().map(String::as_str));
        let with_ports = addresses.iter().flat_map(|address| {
            let port = address.port();
            let named = names().map(move |name| format!("{name}:{port}"));
            [address.to_string(), format!("localhost:{port}")]
                .into_iter()
                .chain(named)
        });
        Self {
            names: with_ports
                .chain(root.map(str::to_owned))
                .chain(names().map(str::to_owned))
                .collect(),
            everywhere: addresses.iter().any(|address| address.ip().is_unspecified()),
        }
    }

    /// Whether an authority is one of them; `local` is this end of the connection on which it was named.
    pub fn has(&self, authority: &str, local: SocketAddr) -> bool {
        self.names.iter().any(|one| one.eq_ignore_ascii_case(authority))
            || (self.everywhere && is_address(authority, local))
    }
}

fn is_address(authority: &str, local: SocketAddr) -> bool {
    let same = |ip: IpAddr| ip.to_canonical() == local.ip().to_canonical();
    match authority.parse::<SocketAddr>() {
        Ok(named) => named.port() == local.port() && same(named.ip()),
        // Without a port, the scheme's default port counts.
        Err(_) => matches!(local.port(), 80 | 443) && authority.parse().is_ok_and(same),
    }
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
        ] {
            assert!(one.has(own, at("127.0.0.1:8020")), "{own}");
        }
        assert!(!one.has("127.0.0.3:8020", at("127.0.0.3:8020")));
        let everywhere = OwnNames::new(&[at("0.0.0.0:8020")], None, "scp.test", &[]);
        assert!(everywhere.has("127.0.0.3:8020", at("127.0.0.3:8020")));
        assert!(everywhere.has("127.0.0.3:8020", at("[::ffff:127.0.0.3]:8020")));
        assert!(!everywhere.has("127.0.0.3:8021", at("127.0.0.3:8020")));
        assert!(!everywhere.has("127.0.0.4:8020", at("127.0.0.3:8020")));
        assert!(everywhere.has("127.0.0.3", at("127.0.0.3:80")));
    }
}
