//! Answers to delegated discoveries, shared by all workers.
//!
//! A worker keeps the answers that it uses beside itself and comes here for those it does not have, so that the lock is
//! taken once per answer and worker. Of several requests that ask the same at the same time one asks the NRF and the
//! others wait, whichever worker they are on. The answers outlive a reload.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use ahash::AHashMap;
use bounded::Limits;
use parking_lot::Mutex;
use tokio::sync::watch;

use super::search::Failure;
use crate::discovery::{Cache, DiscoveryQuery, Found, Lookup, Shown};

/// How a question was answered, and until when the answer counts.
pub(crate) type Answer = Result<(Arc<Found>, Instant), Failure>;

/// The answers of all NRFs that are asked.
pub(crate) struct Answers {
    state: Mutex<State>,
    /// For the gauges, which must not wait for the lock.
    count: AtomicUsize,
    bytes: AtomicUsize,
}

struct State {
    cache: Cache,
    /// Questions that the NRF is asked now.
    asking: AHashMap<DiscoveryQuery, watch::Receiver<Option<Answer>>>,
    /// Counts the times that the answers were dropped because other NRFs are asked.
    epoch: u64,
}

/// What a request that asks a question is to do.
pub(crate) enum Looked {
    /// Use this answer.
    Have((Arc<Found>, Instant)),
    /// Wait for the request that asks the same.
    Wait(watch::Receiver<Option<Answer>>),
    /// Ask the NRF.
    Ask(Question),
}

/// The duty to ask a question. Dropped without an answer, the question is free for another request.
pub(crate) struct Question {
    answers: Arc<Answers>,
    query: DiscoveryQuery,
    awaited: watch::Sender<Option<Answer>>,
    epoch: u64,
}

impl Answers {
    /// None yet, and no more than this.
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

    /// Memory of the answers.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes.load(Ordering::Relaxed)
    }

    fn note(&self, state: &State) {
        self.count.store(state.cache.len(), Ordering::Relaxed);
        self.bytes.store(state.cache.bytes(), Ordering::Relaxed);
    }

    /// How many answers there are.
    pub(crate) fn len(&self) -> usize {
        self.count.load(Ordering::Relaxed)
    }

    /// The answers that are valid, at most this number.
    pub(crate) fn shown(&self, now: Instant, most: usize) -> Vec<Shown> {
        self.state.lock().cache.shown(now, most)
    }

    /// Keeps no more answers than this from now on, and none of those of other NRFs.
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

    /// The answer to a question, or what is to be done for it.
    pub(crate) fn look(self: &Arc<Self>, query: &DiscoveryQuery, now: Instant) -> Looked {
        let mut state = self.state.lock();
        match state.cache.look_up(query, now) {
            Lookup::Hit(found, until) => return Looked::Have((found, until)),
            Lookup::Asking => {
                // A question that was given up has no sender any more.
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
    /// Hears how it is answered.
    pub(crate) fn hear(&self) -> watch::Receiver<Option<Answer>> {
        self.awaited.subscribe()
    }

    /// What is asked.
    pub(crate) fn query(&self) -> &DiscoveryQuery {
        &self.query
    }

    /// The NRF has answered, or none has; an answer counts for `validity`.
    pub(crate) fn answer(self, answer: Result<(Arc<Found>, Duration), Failure>, now: Instant) {
        let answer = answer.map(|(found, validity)| {
            let mut state = self.answers.state.lock();
            if state.epoch == self.epoch {
                state.cache.learn(&self.query, found.clone(), validity, now);
            }
            (found, now.checked_add(validity).unwrap_or(now))
        });
        // No request may be waiting any more.
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
