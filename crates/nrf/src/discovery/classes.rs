//! Classes of equivalent subscribers: those that lie in the same ranges of every profile of a type.
//!
//! An answer depends on a SUPI or GPSI only through the ranges that profiles register. So subscribers fall
//! into few classes, and one answer serves a whole class. A class is found by a binary search among the
//! ends of all ranges, and by trying each distinct pattern once.

use ::discovery::params;
use model::identity::{Digits, IdentityRange};
use model::{NfProfile, Pattern};

use registry::TypeTable;

/// Distinct patterns of a type that still make classes; with more, answers are not shared.
const PATTERNS_MAX: usize = 64;

/// The classes of one NF type, as of one state of its profiles.
#[derive(Debug, Default)]
pub struct Classes {
    supi: Family,
    gpsi: Family,
}

/// Which class a subscriber is in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Class {
    supi: Option<Place>,
    gpsi: Option<Place>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Place {
    interval: u32,
    patterns: u64,
}

#[derive(Debug, Default)]
struct Family {
    /// Ends of ranges in order; `true` after a range's last number, `false` before its first.
    ends: Vec<(Digits, bool)>,
    patterns: Vec<Pattern>,
}

impl Classes {
    /// The classes that these profiles make.
    #[must_use]
    pub fn of(table: &TypeTable) -> Self {
        let profiles = || table.iter().map(|entry| &*entry.profile);
        Self {
            supi: Family::of(profiles(), params::supi_ranges),
            gpsi: Family::of(profiles(), params::gpsi_ranges),
        }
    }

    /// Returns the class of a subscriber; `None` if the type has too many patterns.
    #[must_use]
    pub fn class(&self, supi: Option<&str>, gpsi: Option<&str>) -> Option<Class> {
        Some(Class {
            supi: supi.map_or(Some(None), |supi| self.supi.place(supi).map(Some))?,
            gpsi: gpsi.map_or(Some(None), |gpsi| self.gpsi.place(gpsi).map(Some))?,
        })
    }

    /// Whether all subscribers are in one class.
    #[must_use]
    pub fn is_trivial(&self) -> bool {
        [&self.supi, &self.gpsi]
            .iter()
            .all(|family| family.ends.is_empty() && family.patterns.is_empty())
    }
}

impl Family {
    fn of<'a>(
        profiles: impl Iterator<Item = &'a NfProfile>,
        ranges: impl Fn(&'a NfProfile, &mut dyn FnMut(&'a IdentityRange)),
    ) -> Self {
        let mut family = Self::default();
        for profile in profiles {
            ranges(profile, &mut |range| match range {
                IdentityRange::Numbers { .. } => {
                    for (start, end) in range.spans() {
                        family.ends.push((start, false));
                        family.ends.push((end, true));
                    }
                }
                IdentityRange::Pattern(pattern) => {
                    if !family.patterns.contains(pattern) && family.patterns.len() <= PATTERNS_MAX {
                        family.patterns.push(pattern.clone());
                    }
                }
            });
        }
        family.ends.sort_unstable();
        family.ends.dedup();
        family
    }

    fn place(&self, identity: &str) -> Option<Place> {
        if self.patterns.len() > PATTERNS_MAX {
            return None;
        }
        let interval = match Digits::of_identity(identity) {
            Some(number) if !self.ends.is_empty() => self
                .ends
                .partition_point(|(end, after)| *end < number || (*end == number && !after)),
            // No number is in no range, as a number below all of them.
            _ => 0,
        };
        let matched = |(at, pattern): (usize, &Pattern)| u64::from(pattern.matches(identity)) << at;
        Some(Place {
            // Profiles have far fewer than 2^32 ranges.
            interval: interval as u32,
            patterns: self
                .patterns
                .iter()
                .enumerate()
                .map(matched)
                .fold(0, |a, b| a | b),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use registry::{Entry, Snapshot};
    use std::sync::Arc;

    fn table(infos: &[&str]) -> Snapshot {
        let mut snapshot = Snapshot::default();
        for (number, info) in infos.iter().enumerate() {
            let text = format!(
                r#"{{"nfInstanceId":"00000000-0000-4000-8000-{number:012x}","nfType":"UDM","nfStatus":"REGISTERED","fqdn":"a.example.com","udmInfo":{info}}}"#
            );
            snapshot = snapshot.with(Arc::new(Entry::parse(text.as_bytes(), |_| 30).unwrap()));
        }
        snapshot
    }

    /// Two subscribers of one class match the same profiles.
    #[test]
    fn subscribers_of_a_class_fit_the_same_profiles() {
        let snapshot = table(&[
            r#"{"supiRanges":[{"start":"100","end":"199"},{"start":"150","end":"300"}]}"#,
            r#"{"supiRanges":[{"start":"200","end":"200"},{"pattern":"^imsi-.*7$"}]}"#,
            r#"{"supiRanges":[{"start":"1000","end":"1999"}]}"#,
            r#"{"supiRanges":[{"start":"12","end":"1245"}]}"#,
        ]);
        let table = snapshot.of_type(&model::NfType::Udm).unwrap();
        let classes = Classes::of(table);
        assert!(!classes.is_trivial());
        let mut known: std::collections::HashMap<Class, Vec<bool>> = std::collections::HashMap::new();
        let numbers = (9..320)
            .chain(1190..1260)
            .chain(990..1010)
            .chain(1990..2010)
            .map(|n| format!("imsi-{n}"));
        for supi in numbers.chain(["nai-x".to_owned(), "imsi-x7".to_owned()]) {
            let fits = table
                .iter()
                .map(|entry| {
                    let whom = ::discovery::Whom {
                        supi: Some(&supi),
                        ..::discovery::Whom::default()
                    };
                    whom.is_served_by(&entry.profile)
                })
                .collect::<Vec<_>>();
            let class = classes.class(Some(&supi), None).unwrap();
            assert_eq!(
                known.entry(class).or_insert_with(|| fits.clone()),
                &fits,
                "{supi}"
            );
        }
        assert!(known.len() < 40, "{}", known.len());
    }

    #[test]
    fn without_ranges_there_is_one_class() {
        let snapshot = table(&[r#"{"groupId":"g"}"#]);
        let classes = Classes::of(snapshot.of_type(&model::NfType::Udm).unwrap());
        assert!(classes.is_trivial());
        assert_eq!(
            classes.class(Some("imsi-1"), None),
            classes.class(Some("nai-2"), None)
        );
        assert_ne!(classes.class(Some("imsi-1"), None), classes.class(None, None));
    }
}
