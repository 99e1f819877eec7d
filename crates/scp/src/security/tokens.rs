//! Store of access tokens, shared by all workers.
//!
//! A worker caches the tokens that it uses and takes others from here, so that it takes the lock once per token and
//! worker, not per message. Of several concurrent requests for the same token one fetches it and the others wait,
//! whichever worker they are on.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use ahash::AHashMap;
use http::{HeaderValue, StatusCode};
use parking_lot::Mutex;
use tokio::sync::watch;

use crate::config::Tokens;

/// An access token.
#[derive(Debug)]
pub(crate) struct Token {
    /// `Bearer …`.
    pub(crate) value: HeaderValue,
    /// End of its use.
    pub(crate) ends: Instant,
    /// When it is refreshed.
    pub(crate) refresh: Instant,
}

/// Why there is no token.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum TokenError {
    /// No NRF answered.
    #[error("no NRF answered the request for an access token")]
    NotReachable,
    /// The NRF refused.
    #[error("the NRF refused an access token with {0}: {1}")]
    Refused(StatusCode, String),
    /// Too many requests for tokens are in flight.
    #[error("too many requests for access tokens are in flight at the NRF")]
    Overflow,
}

/// How a fetch ended.
pub(crate) type Outcome = Result<Arc<Token>, TokenError>;

/// What a request for a token has to do.
pub(crate) enum Looked {
    /// Use this one.
    Have(Arc<Token>),
    /// Use this one, and fetch another meanwhile.
    Refresh(Arc<Token>, Ticket),
    /// Fetch it.
    Fetch(Ticket),
    /// Wait for the fetch in flight.
    Wait(watch::Receiver<Option<Outcome>>),
    /// The NRF has refused it recently.
    Refused(TokenError),
    /// As many fetches are in flight as `maxFetching` permits.
    Full,
}

/// Obligation to fetch a token. If it is dropped without an outcome, another request may fetch it.
pub(crate) struct Ticket {
    key: Box<str>,
    sender: watch::Sender<Option<Outcome>>,
    _in_flight: InFlight,
}

impl Ticket {
    /// Returns a receiver of the outcome.
    pub(crate) fn hear(&self) -> watch::Receiver<Option<Outcome>> {
        self.sender.subscribe()
    }
}

/// A fetch in flight, counted from its ticket to its end.
struct InFlight(Arc<AtomicUsize>);

impl Drop for InFlight {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

enum Entry {
    Ready(Arc<Token>),
    /// A token that may still be used while another is fetched.
    Fetching(Option<Arc<Token>>, watch::Receiver<Option<Outcome>>),
    Refused(TokenError, Instant),
}

/// A token as a page shows it: never the token itself.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Shown {
    /// Its key, see [`super::fetch::Wanted::key`].
    pub(crate) key: Box<str>,
    /// `valid`, `fetching` or `refused`.
    pub(crate) state: &'static str,
    /// Remaining life of the token or of the cached refusal.
    pub(crate) left: Duration,
}

/// Bounds of a store, and for how long it caches a refusal.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TokenLimits {
    /// Cached tokens and refusals at most.
    pub(crate) entries: usize,
    /// Fetches in flight at most.
    pub(crate) fetching: usize,
    /// Time for which a refusal of the NRF is cached.
    pub(crate) remember_refusal: Duration,
}

impl TokenLimits {
    /// The limits in the settings.
    pub(crate) fn of(settings: &Tokens) -> Self {
        Self {
            entries: settings.cache_size,
            fetching: settings.max_fetching,
            remember_refusal: settings.remember_refusal.duration(),
        }
    }
}

/// The tokens of an SCP.
pub(crate) struct TokenStore {
    entries: Mutex<AHashMap<Box<str>, Entry>>,
    limits: Mutex<TokenLimits>,
    count: AtomicUsize,
    /// Fetches in flight; increased under the lock of the entries.
    fetching: Arc<AtomicUsize>,
}

impl std::fmt::Debug for TokenStore {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // Tokens are secrets and do not appear in logs.
        write!(f, "TokenStore({})", self.len())
    }
}

impl TokenStore {
    pub(crate) fn new(limits: TokenLimits) -> Self {
        Self {
            entries: Mutex::default(),
            limits: Mutex::new(limits),
            count: AtomicUsize::new(0),
            fetching: Arc::default(),
        }
    }

    /// Takes over other limits; the tokens stay.
    pub(crate) fn reconfigure(&self, limits: TokenLimits) {
        *self.limits.lock() = limits;
    }

    /// Number of cached tokens and refusals.
    pub(crate) fn len(&self) -> usize {
        self.count.load(Ordering::Relaxed)
    }

    /// The tokens, at most this number.
    pub(crate) fn shown(&self, now: Instant, most: usize) -> Vec<Shown> {
        let entries = self.entries.lock();
        let left = |until: Instant| until.saturating_duration_since(now);
        let shown = entries.iter().take(most).map(|(key, entry)| {
            let (state, left) = match entry {
                Entry::Ready(token) => ("valid", left(token.ends)),
                Entry::Fetching(old, _) => {
                    let old = old.as_ref().map(|token| left(token.ends));
                    ("fetching", old.unwrap_or_default())
                }
                Entry::Refused(_, until) => ("refused", left(*until)),
            };
            let key = key.clone();
            Shown { key, state, left }
        });
        shown.collect()
    }

    /// Returns the token of a key, or what the request has to do.
    pub(crate) fn look(&self, key: &str, now: Instant) -> Looked {
        let mut entries = self.entries.lock();
        let usable = match entries.get(key) {
            Some(Entry::Ready(token)) if now < token.refresh => return Looked::Have(token.clone()),
            Some(Entry::Ready(token)) => Some(token.clone()),
            Some(Entry::Fetching(old, receiver)) => {
                let old = old.as_ref().filter(|token| now < token.ends).cloned();
                // A fetch that was given up has no sender any more.
                if receiver.has_changed().is_ok() {
                    return match old {
                        Some(old) => Looked::Have(old),
                        None => Looked::Wait(receiver.clone()),
                    };
                }
                old
            }
            Some(Entry::Refused(error, until)) if now < *until => return Looked::Refused(error.clone()),
            Some(Entry::Refused(..)) | None => None,
        };
        let usable = usable.filter(|token| now < token.ends);
        let limits = *self.limits.lock();
        if self.fetching.load(Ordering::Relaxed) >= limits.fetching {
            return usable.map_or(Looked::Full, Looked::Have);
        }
        if !entries.contains_key(key) && entries.len() >= limits.entries {
            make_room(&mut entries, now);
        }
        self.fetching.fetch_add(1, Ordering::Relaxed);
        let (sender, receiver) = watch::channel(None);
        entries.insert(key.into(), Entry::Fetching(usable.clone(), receiver));
        self.count.store(entries.len(), Ordering::Relaxed);
        let ticket = Ticket {
            key: key.into(),
            sender,
            _in_flight: InFlight(self.fetching.clone()),
        };
        match usable {
            Some(token) => Looked::Refresh(token, ticket),
            None => Looked::Fetch(ticket),
        }
    }

    /// A fetch has ended.
    pub(crate) fn finish(&self, ticket: Ticket, outcome: Outcome, now: Instant) {
        let Ticket {
            key,
            sender,
            _in_flight,
        } = ticket;
        let pause = self.limits.lock().remember_refusal;
        {
            let mut entries = self.entries.lock();
            let old = match entries.get(&key) {
                Some(Entry::Fetching(old, _)) => old.clone().filter(|token| now < token.ends),
                _ => None,
            };
            match (&outcome, old) {
                (Ok(token), _) => {
                    entries.insert(key, Entry::Ready(token.clone()));
                }
                // A failed refresh is retried after the pause; the old token stays valid.
                (Err(_), Some(old)) => {
                    let again = Token {
                        value: old.value.clone(),
                        ends: old.ends,
                        refresh: (now + pause).min(old.ends),
                    };
                    entries.insert(key, Entry::Ready(Arc::new(again)));
                }
                (Err(error @ TokenError::Refused(..)), None) => {
                    let until = now + pause;
                    entries.insert(key, Entry::Refused(error.clone(), until));
                }
                (Err(TokenError::NotReachable | TokenError::Overflow), None) => {
                    entries.remove(&key);
                }
            }
            self.count.store(entries.len(), Ordering::Relaxed);
        }
        // No request may be waiting.
        let _ = sender.send(Some(outcome));
    }

    /// Drops a token that a producer has refused.
    pub(crate) fn forget(&self, key: &str) {
        let mut entries = self.entries.lock();
        if matches!(entries.get(key), Some(Entry::Ready(_))) {
            entries.remove(key);
            self.count.store(entries.len(), Ordering::Relaxed);
        }
    }
}

/// Evicts expired entries and fetches that were given up; without any, one entry that is not being fetched.
fn make_room(entries: &mut AHashMap<Box<str>, Entry>, now: Instant) {
    const SEARCH: usize = 64;
    // Only a few entries are checked, so that the time is bounded; many inserts check all of them. Beyond these few the
    // search passes entries that are being fetched, of which `maxFetching` exist at most.
    let mut gone: Vec<Box<str>> = Vec::new();
    let mut any: Option<Box<str>> = None;
    for (number, (key, entry)) in entries.iter().enumerate() {
        if number >= SEARCH && (any.is_some() || !gone.is_empty()) {
            break;
        }
        match entry {
            Entry::Ready(token) if now >= token.ends => gone.push(key.clone()),
            Entry::Refused(_, until) if now >= *until => gone.push(key.clone()),
            Entry::Fetching(_, receiver) if receiver.has_changed().is_err() => gone.push(key.clone()),
            Entry::Ready(_) | Entry::Refused(..) => any = Some(key.clone()),
            Entry::Fetching(..) => {}
        }
    }
    if gone.is_empty() {
        gone.extend(any);
    }
    for key in gone {
        entries.remove(&key);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn store(entries: usize) -> TokenStore {
        TokenStore::new(TokenLimits {
            entries,
            fetching: 5,
            remember_refusal: Duration::from_secs(1),
        })
    }

    fn token(now: Instant, seconds: u64) -> Arc<Token> {
        Arc::new(Token {
            value: HeaderValue::from_static("Bearer x"),
            ends: now + Duration::from_secs(seconds),
            refresh: now + Duration::from_secs(seconds / 2),
        })
    }

    fn fetch(looked: Looked) -> Ticket {
        match looked {
            Looked::Fetch(ticket) | Looked::Refresh(_, ticket) => ticket,
            _ => panic!("expected to fetch"),
        }
    }

    #[test]
    fn one_fetches_the_others_wait_and_all_have_it_until_it_ends() {
        let store = store(10);
        let now = Instant::now();
        let ticket = fetch(store.look("a", now));
        let Looked::Wait(mut receiver) = store.look("a", now) else {
            panic!("expected to wait");
        };
        store.finish(ticket, Ok(token(now, 100)), now);
        assert!(receiver.borrow_and_update().as_ref().unwrap().is_ok());
        assert!(matches!(store.look("a", now), Looked::Have(_)));
        let shown = Shown {
            key: "a".into(),
            state: "valid",
            left: Duration::from_secs(100),
        };
        assert_eq!(store.shown(now, 10), [shown]);
        assert_eq!(store.shown(now, 0), []);
        // In its second half one request refreshes it, and all use it meanwhile.
        let later = now + Duration::from_secs(60);
        let refresh = store.look("a", later);
        assert!(matches!(refresh, Looked::Refresh(..)));
        assert!(matches!(store.look("a", later), Looked::Have(_)));
        store.finish(fetch(refresh), Err(TokenError::NotReachable), later);
        assert!(matches!(store.look("a", later), Looked::Have(_)));
        let end = now + Duration::from_secs(100);
        assert!(matches!(store.look("a", end), Looked::Fetch(_)));
    }

    #[test]
    fn a_fetch_that_was_given_up_is_free_again() {
        let store = store(10);
        let now = Instant::now();
        drop(store.look("a", now));
        drop(fetch(store.look("a", now)));
    }

    #[test]
    fn a_refusal_is_remembered_for_a_while_and_silence_is_not() {
        let store = store(10);
        let now = Instant::now();
        let refused = TokenError::Refused(StatusCode::BAD_REQUEST, "invalid_scope".into());
        store.finish(fetch(store.look("a", now)), Err(refused), now);
        assert!(matches!(store.look("a", now), Looked::Refused(_)));
        let ticket = fetch(store.look("a", now + Duration::from_secs(1)));
        store.finish(ticket, Err(TokenError::NotReachable), now);
        assert!(matches!(store.look("a", now), Looked::Fetch(_)));
    }

    #[test]
    fn memory_is_bounded() {
        let store = store(100);
        let now = Instant::now();
        for number in 0..1_000 {
            let ticket = fetch(store.look(&number.to_string(), now));
            store.finish(ticket, Ok(token(now, 100)), now);
            assert!(store.len() <= 100);
        }
        // Also of fetches that were given up.
        for number in 1_000..2_000 {
            drop(fetch(store.look(&number.to_string(), now)));
            assert!(store.len() <= 100);
        }
        store.forget("999");
        assert!(matches!(store.look("999", now), Looked::Fetch(_)));
    }

    #[test]
    fn fetches_in_flight_are_bounded() {
        let store = store(10);
        let now = Instant::now();
        store.finish(fetch(store.look("known", now)), Ok(token(now, 100)), now);
        let in_flight: Vec<Ticket> = (0..5)
            .map(|number| fetch(store.look(&number.to_string(), now)))
            .collect();
        assert!(matches!(store.look("6", now), Looked::Full));
        assert_eq!(store.len(), 6, "a refused fetch takes no entry");
        // A request that waits for a fetch in flight, and one with a token, are served.
        assert!(matches!(store.look("0", now), Looked::Wait(_)));
        let later = now + Duration::from_secs(60);
        assert!(matches!(store.look("known", later), Looked::Have(_)));
        for ticket in in_flight {
            store.finish(ticket, Err(TokenError::NotReachable), now);
        }
        assert!(matches!(store.look("known", later), Looked::Refresh(..)));
        assert!(matches!(store.look("6", now), Looked::Fetch(_)));
    }
}
