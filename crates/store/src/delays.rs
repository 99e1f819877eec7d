//! How far replication between sites is behind.
//!
//! Each site writes the time into a row of its own; the database's replication carries it to the others. When a
//! new beat of another site appears, the difference to the clock here is the delay at that moment. While no new one
//! appears the delay is at least the age of the last.

use std::collections::BTreeMap;
use std::time::Duration;

use parking_lot::Mutex;

/// What is known of another site.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Beat {
    /// The last beat that was seen, in microseconds since 1970.
    at: u64,
    /// How late it was when it was first seen.
    delay: Duration,
}

/// Delays by site.
#[derive(Debug, Default)]
pub(crate) struct Delays {
    beats: Mutex<BTreeMap<String, Beat>>,
}

impl Delays {
    /// Notes the beats that are in the database at `now`.
    pub(crate) fn see(&self, beats: Vec<(String, u64)>, own: &str, now: u64) {
        let mut known = self.beats.lock();
        for (site, at) in beats.into_iter().filter(|(site, _)| site != own) {
            if known.get(&site).is_none_or(|known| known.at != at) {
                known.insert(
                    site,
                    Beat {
                        at,
                        delay: Duration::from_micros(now.saturating_sub(at)),
                    },
                );
            }
        }
    }

    #[cfg_attr(not(feature = "mariadb"), allow(dead_code, reason = "one engine asks"))]
    pub(crate) fn are_known(&self) -> bool {
        !self.beats.lock().is_empty()
    }

    /// The delay of each other site.
    pub(crate) fn at(&self, now: u64, period: Duration) -> Vec<(String, Duration)> {
        let beats = self.beats.lock();
        let delay = |beat: &Beat| {
            let age = Duration::from_micros(now.saturating_sub(beat.at));
            // The next beat is due one period after the last, and then is on its way as long as that was.
            if age > beat.delay + 2 * period {
                age - period
            } else {
                beat.delay
            }
        };
        beats
            .iter()
            .map(|(site, beat)| (site.clone(), delay(beat)))
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_delay_is_that_of_the_last_beat_until_the_next_is_overdue() {
        let (delays, period) = (Delays::default(), Duration::from_secs(1));
        let seconds = |count: u64| count * 1_000_000;
        let beat = |at| vec![("here".to_owned(), at), ("there".to_owned(), at)];
        delays.see(beat(seconds(10)), "here", seconds(10) + 40_000);
        let expected = |delay| vec![("there".to_owned(), delay)];
        assert_eq!(
            delays.at(seconds(11), period),
            expected(Duration::from_millis(40))
        );
        // Seen again: nothing new.
        delays.see(beat(seconds(10)), "here", seconds(12));
        assert_eq!(
            delays.at(seconds(12), period),
            expected(Duration::from_millis(40))
        );
        assert_eq!(delays.at(seconds(20), period), expected(Duration::from_secs(9)));
        delays.see(beat(seconds(21)), "here", seconds(21) + 5_000);
        assert_eq!(delays.at(seconds(21), period), expected(Duration::from_millis(5)));
    }
}
