//! Whether a client holds back what our overload reports ask for. Pure: time is an argument.
//!
//! A client that does is not discarded from a second time. One that claims to and goes on as before is treated as one
//! without overload control: its rate since the report is compared with its rate before.

use std::time::{Duration, Instant};

/// Time over which a rate is measured.
const WINDOW: Duration = Duration::from_secs(1);
/// A rate below this is of too few requests to be compared.
const LEAST_RATE: f64 = 50.0;

/// What one connection does about our reports.
#[derive(Debug, Default)]
pub(crate) struct Obedience {
    /// Requests since the window began.
    window: Option<(Instant, u32)>,
    /// Requests per second while no report was in force.
    usual: f64,
    report: Option<InForce>,
    disobeys: bool,
}

/// A report that the client has.
#[derive(Clone, Copy, Debug)]
struct InForce {
    since: Instant,
    until: Instant,
    reduction: f64,
}

impl Obedience {
    /// A request came that reports are about.
    #[inline]
    pub(crate) fn request(&mut self, now: Instant) {
        match &mut self.window {
            Some((since, count)) if now.saturating_duration_since(*since) < WINDOW => *count += 1,
            _ => self.measure(now),
        }
    }

    /// A window is over, or the first one begins.
    fn measure(&mut self, now: Instant) {
        let Some((since, count)) = self.window.replace((now, 1)) else {
            return;
        };
        let rate = f64::from(count) / now.saturating_duration_since(since).as_secs_f64();
        match self.report.filter(|report| report.until > now) {
            None => {
                self.usual = rate;
                (self.report, self.disobeys) = (None, false);
            }
            // Half of what was asked for may be missed by chance.
            Some(report) if report.since <= since => {
                let most = self.usual * (1.0 - report.reduction / 2.0);
                self.disobeys = self.usual >= LEAST_RATE && rate > most;
            }
            Some(_) => {}
        }
    }

    /// The client gets a report.
    pub(crate) fn reported(&mut self, now: Instant, reduction: f64, validity: Duration) {
        if validity.is_zero() || reduction <= 0.0 {
            self.report = None;
            self.disobeys = false;
            return;
        }
        let same = self
            .report
            .filter(|report| report.until > now && report.reduction == reduction);
        self.report = Some(InForce {
            since: same.map_or(now, |report| report.since),
            until: now + validity,
            reduction,
        });
    }

    /// The share that the client holds back.
    #[inline]
    pub(crate) fn reduction(&self, now: Instant) -> f64 {
        match self.report {
            Some(report) if report.until > now && !self.disobeys => report.reduction,
            _ => 0.0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Requests at this rate for five seconds from then on.
    fn run(client: &mut Obedience, from: Instant, rate: u32) -> Instant {
        for n in 0..5 * rate {
            client.request(from + Duration::from_secs(1) * n / rate);
        }
        from + Duration::from_secs(5)
    }

    #[test]
    fn a_client_that_goes_on_as_before_holds_nothing_back() {
        for (rate, holds_back) in [(75, 0.25), (100, 0.0), (60, 0.25)] {
            let mut client = Obedience::default();
            let now = run(&mut client, Instant::now(), 100);
            assert_eq!(client.reduction(now), 0.0, "nothing is asked for");
            client.reported(now, 0.25, Duration::from_secs(30));
            assert_eq!(client.reduction(now), 0.25);
            let now = run(&mut client, now, rate);
            assert_eq!(client.reduction(now), holds_back, "{rate}");
            // The report ends, by itself or by another.
            assert_eq!(client.reduction(now + Duration::from_secs(30)), 0.0);
            client.reported(now, 0.0, Duration::ZERO);
            assert_eq!(client.reduction(now), 0.0);
        }
    }

    #[test]
    fn few_requests_say_nothing() {
        let mut client = Obedience::default();
        let now = run(&mut client, Instant::now(), 10);
        client.reported(now, 0.5, Duration::from_secs(30));
        let now = run(&mut client, now, 10);
        assert_eq!(client.reduction(now), 0.5);
    }
}
