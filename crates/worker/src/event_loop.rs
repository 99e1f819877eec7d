//! The event loop of a worker that waits for its sockets itself.
//!
//! ```text
//! wait for sockets ─▶ turn of what is driven: sockets, its timers ─▶ tasks of the worker, if one was woken ─▶ …
//! ```
//!
//! A turn costs no task of the runtime, none of its timers and no look at its driver. What needs the runtime (name
//! resolution, connecting, accepting, sleeping) is driven by one thread beside the workers, which wakes their tasks.

use std::cell::{Cell, OnceCell, RefCell};
use std::future::Future;
use std::io;
use std::pin::pin;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Wake, Waker};
use std::time::{Duration, Instant};

use tokio::runtime::{Builder, Handle};
use tokio::sync::oneshot;
use tokio::task::LocalSet;

use crate::sockets::{Readiness, Sockets};
use crate::{outside, wake};

thread_local! {
    static OF_WORKER: RefCell<Option<Rc<EventLoop>>> = const { RefCell::new(None) };
}

/// A turn that is due later than this is far away.
const FAR: Duration = Duration::from_secs(1);

/// What an event loop drives: the owner of the sockets.
pub trait Driven {
    /// A socket with this key is ready; its turn follows.
    fn ready(&self, key: u64, readiness: Readiness);
    /// One turn, which began at `now`. `waker` asks for another one. Returns whether there is more to do at once.
    fn turn(&self, now: Instant, waker: &Waker) -> bool;
    /// When the next turn is due at the latest.
    fn next(&self) -> Option<Instant>;
    /// The worker ends: no turn follows.
    fn end(&self);
}

/// The event loop of this thread.
pub struct EventLoop {
    sockets: Rc<Sockets>,
    driven: OnceCell<Rc<dyn Driven>>,
    /// When the present turn began, or the last one.
    now: Cell<Instant>,
    /// The turn that was due next when the loop last waited, and until when that is far away.
    far: Cell<Option<(Instant, Instant)>>,
    tasks: Arc<Woken>,
    turns: Arc<Woken>,
    sleep: Arc<Sleep>,
}

/// Whether something was woken.
struct Woken {
    woken: AtomicBool,
    sleep: Arc<Sleep>,
}

/// Whether the loop waits, and what ends its wait.
struct Sleep {
    sleeps: AtomicBool,
    waker: crate::sockets::Waker,
}

impl Wake for Woken {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.woken.store(true, Ordering::SeqCst);
        // A loop that does not sleep looks before it does.
        if self.sleep.sleeps.swap(false, Ordering::SeqCst)
            && let Err(error) = self.sleep.waker.wake()
        {
            tracing::error!(%error, "a worker cannot be woken");
        }
    }
}

impl EventLoop {
    /// The event loop of this thread; none where the runtime waits.
    #[must_use]
    pub fn of_worker() -> Option<Rc<Self>> {
        OF_WORKER.with_borrow(Clone::clone)
    }

    /// The sockets that it waits for.
    #[must_use]
    pub fn sockets(&self) -> &Rc<Sockets> {
        &self.sockets
    }

    /// Drives this from now on. A loop drives one thing.
    ///
    /// # Errors
    /// Returns it when the loop drives something already.
    pub fn drive(&self, driven: Rc<dyn Driven>) -> Result<(), Rc<dyn Driven>> {
        self.driven.set(driven)
    }

    fn new() -> io::Result<Self> {
        let sockets = Sockets::new()?;
        let sleep = Arc::new(Sleep {
            sleeps: AtomicBool::new(false),
            waker: sockets.waker()?,
        });
        let woken = || {
            Arc::new(Woken {
                // Both have a first turn.
                woken: AtomicBool::new(true),
                sleep: sleep.clone(),
            })
        };
        Ok(Self {
            sockets: Rc::new(sockets),
            driven: OnceCell::new(),
            now: Cell::new(Instant::now()),
            far: Cell::new(None),
            tasks: woken(),
            turns: woken(),
            sleep: sleep.clone(),
        })
    }

    /// Waits for sockets and wake-ups, at most until the next turn is due; not at all if there is more to do.
    fn wait(&self, more: bool) {
        let driven = self.driven.get();
        let next = driven.and_then(|driven| driven.next());
        self.sleep.sleeps.store(true, Ordering::SeqCst);
        let woken = [&self.tasks, &self.turns].map(|one| one.woken.load(Ordering::SeqCst));
        let asleep = wake::parks();
        let most = match more || woken.contains(&true) {
            true => Some(Duration::ZERO),
            false => next.map(|next| self.time_until(next, asleep)),
        };
        self.sockets.wait(most, |key, readiness| {
            if let Some(driven) = driven {
                driven.ready(key, readiness);
            }
        });
        self.sleep.sleeps.store(false, Ordering::SeqCst);
        self.now.set(wake::woke());
    }

    /// How long a wait for a turn that is due at `next` may last. It hardly ever lasts until then, and comparing moments
    /// takes a tenth of the instructions of subtracting them: so one that is far away is waited for in parts.
    fn time_until(&self, next: Instant, now: Instant) -> Duration {
        let far = self.far.get().filter(|(of, _)| *of == next);
        let (_, until) = far.unwrap_or_else(|| {
            let known = (next, next.checked_sub(FAR).unwrap_or(now));
            self.far.set(Some(known));
            known
        });
        match now < until {
            true => FAR,
            false => next.saturating_duration_since(now),
        }
    }
}

/// Runs a future, and the tasks that it spawns locally, to its end with an event loop on this thread.
///
/// # Errors
/// When the system refuses a thread or a descriptor.
pub fn block_on<F: Future>(future: F) -> io::Result<F::Output> {
    let beside = Beside::start("loop")?;
    drive(&beside.handle, &LocalSet::new(), future)
}

/// As [`block_on`], with a runtime that drives what the tasks await.
pub(crate) fn run<T: 'static>(handle: &Handle, body: impl Future<Output = T> + 'static) -> io::Result<T> {
    let local = LocalSet::new();
    local.spawn_local(outside::take());
    // The root future is polled whenever any task is woken, so it only holds the handle of a task.
    let body = local.spawn_local(body);
    match drive(handle, &local, body)? {
        Ok(ended) => Ok(ended),
        // No caller aborts the task, so a join error means that it has panicked.
        Err(error) => std::panic::resume_unwind(error.into_panic()),
    }
}

fn drive<F: Future>(handle: &Handle, local: &LocalSet, root: F) -> io::Result<F::Output> {
    let _entered = handle.enter();
    let event_loop = Rc::new(EventLoop::new()?);
    OF_WORKER.set(Some(event_loop.clone()));
    let _ends = Ends(event_loop.clone());
    // What is driven spawns tasks, too.
    let _in_tasks = local.enter();
    let mut all = pin!(local.run_until(root));
    let (tasks, turns) = (&event_loop.tasks, &event_loop.turns);
    let (task_waker, turn_waker) = (Waker::from(tasks.clone()), Waker::from(turns.clone()));
    loop {
        if tasks.woken.swap(false, Ordering::SeqCst)
            && let Poll::Ready(ended) = all.as_mut().poll(&mut Context::from_waker(&task_waker))
        {
            return Ok(ended);
        }
        turns.woken.store(false, Ordering::SeqCst);
        let driven = event_loop.driven.get();
        let more = driven.is_some_and(|driven| driven.turn(event_loop.now.get(), &turn_waker));
        event_loop.wait(more);
    }
}

/// Ends the loop, also when a task panics.
struct Ends(Rc<EventLoop>);

impl Drop for Ends {
    fn drop(&mut self) {
        OF_WORKER.set(None);
        if let Some(driven) = self.0.driven.get() {
            driven.end();
        }
    }
}

/// The thread that drives a runtime for workers with event loops of their own; it ends with the last of them.
#[derive(Clone)]
pub(crate) struct Beside {
    pub(crate) handle: Handle,
    _stop: Arc<oneshot::Sender<()>>,
}

impl Beside {
    pub(crate) fn start(name: &str) -> io::Result<Self> {
        let runtime = Builder::new_current_thread().enable_all().build()?;
        let handle = runtime.handle().clone();
        let (stop, stopped) = oneshot::channel::<()>();
        std::thread::Builder::new()
            .name(format!("{name}-io"))
            .spawn(move || {
                // The sender is dropped, not used.
                let _ = runtime.block_on(stopped);
            })?;
        Ok(Self {
            handle,
            _stop: Arc::new(stop),
        })
    }
}
