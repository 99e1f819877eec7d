//! The client behind a proxy that ends TLS, by `x-forwarded-client-cert` (the header of Envoy; no RFC).
//!
//! ```text
//! By=spiffe://…;Hash=468e…;Subject="CN=amf";URI=urn:uuid:4947a69a-…;DNS=amf.example.org,By=…
//! ```
//!
//! Each proxy appends an element, so the last one is of the client of the proxy that is connected here.

use std::rc::Rc;

use sbi_proto::{Fields, Name, Peer, TlsPeer};

/// The header.
const HEADER: &str = "x-forwarded-client-cert";
/// Names that one element may have.
const MOST: usize = 32;

/// The peer of a request: the client that a proxy of the settings names, else the one that is connected.
pub(super) fn client_of(connected: &Rc<Peer>, proxies: &[String], headers: &Fields) -> Rc<Peer> {
    if !is_proxy(connected, proxies) {
        return connected.clone();
    }
    let last = headers
        .get_all(Name::from(HEADER))
        .last()
        .and_then(|value| value.to_str().ok());
    // Without the header its client has shown no certificate; that of the proxy is not the client's.
    let names = last.map(names_of).unwrap_or_default();
    let tls = (!names.is_empty()).then(|| TlsPeer {
        version: connected.tls.as_ref().map_or("TLSv1.3", |tls| tls.version),
        certificate: None,
        names,
    });
    Rc::new(Peer {
        tls,
        ..Peer::clone(connected)
    })
}

fn is_proxy(peer: &Peer, proxies: &[String]) -> bool {
    let address = peer.addr.ip().to_canonical();
    proxies
        .iter()
        .any(|proxy| match proxy.parse::<std::net::IpAddr>() {
            Ok(own) => own.to_canonical() == address,
            Err(_) => {
                let names = peer.tls.iter().flat_map(|tls| &tls.names);
                names.into_iter().any(|name| name.eq_ignore_ascii_case(proxy))
            }
        })
}

/// The names in the last element of a value.
fn names_of(value: &str) -> Vec<String> {
    let element = split(value, b',').last().unwrap_or_default();
    let pairs = split(element, b';').filter_map(|pair| pair.split_once('='));
    let named = pairs.filter(|(key, _)| {
        let key = key.trim();
        key.eq_ignore_ascii_case("URI") || key.eq_ignore_ascii_case("DNS")
    });
    let bare = |(_, name): (&str, &str)| name.trim().trim_matches('"').to_owned();
    named
        .map(bare)
        .filter(|name| !name.is_empty())
        .take(MOST)
        .collect()
}

/// Splits at a separator outside of quotes, in which a backslash escapes a quote.
fn split(text: &str, separator: u8) -> impl Iterator<Item = &str> {
    let (mut quoted, mut escaped) = (false, false);
    text.split(move |character: char| {
        let ends = !quoted && character == char::from(separator);
        match character {
            '"' if !escaped => quoted = !quoted,
            _ => {}
        }
        escaped = character == '\\' && !escaped;
        ends
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use sbi_proto::{GivenUp, Value};

    const ID: &str = "urn:uuid:4947a69a-f61b-4bc1-b9da-47c9c5d14b64";

    fn client(from: &str, tls: Option<&str>, header: &'static str) -> Option<Vec<String>> {
        let peer = Rc::new(Peer {
            addr: from.parse().unwrap(),
            local: "127.0.0.1:1".parse().unwrap(),
            tls: tls.map(|name| TlsPeer {
                names: vec![name.to_owned()],
                ..TlsPeer::default()
            }),
            connection: 1,
            given_up: GivenUp::default(),
        });
        let mut headers = Fields::new();
        if !header.is_empty() {
            headers.append(Name::from(HEADER), Value::from_static(header));
        }
        let proxies = ["10.0.0.7".to_owned(), "proxy.example.org".to_owned()];
        let client = client_of(&peer, &proxies, &headers);
        client.tls.as_ref().map(|tls| tls.names.clone())
    }

    #[test]
    fn the_last_element_of_a_named_proxy_counts() {
        let header = "By=x;URI=urn:uuid:0,By=\"a,b;c\\\"\";Hash=1;Subject=\"CN=a;URI=urn:uuid:1\";\
                      URI=urn:uuid:4947a69a-f61b-4bc1-b9da-47c9c5d14b64;DNS=amf.example.org;DNS=\"amf\"";
        let names = vec![ID.to_owned(), "amf.example.org".to_owned(), "amf".to_owned()];
        assert_eq!(client("10.0.0.7:5", None, header), Some(names.clone()));
        assert_eq!(client("[::ffff:10.0.0.7]:5", None, header), Some(names.clone()));
        assert_eq!(
            client("10.0.0.9:5", Some("PROXY.example.org"), header),
            Some(names)
        );
    }

    #[test]
    fn from_others_it_means_nothing_and_a_proxy_is_not_its_client() {
        let header = "URI=urn:uuid:4947a69a-f61b-4bc1-b9da-47c9c5d14b64";
        assert_eq!(client("10.0.0.8:5", None, header), None);
        let own = Some(vec!["smf.example.org".to_owned()]);
        assert_eq!(client("10.0.0.8:5", Some("smf.example.org"), header), own);
        for none in ["", "By=x", "Hash=1;Subject=\"\"", "URI=;DNS="] {
            assert_eq!(
                client("10.0.0.7:5", Some("proxy.example.org"), none),
                None,
                "{none}"
            );
        }
    }
}
