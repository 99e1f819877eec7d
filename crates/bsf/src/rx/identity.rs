//! Whose session an AAR is about (TS 29.214 §4.4.1).

use std::net::{Ipv4Addr, Ipv6Addr};

use bytes::Bytes;
use diameter::proto::known;
use diameter::proto::{Fault, MessageMut, ResultCode, Routing, encode_one};
use model::Ipv6Prefix;

use crate::binding::Query;

/// IP-Domain-Id (TS 29.214 §5.3.34).
const IP_DOMAIN_ID: u32 = 537;
/// Subscription-Id-Type (RFC 8506 §8.47).
const E164: i32 = 0;
const IMSI: i32 = 1;
const NAI: i32 = 3;

/// What an AAR says of its session.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Target {
    /// The question. The subscriber is part of it only where no address is given: a session has one of those, a
    /// subscriber several sessions.
    pub(super) query: Query,
    supi: Option<String>,
    gpsi: Option<String>,
}

impl Target {
    /// Questions that decide where several sessions have the address, as in IP domains of their own: the subscriber's.
    pub(super) fn narrowed(&self) -> impl Iterator<Item = Query> {
        let query = &self.query;
        let by_address = query.places().next().is_some();
        let (supi, gpsi) = (self.supi.clone(), self.gpsi.clone());
        let by_supi = supi.filter(|_| by_address).map(|supi| Query {
            supi: Some(supi),
            ..query.clone()
        });
        let by_gpsi = gpsi.filter(|_| by_address).map(|gpsi| Query {
            gpsi: Some(gpsi),
            ..query.clone()
        });
        by_supi.into_iter().chain(by_gpsi)
    }

    /// Questions for a binding that has one of the two addresses alone, and the member that it does not have then: the
    /// other address may have come later than the binding.
    pub(super) fn single_stack(&self) -> impl Iterator<Item = (Query, &'static str)> {
        let query = &self.query;
        let both = query.ipv4.is_some() && query.ipv6.is_some();
        let v4 = Query {
            ipv6: None,
            ..query.clone()
        };
        let v6 = Query {
            ipv4: None,
            ..query.clone()
        };
        let questions = both.then_some([(v4, "ipv6Prefix"), (v6, "ipv4Addr")]);
        questions.into_iter().flatten()
    }
}

/// Reads what an AAR says of its session.
pub(super) fn of(message: &MessageMut, routing: &Routing<'_>) -> Result<Target, Fault> {
    let wrong = |avp: Bytes, why: &'static str| Fault::new(ResultCode::INVALID_AVP_VALUE, why).about(avp);
    let mut query = Query::default();
    if let Some(bytes) = routing.framed_ip {
        let octets: [u8; 4] = bytes.try_into().map_err(|_| {
            let avp = encode_one(known::FRAMED_IP_ADDRESS, bytes);
            wrong(avp, "Framed-IP-Address has other than four bytes")
        })?;
        query.ipv4 = Some(Ipv4Addr::from(octets));
    }
    if let Some(bytes) = routing.framed_ipv6_prefix {
        let prefix = prefix(bytes).ok_or_else(|| {
            let avp = encode_one(known::FRAMED_IPV6_PREFIX, bytes);
            wrong(avp, "Framed-IPv6-Prefix is no prefix")
        })?;
        query.ipv6 = Some(prefix);
    }
    let (mut supi, mut gpsi) = (None, None);
    for (kind, identity) in routing.subscription_ids() {
        match kind {
            IMSI => supi = Some(format!("imsi-{identity}")),
            NAI if supi.is_none() => supi = Some(format!("nai-{identity}")),
            E164 => gpsi = Some(format!("msisdn-{}", identity.trim_start_matches('+'))),
            _ => {}
        }
    }
    if query.ipv4.is_none() && query.ipv6.is_none() {
        (query.supi, query.gpsi) = (supi.clone(), gpsi.clone());
    }
    for avp in message.avps().map_while(Result::ok) {
        if avp.vendor == known::VENDOR_3GPP && avp.code == IP_DOMAIN_ID {
            let text =
                std::str::from_utf8(avp.data).map_err(|_| wrong(avp.padded(), "IP-Domain-Id is no text"))?;
            query.ip_domain = Some(text.to_owned());
        } else if avp.is(known::CALLED_STATION_ID) {
            query.dnn = Some(avp.read::<diameter::proto::kind::Utf8String>()?.to_owned());
        }
    }
    if !query.is_searchable() {
        return Err(Fault::missing(known::FRAMED_IP_ADDRESS));
    }
    Ok(Target { query, supi, gpsi })
}

/// RFC 3162 §2.3: a reserved byte, the length, the bytes of the prefix that matter.
fn prefix(bytes: &[u8]) -> Option<Ipv6Prefix> {
    let [_, length @ ..=128, rest @ ..] = bytes else {
        return None;
    };
    if rest.len() > 16 || rest.len() * 8 < usize::from(*length) {
        return None;
    }
    let mut octets = [0; 16];
    octets.iter_mut().zip(rest).for_each(|(to, from)| *to = *from);
    Some(Ipv6Prefix::new(Ipv6Addr::from(octets), *length))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prefixes_as_rfc_3162_has_them() {
        let some = |text: &str| text.parse::<Ipv6Prefix>().ok();
        assert_eq!(
            prefix(&[0, 64, 0x20, 1, 0xd, 0xb8, 0, 0, 0, 1]),
            some("2001:db8:0:1::/64")
        );
        assert_eq!(prefix(&[0, 0]), some("::/0"));
        for wrong in [&[][..], &[0], &[0, 129], &[0, 64, 1], &[0; 19], &[0, 128, 1]] {
            assert_eq!(prefix(wrong), None, "{wrong:?}");
        }
    }
}
