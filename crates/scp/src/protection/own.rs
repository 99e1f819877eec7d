//! What this SCP tells of its own load and overload (TS 29.500 §6.3, §6.4), with its own scope.
//!
//! The headers are made a few times a second at most; an answer gets a shared copy.

use std::cell::{Cell, RefCell};
use std::time::{Duration, Instant};

use http::{HeaderMap, HeaderValue};
use sbi::headers::{Lci, LciElement, Oci, OciElement, SbiHeader, Scope, names};
use time::OffsetDateTime;

use super::Load;
use crate::config::Protection;

/// Load and overload of one worker, as its answers tell them.
pub(crate) struct Own {
    scope: Scope,
    lci: Option<Conveyed>,
    oci: Option<Conveyed>,
    validity: Duration,
}

struct Conveyed {
    interval: Duration,
    /// A change by so much is told before the interval is over.
    change: u8,
    value: RefCell<Option<HeaderValue>>,
    told: Cell<u8>,
    at: Cell<Option<Instant>>,
    /// When it was last other than nothing.
    positive: Cell<Option<Instant>>,
}

impl Conveyed {
    fn new(interval: Duration, change: u8) -> Self {
        Self {
            interval,
            change: change.max(1),
            value: RefCell::default(),
            told: Cell::new(0),
            at: Cell::new(None),
            positive: Cell::new(None),
        }
    }

    /// Whether a new value is to be made of `now_is`.
    fn is_due(&self, now_is: u8, now: Instant) -> bool {
        let due = self.at.get().is_none_or(|at| {
            now.saturating_duration_since(at) >= self.interval
                || now_is.abs_diff(self.told.get()) >= self.change
                || (now_is == 0) != (self.told.get() == 0)
        });
        if due {
            self.at.set(Some(now));
            self.told.set(now_is);
        }
        due
    }
}

impl Own {
    pub(crate) fn new(settings: &Protection, fqdn: &str) -> Self {
        let validity = settings.own_oci_validity.duration();
        let lci = Conveyed::new(settings.own_lci_interval.duration(), settings.own_lci_change);
        // Told anew well before it ends.
        let oci = Conveyed::new(validity / 2, settings.own_lci_change);
        Self {
            scope: Scope::Scp(fqdn.to_owned()),
            lci: settings.convey_own_lci.then_some(lci),
            oci: settings.convey_own_oci.then_some(oci),
            validity,
        }
    }

    /// Brings the headers up to date.
    pub(crate) fn update(&self, load: &Load, now: Instant) {
        self.tell(load.percent(), load.reduction(), now, OffsetDateTime::now_utc());
    }

    fn tell(&self, load: u8, reduction: u8, now: Instant, timestamp: OffsetDateTime) {
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
        // An end is told for as long as somebody may believe in the overload.
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

    /// Adds them to an answer; those of the producer stay.
    pub(crate) fn add_to(&self, headers: &mut HeaderMap) {
        for (name, conveyed) in [(names::LCI, &self.lci), (names::OCI, &self.oci)] {
            let value = conveyed.as_ref().and_then(|one| one.value.borrow().clone());
            if let Some(value) = value {
                headers.append(name, value);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn load_is_told_when_it_changes_and_now_and_then_overload_until_it_is_over() {
        let own = Own::new(
            &Protection {
                convey_own_lci: true,
                convey_own_oci: true,
                ..Protection::default()
            },
            "scp1.test",
        );
        let (start, date) = (Instant::now(), OffsetDateTime::UNIX_EPOCH);
        let after = |seconds: f64, load, reduction| {
            own.tell(load, reduction, start + Duration::from_secs_f64(seconds), date);
            let mut headers = HeaderMap::new();
            own.add_to(&mut headers);
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
}
