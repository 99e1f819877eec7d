//! Since when the bytes of a connection lie unread that its turns have left in the socket.

use std::os::fd::AsFd;
use std::time::Instant;

use rustix::io::ioctl_fionread;

/// Number of bytes that can be read from a socket now; 0 where the system does not say.
#[must_use]
pub fn unread(socket: impl AsFd) -> usize {
    ioctl_fionread(socket).map_or(0, |bytes| usize::try_from(bytes).unwrap_or(usize::MAX))
}

/// What a busy connection left unread at the end of its turns.
///
/// What lay there at a mark came before it; what is delivered when all of that has been, came after it. So the mark before
/// the present one bounds the time that a message has waited.
#[derive(Debug, Default)]
pub struct Backlog {
    since: Option<Instant>,
    mark: Option<Mark>,
}

#[derive(Debug)]
struct Mark {
    at: Instant,
    /// Bytes of then that are not delivered yet.
    rest: usize,
}

impl Backlog {
    /// No byte that is delivered now lay there before this; none: the last turn left none.
    #[must_use]
    pub const fn since(&self) -> Option<Instant> {
        self.since
    }

    /// A turn has ended; `unread` returns the number of bytes that it has left.
    pub fn left(&mut self, now: Instant, unread: impl FnOnce() -> usize) {
        if self.mark.is_none() {
            self.since.get_or_insert(now);
            self.mark = Some(Mark {
                at: now,
                rest: unread(),
            });
        }
    }

    /// Bytes were delivered.
    pub fn delivered(&mut self, bytes: usize) {
        if let Some(mark) = &mut self.mark {
            mark.rest = mark.rest.saturating_sub(bytes);
            if mark.rest == 0 {
                self.since = Some(mark.at);
                self.mark = None;
            }
        }
    }

    /// The socket has no more bytes.
    pub fn drained(&mut self) {
        *self = Self::default();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn the_bound_follows_a_queue_that_never_empties() {
        let began = Instant::now();
        let at = |millis| began + Duration::from_millis(millis);
        let mut backlog = Backlog::default();
        assert_eq!(backlog.since(), None);
        // 100 bytes lie unread at all times; each turn of 10 ms delivers 50.
        for turn in 1..100 {
            backlog.left(at(10 * turn), || 100);
            let waited = at(10 * turn) - backlog.since().unwrap();
            assert!(waited <= Duration::from_millis(40), "{turn}: {waited:?}");
            backlog.delivered(50);
        }
        backlog.drained();
        assert_eq!(backlog.since(), None);
    }

    #[test]
    fn the_bound_grows_with_a_queue_that_grows() {
        let began = Instant::now();
        let at = |millis| began + Duration::from_millis(millis);
        let mut backlog = Backlog::default();
        for turn in 1..100 {
            backlog.left(at(10 * turn), || 50 * turn as usize);
            backlog.delivered(25);
        }
        let waited = at(1_000) - backlog.since().unwrap();
        assert!(waited >= Duration::from_millis(500), "{waited:?}");
    }
}
