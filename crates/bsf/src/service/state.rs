//! What all threads share and an operator may change at once.

use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU32, Ordering::Relaxed};

/// How far the function is open: it can be shut down in steps.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum State {
    /// Every request is worked on.
    Serving,
    /// No new bindings and sessions; those that exist are served on.
    Partial,
    /// No request is worked on.
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

/// The switches, and what each worker tells of itself.
#[derive(Debug)]
pub(crate) struct Switches {
    state: AtomicU8,
    congestion: AtomicBool,
    /// CPU time of each worker, in percent of a core.
    load: Vec<AtomicU32>,
}

impl Switches {
    pub(super) fn new(workers: usize, congestion: bool) -> Self {
        Self {
            state: AtomicU8::new(0),
            congestion: AtomicBool::new(congestion),
            load: (0..workers).map(|_| AtomicU32::new(0)).collect(),
        }
    }

    pub(crate) fn state(&self) -> State {
        State::of(self.state.load(Relaxed))
    }

    pub(super) fn set_state(&self, state: State) {
        self.state.store(state as u8, Relaxed);
    }

    pub(crate) fn congestion(&self) -> bool {
        self.congestion.load(Relaxed)
    }

    pub(super) fn set_congestion(&self, on: bool) {
        self.congestion.store(on, Relaxed);
    }

    /// Load of the busiest worker, in percent of a core.
    pub(crate) fn load(&self) -> u32 {
        let busiest = self.load.iter().map(|load| load.load(Relaxed)).max();
        busiest.unwrap_or(0).min(100)
    }

    pub(super) fn set_load(&self, worker: usize, load: f64) {
        if let Some(shown) = self.load.get(worker) {
            shown.store(load as u32, Relaxed);
        }
    }
}
