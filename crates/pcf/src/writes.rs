//! Subscribers of which a worker writes to the UDR: one write of each at a time.

use std::cell::RefCell;
use std::rc::Rc;

use ahash::AHashMap;

/// Subscribers with a write in flight; true: there is more to write since.
#[derive(Debug, Default)]
pub(crate) struct Writes(RefCell<AHashMap<String, bool>>);

/// What becomes of a write.
#[derive(Debug)]
pub(crate) enum Started {
    /// The caller makes it.
    Now(InFlight),
    /// One is in flight, and another follows it.
    Follows,
    /// There are as many as there may be.
    Full,
}

/// A write in flight; it ends when it is dropped.
#[derive(Debug)]
pub(crate) struct InFlight {
    writes: Rc<Writes>,
    subscriber: String,
}

impl Writes {
    /// Begins a write about a subscriber, of `most` at once.
    pub(crate) fn start(self: &Rc<Self>, subscriber: &str, most: usize) -> Started {
        let mut all = self.0.borrow_mut();
        if let Some(more) = all.get_mut(subscriber) {
            *more = true;
            return Started::Follows;
        }
        if all.len() >= most {
            return Started::Full;
        }
        all.insert(subscriber.to_owned(), false);
        Started::Now(InFlight {
            writes: self.clone(),
            subscriber: subscriber.to_owned(),
        })
    }
}

impl InFlight {
    /// Whether there is more to write since it began, or since this was asked last.
    pub(crate) fn take_more(&self) -> bool {
        let mut all = self.writes.0.borrow_mut();
        all.get_mut(&self.subscriber).is_some_and(std::mem::take)
    }
}

impl Drop for InFlight {
    fn drop(&mut self) {
        self.writes.0.borrow_mut().remove(&self.subscriber);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn writes_of_a_subscriber_follow_one_another_within_a_bound() {
        let writes = Rc::new(Writes::default());
        let Started::Now(first) = writes.start("a", 1) else {
            panic!("there is none yet")
        };
        assert!(!first.take_more());
        assert!(matches!(writes.start("a", 1), Started::Follows));
        assert!(matches!(writes.start("b", 1), Started::Full));
        assert!(first.take_more() && !first.take_more());
        drop(first);
        assert!(matches!(writes.start("b", 1), Started::Now(_)));
        assert!(writes.0.borrow().is_empty());
    }
}
