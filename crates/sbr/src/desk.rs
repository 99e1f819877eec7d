//! First requests of a subscriber that come at once (early binding): one chooses a server, the others wait for what becomes
//! of it or follow it at once, so that a subscriber is never at two servers.
//!
//! No clock and no transport: time is an argument, and who waits is a name by which the caller goes on with it.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

use crate::session::Party;
use crate::shards::Shards;

/// Subscribers in a part, beyond which none stays for a server that did not answer: 100 bytes each.
const MOST_DOUBTFUL: usize = 16_384;

/// The subscribers with requests in flight that begin a session.
#[derive(Debug)]
pub struct Desk<W> {
    entries: Shards<Entry<W>>,
    next: AtomicU64,
    max_waiting: usize,
    hold: Duration,
}

#[derive(Debug)]
struct Entry<W> {
    token: u64,
    /// Where they go; none: the first has not chosen yet.
    server: Option<Arc<Party>>,
    /// A session at the server exists.
    is_certain: bool,
    /// The server takes the place of the one that the subscriber had.
    has_moved: bool,
    /// Requests in flight.
    users: usize,
    waiting: VecDeque<W>,
    /// Whether it stays without requests in flight: its server may have got one, and did not answer.
    is_doubtful: bool,
    /// When it is void: what became of its requests was not reported.
    until: Instant,
}

/// What a request may do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Claim {
    /// It chooses, under this token.
    First(u64),
    /// It goes to this server, under this token.
    Follow(u64, Arc<Party>),
    /// It waits, under this token: [`Desk::decide`] or [`Desk::settle`] gives it its turn.
    Wait(u64),
    /// Too many wait, or are in flight.
    Full,
}

/// The turn of one that waited.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Turn {
    /// It chooses.
    First(u64),
    /// It goes to this server.
    Follow(u64, Arc<Party>),
}

/// What became of a request.
#[derive(Clone, Debug)]
pub enum Outcome {
    /// Its session is at this server, and was written.
    Kept(Party),
    /// It has no session.
    Failed,
    /// This server may have got it and did not answer: what comes again goes there, as long as requests are held.
    Doubtful(Party),
}

impl<W: Copy + PartialEq> Desk<W> {
    /// A desk at which `max_waiting` requests of a subscriber wait, and whose requests end within `hold`.
    #[must_use]
    pub fn new(max_waiting: usize, hold: Duration) -> Self {
        Self {
            entries: Shards::default(),
            next: AtomicU64::new(1),
            max_waiting,
            hold,
        }
    }

    /// A request of this subscriber has come. `follows`: it takes a server that another has chosen without a session yet.
    pub fn claim(&self, key: &[u8], who: W, follows: bool, now: Instant) -> Claim {
        let mut shard = self.entries.lock(key);
        let known = shard.get_mut(key).filter(|entry| now < entry.until);
        let Some(entry) = known else {
            let token = self.next.fetch_add(1, Relaxed);
            let entry = Entry {
                token,
                server: None,
                is_certain: false,
                has_moved: false,
                users: 1,
                waiting: VecDeque::new(),
                is_doubtful: false,
                until: now + self.hold,
            };
            shard.insert(key.to_vec(), entry);
            return Claim::First(token);
        };
        if let Some(server) = entry.server.clone().filter(|_| entry.is_certain || follows) {
            // As many as may wait, and the one that they wait for.
            if entry.users > self.max_waiting {
                return Claim::Full;
            }
            entry.users += 1;
            entry.until = now + self.hold;
            return Claim::Follow(entry.token, server);
        }
        if entry.waiting.len() >= self.max_waiting {
            return Claim::Full;
        }
        entry.waiting.push_back(who);
        Claim::Wait(entry.token)
    }

    /// Waits for the outcome of the requests in flight, if there are any, under this token; none: there are none, or a session
    /// exists, or too many wait.
    pub fn wait(&self, key: &[u8], who: W, now: Instant) -> Option<u64> {
        let mut shard = self.entries.lock(key);
        let entry = shard.get_mut(key).filter(|entry| now < entry.until)?;
        if entry.is_certain || entry.waiting.len() >= self.max_waiting {
            return None;
        }
        entry.waiting.push_back(who);
        Some(entry.token)
    }

    /// The one that chooses has chosen, or has found that a session exists (`is_certain`). Returns the turns of those that
    /// go to the same server now.
    pub fn decide(
        &self,
        key: &[u8],
        token: u64,
        server: &Party,
        is_certain: bool,
        follows: bool,
    ) -> Vec<(W, Turn)> {
        let mut shard = self.entries.lock(key);
        let Some(entry) = shard.get_mut(key).filter(|entry| entry.token == token) else {
            return Vec::new();
        };
        // A session that exists counts more than what one without a session tries.
        if entry.is_certain && !is_certain {
            return Vec::new();
        }
        entry.is_certain = is_certain;
        let server = Arc::new(server.clone());
        entry.server = Some(server.clone());
        match is_certain || follows {
            true => entry.all_follow(&server),
            false => Vec::new(),
        }
    }

    /// A request has an outcome. Returns the turns of those that go on now.
    pub fn settle(&self, key: &[u8], token: u64, outcome: Outcome, now: Instant) -> Vec<(W, Turn)> {
        let mut shard = self.entries.lock(key);
        let is_crowded = shard.len() > MOST_DOUBTFUL;
        let Some(entry) = shard.get_mut(key).filter(|entry| entry.token == token) else {
            return Vec::new();
        };
        entry.users = entry.users.saturating_sub(1);
        entry.is_doubtful = matches!(outcome, Outcome::Doubtful(_)) && !is_crowded;
        let turns = match outcome {
            Outcome::Kept(server) | Outcome::Doubtful(server) => {
                let server = Arc::new(server);
                entry.is_certain = true;
                entry.server = Some(server.clone());
                entry.until = now + self.hold;
                entry.all_follow(&server)
            }
            Outcome::Failed if entry.users == 0 => entry.next_first(now + self.hold),
            Outcome::Failed => Vec::new(),
        };
        if entry.users == 0 && entry.waiting.is_empty() && !entry.is_doubtful {
            shard.remove(key);
        }
        turns
    }

    /// Whether requests of this token are in flight, or wait.
    pub fn has(&self, key: &[u8], token: u64) -> bool {
        let shard = self.entries.lock(key);
        shard.get(key).is_some_and(|entry| entry.token == token)
    }

    /// Whether the requests of this token go to the server of a session that exists.
    pub fn is_certain(&self, key: &[u8], token: u64) -> bool {
        let shard = self.entries.lock(key);
        let entry = shard.get(key).filter(|entry| entry.token == token);
        entry.is_some_and(|entry| entry.is_certain)
    }

    /// The server of the subscriber has failed, and requests of this token go to another one.
    pub fn moves(&self, key: &[u8], token: u64) {
        let mut shard = self.entries.lock(key);
        if let Some(entry) = shard.get_mut(key).filter(|entry| entry.token == token) {
            entry.has_moved = true;
        }
    }

    /// Whether requests of this token go to another server than the one that the subscriber had.
    pub fn has_moved(&self, key: &[u8], token: u64) -> bool {
        let shard = self.entries.lock(key);
        let entry = shard.get(key).filter(|entry| entry.token == token);
        entry.is_some_and(|entry| entry.has_moved)
    }

    /// The key under which requests of this token are in flight or wait, however long that takes to find: for what the settings do
    /// not lead to any more.
    pub fn key_of(&self, token: u64) -> Option<Vec<u8>> {
        self.entries.find(|entry| entry.token == token)
    }

    /// One that waits waits no longer. Whether it still did: else it has been given a turn, which it settles.
    pub fn withdraw(&self, key: &[u8], token: u64, who: W) -> bool {
        let mut shard = self.entries.lock(key);
        let Some(entry) = shard.get_mut(key).filter(|entry| entry.token == token) else {
            return true;
        };
        let before = entry.waiting.len();
        entry.waiting.retain(|one| *one != who);
        before != entry.waiting.len()
    }

    /// Removes what is void.
    pub fn purge(&self, now: Instant) {
        self.entries.retain(|entry| now < entry.until);
    }

    /// Number of subscribers with requests in flight.
    #[must_use]
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether no request is in flight.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }
}

impl<W> Entry<W> {
    fn all_follow(&mut self, server: &Arc<Party>) -> Vec<(W, Turn)> {
        self.users += self.waiting.len();
        let follow = |who| (who, Turn::Follow(self.token, server.clone()));
        self.waiting.drain(..).map(follow).collect()
    }

    /// The one that waits longest chooses; a session that existed may have ended meanwhile.
    fn next_first(&mut self, until: Instant) -> Vec<(W, Turn)> {
        let Some(next) = self.waiting.pop_front() else {
            return Vec::new();
        };
        (self.users, self.server, self.is_certain, self.until) = (1, None, false, until);
        self.has_moved = false;
        vec![(next, Turn::First(self.token))]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEY: &[u8] = b"001010000000001/all";

    fn party(host: &str) -> Party {
        Party {
            host: host.to_owned(),
            realm: String::new(),
        }
    }

    fn desk() -> (Desk<u32>, Instant) {
        (Desk::new(2, Duration::from_secs(60)), Instant::now())
    }

    #[test]
    fn one_chooses_and_the_others_wait_for_its_outcome() {
        let (desk, now) = desk();
        let Claim::First(token) = desk.claim(KEY, 1, false, now) else {
            panic!("the first one chooses");
        };
        assert_eq!(desk.claim(KEY, 2, false, now), Claim::Wait(token));
        assert_eq!(desk.decide(KEY, token, &party("a"), false, false), []);
        assert_eq!(desk.claim(KEY, 3, false, now), Claim::Wait(token));
        assert_eq!(desk.claim(KEY, 4, false, now), Claim::Full);
        let server = Arc::new(party("a"));
        let follow = |who| (who, Turn::Follow(token, server.clone()));
        let turns = desk.settle(KEY, token, Outcome::Kept(party("a")), now);
        assert_eq!(turns, [follow(2), follow(3)]);
        // The binding is certain while they are in flight.
        assert_eq!(desk.claim(KEY, 5, false, now), Claim::Follow(token, server));
        for _ in 0..3 {
            assert_eq!(desk.settle(KEY, token, Outcome::Failed, now), []);
        }
        assert!(desk.is_empty());
    }

    #[test]
    fn what_comes_again_goes_to_a_server_that_did_not_answer() {
        let (desk, now) = desk();
        let claim = |who, now| desk.claim(KEY, who, false, now);
        let Claim::First(token) = claim(1, now) else {
            panic!("the first one chooses");
        };
        assert_eq!(desk.wait(KEY, 2, now), Some(token));
        let server = Arc::new(party("a"));
        let follow = Turn::Follow(token, server.clone());
        let turns = desk.settle(KEY, token, Outcome::Doubtful(party("a")), now);
        assert_eq!(turns, [(2, follow)]);
        assert_eq!(desk.settle(KEY, token, Outcome::Doubtful(party("a")), now), []);
        assert_eq!(desk.wait(KEY, 3, now), None);
        assert_eq!(claim(3, now), Claim::Follow(token, server));
        assert_eq!(desk.settle(KEY, token, Outcome::Doubtful(party("a")), now), []);
        let later = now + Duration::from_secs(60);
        assert!(matches!(claim(4, later), Claim::First(other) if other != token));
        // What the server refuses is known.
        desk.settle(KEY, token + 1, Outcome::Failed, later);
        assert!(desk.is_empty());
    }

    #[test]
    fn one_that_follows_is_bound_when_a_session_exists_and_the_last_one_frees_the_subscriber() {
        let (desk, now) = desk();
        let Claim::First(token) = desk.claim(KEY, 1, true, now) else {
            panic!("the first one chooses");
        };
        desk.decide(KEY, token, &party("a"), false, true);
        assert!(matches!(desk.claim(KEY, 2, true, now), Claim::Follow(..)));
        assert!(!desk.is_certain(KEY, token));
        // The other one is in flight.
        desk.settle(KEY, token, Outcome::Failed, now);
        assert!(desk.has(KEY, token));
        assert!(matches!(desk.claim(KEY, 3, true, now), Claim::Follow(..)));
        desk.settle(KEY, token, Outcome::Kept(party("a")), now);
        assert!(desk.is_certain(KEY, token));
        desk.settle(KEY, token, Outcome::Failed, now);
        assert!(!desk.has(KEY, token) && !desk.is_certain(KEY, token));
    }

    #[test]
    fn after_a_failure_the_one_that_waits_longest_chooses() {
        let (desk, now) = desk();
        let Claim::First(token) = desk.claim(KEY, 1, false, now) else {
            panic!("the first one chooses");
        };
        desk.claim(KEY, 2, false, now);
        desk.claim(KEY, 3, false, now);
        let first = |who| [(who, Turn::First(token))];
        assert_eq!(desk.settle(KEY, token, Outcome::Failed, now), first(2));
        assert_eq!(desk.settle(KEY, token, Outcome::Failed, now), first(3));
        assert_eq!(desk.settle(KEY, token, Outcome::Failed, now), []);
        assert!(desk.is_empty());
    }

    #[test]
    fn one_that_follows_takes_what_was_chosen_at_once() {
        let (desk, now) = desk();
        let Claim::First(token) = desk.claim(KEY, 1, true, now) else {
            panic!("the first one chooses");
        };
        assert_eq!(desk.claim(KEY, 2, true, now), Claim::Wait(token));
        let server = Arc::new(party("a"));
        let follow = Turn::Follow(token, server.clone());
        assert_eq!(desk.decide(KEY, token, &server, false, true), [(2, follow)]);
        assert_eq!(desk.claim(KEY, 3, true, now), Claim::Follow(token, server));
    }

    #[test]
    fn those_that_follow_are_bounded_as_those_that_wait() {
        let (desk, now) = desk();
        let Claim::First(token) = desk.claim(KEY, 1, true, now) else {
            panic!("the first one chooses");
        };
        desk.decide(KEY, token, &party("a"), true, true);
        for who in 2..=3 {
            assert!(matches!(desk.claim(KEY, who, true, now), Claim::Follow(..)));
        }
        assert_eq!(desk.claim(KEY, 4, true, now), Claim::Full);
        desk.settle(KEY, token, Outcome::Kept(party("a")), now);
        assert!(matches!(desk.claim(KEY, 4, true, now), Claim::Follow(..)));
    }

    #[test]
    fn one_that_waits_no_longer_is_passed_over() {
        let (desk, now) = desk();
        let Claim::First(token) = desk.claim(KEY, 1, false, now) else {
            panic!("the first one chooses");
        };
        desk.claim(KEY, 2, false, now);
        desk.claim(KEY, 3, false, now);
        assert!(desk.withdraw(KEY, token, 2));
        let turns = desk.settle(KEY, token, Outcome::Failed, now);
        assert_eq!(turns, [(3, Turn::First(token))]);
        // It has been given its turn: it settles that.
        assert!(!desk.withdraw(KEY, token, 3));
        desk.settle(KEY, token, Outcome::Failed, now);
        assert!(desk.is_empty());
    }

    #[test]
    fn what_is_never_settled_is_void_in_the_end() {
        let (desk, now) = desk();
        let Claim::First(old) = desk.claim(KEY, 1, false, now) else {
            panic!("the first one chooses");
        };
        let later = now + Duration::from_secs(60);
        let Claim::First(new) = desk.claim(KEY, 2, false, later) else {
            panic!("the entry is void");
        };
        assert_ne!(old, new);
        assert_eq!(desk.settle(KEY, old, Outcome::Failed, later), []);
        assert_eq!(desk.len(), 1);
        desk.purge(later + Duration::from_secs(60));
        assert!(desk.is_empty());
    }
}
