//! Overload control as pure code: admission, discarding, ejection of failing peers.
//!
//! The crate uses no clock, randomness or socket (except [`cpu::read`], the reader of `/proc`, which the pure part
//! does not call): time is an argument, and discards are spread evenly, so that tests are deterministic and a trace
//! explains each decision.
//!
//! For received messages:
//!
//! - [`RateLimiter`], [`KeyedRateLimiter`]: messages per second, in total or from each sender;
//! - [`AdmissionController`]: which requests a worker serves, by waiting time and priority;
//! - [`cpu::CpuLoad`] → [`RunningAverage`] → [`CongestionLevels`] → [`Discard`] or [`PriorityDiscard`]: CPU
//!   load, its congestion level, and the share of messages to discard.
//!
//! For sent messages:
//!
//! - [`ConcurrencyLimit`], [`CircuitBreaker`]: requests in flight, and none while the peer fails;
//! - [`OutlierDetector`]: which of several peers to eject for a while;
//! - [`RetryBudget`]: retries as a share of all requests.
//!
//! The names are those of Envoy's documentation where it has one, the levels those of Diameter routers.

mod admission;
mod average;
mod breaker;
mod budget;
pub mod cpu;
mod discard;
mod keyed;
mod levels;
mod outlier;
mod rate;

pub use admission::{Admission, AdmissionController, Offered, WaitingTime};
pub use average::RunningAverage;
pub use breaker::{BreakerSettings, BreakerState, CircuitBreaker, ConcurrencyLimit};
pub use budget::{RetryBudget, RetryBudgetSettings};
pub use discard::{Discard, PRIORITIES, PriorityDiscard};
pub use keyed::KeyedRateLimiter;
pub use levels::{Change, CongestionLevels, Level};
pub use outlier::{OutlierDetector, OutlierSettings, Verdict};
pub use rate::{Rate, RateLimiter};
