//! Notifications to SCS/AS.

use std::time::Duration;

use notifier::{Bound, Policy};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use settings::{ByteSize, Faults, Period, Validate};

/// Delivery of notifications (TS 29.122 §5.2.5). Each is stored before the network has its answer, sent in order for each
/// subscription or configuration, and sent again after a restart until it is accepted, refused, or has had all attempts.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default, rename_all = "camelCase")]
pub struct Notifications {
    /// Notifications in memory, and a tenth of them about one resource; further ones wait in the store until earlier ones were
    /// accepted or given up.
    pub queue: usize,
    /// Notifications in flight.
    #[schemars(extend("x-reload" = true))]
    pub parallel: usize,
    /// Attempts of one notification. With the other defaults they go on for an hour and more.
    #[schemars(extend("x-reload" = true))]
    pub attempts: u32,
    /// Pause before the second attempt; doubles before each further one, up to two minutes.
    #[schemars(extend("x-reload" = true))]
    pub retry_pause: Period,
    /// Time for an SCS/AS to answer.
    #[schemars(extend("x-reload" = true))]
    pub timeout: Period,
    /// How long a notification that is not accepted stays in the store.
    #[schemars(extend("x-reload" = true))]
    pub keep: Period,
}

/// Longest pause between attempts, whatever `Retry-After` an SCS/AS sends.
const LONGEST_PAUSE: Duration = Duration::from_secs(120);

impl Default for Notifications {
    fn default() -> Self {
        Self {
            queue: 100_000,
            parallel: 64,
            attempts: 50,
            retry_pause: Period::from_millis(500),
            timeout: Period::from_secs(2),
            keep: Period::from_secs(86_400),
        }
    }
}

impl Notifications {
    /// How notifications are delivered.
    pub(crate) fn policy(&self) -> Policy {
        let bound = |share: usize| Bound {
            notifications: (self.queue / share).max(1),
            bytes: ByteSize::mib(64).as_usize(),
        };
        Policy {
            total: bound(1),
            per_subscription: bound(10),
            parallel: self.parallel,
            attempts: self.attempts,
            pause: self.retry_pause.duration().max(Duration::from_millis(1)),
            max_pause: LONGEST_PAUSE,
            timeout: self.timeout.duration(),
            redirects: 3,
            alternates: 0,
            rate: 0,
        }
    }
}

impl Validate for Notifications {
    fn validate(&self, faults: &mut Faults) {
        for (name, value) in [
            ("queue", self.queue),
            ("parallel", self.parallel),
            ("attempts", self.attempts as usize),
        ] {
            if value == 0 {
                faults.at(name).say("is 0", "at least 1");
            }
        }
        for (name, value) in [("timeout", self.timeout), ("keep", self.keep)] {
            if value.is_zero() {
                faults.at(name).say("is 0", "some time, such as 2s");
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use notifier::{Answer, Notification, Outbox, Step};

    use super::*;

    /// How long attempts of a notification go on, where the random part of each pause is this.
    fn patience(dice: f64) -> Duration {
        let mut outbox = Outbox::new(Notifications::default().policy(), |_| {});
        outbox.push(Notification {
            subscription: "about".into(),
            subject: "1".into(),
            whole: false,
            target: "http://as.example/n".parse().unwrap(),
            callback: "",
            body: "{}".into(),
            set: None,
            mark: 0,
        });
        let begin = Instant::now();
        let mut now = begin;
        loop {
            match outbox.next(now) {
                Step::Send(flight) => outbox.answered(flight, Answer::Retry(None), now, dice),
                Step::Wait(until) => now = until,
                _ => return now - begin,
            }
        }
    }

    #[test]
    fn an_outage_of_an_hour_costs_no_notification() {
        let keep = Notifications::default().keep.duration();
        for dice in [0.0, 0.5, 1.0] {
            let patience = patience(dice);
            assert!(patience >= Duration::from_secs(3_600), "{patience:?}");
            assert!(patience < keep / 2, "{patience:?}");
        }
    }
}
