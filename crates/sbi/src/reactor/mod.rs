//! The loop of a worker: what is ready runs to its end, then what it wrote leaves.
//!
//! ```text
//! sockets that are ready ─▶ read ─▶ frames ─▶ whole requests ─▶ service ─┬─▶ answer into the peer's output
//!                             │                                          └─▶ request into a producer's output, parked
//!                             └─▶ whole answers ─▶ the parked request goes on ─▶ answer into the peer's output
//! … until nothing is ready; then timers; then each connection with output writes once.
//! ```
//!
//! A [`Reactor`] is driven by the event loop of its worker, which asks the kernel which sockets are ready. Everything
//! between that and the next question is one *turn*: no task, no timer of the runtime and no system call but reads and
//! writes happen in it. A request whose service has to wait is parked in a slot of its own, whose waker brings it back.
//! On a thread whose runtime waits, the reactor is one task of it ([`guest`]), and the runtime wakes the [`Member`]s.
//!
//! What can be waiting is bounded by memory: each parked request is charged to its connection (`crate::memory`).

mod date;
mod edges;
mod guest;
mod ready;
mod tasks;
#[cfg(test)]
mod tests;
mod waited;
mod wheel;

use std::cell::{Cell, RefCell};
use std::net::TcpStream;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::{Rc, Weak};
use std::sync::Arc;
use std::task::{Context, Waker};
use std::time::Instant;

use slab::Slab;
use worker::{Driven, EventLoop, Readiness, Sockets};

use date::Date;
pub(crate) use edges::Edges;
use ready::{Ready, Target, Wakeable};
use tasks::Tasks;
pub(crate) use tasks::Work;
use waited::Waited;
pub(crate) use wheel::TimerKey;
use wheel::Wheel;

/// What one system call reads at most. Measured with a relay of 4 KB
/// messages, 256 at a time: 64 KiB cost 7.9 µs of CPU per request, 128 KiB 6.9 µs, 256 KiB 6.7 µs.
const READ: usize = 128 * 1024;
/// Wake-ups that a turn handles before the sockets are asked again.
const STEPS: usize = 128;
/// The clock is read again after as many of them.
const CLOCK: usize = 8;

thread_local! {
    static OF_WORKER: RefCell<Weak<Reactor>> = const { RefCell::new(Weak::new()) };
}

/// A connection as the reactor sees it.
pub(crate) trait Member {
    /// Its socket may be ready, or it was woken for something else.
    fn turn(self: Rc<Self>, cx: &mut Context<'_>);
    /// Writes its output as far as the socket takes it.
    fn flush(self: Rc<Self>, cx: &mut Context<'_>);
    /// A timer has expired; `tag` is the one it was set with.
    fn timer(self: Rc<Self>, tag: u64, cx: &mut Context<'_>);
    /// Its handling has panicked: it closes its socket and leaves.
    fn panicked(self: Rc<Self>);
}

/// Key of a member. A slot is reused, its serial is not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct MemberKey {
    index: u32,
    serial: u32,
}

impl MemberKey {
    /// The key of its socket.
    fn token(self) -> u64 {
        u64::from(self.serial) << 32 | u64::from(self.index)
    }
}

/// A timer's target.
#[derive(Clone, Copy, Debug)]
struct Due {
    member: MemberKey,
    tag: u64,
}

struct Entry {
    serial: u32,
    called: Rc<Called>,
    wakeable: Arc<Wakeable>,
    /// What its socket is ready for.
    edges: Option<Rc<Edges>>,
    /// It is among those that have something to write.
    dirty: bool,
}

/// What a call of a member needs, so that a call begins with one count.
struct Called {
    member: Rc<dyn Member>,
    waker: Waker,
}

/// The loop of this thread.
pub(crate) struct Reactor {
    /// The sockets of its members; `None` where the runtime waits for each.
    sockets: Option<Rc<Sockets>>,
    ready: Arc<Ready>,
    members: RefCell<Slab<Entry>>,
    serial: Cell<u32>,
    tasks: Tasks,
    dirty: RefCell<Vec<MemberKey>>,
    /// Members with more to do after the other members had their turn.
    later: RefCell<Vec<Arc<Wakeable>>>,
    timers: RefCell<Wheel<Due>>,
    scratch: RefCell<Vec<u8>>,
    now: Cell<Instant>,
    waited: Waited,
    date: Date,
    ended: Cell<bool>,
}

impl Reactor {
    /// Of this thread; starts it where there is none. To be called inside a `LocalSet`.
    pub(crate) fn of_worker() -> Rc<Self> {
        let running = OF_WORKER.with_borrow(Weak::upgrade);
        if let Some(running) = running.filter(|running| !running.ended.get()) {
            return running;
        }
        let now = Instant::now();
        let ready = Arc::new(Ready::new(now));
        let event_loop = EventLoop::of_worker();
        let reactor = Rc::new(Self {
            sockets: event_loop.as_ref().map(|event_loop| event_loop.sockets().clone()),
            tasks: Tasks::new(ready.clone()),
            ready,
            members: RefCell::default(),
            serial: Cell::new(0),
            dirty: RefCell::default(),
            later: RefCell::default(),
            timers: RefCell::new(Wheel::new(now)),
            scratch: RefCell::new(vec![0; READ]),
            now: Cell::new(now),
            waited: Waited::new(now),
            date: Date::default(),
            ended: Cell::new(false),
        });
        OF_WORKER.set(Rc::downgrade(&reactor));
        let driven = event_loop.is_some_and(|event_loop| event_loop.drive(reactor.clone()).is_ok());
        if !driven {
            // Reads of all members count for one task here, which must not exhaust its budget.
            tokio::task::spawn_local(tokio::task::unconstrained(guest::run(reactor.clone())));
        }
        reactor
    }

    /// The moment of the present turn, or of the last one.
    pub(crate) fn now(&self) -> Instant {
        self.now.get()
    }

    /// Gives an answer the `Date` that each has to have.
    pub(crate) fn stamp(&self, fields: &mut http2::Fields) {
        self.date.stamp(fields, self.now.get());
    }

    /// Upper bound of the time that bytes were pending for what is handled now.
    pub(crate) fn waited(&self) -> &Waited {
        &self.waited
    }

    /// Memory to read into, shared by all members.
    pub(crate) fn scratch(&self) -> &RefCell<Vec<u8>> {
        &self.scratch
    }

    /// A new member; `make` gets its key. Its first turn comes at once. `finishes`: what it reads are answers, which go
    /// before requests.
    pub(crate) fn join<M: Member + 'static>(
        &self,
        finishes: bool,
        make: impl FnOnce(MemberKey) -> Rc<M>,
    ) -> Rc<M> {
        let serial = self.serial.get().wrapping_add(1);
        self.serial.set(serial);
        let mut members = self.members.borrow_mut();
        let place = members.vacant_entry();
        let index = u32::try_from(place.key()).unwrap_or(u32::MAX);
        let wakeable = self.ready.wakeable(Target::Member(index), finishes);
        let member = make(MemberKey { index, serial });
        let waker = Waker::from(wakeable.clone());
        waker.wake_by_ref();
        place.insert(Entry {
            serial,
            called: Rc::new(Called {
                member: member.clone(),
                waker,
            }),
            wakeable,
            edges: None,
            dirty: false,
        });
        member
    }

    /// Whether it waits for sockets, not the runtime.
    pub(crate) fn waits(&self) -> bool {
        self.sockets.is_some()
    }

    /// From now on gives a member a turn when the socket is ready; returns what it is ready for. `None`: the runtime waits
    /// for it.
    pub(crate) fn watch(&self, key: MemberKey, socket: &TcpStream) -> Option<Rc<Edges>> {
        let sockets = self.sockets.as_ref()?;
        sockets.add(socket, key.token()).ok()?;
        let edges = Rc::new(Edges::new(sockets.clone()));
        self.entry(key, |entry| entry.edges = Some(edges.clone()))?;
        Some(edges)
    }

    /// The member has ended: it gets no turn and no timer from now on.
    pub(crate) fn leave(&self, key: MemberKey) {
        if self.entry(key, |_| ()).is_some() {
            let left = self.members.borrow_mut().try_remove(key.index as usize);
            // It may hold the last reference to something that calls the reactor.
            drop(left);
        }
    }

    /// The member has something to write: it is asked to at the end of the turn.
    pub(crate) fn has_output(&self, key: MemberKey) {
        self.entry(key, |entry| {
            if !std::mem::replace(&mut entry.dirty, true) {
                self.dirty.borrow_mut().push(key);
                if !self.ready.is_running() {
                    entry.called.waker.wake_by_ref();
                }
            }
        });
    }

    /// The member has more to do after the other members had their turn and the sockets were polled.
    pub(crate) fn has_more(&self, key: MemberKey) {
        if let Some(wakeable) = self.entry(key, |entry| entry.wakeable.clone()) {
            self.later.borrow_mut().push(wakeable);
        }
    }

    /// Sets a timer of a member.
    pub(crate) fn set_timer(&self, member: MemberKey, tag: u64, at: Instant) -> TimerKey {
        let mut timers = self.timers.borrow_mut();
        if self.ready.is_running() {
            return timers.set(at, Due { member, tag });
        }
        let before = timers.next();
        let key = timers.set(at, Due { member, tag });
        // Outside a turn the reactor may sleep until the timer that was next before.
        if timers.next() != before {
            self.ready.wake_runner();
        }
        key
    }

    /// Cancels a timer that may have expired, if there is one.
    pub(crate) fn cancel_timer(&self, key: impl Into<Option<TimerKey>>) {
        if let Some(key) = key.into() {
            self.timers.borrow_mut().cancel(key);
        }
    }

    /// Runs work for a member: at once, and if it has to wait, again each time it is woken.
    pub(crate) fn run(&self, owner: MemberKey, work: Work) {
        self.tasks.run(owner, work);
    }

    /// Gives up the parked work of a member; it is dropped before another member has its turn.
    pub(crate) fn abort(&self, owner: MemberKey) {
        self.tasks.abort(owner);
        if !self.ready.is_running() {
            self.ready.wake_runner();
        }
    }

    /// One turn, which begins at `now`; whether there is more to do at once.
    fn turn(&self, now: Instant, waker: &Waker) -> bool {
        self.ready.begin(waker, now);
        self.now.set(now);
        self.waited.begin(now);
        self.expire();
        let mut steps = 0;
        loop {
            self.tasks.drop_given_up();
            let Some(one) = self.ready.next() else {
                if !self.write() {
                    break;
                }
                continue;
            };
            match one.target {
                Target::Member(index) => {
                    let turn = || self.with(index, |member, cx| member.turn(cx));
                    self.waited.woken(one.since, turn);
                }
                Target::Task(index) => self.tasks.resume(index),
            }
            steps += 1;
            if steps >= STEPS {
                break;
            }
            if steps % CLOCK == 0 {
                self.now.set(Instant::now());
                self.expire();
            }
        }
        self.write();
        self.tasks.drop_given_up();
        let mut later = self.later.borrow_mut();
        let more = !later.is_empty();
        later.drain(..).for_each(std::task::Wake::wake);
        // Output that the last writes have produced wakes no task while the turn runs.
        let unwritten = !self.dirty.borrow().is_empty();
        self.ready.end() || more || unwritten
    }

    /// Looks at a member's entry, unless it has left.
    fn entry<R>(&self, key: MemberKey, look: impl FnOnce(&mut Entry) -> R) -> Option<R> {
        let mut members = self.members.borrow_mut();
        let entry = members.get_mut(key.index as usize)?;
        (entry.serial == key.serial).then(|| look(entry))
    }

    /// Calls the member in this place, if there is one. One whose handling panics is closed; others go on.
    fn with(&self, index: u32, call: impl FnOnce(Rc<dyn Member>, &mut Context<'_>)) {
        let found = self
            .members
            .borrow()
            .get(index as usize)
            .map(|entry| entry.called.clone());
        let Some(called) = found else { return };
        // A member that has panicked is not called again, so that no code sees its inconsistent state.
        let outcome = catch_unwind(AssertUnwindSafe(|| {
            call(called.member.clone(), &mut Context::from_waker(&called.waker));
        }));
        if outcome.is_err() {
            tracing::error!("handling of a connection panicked: closed it, others go on");
            called.member.clone().panicked();
        }
    }

    /// Lets each member with output write it; whether there was one.
    fn write(&self) -> bool {
        if self.dirty.borrow().is_empty() {
            return false;
        }
        let mut dirty = std::mem::take(&mut *self.dirty.borrow_mut());
        let any = !dirty.is_empty();
        for key in dirty.drain(..) {
            if self.entry(key, |entry| entry.dirty = false).is_some() {
                self.with(key.index, |member, cx| member.flush(cx));
            }
        }
        let mut left = self.dirty.borrow_mut();
        if left.is_empty() {
            // The room is used again.
            *left = dirty;
        }
        any
    }

    fn expire(&self) {
        let now = self.now.get();
        if self.timers.borrow().next().is_none_or(|next| next > now) {
            return;
        }
        let mut due = Vec::new();
        self.timers.borrow_mut().expire(now, &mut due);
        for Due { member, tag } in due {
            if self.entry(member, |_| ()).is_some() {
                self.with(member.index, |one, cx| one.timer(tag, cx));
            }
        }
    }
}

impl Driven for Reactor {
    fn ready(&self, key: u64, readiness: Readiness) {
        // The lower half of a key is the index.
        let (index, serial) = (key as u32, (key >> 32) as u32);
        if let Some(entry) = self.members.borrow().get(index as usize)
            && let Some(edges) = entry.edges.as_ref().filter(|_| entry.serial == serial)
        {
            edges.rise(readiness);
            self.ready.queue(&entry.wakeable);
        }
    }

    fn turn(&self, now: Instant, waker: &Waker) -> bool {
        self.turn(now, waker)
    }

    fn next(&self) -> Option<Instant> {
        self.timers.borrow().next()
    }

    /// Members and parked work hold the reactor: it lets go of them, and is not used again.
    fn end(&self) {
        self.ended.set(true);
        let members = std::mem::take(&mut *self.members.borrow_mut());
        drop(members);
        self.tasks.clear();
    }
}
