//! Which neighbours there are, and how they stand. A [`Hop`] is a peer seen from one local node: what a request
//! is sent to. Hops outlive configurations and connections, so that a reload or a reconnect changes none of
//! the tables that refer to them.
//!
//! Workers read; only the worker on which a hop lives writes its state, when it changes and never per message.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU16, AtomicUsize, Ordering};
use std::time::{Duration, Instant, SystemTime};

use ahash::{AHashMap, RandomState};
use arc_swap::ArcSwap;
use diameter::proto::identity::with_lower;
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
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Down => "unavailable",
            Self::Degraded => "degraded",
            Self::Available => "available",
        }
    }
}

/// What an operator wants of a peer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub(crate) enum Administration {
    /// Requests are sent to it.
    Enabled = 0,
    /// Its connection stays, and gets no new requests.
    Draining = 1,
    /// It has no connection.
    Disabled = 2,
    /// Its connection is to end, and to be made again.
    Leaving = 3,
    /// A connection is to be made.
    Returning = 4,
}

impl Administration {
    /// The word for it.
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Enabled => "enabled",
            Self::Draining => "draining",
            Self::Disabled => "disabled",
            Self::Leaving | Self::Returning => "reconnecting",
        }
    }
}

/// A peer as one local node sees it.
#[derive(Debug)]
pub struct Hop {
    /// Position in every worker's table of connections. Used again some time after the hop is forgotten.
    pub(crate) id: u32,
    /// DiameterIdentity, as configured or as given in the CER.
    pub(crate) host: Box<str>,
    /// Position of the local node.
    pub(crate) node: u8,
    configured: AtomicBool,
    home: AtomicUsize,
    state: AtomicU8,
    /// Its Load-Value (RFC 8583), `u16::MAX` when it is idle or reports none.
    load: AtomicU16,
    /// When it said so.
    load_since: Mutex<Option<Instant>>,
    /// A request found it without a connection.
    wanted: AtomicBool,
    administration: AtomicU8,
    /// Why it has no connection, if it has none.
    trouble: Mutex<Option<Trouble>>,
}

/// Why a peer has no connection.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Trouble {
    /// The last error.
    pub(crate) text: String,
    /// Since when it has none.
    pub(crate) since: SystemTime,
    /// Failed attempts of this node since then.
    pub(crate) attempts: u64,
}

/// A load that is not renewed is as good as none after so long.
const LOAD_HOLDS: Duration = Duration::from_secs(30);

impl Hop {
    /// The worker on which its connection lives.
    #[inline]
    #[must_use]
    pub(crate) fn home(&self) -> usize {
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

    /// How it stands for requests: what is drained or disabled gets none.
    #[inline]
    #[must_use]
    pub(crate) fn usable(&self) -> HopState {
        match self.administration.load(Ordering::Relaxed) {
            0 => self.state(),
            _ => HopState::Down,
        }
    }

    /// What an operator wants of it.
    #[must_use]
    pub(crate) fn administration(&self) -> Administration {
        match self.administration.load(Ordering::Relaxed) {
            0 => Administration::Enabled,
            1 => Administration::Draining,
            2 => Administration::Disabled,
            3 => Administration::Leaving,
            _ => Administration::Returning,
        }
    }

    /// Its worker has done what was wanted, unless something else is wanted since.
    pub(crate) fn administered(&self, wanted: Administration, now: Administration) {
        let (wanted, now) = (wanted as u8, now as u8);
        let swap = |current| (current == wanted).then_some(now);
        let _ = self
            .administration
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, swap);
    }

    /// An operator wants this of it.
    pub(crate) fn administer(&self, wanted: Administration) {
        self.administration.store(wanted as u8, Ordering::Relaxed);
    }

    /// Its connection was lost, refused or could not be made, for this reason. The caller leaves out what
    /// happens while it has another connection.
    pub(crate) fn failed(&self, text: &str, is_attempt: bool, now: SystemTime) {
        let mut trouble = self.trouble.lock();
        let before = trouble.take();
        let (since, attempts) = before.map_or((now, 0), |known| (known.since, known.attempts));
        *trouble = Some(Trouble {
            text: text.to_owned(),
            since,
            attempts: attempts + u64::from(is_attempt),
        });
    }

    /// It has a connection.
    pub(crate) fn connected(&self) {
        *self.trouble.lock() = None;
    }

    /// Why it has no connection, if it has none.
    pub(crate) fn trouble(&self) -> Option<Trouble> {
        self.trouble
            .lock()
            .clone()
            .filter(|_| self.state() == HopState::Down)
    }

    /// A weight between 1, fully loaded, and 65536, by the load it has reported (RFC 8583 §7.3).
    #[inline]
    #[must_use]
    pub(crate) fn load_weight(&self) -> u64 {
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

    /// A request could go to it, were it connected.
    pub(crate) fn want(&self) {
        self.wanted.store(true, Ordering::Relaxed);
    }

    /// Whether a request could have gone to it since this was asked last.
    pub(crate) fn take_wanted(&self) -> bool {
        self.wanted.swap(false, Ordering::Relaxed)
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

/// Hops by name. They lie in shards, of which a peer that comes or goes copies one: thousands of peers may come at
/// once.
#[derive(Clone, Debug)]
pub struct ByHost(Box<[Arc<Shard>]>);

/// Hops by name in lower case.
type Shard = AHashMap<Arc<[u8]>, Hops>;

const SHARDS: usize = 256;

impl Default for ByHost {
    fn default() -> Self {
        let empty = Arc::<Shard>::default();
        Self((0..SHARDS).map(|_| empty.clone()).collect())
    }
}

impl ByHost {
    /// The hops of that name, in lower case.
    #[must_use]
    pub fn get(&self, host: &[u8]) -> Option<&Hops> {
        self.0.get(Self::shard(host))?.get(host)
    }

    /// The hops of that name, in any case.
    #[inline]
    #[must_use]
    pub(crate) fn find(&self, host: &[u8]) -> Option<&Hops> {
        with_lower(host, |lower| self.get(lower))?
    }

    /// Every hop.
    pub fn hops(&self) -> impl Iterator<Item = &Arc<Hop>> {
        self.0.iter().flat_map(|shard| shard.values()).flatten()
    }

    fn shard(host: &[u8]) -> usize {
        /// The same for every map, as shards are shared by many.
        const KEYS: RandomState = RandomState::with_seeds(1, 2, 3, 4);
        KEYS.hash_one(host) as usize % SHARDS
    }

    /// The shard of a name in lower case, to be changed.
    fn shard_mut(&mut self, host: &[u8]) -> &mut Shard {
        // Below SHARDS, which is how many there are.
        Arc::make_mut(&mut self.0[Self::shard(host)])
    }
}

/// Every hop there is.
#[derive(Debug, Default)]
pub(crate) struct Registry {
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
    pub(crate) fn by_host(&self) -> Arc<ByHost> {
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
            .get(&key)
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
            wanted: AtomicBool::new(false),
            administration: AtomicU8::new(Administration::Enabled as u8),
            trouble: Mutex::default(),
        });
        let mut all = ByHost::clone(&known);
        let shard = all.shard_mut(&key);
        shard.entry(key.into()).or_default().push(hop.clone());
        self.published.store(Arc::new(all));
        hop
    }

    /// Forgets a hop whose connection is gone.
    pub(crate) fn release(&self, hop: &Hop) {
        let key = hop.host.to_ascii_lowercase().into_bytes();
        let mut state = self.state.lock();
        let mut all = ByHost::clone(&self.published.load());
        let shard = all.shard_mut(&key);
        let Some(hops) = shard.get_mut(&key[..]) else {
            return;
        };
        let before = hops.len();
        hops.retain(|other| other.id != hop.id);
        if hops.len() == before {
            return;
        }
        if hops.is_empty() {
            shard.remove(&key[..]);
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
    fn a_peer_that_comes_copies_its_shard_alone() {
        let registry = Registry::default();
        for n in 0..1000 {
            registry.claim(&format!("mme{n}.example"), 0, false, 0);
        }
        let before = registry.by_host();
        assert_eq!(before.hops().count(), 1000);
        let largest = before.0.iter().map(|shard| shard.len()).max().unwrap();
        assert!(largest < 30, "{largest}");
        let hop = registry.claim("HSS.example", 0, false, 0);
        let after = registry.by_host();
        let shards = before.0.iter().zip(&after.0);
        assert_eq!(shards.filter(|(old, new)| !Arc::ptr_eq(old, new)).count(), 1);
        assert_eq!(after.find(b"hss.EXAMPLE").unwrap()[0].id, hop.id);
        assert!(before.find(b"hss.example").is_none());
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
        assert_eq!(registry.by_host().get(b"mme.example").unwrap().len(), 2);
        registry.release(&configured);
        registry.release(&configured);
        assert_ne!(registry.claim("hss", 0, false, 0).id, configured.id);
        assert_eq!(registry.by_host().get(b"mme.example").unwrap().len(), 1);
        assert!(dynamic.is_configured());
    }
}
