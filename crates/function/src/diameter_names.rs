//! Addresses of Diameter peers that settings name by DNS (RFC 6733 §5.2).

use std::net::SocketAddr;

use diameter::{Found, Lookup, PORT, TLS_PORT, Transport};
use sbi::dns::{Dns, Naptr, in_order};
use settings::Faults;
use worker::Random;

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
    const fn new(transport: Transport, tls: bool) -> Self {
        let (service, protocol, former, port) = match (transport, tls) {
            (Transport::Tcp, false) => ("_diameter._tcp", "diameter.tcp", "aaa+d2t", PORT),
            (Transport::Tcp, true) => ("_diameters._tcp", "diameter.tls.tcp", "", TLS_PORT),
            (Transport::Sctp, _) => ("_diameter._sctp", "diameter.sctp", "aaa+d2s", PORT),
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

/// A name in DNS.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum PeerName<'n> {
    /// Of a host, with a port.
    Host(&'n str, u16),
    /// Of a realm or a service.
    Service(&'n str),
}

impl<'n> PeerName<'n> {
    fn parse(text: &'n str) -> Option<Self> {
        const LONGEST: usize = 255;
        let is_name = |name: &str| {
            let plain = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'-' | b'_');
            !name.is_empty() && name.len() <= LONGEST && name.bytes().all(plain)
        };
        let name = |name: &'n str| is_name(name).then_some(name);
        match text.rsplit_once(':') {
            Some((host, port)) => Some(Self::Host(
                name(host)?,
                port.parse().ok().filter(|port| *port > 0)?,
            )),
            None => Some(Self::Service(name(text)?)),
        }
    }
}

/// Notes the names of peers that cannot be names, each at its place.
pub fn check_names(names: &[String], faults: &mut Faults) {
    for (index, name) in names.iter().enumerate() {
        if PeerName::parse(name).is_none() {
            faults.at(format!("names[{index}]")).say(
                format!("`{name}` is not a name"),
                "a name such as epc.example.org, or with a port hss1.epc.example.org:3868",
            );
        }
    }
}

/// Finds the addresses of a peer by its names, before each attempt to connect: `HOST:PORT` is a host; another name has
/// NAPTR records for Diameter, else SRV records of `_diameter._tcp` (`_diameters._tcp`, `_diameter._sctp`), else is a host.
/// None where it has no names.
#[must_use]
pub fn lookup(names: &[String], transport: Transport, tls: bool, dns: Option<&Dns>) -> Option<Lookup> {
    let dns = dns.filter(|_| !names.is_empty())?.clone();
    let carrier = Carrier::new(transport, tls);
    let names = names.to_vec();
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
    let ordered = {
        // Not kept over a wait: it is one thread's.
        let random = Random::default();
        in_order(&records, || random.next())
    };
    for record in ordered.iter().take(MAX_ADDRESSES) {
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
        use Transport::{Sctp, Tcp};
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
