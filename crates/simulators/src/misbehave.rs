//! Ways to be a bad peer, each with its share of the requests.

use std::time::Duration;

use rand::Rng;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use settings::{Faults, Percent, Period, Validate};

/// How a simulator misbehaves. All shares are of all requests; the first that hits decides.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default, rename_all = "camelCase")]
pub struct Misbehaviour {
    /// Share of requests after which the whole connection is reset (RST).
    pub close: Percent,
    /// Share of requests that are never answered.
    pub silence: Percent,
    /// Share of requests whose stream is reset.
    pub reset: Percent,
    /// Share of requests that are answered with `errorStatus`.
    pub error: Percent,
    /// The status of such answers.
    pub error_status: u16,
    /// Share of requests that are answered late.
    pub delay: Percent,
    /// How late, beyond the usual latency.
    pub delay_by: Period,
}

impl Default for Misbehaviour {
    fn default() -> Self {
        Self {
            close: Percent::new(0.0),
            silence: Percent::new(0.0),
            reset: Percent::new(0.0),
            error: Percent::new(0.0),
            error_status: 503,
            delay: Percent::new(0.0),
            delay_by: Period::from_secs(1),
        }
    }
}

/// What becomes of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fate {
    Close,
    Silence,
    Reset,
    Error(u16),
    Answer { later: Duration },
}

impl Misbehaviour {
    /// Draws the fate of a request.
    pub(super) fn draw(&self, random: &mut impl Rng) -> Fate {
        let shares = [self.close, self.silence, self.reset, self.error, self.delay].map(Percent::fraction);
        if shares.iter().all(|share| *share <= 0.0) {
            return Fate::Answer {
                later: Duration::ZERO,
            };
        }
        let mut drawn: f64 = random.random();
        for (share, fate) in shares.into_iter().zip([
            Fate::Close,
            Fate::Silence,
            Fate::Reset,
            Fate::Error(self.error_status),
            Fate::Answer {
                later: self.delay_by.duration(),
            },
        ]) {
            if drawn < share {
                return fate;
            }
            drawn -= share;
        }
        Fate::Answer {
            later: Duration::ZERO,
        }
    }
}

impl Validate for Misbehaviour {
    fn validate(&self, faults: &mut Faults) {
        if !(200..=599).contains(&self.error_status) {
            faults.at("errorStatus").say(
                format!("{} is not a final status", self.error_status),
                "200 to 599, such as 503",
            );
        }
        let all = [self.close, self.silence, self.reset, self.error, self.delay];
        let sum: f64 = all.into_iter().map(Percent::percent).sum();
        if sum > 100.0 {
            faults
                .at("")
                .say(format!("the shares add up to {sum}%"), "at most 100% together");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::SeedableRng;
    use rand::rngs::SmallRng;

    #[test]
    fn shares_hold() {
        let bad = Misbehaviour {
            close: Percent::new(1.0),
            silence: Percent::new(2.0),
            reset: Percent::new(3.0),
            error: Percent::new(4.0),
            delay: Percent::new(5.0),
            ..Misbehaviour::default()
        };
        let mut random = SmallRng::seed_from_u64(1);
        let drawn: Vec<Fate> = (0..100_000).map(|_| bad.draw(&mut random)).collect();
        let share = |fate: Fate| drawn.iter().filter(|f| **f == fate).count() as f64 / 1000.0;
        for (fate, percent) in [
            (Fate::Close, 1.0),
            (Fate::Silence, 2.0),
            (Fate::Reset, 3.0),
            (Fate::Error(503), 4.0),
            (
                Fate::Answer {
                    later: Duration::from_secs(1),
                },
                5.0,
            ),
            (
                Fate::Answer {
                    later: Duration::ZERO,
                },
                85.0,
            ),
        ] {
            assert!((share(fate) - percent).abs() < 0.4, "{fate:?}: {}", share(fate));
        }
    }
}
