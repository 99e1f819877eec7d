//! What goes along with the measured part of a run: profiles change, somebody is killed, something is gone, too much is
//! offered.
//!
//! A companion looks on while the load runs, acts when it is time, and says in the end what had to hold. Other than a
//! [`Drill`](super::drill::Drill), whose parts have rates of their own, it leaves the load alone, so that a run with one can
//! search for the knee first.

use std::time::Duration;

use super::judge::Window;
use super::rig::RigError;
use crate::report::Check;

/// Something that goes along with the load.
pub trait Companion {
    /// How many times the rate of the run is offered in the measured part. If not once, a part of the same length
    /// at that rate comes before it, to compare with.
    fn factor(&self) -> f64 {
        1.0
    }

    /// Does what is due `at` this time of the measured part, which is of this `length`. Called often.
    ///
    /// # Errors
    /// When it cannot be done.
    fn act(&mut self, at: Duration, length: Duration) -> Result<(), RigError>;

    /// What had to hold, when all is over.
    fn judge(&mut self, outcome: &Outcome<'_>) -> Judgement;
}

/// What came of the load, for a companion to judge.
pub struct Outcome<'a> {
    /// Names of the operations, in the order of the records.
    pub names: &'a [String],
    /// The measured part.
    pub(super) window: &'a Window,
    /// The part at the rate that the measured part offers a multiple of.
    pub(super) reference: Option<&'a Window>,
    /// The most resident memory in the measured part and in the reference, in bytes.
    pub(super) rss: (u64, u64),
}

/// What a companion or a drill says in the end.
#[derive(Debug, Default)]
pub struct Judgement {
    /// What had to hold.
    pub checks: Vec<Check>,
    /// What a reader should know.
    pub notes: Vec<String>,
    /// Whether requests may fail and be late in a run like this: then the bounds of the model do not apply.
    pub spares_bounds: bool,
}
