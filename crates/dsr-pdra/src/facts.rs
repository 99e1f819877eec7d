//! What a request says of its session and subscriber.

use std::net::Ipv4Addr;

use diameter_proto::kind::DiameterIdentity;
use diameter_proto::{Avp, Fault, Message, ResultCode, Routing, known};
use dsr_app::View;
use dsr_app::session::session_id;
use model::Ipv6Prefix;
use sbr::{Binding, MAX_LENGTH, MAX_SESSION_ID, MIN_LENGTH, Party, Session};

/// What a request says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Facts {
    pub(crate) session: Vec<u8>,
    pub(crate) application: u32,
    /// Who sends it.
    pub(crate) sender: Party,
    pub(crate) destination_host: String,
    pub(crate) imsi: String,
    pub(crate) msisdn: String,
    /// Of Called-Station-Id, without the operator's part, in lower case.
    pub(crate) apn: String,
    pub(crate) ipv4: Option<Ipv4Addr>,
    pub(crate) prefixes: Vec<Ipv6Prefix>,
    /// IP-Domain-Id; empty: none.
    pub(crate) ip_domain: Vec<u8>,
}

impl Facts {
    /// Of a request that begins a session, or finds one.
    ///
    /// # Errors
    /// When it has no Session-Id, or one that is too long to be a key, or an address, prefix or APN that is none.
    pub(crate) fn read<B: AsRef<[u8]>>(message: &Message<B>, view: &View<'_>) -> Result<Self, Fault> {
        let digits = |digits: Option<&dsr_app::Digits>| {
            let digits = digits.map(|digits| String::from_utf8_lossy(digits.as_bytes()).into_owned());
            digits.unwrap_or_default()
        };
        let mut facts = Self::of_session(message)?;
        facts.imsi = digits(view.imsi());
        facts.msisdn = digits(view.msisdn());
        for avp in message.avps() {
            let Ok(avp) = avp else { break };
            if avp.is(known::CALLED_STATION_ID) {
                if avp.data.len() > MOST_APN || !avp.data.is_ascii() {
                    let what = "an APN has at most 100 octets of ASCII (TS 23.003 §9.1)";
                    return Err(fault(ResultCode::INVALID_AVP_VALUE, what, &avp));
                }
                facts.apn = network_identifier(avp.data);
            } else if avp.is(known::IP_DOMAIN_ID) {
                facts.ip_domain = avp.data.to_vec();
            } else if avp.is(known::FRAMED_IP_ADDRESS) {
                let octets = <[u8; 4]>::try_from(avp.data);
                let wrong = |_| {
                    fault(
                        ResultCode::INVALID_AVP_LENGTH,
                        "an IPv4 address has 4 bytes",
                        &avp,
                    )
                };
                let address = Ipv4Addr::from(octets.map_err(wrong)?);
                // Without an address yet, as with a deferred allocation (TS 29.061 §13.2).
                facts.ipv4 = (!address.is_unspecified()).then_some(address);
            } else if avp.is(known::FRAMED_IPV6_PREFIX) && facts.prefixes.len() < MOST_PREFIXES {
                facts.prefixes.push(prefix(&avp)?);
            }
        }
        Ok(facts)
    }

    /// Of a request that was sent: its numbers and addresses have been read before.
    pub(crate) fn read_sent(request: &Message) -> Option<Self> {
        let routing = Routing::scan_as(request, |_| false).ok()?;
        let view = View::new(request.application(), request.command(), 0, &routing);
        Self::read(request, &view).ok()
    }

    /// What all requests of a session have.
    pub(crate) fn of_session<B: AsRef<[u8]>>(message: &Message<B>) -> Result<Self, Fault> {
        let session = session_id(message, MAX_SESSION_ID)?.to_vec();
        let [host, realm, destination_host] = names(message).map(str::to_owned);
        Ok(Self {
            session,
            application: message.application(),
            sender: Party { host, realm },
            destination_host,
            ..Self::default()
        })
    }

    /// By what its subscriber is bound: a request without a number binds its session alone.
    pub(crate) fn subscriber(&self) -> Vec<u8> {
        let with = |kind: &[u8], bytes: &[u8]| [kind, bytes].concat();
        if !self.imsi.is_empty() {
            return with(b"i", self.imsi.as_bytes());
        }
        if !self.msisdn.is_empty() {
            return with(b"m", self.msisdn.as_bytes());
        }
        // Session-Ids that agree up to there share a place at the desk.
        let most = self.session.len().min(MOST_OF_SESSION);
        with(b"s", self.session.get(..most).unwrap_or_default())
    }

    /// The binding under this key.
    pub(crate) fn binding(&self, key: Vec<u8>) -> Binding {
        Binding {
            key,
            imsi: self.imsi.clone(),
            msisdn: self.msisdn.clone(),
            ipv4: self.ipv4,
            prefixes: self.prefixes.clone(),
            ..Binding::default()
        }
    }

    /// Whether a session may be that of its subscriber: nothing that both name contradicts it. An address counts only where
    /// the session has one of the same family, an IP-Domain-Id only for an IPv4 address.
    pub(crate) fn fits(&self, session: &Session, domain: Option<&str>) -> bool {
        let Some(binding) = &session.binding else {
            return false;
        };
        let is_elsewhere = |domain: &str| self.ipv4.is_some() && !self.is_in(domain);
        if !self.ip_domain.is_empty() && domain.is_some_and(is_elsewhere) {
            return false;
        }
        let agrees = |own: &str, other: &str| own.is_empty() || other.is_empty() || own == other;
        let covers = |wanted: &Ipv6Prefix| binding.prefixes.iter().any(|prefix| prefix.covers(wanted));
        agrees(&self.apn, &session.apn)
            && agrees(&self.imsi, &binding.imsi)
            && agrees(&self.msisdn, &binding.msisdn)
            && (self.ipv4.is_none() || binding.ipv4.is_none() || self.ipv4 == binding.ipv4)
            && (binding.prefixes.is_empty() || self.prefixes.iter().all(covers))
    }

    fn is_in(&self, domain: &str) -> bool {
        self.ip_domain == domain.as_bytes()
    }

    /// How much says that a session of this domain is meant among those that fit, which may name no APN and be in no domain.
    pub(crate) fn likeness(&self, session: &Session, domain: Option<&str>) -> u8 {
        let same_apn = !self.apn.is_empty() && self.apn == session.apn;
        let same_domain = domain.is_some_and(|domain| self.is_in(domain));
        u8::from(same_apn) + u8::from(same_domain)
    }
}

/// Origin-Host, Origin-Realm and Destination-Host of a message in one walk; empty: it has none, or one that is not a name.
fn names<B: AsRef<[u8]>>(message: &Message<B>) -> [&str; 3] {
    let tags = [known::ORIGIN_HOST, known::ORIGIN_REALM, known::DESTINATION_HOST];
    let mut found = [None; 3];
    for avp in message.avps().map_while(Result::ok) {
        let Some((_, first)) = tags.iter().zip(&mut found).find(|(tag, _)| avp.is(**tag)) else {
            continue;
        };
        first.get_or_insert_with(|| avp.read::<DiameterIdentity>().unwrap_or_default());
        if found.iter().all(Option::is_some) {
            break;
        }
    }
    found.map(Option::unwrap_or_default)
}

/// Prefixes of one session that are keys.
const MOST_PREFIXES: usize = 8;
/// Bytes of a Session-Id that count for a subscriber without a number; a key has the name of the pool as well.
const MOST_OF_SESSION: usize = 384;

fn fault(code: ResultCode, why: &'static str, avp: &Avp<'_>) -> Fault {
    Fault::new(code, why).about(avp.padded())
}

/// A Framed-IPv6-Prefix (RFC 3162 §2.3): a reserved byte, the length, as many bytes as it needs. Bits beyond the length, which
/// ought to be zero, do not count.
fn prefix(avp: &Avp<'_>) -> Result<Ipv6Prefix, Fault> {
    let wrong = |why| fault(ResultCode::INVALID_AVP_VALUE, why, avp);
    let [_, length, given @ ..] = avp.data else {
        return Err(fault(
            ResultCode::INVALID_AVP_LENGTH,
            "an IPv6 prefix has 2 to 18 bytes",
            avp,
        ));
    };
    if given.len() > 16 {
        return Err(fault(
            ResultCode::INVALID_AVP_LENGTH,
            "an IPv6 prefix has 2 to 18 bytes",
            avp,
        ));
    }
    // A short prefix would catch the addresses of other subscribers.
    if !(MIN_LENGTH..=MAX_LENGTH).contains(length) {
        return Err(wrong("an IPv6 prefix of a subscriber has 32 to 128 bits"));
    }
    if given.len() < usize::from(length.div_ceil(8)) {
        return Err(wrong("an IPv6 prefix has fewer bytes than its length"));
    }
    let mut octets = [0; 16];
    octets.iter_mut().zip(given).for_each(|(to, from)| *to = *from);
    Ok(Ipv6Prefix::new(octets.into(), *length))
}

/// Octets of an APN (TS 23.003 §9.1).
const MOST_APN: usize = 100;

/// The network identifier of an APN (TS 23.003 §9.1): without `.mnc001.mcc001.gprs`, in lower case.
pub(crate) fn network_identifier(apn: &[u8]) -> String {
    let apn = String::from_utf8_lossy(apn).to_ascii_lowercase();
    if !apn.ends_with(".gprs") {
        return apn;
    }
    let labels: Vec<&str> = apn.split('.').collect();
    match labels.as_slice() {
        [network @ .., mnc, mcc, "gprs"]
            if !network.is_empty() && mnc.starts_with("mnc") && mcc.starts_with("mcc") =>
        {
            network.join(".")
        }
        _ => apn,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use diameter_proto::{AvpFlags, AvpKey, MessageBuilder, Routing};
    use dsr_app::session::wrong_request_type;
    use proptest::prelude::*;

    fn read(fill: impl FnOnce(&mut MessageBuilder)) -> Result<Facts, Fault> {
        let mut builder = MessageBuilder::request(known::command::CREDIT_CONTROL, known::application::GX);
        builder.put(known::SESSION_ID, "pgw;1;2");
        fill(&mut builder);
        let message = builder.finish().unwrap();
        let routing = Routing::scan(&message, b"").unwrap();
        let view = View::new(message.application(), message.command(), 10, &routing);
        Facts::read(&message, &view)
    }

    fn prefixed(bytes: &[u8]) -> Result<Vec<Ipv6Prefix>, u32> {
        let facts = read(|b| {
            b.put(known::FRAMED_IPV6_PREFIX, bytes);
        });
        facts.map(|facts| facts.prefixes).map_err(|fault| fault.code.0)
    }

    #[test]
    fn prefixes_are_read_and_those_that_are_none_are_refused() {
        let link = [0, 64, 0x20, 1, 0xd, 0xb8, 0, 0, 0, 1];
        let expected = vec!["2001:db8:0:1::/64".parse().unwrap()];
        assert_eq!(prefixed(&link), Ok(expected.clone()));
        // Bits of the host do not count.
        assert_eq!(prefixed(&[&link[..], &[7; 8]].concat()), Ok(expected));
        let host = [&[0, 128, 0x20, 1][..], &[0; 14]].concat();
        assert_eq!(prefixed(&host).unwrap()[0].length(), 128);
        for (length, bytes) in [(129, 16), (255, 16), (0, 0), (8, 1), (31, 4), (64, 7)] {
            let wrong = [&[0, length][..], &vec![1; bytes]].concat();
            assert_eq!(prefixed(&wrong), Err(5004), "{length}");
        }
        assert_eq!(prefixed(&[]), Err(5014));
        assert_eq!(prefixed(&[0]), Err(5014));
        assert_eq!(prefixed(&[&[0, 128][..], &[1; 17]].concat()), Err(5014));
    }

    #[test]
    fn an_apn_that_is_none_is_refused() {
        let apn = |octets: &[u8]| {
            let put = |builder: &mut MessageBuilder| {
                _ = builder.put_raw(AvpKey::ietf(30), AvpFlags::MANDATORY, octets);
            };
            read(put).map(|facts| facts.apn)
        };
        assert_eq!(apn(b"ims"), Ok("ims".to_owned()));
        assert!(apn(&[b'a'; 100]).is_ok());
        for wrong in [vec![b'a'; 101], [&b"a"[..], &[0xff; 21_845]].concat()] {
            assert_eq!(apn(&wrong).unwrap_err().code, ResultCode::INVALID_AVP_VALUE);
        }
    }

    #[test]
    fn an_apn_has_no_operator_part() {
        let is = |apn: &str| network_identifier(apn.as_bytes());
        assert_eq!(is("Internet.mnc001.mcc001.gprs"), "internet");
        assert_eq!(is("a.b.mnc001.mcc001.gprs"), "a.b");
        assert_eq!(is("IMS"), "ims");
        assert_eq!(is("mnc001.mcc001.gprs"), "mnc001.mcc001.gprs");
        assert_eq!(is(""), "");
    }

    #[test]
    fn a_session_id_that_cannot_be_a_key_is_refused() {
        for (length, is_valid) in [(0, false), (1, true), (512, true), (513, false)] {
            let mut builder = MessageBuilder::request(known::command::CREDIT_CONTROL, known::application::GX);
            builder.put(known::SESSION_ID, "x".repeat(length).as_str());
            assert_eq!(
                Facts::of_session(&builder.finish().unwrap()).is_ok(),
                is_valid,
                "{length}"
            );
        }
        let none = MessageBuilder::request(known::command::CREDIT_CONTROL, known::application::GX);
        let fault = Facts::of_session(&none.finish().unwrap()).unwrap_err();
        assert_eq!(fault.code, ResultCode::MISSING_AVP);
    }

    #[test]
    fn an_address_of_zeros_is_none() {
        let address = |octets: &[u8]| {
            let facts = read(|b| {
                b.put(known::FRAMED_IP_ADDRESS, octets);
            });
            facts.unwrap().ipv4
        };
        assert_eq!(address(&[0; 4]), None);
        assert_eq!(address(&[10, 0, 0, 1]), Some([10, 0, 0, 1].into()));
    }

    #[test]
    fn what_is_wrong_with_a_request_names_its_avp() {
        let mut builder = MessageBuilder::request(known::command::CREDIT_CONTROL, known::application::GX);
        builder.put(known::SESSION_ID, "x".repeat(513).as_str());
        let none = builder.finish().unwrap();
        assert!(Facts::of_session(&none).unwrap_err().failed_avp.is_some());
        let fault = wrong_request_type(&none);
        assert_eq!(
            (fault.code, fault.failed_avp.is_some()),
            (ResultCode::MISSING_AVP, true)
        );
        let mut builder = MessageBuilder::request(known::command::CREDIT_CONTROL, known::application::GX);
        builder.put(known::SESSION_ID, "a").put(known::CC_REQUEST_TYPE, 9);
        let fault = wrong_request_type(&builder.finish().unwrap());
        let about = (fault.code, fault.failed_avp.is_some());
        assert_eq!(about, (ResultCode::INVALID_AVP_VALUE, true));
    }

    #[test]
    fn what_contradicts_a_session_does_not_fit_it() {
        let session = Session {
            apn: "internet".to_owned(),
            binding: Some(Binding {
                imsi: "1".to_owned(),
                ipv4: Some([10, 0, 0, 1].into()),
                ..Binding::default()
            }),
            ..Session::default()
        };
        let facts = Facts {
            ipv4: Some([10, 0, 0, 1].into()),
            ..Facts::default()
        };
        assert!(facts.fits(&session, None));
        let with = |change: fn(&mut Facts)| {
            let mut facts = facts.clone();
            change(&mut facts);
            facts.fits(&session, None)
        };
        assert!(with(|facts| facts.msisdn = "49".to_owned()));
        assert!(with(
            |facts| facts.prefixes = vec!["2001:db8::/64".parse().unwrap()]
        ));
        assert!(!with(|facts| facts.apn = "ims".to_owned()));
        assert!(!with(|facts| facts.imsi = "2".to_owned()));
        assert!(!with(|facts| facts.ipv4 = Some([10, 0, 0, 2].into())));
        let of_domain = Facts {
            ip_domain: b"a".to_vec(),
            ..facts.clone()
        };
        let fits = |domain| of_domain.fits(&session, domain);
        assert_eq!(
            [fits(Some("a")), fits(None), fits(Some("b"))],
            [true, true, false]
        );
        let likeness = |domain| of_domain.likeness(&session, domain);
        assert_eq!([likeness(Some("a")), likeness(None)], [1, 0]);
        // It says in which domain an IPv4 address is, and nothing else.
        let without_address = Facts {
            ipv4: None,
            ..of_domain.clone()
        };
        assert!(without_address.fits(&session, Some("b")) && facts.fits(&session, Some("b")));
    }

    proptest! {
        #[test]
        fn any_prefix_is_read_or_refused(bytes in proptest::collection::vec(any::<u8>(), 0..24)) {
            if let Ok(found) = prefixed(&bytes) {
                prop_assert!((MIN_LENGTH..=MAX_LENGTH).contains(&found[0].length()));
            }
        }
    }
}
