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
mod processors;
mod read;
mod resolve;

use std::borrow::Cow;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use ahash::AHashMap;
use diameter_proto::{Fault, Origin};
use dsr_app::{Application, Explained, Flow, On, Request, Resume, Resumed, Table};
use serde_json::{Value, json};

pub use events::Event;
pub use processors::Replies;

use address::Address;
use config::{Destination, Entity, Otherwise, Service};
use data::{Data, Failure, Found};
use processors::{Client, Happened, Processors, Queries, Refusal};
use resolve::{Exception, Outcome, Resolver};

/// Checks the files of a configuration. It makes none, and another process may have them open.
///
/// # Errors
/// When one cannot be used, with its line.
pub fn check_files(config: &config::Fabr) -> Result<(), String> {
    Processors::new(config)?;
    Data::check(config)
}

/// The files that it reads, and reads again when they have changed.
#[must_use]
pub fn files(config: &config::Fabr) -> Vec<PathBuf> {
    let tls = config.processor_tls.iter();
    let tls = tls.flat_map(|files| {
        [
            Some(&files.certificate),
            Some(&files.key),
            files.authorities.as_ref(),
        ]
    });
    let named = [config.file.as_ref(), config.numbers.as_ref()]
        .into_iter()
        .chain(tls)
        .flatten();
    named
        .filter(|file| !file.as_os_str().is_empty())
        .cloned()
        .collect()
}

/// The unit of `queriesPerSecond`.
const SECOND: Duration = Duration::from_secs(1);
/// Beyond the deadline of a query: the answer that comes last is handed to the worker within it.
const GRACE: Duration = Duration::from_millis(50);
/// Time after a change of `processors` for which those of before are asked while no new one answers.
const CHANGEOVER: Duration = Duration::from_secs(10);

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
    processors: Option<Processors>,
    /// In the order of [`Exception`].
    exceptions: [Action; 5],
}

/// What a worker has of a resolution.
#[derive(Debug, Default)]
pub struct State {
    rate: Rate,
    client: Option<Client>,
    /// That of other settings, and when they were replaced: its requests in flight are answered.
    before: Option<(Client, Instant)>,
    /// Events of clients that have ended.
    happened: Happened,
}

impl State {
    /// The client whose processors are asked.
    fn client(&self, now: Instant) -> Option<&Client> {
        let client = self.client.as_ref()?;
        match &self.before {
            Some((before, since))
                if client.is_cut_off()
                    && !before.is_cut_off()
                    && now.saturating_duration_since(*since) < CHANGEOVER =>
            {
                Some(before)
            }
            _ => Some(client),
        }
    }

    fn end_before(&mut self) {
        let ended = self.before.take().map(|(before, _)| before.end());
        self.happened.extend(ended.into_iter().flatten());
    }
}

/// Queries of a worker in the present second.
#[derive(Debug, Default)]
struct Rate {
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
            processors: Processors::new(config)?,
            exceptions: config.exceptions().map(|(_, otherwise)| action(otherwise)),
        })
    }

    fn to(&self, number: u16) -> Flow<'_> {
        // Numbers are positions of this list.
        let to = self.destinations.get(usize::from(number));
        to.map_or(Flow::Next, |to| Flow::to(&*to.realm, &*to.host))
    }

    /// Counts what has become of a request, and does it.
    fn conclude(&self, on: &On<'_, Self>, outcome: Outcome) -> Flow<'_> {
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
            Outcome::Pending => Flow::Next,
        }
    }

    /// Asks a database processor and waits for the answer: for explanations and pages alone.
    fn ask_now(
        &self,
        address: &Address,
        service: Option<Service>,
        asked: &mut Vec<String>,
    ) -> Result<Found, Failure> {
        let Some(processors) = &self.processors else {
            return Ok(None);
        };
        let (reply, by) = processors.ask(address, service, self.data.by_name());
        asked.push(format!("{address}: asked {by}"));
        reply.found()
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
    type Worker = State;
    type Found = Replies;
    const TICK: Option<Duration> = Some(SECOND);

    fn configure(&self, worker: &mut State, resume: Resume<Replies>) {
        let names = self.data.by_name();
        let before = worker.before.iter().map(|(before, _)| before);
        for client in worker.client.iter().chain(before) {
            client.update(names, resume.clone());
        }
        let is_same = match (&worker.client, &self.processors) {
            (Some(client), Some(settings)) => client.follows(settings),
            (client, settings) => client.is_none() && settings.is_none(),
        };
        if is_same {
            return;
        }
        match worker.client.take() {
            // Two changes that follow closely: the first one has not reached a processor yet.
            Some(client) if client.is_cut_off() && worker.before.is_some() => {
                worker.happened.extend(client.end());
            }
            Some(client) => {
                worker.end_before();
                worker.before = Some((client, Instant::now()));
            }
            None => {}
        }
        let settings = self.processors.as_ref();
        worker.client = settings.map(|settings| Client::new(settings, names, resume));
    }

    /// Counts what the connections to database processors have met.
    fn tick(&self, on: &mut On<'_, Self>, _: &Origin) {
        let now = on.now;
        let is_over = |(before, since): &(Client, Instant)| {
            before.is_idle() && now.saturating_duration_since(*since) >= CHANGEOVER
        };
        if on.worker.before.as_ref().is_some_and(is_over) {
            on.worker.end_before();
        }
        let State {
            client,
            before,
            happened,
            ..
        } = &mut *on.worker;
        let clients = client.iter().chain(before.iter().map(|(before, _)| before));
        let of_clients = clients.flat_map(Client::happened);
        for (event, count) in std::mem::take(happened).into_iter().chain(of_clients) {
            on.counters.add(event, count);
        }
    }

    fn request<'a>(&'a self, on: &mut On<'_, Self>, request: &Request<'_>) -> Flow<'a> {
        on.count(Event::Requests);
        let (now, most) = (on.now, self.queries_per_second);
        let (mut queried, mut queries) = (false, Queries::new());
        let admit = || {
            let admitted = on.worker.rate.admits(now, most);
            queried |= admitted;
            admitted
        };
        let ask = |address: &Address, service| {
            queries.push((address.clone(), service));
            Err(Failure::Pending)
        };
        let outcome = self.resolver.resolve(&self.data, request, admit, &mut (), ask);
        if queried {
            on.count(Event::Queries);
        }
        match (outcome, on.worker.client(now), &self.processors) {
            (Outcome::Pending, Some(client), Some(settings)) => match client.ask(on.ticket, queries, now) {
                Ok(()) => Flow::Later(settings.deadline() + GRACE),
                Err(Refusal::Unreachable) => self.conclude(on, Outcome::Exception(Exception::DatabaseError)),
                Err(Refusal::Full) => self.conclude(on, Outcome::Exception(Exception::DatabaseCongested)),
            },
            _ => self.conclude(on, outcome),
        }
    }

    fn resume<'a>(&'a self, on: &mut On<'_, Self>, resumed: &Resumed<'_>, found: Replies) -> Flow<'a> {
        let Resumed::Request(request) = resumed else {
            return Flow::Next;
        };
        let ask = |address: &Address, _| found.find(address);
        let outcome = self.resolver.resolve(&self.data, request, || true, &mut (), ask);
        self.conclude(on, outcome)
    }

    fn expired<'a>(&'a self, on: &mut On<'_, Self>, _: &Resumed<'_>) -> Flow<'a> {
        self.conclude(on, Outcome::Exception(Exception::DatabaseError))
    }

    fn explain<'a>(&'a self, request: &Request<'_>) -> Option<Explained<'a>> {
        let (mut reasons, mut asked) = (Vec::new(), Vec::new());
        let ask = |address: &Address, service| self.ask_now(address, service, &mut asked);
        let outcome = self
            .resolver
            .resolve(&self.data, request, || true, &mut reasons, ask);
        reasons.extend(asked);
        let name = |to: u16| self.destinations.get(usize::from(to)).map_or("", |to| &to.name);
        let (flow, reason) = match outcome {
            Outcome::Found(to, by) => (self.to(to), format!("destination {} by {}", name(to), by.name())),
            Outcome::Default(to) => (self.to(to), format!("destination {} by default", name(to))),
            Outcome::Exception(exception) => (self.except(exception), exception.key().to_owned()),
            // The processors were asked at once.
            Outcome::Pending => (Flow::Next, "not resolved".to_owned()),
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
            let ask = |address: &Address| self.ask_now(address, service, &mut Vec::new());
            let found = self.data.find(&address, service, ask)?;
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
            Ok::<_, Failure>(rows.join(", "))
        };
        Some(match rows() {
            Ok(rows) => json!({"entity": word, "value": address.to_string(), "destinations": rows}),
            Err(failure) => {
                json!({"entity": word, "value": address.to_string(), "error": failure.to_string()})
            }
        })
    }
}
