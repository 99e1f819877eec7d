//! Answers to delegated discoveries, shared by all workers.
//!
//! A worker caches the answers that it uses and takes others from here, so that it takes the lock once per answer and
//! worker. Of several concurrent requests with the same query one queries the NRF and the others wait, whichever worker
//! they are on. The answers outlive a reload.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use ahash::AHashMap;
use bounded::Limits;
use parking_lot::Mutex;
use tokio::sync::watch;

use super::search::Failure;
use crate::discovery::{Cache, DiscoveryQuery, Found, Lookup, Shown};

/// Outcome of a query, and until when an answer is valid.
pub(crate) type Answer = Result<(Arc<Found>, Instant), Failure>;

/// Cached answers of all NRFs.
pub(crate) struct Answers {
    state: Mutex<State>,
    /// For the gauges, which do not take the lock.
    count: AtomicUsize,
    bytes: AtomicUsize,
}

struct State {
    cache: Cache,
    /// Queries in flight.
    asking: AHashMap<DiscoveryQuery, watch::Receiver<Option<Answer>>>,
    /// Number of times that the answers were dropped because the settings name other NRFs.
    epoch: u64,
}

/// What a request with a query has to do.
pub(crate) enum Looked {
    /// Use this answer.
    Have((Arc<Found>, Instant)),
    /// Wait for the same query in flight.
    Wait(watch::Receiver<Option<Answer>>),
    /// Query the NRF.
    Ask(Question),
}

/// Obligation to send a query. If it is dropped without an answer, another request may send the query.
pub(crate) struct Question {
    answers: Arc<Answers>,
    query: DiscoveryQuery,
    awaited: watch::Sender<Option<Answer>>,
    epoch: u64,
}

impl Answers {
    /// Creates an empty cache with these limits.
    pub(crate) fn new(limits: Limits) -> Self {
        Self {
            state: Mutex::new(State {
                cache: Cache::new(limits),
                asking: AHashMap::new(),
                epoch: 0,
            }),
            count: AtomicUsize::new(0),
            bytes: AtomicUsize::new(0),
        }
    }

    /// Memory of the answers, in bytes.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes.load(Ordering::Relaxed)
    }

    fn note(&self, state: &State) {
        self.count.store(state.cache.len(), Ordering::Relaxed);
        self.bytes.store(state.cache.bytes(), Ordering::Relaxed);
    }

    /// Number of answers.
    pub(crate) fn len(&self) -> usize {
        self.count.load(Ordering::Relaxed)
    }

    /// The answers that are valid, at most this number.
    pub(crate) fn shown(&self, now: Instant, most: usize) -> Vec<Shown> {
        self.state.lock().cache.shown(now, most)
    }

    /// Changes the limits; drops the answers if the settings name other NRFs.
    pub(crate) fn reconfigure(&self, limits: Limits, same_nrfs: bool) {
        let mut state = self.state.lock();
        state.cache.set_limits(limits);
        if !same_nrfs {
            state.cache = Cache::new(limits);
            state.asking.clear();
            state.epoch += 1;
        }
        self.note(&state);
    }

    /// Drops the answer to a query if it was asked for before `asked`.
    pub(crate) fn drop_older(&self, query: &DiscoveryQuery, asked: Instant) {
        let mut state = self.state.lock();
        state.cache.drop_older(query, asked);
        self.note(&state);
    }

    /// Returns the answer to a query, or what the request has to do.
    pub(crate) fn look(self: &Arc<Self>, query: &DiscoveryQuery, now: Instant) -> Looked {
        let mut state = self.state.lock();
        match state.cache.look_up(query, now) {
            Lookup::Hit(found, until) => return Looked::Have((found, until)),
            Lookup::Asking => {
                // A query that was given up has no sender any more.
                let waited = state
                    .asking
                    .get(query)
                    .filter(|awaited| awaited.has_changed().is_ok());
                if let Some(awaited) = waited {
                    return Looked::Wait(awaited.clone());
                }
            }
            Lookup::Miss => {}
        }
        let (awaited, waiting) = watch::channel(None);
        state.asking.insert(query.clone(), waiting);
        self.note(&state);
        Looked::Ask(Question {
            answers: self.clone(),
            query: query.clone(),
            awaited,
            epoch: state.epoch,
        })
    }
}

impl Question {
    /// Returns a receiver of the answer.
    pub(crate) fn hear(&self) -> watch::Receiver<Option<Answer>> {
        self.awaited.subscribe()
    }

    /// The query.
    pub(crate) fn query(&self) -> &DiscoveryQuery {
        &self.query
    }

    /// Publishes the outcome; an answer is valid for `validity`.
    pub(crate) fn answer(self, answer: Result<(Arc<Found>, Duration), Failure>, now: Instant) {
        let answer = answer.map(|(found, validity)| {
            let mut state = self.answers.state.lock();
            if state.epoch == self.epoch {
                state.cache.learn(&self.query, found.clone(), validity, now);
            }
            (found, now.checked_add(validity).unwrap_or(now))
        });
        // All waiting requests may have given up.
        let _ = self.awaited.send(Some(answer));
    }
}

impl Drop for Question {
    fn drop(&mut self) {
        let mut state = self.answers.state.lock();
        if state.epoch == self.epoch {
            let answered = matches!(&*self.awaited.borrow(), Some(Ok(_)));
            if !answered {
                state.cache.forget(&self.query);
            }
            state.asking.remove(&self.query);
        }
        self.answers.note(&state);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn query() -> DiscoveryQuery {
        DiscoveryQuery::new([("target-nf-type", "UDM")])
    }

    fn nothing() -> Arc<Found> {
        Arc::new(Found {
            asked: Instant::now(),
            candidates: Vec::new(),
            bytes: 0,
        })
    }

    fn ask(answers: &Arc<Answers>, now: Instant) -> Question {
        match answers.look(&query(), now) {
            Looked::Ask(question) => question,
            _ => panic!("expected to ask"),
        }
    }

    #[test]
    fn one_asks_the_others_wait_and_all_know_until_it_ends() {
        let (answers, now) = (Arc::new(Answers::new(Limits::entries(10))), Instant::now());
        let question = ask(&answers, now);
        let Looked::Wait(awaited) = answers.look(&query(), now) else {
            panic!("expected to wait");
        };
        question.answer(Ok((nothing(), Duration::from_secs(4))), now);
        assert!(matches!(&*awaited.borrow(), Some(Ok(_))));
        assert!(matches!(answers.look(&query(), now), Looked::Have(_)));
        assert_eq!(answers.len(), 1);
        drop(ask(&answers, now + Duration::from_secs(4)));
    }

    #[test]
    fn a_question_that_was_given_up_or_failed_is_free_again() {
        let (answers, now) = (Arc::new(Answers::new(Limits::entries(10))), Instant::now());
        let question = ask(&answers, now);
        let mut awaited = question.hear();
        drop(question);
        assert!(awaited.borrow_and_update().is_none() && awaited.has_changed().is_err());
        ask(&answers, now).answer(Err(Failure::NotReachable), now);
        assert_eq!(answers.len(), 0);
        drop(ask(&answers, now));
    }

    #[test]
    fn answers_of_nrfs_that_are_no_longer_asked_do_not_count() {
        let (answers, now) = (Arc::new(Answers::new(Limits::entries(10))), Instant::now());
        ask(&answers, now).answer(Ok((nothing(), Duration::from_secs(60))), now);
        answers.reconfigure(Limits::entries(5), true);
        assert!(matches!(answers.look(&query(), now), Looked::Have(_)));
        answers.reconfigure(Limits::entries(5), false);
        let late = ask(&answers, now);
        answers.reconfigure(Limits::entries(5), false);
        late.answer(Ok((nothing(), Duration::from_secs(60))), now);
        drop(ask(&answers, now));
    }
}
