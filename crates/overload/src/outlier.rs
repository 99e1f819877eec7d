//! Ejection of failing peers for a while.

use std::borrow::Borrow;
use std::hash::Hash;
use std::time::{Duration, Instant};

use ahash::AHashMap;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use settings::{Faults, Percent, Period, Validate};

/// When a peer is ejected, and for how long.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default, rename_all = "camelCase")]
pub struct OutlierSettings {
    /// Consecutive failures after which a peer is ejected; 0: this criterion is off.
    pub consecutive_failures: u32,
    /// Share of failed requests in an interval from which a peer is ejected; absent: this criterion is off.
    pub failure_share: Option<Percent>,
    /// Requests in an interval below which the failure share is ignored.
    pub minimum_requests: u32,
    /// Length of the intervals in which failures are counted.
    pub interval: Period,
    /// How long the first ejection lasts; the second twice as long, the third three times …
    pub base_ejection: Period,
    /// The longest ejection.
    pub max_ejection: Period,
    /// Share of the peers that may be ejected at the same time; one always may, unless this is 0%. For peers that can
    /// replace one another it is the share of this group, and the last of the group is never ejected.
    pub max_ejected: Percent,
}

impl Default for OutlierSettings {
    fn default() -> Self {
        Self {
            consecutive_failures: 5,
            failure_share: None,
            minimum_requests: 20,
            interval: Period::from_secs(10),
            base_ejection: Period::from_secs(30),
            max_ejection: Period::from_secs(300),
            max_ejected: Percent::new(50.0),
        }
    }
}

impl Validate for OutlierSettings {
    fn validate(&self, faults: &mut Faults) {
        if self.max_ejection < self.base_ejection {
            faults.at("maxEjection").say(
                format!("{} is shorter than `baseEjection`", self.max_ejection),
                format!("at least {}", self.base_ejection),
            );
        }
        if self.interval.is_zero() {
            faults.at("interval").say("must not be 0s", "more than 0s");
        }
    }
}

/// Outcome of a report.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// No change.
    Unchanged,
    /// The peer is ejected for this time.
    Ejected(Duration),
    /// The peer fails, but too many peers are ejected already.
    Spared,
}

#[derive(Clone, Debug)]
struct Peer {
    in_a_row: u32,
    interval_began: Instant,
    requests: u32,
    failures: u32,
    ejected_until: Option<Instant>,
    /// Ejections so far; fades by one with each interval that passes without one.
    times: u32,
    faded: Instant,
}

impl Peer {
    fn new(now: Instant) -> Self {
        Self {
            in_a_row: 0,
            interval_began: now,
            requests: 0,
            failures: 0,
            ejected_until: None,
            times: 0,
            faded: now,
        }
    }

    fn is_ejected(&self, now: Instant) -> bool {
        self.ejected_until.is_some_and(|until| now < until)
    }
}

/// Passive health of a set of peers, learnt from how requests to them end.
#[derive(Clone, Debug)]
pub struct OutlierDetector<K> {
    settings: OutlierSettings,
    peers: AHashMap<K, Peer>,
}

impl<K: Hash + Eq + Clone> OutlierDetector<K> {
    /// Creates a detector without peers.
    #[must_use]
    pub fn new(settings: OutlierSettings) -> Self {
        Self {
            settings,
            peers: AHashMap::new(),
        }
    }

    /// Replaces the set of peers. Peers that remain keep their state; the detector ignores reports about other peers,
    /// which bounds its memory.
    pub fn set_peers(&mut self, peers: impl IntoIterator<Item = K>, now: Instant) {
        let mut before = std::mem::take(&mut self.peers);
        self.peers = peers
            .into_iter()
            .map(|key| {
                let state = before.remove(&key).unwrap_or_else(|| Peer::new(now));
                (key, state)
            })
            .collect();
    }

    /// Whether the peer is ejected now. An unknown peer is not.
    #[must_use]
    pub fn is_ejected<Q>(&self, key: &Q, now: Instant) -> bool
    where
        K: Borrow<Q>,
        Q: Hash + Eq + ?Sized,
    {
        self.peers.get(key).is_some_and(|peer| peer.is_ejected(now))
    }

    /// A request to the peer has ended, well or not.
    pub fn report<Q>(&mut self, key: &Q, success: bool, now: Instant) -> Verdict
    where
        K: Borrow<Q>,
        Q: Hash + Eq + ?Sized,
    {
        self.report_among(key, success, now, || None)
    }

    /// As [`OutlierDetector::report`]. `others` returns the peers that can replace this one, if they are known: then
    /// at most the share of this group is ejected, and never all. Called only before an ejection.
    pub fn report_among<Q>(
        &mut self,
        key: &Q,
        success: bool,
        now: Instant,
        others: impl FnOnce() -> Option<Vec<K>>,
    ) -> Verdict
    where
        K: Borrow<Q>,
        Q: Hash + Eq + ?Sized,
    {
        let settings = &self.settings;
        let Some(peer) = self.peers.get_mut(key) else {
            return Verdict::Unchanged;
        };
        let interval = settings.interval.duration();
        fade(peer, interval, now);
        if now.saturating_duration_since(peer.interval_began) >= interval {
            peer.interval_began = now;
            peer.requests = 0;
            peer.failures = 0;
        }
        peer.requests = peer.requests.saturating_add(1);
        if success {
            peer.in_a_row = 0;
            return Verdict::Unchanged;
        }
        peer.failures = peer.failures.saturating_add(1);
        peer.in_a_row = peer.in_a_row.saturating_add(1);
        // Late answers to requests that were sent before the ejection do not prolong it.
        if peer.is_ejected(now) {
            return Verdict::Unchanged;
        }
        let in_a_row = settings.consecutive_failures > 0 && peer.in_a_row >= settings.consecutive_failures;
        let by_share = settings.failure_share.is_some_and(|share| {
            peer.requests >= settings.minimum_requests.max(1)
                && f64::from(peer.failures) >= share.fraction() * f64::from(peer.requests)
        });
        if !in_a_row && !by_share {
            return Verdict::Unchanged;
        }
        let too_many = match others() {
            None => self.ejected(now) >= self.most(),
            Some(others) => {
                let others: ahash::AHashSet<&Q> = others
                    .iter()
                    .map(Borrow::borrow)
                    .filter(|other| *other != key)
                    .collect();
                let ejected = others
                    .iter()
                    .filter(|other| self.is_ejected(**other, now))
                    .count();
                let share = self.settings.max_ejected.fraction() * (others.len() + 1) as f64;
                let most = match share > 0.0 {
                    true => (share.floor() as usize).max(1).min(others.len()),
                    false => 0,
                };
                ejected >= most
            }
        };
        if too_many {
            return Verdict::Spared;
        }
        let Some(peer) = self.peers.get_mut(key) else {
            return Verdict::Unchanged;
        };
        peer.times = peer.times.saturating_add(1);
        peer.in_a_row = 0;
        peer.requests = 0;
        peer.failures = 0;
        let long = self
            .settings
            .base_ejection
            .duration()
            .saturating_mul(peer.times)
            .min(self.settings.max_ejection.duration());
        peer.ejected_until = now.checked_add(long);
        peer.faded = now.checked_add(long).unwrap_or(now);
        Verdict::Ejected(long)
    }

    /// Number of peers ejected at `now`.
    #[must_use]
    pub fn ejected(&self, now: Instant) -> usize {
        self.peers.values().filter(|peer| peer.is_ejected(now)).count()
    }

    /// Ends an ejection when another source reports the peer as available (a new registration, an
    /// answer to a probe).
    pub fn restore<Q>(&mut self, key: &Q)
    where
        K: Borrow<Q>,
        Q: Hash + Eq + ?Sized,
    {
        if let Some(peer) = self.peers.get_mut(key) {
            peer.ejected_until = None;
            peer.in_a_row = 0;
        }
    }

    /// Number of peers that may be ejected at the same time.
    fn most(&self) -> usize {
        let share = self.settings.max_ejected.fraction();
        if share <= 0.0 {
            return 0;
        }
        ((self.peers.len() as f64 * share).floor() as usize).max(1)
    }
}

/// Reduces the count of ejections by one for each interval that has passed since the last one ended.
fn fade(peer: &mut Peer, interval: Duration, now: Instant) {
    if interval.is_zero() || peer.times == 0 {
        return;
    }
    let passed = now.saturating_duration_since(peer.faded).as_nanos() / interval.as_nanos();
    if passed > 0 {
        peer.times = peer
            .times
            .saturating_sub(u32::try_from(passed).unwrap_or(u32::MAX));
        peer.faded = now;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn detector(peers: &[&'static str], now: Instant) -> OutlierDetector<&'static str> {
        let mut detector = OutlierDetector::new(OutlierSettings::default());
        detector.set_peers(peers.iter().copied(), now);
        detector
    }

    fn fail(detector: &mut OutlierDetector<&'static str>, peer: &'static str, now: Instant) -> Verdict {
        (0..5).map(|_| detector.report(&peer, false, now)).last().unwrap()
    }

    #[test]
    fn five_failures_in_a_row_eject_for_longer_each_time() {
        let now = Instant::now();
        let mut detector = detector(&["a", "b"], now);
        (0..4).for_each(|_| assert_eq!(detector.report(&"a", false, now), Verdict::Unchanged));
        detector.report(&"a", true, now);
        assert_eq!(
            fail(&mut detector, "a", now),
            Verdict::Ejected(Duration::from_secs(30))
        );
        assert!(detector.is_ejected(&"a", now + Duration::from_secs(29)));
        let back = now + Duration::from_secs(30);
        assert!(!detector.is_ejected(&"a", back));
        assert_eq!(
            fail(&mut detector, "a", back),
            Verdict::Ejected(Duration::from_secs(60))
        );
        // After a long time without failures the first ejection is short again.
        let later = back + Duration::from_secs(600);
        assert_eq!(
            fail(&mut detector, "a", later),
            Verdict::Ejected(Duration::from_secs(30))
        );
        detector.restore(&"a");
        assert_eq!(detector.ejected(later), 0);
    }

    #[test]
    fn the_last_ones_are_spared() {
        let now = Instant::now();
        let mut detector = detector(&["a", "b"], now);
        assert!(matches!(fail(&mut detector, "a", now), Verdict::Ejected(_)));
        assert_eq!(fail(&mut detector, "b", now), Verdict::Spared);
        assert_eq!(fail(&mut detector, "stranger", now), Verdict::Unchanged);
    }

    #[test]
    fn of_those_that_stand_in_for_one_another_enough_are_left() {
        let now = Instant::now();
        let names = ["a", "b", "c", "d", "alone", "e", "f", "g", "h", "i", "j", "k"];
        let mut detector = detector(&names, now);
        let mut fail = |peer: &'static str, set: &[&'static str]| {
            let report = |_| detector.report_among(&peer, false, now, || Some(set.to_vec()));
            (0..5).map(report).last().unwrap()
        };
        let set = ["a", "b", "c", "d"];
        assert!(matches!(fail("a", &set), Verdict::Ejected(_)));
        assert!(matches!(fail("b", &set), Verdict::Ejected(_)));
        assert_eq!(fail("c", &set), Verdict::Spared);
        assert_eq!(
            fail("alone", &[]),
            Verdict::Spared,
            "no other peer can replace it"
        );
        assert!(matches!(fail("e", &["f"]), Verdict::Ejected(_)));
        assert_eq!(fail("f", &["e"]), Verdict::Spared);
    }

    #[test]
    fn a_share_of_failures_ejects_once_there_are_enough() {
        let now = Instant::now();
        let mut detector = OutlierDetector::new(OutlierSettings {
            consecutive_failures: 0,
            failure_share: Some(Percent::new(40.0)),
            ..OutlierSettings::default()
        });
        detector.set_peers(["a", "b"], now);
        for round in 0..9 {
            assert_eq!(detector.report("a", round % 2 == 0, now), Verdict::Unchanged);
        }
        let ejected =
            (0..20).any(|round| matches!(detector.report("a", round % 2 == 0, now), Verdict::Ejected(_)));
        assert!(ejected);
    }

    #[test]
    fn peers_that_remain_keep_their_state() {
        let now = Instant::now();
        let mut detector = detector(&["a", "b"], now);
        fail(&mut detector, "a", now);
        detector.set_peers(["a", "c"], now);
        assert!(detector.is_ejected(&"a", now));
        assert!(!detector.is_ejected(&"b", now));
    }

    proptest! {
        /// Whatever is reported: never more than the share (or one) is ejected, and never for longer than the
        /// maximum.
        #[test]
        fn bounds_hold(reports in proptest::collection::vec((0_usize..10, any::<bool>(), 0_u64..5000), 0..800), share in 0.0..100.0) {
            let mut now = Instant::now();
            let settings = OutlierSettings { max_ejected: Percent::new(share), ..OutlierSettings::default() };
            let mut detector = OutlierDetector::new(settings.clone());
            detector.set_peers(0..10, now);
            for (peer, success, wait) in reports {
                now += Duration::from_millis(wait);
                if let Verdict::Ejected(long) = detector.report(&peer, success, now) {
                    prop_assert!(long <= settings.max_ejection.duration());
                }
                prop_assert!(detector.ejected(now) <= ((share / 10.0).floor() as usize).max(1));
            }
        }
    }
}
