//! The load that a message processor advertises to its neighbours (RFC 8583). Pure: load and time are arguments.
//!
//! A Load is encoded when the load has changed, some times per second at most, and appended to answers as it is. Each
//! connection keeps the version that was reported on it: one answer carries a new Load, not every answer.

use std::cell::Cell;
use std::time::Instant;

use bytes::Bytes;
use diameter::proto::AvpWriter;
use diameter::proto::overload::load::{IDLE, Load, LoadType};

use crate::config::AdvertiseLoad;

/// Encodes our load for each local node.
#[derive(Debug)]
pub(crate) struct LoadReporter {
    settings: AdvertiseLoad,
    /// Our DiameterIdentity at each local node.
    names: Vec<String>,
    /// The value that was encoded last, and when.
    encoded_value: Option<(u16, Instant)>,
    /// The Load of each local node, encoded.
    encoded: Vec<Bytes>,
    /// Version of the encoded value; 0: none is to be reported.
    version: u32,
    last_version: u32,
}

/// The version that was reported last on a connection.
#[derive(Debug, Default)]
pub(crate) struct LastReported(Cell<u32>);

/// The Load-Value for a load in percent: the share that is free (RFC 8583 §7.3).
fn load_value(load: f64) -> u16 {
    let free = 1.0 - (load / 100.0).clamp(0.0, 1.0);
    (f64::from(IDLE) * free).round() as u16
}

impl LoadReporter {
    /// A reporter without a load yet.
    #[must_use]
    pub(crate) fn new(settings: &AdvertiseLoad, names: Vec<String>) -> Self {
        Self {
            settings: settings.clone(),
            names,
            encoded_value: None,
            encoded: Vec::new(),
            version: 0,
            last_version: 0,
        }
    }

    /// Takes new settings; they count from the next sample on.
    pub(crate) fn configure(&mut self, settings: &AdvertiseLoad) {
        if self.settings != *settings {
            self.settings = settings.clone();
            (self.encoded_value, self.version) = (None, 0);
        }
    }

    /// Takes the load, in percent of what this message processor can have.
    pub(crate) fn sample(&mut self, now: Instant, load: f64) {
        if !self.settings.enabled {
            return;
        }
        let value = load_value(load);
        if let Some((encoded, since)) = self.encoded_value {
            let moved = f64::from(value.abs_diff(encoded)) / f64::from(IDLE);
            let old = now.saturating_duration_since(since) >= self.settings.interval.duration();
            let renews = old && !self.settings.interval.is_zero();
            if !renews && (value == encoded || moved < self.settings.step.fraction()) {
                return;
            }
        }
        self.encoded_value = Some((value, now));
        let encode = |name: &String| {
            let load = Load {
                kind: LoadType::Peer,
                value,
                source: name.clone(),
            };
            let mut out = AvpWriter::with_capacity(64 + name.len());
            load.write(&mut out);
            out.into_bytes()
        };
        self.encoded = self.names.iter().map(encode).collect();
        // 0 means none, also after the counter has wrapped.
        self.last_version = self.last_version.wrapping_add(1).max(1);
        self.version = self.last_version;
    }

    /// Whether no load is to be reported.
    #[inline]
    #[must_use]
    pub(crate) const fn is_silent(&self) -> bool {
        self.version == 0
    }

    /// The Load that the next answer of this local node on a connection carries; none: the present one was reported on
    /// it.
    #[inline]
    #[must_use]
    pub(crate) fn unreported(&self, node: u8, last: &LastReported) -> Option<&Bytes> {
        if self.is_silent() || (last.0.get() == self.version && !self.settings.interval.is_zero()) {
            return None;
        }
        self.encoded.get(usize::from(node))
    }

    /// Notes that the present load was reported on a connection.
    pub(crate) fn mark_reported(&self, last: &LastReported) {
        last.0.set(self.version);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use diameter::proto::MessageBuilder;
    use settings::{Percent, Period};
    use std::time::Duration;

    fn reporter(interval: Period) -> LoadReporter {
        let settings = AdvertiseLoad {
            enabled: true,
            interval,
            step: Percent::new(10.0),
        };
        LoadReporter::new(&settings, vec!["a.example".into(), "b.example".into()])
    }

    fn value(reporter: &LoadReporter, node: u8, last: &LastReported) -> Option<u16> {
        let mut builder = MessageBuilder::request(316, 0);
        builder.append_encoded(reporter.unreported(node, last)?);
        let load = Load::all(&builder.finish().unwrap()).next().unwrap();
        assert_eq!(load.kind, LoadType::Peer);
        assert_eq!(load.source, ["a.example", "b.example"][usize::from(node)]);
        reporter.mark_reported(last);
        Some(load.value)
    }

    #[test]
    fn the_value_is_the_free_share() {
        assert_eq!(
            (load_value(0.0), load_value(100.0), load_value(250.0)),
            (IDLE, 0, 0)
        );
        assert_eq!(load_value(60.0), 26_214);
        assert_eq!(load_value(f64::NAN), 0);
    }

    #[test]
    fn a_change_is_reported_once_per_connection_and_renewed_at_the_interval() {
        let mut reporter = reporter(Period::from_secs(5));
        let start = Instant::now();
        let (one, other) = (LastReported::default(), LastReported::default());
        assert_eq!(value(&reporter, 0, &one), None, "nothing is known yet");
        reporter.sample(start, 20.0);
        assert_eq!(value(&reporter, 0, &one), Some(52_428));
        assert_eq!(value(&reporter, 0, &one), None);
        assert_eq!(value(&reporter, 1, &other), Some(52_428));
        // A small change is held back, a large one is reported at once.
        reporter.sample(start + Duration::from_secs(1), 25.0);
        assert_eq!(value(&reporter, 0, &one), None);
        reporter.sample(start + Duration::from_secs(2), 40.0);
        assert_eq!(value(&reporter, 0, &one), Some(39_321));
        // Renewed, whether it has changed or not: receivers expire it.
        reporter.sample(start + Duration::from_secs(6), 40.0);
        assert_eq!(value(&reporter, 0, &one), None);
        reporter.sample(start + Duration::from_secs(7), 41.0);
        assert_eq!(value(&reporter, 0, &one), Some(38_666));
        // Off and on again: every connection gets it.
        reporter.configure(&AdvertiseLoad::default());
        reporter.sample(start + Duration::from_secs(8), 90.0);
        assert_eq!(value(&reporter, 0, &one), None);
        let on = AdvertiseLoad {
            enabled: true,
            ..AdvertiseLoad::default()
        };
        reporter.configure(&on);
        reporter.sample(start + Duration::from_secs(9), 41.0);
        assert_eq!(value(&reporter, 0, &one), Some(38_666));
        assert_eq!(value(&reporter, 2, &other), None);
    }

    #[test]
    fn every_answer_carries_the_load_at_interval_zero() {
        let mut reporter = reporter(Period::from_secs(0));
        let last = LastReported::default();
        reporter.sample(Instant::now(), 100.0);
        assert_eq!(value(&reporter, 0, &last), Some(0));
        assert_eq!(value(&reporter, 0, &last), Some(0));
    }
}
