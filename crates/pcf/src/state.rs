//! The operational state, which an operator sets, and the load of each worker.

use std::sync::atomic::{AtomicU8, AtomicU32, Ordering::Relaxed};

/// How far the function is open: an operator can shut it down in steps.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum State {
    /// The PCF serves every request.
    Serving,
    /// The PCF refuses new associations, and serves those that exist.
    Partial,
    /// The PCF refuses every request.
    Complete,
}

impl State {
    fn of(number: u8) -> Self {
        match number {
            0 => Self::Serving,
            1 => Self::Partial,
            _ => Self::Complete,
        }
    }
}

/// The operational state, and the load of each worker.
#[derive(Debug)]
pub(crate) struct Switches {
    state: AtomicU8,
    /// CPU time of each worker, in percent of a core.
    loads: Vec<AtomicU32>,
}

impl Switches {
    pub(crate) fn new(workers: usize) -> Self {
        Self {
            state: AtomicU8::new(0),
            loads: (0..workers).map(|_| AtomicU32::new(0)).collect(),
        }
    }

    pub(crate) fn state(&self) -> State {
        State::of(self.state.load(Relaxed))
    }

    pub(crate) fn set_state(&self, state: State) {
        self.state.store(state as u8, Relaxed);
    }

    /// Load of the busiest worker, in percent of a core.
    pub(crate) fn load(&self) -> u32 {
        let busiest = self.loads.iter().map(|load| load.load(Relaxed)).max();
        busiest.unwrap_or(0).min(100)
    }

    pub(crate) fn set_load(&self, worker: usize, load: f64) {
        if let Some(own) = self.loads.get(worker) {
            own.store(load as u32, Relaxed);
        }
    }
}
