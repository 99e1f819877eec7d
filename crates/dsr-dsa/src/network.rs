//! Mobile networks as messages name them: in realms, IMSIs and Visited-PLMN-Ids.

use dsr_app::Digits;

use crate::world;

/// A network: mobile country code and mobile network code (TS 23.003 §2.2). A network code of two digits counts as that of
/// three with the same value: realms fill it up (TS 23.003 §19.2).
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub(crate) struct Network {
    pub(crate) country: u16,
    pub(crate) network: u16,
}

impl Network {
    /// Of 5 or 6 digits.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        if !matches!(text.len(), 5 | 6) || !text.bytes().all(|byte| byte.is_ascii_digit()) {
            return None;
        }
        Some(Self {
            country: text[..3].parse().ok()?,
            network: text[3..].parse().ok()?,
        })
    }

    /// Of the labels `mncXXX.mccYYY.3gppnetwork.org` at the end of a realm or host (TS 23.003 §19.2).
    pub(crate) fn of_name(name: &[u8]) -> Option<Self> {
        const DOMAIN: &[u8] = b".3gppnetwork.org";
        const LABELS: usize = "mncXXX.mccYYY".len();
        let front = name.len().checked_sub(DOMAIN.len())?;
        let start = front.checked_sub(LABELS)?;
        let (labels, domain) = (name.get(start..front)?, name.get(front..)?);
        let begins_label = start == 0 || name.get(start - 1) == Some(&b'.');
        let [m, n, c, n1, n2, n3, b'.', m2, c2, c3, y1, y2, y3] = labels else {
            return None;
        };
        let is_named = |found: [&u8; 3], word: &[u8; 3]| {
            found
                .iter()
                .zip(word)
                .all(|(byte, wanted)| byte.eq_ignore_ascii_case(wanted))
        };
        let fits = begins_label
            && domain.eq_ignore_ascii_case(DOMAIN)
            && is_named([m, n, c], b"mnc")
            && is_named([m2, c2, c3], b"mcc");
        fits.then_some(Self {
            country: number(&[*y1, *y2, *y3])?,
            network: number(&[*n1, *n2, *n3])?,
        })
    }

    /// Of a Visited-PLMN-Id (TS 29.272 §7.3.9): three octets of TBCD, the third digit of the network code in the second one, or
    /// F there.
    pub(crate) fn of_visited(data: &[u8]) -> Option<Self> {
        let [first, second, third] = data else { return None };
        let digit = |half: u8| (half < 10).then_some(u16::from(half));
        let country = digit(first & 15)? * 100 + digit(first >> 4)? * 10 + digit(second & 15)?;
        let two = digit(third & 15)? * 10 + digit(third >> 4)?;
        let network = match second >> 4 {
            15 => two,
            last => two * 10 + digit(last)?,
        };
        Some(Self { country, network })
    }

    /// The networks that an IMSI may be of: its country says how many digits the network code has, which may be two and three.
    pub(crate) fn of_imsi(imsi: &Digits) -> impl Iterator<Item = Self> {
        let country = imsi.prefix(3).and_then(|code| u16::try_from(code).ok());
        let found = country.map_or([None; 2], |country| {
            let digits = world::network_digits(country);
            let of = |is_used: bool, count: usize| {
                let prefix = imsi.prefix(3 + count).filter(|_| is_used)?;
                let network = u16::try_from(prefix % 10_u64.pow(count as u32)).ok()?;
                Some(Self { country, network })
            };
            [of(digits.two, 2), of(digits.three, 3)]
        });
        found.into_iter().flatten()
    }

    /// Whether an IMSI is of this network.
    pub(crate) fn has(self, imsi: &Digits) -> bool {
        Self::of_imsi(imsi).any(|network| network == self)
    }

    /// In 20 bits, 0 stands for none.
    pub(crate) fn to_bits(self) -> u64 {
        u64::from(self.country) * 1000 + u64::from(self.network) + 1
    }

    pub(crate) fn from_bits(bits: u64) -> Option<Self> {
        let value = bits.checked_sub(1)?;
        Some(Self {
            country: u16::try_from(value / 1000).ok()?,
            network: (value % 1000) as u16,
        })
    }
}

/// `262-01` with as many digits as needed.
impl std::fmt::Display for Network {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:03}-{:02}", self.country, self.network)
    }
}

fn number(digits: &[u8]) -> Option<u16> {
    std::str::from_utf8(digits)
        .ok()
        .filter(|text| text.bytes().all(|byte| byte.is_ascii_digit()))?
        .parse()
        .ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn network(country: u16, network: u16) -> Option<Network> {
        Some(Network { country, network })
    }

    #[test]
    fn networks_are_read_where_messages_have_them() {
        let of_name = |name: &str| Network::of_name(name.as_bytes());
        assert_eq!(of_name("epc.mnc001.mcc262.3gppnetwork.org"), network(262, 1));
        assert_eq!(
            of_name("mme1.EPC.MNC150.mcc310.3GPPNETWORK.ORG"),
            network(310, 150)
        );
        for other in [
            "epc.mnc01.mcc262.3gppnetwork.org",
            "epc.xmnc001.mcc262.3gppnetwork.org",
            "epc.mnc001.mcc262.3gppnetwork.org.evil.example",
            "epc.mnc0+1.mcc262.3gppnetwork.org",
            "3gppnetwork.org",
            "",
        ] {
            assert_eq!(of_name(other), None, "{other}");
        }
        assert_eq!(Network::of_visited(&[0x62, 0xf2, 0x10]), network(262, 1));
        assert_eq!(Network::of_visited(&[0x13, 0x00, 0x51]), network(310, 150));
        assert_eq!(Network::of_visited(&[0x62, 0xf2]), None);
        assert_eq!(Network::of_visited(&[0xa2, 0xf2, 0x10]), None);
        assert_eq!(Network::parse("26201"), network(262, 1));
        assert_eq!(Network::parse("310150"), network(310, 150));
        assert_eq!(Network::parse("2620"), None);
        let bits = Network::parse("310150").unwrap();
        assert_eq!(Network::from_bits(bits.to_bits()), Some(bits));
        assert_eq!(Network::from_bits(0), None);
    }

    #[test]
    fn an_imsi_is_of_a_network_by_the_digits_of_its_country() {
        let imsi = |text: &str| Digits::parse(text.as_bytes()).unwrap();
        let is = |network: &str, text: &str| Network::parse(network).unwrap().has(&imsi(text));
        assert!(is("26201", "262011234567890"));
        assert!(!is("26202", "262011234567890"));
        assert!(is("310150", "310150123456789"));
        assert!(
            !is("31015", "310150123456789"),
            "network codes of the USA have three digits"
        );
        assert!(!is("26201", "2620"));
    }
}
