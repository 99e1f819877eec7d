//! How far replication between sites is behind.
//!
//! Each site writes the time into a row of its own; the database's replication carries it to the others. When a
//! new beat of another site appears, the difference to the clock here is the delay at that moment. While no new one
//! appears the delay is at least the age of the last.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
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

/// A site of which nothing has arrived for longer than it may.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LateSite {
    /// Name of the site.
    pub site: String,
    /// Age of what arrived last.
    pub delay: Duration,
}

type Watcher = Arc<dyn Fn(&[LateSite]) + Send + Sync>;

/// Delays by site.
#[derive(Default)]
pub(crate) struct Delays {
    /// Period of the heart-beats.
    period: Duration,
    /// From which delay on a site is late; none: never.
    late: Option<Duration>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    beats: BTreeMap<String, Beat>,
    late: Vec<LateSite>,
    watchers: Vec<Watcher>,
}

impl fmt::Debug for Delays {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Delays").field(&self.state.lock().beats).finish()
    }
}

impl Delays {
    /// Delays of sites that beat in this period. A site is late from a delay of `late` on; 0: never.
    pub(crate) fn new(period: Duration, late: Duration) -> Self {
        Self {
            period,
            late: (!late.is_zero()).then_some(late),
            state: Mutex::default(),
        }
    }

    /// Notes the beats that are in the database at `now`. A site whose row an operator has removed is forgotten.
    pub(crate) fn see(&self, beats: Vec<(String, u64)>, own: &str, now: u64) {
        let (late, watchers) = {
            let mut state = self.state.lock();
            let mut before = std::mem::take(&mut state.beats);
            for (site, at) in beats.into_iter().filter(|(site, _)| site != own) {
                let known = before.remove(&site).filter(|known| known.at == at);
                let beat = known.unwrap_or_else(|| Beat {
                    at,
                    delay: Duration::from_micros(now.saturating_sub(at)),
                });
                state.beats.insert(site, beat);
            }
            let late = self.late_at(&state, now);
            let names = |sites: &[LateSite]| sites.iter().map(|one| one.site.clone()).collect::<Vec<_>>();
            let is_same = names(&late) == names(&state.late);
            state.late.clone_from(&late);
            if is_same {
                return;
            }
            (late, state.watchers.clone())
        };
        watchers.iter().for_each(|watcher| watcher(&late));
    }

    /// Calls `watcher` with the sites that are late now, and whenever one becomes late or ceases to be.
    pub(crate) fn watch(&self, watcher: Watcher) {
        let late = {
            let mut state = self.state.lock();
            state.watchers.push(watcher.clone());
            state.late.clone()
        };
        watcher(&late);
    }

    #[cfg_attr(not(feature = "mariadb"), allow(dead_code, reason = "one engine asks"))]
    pub(crate) fn are_known(&self) -> bool {
        !self.state.lock().beats.is_empty()
    }

    /// The delay of each other site.
    pub(crate) fn at(&self, now: u64) -> Vec<(String, Duration)> {
        let state = self.state.lock();
        let delays = state.beats.iter();
        delays
            .map(|(site, beat)| (site.clone(), self.delay(beat, now)))
            .collect()
    }

    fn late_at(&self, state: &State, now: u64) -> Vec<LateSite> {
        let Some(late) = self.late else {
            return Vec::new();
        };
        let delays = state.beats.iter().map(|(site, beat)| LateSite {
            site: site.clone(),
            delay: self.delay(beat, now),
        });
        delays.filter(|one| one.delay >= late).collect()
    }

    fn delay(&self, beat: &Beat, now: u64) -> Duration {
        let age = Duration::from_micros(now.saturating_sub(beat.at));
        // The next beat is due one period after the last, and then is on its way as long as that was.
        if age > beat.delay + 2 * self.period {
            age - self.period
        } else {
            beat.delay
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_delay_is_that_of_the_last_beat_until_the_next_is_overdue() {
        let delays = Delays::new(Duration::from_secs(1), Duration::ZERO);
        let seconds = |count: u64| count * 1_000_000;
        let beat = |at| vec![("here".to_owned(), at), ("there".to_owned(), at)];
        delays.see(beat(seconds(10)), "here", seconds(10) + 40_000);
        let expected = |delay| vec![("there".to_owned(), delay)];
        assert_eq!(delays.at(seconds(11)), expected(Duration::from_millis(40)));
        // Seen again: nothing new.
        delays.see(beat(seconds(10)), "here", seconds(12));
        assert_eq!(delays.at(seconds(12)), expected(Duration::from_millis(40)));
        assert_eq!(delays.at(seconds(20)), expected(Duration::from_secs(9)));
        delays.see(beat(seconds(21)), "here", seconds(21) + 5_000);
        assert_eq!(delays.at(seconds(21)), expected(Duration::from_millis(5)));
    }

    #[test]
    fn watchers_learn_of_each_site_that_becomes_late_and_of_its_return() {
        let delays = Delays::new(Duration::from_secs(1), Duration::from_secs(30));
        let seconds = |count: u64| count * 1_000_000;
        let beats = |east: u64, west: u64| {
            let beats = [("here", 0), ("east", east), ("west", west)];
            beats.map(|(site, at)| (site.to_owned(), seconds(at))).to_vec()
        };
        let calls = Arc::new(Mutex::new(Vec::new()));
        let seen = calls.clone();
        delays.watch(Arc::new(move |late| seen.lock().push(late.to_vec())));
        let late = |site: &str, delay| LateSite {
            site: site.to_owned(),
            delay: Duration::from_secs(delay),
        };
        delays.see(beats(100, 100), "here", seconds(100));
        delays.see(beats(120, 100), "here", seconds(120));
        assert_eq!(calls.lock().split_off(0), [Vec::new()]);
        // West has been silent for half a minute.
        delays.see(beats(131, 100), "here", seconds(131));
        delays.see(beats(140, 100), "here", seconds(140));
        assert_eq!(calls.lock().split_off(0), [vec![late("west", 30)]]);
        // It beats again; then its row is removed, and that of the other comes late.
        delays.see(beats(140, 141), "here", seconds(141));
        assert_eq!(calls.lock().split_off(0), [Vec::new()]);
        delays.see(beats(140, 141)[..2].to_vec(), "here", seconds(190));
        assert_eq!(calls.lock().split_off(0), [vec![late("east", 49)]]);
        // Who asks late gets what is so.
        let seen = calls.clone();
        delays.watch(Arc::new(move |late| seen.lock().push(late.to_vec())));
        assert_eq!(calls.lock().split_off(0), [vec![late("east", 49)]]);
    }
}
