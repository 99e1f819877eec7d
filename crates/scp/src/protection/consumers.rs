//! Who asks, and how much it may.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Instant;

use ahash::AHashMap;
use http::header::USER_AGENT;
use sbi::Request;
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
    others: Rc<Consumer>,
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
    requests: Counter,
}

/// What stands for consumers beyond those that are told apart.
const OTHERS: &str = "other";

impl Consumers {
    pub(crate) fn new(settings: &Protection, metrics: &Metrics, rates: Arc<Rates>, worker: usize) -> Self {
        let shares = Shares::new(worker);
        let others = Consumer::new(settings, metrics, &rates, OTHERS, &shares);
        Self {
            settings: settings.clone(),
            metrics: metrics.clone(),
            rates,
            shares,
            known: RefCell::default(),
            others: Rc::new(others),
        }
    }

    /// Whether an assertion must be checked before a consumer is known.
    pub(crate) fn need_assertion(&self) -> bool {
        self.settings
            .consumer_keys
            .contains(&ConsumerKey::AssertionSubject)
    }

    /// Who has sent a request; `subject` is the NF instance id that its assertion has proved.
    pub(crate) fn of(&self, request: &Request, subject: Option<&str>) -> Rc<Consumer> {
        for key in &self.settings.consumer_keys {
            match key {
                ConsumerKey::UserAgent => {
                    if let Some(agent) = request.headers().get(USER_AGENT) {
                        return self.named(agent.as_bytes());
                    }
                }
                ConsumerKey::TlsName => {
                    let names = request.peer.tls.as_ref().map(|tls| &tls.names);
                    if let Some(name) = names.and_then(|names| names.first()) {
                        return self.named(name.as_bytes());
                    }
                }
                ConsumerKey::AssertionSubject => {
                    if let Some(subject) = subject {
                        return self.named(subject.as_bytes());
                    }
                }
                ConsumerKey::Address => return self.named(request.peer.addr.ip().to_string().as_bytes()),
            }
        }
        self.named(b"unknown")
    }

    fn named(&self, name: &[u8]) -> Rc<Consumer> {
        let mut known = self.known.borrow_mut();
        if let Some(consumer) = known.get(name) {
            return consumer.clone();
        }
        let text = std::str::from_utf8(name).unwrap_or(OTHERS);
        if known.len() >= self.settings.max_consumers || text.len() > 256 {
            return self.others.clone();
        }
        let consumer = Consumer::new(&self.settings, &self.metrics, &self.rates, text, &self.shares);
        let consumer = Rc::new(consumer);
        known.insert(name.into(), consumer.clone());
        consumer
    }
}

impl Consumer {
    fn new(settings: &Protection, metrics: &Metrics, rates: &Rates, name: &str, shares: &Shares) -> Self {
        // TS 29.500 §5.2.2.2: the NF type, and after a hyphen or a space what makes it one of several.
        let nf_type = name.split(['-', ' ', '/']).next().filter(|nf_type| {
            !nf_type.is_empty()
                && nf_type
                    .bytes()
                    .all(|b| b.is_ascii_uppercase() || b.is_ascii_digit() || b == b'_')
        });
        let instance = name.split_once('-').map(|(_, rest)| rest);
        let instance = instance.and_then(|rest| rest.get(..36)).filter(|id| {
            let fits = |(at, b): (usize, u8)| match at {
                8 | 13 | 18 | 23 => b == b'-',
                _ => b.is_ascii_hexdigit(),
            };
            id.bytes().enumerate().all(fits)
        });
        Self {
            name: name.into(),
            instance: instance.map(|id| id.to_ascii_lowercase().into()),
            nf_type: nf_type.map(Into::into),
            rate: rates.of_consumer(settings, name, shares),
            requests: metrics.consumers.get(&[name]),
        }
    }

    /// Whether a request of it may come in now.
    pub(crate) fn admits(&self, now: Instant) -> bool {
        self.requests.inc();
        self.rate.as_ref().is_none_or(|rate| rate.allow(now))
    }

    /// How long it should wait before the next, in whole seconds.
    pub(crate) fn retry_after(&self, now: Instant) -> u64 {
        let wait = self.rate.as_ref().and_then(|rate| rate.wait(now));
        wait.map_or(60, |wait| wait.as_secs() + 1)
    }
}
