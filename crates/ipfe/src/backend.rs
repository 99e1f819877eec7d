//! The message processors behind an address: how they stand, and who gets the next connection.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicU32, AtomicU64, AtomicUsize, Ordering};

use serde::Serialize;

use crate::config::{self, TargetSet};

/// How a processor stands.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub(crate) enum State {
    /// It does not answer.
    Down = 0,
    /// It keeps its connections and takes no new ones.
    Stasis = 1,
    /// It takes connections.
    Up = 2,
}

impl State {
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Down => "unavailable",
            Self::Stasis => "stasis",
            Self::Up => "available",
        }
    }
}

/// A processor.
#[derive(Debug)]
pub(crate) struct Backend {
    pub(crate) name: String,
    pub(crate) address: SocketAddr,
    pub(crate) admin: Option<SocketAddr>,
    state: AtomicU8,
    misses: AtomicU32,
    connections: AtomicUsize,
    /// Bytes from clients, and to them.
    pub(crate) bytes: [AtomicU64; 2],
}

/// An address, and the processors behind it.
#[derive(Debug)]
pub(crate) struct Set {
    pub(crate) name: String,
    pub(crate) backends: Vec<Arc<Backend>>,
    most: usize,
    connections: AtomicUsize,
}

/// A processor as it stands.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct BackendRow {
    /// Name of the target set.
    pub target_set: String,
    /// Its name.
    pub name: String,
    /// Where it takes connections.
    pub address: SocketAddr,
    /// `available`, `stasis` or `unavailable`.
    pub state: &'static str,
    /// Connections it has through this front end.
    pub connections: usize,
    /// Bytes from clients.
    pub bytes_in: u64,
    /// Bytes to clients.
    pub bytes_out: u64,
}

impl Backend {
    fn new(config: &config::Backend) -> Self {
        Self {
            name: config.name.clone(),
            address: config.address,
            admin: config.admin,
            // Until it is known better: a front end that starts refuses nobody for want of a check.
            state: AtomicU8::new(State::Up as u8),
            misses: AtomicU32::new(0),
            connections: AtomicUsize::new(0),
            bytes: Default::default(),
        }
    }

    pub(crate) fn state(&self) -> State {
        match self.state.load(Ordering::Relaxed) {
            2 => State::Up,
            1 => State::Stasis,
            _ => State::Down,
        }
    }

    /// What a check found; `None`: it did not answer, which counts after so many times.
    pub(crate) fn found(&self, state: Option<State>, failures: u32) {
        match state {
            Some(state) => {
                self.misses.store(0, Ordering::Relaxed);
                self.state.store(state as u8, Ordering::Relaxed);
            }
            None if self.misses.fetch_add(1, Ordering::Relaxed) + 1 >= failures => {
                self.state.store(State::Down as u8, Ordering::Relaxed);
            }
            None => {}
        }
    }

    pub(crate) fn connections(&self) -> usize {
        self.connections.load(Ordering::Relaxed)
    }
}

/// A connection that is counted, for as long as this lives.
#[derive(Debug)]
pub(crate) struct Counted {
    set: Arc<Set>,
    pub(crate) backend: Arc<Backend>,
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.backend.connections.fetch_sub(1, Ordering::Relaxed);
        self.set.connections.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Set {
    pub(crate) fn new(config: &TargetSet) -> Self {
        Self {
            name: config.name.clone(),
            backends: config
                .backends
                .iter()
                .map(|one| Arc::new(Backend::new(one)))
                .collect(),
            most: config.most(),
            connections: AtomicUsize::new(0),
        }
    }

    /// Whether there is no room for another connection.
    pub(crate) fn is_full(&self) -> bool {
        self.connections.load(Ordering::Relaxed) >= self.most
    }

    /// The processor that gets the next connection: of those that take some and were not tried, the one with the
    /// fewest. It is counted at once, so that those who connect meanwhile are told apart.
    pub(crate) fn choose(self: &Arc<Self>, tried: &[SocketAddr]) -> Option<Counted> {
        let free = |one: &&Arc<Backend>| one.state() == State::Up && !tried.contains(&one.address);
        let chosen = self
            .backends
            .iter()
            .filter(free)
            .min_by_key(|one| one.connections())?;
        chosen.connections.fetch_add(1, Ordering::Relaxed);
        self.connections.fetch_add(1, Ordering::Relaxed);
        Some(Counted {
            set: self.clone(),
            backend: chosen.clone(),
        })
    }

    pub(crate) fn rows(&self) -> impl Iterator<Item = BackendRow> {
        self.backends.iter().map(|one| BackendRow {
            target_set: self.name.clone(),
            name: one.name.clone(),
            address: one.address,
            state: one.state().as_str(),
            connections: one.connections(),
            bytes_in: one.bytes[0].load(Ordering::Relaxed),
            bytes_out: one.bytes[1].load(Ordering::Relaxed),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connections_go_where_there_are_fewest_and_never_into_stasis() {
        let backend = |number: u16| config::Backend {
            name: format!("mp{number}"),
            address: SocketAddr::from(([127, 0, 0, 1], number)),
            admin: None,
        };
        let set = Arc::new(Set::new(&TargetSet {
            name: "tsa".to_owned(),
            backends: vec![backend(1), backend(2), backend(3)],
            max_connections: 7,
            ..TargetSet::default()
        }));
        let mut held: Vec<Counted> = (0..6).filter_map(|_| set.choose(&[])).collect();
        let counts = || {
            set.backends
                .iter()
                .map(|one| one.connections())
                .collect::<Vec<_>>()
        };
        assert_eq!(counts(), [2, 2, 2]);
        set.backends[0].found(Some(State::Stasis), 2);
        held.pop();
        held.pop();
        held.extend((0..3).filter_map(|_| set.choose(&[])));
        assert!(set.is_full());
        assert_eq!(counts()[0], 2, "it keeps what it has: {:?}", counts());
        // One answer missed is none.
        set.backends[1].found(None, 2);
        assert_eq!(set.backends[1].state(), State::Up);
        set.backends[1].found(None, 2);
        let only = set.choose(&[]).unwrap();
        assert_eq!(only.backend.name, "mp3");
        assert!(set.choose(&[only.backend.address]).is_none());
        drop((only, held));
        assert_eq!(counts(), [0, 0, 0]);
    }
}
