//! What a function reports of its own load and overload (TS 29.500 §6.3, §6.4), with its own scope.
//!
//! The headers are made a few times a second at most; an answer gets a copy.

use std::cell::{Cell, RefCell};
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::time::{Duration, Instant};

use ::sbi::Fields;
use ::sbi::headers::{Lci, LciElement, Oci, OciElement, SbiHeader, Scope, names};
use arc_swap::ArcSwap;
use http::HeaderValue;
use parking_lot::Mutex;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use settings::Period;
use time::OffsetDateTime;

/// What answers report of the load of the function.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default, rename_all = "camelCase")]
pub struct Conveying {
    /// Whether answers carry the load (`3gpp-Sbi-Lci`, TS 29.500 §6.3).
    pub lci: bool,
    /// How often the load is brought up to date.
    pub lci_interval: Period,
    /// A change by this count of percent points is reported at once.
    pub lci_change: u8,
    /// Whether answers report overload, and by how much consumers are to send less (`3gpp-Sbi-Oci`, TS 29.500 §6.4).
    pub oci: bool,
    /// How long a reported overload holds, unless it is reported again.
    pub oci_validity: Period,
}

impl Default for Conveying {
    fn default() -> Self {
        Self {
            lci: false,
            lci_interval: Period::from_secs(5),
            lci_change: 5,
            oci: false,
            oci_validity: Period::from_secs(15),
        }
    }
}

/// Load and overload of the whole function: what its workers measure, and the headers that all answers carry. One that
/// each worker made of itself alone would contradict those of the others, under one name.
pub struct OwnLoad {
    /// Load and reduction of each worker, in percent.
    workers: Box<[(AtomicU8, AtomicU8)]>,
    own: Mutex<Own>,
    headers: ArcSwap<Headers>,
}

/// The headers that answers carry.
#[derive(Debug, Default)]
struct Headers {
    lci: Option<HeaderValue>,
    oci: Option<HeaderValue>,
}

impl std::fmt::Debug for OwnLoad {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "OwnLoad({} %)", self.percent())
    }
}

impl OwnLoad {
    /// Of this number of workers.
    #[must_use]
    pub fn new(settings: &Conveying, scope: Scope, workers: usize) -> Self {
        Self {
            workers: (0..workers.max(1))
                .map(|_| <(AtomicU8, AtomicU8)>::default())
                .collect(),
            own: Mutex::new(Own::new(settings, scope)),
            headers: ArcSwap::default(),
        }
    }

    /// A worker has measured its load and the share of requests that it refuses, in percent.
    pub fn update(&self, worker: usize, load: u8, reduction: u8, now: Instant) {
        self.measured(worker, load, reduction);
        let (percent, reduction) = (self.percent(), self.mean(|one| &one.1));
        let own = self.own.lock();
        own.report(percent, reduction, now, OffsetDateTime::now_utc());
        let value = |one: &Option<Conveyed>| one.as_ref()?.value.borrow().clone();
        let headers = Headers {
            lci: value(&own.lci),
            oci: value(&own.oci),
        };
        let known = self.headers.load();
        if known.lci != headers.lci || known.oci != headers.oci {
            self.headers.store(Arc::new(headers));
        }
    }

    fn measured(&self, worker: usize, load: u8, reduction: u8) {
        if let Some(one) = self.workers.get(worker) {
            one.0.store(load, Ordering::Relaxed);
            one.1.store(reduction, Ordering::Relaxed);
        }
    }

    /// Load of the function in percent: the mean of its workers.
    #[must_use]
    pub fn percent(&self) -> u8 {
        self.mean(|one| &one.0)
    }

    fn mean(&self, of: fn(&(AtomicU8, AtomicU8)) -> &AtomicU8) -> u8 {
        let sum: usize = self
            .workers
            .iter()
            .map(|one| usize::from(of(one).load(Ordering::Relaxed)))
            .sum();
        u8::try_from(sum.div_ceil(self.workers.len())).unwrap_or(100)
    }

    /// Adds them to an answer; those of the producer stay.
    pub fn add_to(&self, headers: &mut Fields) {
        let own = self.headers.load();
        for (name, value) in [(names::LCI, &own.lci), (names::OCI, &own.oci)] {
            if let Some(value) = value {
                headers.append(name, value);
            }
        }
    }
}

/// Load and overload as answers report them.
struct Own {
    scope: Scope,
    lci: Option<Conveyed>,
    oci: Option<Conveyed>,
    validity: Duration,
}

struct Conveyed {
    interval: Duration,
    /// A change by this much is reported before the interval is over.
    change: u8,
    value: RefCell<Option<HeaderValue>>,
    reported: Cell<u8>,
    at: Cell<Option<Instant>>,
    /// The last moment at which the value was above zero.
    positive: Cell<Option<Instant>>,
}

impl Conveyed {
    fn new(interval: Duration, change: u8) -> Self {
        Self {
            interval,
            change: change.max(1),
            value: RefCell::default(),
            reported: Cell::new(0),
            at: Cell::new(None),
            positive: Cell::new(None),
        }
    }

    /// Whether a new value is to be reported, now that the measure is `now_is`.
    fn is_due(&self, now_is: u8, now: Instant) -> bool {
        let due = self.at.get().is_none_or(|at| {
            now.saturating_duration_since(at) >= self.interval
                || now_is.abs_diff(self.reported.get()) >= self.change
                || (now_is == 0) != (self.reported.get() == 0)
        });
        if due {
            self.at.set(Some(now));
            self.reported.set(now_is);
        }
        due
    }
}

impl Own {
    fn new(settings: &Conveying, scope: Scope) -> Self {
        let validity = settings.oci_validity.duration();
        let lci = Conveyed::new(settings.lci_interval.duration(), settings.lci_change);
        // A report is renewed well before its validity ends.
        let oci = Conveyed::new(validity / 2, settings.lci_change);
        Self {
            scope,
            lci: settings.lci.then_some(lci),
            oci: settings.oci.then_some(oci),
            validity,
        }
    }

    fn report(&self, load: u8, reduction: u8, now: Instant, timestamp: OffsetDateTime) {
        if let Some(lci) = self.lci.as_ref().filter(|lci| lci.is_due(load, now)) {
            let element = LciElement {
                timestamp,
                load,
                scope: self.scope.clone(),
            };
            *lci.value.borrow_mut() = Lci(vec![element]).to_value();
        }
        let Some(oci) = &self.oci else { return };
        if reduction > 0 {
            oci.positive.set(Some(now));
        }
        if !oci.is_due(reduction, now) {
            return;
        }
        // The end is reported for as long as a consumer may still have the overload cached.
        let recent = oci
            .positive
            .get()
            .is_some_and(|at| now.saturating_duration_since(at) <= self.validity);
        let element = OciElement {
            timestamp,
            validity: match reduction {
                0 => Duration::ZERO,
                _ => self.validity,
            },
            reduction,
            scope: self.scope.clone(),
        };
        *oci.value.borrow_mut() = recent.then(|| Oci(vec![element]).to_value()).flatten();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn load_is_reported_when_it_changes_and_overload_until_it_is_over() {
        let own = Own::new(
            &Conveying {
                lci: true,
                oci: true,
                ..Conveying::default()
            },
            Scope::Scp("scp1.test".to_owned()),
        );
        let (start, date) = (Instant::now(), OffsetDateTime::UNIX_EPOCH);
        let after = |seconds: f64, load, reduction| {
            own.report(load, reduction, start + Duration::from_secs_f64(seconds), date);
            let mut headers = Fields::new();
            let conveyed = [(names::LCI, &own.lci), (names::OCI, &own.oci)];
            for (name, one) in conveyed {
                if let Some(value) = one.as_ref().and_then(|one| one.value.borrow().clone()) {
                    headers.append(name, &value);
                }
            }
            let lci = Lci::of(&headers).unwrap().map(|lci| lci.0[0].load);
            let oci = Oci::of(&headers).unwrap();
            (
                lci,
                oci.map(|oci| (oci.0[0].reduction, oci.0[0].validity.as_secs())),
            )
        };
        assert_eq!(after(0.0, 20, 0), (Some(20), None));
        assert_eq!(after(0.1, 24, 0), (Some(20), None), "too little a change");
        assert_eq!(after(0.2, 25, 0), (Some(25), None));
        assert_eq!(after(5.3, 26, 0), (Some(26), None), "time for it");
        assert_eq!(after(5.4, 99, 30), (Some(99), Some((30, 15))));
        assert_eq!(after(5.5, 99, 32), (Some(99), Some((30, 15))));
        assert_eq!(after(6.0, 50, 0), (Some(50), Some((0, 0))));
        assert_eq!(after(60.0, 50, 0), (Some(50), None));
    }

    #[test]
    fn the_load_is_that_of_all_workers() {
        let own = OwnLoad::new(&Conveying::default(), Scope::Scp("scp1.test".to_owned()), 4);
        own.measured(0, 90, 40);
        assert_eq!((own.percent(), own.mean(|one| &one.1)), (23, 10));
        for worker in 1..4 {
            own.measured(worker, 50, 0);
        }
        own.measured(9, 100, 100);
        assert_eq!((own.percent(), own.mean(|one| &one.1)), (60, 10));
    }
}
