//! A roaming population: subscribers of the home network at MMEs of foreign networks, with a security application between.

use std::sync::OnceLock;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use settings::{Faults, Percent, Validate};

/// Mobile country code and network code of the home network.
pub const HOME: Network = Network { mcc: 262, mnc: 1 };
/// Networks of each foreign country, between which subscribers move.
const NETWORKS_OF_COUNTRY: usize = 2;
/// Measures that compare a message with the tables alone, in the order in which a message meets them.
pub const STATELESS: [&str; 10] = [
    "AppIdWL",
    "AppCmdCst",
    "RealmWLScr",
    "OhOrCstChk",
    "DrOrMatch",
    "VplmnORCst",
    "RealmIMSICst",
    "SubsIdenValid",
    "SpecAVPScr",
    "AVPInstChk",
];
/// Measures that compare it with what came before.
pub const STATEFUL: [&str; 5] = [
    "MsgRateMon",
    "TimeDistChk",
    "PreLocChk",
    "SrcHostValHss",
    "SrcHostValMme",
];

/// Roamers, and how they are guarded.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default, rename_all = "camelCase")]
pub struct Roaming {
    /// Subscribers of the home network that are abroad.
    #[schemars(range(min = 1, max = 100_000_000))]
    pub subscribers: u32,
    /// Measures of the security application that are on.
    pub measures: Vec<String>,
    /// Share of requests that are attacks. Without any, findings are only counted, and there may be none; else what is found is
    /// answered by an error, and all attacks must be.
    pub attacks: Percent,
}

impl Default for Roaming {
    fn default() -> Self {
        Self {
            subscribers: 100_000,
            measures: STATELESS
                .iter()
                .chain(&STATEFUL)
                .map(|name| (*name).to_owned())
                .collect(),
            attacks: Percent::new(0.0),
        }
    }
}

impl Roaming {
    /// Whether a measure is on.
    #[must_use]
    pub fn has(&self, measure: &str) -> bool {
        self.measures.iter().any(|name| name == measure)
    }
}

impl Validate for Roaming {
    fn validate(&self, faults: &mut Faults) {
        if !(1..=100_000_000).contains(&self.subscribers) {
            faults.at("subscribers").say(
                format!("{} have no IMSIs of their own", self.subscribers),
                "1 to 100000000",
            );
        }
        if self.measures.is_empty() {
            faults
                .at("measures")
                .say("is empty", "at least one measure, such as AppIdWL");
        }
        for (index, name) in self.measures.iter().enumerate() {
            let is_known = STATELESS.iter().chain(&STATEFUL).any(|known| known == name);
            if !is_known || self.measures[..index].contains(name) {
                faults.at(format!("measures[{index}]")).say(
                    format!("{name:?} is not a measure, or is there twice"),
                    format!(
                        "each of these once: {}, {}",
                        STATELESS.join(", "),
                        STATEFUL.join(", ")
                    ),
                );
            }
        }
    }
}

/// A mobile network, of a country with network codes of two digits.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Network {
    /// Mobile country code.
    pub mcc: u16,
    /// Mobile network code.
    pub mnc: u8,
}

impl Network {
    /// MCC and MNC, as tables have them.
    #[must_use]
    pub fn code(self) -> String {
        format!("{:03}{:02}", self.mcc, self.mnc)
    }

    /// The realm of its core (TS 23.003 §19.2).
    #[must_use]
    pub fn realm(self) -> String {
        format!("epc.mnc{:03}.mcc{:03}.3gppnetwork.org", self.mnc, self.mcc)
    }

    /// Visited-PLMN-Id (TS 29.272 §7.3.9): MCC and MNC as half octets, the lower one first.
    #[must_use]
    pub fn plmn(self) -> [u8; 3] {
        let [a, b, c] = [self.mcc / 100, self.mcc / 10 % 10, self.mcc % 10].map(|digit| digit as u8);
        [(b << 4) | a, 0xf0 | c, ((self.mnc % 10) << 4) | (self.mnc / 10)]
    }
}

/// A mobile country code, and its country.
#[derive(Clone, Debug, PartialEq)]
pub struct Country {
    /// Mobile country code.
    pub mcc: u16,
    /// Of the capital, in degrees, as text.
    pub place: (&'static str, &'static str),
    code: &'static str,
    neighbours: &'static str,
    networks: Vec<u8>,
}

impl Country {
    /// Whether a subscriber may be in both within no time: one country, or a border between.
    #[must_use]
    pub fn is_near(&self, other: &Self) -> bool {
        self.code == other.code || self.neighbours.split(';').any(|code| code == other.code)
    }
}

/// Mobile country codes whose country has a place, ascending. The facts are those of the security application, whose
/// `data/README.md` names sources and licences.
#[must_use]
pub fn countries() -> &'static [Country] {
    static ALL: OnceLock<Vec<Country>> = OnceLock::new();
    ALL.get_or_init(|| {
        let rows = |text: &'static str| {
            text.lines()
                .skip(1)
                .map(|line| line.split(',').collect::<Vec<_>>())
        };
        let places: Vec<_> = rows(include_str!("../../dsr-dsa/data/countries.csv")).collect();
        let codes = rows(include_str!("../../dsr-dsa/data/networks.csv")).filter_map(|row| {
            let [mcc, code, digits, networks] = row[..] else {
                return None;
            };
            let place = places.iter().find(|place| place.first() == Some(&code))?;
            let [_, _, north, east, _, neighbours] = place[..] else {
                return None;
            };
            let networks = networks.split(';').filter(|mnc| digits == "2" && mnc.len() == 2);
            Some(Country {
                mcc: mcc.parse().ok()?,
                place: (north, east),
                code,
                neighbours,
                networks: networks.filter_map(|mnc| mnc.parse().ok()).collect(),
            })
        });
        codes.collect()
    })
}

/// Foreign networks, two for each of the countries that have as many; none of the countries is near another, or near home.
#[must_use]
pub fn foreign() -> &'static [Network] {
    static ALL: OnceLock<Vec<Network>> = OnceLock::new();
    ALL.get_or_init(|| {
        let mut chosen: Vec<&Country> = countries().iter().filter(|one| one.mcc == HOME.mcc).collect();
        let mut networks = Vec::new();
        for country in countries() {
            if country.networks.len() < NETWORKS_OF_COUNTRY || chosen.iter().any(|one| one.is_near(country)) {
                continue;
            }
            let codes = country.networks.iter().take(NETWORKS_OF_COUNTRY);
            networks.extend(codes.map(|mnc| Network {
                mcc: country.mcc,
                mnc: *mnc,
            }));
            chosen.push(country);
        }
        networks
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn networks_are_of_countries_that_are_far_from_one_another() {
        assert_eq!((countries().len(), foreign().len()), (240, 102));
        let of = |network: &Network| countries().iter().find(|one| one.mcc == network.mcc).unwrap();
        for (index, one) in foreign().iter().enumerate() {
            for other in &foreign()[..index] {
                assert_ne!(one, other);
                assert_eq!(
                    of(one).is_near(of(other)),
                    one.mcc == other.mcc,
                    "{one:?} {other:?}"
                );
            }
            assert!(!of(one).is_near(of(&HOME)), "{one:?}");
        }
    }

    #[test]
    fn a_network_has_a_realm_and_a_plmn() {
        let network = Network { mcc: 262, mnc: 7 };
        assert_eq!(network.realm(), "epc.mnc007.mcc262.3gppnetwork.org");
        assert_eq!(network.code(), "26207");
        assert_eq!(network.plmn(), [0x62, 0xf2, 0x70]);
    }
}
