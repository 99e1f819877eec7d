//! Which neighbours there are, and how they stand. A [`Hop`] is a peer seen from one local node: what a request
//! is sent to. Hops outlive configurations and connections, so that a reload or a reconnect changes none of
//! the tables that refer to them.
//!
//! Workers read; only the worker on which a hop lives writes its state, when it changes and never per message.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU16, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use ahash::AHashMap;
use arc_swap::ArcSwap;
use parking_lot::Mutex;
use smallvec::SmallVec;

/// How a hop stands.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
#[repr(u8)]
pub enum HopState {
    /// No connection.
    Down = 0,
    /// A connection whose watchdog is in doubt: used when there is nothing better.
    Degraded = 1,
    /// Requests may go there.
    Available = 2,
}

impl HopState {
    /// The word for it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Down => "unavailable",
            Self::Degraded => "degraded",
            Self::Available => "available",
        }
    }
}

/// A peer as one local node sees it.
#[derive(Debug)]
pub struct Hop {
    /// Position in every worker's table of connections. Used again some time after the hop is forgotten.
    pub id: u32,
    /// DiameterIdentity, as configured or as given in the CER.
    pub host: Box<str>,
    /// Position of the local node.
    pub node: u8,
    configured: AtomicBool,
    home: AtomicUsize,
    state: AtomicU8,
    /// What it says it has left (RFC 8583), `u16::MAX` for everything or when it does not say.
    load: AtomicU16,
    /// When it said so.
    load_since: Mutex<Option<Instant>>,
}

/// A load that is not renewed is as good as none after so long.
const LOAD_HOLDS: Duration = Duration::from_secs(30);

impl Hop {
    /// The worker on which its connection lives.
    #[inline]
    #[must_use]
    pub fn home(&self) -> usize {
        self.home.load(Ordering::Relaxed)
    }

    /// How it stands.
    #[inline]
    #[must_use]
    pub fn state(&self) -> HopState {
        match self.state.load(Ordering::Relaxed) {
            2 => HopState::Available,
            1 => HopState::Degraded,
            _ => HopState::Down,
        }
    }

    /// A weight between 1, fully loaded, and 65536, by the load it has told (RFC 8583 §7.3).
    #[inline]
    #[must_use]
    pub fn load_weight(&self) -> u64 {
        u64::from(self.load.load(Ordering::Relaxed)) + 1
    }

    /// Said by its worker: what its peer has left.
    pub(crate) fn set_load(&self, value: u16, now: Instant) {
        self.load.store(value, Ordering::Relaxed);
        *self.load_since.lock() = Some(now);
    }

    /// Forgets a load that was not renewed for long.
    pub(crate) fn forget_load(&self, now: Instant) {
        let mut since = self.load_since.lock();
        if since.is_some_and(|since| now.saturating_duration_since(since) > LOAD_HOLDS) {
            *since = None;
            self.load.store(u16::MAX, Ordering::Relaxed);
        }
    }

    /// Whether it is configured, or came by itself.
    #[must_use]
    pub fn is_configured(&self) -> bool {
        self.configured.load(Ordering::Relaxed)
    }

    /// It is not configured any more; it is forgotten when its connection ends.
    pub(crate) fn unconfigure(&self) {
        self.configured.store(false, Ordering::Relaxed);
    }

    /// Said by its worker.
    pub(crate) fn set_state(&self, state: HopState) {
        self.state.store(state as u8, Ordering::Relaxed);
    }

    /// Said by the worker that has the connection.
    pub(crate) fn set_home(&self, worker: usize) {
        self.home.store(worker, Ordering::Relaxed);
    }
}

/// The hops of a peer: one per local node that knows it.
pub type Hops = SmallVec<[Arc<Hop>; 1]>;

/// Hops by name in lower case.
pub type ByHost = AHashMap<Arc<[u8]>, Hops>;

/// Every hop there is.
#[derive(Debug, Default)]
pub struct Registry {
    state: Mutex<State>,
    published: Arc<ArcSwap<ByHost>>,
}

#[derive(Debug, Default)]
struct State {
    next: u32,
    /// Ids that are free, with when they became so, the oldest first.
    free: VecDeque<(Instant, u32)>,
}

/// An id rests so long before it is used again: a message that is on its way to a hop must not arrive at
/// another one.
const REST: Duration = Duration::from_secs(120);

impl State {
    fn take(&mut self, now: Instant) -> u32 {
        match self.free.front() {
            Some((since, id)) if now.saturating_duration_since(*since) >= REST => {
                let id = *id;
                self.free.pop_front();
                id
            }
            _ => {
                self.next += 1;
                self.next - 1
            }
        }
    }
}

impl Registry {
    /// The hops by name.
    #[must_use]
    pub fn by_host(&self) -> Arc<ByHost> {
        self.published.load_full()
    }

    /// A cheap look at the hops by name, for a worker's own cache.
    #[must_use]
    pub(crate) fn published(&self) -> &Arc<ArcSwap<ByHost>> {
        &self.published
    }

    /// The hop of that peer at that local node, made if there is none.
    pub(crate) fn claim(&self, host: &str, node: u8, configured: bool, worker: usize) -> Arc<Hop> {
        let key = host.to_ascii_lowercase().into_bytes();
        let mut state = self.state.lock();
        let known = self.published.load();
        let found = known
            .get(&key[..])
            .and_then(|hops| hops.iter().find(|hop| hop.node == node));
        if let Some(hop) = found {
            // A dynamic peer that becomes a configured one keeps its connection.
            hop.configured.fetch_or(configured, Ordering::Relaxed);
            return hop.clone();
        }
        let id = state.take(Instant::now());
        let hop = Arc::new(Hop {
            id,
            host: host.into(),
            node,
            configured: AtomicBool::new(configured),
            home: AtomicUsize::new(worker),
            state: AtomicU8::new(HopState::Down as u8),
            load: AtomicU16::new(u16::MAX),
            load_since: Mutex::default(),
        });
        let mut all = ByHost::clone(&known);
        let hops = all.entry(key.into()).or_default();
        hops.push(hop.clone());
        self.published.store(Arc::new(all));
        hop
    }

    /// Forgets a hop whose connection is gone.
    pub(crate) fn release(&self, hop: &Hop) {
        let key = hop.host.to_ascii_lowercase().into_bytes();
        let mut state = self.state.lock();
        let mut all = ByHost::clone(&self.published.load());
        let Some(hops) = all.get_mut(&key[..]) else { return };
        let before = hops.len();
        hops.retain(|other| other.id != hop.id);
        if hops.len() == before {
            return;
        }
        if hops.is_empty() {
            all.remove(&key[..]);
        }
        state.free.push_back((Instant::now(), hop.id));
        self.published.store(Arc::new(all));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_rest_before_they_are_used_again() {
        let mut state = State::default();
        let now = Instant::now();
        assert_eq!((state.take(now), state.take(now)), (0, 1));
        state.free.push_back((now, 0));
        assert_eq!(state.take(now + REST / 2), 2);
        assert_eq!((state.take(now + REST), state.take(now + REST)), (0, 3));
    }

    #[test]
    fn a_hop_keeps_its_id_when_it_becomes_configured() {
        let registry = Registry::default();
        let dynamic = registry.claim("MME.example", 0, false, 1);
        dynamic.set_state(HopState::Available);
        let configured = registry.claim("mme.example", 0, true, 0);
        assert_eq!((configured.id, configured.home()), (dynamic.id, 1));
        assert_eq!(configured.state(), HopState::Available);
        let other = registry.claim("mme.example", 1, true, 0);
        assert_ne!(other.id, configured.id);
        assert_eq!(registry.by_host()[&b"mme.example"[..]].len(), 2);
        registry.release(&configured);
        registry.release(&configured);
        assert_ne!(registry.claim("hss", 0, false, 0).id, configured.id);
        assert_eq!(registry.by_host()[&b"mme.example"[..]].len(), 1);
        assert!(dynamic.is_configured());
    }
}
