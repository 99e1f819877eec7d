//! Memory that the connections of a worker hold together, and the choice of the connection that is closed above the
//! limit.
//!
//! A limit for each connection does not bound a process that takes thousands of them. So every connection of
//! a worker, of its server and of its client, has an [`Account`] of the bytes held for it, and all accounts
//! of a worker share a limit:
//!
//! * A connection that holds more than is still free gets no new requests (REFUSED_STREAM): one connection may hold
//!   half of the memory, two a third each, and so on, and connections that hold little always have room.
//! * Admitted requests may raise the total above the limit; then the connection that holds most is closed and its
//!   memory freed.
//!
//! Counted are the heads of requests in progress by what they take in memory, not on the wire ([`cost`]),
//! bodies that arrive or wait for their service, answers of other functions that are being collected, answers
//! that the peer has not taken, and the buffers of sockets. A segment that several answers share is held
//! once, however many wait for it; it counts once for each of them when the greediest is looked for.
//!
//! Not counted, and therefore on top of the limit: 2 KiB for each connection, and for the worker one buffer of 128 KiB
//! that all sockets are read into.

mod cost;
mod shared;

use std::cell::{Cell, RefCell};
use std::fmt;
use std::future::poll_fn;
use std::rc::{Rc, Weak};
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use sbi_proto::Body;
use slab::Slab;

use crate::stats::ServerStats;
pub(crate) use cost::REQUEST;
use shared::Segments;
pub(crate) use shared::Shares;

/// A connection that holds less than this share of the limit is never refused: it is not the cause of a shortage.
const MODEST: usize = 256;

thread_local! {
    static OF_WORKER: Rc<Memory> = Rc::new(Memory::default());
}

/// What all connections of a worker hold.
#[derive(Debug, Default)]
pub(crate) struct Memory {
    /// 0: not limited.
    limit: Cell<usize>,
    /// Bytes held, each once.
    held: Cell<usize>,
    /// Of these, what several accounts may hold together.
    shared: Cell<usize>,
    /// Of these, the share of accounts that were notified to close.
    leaving: Cell<usize>,
    accounts: RefCell<Slab<Weak<Account>>>,
    segments: RefCell<Segments>,
    stats: RefCell<Option<Arc<ServerStats>>>,
}

/// What a connection has to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Notice {
    /// Close, if no request is in flight: another connection needs its slot.
    Yield,
    /// Close at once: it holds most while all together exceed the limit.
    Close,
}

/// Frees what a connection holds when it has to close, at once and without the connection's task, which may have ended:
/// requests outlive the connection on which they arrived.
pub(crate) trait LetGo {
    fn let_go(&self);
}

/// What is held for one connection.
pub(crate) struct Account {
    memory: Rc<Memory>,
    key: usize,
    /// Bytes held for this connection alone.
    own: Cell<usize>,
    /// Bytes of segments that others may hold as well.
    shared: Cell<usize>,
    notice: Cell<Option<Notice>>,
    driver: RefCell<Option<Waker>>,
    holder: RefCell<Option<Weak<dyn LetGo>>>,
}

impl fmt::Debug for Account {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Account")
            .field("own", &self.own)
            .field("shared", &self.shared)
            .field("notice", &self.notice)
            .finish_non_exhaustive()
    }
}

impl Memory {
    /// Of this thread.
    pub(crate) fn of_worker() -> Rc<Self> {
        OF_WORKER.with(Rc::clone)
    }

    /// From now on with this limit (0: none), and counted here.
    pub(crate) fn attend(&self, limit: usize, stats: &Arc<ServerStats>) {
        self.limit.set(limit);
        self.stats.replace(Some(stats.clone()));
    }

    /// Bytes held.
    pub(crate) fn held(&self) -> usize {
        self.held.get()
    }

    /// Shows the worker's statistics, if it has a server, to `count`.
    pub(crate) fn stats(&self, count: impl FnOnce(&ServerStats)) {
        if let Some(stats) = &*self.stats.borrow() {
            count(stats);
        }
    }

    /// Opens an account.
    pub(crate) fn open(self: &Rc<Self>) -> Rc<Account> {
        let mut accounts = self.accounts.borrow_mut();
        let entry = accounts.vacant_entry();
        let account = Rc::new(Account {
            memory: self.clone(),
            key: entry.key(),
            own: Cell::new(0),
            shared: Cell::new(0),
            notice: Cell::new(None),
            driver: RefCell::default(),
            holder: RefCell::default(),
        });
        entry.insert(Rc::downgrade(&account));
        account
    }

    fn is_exceeded(&self) -> bool {
        let limit = self.limit.get();
        limit > 0 && self.held.get().saturating_sub(self.leaving.get()) > limit
    }

    /// Ends the connections that hold most until those that stay hold less than the limit.
    #[cold]
    fn relieve(&self) {
        while self.is_exceeded() {
            let greediest = {
                let accounts = self.accounts.borrow();
                let staying = accounts.iter().filter_map(|(_, account)| account.upgrade());
                staying
                    .filter(|account| account.notice.get() != Some(Notice::Close))
                    .max_by_key(|account| account.weight())
            };
            match greediest {
                Some(account) if account.weight() > 0 => account.notify(Notice::Close),
                _ => return,
            }
        }
    }
}

impl Account {
    /// `bytes` more are held.
    pub(crate) fn charge(&self, bytes: usize) {
        if bytes == 0 {
            return;
        }
        let memory = &self.memory;
        self.own.set(self.own.get() + bytes);
        memory.held.set(memory.held.get() + bytes);
        if self.notice.get() == Some(Notice::Close) {
            memory.leaving.set(memory.leaving.get() + bytes);
        }
        if memory.is_exceeded() {
            memory.relieve();
        }
    }

    /// `bytes` less are held.
    pub(crate) fn release(&self, bytes: usize) {
        let bytes = bytes.min(self.own.get());
        if bytes == 0 {
            return;
        }
        let memory = &self.memory;
        self.own.set(self.own.get() - bytes);
        memory.held.set(memory.held.get().saturating_sub(bytes));
        if self.notice.get() == Some(Notice::Close) {
            memory.leaving.set(memory.leaving.get().saturating_sub(bytes));
        }
    }

    /// A body waits for the peer: what of it is this connection's own, and its part in what is shared.
    pub(crate) fn hold(&self, body: &Body) -> (usize, Shares) {
        let memory = &self.memory;
        let (own, shares, more) = memory.segments.borrow_mut().hold(body);
        self.charge(own);
        if !shares.is_empty() {
            self.shared.set(self.shared.get() + shares.bytes());
            memory.shared.set(memory.shared.get() + more);
            memory.held.set(memory.held.get() + more);
            if memory.is_exceeded() {
                memory.relieve();
            }
        }
        (own, shares)
    }

    /// The counterpart of [`Account::hold`].
    pub(crate) fn let_go(&self, own: usize, shares: &Shares) {
        self.release(own);
        if shares.is_empty() {
            return;
        }
        let memory = &self.memory;
        self.shared.set(self.shared.get().saturating_sub(shares.bytes()));
        let less = memory.segments.borrow_mut().let_go(shares);
        memory.shared.set(memory.shared.get().saturating_sub(less));
        memory.held.set(memory.held.get().saturating_sub(less));
    }

    /// Whether this connection holds more than is still free.
    pub(crate) fn is_greedy(&self) -> bool {
        let (limit, held) = (self.memory.limit.get(), self.memory.held.get());
        limit > 0 && self.weight() > limit.saturating_sub(held).max(limit / MODEST)
    }

    /// Whether this connection has to do something.
    pub(crate) fn notice(&self) -> Option<Notice> {
        self.notice.get()
    }

    /// Notifies the connection, which is woken.
    pub(crate) fn notify(&self, notice: Notice) {
        if self.notice.get() == Some(Notice::Close) {
            return;
        }
        if notice == Notice::Close {
            let memory = &self.memory;
            memory.leaving.set(memory.leaving.get() + self.own.get());
        }
        self.notice.set(Some(notice));
        if notice == Notice::Close {
            let holder = self.holder.borrow().as_ref().and_then(Weak::upgrade);
            if let Some(holder) = holder {
                holder.let_go();
            }
        }
        if let Some(driver) = self.driver.borrow_mut().take() {
            driver.wake();
        }
    }

    /// What lets go when the connection has to.
    pub(crate) fn held_by(&self, holder: Weak<dyn LetGo>) {
        self.holder.replace(Some(holder));
    }

    /// The task that is woken when the connection has to do something.
    pub(crate) fn listen(&self, cx: &Context<'_>) {
        let mut driver = self.driver.borrow_mut();
        match &*driver {
            Some(waker) if waker.will_wake(cx.waker()) => {}
            _ => *driver = Some(cx.waker().clone()),
        }
    }

    /// Waits until the connection has to do something.
    pub(crate) async fn has_to_do_something(&self) {
        poll_fn(|cx| match self.notice.get() {
            Some(_) => Poll::Ready(()),
            None => {
                self.listen(cx);
                Poll::Pending
            }
        })
        .await;
    }

    /// Waits until the connection has to let go.
    pub(crate) async fn has_to_let_go(&self) {
        poll_fn(|cx| match self.notice.get() {
            Some(Notice::Close) => Poll::Ready(()),
            Some(Notice::Yield) | None => {
                self.listen(cx);
                Poll::Pending
            }
        })
        .await;
    }

    pub(crate) fn memory(&self) -> &Rc<Memory> {
        &self.memory
    }

    /// What would be free without this connection, at most.
    fn weight(&self) -> usize {
        self.own.get() + self.shared.get().min(self.memory.shared.get())
    }
}

impl Drop for Account {
    fn drop(&mut self) {
        self.release(self.own.get());
        self.memory.accounts.borrow_mut().try_remove(self.key);
    }
}

/// Bytes that are held as long as this is.
#[derive(Debug)]
pub(crate) struct Charge {
    account: Rc<Account>,
    bytes: usize,
}

impl Charge {
    pub(crate) fn new(account: Rc<Account>) -> Self {
        Self { account, bytes: 0 }
    }

    /// `bytes` now.
    pub(crate) fn set(&mut self, bytes: usize) {
        let before = std::mem::replace(&mut self.bytes, bytes);
        self.account.charge(bytes.saturating_sub(before));
        self.account.release(before.saturating_sub(bytes));
    }
}

impl Drop for Charge {
    fn drop(&mut self) {
        self.account.release(self.bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bytes::Bytes;

    fn memory(limit: usize) -> Rc<Memory> {
        let memory = Rc::new(Memory::default());
        memory.limit.set(limit);
        memory
    }

    #[test]
    fn the_greedy_are_refused_first_and_then_end() {
        let memory = memory(100_000);
        let (greedy, other, modest) = (memory.open(), memory.open(), memory.open());
        greedy.charge(50_000);
        modest.charge(100);
        other.charge(10_000);
        let refused = [&greedy, &other, &modest].map(|account| account.is_greedy());
        assert_eq!(refused, [true, false, false]);
        greedy.release(20_000);
        assert!(!greedy.is_greedy(), "there is as much left");
        greedy.charge(40_000);
        other.charge(20_000);
        assert_eq!(greedy.notice(), Some(Notice::Close));
        assert_eq!((other.notice(), modest.notice()), (None, None));
        // An account that was notified to close counts as closed, once.
        other.charge(50_000);
        assert_eq!((other.notice(), modest.notice()), (None, None));
        drop(greedy);
        assert_eq!(memory.held(), 80_100);
        other.charge(30_000);
        assert_eq!((other.notice(), modest.notice()), (Some(Notice::Close), None));
        drop((other, modest));
        assert_eq!((memory.held(), memory.leaving.get()), (0, 0));
        assert!(memory.accounts.borrow().is_empty());
    }

    #[test]
    fn what_is_shared_is_held_once_and_weighs_for_each() {
        let memory = memory(100_000);
        let body = Body::from(Bytes::from(vec![1; 60_000]));
        let accounts: Vec<_> = (0..5).map(|_| memory.open()).collect();
        let answers = vec![body; accounts.len()];
        let each = accounts.iter().zip(&answers);
        let held: Vec<_> = each.map(|(account, body)| account.hold(body)).collect();
        assert_eq!(memory.held(), 60_000);
        assert!(accounts.iter().all(|account| account.weight() == 60_000));
        assert!(accounts.iter().all(|account| account.notice().is_none()));
        let own = accounts[0].hold(&Body::from(vec![2; 30_000]));
        assert_eq!((own.0, memory.held()), (30_000, 90_000));
        assert!(
            accounts[0].is_greedy(),
            "it waits for more than there is room for"
        );
        accounts[0].let_go(own.0, &own.1);
        for (account, (own, shares)) in accounts.iter().zip(&held) {
            account.let_go(*own, shares);
        }
        assert_eq!(memory.held(), 0);
    }

    #[test]
    fn without_a_limit_nothing_is_refused() {
        let account = memory(0).open();
        account.charge(usize::MAX / 2);
        assert!(!account.is_greedy());
        assert_eq!(account.notice(), None);
    }
}
