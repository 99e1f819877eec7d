//! How long a guesser waits: by account and by address, longer with each failure. Memory is constant whatever is tried, and an
//! account that does not exist waits as one that does.

use std::hash::{BuildHasher as _, RandomState};
use std::net::IpAddr;
use std::time::{Duration, Instant};

/// Slots of accounts, and of addresses. Two that share one by their keyed hashes share the wait.
const SLOTS: usize = 4_096;
/// Failures of an account without a wait.
const FREE_OF_ACCOUNT: u32 = 5;
/// Failures of an address without a wait: several people may have one.
const FREE_OF_ADDRESS: u32 = 20;
/// The first wait; each further failure doubles it.
const FIRST: Duration = Duration::from_secs(1);
const LONGEST: Duration = Duration::from_secs(900);
/// Without a failure for this time all is as at first.
const FORGIVEN: Duration = Duration::from_secs(3_600);

/// Failures of sign-ins.
#[derive(Debug)]
pub(super) struct Backoff {
    accounts: Slots,
    addresses: Slots,
}

impl Default for Backoff {
    fn default() -> Self {
        Self {
            accounts: Slots::new(),
            addresses: Slots::new(),
        }
    }
}

impl Backoff {
    /// Admits an attempt and counts it as a failure until [`Backoff::succeeded`]; or says how long it has to wait, and whether
    /// this is the first attempt of this wait. Attempts that wait are not counted.
    pub(super) fn attempt(&mut self, account: &str, from: IpAddr, now: Instant) -> Result<(), Wait> {
        let (account, address) = (self.accounts.of(account), self.addresses.of(&network(from)));
        let waits = [account.wait(now), address.wait(now)];
        if let Some(time) = waits.into_iter().flatten().max() {
            let is_first = account.refused == 0 && address.refused == 0;
            account.refused = account.refused.saturating_add(1);
            address.refused = address.refused.saturating_add(1);
            return Err(Wait { time, is_first });
        }
        account.fail(FREE_OF_ACCOUNT, now);
        address.fail(FREE_OF_ADDRESS, now);
        Ok(())
    }

    /// The attempt that was admitted last for these was none of a guesser. The address keeps its other failures: its owner
    /// may have an account and guess another.
    pub(super) fn succeeded(&mut self, account: &str, from: IpAddr) {
        *self.accounts.of(account) = Slot::default();
        let address = self.addresses.of(&network(from));
        address.failures = address.failures.saturating_sub(1);
        if address.failures < FREE_OF_ADDRESS {
            address.until = None;
        }
    }
}

/// Why an attempt is refused.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Wait {
    pub(super) time: Duration,
    pub(super) is_first: bool,
}

#[derive(Debug)]
struct Slots {
    key: RandomState,
    slots: Vec<Slot>,
}

#[derive(Clone, Debug, Default)]
struct Slot {
    failures: u32,
    last: Option<Instant>,
    until: Option<Instant>,
    refused: u32,
}

impl Slots {
    fn new() -> Self {
        Self {
            key: RandomState::new(),
            slots: vec![Slot::default(); SLOTS],
        }
    }

    fn of(&mut self, name: &(impl std::hash::Hash + ?Sized)) -> &mut Slot {
        let at = self.key.hash_one(name) as usize % SLOTS;
        &mut self.slots[at]
    }
}

impl Slot {
    fn wait(&self, now: Instant) -> Option<Duration> {
        self.until?
            .checked_duration_since(now)
            .filter(|wait| !wait.is_zero())
    }

    fn fail(&mut self, free: u32, now: Instant) {
        let is_old = |last: Instant| now.saturating_duration_since(last) >= FORGIVEN;
        if self.last.is_some_and(is_old) {
            *self = Self::default();
        }
        self.failures = self.failures.saturating_add(1);
        (self.last, self.refused) = (Some(now), 0);
        if let Some(beyond) = self.failures.checked_sub(free) {
            let wait = FIRST.saturating_mul(1 << beyond.min(10)).min(LONGEST);
            self.until = now.checked_add(wait);
        }
    }
}

/// What one guesser has: an address of IPv4, 64 bits of one of IPv6.
fn network(address: IpAddr) -> [u8; 8] {
    let octets = match address.to_canonical() {
        IpAddr::V4(address) => address.to_ipv6_compatible().octets(),
        IpAddr::V6(address) => address.octets(),
    };
    let mut network = [0; 8];
    match address.to_canonical() {
        IpAddr::V4(_) => network.copy_from_slice(&octets[8..]),
        IpAddr::V6(_) => network.copy_from_slice(&octets[..8]),
    }
    network
}

#[cfg(test)]
mod tests {
    use super::*;

    fn from(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    /// A guesser who tries as often as is admitted.
    #[test]
    fn half_a_day_of_guessing_is_less_than_a_hundred_guesses() {
        let (mut backoff, start) = (Backoff::default(), Instant::now());
        let mut guesses = 0;
        for second in 0..12 * 3_600 {
            // From an address of its own each time.
            let address = from(&format!(
                "2001:db8:{:x}:{:x}::1",
                second / 60_000,
                second % 60_000
            ));
            let now = start + Duration::from_secs(second);
            guesses += u32::from(backoff.attempt("ada", address, now).is_ok());
        }
        assert!((FREE_OF_ACCOUNT..100).contains(&guesses), "{guesses}");
    }

    #[test]
    fn an_address_that_tries_many_accounts_waits_and_others_do_not() {
        let (mut backoff, now) = (Backoff::default(), Instant::now());
        let (bad, good) = (from("2001:db8:1:2::77"), from("192.0.2.1"));
        let admitted = (0..1_000).filter(|n| backoff.attempt(&n.to_string(), bad, now).is_ok());
        assert_eq!(admitted.count() as u32, FREE_OF_ADDRESS);
        assert!(
            backoff.attempt("x", from("2001:db8:1:2:9::1"), now).is_err(),
            "the same network"
        );
        assert!(backoff.attempt("name of another", good, now).is_ok());
    }

    #[test]
    fn waits_double_and_end_and_success_clears_the_account() {
        let (mut backoff, mut now) = (Backoff::default(), Instant::now());
        let address = from("192.0.2.1");
        for _ in 0..FREE_OF_ACCOUNT {
            backoff.attempt("ada", address, now).unwrap();
        }
        for seconds in [1, 2, 4, 8] {
            let refused = backoff.attempt("ada", address, now).unwrap_err();
            assert_eq!(
                refused,
                Wait {
                    time: Duration::from_secs(seconds),
                    is_first: true
                }
            );
            assert!(!backoff.attempt("ada", address, now).unwrap_err().is_first);
            now += Duration::from_secs(seconds);
            backoff.attempt("ada", address, now).unwrap();
        }
        backoff.succeeded("ada", address);
        for _ in 0..FREE_OF_ACCOUNT {
            backoff.attempt("ada", address, now).unwrap();
        }
        assert!(backoff.attempt("ada", address, now).is_err());
        backoff.attempt("ada", address, now + FORGIVEN).unwrap();
        backoff.attempt("ada", address, now + FORGIVEN).unwrap();
    }
}
