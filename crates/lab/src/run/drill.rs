//! What happens to the function or its peers while the load goes on, and what has to come of it: profiles change,
//! somebody is killed, something is gone, too much is offered.
//!
//! A drill looks on while the load runs, acts when it is time, and says in the end what had to hold. One that leaves
//! the rate alone goes along with any, also with that which a search for the knee has found; one in parts has rates of
//! its own.

use std::time::Duration;

use super::children::Simulator;
use super::rig::RigError;
use super::window::{Mark, Window};
use ::report::{Check, Destinations};
use loadgen::{OperationRecord, Record};
use simulators::Stats;

/// Something that happens while the load goes on.
pub trait Drill {
    /// The parts of the measured time, one after the other; none: it is one, at the rate of the run.
    fn parts(&self) -> Vec<Part> {
        Vec::new()
    }

    /// How many times the rate of the run is offered in the measured time. If not once, as much time at that rate comes
    /// before it, to compare with.
    fn factor(&self) -> f64 {
        1.0
    }

    /// Does what is due `at` this moment of the measured time, which is of this `length`, also to the simulators of the
    /// run. Called often.
    ///
    /// # Errors
    /// When it cannot be done.
    fn act(
        &mut self,
        _at: Duration,
        _length: Duration,
        _simulators: &mut [Simulator],
    ) -> Result<(), RigError> {
        Ok(())
    }

    /// What had to hold, when all is over.
    fn judge(&mut self, outcome: &Outcome<'_>) -> Judgement;
}

/// What begins a part.
pub type Act = Box<dyn FnMut(&mut [Simulator]) -> Result<(), RigError>>;

/// A part of the measured time.
pub struct Part {
    /// Its name in progress and checks.
    pub name: String,
    /// Its share of the run's duration.
    pub share: f64,
    /// The rate, as a multiple of the run's.
    pub factor: f64,
    /// What happens first; the load of the part begins when that is done.
    pub begin: Option<Act>,
}

impl Part {
    /// A part in which nothing happens.
    pub fn new(name: impl Into<String>, share: f64, factor: f64) -> Self {
        Self {
            name: name.into(),
            share,
            factor,
            begin: None,
        }
    }

    /// With something that happens first.
    pub fn beginning(self, act: impl FnMut(&mut [Simulator]) -> Result<(), RigError> + 'static) -> Self {
        Self {
            begin: Some(Box::new(act)),
            ..self
        }
    }
}

/// What came of a part.
#[derive(Clone, Debug)]
pub struct PartRecord {
    /// Its name.
    pub name: String,
    /// The rate, as a multiple of the run's.
    pub factor: f64,
    /// How long it was.
    pub length: Duration,
    /// Its requests.
    pub record: Record,
}

/// What came of the load, for a drill to judge.
pub struct Outcome<'a> {
    /// Names of the operations, in the order of the records.
    pub names: &'a [String],
    /// The parts of the measured time.
    pub parts: &'a [PartRecord],
    /// The measured time.
    pub(super) window: &'a Window,
    /// The time at the rate that the measured time offers a multiple of.
    pub(super) reference: Option<&'a Window>,
    /// What was counted in the end.
    pub(super) end: &'a Mark,
    /// The most resident memory in the measured time and in the reference, in bytes.
    pub(super) rss: (u64, u64),
}

impl Outcome<'_> {
    /// What came of the requests of the operation of this name, in some parts.
    pub fn of_operation<'p>(
        &self,
        parts: impl IntoIterator<Item = &'p PartRecord>,
        name: &str,
    ) -> OperationRecord {
        let at = self.names.iter().position(|known| known == name);
        let mut all = OperationRecord::default();
        for part in parts {
            let record = at.and_then(|at| part.record.operations.get(at));
            all.merge(&record.cloned().unwrap_or_default());
        }
        all
    }

    /// What the simulators have done in the whole run.
    pub fn simulators(&self) -> impl Iterator<Item = &Stats> {
        self.end.simulators.iter().map(|(stats, _)| stats)
    }
}

/// What a drill says in the end.
#[derive(Debug, Default)]
pub struct Judgement {
    /// What had to hold.
    pub checks: Vec<Check>,
    /// What a reader should know.
    pub notes: Vec<String>,
    /// Whether requests may fail and be late in a run like this: then the bounds of the model do not apply.
    pub spares_bounds: bool,
    /// Where requests went, second by second, where the drill is about that.
    pub destinations: Option<Destinations>,
}

impl From<Vec<Check>> for Judgement {
    fn from(checks: Vec<Check>) -> Self {
        Self {
            checks,
            ..Self::default()
        }
    }
}
