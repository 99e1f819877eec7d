//! A tree, compiled.

use std::collections::HashMap;
use std::str::FromStr as _;
use std::sync::Arc;

use domain::base::{Name, Serial, Ttl};
use domain::rdata::{Ns, Soa};
use settings::Faults;

use super::profile::seconds;
use super::ranges::Range;
use super::{Digits, NO_NUMBER, Profile, Ranges};
use crate::config;

type OwnedName = Name<Vec<u8>>;

/// A tree of names.
pub(crate) struct Tree {
    pub(crate) apex: OwnedName,
    /// The digits that the apex stands for.
    pub(crate) digits: Digits,
    pub(crate) soa: Soa<OwnedName>,
    pub(crate) name_servers: Vec<Ns<OwnedName>>,
    pub(crate) ttl: Ttl,
    pub(crate) negative_ttl: Ttl,
    pub(crate) service: String,
    pub(crate) ranges: Ranges,
}

/// Refresh, retry and expire of SOA: what RIPE-203 recommends. Secondary servers of ours do not transfer, so that they count
/// for what people read alone.
const REFRESH: [u32; 3] = [86_400, 7_200, 3_600_000];

impl Tree {
    /// Compiles a tree, and reports what is wrong with it.
    pub(super) fn compile(
        tree: &config::Tree,
        serial: u32,
        profiles: &HashMap<String, Arc<Profile>>,
        faults: &mut Faults,
    ) -> Option<Self> {
        let mut name = |key: &str, text: &str| {
            let parsed = OwnedName::from_str(text)
                .ok()
                .filter(|name| !name.is_root() && !text.is_empty());
            if parsed.is_none() {
                let what = format!("`{text}` is not a name of DNS");
                faults.at(key).say(what, "a name such as `e164enum.net`");
            }
            parsed
        };
        let apex = name("apex", &tree.apex);
        let contact = match tree.contact.as_str() {
            "" => name("apex", &format!("hostmaster.{}", tree.apex)),
            contact => name("contact", contact),
        };
        let servers = tree.name_servers.iter().enumerate();
        let servers: Vec<_> = servers
            .filter_map(|(index, server)| name(&format!("nameServers[{index}]"), server))
            .collect();
        if servers.is_empty() {
            faults.at("nameServers").say(
                "is empty",
                "the names of the servers of this tree, the primary one first",
            );
        }
        let digits = Digits::parse(&tree.digits);
        if digits.is_none() {
            let what = format!("`{}` is not a number", tree.digits);
            faults.at("digits").say(what, "up to 15 digits, or nothing");
        }
        let ranges = ranges(&tree.ranges, profiles, faults);
        let (apex, contact, primary) = (apex?, contact?, servers.first()?.clone());
        let negative_ttl = Ttl::from_secs(seconds(tree.negative_ttl));
        let [refresh, retry, expire] = REFRESH.map(Ttl::from_secs);
        Some(Self {
            apex,
            digits: digits?,
            soa: Soa::new(
                primary,
                contact,
                Serial(serial),
                refresh,
                retry,
                expire,
                negative_ttl,
            ),
            name_servers: servers.into_iter().map(Ns::new).collect(),
            ttl: Ttl::from_secs(seconds(tree.ttl)),
            negative_ttl,
            service: tree.service.clone(),
            ranges,
        })
    }

    /// The apex as people write it.
    pub(crate) fn name(&self) -> String {
        self.apex.to_string()
    }
}

fn ranges(
    ranges: &[config::NumberRange],
    profiles: &HashMap<String, Arc<Profile>>,
    faults: &mut Faults,
) -> Ranges {
    let mut all = Vec::new();
    for (index, range) in ranges.iter().enumerate() {
        let at = format!("ranges[{index}]");
        let digits = Digits::parse(&range.digits).filter(|digits| digits.len() > 0);
        if digits.is_none() {
            let what = format!("`{}` is not the beginning of a number", range.digits);
            faults
                .at(format!("{at}.digits"))
                .say(what, "1 to 15 digits, without `+`");
        }
        let digits = digits.unwrap_or_default();
        let profile = profiles.get(&range.profile).cloned();
        if profile.is_none() && range.profile != NO_NUMBER {
            let what = format!("`{}` does not exist", range.profile);
            faults
                .at(format!("{at}.profile"))
                .say(what, "the name of a profile, or `none`");
        }
        let least = range.min_digits.max(digits.len());
        if !(least..=15).contains(&range.max_digits) {
            let what = format!("is {}", range.max_digits);
            faults
                .at(format!("{at}.maxDigits"))
                .say(what, format!("{least} to 15"));
        }
        all.push(Range {
            digits,
            profile,
            least,
            most: range.max_digits,
        });
    }
    let (ranges, twice) = Ranges::new(all);
    for digits in twice {
        faults
            .at("ranges")
            .say(format!("have {digits} twice"), "one range for the same digits");
    }
    ranges
}
