//! Runs in parts: something happens to the function or its peers while the load goes on, and checks of their
//! own say what has to come of it.

use std::time::Duration;

use super::children::Simulator;
use super::rig::RigError;
use crate::load::Record;
use crate::report::Check;
use crate::sim::Stats;

/// What happens, and what has to come of it.
pub struct Drill {
    /// The parts of the run, one after the other.
    pub parts: Vec<Part>,
    /// Judges the whole when it is over.
    pub judge: Judge,
    /// Whether requests may fail: the model's bounds of success, rate and latency do not hold then.
    pub lossy: bool,
}

/// Says what came of it.
pub type Judge = Box<dyn FnOnce(&Outcome<'_>) -> Vec<Check>>;

/// What begins a part.
pub type Act = Box<dyn FnMut(&mut [Simulator]) -> Result<(), RigError>>;

/// A part of a run.
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

/// What came of a run.
#[derive(Debug)]
pub struct Outcome<'a> {
    /// The parts.
    pub parts: &'a [PartRecord],
    /// What the simulators have done.
    pub simulators: &'a [Stats],
}

impl std::fmt::Debug for Drill {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let names: Vec<&str> = self.parts.iter().map(|part| part.name.as_str()).collect();
        write!(f, "Drill({names:?})")
    }
}
