//! The operational state of a function, which an operator sets, and the load of its workers.

use std::sync::atomic::{AtomicU8, AtomicU32, Ordering::Relaxed};

/// How far a function is open: an operator can shut it down in steps.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum State {
    /// The function serves every request.
    #[default]
    Serving,
    /// The function refuses what creates a record, and serves the records that exist.
    Partial,
    /// The function refuses every request.
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

    /// The `nfStatus` of its profile: consumers do not discover a function that is being shut down in steps
    /// (TS 29.510 §6.1.6.3.7).
    #[must_use]
    pub fn nf_status(self) -> &'static str {
        match self {
            Self::Serving => "REGISTERED",
            Self::Partial => "UNDISCOVERABLE",
            Self::Complete => "SUSPENDED",
        }
    }
}

/// The operational state of a function, and the load of each worker. All its threads share it.
#[derive(Debug)]
pub struct Operational {
    state: AtomicU8,
    loads: Vec<Load>,
}

/// CPU time of one worker, in percent of a core; on a cache line of its own.
#[derive(Debug, Default)]
#[repr(align(128))]
struct Load(AtomicU32);

impl Operational {
    /// A function with that many workers, in a state that an operator has set.
    #[must_use]
    pub fn new(workers: usize, state: State) -> Self {
        if state != State::Serving {
            tracing::warn!(
                ?state,
                "the operational state was set by an operator before the restart"
            );
        }
        Self {
            state: AtomicU8::new(state as u8),
            loads: (0..workers).map(|_| Load::default()).collect(),
        }
    }

    /// The operational state.
    #[must_use]
    pub fn state(&self) -> State {
        State::of(self.state.load(Relaxed))
    }

    /// Sets the operational state.
    pub fn set_state(&self, state: State) {
        self.state.store(state as u8, Relaxed);
        tracing::info!(?state, "an operator has set the operational state");
    }

    /// Load of the busiest worker, in percent of a core.
    #[must_use]
    pub fn load(&self) -> u8 {
        let busiest = self.loads.iter().map(|load| load.0.load(Relaxed)).max();
        u8::try_from(busiest.unwrap_or(0).min(100)).unwrap_or(100)
    }

    /// Sets the load of one worker, in percent of a core.
    pub fn set_load(&self, worker: usize, percent: f64) {
        if let Some(load) = self.loads.get(worker) {
            load.0.store(percent as u32, Relaxed);
        }
    }
}
