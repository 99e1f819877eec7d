//! Which subscriber a request is about, wherever its application puts that.

use std::net::{Ipv4Addr, Ipv6Addr};

use diameter_proto::{Avps, Routing, known};

/// The longest number: 15 digits of IMSI (TS 23.003 §2.2) or MSISDN (E.164).
pub const MAX_DIGITS: usize = 15;

/// Digits of an IMSI or MSISDN.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Digits {
    ascii: [u8; MAX_DIGITS],
    len: u8,
}

impl std::fmt::Debug for Digits {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&String::from_utf8_lossy(self.as_bytes()))
    }
}

impl Digits {
    /// All of `text`, when it is digits and not too many or none.
    #[must_use]
    pub fn parse(text: &[u8]) -> Option<Self> {
        if text.is_empty() || text.len() > MAX_DIGITS || !text.iter().all(u8::is_ascii_digit) {
            return None;
        }
        let mut ascii = [0; MAX_DIGITS];
        ascii[..text.len()].copy_from_slice(text);
        Some(Self {
            ascii,
            len: text.len() as u8,
        })
    }

    /// Digits in TBCD (TS 29.002 §17.7.8): two per byte, the lower half first, filled with F. Digits behind a filler
    /// would be another number than those before it: there is none then.
    #[must_use]
    pub fn from_tbcd(bytes: &[u8]) -> Option<Self> {
        let mut digits = Self::default();
        let mut halves = bytes.iter().flat_map(|byte| [byte & 15, byte >> 4]);
        while let Some(half) = halves.next() {
            match half {
                0..=9 if usize::from(digits.len) < MAX_DIGITS => {
                    digits.ascii[usize::from(digits.len)] = b'0' + half;
                    digits.len += 1;
                }
                15 if halves.all(|half| half == 15) => break,
                _ => return None,
            }
        }
        (digits.len > 0).then_some(digits)
    }

    /// The digits as text.
    #[inline]
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        // `len` is at most MAX_DIGITS.
        self.ascii.get(..usize::from(self.len)).unwrap_or_default()
    }

    /// The value of the first `count` digits; none when there are fewer.
    #[must_use]
    pub fn prefix(&self, count: usize) -> Option<u64> {
        let digits = self.as_bytes().get(..count)?;
        Some(
            digits
                .iter()
                .fold(0, |value, digit| value * 10 + u64::from(digit - b'0')),
        )
    }
}

/// Subscription-Id-Type (RFC 8506 §8.47).
const E164: i32 = 0;
const IMSI: i32 = 1;
const SIP_URI: i32 = 2;
const NAI: i32 = 3;

fn subscription<'a>(routing: &Routing<'a>, kind: i32) -> Option<&'a [u8]> {
    routing
        .subscription_ids()
        .find(|(of, _)| *of == kind)
        .map(|(_, data)| data.as_bytes())
}

/// The IMSI: in a Subscription-Id that says so, in User-Name (S6a, S13, …), alone or as NAI (TS 23.003 §19.3), or in
/// a Subscription-Id that is a NAI. On Gx and Gy a User-Name may be any number.
#[must_use]
pub fn imsi(routing: &Routing<'_>) -> Option<Digits> {
    subscription(routing, IMSI)
        .and_then(Digits::parse)
        .or_else(|| routing.user_name.and_then(imsi_of_name))
        .or_else(|| subscription(routing, NAI).and_then(imsi_of_name))
}

/// `001010000000001`, or the user part of a NAI where one digit says how to authenticate.
fn imsi_of_name(name: &[u8]) -> Option<Digits> {
    let user = name.split(|byte| *byte == b'@').next()?;
    match user {
        [b'0' | b'1' | b'6', rest @ ..] if rest.len() == MAX_DIGITS => Digits::parse(rest),
        _ => Digits::parse(user),
    }
}

/// The MSISDN: in an MSISDN AVP (alone or in a User-Identity), a Subscription-Id, or the telephone number of a
/// public identity.
#[must_use]
pub fn msisdn(routing: &Routing<'_>) -> Option<Digits> {
    let in_group = || {
        let group = Avps::new(routing.user_identity?);
        group.get(known::MSISDN).ok().flatten()
    };
    routing
        .msisdn
        .or_else(in_group)
        .and_then(Digits::from_tbcd)
        .or_else(|| {
            subscription(routing, E164)
                .map(|number| number.strip_prefix(b"+").unwrap_or(number))
                .and_then(Digits::parse)
        })
        .or_else(|| number_of_identity(impu(routing)?))
}

/// `tel:+49170…` or `sip:+49170…@ims.example`.
fn number_of_identity(identity: &[u8]) -> Option<Digits> {
    let rest = match identity.iter().position(|byte| *byte == b':') {
        Some(colon) => identity.get(colon + 1..)?,
        None => identity,
    };
    let user = rest.split(|byte| matches!(byte, b'@' | b';')).next()?;
    Digits::parse(user.strip_prefix(b"+")?)
}

/// The private identity: User-Name where it is a NAI, or a Subscription-Id of that type.
#[must_use]
pub fn impi<'a>(routing: &Routing<'a>) -> Option<&'a [u8]> {
    routing
        .user_name
        .filter(|name| name.contains(&b'@'))
        .or_else(|| subscription(routing, NAI))
        .or(routing.user_name)
}

/// The public identity: Public-Identity, alone or in a User-Identity, or a Subscription-Id with a SIP URI.
#[must_use]
pub fn impu<'a>(routing: &Routing<'a>) -> Option<&'a [u8]> {
    let in_group = || {
        let group = Avps::new(routing.user_identity?);
        group
            .find(known::PUBLIC_IDENTITY)
            .ok()
            .flatten()
            .map(|avp| avp.data)
    };
    routing
        .public_identity
        .or_else(in_group)
        .or_else(|| subscription(routing, SIP_URI))
}

/// Framed-IP-Address.
#[must_use]
pub fn ipv4(routing: &Routing<'_>) -> Option<Ipv4Addr> {
    let bytes: [u8; 4] = routing.framed_ip?.try_into().ok()?;
    Some(Ipv4Addr::from(bytes))
}

/// Framed-IPv6-Prefix (RFC 3162 §2.3): a reserved byte, the length of the prefix, as many bytes as it needs.
#[must_use]
pub fn ipv6(routing: &Routing<'_>) -> Option<(Ipv6Addr, u8)> {
    let [_, length, prefix @ ..] = routing.framed_ipv6_prefix? else {
        return None;
    };
    if *length > 128 || prefix.len() > 16 || prefix.len() < usize::from(length.div_ceil(8)) {
        return None;
    }
    let mut address = [0; 16];
    address[..prefix.len()].copy_from_slice(prefix);
    Some((Ipv6Addr::from(address), *length))
}

#[cfg(test)]
mod tests {
    use super::*;
    use diameter_proto::{MessageBuilder, MessageMut};

    fn message(fill: impl FnOnce(&mut MessageBuilder)) -> MessageMut {
        let mut builder = MessageBuilder::request(316, 0);
        fill(&mut builder);
        builder.finish().unwrap()
    }

    fn with<T>(fill: impl FnOnce(&mut MessageBuilder), look: impl FnOnce(&Routing<'_>) -> T) -> T {
        let message = message(fill);
        look(&Routing::scan(&message, b"").unwrap())
    }

    #[test]
    fn an_imsi_is_found_where_applications_put_it() {
        let is = |fill: fn(&mut MessageBuilder)| with(fill, imsi).map(|digits| format!("{digits:?}"));
        let expected = Some("001010000000001".to_owned());
        assert_eq!(
            is(|b| {
                b.put(known::USER_NAME, "001010000000001");
            }),
            expected
        );
        assert_eq!(
            is(|b| {
                b.put(
                    known::USER_NAME,
                    "0001010000000001@nai.epc.mnc001.mcc001.3gppnetwork.org",
                );
            }),
            expected
        );
        assert_eq!(
            is(|b| {
                b.group(known::SUBSCRIPTION_ID, |group| {
                    group
                        .put(known::SUBSCRIPTION_ID_TYPE, 1)
                        .put(known::SUBSCRIPTION_ID_DATA, "001010000000001");
                });
            }),
            expected
        );
        assert_eq!(
            is(|b| {
                b.put(known::USER_NAME, "alice@example");
            }),
            None
        );
        assert_eq!(
            is(|b| {
                b.put(known::USER_NAME, "");
            }),
            None
        );
        assert_eq!(is(|_| ()), None);
    }

    #[test]
    fn an_msisdn_is_found_where_applications_put_it() {
        let is = |fill: fn(&mut MessageBuilder)| with(fill, msisdn).map(|digits| format!("{digits:?}"));
        assert_eq!(
            is(|b| {
                b.put(known::MSISDN, &[0x94, 0x71, 0xf0]);
            }),
            Some("49170".to_owned())
        );
        assert_eq!(
            is(|b| {
                b.group(known::USER_IDENTITY, |g| {
                    g.put(known::MSISDN, &[0x94, 0x71, 0xf0]);
                });
            }),
            Some("49170".to_owned())
        );
        assert_eq!(
            is(|b| {
                b.put(known::PUBLIC_IDENTITY, "sip:+49170@ims.example;user=phone");
            }),
            Some("49170".to_owned())
        );
        assert_eq!(
            is(|b| {
                b.put(known::PUBLIC_IDENTITY, "sip:bob@ims.example");
            }),
            None
        );
        assert_eq!(
            is(|b| {
                b.put(known::MSISDN, &[0xaa]);
            }),
            None
        );
        assert_eq!(
            is(|b| {
                b.put(known::MSISDN, &[0x11; 9]);
            }),
            None
        );
    }

    #[test]
    fn addresses_are_read_and_wrong_ones_are_none() {
        assert_eq!(
            with(
                |b| {
                    b.put(known::FRAMED_IP_ADDRESS, &[10, 0, 0, 1]);
                },
                ipv4
            ),
            Some(Ipv4Addr::new(10, 0, 0, 1))
        );
        assert_eq!(
            with(
                |b| {
                    b.put(known::FRAMED_IP_ADDRESS, &[10]);
                },
                ipv4
            ),
            None
        );
        let prefix = [0, 64, 0x20, 0x01, 0x0d, 0xb8, 0, 0, 0, 1];
        assert_eq!(
            with(
                |b| {
                    b.put(known::FRAMED_IPV6_PREFIX, &prefix);
                },
                ipv6
            ),
            Some(("2001:db8:0:1::".parse().unwrap(), 64))
        );
        assert_eq!(
            with(
                |b| {
                    b.put(known::FRAMED_IPV6_PREFIX, &[0, 64, 1]);
                },
                ipv6
            ),
            None
        );
        assert_eq!(
            with(
                |b| {
                    b.put(known::FRAMED_IPV6_PREFIX, &[0, 129, 1]);
                },
                ipv6
            ),
            None
        );
        assert_eq!(
            with(
                |b| {
                    b.put(known::FRAMED_IPV6_PREFIX, &[]);
                },
                ipv6
            ),
            None
        );
    }

    #[test]
    fn a_filler_ends_a_number() {
        let read = |bytes: &[u8]| Digits::from_tbcd(bytes).map(|digits| format!("{digits:?}"));
        assert_eq!(read(&[0x94, 0x71, 0xf0]), Some("49170".to_owned()));
        assert_eq!(read(&[0x94, 0x71, 0xf0, 0xff]), Some("49170".to_owned()));
        for middle in [
            &[0x94, 0xf1, 0x21][..],
            &[0x9f, 0x71],
            &[0x94, 0xff, 0xf1],
            &[0xff],
            &[],
        ] {
            assert_eq!(read(middle), None, "{middle:x?}");
        }
    }

    #[test]
    fn prefixes_are_numbers() {
        let digits = Digits::parse(b"0049").unwrap();
        assert_eq!(
            (digits.prefix(3), digits.prefix(4), digits.prefix(5)),
            (Some(4), Some(49), None)
        );
        assert_eq!(Digits::parse(b"1234567890123456"), None);
    }

    #[test]
    fn a_subscription_id_that_says_imsi_is_believed_before_a_user_name() {
        let gx = |b: &mut MessageBuilder| {
            b.put(known::USER_NAME, "491701234567");
            for (kind, data) in [(0, "491701234567"), (1, "001010000000001")] {
                b.group(known::SUBSCRIPTION_ID, |group| {
                    group
                        .put(known::SUBSCRIPTION_ID_TYPE, kind)
                        .put(known::SUBSCRIPTION_ID_DATA, data);
                });
            }
        };
        with(gx, |routing| {
            assert_eq!(imsi(routing), Digits::parse(b"001010000000001"));
            assert_eq!(msisdn(routing), Digits::parse(b"491701234567"));
        });
    }
}
