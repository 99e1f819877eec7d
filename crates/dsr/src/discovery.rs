//! Where peers are that the configuration names by DNS (RFC 6733 §5.2).

use std::net::SocketAddr;

use diameter::{Found, Lookup, PORT, TLS_PORT};
use sbi::dns::{Dns, Naptr, in_order};

use crate::config::{Peer, PeerName, TransportKind};

/// Bound on the addresses that one attempt tries.
const MAX_ADDRESSES: usize = 16;

/// What a peer is connected over.
#[derive(Clone, Copy, Debug)]
struct Carrier {
    /// The service of its SRV records.
    service: &'static str,
    /// The protocol of its NAPTR records (RFC 6408 §3, RFC 6733 §5.2).
    protocol: &'static str,
    /// The service of NAPTR records by RFC 3588 §5.2.
    former: &'static str,
    port: u16,
}

impl Carrier {
    const fn new(transport: TransportKind, tls: bool) -> Self {
        let (service, protocol, former, port) = match (transport, tls) {
            (TransportKind::Tcp, false) => ("_diameter._tcp", "diameter.tcp", "aaa+d2t", PORT),
            (TransportKind::Tcp, true) => ("_diameters._tcp", "diameter.tls.tcp", "", TLS_PORT),
            (TransportKind::Sctp, _) => ("_diameter._sctp", "diameter.sctp", "aaa+d2s", PORT),
        };
        Self {
            service,
            protocol,
            former,
            port,
        }
    }

    /// Whether a NAPTR record leads to Diameter over this: `aaa:diameter.tcp`, `aaa+ap16777251:diameter.tcp`.
    fn is_offered_by(self, record: &Naptr) -> bool {
        match record.services.split_once(':') {
            Some((service, protocol)) => {
                (service == "aaa" || service.starts_with("aaa+ap")) && protocol == self.protocol
            }
            None => !self.former.is_empty() && *record.services == *self.former,
        }
    }
}

/// Finds the addresses of a peer by its names; none where it has no names.
pub(crate) fn lookup(peer: &Peer, dns: Option<&Dns>) -> Option<Lookup> {
    let dns = dns.filter(|_| !peer.names.is_empty())?.clone();
    let carrier = Carrier::new(peer.transport, peer.tls.is_some());
    let names = peer.names.clone();
    Some(Lookup::new(move || -> Found {
        let (dns, names) = (dns.clone(), names.clone());
        Box::pin(async move {
            let mut found = Vec::new();
            for name in &names {
                by_name(&dns, name, carrier, &mut found).await;
            }
            found.truncate(MAX_ADDRESSES);
            found
        })
    }))
}

async fn by_name(dns: &Dns, name: &str, carrier: Carrier, found: &mut Vec<SocketAddr>) {
    match PeerName::parse(name) {
        Some(PeerName::Host(host, port)) => by_host(dns, host, port, found).await,
        Some(PeerName::Service(name)) => {
            let before = found.len();
            by_naptr(dns, name, carrier, found).await;
            if found.len() == before {
                by_srv(dns, &format!("{}.{name}", carrier.service), found).await;
            }
            if found.len() == before {
                by_host(dns, name, carrier.port, found).await;
            }
        }
        // Refused when the configuration was read.
        None => {}
    }
    if found.is_empty() {
        tracing::warn!(name, "the name of the peer resolves to no address");
    }
}

async fn by_naptr(dns: &Dns, name: &str, carrier: Carrier, found: &mut Vec<SocketAddr>) {
    let records = dns.naptrs(name).await.unwrap_or_default();
    for record in records.iter().filter(|record| carrier.is_offered_by(record)) {
        match &*record.flags {
            "s" => by_srv(dns, &record.replacement, found).await,
            "a" => by_host(dns, &record.replacement, carrier.port, found).await,
            _ => {}
        }
        if found.len() >= MAX_ADDRESSES {
            return;
        }
    }
}

async fn by_srv(dns: &Dns, name: &str, found: &mut Vec<SocketAddr>) {
    let records = dns.srv(name).await.unwrap_or_default();
    let mut random = ahash::RandomState::new().hash_one(name);
    let records = in_order(&records, || {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        random >> 33
    });
    for record in records.iter().take(MAX_ADDRESSES) {
        by_host(dns, &record.host, record.port, found).await;
    }
}

async fn by_host(dns: &Dns, host: &str, port: u16, found: &mut Vec<SocketAddr>) {
    let addresses = dns.addresses(host).await.unwrap_or_default();
    found.extend(addresses.iter().map(|address| SocketAddr::new(*address, port)));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn services_are_told_apart_by_what_carries_them() {
        let offers = |services: &str, transport, tls| {
            let record = Naptr {
                order: 1,
                preference: 1,
                flags: "s".into(),
                services: services.into(),
                replacement: "x".into(),
            };
            Carrier::new(transport, tls).is_offered_by(&record)
        };
        use TransportKind::{Sctp, Tcp};
        for (services, expected) in [
            ("aaa:diameter.tcp", [true, false, false]),
            ("aaa+ap16777251:diameter.tcp", [true, false, false]),
            ("aaa:diameter.tls.tcp", [false, true, false]),
            ("aaa+ap1:diameter.sctp", [false, false, true]),
            ("aaa+d2t", [true, false, false]),
            ("aaa+d2s", [false, false, true]),
            ("", [false; 3]),
            ("sip+d2t", [false; 3]),
            ("aaax:diameter.tcp", [false; 3]),
        ] {
            let found = [(Tcp, false), (Tcp, true), (Sctp, false)];
            assert_eq!(
                found.map(|(transport, tls)| offers(services, transport, tls)),
                expected,
                "{services}"
            );
        }
    }
}
