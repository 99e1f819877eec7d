//! Who is followed in a function, until when, and the copies of their messages.

mod awaited;
mod state;
#[cfg(test)]
mod tests;

use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant, SystemTime};

use arc_swap::ArcSwap;
use parking_lot::Mutex;
use serde::Serialize;

use crate::finder::{Finder, Hit, Search};
use crate::identity::Identity;
use crate::learning;
use crate::message::{Content, Direction, Page, Record, Stored, microseconds};
use crate::{ACTIVE, Cause};
use awaited::Awaited;
use state::{Follow, State};

/// Identities that are followed at the same time, at most.
pub const MAX_FOLLOWED: usize = 16;
/// The longest time for which one is followed.
pub const MAX_PERIOD: Duration = Duration::from_secs(3_600);
/// Messages of one followed subscriber, at most; it is not followed any further then.
pub const MAX_MESSAGES: u32 = 10_000;
/// Messages of a page, and octets, at most.
const PAGE: (usize, usize) = (500, 4 << 20);

/// The followed subscribers of a function, and the copies of their messages. Clones share them.
#[derive(Clone)]
pub struct Room(Arc<Inner>);

struct Inner {
    function: &'static str,
    /// When the function started, in microseconds since 1970.
    start: u64,
    most_bytes: AtomicUsize,
    is_active: AtomicBool,
    finder: ArcSwap<Finder>,
    exchanges: AtomicU64,
    awaited: Awaited,
    state: Mutex<State>,
}

/// A followed subscriber, as an admin page shows it.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Followed {
    /// What an operator has given.
    pub identity: String,
    /// Since when (RFC 3339).
    pub since: String,
    /// Until when.
    pub until: String,
    /// Its messages so far.
    pub messages: u32,
    /// Further identities of it, the one that was in a message last at the end.
    pub learned: Vec<String>,
    /// Further identities that gave way to newer ones.
    pub dropped: u64,
}

/// Why a subscriber is not followed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FollowError {
    /// The identity or the time cannot be used.
    Invalid(String),
    /// As many as possible are followed.
    Full,
}

impl fmt::Display for FollowError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Invalid(why) => f.write_str(why),
            Self::Full => write!(
                f,
                "{MAX_FOLLOWED} identities are followed, which is the most; remove one first"
            ),
        }
    }
}

impl Room {
    /// The room of a function, which holds at most 64 MiB of copies ([`Room::limit`]).
    #[must_use]
    pub fn new(function: &'static str) -> Self {
        Self(Arc::new(Inner {
            function,
            start: microseconds(SystemTime::now()),
            most_bytes: AtomicUsize::new(64 << 20),
            is_active: AtomicBool::new(false),
            finder: ArcSwap::default(),
            exchanges: AtomicU64::new(1),
            awaited: Awaited::default(),
            state: Mutex::default(),
        }))
    }

    /// Holds at most this number of octets of copies from now on.
    pub fn limit(&self, bytes: usize) {
        self.0.most_bytes.store(bytes, Ordering::Relaxed);
        let state = &mut *self.0.state.lock();
        state.evict(bytes);
    }

    /// Follows an identity for a time. One that is followed already is followed until then.
    ///
    /// # Errors
    /// When it cannot be followed, or too many are.
    pub fn follow(&self, identity: &str, period: Duration) -> Result<(), FollowError> {
        let identity: Identity = identity.parse().map_err(FollowError::Invalid)?;
        if period.is_zero() || period > MAX_PERIOD {
            let most = MAX_PERIOD.as_secs();
            let why = format!("a subscriber is followed for 1 to {most} seconds");
            return Err(FollowError::Invalid(why));
        }
        let (now, begun) = (Instant::now(), SystemTime::now());
        let state = &mut *self.0.state.lock();
        state.expire(now);
        let (ends, ends_at) = (now + period, begun + period);
        if let Some(known) = state.followed.iter_mut().find(|one| one.identity == identity) {
            (known.ends, known.ends_at) = (ends, ends_at);
        } else if state.followed.len() >= MAX_FOLLOWED {
            return Err(FollowError::Full);
        } else {
            state.next_owner += 1;
            state.followed.push(Follow {
                owner: state.next_owner,
                identity,
                learned: Vec::new(),
                begun,
                ends,
                ends_at,
                messages: 0,
                dropped: 0,
                span: None,
            });
        }
        self.compile(state);
        Ok(())
    }

    /// Ends following an identity, and drops the copies of its messages. Returns whether it was known.
    pub fn unfollow(&self, identity: &str) -> bool {
        let state = &mut *self.0.state.lock();
        let is_wanted = |one: &Follow| one.identity.as_str() == identity;
        let owners: Vec<u64> = state
            .followed
            .iter()
            .filter(|one| is_wanted(one))
            .map(|one| one.owner)
            .collect();
        state.followed.retain(|one| !is_wanted(one));
        let before = state.ring.len();
        state.drop_copies(|copy| owners.contains(&copy.owner) || &*copy.identity == identity);
        self.compile(state);
        !owners.is_empty() || before > state.ring.len()
    }

    /// Who is followed now.
    #[must_use]
    pub fn list(&self) -> Vec<Followed> {
        let state = &mut *self.0.state.lock();
        if state.expire(Instant::now()) {
            self.compile(state);
        }
        state.followed.iter().map(Follow::show).collect()
    }

    /// Ends what is over at this moment, and drops copies that are too old then. The function does so periodically: neither
    /// messages nor operators need to come. It does not wait for those who use the room.
    pub fn sweep(&self, now: Instant) {
        if let Some(mut state) = self.0.state.try_lock()
            && state.expire(now)
        {
            self.compile(&mut state);
        }
    }

    /// The copies after a number, the oldest first, as many as fit a page.
    #[must_use]
    pub fn page(&self, after: u64, identity: Option<&str>) -> Page {
        let mut page = Page {
            version: 1,
            start: self.0.start,
            next: after,
            ..Page::default()
        };
        // What takes long follows without the lock, for which messages would wait.
        let copies = self.copies(&mut page, identity);
        let shown = copies.iter().map(|copy| copy.show(self.0.function));
        page.messages = shown.collect();
        page
    }

    fn copies(&self, page: &mut Page, identity: Option<&str>) -> Vec<Arc<Stored>> {
        let state = &mut *self.0.state.lock();
        if state.expire(Instant::now()) {
            self.compile(state);
        }
        page.not_kept = state.not_kept;
        let (mut copies, mut bytes) = (Vec::new(), 0);
        let begin = state.ring.partition_point(|copy| copy.number <= page.next);
        for copy in state.ring.range(begin..) {
            if copies.len() >= PAGE.0 || bytes >= PAGE.1 {
                page.more = true;
                break;
            }
            page.next = copy.number;
            if identity.is_none_or(|identity| *copy.identity == *identity) {
                bytes += copy.record.content.held();
                copies.push(copy.clone());
            }
        }
        copies
    }

    /// When the function started, in microseconds since 1970.
    #[must_use]
    pub fn start(&self) -> u64 {
        self.0.start
    }

    /// Octets of copies that it holds.
    #[must_use]
    pub fn held(&self) -> usize {
        self.0.state.lock().bytes
    }

    pub(crate) fn is_active(&self) -> bool {
        self.0.is_active.load(Ordering::Relaxed)
    }

    /// Searches a message, whose parts `look` passes on.
    pub fn find(&self, look: impl FnOnce(&mut Search<'_>)) -> Option<Hit> {
        let mut finder = self.0.finder.load();
        if finder.is_over(Instant::now()) {
            self.expire();
            finder = self.0.finder.load();
        }
        let mut search = finder.search();
        look(&mut search);
        search.hit()
    }

    #[cold]
    fn expire(&self) {
        let state = &mut *self.0.state.lock();
        if state.expire(Instant::now()) {
            self.compile(state);
        }
    }

    /// A number for a request and its answer.
    #[must_use]
    pub fn exchange(&self) -> u64 {
        self.0.exchanges.fetch_add(1, Ordering::Relaxed)
    }

    /// Stores a copy, and learns from a message that was found by an identity.
    pub fn store(&self, hit: &Hit, record: Record) {
        // Without the lock, for which the messages of other workers would wait.
        let found = match &hit.by {
            Some(_) => learning::identities(&record, !hit.is_learned),
            None => Vec::new(),
        };
        let now = Instant::now();
        let state = &mut *self.0.state.lock();
        let mut has_changed = state.expire(now);
        if let Some(follow) = state.followed.iter_mut().find(|one| one.owner == hit.owner) {
            follow.messages += 1;
            if let Some(by) = &hit.by {
                follow.is_used(by);
            }
            has_changed |= follow.learn(found);
            if follow.messages >= MAX_MESSAGES {
                follow.ends = now;
            }
            let identity: Arc<str> = follow.identity.as_str().into();
            state.push(identity, hit, record, self.0.most_bytes.load(Ordering::Relaxed));
            has_changed |= state.expire(now);
        }
        if has_changed {
            self.compile(state);
        }
    }

    /// Stores a copy of a received or sent Diameter message that belongs to a followed subscriber, and returns the cause of its
    /// further messages then.
    pub fn diameter(
        &self,
        direction: Direction,
        peer: &str,
        (from, to): (SocketAddr, SocketAddr),
        frame: &[u8],
    ) -> Option<Cause> {
        let (is_request, stream) = header(frame)?;
        let found = self.find(|search| search.frame(frame));
        let (hit, exchange) = if is_request {
            let hit = found?;
            let exchange = self.exchange();
            self.0.awaited.insert((from, to, stream), (hit.clone(), exchange));
            (hit, exchange)
        } else {
            match (found, self.0.awaited.remove(&(to, from, stream))) {
                (Some(hit), request) => (
                    hit,
                    request.map_or_else(|| self.exchange(), |(_, exchange)| exchange),
                ),
                (None, Some(request)) => request,
                (None, None) => return None,
            }
        };
        let record = Record {
            at: SystemTime::now(),
            direction,
            exchange,
            cause: None,
            peer: peer.to_owned(),
            from,
            to,
            stream,
            content: Content::diameter(frame.to_vec()),
        };
        self.store(&hit, record);
        Some(Cause::new(&hit, exchange))
    }

    /// The span of an exchange becomes the latest of its subscriber; the one before it, if it is of another trace.
    pub(crate) fn link(&self, owner: u64, span: (u128, u64)) -> Option<(u128, u64)> {
        let state = &mut *self.0.state.lock();
        let follow = state.followed.iter_mut().find(|one| one.owner == owner)?;
        let before = follow.span.replace(span);
        before.filter(|before| before.0 != span.0)
    }

    /// Brings the search to who is followed.
    fn compile(&self, state: &mut State) {
        let known = state.followed.iter().flat_map(|one| {
            let learned = one.learned.iter().map(|identity| (one.owner, identity, true));
            std::iter::once((one.owner, &one.identity, false)).chain(learned)
        });
        let ends = state.followed.iter().map(|one| one.ends).min();
        self.0.finder.store(Arc::new(Finder::new(known, ends)));
        let is_active = !state.followed.is_empty();
        if !is_active {
            self.0.awaited.clear();
        }
        let was_active = self.0.is_active.swap(is_active, Ordering::Relaxed);
        if is_active && !was_active {
            ACTIVE.fetch_add(1, Ordering::Relaxed);
        } else if was_active && !is_active {
            ACTIVE.fetch_sub(1, Ordering::Relaxed);
        }
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        if *self.is_active.get_mut() {
            ACTIVE.fetch_sub(1, Ordering::Relaxed);
        }
    }
}

impl fmt::Debug for Room {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Room({})", self.0.function)
    }
}

/// Whether a Diameter message is a request, and its Hop-by-Hop Identifier (RFC 6733 §3).
fn header(frame: &[u8]) -> Option<(bool, u64)> {
    let hop_by_hop: [u8; 4] = frame.get(12..16)?.try_into().ok()?;
    Some((frame.get(4)? & 0x80 != 0, u32::from_be_bytes(hop_by_hop).into()))
}
