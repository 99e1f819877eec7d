//! The steps of a resolution.

use ahash::AHashMap;
use dsr_app::Request;

use crate::address::{Address, shown};
use crate::config::{self, Service, Source};
use crate::data::{By, Data, Failure, Found};
use crate::events::Event;
use crate::read::values;

/// What becomes of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// The destination at this position.
    Found(u16, By),
    Default(u16),
    Exception(Exception),
    /// Database processors have to be asked.
    Pending,
}

/// Why a request is not resolved, in the order of [`config::Fabr::exceptions`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Exception {
    UnknownCommand,
    NoValidAddress,
    NoMatch,
    DatabaseError,
    DatabaseCongested,
}

impl Exception {
    pub(crate) const fn event(self) -> Event {
        match self {
            Self::UnknownCommand => Event::UnknownCommand,
            Self::NoValidAddress => Event::NoValidAddress,
            Self::NoMatch => Event::NoMatch,
            Self::DatabaseError => Event::DatabaseError,
            Self::DatabaseCongested => Event::DatabaseCongested,
        }
    }

    /// The setting that says what becomes of the request.
    pub(crate) const fn key(self) -> &'static str {
        match self {
            Self::UnknownCommand => "onUnknownCommand",
            Self::NoValidAddress => "onNoValidAddress",
            Self::NoMatch => "onNoMatch",
            Self::DatabaseError => "onDatabaseError",
            Self::DatabaseCongested => "onDatabaseCongested",
        }
    }
}

/// Takes an explanation; on the path of traffic none is made.
pub(crate) trait Notes {
    fn note(&mut self, text: impl FnOnce() -> String);
}

impl Notes for () {
    fn note(&mut self, _: impl FnOnce() -> String) {}
}

impl Notes for Vec<String> {
    fn note(&mut self, text: impl FnOnce() -> String) {
        self.push(text());
    }
}

/// The lookups, and which addresses are not valid.
#[derive(Debug)]
pub(crate) struct Resolver {
    lookups: Vec<Lookup>,
    invalid_mccs: Vec<(u16, u16)>,
}

#[derive(Debug)]
struct Lookup {
    applications: Vec<u32>,
    commands: Vec<u32>,
    service: Option<Service>,
    entities: Vec<Source>,
    default: Option<u16>,
}

impl Resolver {
    pub(crate) fn new(config: &config::Fabr, by_name: &AHashMap<&str, u16>) -> Self {
        let lookup = |lookup: &config::Lookup| Lookup {
            applications: lookup.applications.clone(),
            commands: lookup.commands.clone(),
            service: lookup.service,
            entities: lookup.entities.clone(),
            default: lookup
                .default
                .as_ref()
                .and_then(|name| by_name.get(name.as_str()).copied()),
        };
        let mccs = config.invalid_mccs.iter().filter_map(|text| config::mccs(text));
        Self {
            lookups: config.lookups.iter().map(lookup).collect(),
            invalid_mccs: mccs.collect(),
        }
    }

    /// What becomes of a request. `admit` is asked once, before the first search; `ask` has the answer of a database processor.
    /// Where one has to be asked first, the addresses that may be needed after it are handed to `ask` as well.
    pub(crate) fn resolve(
        &self,
        data: &Data,
        request: &Request<'_>,
        mut admit: impl FnMut() -> bool,
        notes: &mut impl Notes,
        mut ask: impl FnMut(&Address, Option<Service>) -> Result<Found, Failure>,
    ) -> Outcome {
        let (application, command) = (request.view.application, request.view.command);
        let fits = |lookup: &&Lookup| {
            (lookup.applications.is_empty() || lookup.applications.contains(&application))
                && (lookup.commands.is_empty() || lookup.commands.contains(&command))
        };
        let Some(lookup) = self.lookups.iter().find(fits) else {
            return Outcome::Exception(Exception::UnknownCommand);
        };
        let (mut any, mut pending) = (false, false);
        for source in &lookup.entities {
            let Some(address) = self.address(source, request, notes) else {
                continue;
            };
            if !any && !admit() {
                return Outcome::Exception(Exception::DatabaseCongested);
            }
            any = true;
            let found = data.find(&address, lookup.service, |address| ask(address, lookup.service));
            match found {
                Ok(None) => notes.note(|| format!("{} {address} is not known", source.entity.as_str())),
                Err(Failure::Pending) => pending = true,
                // What comes before it decides first.
                _ if pending => break,
                Ok(Some((to, by))) => return Outcome::Found(to, by),
                Err(failure) => {
                    notes.note(|| failure.to_string());
                    return Outcome::Exception(match failure {
                        Failure::Congested => Exception::DatabaseCongested,
                        _ => Exception::DatabaseError,
                    });
                }
            }
        }
        if pending {
            return Outcome::Pending;
        }
        match (any, lookup.default) {
            (false, _) => Outcome::Exception(Exception::NoValidAddress),
            (true, Some(to)) => Outcome::Default(to),
            (true, None) => Outcome::Exception(Exception::NoMatch),
        }
    }

    /// The first valid address of an entity.
    fn address(&self, source: &Source, request: &Request<'_>, notes: &mut impl Notes) -> Option<Address> {
        let word = source.entity.as_str();
        for avp in &source.avps {
            let all = values(*avp, request);
            if all.is_empty() {
                notes.note(|| format!("{word}: no {}", avp.name()));
            }
            for value in all {
                match Address::read(source.entity, value) {
                    None => notes.note(|| format!("{word}: {} `{}` is not one", avp.name(), shown(value))),
                    Some(address) if address.mcc().is_some_and(|mcc| self.is_invalid(mcc)) => {
                        notes.note(|| format!("{word}: {} {address} is of invalidMccs", avp.name()));
                    }
                    Some(address) => {
                        notes.note(|| format!("{word}: {} {address}", avp.name()));
                        return Some(address);
                    }
                }
            }
        }
        None
    }

    fn is_invalid(&self, mcc: u16) -> bool {
        self.invalid_mccs
            .iter()
            .any(|(first, last)| (*first..=*last).contains(&mcc))
    }
}
