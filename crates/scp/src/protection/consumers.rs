//! Consumers and their rates.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};

use ahash::{AHashMap, AHashSet};
use routing::network::Network;
use sbi::Request;
use sbi::name::USER_AGENT;
use telemetry::metrics::Counter;

use super::rate::{Rates, Share, Shares};
use crate::config::{ConsumerKey, Protection};
use crate::events::Metrics;

/// Consumers that a worker has seen.
pub(crate) struct Consumers {
    settings: Protection,
    metrics: Metrics,
    rates: Arc<Rates>,
    shares: Shares,
    known: RefCell<AHashMap<Box<[u8]>, Rc<Consumer>>>,
    /// Consumers with a configured rate, which always get an account.
    configured: AHashSet<Box<str>>,
    /// Time of the last sweep for idle consumers.
    swept: Cell<Option<Instant>>,
    others: Rc<Consumer>,
    /// The network of the last sample.
    network: RefCell<Arc<Network>>,
}

/// A consumer.
#[derive(Debug)]
pub(crate) struct Consumer {
    /// What it is called.
    pub(crate) name: Box<str>,
    /// The NF type that its `User-Agent` begins with.
    pub(crate) nf_type: Option<Box<str>>,
    /// The NF instance id behind the type, if there is one.
    pub(crate) instance: Option<Box<str>>,
    rate: Option<Rc<Share>>,
    /// Whether it is counted by its name.
    named: bool,
    requests: Counter,
    /// Value of `requests` at the last sweep.
    seen: Cell<u64>,
}

/// Name of the shared account.
const OTHERS: &str = "other";
/// Time without a request after which a consumer may be evicted, if the table is full.
const IDLE: Duration = Duration::from_secs(60);
/// Longest name with its own account, in bytes.
const LONGEST: usize = 256;

impl Consumers {
    pub(crate) fn new(
        settings: &Protection,
        metrics: &Metrics,
        rates: Arc<Rates>,
        network: Arc<Network>,
        worker: usize,
    ) -> Self {
        let shares = Shares::new(worker);
        let others = Consumer::new(settings, metrics, &rates, (OTHERS, true), &shares);
        Self {
            settings: settings.clone(),
            metrics: metrics.clone(),
            rates,
            shares,
            known: RefCell::default(),
            configured: settings
                .ingress
                .iter()
                .map(|one| one.consumer.as_str().into())
                .collect(),
            swept: Cell::new(None),
            others: Rc::new(others),
            network: RefCell::new(network),
        }
    }

    /// Whether the consumer can only be identified after its assertion is checked.
    pub(crate) fn need_assertion(&self) -> bool {
        self.settings
            .consumer_keys
            .contains(&ConsumerKey::AssertionSubject)
    }

    /// Identifies the consumer of a request; `subject` is the NF instance id that its assertion proves.
    pub(crate) fn of(&self, request: &Request, subject: Option<&str>) -> Rc<Consumer> {
        for key in &self.settings.consumer_keys {
            match key {
                ConsumerKey::UserAgent => {
                    if let Some(agent) = request.headers().get(USER_AGENT) {
                        return self.named(agent.as_bytes(), false);
                    }
                }
                ConsumerKey::TlsName => {
                    let names = request.peer.tls.as_ref().map(|tls| &tls.names);
                    if let Some(name) = names.and_then(|names| names.first()) {
                        return self.named(name.as_bytes(), true);
                    }
                }
                ConsumerKey::AssertionSubject => {
                    if let Some(subject) = subject {
                        return self.named(subject.as_bytes(), true);
                    }
                }
                ConsumerKey::Address => {
                    return self.named(request.peer.addr.ip().to_string().as_bytes(), true);
                }
            }
        }
        self.named(b"unknown", true)
    }

    /// The account of a name; `proved`: the consumer has not just claimed it.
    fn named(&self, name: &[u8], proved: bool) -> Rc<Consumer> {
        let mut known = self.known.borrow_mut();
        if let Some(consumer) = known.get(name) {
            return consumer.clone();
        }
        let text = std::str::from_utf8(name).unwrap_or(OTHERS);
        let is_full = known.len() >= self.settings.max_consumers;
        if text.len() > LONGEST || (is_full && !self.has_room_for(text, &mut known, Instant::now())) {
            return self.others.clone();
        }
        // Names that anyone can invent get no series of their own.
        let labelled =
            proved || self.configured.contains(text) || is_registered(text, &self.network.borrow());
        let name_of = (text, labelled);
        let consumer = Consumer::new(&self.settings, &self.metrics, &self.rates, name_of, &self.shares);
        let consumer = Rc::new(consumer);
        known.insert(name.into(), consumer.clone());
        consumer
    }

    /// Takes over another network: consumers that are registered now are counted by name from their next request.
    pub(crate) fn follow(&self, network: &Arc<Network>) {
        if Arc::ptr_eq(&self.network.borrow(), network) {
            return;
        }
        self.network.replace(network.clone());
        let stays = |one: &Consumer| one.named || !is_registered(&one.name, network);
        self.known.borrow_mut().retain(|_, one| stays(one));
    }

    /// Whether a consumer gets an account in a full table: one with a configured rate always does, others replace idle
    /// consumers, so that names used once do not fill the table for ever.
    fn has_room_for(&self, name: &str, known: &mut AHashMap<Box<[u8]>, Rc<Consumer>>, now: Instant) -> bool {
        if self.configured.contains(name) {
            return true;
        }
        let begins = self.swept.get().is_none();
        if begins || self.swept.get().is_some_and(|swept| now >= swept + IDLE) {
            self.swept.set(Some(now));
            // The first sweep only records the number of requests.
            known.retain(|_, one| {
                let sent = one.requests.value();
                one.seen.replace(sent) != sent || begins
            });
        }
        known.len() < self.settings.max_consumers
    }
}

/// Whether a `User-Agent` is that of a registered instance, or names an NF type alone.
fn is_registered(agent: &str, network: &Network) -> bool {
    let (nf_type, instance) = (type_in(agent), instance_in(agent));
    match instance {
        Some(instance) => network.producer(&instance.to_ascii_lowercase()).is_some(),
        None => nf_type.is_some_and(|nf_type| nf_type == agent && model::NfType::from(nf_type).is_known()),
    }
}

/// The NF type that a `User-Agent` begins with (TS 29.500 §5.2.2.2: the type, and after a hyphen or a space its
/// identification).
fn type_in(name: &str) -> Option<&str> {
    name.split(['-', ' ', '/']).next().filter(|nf_type| {
        !nf_type.is_empty()
            && nf_type
                .bytes()
                .all(|b| b.is_ascii_uppercase() || b.is_ascii_digit() || b == b'_')
    })
}

/// The NF instance id behind the type.
fn instance_in(name: &str) -> Option<&str> {
    let instance = name.split_once('-').map(|(_, rest)| rest);
    instance.and_then(|rest| rest.get(..36)).filter(|id| {
        let fits = |(at, b): (usize, u8)| match at {
            8 | 13 | 18 | 23 => b == b'-',
            _ => b.is_ascii_hexdigit(),
        };
        id.bytes().enumerate().all(fits)
    })
}

impl Consumer {
    /// `name`: its name, and whether it is counted by it.
    fn new(
        settings: &Protection,
        metrics: &Metrics,
        rates: &Rates,
        (name, named): (&str, bool),
        shares: &Shares,
    ) -> Self {
        let (nf_type, instance) = (type_in(name), instance_in(name));
        let label = if named { name } else { OTHERS };
        Self {
            name: name.into(),
            instance: instance.map(|id| id.to_ascii_lowercase().into()),
            nf_type: nf_type.map(Into::into),
            rate: rates.of_consumer(settings, name, shares),
            named,
            requests: metrics.consumers.get(&[label]),
            seen: Cell::new(0),
        }
    }

    /// Whether its rate admits a request now.
    pub(crate) fn admits(&self, now: Instant) -> bool {
        self.requests.inc();
        self.rate.as_ref().is_none_or(|rate| rate.allow(now))
    }

    /// Whether its rate would admit a request now, without counting.
    pub(crate) fn has_room(&self, now: Instant) -> bool {
        let wait = self.rate.as_ref().map(|rate| rate.wait(now));
        wait.is_none_or(|wait| wait == Some(Duration::ZERO))
    }

    /// `Retry-After` for the next request, in whole seconds.
    pub(crate) fn retry_after(&self, now: Instant) -> u64 {
        let wait = self.rate.as_ref().and_then(|rate| rate.wait(now));
        wait.map_or(60, |wait| wait.as_secs() + 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::ConsumerRate;
    use overload::Rate;

    #[test]
    fn names_that_are_not_used_again_give_their_places_to_others() {
        let settings = Protection {
            max_consumers: 2,
            ingress: vec![ConsumerRate {
                consumer: "SMF-own".into(),
                rate: Rate::per_second(5.0),
            }],
            ..Protection::default()
        };
        let metrics = Metrics::new(&telemetry::Registry::new());
        let consumers = Consumers::new(&settings, &metrics, Arc::new(Rates::new(1)), Arc::default(), 0);
        let now = Instant::now();
        let busy = consumers.named(b"AMF-1", true);
        busy.admits(now);
        consumers.named(b"AMF-2", true).admits(now);
        // The table is full, and no consumer has been idle for long.
        assert_eq!(&*consumers.named(b"AMF-3", true).name, OTHERS);
        // A consumer with a configured rate gets its account in a full table.
        let own = consumers.named(b"SMF-own", true);
        assert!(&*own.name == "SMF-own" && own.rate.is_some());
        busy.admits(now);
        own.admits(now);
        let later = Instant::now() + IDLE;
        let mut known = consumers.known.borrow_mut();
        assert!(
            !consumers.has_room_for("AMF-3", &mut known, later),
            "two are in use"
        );
        assert_eq!(known.len(), 2, "AMF-2 has sent nothing since");
        let later = later + IDLE;
        assert!(consumers.has_room_for("AMF-3", &mut known, later));
        assert!(known.is_empty());
    }
}
