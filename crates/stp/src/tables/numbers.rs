//! Number services, compiled: a file of numbers, and how numbers of titles become its keys.

use std::path::Path;

use numbers::{DestinationSet, Key, Kind, Load, Map};
use settings::Faults;
use ss7_proto::Digits;
use ss7_proto::isup::nature;
use ss7_proto::sccp::GlobalTitle;

use super::calls::Calls;
use super::{Hop, Translations};
use crate::config::{self, CallRelated, NextRouting};

/// Fewest digits of a number that is looked up.
const FEWEST: usize = 5;
/// Most digits of a routing number: with them a roaming number of 16 digits has room for a short number.
const MOST_ROUTING: usize = 10;

/// Numbering plans of titles (Q.713 §3.4.2.3.3).
const E164: u8 = 1;
const E212: u8 = 6;
const E214: u8 = 7;

/// Where a number belongs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Whereabouts {
    /// Another service's entry, or none.
    Unlisted,
    /// This network: the group of its HLRs.
    Home(u32),
    /// Another network.
    Away {
        routing_number: Digits,
        /// MCC and MNC.
        network: Option<Digits>,
    },
}

/// A number of a title, as the file has it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Number {
    pub(crate) kind: Kind,
    /// International; of an IMSI all digits.
    pub(crate) digits: Digits,
    /// Whether an own routing number stood before it.
    pub(crate) was_routed: bool,
}

impl Number {
    /// `None` where it has another count of digits than numbers that are looked up, or others than 0 to 9.
    pub(crate) fn new(kind: Kind, digits: Digits, was_routed: bool) -> Option<Self> {
        let fits = (FEWEST..=numbers::MOST_DIGITS).contains(&digits.len());
        let number = Self {
            kind,
            digits,
            was_routed,
        };
        (fits && digits.iter().all(|digit| digit < 10)).then_some(number)
    }
}

/// How numbers are made international.
#[derive(Debug, Default)]
pub(crate) struct Numbering {
    country: Digits,
    area: Digits,
    own: Vec<Digits>,
    own_routing: Vec<Digits>,
    titles: Vec<(Digits, Digits)>,
}

/// Everything that the path of a message needs.
#[derive(Debug)]
pub(crate) struct NumberServices {
    pub(crate) call_related: CallRelated,
    pub(crate) routing: NextRouting,
    subsystems: Vec<u8>,
    pub(super) numbering: Numbering,
    pub(crate) calls: Calls,
    map: Map,
    /// By the position of a set in the map.
    sets: Vec<Entry>,
}

/// What the file says of a number.
#[derive(Clone, Copy, Debug)]
struct Entry {
    whereabouts: Whereabouts,
    /// The group of the service control point.
    scp: Option<u32>,
}

impl NumberServices {
    /// Opens the file; `None` where the settings name none.
    pub(super) fn load(
        config: &config::NumberServices,
        hops: &[Hop],
        translations: &Translations,
    ) -> Result<Option<Self>, String> {
        let Some(path) = &config.file else {
            return Ok(None);
        };
        let map = Map::open(path, None, Load::Mapped).map_err(|error| error.to_string())?;
        let sets = map.sets();
        let sets = sets.iter().map(|set| entry(set, translations));
        let sets: Result<Vec<Entry>, String> = sets.collect();
        // What is wrong with settings is reported with them.
        let mut reported = Faults::default();
        Ok(Some(Self {
            call_related: config.call_related,
            routing: config.routing,
            subsystems: config.subsystems.clone(),
            numbering: Numbering::compile(config, &mut reported),
            calls: Calls::compile(config, hops, translations, &mut reported),
            sets: sets.map_err(|what| shown(path, &what))?,
            map,
        }))
    }

    /// Whether numbers of messages to a subsystem are looked up.
    pub(crate) fn concerns(&self, ssn: Option<u8>) -> bool {
        ssn.is_some_and(|ssn| self.subsystems.contains(&ssn))
    }

    /// The number of a title; `None` when it has no digits that could be looked up.
    pub(crate) fn number(&self, title: &GlobalTitle<'_>) -> Option<Number> {
        self.numbering.number(title)
    }

    /// A number as an argument of MAP has it (TS 29.002 §17.7.8): 1 = international, 2 = national.
    pub(crate) fn of_argument(&self, nature: u8, digits: &Digits) -> Option<Digits> {
        match nature {
            1 => Some(*digits),
            2 if !self.numbering.country.is_empty() => self.numbering.country.join(digits),
            _ => None,
        }
    }

    /// Where a number belongs.
    ///
    /// # Errors
    /// When its part of the file is damaged.
    pub(crate) fn find(&self, number: &Number) -> Result<Whereabouts, numbers::Damaged> {
        let found = self.entry(number)?;
        Ok(found.map_or(Whereabouts::Unlisted, |entry| entry.whereabouts))
    }

    /// The group of the service control point of a number.
    ///
    /// # Errors
    /// When its part of the file is damaged.
    pub(crate) fn service_control(&self, number: &Number) -> Result<Option<u32>, numbers::Damaged> {
        Ok(self.entry(number)?.and_then(|entry| entry.scp))
    }

    fn entry(&self, number: &Number) -> Result<Option<&Entry>, numbers::Damaged> {
        // No more than `numbers::MOST_DIGITS`, which 64 bits hold.
        let digits = number.digits.iter().take(numbers::MOST_DIGITS);
        let value = digits.fold(0, |value, digit| value * 10 + u64::from(digit));
        let Some(key) = Key::from_number(number.kind, number.digits.len(), value) else {
            return Ok(None);
        };
        let id = self.map.find(key)?;
        Ok(id.and_then(|id| self.sets.get(id.index())))
    }

    /// Whether a number is of this network's ranges.
    pub(crate) fn is_own(&self, number: &Digits) -> bool {
        self.numbering.own.iter().any(|own| number.starts_with(own))
    }
}

fn shown(path: &Path, what: &str) -> String {
    format!("{}: {what}", path.display())
}

impl Numbering {
    /// Reports what is wrong with the settings.
    pub(super) fn compile(config: &config::NumberServices, faults: &mut Faults) -> Self {
        let mut decimal = |text: &str, key: String, range| {
            super::numbers::decimal(text, format!("numberServices.{key}"), range, faults)
        };
        let mut numbering = Self {
            country: decimal(&config.country_code, "countryCode".to_owned(), 0..=3),
            area: decimal(&config.area_code, "areaCode".to_owned(), 0..=8),
            ..Self::default()
        };
        for (index, own) in config.own.iter().enumerate() {
            numbering.own.push(decimal(own, format!("own[{index}]"), 1..=15));
        }
        for (index, one) in config.mobile_titles.iter().enumerate() {
            let key = format!("mobileTitles[{index}]");
            let title = decimal(&one.title, format!("{key}.title"), 1..=15);
            let imsi = decimal(&one.imsi, format!("{key}.imsi"), 5..=15);
            numbering.titles.push((title, imsi));
        }
        // Of several that fit the longest counts.
        numbering
            .titles
            .sort_by_key(|(title, _)| std::cmp::Reverse(title.len()));
        for (index, text) in config.own_routing_numbers.iter().enumerate() {
            match routing_number(text) {
                Some(digits) => numbering.own_routing.push(digits),
                None => faults
                    .at(format!("numberServices.ownRoutingNumbers[{index}]"))
                    .say(format!("is `{text}`"), "1 to 10 digits, 0 to 9 and a to e"),
            }
        }
        // Here too: one may begin another.
        numbering
            .own_routing
            .sort_by_key(|digits| std::cmp::Reverse(digits.len()));
        numbering
    }

    fn number(&self, title: &GlobalTitle<'_>) -> Option<Number> {
        let mut digits = title.digits()?.without_st();
        let plan = title.numbering_plan.unwrap_or(E164);
        let mut was_routed = false;
        let kind = match plan {
            E164 => {
                if let Some(rest) = self.without_own_routing(&digits) {
                    // What follows a routing number is international (TS 23.066 §B.4.2).
                    was_routed = true;
                    digits = rest;
                } else {
                    digits = self.international(&digits, title.nature)?;
                }
                Kind::Msisdn
            }
            E212 => Kind::Imsi,
            E214 => {
                let mut titles = self.titles.iter();
                let (title, imsi) = titles.find(|(title, _)| digits.starts_with(title))?;
                digits = imsi.join(&digits.skip(title.len()))?;
                Kind::Imsi
            }
            _ => return None,
        };
        Number::new(kind, digits, was_routed)
    }

    /// What follows a routing number of this network.
    pub(super) fn without_own_routing(&self, digits: &Digits) -> Option<Digits> {
        let mut routing = self.own_routing.iter();
        let prefix = routing.find(|one| digits.starts_with(one))?;
        Some(digits.skip(prefix.len()))
    }

    /// A number of this country without the country code.
    pub(super) fn national(&self, digits: &Digits) -> Option<Digits> {
        let is_ours = !self.country.is_empty() && digits.starts_with(&self.country);
        is_ours.then(|| digits.skip(self.country.len()))
    }

    /// `nature`: Q.713 §3.4.2.3.1 and Q.763 §3.9 number alike.
    pub(super) fn international(&self, digits: &Digits, nature: Option<u8>) -> Option<Digits> {
        match nature {
            Some(nature::NATIONAL | nature::SUBSCRIBER) if self.country.is_empty() => None,
            Some(nature::SUBSCRIBER) if self.area.is_empty() => None,
            Some(nature::NATIONAL) => self.country.join(digits),
            Some(nature::SUBSCRIBER) => self.country.join(&self.area)?.join(digits),
            _ => Some(*digits),
        }
    }
}

/// Digits 0 to 9 of a setting; reports what else it is.
pub(super) fn decimal(
    text: &str,
    key: String,
    range: std::ops::RangeInclusive<usize>,
    faults: &mut Faults,
) -> Digits {
    let digits = Digits::parse(text).filter(|digits| digits.iter().all(|digit| digit < 10));
    let digits = digits.filter(|digits| range.contains(&digits.len()));
    if digits.is_none() {
        let right = format!("{} to {} digits", range.start(), range.end());
        faults.at(key).say(format!("is `{text}`"), right);
    }
    digits.unwrap_or(Digits::EMPTY)
}

/// Hexadecimal digits are used in routing numbers; 15 would end a number of MAP.
fn routing_number(text: &str) -> Option<Digits> {
    let digits = Digits::parse(&text.to_ascii_lowercase())?;
    let fits = (1..=MOST_ROUTING).contains(&digits.len()) && digits.iter().all(|digit| digit < 15);
    fits.then_some(digits)
}

/// What the entry of a number says; services that are not ours pass.
fn entry(set: &DestinationSet, translations: &Translations) -> Result<Entry, String> {
    let (mut home, mut away, mut network, mut bare, mut scp) = (None, None, None, None, None);
    for part in set.as_str().split(',') {
        match part.split_once('=') {
            Some(("hlr", group)) => {
                let found = translations.group(group);
                home =
                    Some(found.ok_or_else(|| format!("`{set}` names no group of `translation`: `{group}`"))?);
            }
            Some(("rn", number)) => {
                let right = || format!("`{set}`: `rn` has 1 to 10 digits, 0 to 9 and a to e");
                away = Some(routing_number(number).ok_or_else(right)?);
            }
            Some(("network", code)) => {
                let digits = Digits::parse(code).filter(|code| code.iter().all(|digit| digit < 10));
                let digits = digits.filter(|code| (5..=6).contains(&code.len()));
                let right = || format!("`{set}`: `network` has the 5 or 6 digits of MCC and MNC");
                network = Some(digits.ok_or_else(right)?);
            }
            Some(("scp", group)) => {
                let found = translations.other_group(group);
                scp = Some(found.map_err(|what| format!("`{set}`: `scp={group}` {what}"))?);
            }
            // It is that of each service that has none of its own; it may well be a Diameter peer.
            None => bare = bare.or(translations.group(part)),
            _ => {}
        }
    }
    if away.is_none() {
        home = home.or(bare);
    }
    let whereabouts = match (home, away) {
        (Some(_), Some(_)) => return Err(format!("`{set}` has both `hlr` and `rn`")),
        (Some(group), None) => Whereabouts::Home(group),
        (None, Some(routing_number)) => Whereabouts::Away {
            routing_number,
            network,
        },
        (None, None) => Whereabouts::Unlisted,
    };
    Ok(Entry { whereabouts, scp })
}
