//! What a message processor tells its neighbours of its own load (RFC 8583). Pure: load and time are arguments.
//!
//! A Load is encoded when there is something new to tell, some times per second at most, and appended to answers
//! as it is. Each connection knows what it was told last: one answer carries the news, not every one.

use std::cell::Cell;
use std::time::Instant;

use bytes::Bytes;
use diameter::proto::AvpWriter;
use diameter::proto::overload::load::{IDLE, Load, LoadType};

use crate::config::TellLoad;

/// What is to be told.
#[derive(Debug)]
pub struct Telling {
    settings: TellLoad,
    /// Our DiameterIdentity at each local node.
    names: Vec<String>,
    /// What was encoded last, and when.
    said: Option<(u16, Instant)>,
    /// The Load of each local node, encoded.
    encoded: Vec<Bytes>,
    /// Grows with each value; 0: there is nothing to tell.
    news: u32,
    last: u32,
}

/// What a connection was told last.
#[derive(Debug, Default)]
pub struct Told(Cell<u32>);

/// The Load-Value for a load in percent: what is left (RFC 8583 §7.3).
fn left(load: f64) -> u16 {
    let free = 1.0 - (load / 100.0).clamp(0.0, 1.0);
    (f64::from(IDLE) * free).round() as u16
}

impl Telling {
    /// Nothing to tell yet.
    #[must_use]
    pub fn new(settings: &TellLoad, names: Vec<String>) -> Self {
        Self {
            settings: settings.clone(),
            names,
            said: None,
            encoded: Vec::new(),
            news: 0,
            last: 0,
        }
    }

    /// Takes new settings; they count from the next sample on.
    pub fn configure(&mut self, settings: &TellLoad) {
        if self.settings != *settings {
            self.settings = settings.clone();
            (self.said, self.news) = (None, 0);
        }
    }

    /// Takes the load, in percent of what this message processor can have.
    pub fn sample(&mut self, now: Instant, load: f64) {
        if !self.settings.enabled {
            return;
        }
        let value = left(load);
        if let Some((said, since)) = self.said {
            let moved = f64::from(value.abs_diff(said)) / f64::from(IDLE);
            let old = now.saturating_duration_since(since) >= self.settings.interval.duration();
            let renews = old && !self.settings.interval.is_zero();
            if !renews && (value == said || moved < self.settings.step.fraction()) {
                return;
            }
        }
        self.said = Some((value, now));
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
        // 0 is no news, also after four thousand million of them.
        self.last = self.last.wrapping_add(1).max(1);
        self.news = self.last;
    }

    /// Whether there is nothing to tell anyone.
    #[inline]
    #[must_use]
    pub const fn is_silent(&self) -> bool {
        self.news == 0
    }

    /// What the next answer of this local node on a connection has to carry; none: nothing that it has not been
    /// told.
    #[inline]
    #[must_use]
    pub fn news(&self, node: u8, told: &Told) -> Option<&Bytes> {
        if self.is_silent() || (told.0.get() == self.news && !self.settings.interval.is_zero()) {
            return None;
        }
        self.encoded.get(usize::from(node))
    }

    /// The connection has been told.
    pub fn mark(&self, told: &Told) {
        told.0.set(self.news);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use diameter::proto::MessageBuilder;
    use settings::{Percent, Period};
    use std::time::Duration;

    fn telling(interval: Period) -> Telling {
        let settings = TellLoad {
            enabled: true,
            interval,
            step: Percent::new(10.0),
        };
        Telling::new(&settings, vec!["a.example".into(), "b.example".into()])
    }

    fn value(telling: &Telling, node: u8, told: &Told) -> Option<u16> {
        let mut builder = MessageBuilder::request(316, 0);
        builder.append_encoded(telling.news(node, told)?);
        let load = Load::all(&builder.finish().unwrap()).next().unwrap();
        assert_eq!(load.kind, LoadType::Peer);
        assert_eq!(load.source, ["a.example", "b.example"][usize::from(node)]);
        telling.mark(told);
        Some(load.value)
    }

    #[test]
    fn what_is_left_is_told() {
        assert_eq!((left(0.0), left(100.0), left(250.0)), (IDLE, 0, 0));
        assert_eq!(left(60.0), 26_214);
        assert_eq!(left(f64::NAN), 0);
    }

    #[test]
    fn a_connection_is_told_once_of_a_change_and_again_after_a_while() {
        let mut telling = telling(Period::from_secs(5));
        let start = Instant::now();
        let (one, other) = (Told::default(), Told::default());
        assert_eq!(value(&telling, 0, &one), None, "nothing is known yet");
        telling.sample(start, 20.0);
        assert_eq!(value(&telling, 0, &one), Some(52_428));
        assert_eq!(value(&telling, 0, &one), None);
        assert_eq!(value(&telling, 1, &other), Some(52_428));
        // A small change is kept back, a large one is told at once.
        telling.sample(start + Duration::from_secs(1), 25.0);
        assert_eq!(value(&telling, 0, &one), None);
        telling.sample(start + Duration::from_secs(2), 40.0);
        assert_eq!(value(&telling, 0, &one), Some(39_321));
        // Renewed, whether it has changed or not: who hears forgets.
        telling.sample(start + Duration::from_secs(6), 40.0);
        assert_eq!(value(&telling, 0, &one), None);
        telling.sample(start + Duration::from_secs(7), 41.0);
        assert_eq!(value(&telling, 0, &one), Some(38_666));
        // Off and on again: it is news to everyone.
        telling.configure(&TellLoad::default());
        telling.sample(start + Duration::from_secs(8), 90.0);
        assert_eq!(value(&telling, 0, &one), None);
        let on = TellLoad {
            enabled: true,
            ..TellLoad::default()
        };
        telling.configure(&on);
        telling.sample(start + Duration::from_secs(9), 41.0);
        assert_eq!(value(&telling, 0, &one), Some(38_666));
        assert_eq!(value(&telling, 2, &other), None);
    }

    #[test]
    fn every_answer_tells_where_that_is_wanted() {
        let mut telling = telling(Period::from_secs(0));
        let told = Told::default();
        telling.sample(Instant::now(), 100.0);
        assert_eq!(value(&telling, 0, &told), Some(0));
        assert_eq!(value(&telling, 0, &told), Some(0));
    }
}
