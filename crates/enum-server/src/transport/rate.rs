//! The rate of answers over UDP for each client.

use std::hash::{BuildHasher as _, RandomState};
use std::net::IpAddr;
use std::time::Instant;

use crate::config::Rate;

/// Clients that are counted at a time. Where two meet in one slot, the later one begins with full credit: a flood from forged addresses
/// takes memory from no client.
const SLOTS: usize = 1 << 14;

/// What a datagram gets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    Answer,
    Slip,
    Drop,
}

#[derive(Clone, Copy)]
struct Slot {
    client: u64,
    /// Answers that the client may get at once, at `seen`.
    credit: f32,
    seen: f64,
    over: u32,
}

/// Counts answers of a worker. A client may save those of one second.
pub(crate) struct Limiter {
    hasher: RandomState,
    started: Instant,
    slots: Box<[Slot]>,
}

impl Limiter {
    pub(crate) fn new(now: Instant) -> Self {
        let empty = Slot {
            client: 0,
            credit: 0.0,
            seen: 0.0,
            over: 0,
        };
        Self {
            hasher: RandomState::new(),
            started: now,
            slots: vec![empty; SLOTS].into_boxed_slice(),
        }
    }

    /// Counts a datagram.
    pub(crate) fn judge(&mut self, rate: &Rate, client: IpAddr, now: Instant) -> Verdict {
        if rate.per_second == 0 {
            return Verdict::Answer;
        }
        let network = network(client);
        // Not 0, which is an empty slot.
        let client = self.hasher.hash_one(network) | 1;
        let now = now.saturating_duration_since(self.started).as_secs_f64();
        let Some(slot) = self.slots.get_mut((client >> 32) as usize % SLOTS) else {
            return Verdict::Answer;
        };
        let most = rate.per_second as f32;
        if slot.client != client {
            *slot = Slot {
                client,
                credit: most,
                seen: now,
                over: 0,
            };
        }
        slot.credit = (slot.credit + (now - slot.seen) as f32 * most).min(most);
        slot.seen = now;
        if slot.credit >= 1.0 {
            slot.credit -= 1.0;
            return Verdict::Answer;
        }
        slot.over = slot.over.wrapping_add(1);
        if rate.slip > 0 && slot.over.is_multiple_of(rate.slip) {
            Verdict::Slip
        } else {
            Verdict::Drop
        }
    }
}

/// 24 bits of IPv4, 56 of IPv6: what one customer commonly has.
fn network(client: IpAddr) -> u128 {
    match client.to_canonical() {
        IpAddr::V4(address) => u128::from(u32::from(address) >> 8),
        IpAddr::V6(address) => u128::from(address) >> 72 | 1 << 127,
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_client_over_its_rate_is_slipped_and_dropped_by_turns_and_others_are_answered() {
        let begin = Instant::now();
        let mut limiter = Limiter::new(begin);
        let rate = Rate {
            per_second: 3,
            slip: 2,
        };
        let (one, other): (IpAddr, IpAddr) = ("192.0.2.1".parse().unwrap(), "198.51.100.1".parse().unwrap());
        let mut judged = |client, at| limiter.judge(&rate, client, begin + Duration::from_millis(at));
        let verdicts: Vec<Verdict> = (0..7).map(|_| judged(one, 0)).collect();
        use Verdict::{Answer, Drop, Slip};
        assert_eq!(verdicts, [Answer, Answer, Answer, Drop, Slip, Drop, Slip]);
        assert_eq!(
            judged("192.0.2.200".parse().unwrap(), 0),
            Drop,
            "the same network"
        );
        assert_eq!(
            judged("::ffff:192.0.2.1".parse().unwrap(), 0),
            Slip,
            "the same address"
        );
        assert_eq!(judged(other, 0), Answer);
        assert_eq!(judged(one, 500), Answer, "one and a half are back");
        assert_eq!(judged(one, 500), Drop);
        // A year later time counts as it does now.
        let year = 365 * 24 * 3_600_000;
        assert_eq!(judged(one, year), Answer);
        for _ in 0..2 {
            judged(one, year);
        }
        assert_eq!(judged(one, year + 300), Slip);
        assert_eq!(judged(one, year + 400), Answer);
        let unbounded = Rate {
            per_second: 0,
            slip: 2,
        };
        assert_eq!(limiter.judge(&unbounded, one, begin), Answer);
    }
}
