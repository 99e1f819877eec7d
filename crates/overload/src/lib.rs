//! Overload control as pure code: what to let in, what to discard, whom to avoid.
//!
//! Nothing here reads a clock, rolls a die or opens a socket (but for [`cpu::read`], the reader of `/proc`,
//! which the pure part does not call): time is an argument, discards are spread evenly instead of by chance,
//! so that a test decides what happens and a trace explains it.
//!
//! The way in:
//!
//! - [`RateLimiter`], [`KeyedRateLimiter`]: how many per second, in all or from each sender;
//! - [`AdmissionController`]: which requests a worker takes up, by how long they have waited and their priority;
//! - [`cpu::CpuLoad`] → [`RunningAverage`] → [`CongestionLevels`] → [`Discard`] or [`PriorityDiscard`]: how
//!   loaded we are, which level that is, what share of which messages is discarded.
//!
//! The way out:
//!
//! - [`ConcurrencyLimit`], [`CircuitBreaker`]: how many at a time, and none while it is pointless;
//! - [`OutlierDetector`]: which of several peers to leave alone for a while;
//! - [`RetryBudget`]: how many second tries the whole can bear.
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
