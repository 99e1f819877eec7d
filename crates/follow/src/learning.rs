//! Further identities of a followed subscriber, from the messages that belong to it.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use diameter_proto::{Avp, Avps, HEADER_LEN, known};
use serde_json::Value;

use crate::identity::Identity;
use crate::message::{Content, Record};

/// Bodies beyond this are lists, of more than one subscriber.
const LARGEST_BODY: usize = 64 << 10;

/// Members that hold an address of the UE: SmPolicyContextData, UePolicy (TS 29.512), AppSessionContextReqData
/// (TS 29.514), PcfBinding (TS 29.521).
const ADDRESSES: [&str; 7] = [
    "ipv4Address",
    "ipv4Addr",
    "ueIpv4",
    "ipv6AddressPrefix",
    "ipv6Prefix",
    "ueIpv6",
    "ipv6Addr",
];
/// Members that hold the subscriber (TS 29.571 §5.3.2).
const SUBSCRIBERS: [&str; 2] = ["supi", "gpsi"];

/// The member that holds what an AF requests (TS 29.514 §5.6.2.2).
const REQUESTED: &str = "ascReqData";

/// The identities in a message that belongs to a followed subscriber. `is_named`: it was found by an identity that an operator
/// has given, so that a SUPI in it is the subscriber's.
pub(crate) fn identities(record: &Record, is_named: bool) -> Vec<Identity> {
    match &record.content {
        Content::Request { body, .. } => in_body(body, is_named),
        Content::Answer {
            status,
            headers,
            body,
        } => {
            let mut found = in_body(body, is_named);
            let location = headers
                .iter()
                .find(|(name, _)| *status == 201 && name == "location");
            found.extend(location.and_then(|(_, location)| Identity::resource(location)));
            found
        }
        Content::Lost { .. } => Vec::new(),
        Content::Diameter { frame, .. } => in_frame(frame),
    }
}

/// Only members of the object itself, or of what it requests, are of the subscriber: end points of network functions have
/// members of the same names.
fn in_body(body: &[u8], is_named: bool) -> Vec<Identity> {
    let is_object = body.trim_ascii_start().first() == Some(&b'{');
    if !is_object || body.len() > LARGEST_BODY {
        return Vec::new();
    }
    let Ok(root) = serde_json::from_slice::<Value>(body) else {
        return Vec::new();
    };
    let objects = [&root, &root[REQUESTED]];
    let member = |name: &&str| objects.iter().find_map(|object| object[*name].as_str());
    let addresses = ADDRESSES.iter().filter_map(member);
    let addresses = addresses.filter(|text| {
        let host = text.split('/').next().unwrap_or_default();
        host.parse::<IpAddr>().is_ok()
    });
    let subscribers = SUBSCRIBERS.iter().filter(|_| is_named).filter_map(member);
    let texts = addresses.chain(subscribers);
    texts.filter_map(|text| text.parse().ok()).collect()
}

/// Session-Id and addresses of the UE among the AVPs of the message itself.
fn in_frame(frame: &[u8]) -> Vec<Identity> {
    let avps = Avps::new(frame.get(HEADER_LEN..).unwrap_or_default());
    avps.map_while(Result::ok).filter_map(of_avp).collect()
}

fn of_avp(avp: Avp<'_>) -> Option<Identity> {
    if avp.is(known::SESSION_ID) {
        return Identity::literal(std::str::from_utf8(avp.data).ok()?);
    }
    if avp.is(known::FRAMED_IP_ADDRESS) {
        let octets: [u8; 4] = avp.data.try_into().ok()?;
        return Ipv4Addr::from(octets).to_string().parse().ok();
    }
    if avp.is(known::FRAMED_IPV6_PREFIX) {
        let (length, given) = (*avp.data.get(1)?, avp.data.get(2..)?);
        let mut octets = [0; 16];
        octets.get_mut(..given.len())?.copy_from_slice(given);
        return format!("{}/{length}", Ipv6Addr::from(octets)).parse().ok();
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(found: Vec<Identity>) -> Vec<String> {
        found.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn addresses_are_learned_from_objects_and_subscribers_from_named_ones() {
        let body = br#" {"supi" : "imsi-001010000000001","ipv4Address":"10.45.0.2","ipv6AddressPrefix":"2001:db8:1::/64"}"#;
        assert_eq!(texts(in_body(body, false)), ["10.45.0.2", "2001:db8:1::/64"]);
        assert_eq!(
            texts(in_body(body, true)),
            ["10.45.0.2", "2001:db8:1::/64", "imsi-001010000000001"]
        );
        let nested =
            br#"{"ascReqData":{"ueIpv4":"10.45.0.2"},"pcfIpEndPoints":[{"ipv4Address":"127.0.0.1"}]}"#;
        assert_eq!(texts(in_body(nested, true)), ["10.45.0.2"]);
        for none in [
            &b"[{\"ipv4Addr\":\"10.0.0.1\"}]"[..],
            b"{\"ipv4Addr\":7}",
            b"{\"ipv4Addr\":\"x\"}",
            b"",
        ] {
            assert!(in_body(none, true).is_empty());
        }
    }

    proptest::proptest! {
        #[test]
        fn any_bytes_are_read(bytes in proptest::collection::vec(proptest::num::u8::ANY, 0..100)) {
            let _ = in_frame(&bytes);
            let _ = in_body(&[&b"{\"supi\""[..], &bytes].concat(), true);
        }
    }
}
