//! What a number resolves to.

use std::sync::Arc;

use numbers::{Damaged, DestinationSet};

use crate::tables::{Digits, NO_NUMBER, Naptr, Profile, Tables, Tree};

/// Where a number has its records from.
#[derive(Clone, Debug)]
pub(crate) enum Source {
    /// An entry of its own.
    Entry(Arc<DestinationSet>),
    /// The range that begins with these digits.
    Range(Digits),
}

/// What is known of a number.
#[derive(Clone, Debug)]
pub(crate) enum Resolution<'t> {
    /// It has records.
    Known(&'t Profile, Source),
    /// Its entry names no profile for this tree.
    Without,
    /// Numbers that continue it exist: it is incomplete, an empty non-terminal (RFC 8020 §2).
    Incomplete,
    /// Neither it nor a number that continues it exists.
    Unknown,
    /// Its entry names a profile that does not exist.
    NoProfile(String),
    /// It was changed, and the change has no room among the numbers: what they have of it is out of date.
    Aside,
}

impl<'t> Resolution<'t> {
    /// Resolves a number in a tree.
    ///
    /// # Errors
    /// When the numbers near it are damaged.
    pub(crate) fn find(tables: &'t Tables, tree: &'t Tree, number: &Digits) -> Result<Self, Damaged> {
        let key = number.key();
        let view = tables.numbers.as_ref().map(|numbers| numbers.load());
        let view = view.as_ref().map(|view| &***view);
        let map = view.map(|view| &*view.map);
        if let (Some(view), Some(key)) = (view, &key)
            && view.aside.contains(key)
        {
            return Ok(Self::Aside);
        }
        let mut hidden = false;
        if let (Some(map), Some(key)) = (map, key)
            && let Some(set) = map.find(key)?.and_then(|id| map.set(id))
        {
            match set.destination(&tree.service) {
                None => return Ok(Self::Without),
                Some(NO_NUMBER) => hidden = true,
                Some(name) => {
                    return Ok(match tables.profiles.get(name) {
                        Some(profile) => Self::Known(profile, Source::Entry(set)),
                        None => Self::NoProfile(name.to_owned()),
                    });
                }
            }
        }
        if !hidden
            && let Some(range) = tree.ranges.find(number)
            && let Some(profile) = &range.profile
        {
            return Ok(Self::Known(profile, Source::Range(range.digits)));
        }
        let in_map = match (map, key) {
            (Some(map), Some(key)) => map.has_longer(key)?,
            _ => false,
        };
        let is_incomplete = in_map || tree.ranges.has_longer(number);
        Ok(if is_incomplete {
            Self::Incomplete
        } else {
            Self::Unknown
        })
    }
}

/// The records of a number.
///
/// # Errors
/// Why they cannot be written.
pub(crate) fn records<'p>(
    profile: &'p Profile,
    source: &Source,
    number: &Digits,
) -> Result<Vec<Naptr<'p>>, String> {
    match source {
        Source::Entry(set) => profile.expand(number, |name| parameter(set, name)),
        Source::Range(_) => profile.expand(number, |_| None),
    }
}

/// A parameter of a number. A destination without a service is none: it names the profile.
fn parameter<'s>(set: &'s DestinationSet, name: &str) -> Option<&'s str> {
    set.iter()
        .find(|(service, _)| *service == name)
        .map(|(_, value)| value)
}

/// Whether a number may have these destinations.
///
/// # Errors
/// What is wrong with them.
pub(crate) fn check(tables: &Tables, number: &Digits, set: &DestinationSet) -> Result<(), String> {
    let mut any = false;
    for tree in &tables.trees {
        match set.destination(&tree.service) {
            None => {}
            Some(NO_NUMBER) => any = true,
            Some(name) => {
                let profile = tables
                    .profiles
                    .get(name)
                    .ok_or_else(|| format!("profile `{name}` does not exist"))?;
                profile.expand(number, |name| parameter(set, name))?;
                any = true;
            }
        }
    }
    if any {
        return Ok(());
    }
    let services: Vec<&str> = tables.trees.iter().map(|tree| tree.service.as_str()).collect();
    Err(format!(
        "no destination names a profile; expected one for {}",
        services.join(", ")
    ))
}
