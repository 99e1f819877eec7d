//! Access tokens by what they are for, shared by all workers.
//!
//! A worker keeps the tokens it has used beside itself and comes here only for those it does not have, so
//! the lock is taken once per token and worker, not per message. Of several that want the same token at the
//! same time, one fetches and the others wait, whichever worker they are on.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use ahash::AHashMap;
use http::{HeaderValue, StatusCode};
use parking_lot::Mutex;
use tokio::sync::watch;

/// An access token.
#[derive(Debug)]
pub(crate) struct Token {
    /// `Bearer …`.
    pub(crate) value: HeaderValue,
    /// From now on it is not used.
    pub(crate) ends: Instant,
    /// From now on it is fetched anew.
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
}

/// How a fetch ended.
pub(crate) type Outcome = Result<Arc<Token>, TokenError>;

/// What whoever wants a token is to do.
pub(crate) enum Looked {
    /// Use this one.
    Have(Arc<Token>),
    /// Use this one, and fetch another meanwhile.
    Refresh(Arc<Token>, Ticket),
    /// Fetch it.
    Fetch(Ticket),
    /// Wait for whoever fetches it.
    Wait(watch::Receiver<Option<Outcome>>),
    /// The NRF has refused it a moment ago.
    Refused(TokenError),
}

/// The duty to fetch a token. Dropped without an answer, the fetch is free for another.
pub(crate) struct Ticket {
    key: Box<str>,
    told: watch::Sender<Option<Outcome>>,
}

impl Ticket {
    /// Hears how the fetch ends.
    pub(crate) fn hear(&self) -> watch::Receiver<Option<Outcome>> {
        self.told.subscribe()
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
    /// What makes it another than the others, by [`super::fetch::Wanted::key`].
    pub(crate) key: Box<str>,
    /// `valid`, `fetching` or `refused`.
    pub(crate) state: &'static str,
    /// How much longer it can be used, or its refusal is remembered.
    pub(crate) left: Duration,
}

/// The tokens of an SCP.
pub(crate) struct TokenStore {
    entries: Mutex<AHashMap<Box<str>, Entry>>,
    most: AtomicUsize,
    remember_refusal: Mutex<Duration>,
    count: AtomicUsize,
}

impl std::fmt::Debug for TokenStore {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // Never a token.
        write!(f, "TokenStore({})", self.len())
    }
}

impl TokenStore {
    pub(crate) fn new(most: usize, remember_refusal: Duration) -> Self {
        Self {
            entries: Mutex::default(),
            most: AtomicUsize::new(most.max(1)),
            remember_refusal: Mutex::new(remember_refusal),
            count: AtomicUsize::new(0),
        }
    }

    /// Takes over other settings; the tokens stay.
    pub(crate) fn reconfigure(&self, most: usize, remember_refusal: Duration) {
        self.most.store(most.max(1), Ordering::Relaxed);
        *self.remember_refusal.lock() = remember_refusal;
    }

    /// How many tokens are remembered.
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

    /// The token of a key, or what is to be done for it.
    pub(crate) fn look(&self, key: &str, now: Instant) -> Looked {
        let mut entries = self.entries.lock();
        let usable = match entries.get(key) {
            Some(Entry::Ready(token)) if now < token.refresh => return Looked::Have(token.clone()),
            Some(Entry::Ready(token)) => Some(token.clone()),
            Some(Entry::Fetching(old, told)) => {
                let old = old.as_ref().filter(|token| now < token.ends).cloned();
                // A fetch that was given up has no sender any more.
                if told.has_changed().is_ok() {
                    return match old {
                        Some(old) => Looked::Have(old),
                        None => Looked::Wait(told.clone()),
                    };
                }
                old
            }
            Some(Entry::Refused(error, until)) if now < *until => return Looked::Refused(error.clone()),
            Some(Entry::Refused(..)) | None => None,
        };
        let usable = usable.filter(|token| now < token.ends);
        if !entries.contains_key(key) && entries.len() >= self.most.load(Ordering::Relaxed) {
            make_room(&mut entries, now);
        }
        let (told, hears) = watch::channel(None);
        entries.insert(key.into(), Entry::Fetching(usable.clone(), hears));
        self.count.store(entries.len(), Ordering::Relaxed);
        let ticket = Ticket {
            key: key.into(),
            told,
        };
        match usable {
            Some(token) => Looked::Refresh(token, ticket),
            None => Looked::Fetch(ticket),
        }
    }

    /// A fetch has ended.
    pub(crate) fn finish(&self, ticket: Ticket, outcome: Outcome, now: Instant) {
        let Ticket { key, told } = ticket;
        let pause = *self.remember_refusal.lock();
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
                // A refresh that failed is tried again after a while; the old one still holds.
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
                (Err(TokenError::NotReachable), None) => {
                    entries.remove(&key);
                }
            }
            self.count.store(entries.len(), Ordering::Relaxed);
        }
        // Nobody may be waiting.
        let _ = told.send(Some(outcome));
    }

    /// A producer has refused a token: it is not used again.
    pub(crate) fn forget(&self, key: &str) {
        let mut entries = self.entries.lock();
        if matches!(entries.get(key), Some(Entry::Ready(_))) {
            entries.remove(key);
            self.count.store(entries.len(), Ordering::Relaxed);
        }
    }
}

/// Makes room for one more: what has ended goes; if nothing has, any one that is not being fetched.
fn make_room(entries: &mut AHashMap<Box<str>, Entry>, now: Instant) {
    const SEARCH: usize = 64;
    // A look at a few keeps the time bounded; over many inserts all are looked at.
    let mut gone: Vec<Box<str>> = Vec::new();
    let mut any: Option<Box<str>> = None;
    for (key, entry) in entries.iter().take(SEARCH) {
        match entry {
            Entry::Ready(token) if now >= token.ends => gone.push(key.clone()),
            Entry::Refused(_, until) if now >= *until => gone.push(key.clone()),
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
        let store = TokenStore::new(10, Duration::from_secs(1));
        let now = Instant::now();
        let ticket = fetch(store.look("a", now));
        let Looked::Wait(mut told) = store.look("a", now) else {
            panic!("expected to wait");
        };
        store.finish(ticket, Ok(token(now, 100)), now);
        assert!(told.borrow_and_update().as_ref().unwrap().is_ok());
        assert!(matches!(store.look("a", now), Looked::Have(_)));
        let shown = Shown {
            key: "a".into(),
            state: "valid",
            left: Duration::from_secs(100),
        };
        assert_eq!(store.shown(now, 10), [shown]);
        assert_eq!(store.shown(now, 0), []);
        // In its second half it is fetched anew, by one, and used meanwhile by all.
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
        let store = TokenStore::new(10, Duration::from_secs(1));
        let now = Instant::now();
        drop(store.look("a", now));
        drop(fetch(store.look("a", now)));
    }

    #[test]
    fn a_refusal_is_remembered_for_a_while_and_silence_is_not() {
        let store = TokenStore::new(10, Duration::from_secs(1));
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
        let store = TokenStore::new(100, Duration::from_secs(1));
        let now = Instant::now();
        for number in 0..1_000 {
            let ticket = fetch(store.look(&number.to_string(), now));
            store.finish(ticket, Ok(token(now, 100)), now);
            assert!(store.len() <= 100);
        }
        store.forget("999");
        assert!(matches!(store.look("999", now), Looked::Fetch(_)));
    }
}
