//! Answers by name for their time to live, negative answers, and queries in flight. Time is an argument.

use std::sync::Arc;
use std::time::{Duration, Instant};

use ahash::AHashMap;
use bounded::Limits;
use tokio::sync::watch;

use super::DnsError;

/// The records of a name, or why there are none.
pub(super) type Answer<T> = Result<Arc<[T]>, DnsError>;
/// Receives the answer when it arrives.
pub(super) type Waiter<T> = watch::Receiver<Option<Answer<T>>>;

/// Outcome of a lookup.
pub(super) enum Looked<T> {
    /// Use this answer.
    Known(Answer<T>),
    /// A query is in flight; wait for its answer.
    Wait(Waiter<T>),
    /// Send a query, pass its answer to [`Cache::learn`], then wait.
    Ask(Waiter<T>),
    /// Too many queries are in flight.
    Full,
}

/// Times for which answers are cached.
#[derive(Clone, Copy, Debug)]
pub(super) struct Times {
    pub(super) max_ttl: Duration,
    pub(super) negative_ttl: Duration,
    pub(super) retry_after: Duration,
    pub(super) max_stale: Duration,
}

/// The entry of a name.
struct Known<T> {
    answer: Answer<T>,
    /// Until when the answer is used.
    until: Instant,
    /// Until when its records may be used while no server answers.
    stale_until: Instant,
    /// When the answer arrived.
    learned: Instant,
    /// When it last had other records than before.
    moved: Option<Instant>,
}

/// Records of one kind by name.
pub(super) struct Cache<T> {
    known: bounded::Cache<Box<str>, Known<T>>,
    asking: AHashMap<Box<str>, watch::Sender<Option<Answer<T>>>>,
    most_asking: usize,
    times: Times,
}

impl<T: PartialEq> Cache<T> {
    pub(super) fn new(most: usize, most_asking: usize, times: Times) -> Self {
        Self {
            known: bounded::Cache::new(Limits::entries(most.max(1))),
            asking: AHashMap::new(),
            most_asking,
            times,
        }
    }

    /// Names with an answer or a query in flight.
    pub(super) fn len(&self) -> usize {
        let unanswered = self
            .asking
            .keys()
            .filter(|name| self.known.peek(&***name).is_none());
        self.known.len() + unanswered.count()
    }

    pub(super) fn look(&mut self, name: &str, now: Instant) -> Looked<T> {
        self.look_since(name, None, now)
    }

    /// When the records of a name last changed.
    pub(super) fn moved(&self, name: &str) -> Option<Instant> {
        self.known.peek(name)?.moved
    }

    /// As [`Cache::look`]; an answer that arrived before `oldest` does not count.
    pub(super) fn look_since(&mut self, name: &str, oldest: Option<Instant>, now: Instant) -> Looked<T> {
        let counts =
            |known: &Known<T>| now < known.until && oldest.is_none_or(|oldest| known.learned >= oldest);
        if let Some(known) = self.known.get_if(name, counts) {
            return Looked::Known(known.answer.clone());
        }
        if let Some(asking) = self.asking.get(name) {
            return Looked::Wait(asking.subscribe());
        }
        if self.asking.len() >= self.most_asking {
            return Looked::Full;
        }
        let (asking, waiter) = watch::channel(None);
        self.asking.insert(name.into(), asking);
        Looked::Ask(waiter)
    }

    /// Stores the answer to a query: records with their time to live (an empty list: the name has none), or a failure.
    pub(super) fn learn(&mut self, name: &str, answer: Result<(Vec<T>, Duration), DnsError>, now: Instant) {
        let times = self.times;
        let before = self.known.peek(name);
        let mut moved = before.and_then(|known| known.moved);
        let mut stale_until = before.map_or(now, |known| known.stale_until);
        let (answer, until): (Answer<T>, Instant) = match answer {
            Ok((records, ttl)) if !records.is_empty() => {
                let until = now + ttl.min(times.max_ttl);
                stale_until = until + times.max_stale;
                let other = |known: &[T]| {
                    known.len() != records.len() || !records.iter().all(|one| known.contains(one))
                };
                if before.is_some_and(|before| before.answer.as_ref().is_ok_and(|known| other(known))) {
                    moved = Some(now);
                }
                (Ok(records.into()), until)
            }
            Ok((_, ttl)) => (Err(DnsError::NoRecords), now + ttl.min(times.negative_ttl)),
            Err(error) => {
                let stale = before.map(|known| &known.answer);
                let stale = stale.filter(|answer| answer.is_ok() && now < stale_until);
                (stale.cloned().unwrap_or(Err(error)), now + times.retry_after)
            }
        };
        let known = Known {
            answer: answer.clone(),
            until,
            stale_until,
            learned: now,
            moved,
        };
        self.known.insert(name.into(), known);
        if let Some(asking) = self.asking.remove(name) {
            asking.send_replace(Some(answer));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TIMES: Times = Times {
        max_ttl: Duration::from_secs(100),
        negative_ttl: Duration::from_secs(5),
        retry_after: Duration::from_secs(1),
        max_stale: Duration::from_secs(50),
    };

    fn cache() -> (Cache<u8>, Instant) {
        (Cache::new(3, 2, TIMES), Instant::now())
    }

    fn known(looked: Looked<u8>) -> Option<Vec<u8>> {
        match looked {
            Looked::Known(answer) => answer.ok().map(|records| records.to_vec()),
            _ => None,
        }
    }

    #[test]
    fn one_query_answers_all_callers_until_its_time_to_live_ends() {
        let (mut cache, now) = cache();
        assert!(matches!(cache.look("a", now), Looked::Ask(_)));
        let Looked::Wait(waiter) = cache.look("a", now) else {
            panic!("expected to wait");
        };
        cache.learn("a", Ok((vec![1, 2], Duration::from_secs(30))), now);
        assert_eq!(waiter.borrow().clone().unwrap().unwrap().to_vec(), [1, 2]);
        let later = now + Duration::from_secs(29);
        assert_eq!(known(cache.look("a", later)), Some(vec![1, 2]));
        assert!(matches!(
            cache.look("a", now + Duration::from_secs(30)),
            Looked::Ask(_)
        ));
    }

    #[test]
    fn names_that_move_are_asked_for_before_their_time_to_live_ends() {
        let (mut cache, now) = cache();
        let _ = cache.look("a", now);
        cache.learn("a", Ok((vec![1, 2], Duration::from_secs(30))), now);
        let later = now + Duration::from_secs(2);
        assert!(matches!(
            cache.look_since("a", Some(later), later),
            Looked::Ask(_)
        ));
        // The order does not matter.
        cache.learn("a", Ok((vec![2, 1], Duration::from_secs(30))), later);
        assert!(cache.moved("a").is_none());
        assert!(known(cache.look_since("a", Some(later), later)).is_some());
        cache.learn("a", Ok((vec![3], Duration::from_secs(30))), later);
        assert_eq!(cache.moved("a"), Some(later));
        cache.learn("a", Err(DnsError::Timeout), later);
        assert_eq!(cache.moved("a"), Some(later));
    }

    #[test]
    fn negative_answers_and_failures_are_cached() {
        let (mut cache, now) = cache();
        let _ = cache.look("a", now);
        cache.learn("a", Ok((Vec::new(), Duration::from_secs(600))), now);
        let looked = cache.look("a", now + Duration::from_secs(4));
        assert!(matches!(looked, Looked::Known(Err(DnsError::NoRecords))));
        let later = now + Duration::from_secs(5);
        assert!(matches!(cache.look("a", later), Looked::Ask(_)));
        cache.learn("a", Err(DnsError::Failed("x".into())), later);
        assert!(matches!(
            cache.look("a", later),
            Looked::Known(Err(DnsError::Failed(_)))
        ));
        assert!(matches!(
            cache.look("a", later + TIMES.retry_after),
            Looked::Ask(_)
        ));
    }

    #[test]
    fn a_stale_answer_is_used_while_servers_are_unreachable_but_not_for_ever() {
        let (mut cache, now) = cache();
        let _ = cache.look("a", now);
        cache.learn("a", Ok((vec![7], Duration::from_secs(10))), now);
        let mut at = now + Duration::from_secs(10);
        for _ in 0..50 {
            assert!(matches!(cache.look("a", at), Looked::Ask(_)));
            cache.learn("a", Err(DnsError::Timeout), at);
            assert_eq!(known(cache.look("a", at)), Some(vec![7]));
            at += TIMES.retry_after;
        }
        let _ = cache.look("a", at);
        cache.learn("a", Err(DnsError::Timeout), at);
        assert!(matches!(
            cache.look("a", at),
            Looked::Known(Err(DnsError::Timeout))
        ));
    }

    #[test]
    fn names_and_questions_are_bounded() {
        let (mut cache, now) = cache();
        assert!(matches!(cache.look("a", now), Looked::Ask(_)));
        assert!(matches!(cache.look("b", now), Looked::Ask(_)));
        assert!(matches!(cache.look("c", now), Looked::Full));
        for name in ["a", "b"] {
            cache.learn(name, Ok((vec![1], Duration::from_secs(9))), now);
        }
        for number in 0..100 {
            let name = number.to_string();
            assert!(matches!(cache.look(&name, now), Looked::Ask(_)));
            cache.learn(&name, Ok((vec![1], Duration::from_secs(9))), now);
            assert!(cache.len() <= 3);
        }
    }
}
