//! State of producers for operators: each worker publishes the producers that are in use or fail, twice a second.

use std::sync::Arc;

use parking_lot::Mutex;

/// State of a producer, or of an SCP before it, in one worker.
#[derive(Clone, Debug)]
pub(crate) struct PeerState {
    /// `host:port`.
    pub(crate) authority: Arc<str>,
    pub(crate) instance: Option<Box<str>>,
    pub(crate) ejected: bool,
    /// `closed`, `open` or `halfOpen`.
    pub(crate) circuit: &'static str,
    pub(crate) outstanding: u32,
    /// Connections of the worker to it.
    pub(crate) connections: u32,
    /// Whether it has sent `Retry-After` that has not passed.
    pub(crate) rests: bool,
}

/// The last published states, by worker.
#[derive(Debug)]
pub(crate) struct PeerStates(Box<[Mutex<Vec<PeerState>>]>);

impl PeerStates {
    /// Creates it for this number of workers.
    pub(crate) fn new(workers: usize) -> Self {
        Self((0..workers.max(1)).map(|_| Mutex::default()).collect())
    }

    /// Publishes the states of a worker.
    pub(crate) fn write(&self, worker: usize, states: Vec<PeerState>) {
        if let Some(known) = self.0.get(worker) {
            *known.lock() = states;
        }
    }

    /// All states, each with the number of its worker.
    pub(crate) fn all(&self) -> Vec<(usize, PeerState)> {
        let of = |(worker, states): (usize, &Mutex<Vec<PeerState>>)| {
            let states = states.lock().clone();
            states.into_iter().map(move |state| (worker, state))
        };
        self.0.iter().enumerate().flat_map(of).collect()
    }

    /// Sums of `count` over the producers of each worker.
    pub(crate) fn sums(&self, count: fn(&PeerState) -> u32) -> Vec<(Vec<String>, f64)> {
        let sum = |states: &Mutex<Vec<PeerState>>| states.lock().iter().map(count).sum::<u32>();
        let each = self.0.iter().enumerate();
        each.map(|(worker, states)| (vec![worker.to_string()], f64::from(sum(states))))
            .collect()
    }
}
