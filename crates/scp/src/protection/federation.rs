//! Federation of SCPs that share rates.
//!
//! Each SCP reports its demand for every global rate to the others several times a second. Each then divides the rate
//! as it divides it among its workers: an SCP with a low demand gets its demand and a part of the remainder; if the
//! total demand exceeds the rate, each gets a share in proportion to its demand. All use nearly the same reports, so
//! the parts add up to the rate.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use ahash::AHashMap;
use parking_lot::Mutex;
use sbi::Peer;

use super::rate::apportion;
use crate::config::{Federation as Settings, WhenSilent};

/// Demand of each global rate, in messages per second, by the name of the rate.
pub(crate) type Usage = AHashMap<Box<str>, f64>;

/// Reports of the other SCPs.
#[derive(Debug, Default)]
pub(crate) struct Federation {
    reports: Mutex<AHashMap<Box<str>, Report>>,
    /// Addresses of the configured peers, by host name.
    addresses: Mutex<AHashMap<Box<str>, Vec<IpAddr>>>,
}

#[derive(Debug)]
struct Report {
    at: Instant,
    usage: Arc<Usage>,
}

/// Reports of the others at one moment.
#[derive(Clone, Debug, Default)]
pub(crate) struct Others {
    heard: Vec<Arc<Usage>>,
    /// Silent SCPs whose part stays reserved.
    kept: usize,
}

impl Federation {
    /// Stores the report of an SCP. Returns whether there was room: at most one per configured peer.
    pub(crate) fn hear(&self, settings: &Settings, scp: &str, usage: Usage, now: Instant) -> bool {
        let mut reports = self.reports.lock();
        if !reports.contains_key(scp) && reports.len() >= settings.peers.len() {
            let silent_after = settings.silent_after.duration();
            // An SCP that restarted with another id replaces a silent one.
            reports.retain(|_, one| now.saturating_duration_since(one.at) < silent_after);
            if reports.len() >= settings.peers.len() {
                return false;
            }
        }
        let usage = Arc::new(usage);
        reports.insert(scp.into(), Report { at: now, usage });
        true
    }

    /// Returns the present reports; `None` without configured peers.
    pub(crate) fn others(&self, settings: &Settings, now: Instant) -> Option<Others> {
        if settings.peers.is_empty() {
            return None;
        }
        let silent_after = settings.silent_after.duration();
        let reports = self.reports.lock();
        let heard: Vec<Arc<Usage>> = reports
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

    /// Number of SCPs with a recent report.
    pub(crate) fn heard(&self, settings: &Settings, now: Instant) -> usize {
        let silent_after = settings.silent_after.duration();
        let is_fresh = |one: &&Report| now.saturating_duration_since(one.at) < silent_after;
        self.reports.lock().values().filter(is_fresh).count()
    }

    /// Stores the resolved addresses of a configured peer.
    pub(crate) fn is_at(&self, host: &str, addresses: Vec<IpAddr>) {
        self.addresses.lock().insert(host.into(), addresses);
    }

    /// Whether a sender is one of the configured peers: by a name of its client certificate, else by its address.
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
    /// Returns this SCP's part of the rate `whole`, at its own demand `own`.
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

/// Shortest interval between reports, whatever the configuration says.
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
