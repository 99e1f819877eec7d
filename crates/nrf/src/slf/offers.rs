//! Location functions among the registered profiles (dynamic SLF), and where they are.

use std::cell::RefCell;
use std::rc::Rc;

use function::sbi::Destinations;
use model::{NfType, ServiceName};
use registry::{Snapshot, TypeTable};
use sbi::headers::{SbiHeader as _, TargetApiRoot};

use crate::events::{Counters, Event};

/// The location functions that are registered and that the NRF may send to, as of a state of the registry.
pub(super) struct Offers {
    destinations: Destinations,
    known: RefCell<Known>,
}

/// The newest generation of the types that offer the service, how many types these are, and what they offer.
type Known = ((u64, usize), Rc<[Located]>);

impl Offers {
    pub(super) fn new(destinations: Destinations) -> Self {
        Self {
            destinations,
            known: RefCell::new(((u64::MAX, 0), Rc::new([]))),
        }
    }

    /// Returns the location functions of this state of the registry; evaluated when it changes.
    pub(super) fn of(&self, snapshot: &Snapshot, counters: &Counters) -> Rc<[Located]> {
        // Each change of one of them makes a generation above all others; only a type that goes leaves fewer.
        let state = tables_of(snapshot).fold((0, 0), |(newest, count), table| {
            (table.generation().max(newest), count + 1)
        });
        let mut known = self.known.borrow_mut();
        if known.0 != state {
            let mut found = offers_of(snapshot);
            found.retain(|one| {
                let checked = self.destinations.check(&one.root.origin);
                checked
                    .inspect_err(|_| counters.count(Event::TargetDenied))
                    .is_ok()
            });
            *known = (state, found.into());
        }
        known.1.clone()
    }
}

/// A location function.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Located {
    pub(crate) root: TargetApiRoot,
    /// Smaller is queried first.
    pub(crate) priority: u16,
    /// Its share among those of one priority.
    pub(crate) capacity: u16,
}

/// The profiles among which location functions are: UDRs by the standard, and types that it does not name, in deployments
/// that have one for this function.
fn tables_of(snapshot: &Snapshot) -> impl Iterator<Item = &TypeTable> {
    let types = snapshot.types();
    let fitting = types.filter(|(nf_type, _)| **nf_type == NfType::Udr || !nf_type.is_known());
    fitting.map(|(_, table)| &**table)
}

/// The registered functions that offer the service, those of the best priority first.
pub(crate) fn offers_of(snapshot: &Snapshot) -> Vec<Located> {
    let registered = tables_of(snapshot)
        .flat_map(TypeTable::iter)
        .filter(|entry| entry.status == model::NfStatus::Registered);
    let mut found: Vec<Located> = Vec::new();
    for entry in registered {
        let profile = &entry.profile;
        for service in profile.services() {
            if service.service_name == ServiceName::from("nudr-group-id-map") {
                found.extend(api_root(profile, service).map(|root| Located {
                    root,
                    priority: service.priority.or(profile.priority).unwrap_or(u16::MAX),
                    capacity: service.capacity.or(profile.capacity).unwrap_or(1),
                }));
            }
        }
    }
    found.sort_by_key(|one| one.priority);
    found
}

/// The API root of a service: its end point's address and port, else FQDN of service or profile with the
/// port of the first end point (N041).
pub(crate) fn api_root(profile: &model::NfProfile, service: &model::NfService) -> Option<TargetApiRoot> {
    let point = service.ip_end_points.first();
    let port = point
        .and_then(|point| point.port)
        .map(|port| format!(":{port}"))
        .unwrap_or_default();
    // With TLS the name is what the certificate has (TS 29.510 §6.1.6.2.2, note 1).
    let secure = service.scheme.as_str() == "https";
    let name = || service.fqdn.clone().or_else(|| profile.fqdn.clone());
    let address = point.and_then(|point| {
        point
            .ipv4_address
            .clone()
            .or_else(|| point.ipv6_address.as_ref().map(|a| format!("[{a}]")))
    });
    let host = match secure {
        true => name().or(address),
        false => address.or_else(name),
    };
    let host = host
        .or_else(|| profile.ipv4_addresses.first().cloned())
        .or_else(|| {
            profile
                .ipv6_addresses
                .first()
                .map(|address| format!("[{address}]"))
        })?;
    let prefix = service
        .api_prefix
        .as_deref()
        .map(|prefix| prefix.trim_matches('/'))
        .filter(|p| !p.is_empty());
    let prefix = prefix.map(|prefix| format!("/{prefix}")).unwrap_or_default();
    TargetApiRoot::parse(&format!("{}://{host}{port}{prefix}", service.scheme.as_str())).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn root(profile: &str, service: &str) -> Option<String> {
        let text = format!(
            r#"{{"nfInstanceId":"4947a69a-f61b-4bc1-b9da-47c9c5d14b64","nfType":"UDR","nfStatus":"REGISTERED"{profile},
            "nfServices":[{{"serviceInstanceId":"1","serviceName":"nudr-group-id-map","nfServiceStatus":"REGISTERED",
            "versions":[{{"apiVersionInUri":"v1","apiFullVersion":"1.0.0"}}]{service}}}]}}"#
        );
        let profile: model::NfProfile = serde_json::from_str(&text).unwrap();
        api_root(&profile, profile.services().next()?).map(|root| root.to_string())
    }

    /// The port is that of the end point; the name is that of the service before that of the profile, and with TLS it
    /// counts before the address (TS 29.510 §6.1.6.2.2, §6.1.6.2.3).
    #[test]
    fn an_api_root_is_made_of_port_and_name() {
        let named = r#","fqdn":"udr.test","ipv4Addresses":["10.0.0.9"]"#;
        let point = r#","ipEndPoints":[{"ipv4Address":"10.0.0.1","port":8081}]"#;
        let port = r#","ipEndPoints":[{"port":8081}]"#;
        let own = r#","fqdn":"slf.udr.test""#;
        for (profile, scheme, service, expected) in [
            (named, "http", point.to_owned(), "http://10.0.0.1:8081"),
            (named, "https", point.to_owned(), "https://udr.test:8081"),
            (
                named,
                "https",
                format!("{own}{point}"),
                "https://slf.udr.test:8081",
            ),
            (named, "http", format!("{own}{port}"), "http://slf.udr.test:8081"),
            (named, "http", port.to_owned(), "http://udr.test:8081"),
            ("", "http", format!("{own}{port}"), "http://slf.udr.test:8081"),
        ] {
            let service = format!(r#","scheme":"{scheme}"{service}"#);
            assert_eq!(
                root(profile, &service).as_deref(),
                Some(expected),
                "{profile} {service}"
            );
        }
    }
}
