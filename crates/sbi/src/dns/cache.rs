//! What is remembered of names: answers for their time to live, that there is none, and who is asking.
//! Time is an argument.

use std::sync::Arc;
use std::time::{Duration, Instant};

use ahash::AHashMap;
use tokio::sync::watch;

use super::DnsError;

/// The records of a name, or why there are none.
pub(super) type Answer<T> = Result<Arc<[T]>, DnsError>;
/// Hears the answer when it is there.
pub(super) type Hears<T> = watch::Receiver<Option<Answer<T>>>;

/// What is to be done for a name.
pub(super) enum Looked<T> {
    /// This is it.
    Known(Answer<T>),
    /// Somebody asks; wait.
    Wait(Hears<T>),
    /// Ask, and [`Cache::learn`]; then wait.
    Ask(Hears<T>),
    /// Too many names are being asked.
    Full,
}

/// Times that bound what is remembered.
#[derive(Clone, Copy, Debug)]
pub(super) struct Times {
    pub(super) max_ttl: Duration,
    pub(super) negative_ttl: Duration,
    pub(super) retry_after: Duration,
    pub(super) max_stale: Duration,
}

struct Entry<T> {
    /// The last answer, and until when it is used.
    known: Option<(Answer<T>, Instant)>,
    /// Until when records may be used while nobody answers.
    stale_until: Instant,
    asking: Option<watch::Sender<Option<Answer<T>>>>,
}

/// Records of one kind by name.
pub(super) struct Cache<T> {
    entries: AHashMap<Box<str>, Entry<T>>,
    most: usize,
    asking: usize,
    most_asking: usize,
    times: Times,
}

impl<T> Cache<T> {
    pub(super) fn new(most: usize, most_asking: usize, times: Times) -> Self {
        Self {
            entries: AHashMap::new(),
            most: most.max(1),
            asking: 0,
            most_asking,
            times,
        }
    }

    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }

    pub(super) fn look(&mut self, name: &str, now: Instant) -> Looked<T> {
        if let Some(entry) = self.entries.get(name) {
            match (&entry.known, &entry.asking) {
                (Some((answer, until)), _) if now < *until => return Looked::Known(answer.clone()),
                (_, Some(told)) => return Looked::Wait(told.subscribe()),
                _ => {}
            }
        }
        if self.asking >= self.most_asking {
            return Looked::Full;
        }
        if !self.entries.contains_key(name) && self.entries.len() >= self.most && !self.make_room(now) {
            return Looked::Full;
        }
        let (told, hears) = watch::channel(None);
        let entry = self.entries.entry(name.into()).or_insert_with(|| Entry {
            known: None,
            stale_until: now,
            asking: None,
        });
        entry.asking = Some(told);
        self.asking += 1;
        Looked::Ask(hears)
    }

    /// A question has been answered with records and their time to live (no records: there are none), or not.
    pub(super) fn learn(&mut self, name: &str, answer: Result<(Vec<T>, Duration), DnsError>, now: Instant) {
        let times = self.times;
        let Some(entry) = self.entries.get_mut(name) else {
            return;
        };
        let told = entry.asking.take();
        self.asking = self.asking.saturating_sub(usize::from(told.is_some()));
        let answer = match answer {
            Ok((records, ttl)) if !records.is_empty() => {
                let records: Answer<T> = Ok(records.into());
                let until = now + ttl.min(times.max_ttl);
                entry.stale_until = until + times.max_stale;
                entry.known = Some((records.clone(), until));
                records
            }
            Ok((_, ttl)) => {
                let none = Err(DnsError::NoRecords);
                entry.known = Some((none.clone(), now + ttl.min(times.negative_ttl)));
                none
            }
            Err(error) => {
                let stale = entry.known.take().map(|(answer, _)| answer);
                let stale = stale.filter(|answer| answer.is_ok() && now < entry.stale_until);
                let answer = stale.unwrap_or(Err(error));
                entry.known = Some((answer.clone(), now + times.retry_after));
                answer
            }
        };
        if let Some(told) = told {
            told.send_replace(Some(answer));
        }
    }

    /// Drops a name that nobody asks for: one whose time is over if there is one among those looked at.
    fn make_room(&mut self, now: Instant) -> bool {
        /// A look at a few keeps the time bounded.
        const SEARCH: usize = 64;
        let mut idle = self.entries.iter().filter(|(_, entry)| entry.asking.is_none());
        let over = |entry: &Entry<T>| entry.known.as_ref().is_none_or(|(_, until)| now >= *until);
        let mut found = idle.next();
        if let Some((_, entry)) = found
            && !over(entry)
        {
            found = idle.take(SEARCH).find(|(_, entry)| over(entry)).or(found);
        }
        let Some(name) = found.map(|(name, _)| name.clone()) else {
            return false;
        };
        self.entries.remove(&name);
        true
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
    fn one_asks_the_others_wait_and_all_know_until_the_time_is_over() {
        let (mut cache, now) = cache();
        assert!(matches!(cache.look("a", now), Looked::Ask(_)));
        let Looked::Wait(heard) = cache.look("a", now) else {
            panic!("expected to wait");
        };
        cache.learn("a", Ok((vec![1, 2], Duration::from_secs(30))), now);
        assert_eq!(heard.borrow().clone().unwrap().unwrap().to_vec(), [1, 2]);
        let later = now + Duration::from_secs(29);
        assert_eq!(known(cache.look("a", later)), Some(vec![1, 2]));
        assert!(matches!(
            cache.look("a", now + Duration::from_secs(30)),
            Looked::Ask(_)
        ));
    }

    #[test]
    fn nothing_and_failures_are_remembered_for_a_while() {
        let (mut cache, now) = cache();
        let _ = cache.look("a", now);
        cache.learn("a", Ok((Vec::new(), Duration::from_secs(600))), now);
        let told = cache.look("a", now + Duration::from_secs(4));
        assert!(matches!(told, Looked::Known(Err(DnsError::NoRecords))));
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
    fn an_old_answer_is_used_while_nobody_answers_but_not_for_ever() {
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
