//! What each site did while the load ran: requests of both interfaces, and reads, operations and commits of its store.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use crate::run::figure;
use crate::run::rig::Probe;
use ::report::Check;
use report::measure::Metrics;

/// How often the figures are read.
const EVERY: Duration = Duration::from_millis(500);
/// Counters of a site, in the order of [`Figures`].
const COUNTERS: [&str; 5] = [
    "signalbox_sbi_server_requests_total",
    "signalbox_bsf_rx_requests_total",
    "signalbox_store_reads_total",
    "signalbox_store_operations_total",
    "signalbox_store_groups_total",
];

/// What a site has counted.
type Figures = [f64; COUNTERS.len()];

/// A site from the first look to the last.
#[derive(Debug, Default)]
struct Seen {
    first: Option<Figures>,
    last: Figures,
    /// Time in which requests came.
    active: Duration,
}

impl Seen {
    fn add(&mut self, now: Figures, passed: Duration) {
        if self.first.is_none() {
            self.first = Some(now);
        } else if self.last[..2] != now[..2] {
            self.active += passed;
        }
        self.last = now;
    }

    /// Each counter's increase in a second of load.
    fn rates(&self) -> Figures {
        let (first, seconds) = (self.first.unwrap_or_default(), self.active.as_secs_f64());
        std::array::from_fn(|place| match seconds > 0.0 {
            true => (self.last[place] - first[place]) / seconds,
            false => 0.0,
        })
    }

    /// The figures in words, and whether the site has served requests.
    fn shown(&self) -> (String, bool) {
        let rates = self.rates();
        let [nbsf, rx, reads, operations, commits] = rates.map(figure);
        let text = format!(
            "{nbsf} Nbsf and {rx} Rx requests a second; store: {reads} reads of a database, {operations} writes and \
             {commits} commits a second"
        );
        (text, rates[0] + rates[1] > 0.0)
    }
}

/// Reads the counters of these sites until the probes are gone; one check for each site, of which the first `loaded` have
/// traffic.
pub(super) fn watch(admins: &[SocketAddr], loaded: usize) -> Vec<Probe> {
    let sites = admins.iter().enumerate();
    sites
        .map(|(place, admin)| probe(*admin, place + 1, place < loaded))
        .collect()
}

fn probe(admin: SocketAddr, number: usize, has_traffic: bool) -> Probe {
    let seen = Arc::new(Mutex::new(Seen::default()));
    let watched = Arc::downgrade(&seen);
    std::thread::spawn(move || {
        let mut before = Instant::now();
        while let Some(seen) = watched.upgrade() {
            if let Some(metrics) = Metrics::read(admin) {
                let now = Instant::now();
                let figures = COUNTERS.map(|name| metrics.sum(name, &[]));
                let mut seen = seen.lock().unwrap_or_else(PoisonError::into_inner);
                seen.add(figures, now - before);
                before = now;
            }
            drop(seen);
            std::thread::sleep(EVERY);
        }
    });
    Box::new(move || {
        let (text, served) = seen.lock().unwrap_or_else(PoisonError::into_inner).shown();
        let expected = match has_traffic {
            true => "requests reach the site",
            false => "no traffic of its own",
        };
        Check::new(format!("site {number}"), expected, text, served || !has_traffic)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_are_those_of_the_time_with_requests() {
        let second = Duration::from_secs(1);
        let mut seen = Seen::default();
        for (requests, writes) in [
            (10.0, 5.0),
            (10.0, 5.0),
            (110.0, 55.0),
            (210.0, 105.0),
            (210.0, 105.0),
        ] {
            seen.add([requests, 0.0, 0.0, writes, 0.0], second);
        }
        assert_eq!(seen.rates(), [100.0, 0.0, 0.0, 50.0, 0.0]);
        assert!(seen.shown().1 && !Seen::default().shown().1);
    }
}
