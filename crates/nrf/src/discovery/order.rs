//! The order of an answer: preferences of the query (locality among them), priority, capacity, load.

use std::cmp::Reverse;

use ::discovery::{Nearness, Query};
use model::{NfService, ServiceName};

use registry::Entry;

/// Sort key of a profile, smaller first. A profile that does not match the preferences comes later, but stays.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Rank {
    preferences: Vec<u32>,
    priority: u16,
    capacity: Reverse<u16>,
    load: u8,
}

impl Rank {
    pub(super) fn of(entry: &Entry, query: &Query, near: Option<Nearness<'_>>) -> Self {
        let profile = &entry.profile;
        // The value of a service precedes that of its NF (TS 29.510 §6.1.6.2.3).
        let asked = |value: fn(&NfService) -> Option<u16>| {
            let named = profile
                .services()
                .filter(|service| is_asked(&query.services, service));
            named.filter_map(value)
        };
        Self {
            preferences: query.preferences.distances(profile, near),
            priority: asked(|service| service.priority)
                .min()
                .or(profile.priority)
                .unwrap_or(u16::MAX),
            capacity: Reverse(
                asked(|service| service.capacity)
                    .max()
                    .or(profile.capacity)
                    .unwrap_or(0),
            ),
            load: entry.load.unwrap_or(0),
        }
    }
}

fn is_asked(names: &[ServiceName], service: &NfService) -> bool {
    names.contains(&service.service_name)
}
