//! Callback paths for notifications of NRFs: one unguessable path per subscription.
//!
//! ```text
//! /signalbox-scp/v1/nf-status-notify/7/2f6c0d…   the seventh subscription, and 128 random bits
//! ```

use std::fmt::Write as _;
use std::sync::atomic::{AtomicU64, Ordering};

use ahash::AHashMap;
use arc_swap::ArcSwap;

/// How every path of a subscription begins.
const CALLBACK_PATH: &str = "/signalbox-scp/v1/nf-status-notify";

/// The open callback paths.
#[derive(Debug, Default)]
pub(crate) struct Callbacks {
    open: ArcSwap<AHashMap<u64, Callback>>,
    last: AtomicU64,
}

/// The path of one subscription.
#[derive(Clone, Debug)]
struct Callback {
    /// 128 bits in hexadecimal digits.
    secret: String,
    /// The set of NRFs that holds the subscription.
    set: usize,
}

/// Kind of a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Called {
    /// The callback path of a subscription at this set of NRFs.
    Of(usize),
    /// A callback path without a subscription.
    Unknown,
    /// Any other path.
    Other,
}

impl Callbacks {
    /// Opens a path for a subscription at a set; its number closes it again.
    pub(super) fn open(&self, set: usize) -> (u64, String) {
        let number = self.last.fetch_add(1, Ordering::Relaxed) + 1;
        let random: [u8; 16] = rand::random();
        let secret = random.iter().fold(String::with_capacity(32), |mut text, byte| {
            // Writing to a text cannot fail.
            let _ = write!(text, "{byte:02x}");
            text
        });
        let path = format!("{CALLBACK_PATH}/{number}/{secret}");
        self.change(|open| {
            open.insert(
                number,
                Callback {
                    secret: secret.clone(),
                    set,
                },
            );
        });
        (number, path)
    }

    /// Closes a path.
    pub(super) fn close(&self, number: u64) {
        self.change(|open| {
            open.remove(&number);
        });
    }

    fn change(&self, change: impl Fn(&mut AHashMap<u64, Callback>)) {
        self.open.rcu(|now| {
            let mut next = AHashMap::clone(now);
            change(&mut next);
            next
        });
    }

    /// Classifies a path.
    pub(crate) fn called(&self, path: &str) -> Called {
        let Some(rest) = path.strip_prefix(CALLBACK_PATH) else {
            return Called::Other;
        };
        let named = rest.strip_prefix('/').and_then(|rest| rest.split_once('/'));
        let known = named.and_then(|(number, secret)| {
            let open = self.open.load();
            let callback = open.get(&number.parse().ok()?)?;
            is_same(&callback.secret, secret).then_some(callback.set)
        });
        known.map_or(Called::Unknown, Called::Of)
    }
}

/// Compares two texts in constant time.
fn is_same(known: &str, received: &str) -> bool {
    let pairs = known.bytes().zip(received.bytes());
    let differs = pairs.fold(0, |differs, (a, b)| std::hint::black_box(differs | (a ^ b)));
    known.len() == received.len() && differs == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_path_of_an_open_subscription_is_heard() {
        let callbacks = Callbacks::default();
        let (first, path) = callbacks.open(0);
        let (_, other) = callbacks.open(3);
        assert_eq!(callbacks.called(&path), Called::Of(0));
        assert_eq!(callbacks.called(&other), Called::Of(3));
        let secret = path.rsplit('/').next().unwrap();
        assert!(secret.len() == 32 && !other.ends_with(secret));
        for unknown in [
            CALLBACK_PATH.to_owned(),
            format!("{CALLBACK_PATH}/"),
            format!("{CALLBACK_PATH}/1"),
            format!("{CALLBACK_PATH}/1/"),
            format!("{CALLBACK_PATH}/2/{secret}"),
            path[..path.len() - 1].to_owned(),
            format!("{path}0"),
            format!("{path}/"),
            format!("{CALLBACK_PATH}/99999999999999999999/{secret}"),
        ] {
            assert_eq!(callbacks.called(&unknown), Called::Unknown, "{unknown}");
        }
        assert_eq!(callbacks.called("/nudm-sdm/v2/x"), Called::Other);
        callbacks.close(first);
        assert_eq!(callbacks.called(&path), Called::Unknown);
    }
}
