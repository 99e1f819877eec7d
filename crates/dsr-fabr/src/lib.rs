//! Full address based resolution: which servers a subscriber belongs to, each subscriber by itself.
//!
//! A lookup names up to three entities in the order of preference, and for each up to two AVPs. The first valid address of an
//! entity is searched among changes, the text and the file of numbers, whole; then the range or the realm that holds it; then
//! the next entity; then the default. What is found is a destination for each kind of server: the request gets its realm,
//! its host or both, as a proxy does (RFC 6733 §6.1).

mod address;
pub mod config;
mod data;
mod events;
mod read;
mod resolve;

use std::borrow::Cow;
use std::time::{Duration, Instant};

use ahash::AHashMap;
use diameter_proto::Fault;
use dsr_app::{Application, Explained, Flow, On, Request, Table};
use serde_json::{Value, json};

pub use events::Event;

use address::Address;
use config::{Destination, Entity, Otherwise};
use data::Data;
use resolve::{Exception, Outcome, Resolver};

/// Checks the files of a configuration. It makes none, and another process may have them open.
///
/// # Errors
/// When one cannot be used, with its line.
pub fn check_files(config: &config::Fabr) -> Result<(), String> {
    Data::check(config)
}

/// The unit of `queriesPerSecond`.
const SECOND: Duration = Duration::from_secs(1);

#[derive(Debug)]
enum Action {
    Forward,
    To(u16),
    Answer(Fault),
    Abandon,
}

/// The resolution.
#[derive(Debug)]
pub struct Fabr {
    resolver: Resolver,
    data: Data,
    destinations: Vec<Destination>,
    max_changes: usize,
    queries_per_second: u32,
    /// In the order of [`Exception`].
    exceptions: [Action; 5],
}

/// Queries of a worker in the present second.
#[derive(Debug, Default)]
pub struct Rate {
    since: Option<Instant>,
    queries: u32,
}

impl Rate {
    /// Counts a query; whether there may be one.
    fn admits(&mut self, now: Instant, most: u32) -> bool {
        if most == 0 {
            return true;
        }
        if self
            .since
            .is_none_or(|since| now.saturating_duration_since(since) >= SECOND)
        {
            *self = Self {
                since: Some(now),
                queries: 0,
            };
        }
        self.queries = self.queries.saturating_add(1);
        self.queries <= most
    }
}

impl Fabr {
    /// Reads the files of a configuration.
    ///
    /// # Errors
    /// When one cannot be used, with its line.
    pub fn load(config: &config::Fabr) -> Result<Self, String> {
        let names = config.destinations.iter().map(|one| one.name.as_str());
        let by_name: AHashMap<&str, u16> = names.zip(0..).collect();
        let action = |otherwise: &Otherwise| match otherwise {
            Otherwise::Forward => Action::Forward,
            Otherwise::Destination(name) => by_name
                .get(name.as_str())
                .map_or(Action::Forward, |to| Action::To(*to)),
            Otherwise::Answer(answer) => Action::Answer(answer.fault()),
            Otherwise::Abandon => Action::Abandon,
        };
        Ok(Self {
            resolver: Resolver::new(config, &by_name),
            data: Data::load(config)?,
            destinations: config.destinations.clone(),
            max_changes: config.max_changes,
            queries_per_second: config.queries_per_second,
            exceptions: config.exceptions().map(|(_, otherwise)| action(otherwise)),
        })
    }

    fn to(&self, number: u16) -> Flow<'_> {
        // Numbers are positions of this list.
        let to = self.destinations.get(usize::from(number));
        to.map_or(Flow::Next, |to| Flow::to(&*to.realm, &*to.host))
    }

    fn except(&self, exception: Exception) -> Flow<'_> {
        match self.exceptions.get(exception as usize) {
            Some(Action::To(number)) => self.to(*number),
            Some(Action::Answer(fault)) => Flow::Answer(Cow::Borrowed(fault)),
            Some(Action::Abandon) => Flow::Drop,
            Some(Action::Forward) | None => Flow::Next,
        }
    }
}

impl Application for Fabr {
    const KIND: &'static str = "fabr";

    type Event = Event;
    type Worker = Rate;
    type Found = ();

    fn request<'a>(&'a self, on: &mut On<'_, Self>, request: &Request<'_>) -> Flow<'a> {
        on.count(Event::Requests);
        let (now, most) = (on.now, self.queries_per_second);
        let mut queried = false;
        let admit = || {
            let admitted = on.worker.admits(now, most);
            queried |= admitted;
            admitted
        };
        let outcome = self.resolver.resolve(&self.data, request, admit, &mut ());
        if queried {
            on.count(Event::Queries);
        }
        match outcome {
            Outcome::Found(to, by) => {
                on.count(if by.is_exact() {
                    Event::Exact
                } else {
                    Event::Ranged
                });
                self.to(to)
            }
            Outcome::Default(to) => {
                on.count(Event::Defaulted);
                self.to(to)
            }
            Outcome::Exception(exception) => {
                on.count(exception.event());
                self.except(exception)
            }
        }
    }

    fn explain<'a>(&'a self, request: &Request<'_>) -> Option<Explained<'a>> {
        let mut reasons = Vec::new();
        let outcome = self.resolver.resolve(&self.data, request, || true, &mut reasons);
        let name = |to: u16| self.destinations.get(usize::from(to)).map_or("", |to| &to.name);
        let (flow, reason) = match outcome {
            Outcome::Found(to, by) => (self.to(to), format!("destination {} by {}", name(to), by.name())),
            Outcome::Default(to) => (self.to(to), format!("destination {} by default", name(to))),
            Outcome::Exception(exception) => (self.except(exception), exception.key().to_owned()),
        };
        reasons.push(reason);
        Some(Explained { flow, reasons })
    }

    fn tables(&self) -> Vec<Table> {
        let tables = self.data.tables().into_iter();
        let table = |(name, entries, bytes)| Table { name, entries, bytes };
        tables.map(table).collect()
    }

    fn change(&self, subject: &str, to: &str) -> Option<Result<(), String>> {
        Some(self.data.change(subject, to, self.max_changes))
    }

    fn look_up(&self, subject: &str) -> Option<Value> {
        let (word, value) = subject.split_once(':')?;
        let address = Entity::from_word(word).and_then(|entity| Address::parse(entity, value));
        let address = match address {
            Ok(address) => address,
            Err(wrong) => return Some(json!({"entity": word, "value": value, "error": wrong})),
        };
        let shown = |service| {
            let found = self.data.find(&address, service)?;
            Ok(found.map(|(to, by)| {
                let to = self.destinations.get(usize::from(to));
                format!("{} by {}", to.map_or("", |to| &to.name), by.name())
            }))
        };
        let rows = || {
            let any: Option<String> = shown(None)?;
            let mut rows = Vec::new();
            for service in config::Service::ALL {
                let own = shown(Some(service))?.filter(|own| any.as_ref() != Some(own));
                rows.extend(own.map(|own| format!("{}={own}", service.as_str())));
            }
            rows.splice(0..0, any);
            Ok::<_, numbers::Damaged>(rows.join(", "))
        };
        Some(match rows() {
            Ok(rows) => json!({"entity": word, "value": address.to_string(), "destinations": rows}),
            Err(damaged) => {
                json!({"entity": word, "value": address.to_string(), "error": damaged.to_string()})
            }
        })
    }
}
