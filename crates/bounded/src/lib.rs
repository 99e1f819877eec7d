//! A cache with bounds.
//!
//! [`Cache`] holds at most as many entries, and entries of at most as many bytes, as its [`Limits`] allow. When it is
//! full, an insertion evicts one entry that was not used lately (CLOCK, "second chance"): entries that are in use
//! survive a flood of keys that are asked for once, and a full cache is never emptied at once.
//!
//! Every operation takes constant time. A clock may have to pass many entries that are all in use; this one passes
//! [`SWEEP_MAX`] of them at most and then evicts the next. Hashes are keyed at random, so that keys from the network
//! cannot be chosen to collide.
//!
//! ```
//! use bounded::{Cache, Limits};
//!
//! let mut cache = Cache::new(Limits::entries(2));
//! cache.insert("udm", 1);
//! cache.insert("ausf", 2);
//! assert_eq!(cache.get("udm"), Some(&1));
//! cache.insert("pcf", 3);
//! assert_eq!((cache.get("udm"), cache.get("ausf")), (Some(&1), None), "the unused entry was evicted");
//! assert_eq!(cache.stats().evictions, 1);
//! ```

mod cache;
#[cfg(test)]
mod tests;

pub use cache::{Cache, Limits, SWEEP_MAX, Stats};
