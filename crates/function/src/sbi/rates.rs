//! Which requests a worker refuses because too many come: of all consumers, or of one.
//!
//! What a worker refuses because it has too much to do is decided by the [`Shedder`](crate::Shedder).

use std::cell::RefCell;
use std::time::Instant;

use ::sbi::Request;
use ::sbi::name::USER_AGENT;
use ahash::AHashMap;
use overload::{KeyedRateLimiter, Rate, RateLimiter};

use super::config::Overload;

/// Which rate a request exceeds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exceeded {
    /// More than all consumers together may send.
    Ingress,
    /// More than this consumer may send.
    Consumer,
}

/// The rates of one worker.
pub struct Rates {
    ingress: Option<RefCell<RateLimiter>>,
    consumers: Option<RefCell<Consumers>>,
}

/// The rates of consumers, each by its `User-Agent`.
struct Consumers {
    /// Those that have a rate of their own, by NF type or whole `User-Agent`.
    own: AHashMap<Box<[u8]>, Option<RateLimiter>>,
    others: Option<KeyedRateLimiter<Vec<u8>>>,
}

impl Consumers {
    fn new(settings: &Overload, workers: f64) -> Option<Self> {
        let rate = |rate: u32| Rate::per_second(f64::from(rate) / workers);
        let own: AHashMap<Box<[u8]>, Option<RateLimiter>> = settings
            .consumers
            .iter()
            .map(|one| {
                let limiter = (one.rate > 0).then(|| RateLimiter::new(rate(one.rate)));
                (one.consumer.as_bytes().into(), limiter)
            })
            .collect();
        let others = (settings.consumer_rate > 0)
            .then(|| KeyedRateLimiter::new(rate(settings.consumer_rate), settings.max_consumers));
        (!own.is_empty() || others.is_some()).then_some(Self { own, others })
    }

    fn allow(&mut self, name: &[u8], now: Instant) -> bool {
        // TS 29.500 §5.2.2.2: the NF type, and after a hyphen or a space what makes it one of several.
        let nf_type = name.split(|byte| matches!(byte, b'-' | b' ' | b'/')).next();
        for key in [Some(name), nf_type].into_iter().flatten() {
            if let Some(limiter) = self.own.get_mut(key) {
                return limiter.as_mut().is_none_or(|limiter| limiter.allow(now));
            }
        }
        self.others.as_mut().is_none_or(|others| others.allow(name, now))
    }
}

impl Rates {
    /// `workers` share the rates.
    #[must_use]
    pub fn new(settings: &Overload, workers: usize) -> Self {
        let rate = (settings.ingress_rate > 0)
            .then(|| Rate::per_second(f64::from(settings.ingress_rate) / workers.max(1) as f64));
        Self {
            ingress: rate.map(|rate| RefCell::new(RateLimiter::new(rate))),
            consumers: Consumers::new(settings, workers.max(1) as f64).map(RefCell::new),
        }
    }

    /// Judges a request by the rates.
    ///
    /// # Errors
    /// Which rate it exceeds.
    pub fn judge(&self, request: &Request) -> Result<(), Exceeded> {
        if let Some(rate) = &self.ingress
            && !rate.borrow_mut().allow(request.received)
        {
            return Err(Exceeded::Ingress);
        }
        let Some(consumers) = &self.consumers else {
            return Ok(());
        };
        let name = request
            .headers()
            .get(USER_AGENT)
            .map_or(&b""[..], |name| name.as_bytes());
        match consumers.borrow_mut().allow(name, request.received) {
            true => Ok(()),
            false => Err(Exceeded::Consumer),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sbi::config::ConsumerRate;

    #[test]
    fn consumers_have_rates_of_their_own() {
        let settings = Overload {
            consumer_rate: 10,
            max_consumers: 2,
            consumers: vec![
                ConsumerRate {
                    consumer: "SMF".to_owned(),
                    rate: 0,
                },
                ConsumerRate {
                    consumer: "NEF-1".to_owned(),
                    rate: 100,
                },
            ],
            ..Overload::default()
        };
        let mut consumers = Consumers::new(&settings, 1.0).unwrap();
        let now = Instant::now();
        let mut passed = |name: &str| (0..50).filter(|_| consumers.allow(name.as_bytes(), now)).count();
        assert_eq!(passed("SMF-6f1c7a52 smf1.example.org"), 50);
        assert_eq!(passed("NEF-1"), 10);
        assert_eq!(passed("NEF-2"), 1);
        assert_eq!(passed("AF"), 1);
        // Further names share one rate.
        assert_eq!((passed("invented-1"), passed("invented-2")), (1, 0));
        assert!(Consumers::new(&Overload::default(), 1.0).is_none());
    }
}
