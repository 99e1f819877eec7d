//! Following a subscriber: copies of the messages in which one of up to 16 identities occurs.
//!
//! | file | |
//! |---|---|
//! | `identity` | what an operator may follow, and the byte patterns of an identity |
//! | `finder` | the search of a message for all patterns at once, without parsing it |
//! | `learning` | further identities of the same subscriber: resource ids, addresses, Session-Ids |
//! | `redaction` | tokens, credentials and keys, overwritten before a copy is stored |
//! | `room` | who is followed in a function, until when; the ring of copies |
//! | `message` | a copy as admin pages show it |
//! | `ladder` | the messages of several functions in one order |
//!
//! A function has one [`Room`], and its threads are in it ([`enter`]). The places where messages enter and leave a
//! function ask [`active`], which costs one relaxed load of an atomic while no subscriber is followed.

mod finder;
mod identity;
pub mod ladder;
mod learning;
mod message;
mod redaction;
mod room;

use std::cell::{Cell, RefCell};
use std::sync::atomic::{AtomicUsize, Ordering};

pub use finder::{Hit, Search};
pub use identity::Identity;
pub use message::{Content, Direction, Message, Page, Record, rfc3339};
pub use room::{FollowError, Followed, MAX_FOLLOWED, MAX_MESSAGES, MAX_PERIOD, Room};

/// Rooms of this process in which a subscriber is followed.
static ACTIVE: AtomicUsize = AtomicUsize::new(0);

thread_local! {
    static ROOM: RefCell<Option<Room>> = const { RefCell::new(None) };
    static CAUSE: Cell<Option<Cause>> = const { Cell::new(None) };
}

/// From now on the messages of this thread are those of the function that has this room.
pub fn enter(room: Room) {
    ROOM.set(Some(room));
}

/// The room of this thread, if a subscriber is followed in it.
#[inline]
#[must_use]
pub fn active() -> Option<Room> {
    if ACTIVE.load(Ordering::Relaxed) == 0 {
        return None;
    }
    active_room()
}

#[cold]
fn active_room() -> Option<Room> {
    ROOM.with_borrow(|room| room.as_ref().filter(|room| room.is_active()).cloned())
}

/// An exchange of a followed subscriber, and the work that a function does for it.
#[derive(Clone, Copy, Debug)]
pub struct Cause {
    owner: u64,
    exchange: u64,
}

impl Cause {
    /// The exchange of a message that was found.
    #[must_use]
    pub fn new(hit: &Hit, exchange: u64) -> Self {
        let owner = hit.owner;
        Self { owner, exchange }
    }

    /// What this thread works for now.
    #[must_use]
    pub fn of_thread() -> Option<Self> {
        CAUSE.get()
    }

    /// Its exchange.
    #[must_use]
    pub fn exchange(self) -> u64 {
        self.exchange
    }

    /// The span of the exchange, by the numbers of its trace and of itself, becomes the latest of its subscriber. Returns the one before
    /// it, if that is of another trace.
    #[must_use]
    pub fn link(self, span: (u128, u64)) -> Option<(u128, u64)> {
        active_room()?.link(self.owner, span)
    }

    /// A message that is sent for it belongs to its subscriber, whatever is in it.
    #[must_use]
    pub fn hit(self) -> Hit {
        Hit {
            owner: self.owner,
            by: None,
            is_learned: true,
        }
    }

    /// Runs a step of the work.
    pub fn run<T>(self, step: impl FnOnce() -> T) -> T {
        struct Restore(Option<Cause>);
        impl Drop for Restore {
            fn drop(&mut self) {
                CAUSE.set(self.0);
            }
        }
        let _restore = Restore(CAUSE.replace(Some(self)));
        step()
    }
}
