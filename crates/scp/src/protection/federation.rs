//! What SCPs that keep rates together tell each other.
//!
//! Each tells the others how much it is asked to send by every global rate, several times a second. From that each
//! cuts the rate as it cuts it among its workers: who is asked for little gets that and a part of what is left
//! over, and when more is asked for than there is, everybody gets in proportion. All know nearly the same, so the
//! parts add up to the rate.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use ahash::AHashMap;
use parking_lot::Mutex;
use sbi::Peer;

use super::rate::apportion;
use crate::config::{Federation as Settings, WhenSilent};

/// How much is asked for by each global rate, in messages per second, by the name of the rate.
pub(crate) type Usage = AHashMap<Box<str>, f64>;

/// What the others have told.
#[derive(Debug, Default)]
pub(crate) struct Federation {
    told: Mutex<AHashMap<Box<str>, Told>>,
    /// Addresses of the configured peers, by what they are called there.
    addresses: Mutex<AHashMap<Box<str>, Vec<IpAddr>>>,
}

#[derive(Debug)]
struct Told {
    at: Instant,
    usage: Arc<Usage>,
}

/// The others at one moment, as a rate is cut by them.
#[derive(Clone, Debug, Default)]
pub(crate) struct Others {
    heard: Vec<Arc<Usage>>,
    /// Silent ones whose part is kept for them.
    kept: usize,
}

impl Federation {
    /// One of the others has told of itself. Answers whether there was room: for as many as are configured.
    pub(crate) fn hear(&self, settings: &Settings, scp: &str, usage: Usage, now: Instant) -> bool {
        let mut told = self.told.lock();
        if !told.contains_key(scp) && told.len() >= settings.peers.len() {
            let silent_after = settings.silent_after.duration();
            // One that has come back with another id takes the place of a silent one.
            told.retain(|_, one| now.saturating_duration_since(one.at) < silent_after);
            if told.len() >= settings.peers.len() {
                return false;
            }
        }
        let usage = Arc::new(usage);
        told.insert(scp.into(), Told { at: now, usage });
        true
    }

    /// The others, as known now; `None` when there are none to share with.
    pub(crate) fn others(&self, settings: &Settings, now: Instant) -> Option<Others> {
        if settings.peers.is_empty() {
            return None;
        }
        let silent_after = settings.silent_after.duration();
        let told = self.told.lock();
        let heard: Vec<Arc<Usage>> = told
            .values()
            .filter(|one| now.saturating_duration_since(one.at) < silent_after)
            .map(|one| one.usage.clone())
            .collect();
        let silent = settings.peers.len().saturating_sub(heard.len());
        let kept = match settings.when_silent {
            WhenSilent::Keep => silent,
            WhenSilent::Release => 0,
        };
        Some(Others { heard, kept })
    }

    /// How many of the others have been heard of lately.
    pub(crate) fn heard(&self, settings: &Settings, now: Instant) -> usize {
        let silent_after = settings.silent_after.duration();
        let is_fresh = |one: &&Told| now.saturating_duration_since(one.at) < silent_after;
        self.told.lock().values().filter(is_fresh).count()
    }

    /// The addresses of a configured peer have been found.
    pub(crate) fn is_at(&self, host: &str, addresses: Vec<IpAddr>) {
        self.addresses.lock().insert(host.into(), addresses);
    }

    /// Whether somebody is one of the configured peers: by a name of its certificate where it shows one, else by
    /// its address.
    pub(crate) fn admits(&self, settings: &Settings, peer: &Peer) -> bool {
        let mut hosts = settings.peers.iter().filter_map(|root| host_of(root));
        let certificate = peer.tls.as_ref().filter(|tls| tls.certificate.is_some());
        if let Some(tls) = certificate {
            return hosts.any(|host| tls.names.iter().any(|name| name.eq_ignore_ascii_case(&host)));
        }
        let from = peer.addr.ip().to_canonical();
        let addresses = self.addresses.lock();
        hosts.any(|host| {
            host.parse() == Ok(from) || addresses.get(&*host).is_some_and(|found| found.contains(&from))
        })
    }
}

/// The host of an API root.
fn host_of(root: &str) -> Option<String> {
    let origin: sbi::client::Origin = root.parse().ok()?;
    Some(origin.host().to_owned())
}

impl Others {
    /// This SCP's part of a rate, when it is asked for so much itself.
    pub(crate) fn part(&self, whole: f64, name: &str, own: f64) -> f64 {
        let all = self.heard.len() + self.kept + 1;
        let shared = whole * (all - self.kept) as f64 / all as f64;
        let of_others = self
            .heard
            .iter()
            .map(|usage| usage.get(name).copied().unwrap_or(0.0));
        let asked: Vec<f64> = std::iter::once(own).chain(of_others).collect();
        apportion(shared, &asked).first().copied().unwrap_or(0.0)
    }
}

/// Time between two exchanges at least, whatever the configuration says.
pub(crate) const LEAST_INTERVAL: Duration = Duration::from_millis(50);

#[cfg(test)]
mod tests {
    use super::*;
    use settings::Period;

    fn settings(peers: &[&str], when_silent: WhenSilent) -> Settings {
        Settings {
            peers: peers.iter().map(ToString::to_string).collect(),
            silent_after: Period::from_secs(3),
            when_silent,
            ..Settings::default()
        }
    }

    fn usage(rate: f64) -> Usage {
        Usage::from_iter([("udm".into(), rate)])
    }

    #[test]
    fn parts_follow_what_is_asked_and_add_up() {
        let settings = settings(&["http://a:1", "http://b:1"], WhenSilent::Keep);
        let now = Instant::now();
        // Three SCPs that know of each other.
        let asked = [900.0, 300.0, 0.0];
        let parts = [0, 1, 2].map(|own: usize| {
            let federation = Federation::default();
            for (at, rate) in asked.iter().enumerate().filter(|(at, _)| *at != own) {
                assert!(federation.hear(&settings, &at.to_string(), usage(*rate), now));
            }
            let others = federation.others(&settings, now).unwrap();
            others.part(600.0, "udm", asked[own])
        });
        assert!((parts.iter().sum::<f64>() - 600.0).abs() < 1e-6, "{parts:?}");
        assert!(
            parts[0] > 440.0 && parts[1] > 140.0 && parts[2] < 10.0,
            "{parts:?}"
        );
    }

    #[test]
    fn a_silent_peer_keeps_its_part_or_not() {
        let now = Instant::now();
        let of = |when_silent, after: u64| {
            let settings = settings(&["http://a:1", "http://b:1"], when_silent);
            let federation = Federation::default();
            federation.hear(&settings, "a", usage(0.0), now);
            federation.hear(&settings, "b", usage(100.0), now);
            let later = now + Duration::from_secs(after);
            let others = federation.others(&settings, later).unwrap();
            (
                others.part(300.0, "udm", 1_000.0),
                federation.heard(&settings, later),
            )
        };
        let (part, heard) = of(WhenSilent::Keep, 1);
        assert!(part > 250.0 && heard == 2, "{part}");
        assert_eq!(of(WhenSilent::Keep, 3), (100.0, 0));
        assert_eq!(of(WhenSilent::Release, 3), (300.0, 0));
        let alone = settings(&[], WhenSilent::Keep);
        assert!(Federation::default().others(&alone, now).is_none());
    }

    #[test]
    fn as_many_as_are_configured_are_heard() {
        let settings = settings(&["http://a:1"], WhenSilent::Keep);
        let (federation, now) = (Federation::default(), Instant::now());
        assert!(federation.hear(&settings, "a", usage(1.0), now));
        assert!(!federation.hear(&settings, "b", usage(1.0), now));
        let later = now + Duration::from_secs(3);
        assert!(federation.hear(&settings, "b", usage(1.0), later));
        assert_eq!(federation.heard(&settings, later), 1);
    }
}
