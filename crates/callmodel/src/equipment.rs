//! Lists of equipment: which IMEIs a register knows, and what an answer about them has to be.

use std::fmt::Write as _;
use std::io;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use settings::{Faults, Percent, Validate};

use crate::subscribers::FIRST_SUBSCRIBER;

/// The first TAC of the ranges; every eighth from there on is one.
const FIRST_TAC: u64 = 10_000_000;
const TAC_STEP: u64 = 8;
/// IMEIs of a TAC (TS 23.003 §6.2.1).
const IMEIS_OF_TAC: u64 = 1_000_000;
/// Single IMEIs, IMEIs of pairs and IMEIs of no list, each in TACs of their own.
const FIRST_IMEI: u64 = 95_000_000_000_000;
const FIRST_PAIRED: u64 = 96_000_000_000_000;
const FIRST_UNLISTED: u64 = 98_000_000_000_000;
const UNLISTED: u64 = 1_000_000_000;
/// IMSIs of an IMEI, as the benchmarking guide has them.
const IMSIS: u64 = 10;

/// Equipment in the lists of a register, and what MMEs ask about.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default, rename_all = "camelCase")]
pub struct EquipmentLists {
    /// TACs, a third on each list.
    #[schemars(range(max = 10_000_000))]
    pub ranges: u64,
    /// Single IMEIs, a third on each list.
    #[schemars(range(max = 1_000_000_000))]
    pub imeis: u64,
    /// Pairs of an IMEI and an IMSI, ten IMSIs for each IMEI, a third on each list.
    #[schemars(range(max = 1_000_000_000))]
    pub pairs: u64,
    /// Share of requests about equipment that a TAC decides.
    pub by_range: Percent,
    /// Share of requests about a listed IMEI.
    pub by_imei: Percent,
    /// Share of requests about a listed pair.
    pub by_pair: Percent,
    /// Share of requests about equipment in no list.
    pub unlisted: Percent,
}

impl Default for EquipmentLists {
    fn default() -> Self {
        Self {
            ranges: 100_000,
            imeis: 100_000,
            pairs: 1_000_000,
            by_range: Percent::new(50.0),
            by_imei: Percent::new(20.0),
            by_pair: Percent::new(25.0),
            unlisted: Percent::new(5.0),
        }
    }
}

/// Where equipment is listed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Listed {
    /// By its TAC.
    Range,
    /// By itself.
    Imei,
    /// With an IMSI.
    Pair,
    /// In no list.
    Nowhere,
}

impl Listed {
    /// The word for it in reports.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Range => "by range",
            Self::Imei => "by IMEI",
            Self::Pair => "by pair",
            Self::Nowhere => "unlisted",
        }
    }
}

/// Equipment-Status (TS 29.272 §7.3.51).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum Status {
    /// Whitelisted.
    White = 0,
    /// Blacklisted.
    Black = 1,
    /// Greylisted.
    Grey = 2,
}

impl Status {
    /// That of a value of the AVP.
    #[must_use]
    pub const fn of(value: u16) -> Option<Self> {
        match value {
            0 => Some(Self::White),
            1 => Some(Self::Black),
            2 => Some(Self::Grey),
            _ => None,
        }
    }

    const fn list(self) -> &'static str {
        match self {
            Self::White => "white",
            Self::Black => "black",
            Self::Grey => "grey",
        }
    }
}

/// Equipment to ask about.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Entry {
    /// 14 digits.
    pub imei: u64,
    /// In whose hands; none: of any subscriber without a pair.
    pub imsi: Option<u64>,
    /// Its status; none: it is unknown.
    pub status: Option<Status>,
}

impl EquipmentLists {
    /// The share of requests that a list decides.
    #[must_use]
    pub const fn share(&self, listed: Listed) -> Percent {
        match listed {
            Listed::Range => self.by_range,
            Listed::Imei => self.by_imei,
            Listed::Pair => self.by_pair,
            Listed::Nowhere => self.unlisted,
        }
    }

    /// Entries of a list.
    #[must_use]
    pub const fn count(&self, listed: Listed) -> u64 {
        match listed {
            Listed::Range => self.ranges,
            Listed::Imei => self.imeis,
            Listed::Pair => self.pairs,
            Listed::Nowhere => UNLISTED,
        }
    }

    /// Equipment that an entry decides.
    #[must_use]
    pub fn entry(&self, listed: Listed, number: u64) -> Entry {
        let status = Status::of((number % 3) as u16);
        match listed {
            Listed::Range => Entry {
                imei: (FIRST_TAC + number * TAC_STEP) * IMEIS_OF_TAC + number % IMEIS_OF_TAC,
                imsi: None,
                status,
            },
            Listed::Imei => Entry {
                imei: FIRST_IMEI + number,
                imsi: None,
                status,
            },
            Listed::Pair => Entry {
                imei: FIRST_PAIRED + number / IMSIS,
                imsi: Some(FIRST_SUBSCRIBER + number),
                status,
            },
            Listed::Nowhere => Entry {
                imei: FIRST_UNLISTED + number,
                imsi: None,
                status: None,
            },
        }
    }

    /// Writes the lists as the register of the router reads them.
    ///
    /// # Errors
    /// When they cannot be written.
    pub fn write(&self, out: &mut impl io::Write) -> io::Result<()> {
        let mut line = String::new();
        for listed in [Listed::Range, Listed::Imei, Listed::Pair] {
            for number in 0..self.count(listed) {
                let Entry { imei, imsi, status } = self.entry(listed, number);
                let list = status.map_or("white", Status::list);
                line.clear();
                // Writing to a String cannot fail.
                let _ = match (listed, imsi) {
                    (Listed::Range, _) => writeln!(line, "{list},{:08}", imei / IMEIS_OF_TAC),
                    (_, Some(imsi)) => writeln!(line, "pair,{imei:014},{imsi:015},{list}"),
                    (_, None) => writeln!(line, "{list},{imei:014}"),
                };
                out.write_all(line.as_bytes())?;
            }
        }
        out.flush()
    }
}

impl Validate for EquipmentLists {
    fn validate(&self, faults: &mut Faults) {
        let shares = [self.by_range, self.by_imei, self.by_pair, self.unlisted];
        let sum: f64 = shares.iter().map(|share| share.percent()).sum();
        if (sum - 100.0).abs() > 0.01 {
            faults
                .at("byRange")
                .say(format!("adds up to {sum}% with the other shares"), "100%");
        }
        if self.ranges > 10_000_000 {
            faults
                .at("ranges")
                .say("are more than there are TACs for", "at most 10000000");
        }
        for (key, count, listed) in [
            ("ranges", self.ranges, Listed::Range),
            ("imeis", self.imeis, Listed::Imei),
            ("pairs", self.pairs, Listed::Pair),
        ] {
            if count == 0 && self.share(listed).percent() > 0.0 {
                faults.at(key).say(
                    "is 0, and requests are about some",
                    "at least 1, or a share of 0%",
                );
            }
            if count > 1_000_000_000 {
                faults
                    .at(key)
                    .say("are more than have numbers of their own", "at most 1000000000");
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_what_is_asked_about() {
        let lists = EquipmentLists {
            ranges: 2,
            imeis: 3,
            pairs: 1,
            ..EquipmentLists::default()
        };
        let mut text = Vec::new();
        lists.write(&mut text).unwrap();
        assert_eq!(
            String::from_utf8(text).unwrap(),
            "white,10000000\nblack,10000008\nwhite,95000000000000\nblack,95000000000001\ngrey,95000000000002\n\
             pair,96000000000000,001010000000000,white\n"
        );
        let black = lists.entry(Listed::Range, 1);
        assert_eq!(
            (black.imei, black.status),
            (10_000_008_000_001, Some(Status::Black))
        );
    }
}
