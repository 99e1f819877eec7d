//! Destinations of a subscriber: one for each service, by their positions among the settings.

use ahash::AHashMap;
use numbers::DestinationSet;

use crate::config::Service;

/// No destination.
const NONE: u16 = u16::MAX;

/// Positions of destinations by their names.
pub(crate) type ByName = AHashMap<Box<str>, u16>;

/// The destination without a service, then those of the services.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Targets([u16; Service::ALL.len() + 1]);

impl Targets {
    /// Finds the destinations of a set.
    ///
    /// # Errors
    /// When one of them or its service does not exist.
    pub(crate) fn new(set: &DestinationSet, by_name: &ByName) -> Result<Self, String> {
        let mut targets = [NONE; Service::ALL.len() + 1];
        for (service, name) in set.iter() {
            let to = by_name
                .get(name)
                .ok_or_else(|| format!("the destination `{name}` does not exist"))?;
            if let Some(place) = targets.get_mut(place(service)?) {
                *place = *to;
            }
        }
        Ok(Self(targets))
    }

    /// The position of the destination of a service.
    pub(crate) fn of(&self, service: Option<Service>) -> Option<u16> {
        let of_its_own = service.and_then(|service| self.0.get(service as usize + 1).copied());
        let found = of_its_own.filter(|to| *to != NONE).or(self.0.first().copied());
        found.filter(|to| *to != NONE)
    }
}

fn place(word: &str) -> Result<usize, String> {
    if word.is_empty() {
        return Ok(0);
    }
    let known = Service::ALL.into_iter().find(|service| service.as_str() == word);
    known.map(|service| service as usize + 1).ok_or_else(|| {
        let known = Service::ALL.map(Service::as_str).join(", ");
        format!("the service `{word}` does not exist; valid are {known}")
    })
}
