//! Whom a request is for (RFC 6733 §6.1.4 to §6.1.6): this node answers its own, and relays none.

use diameter::proto::known;
use diameter::proto::{Fault, Message, ResultCode};

use crate::config::Diameter;

/// Why a request is for another node: its Destination-Host is another's, or, where it names none, its realm.
pub(super) fn elsewhere(message: &Message, settings: &Diameter) -> Option<Fault> {
    let text = |avp| message.get(avp).ok().flatten();
    let (host, realm) = (text(known::DESTINATION_HOST), text(known::DESTINATION_REALM));
    let serves_host = |host: &str| is_one_of(host, &settings.host, &settings.served_hosts);
    let serves_realm = |realm: &str| is_one_of(realm, &settings.realm, &settings.served_realms);
    match host {
        Some(host) if serves_host(host) => None,
        _ if realm.is_some_and(|realm| !serves_realm(realm)) => Some(Fault::new(
            ResultCode::REALM_NOT_SERVED,
            "Destination-Realm is not served here; diameter.realm and diameter.servedRealms are",
        )),
        Some(_) => Some(Fault::new(
            ResultCode::UNABLE_TO_DELIVER,
            "Destination-Host is another node, and this one does not relay",
        )),
        None => None,
    }
}

/// Whether a DiameterIdentity is this one, or one of the others; those with a leading dot are all below.
pub(super) fn is_one_of(name: &str, own: &str, others: &[String]) -> bool {
    let is = |known: &str| match known.strip_prefix('.') {
        Some(parent) => name
            .len()
            .checked_sub(parent.len())
            .filter(|start| *start > 1)
            .and_then(|start| Some((name.get(..start)?, name.get(start..)?)))
            .is_some_and(|(child, end)| child.ends_with('.') && end.eq_ignore_ascii_case(parent)),
        None => name.eq_ignore_ascii_case(known),
    };
    is(own) || others.iter().any(|other| is(other))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_compared_whole_and_below_a_dot() {
        let others = ["visited.example".to_owned(), ".roam.example".to_owned()];
        for (name, expected) in [
            ("HOME.example", true),
            ("Visited.Example", true),
            ("a.roam.example", true),
            ("b.a.ROAM.example", true),
            ("roam.example", false),
            (".roam.example", false),
            ("xroam.example", false),
            ("home.example.org", false),
            ("", false),
            ("äroam.example", false),
        ] {
            assert_eq!(is_one_of(name, "home.example", &others), expected, "{name}");
        }
    }
}
