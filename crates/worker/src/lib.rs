//! One thread per core, each with a runtime of its own, and the shutdown they share.
//!
//! The data path of every function runs on *workers*: operating-system threads that each own a
//! single-threaded runtime, their listeners (`SO_REUSEPORT`), connection pools and caches. Nothing on a
//! worker is `Send`, so nothing on it can be shared by accident; what workers have in common they read
//! from snapshots. The control path (audits, reloads, admin) runs elsewhere.
//!
//! [`posts`] let workers send messages to one another. [`spawn`] starts the workers, [`control`] a thread for other
//! work, [`Shutdown`] makes all of them drain, and [`Threads`] joins them for the owner that stops the function.

mod backlog;
mod event_loop;
mod listen;
pub mod outside;
mod post;
mod random;
mod shutdown;
mod sockets;
mod threads;
mod wake;

use std::future::Future;
use std::io;
use std::thread::JoinHandle;

pub use backlog::{Backlog, unread};
use event_loop::Beside;
pub use event_loop::{Driven, EventLoop, block_on};
pub use listen::{bind, bind_each, is_taken, listen, reserve};
pub use post::{Mailbox, Post, posts};
pub use random::Random;
pub use shutdown::Shutdown;
pub use sockets::{Readiness, Sockets};
pub use threads::{Threads, control};
pub use wake::woke_at;

/// The seat of a worker: its number, the number of workers, its shutdown.
#[derive(Clone, Debug)]
pub struct WorkerContext {
    /// Position of this worker, from 0.
    pub index: usize,
    /// How many workers were started together.
    pub count: usize,
    /// Fires when the process (or the function) is asked to stop.
    pub shutdown: Shutdown,
}

/// Which cores the workers run on.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Pinning {
    /// The scheduler decides.
    #[default]
    Free,
    /// Worker `i` runs on the core with the `i`th id of this list (modulo its length).
    Cores(Vec<usize>),
}

impl Pinning {
    /// Pinning to these cores; an empty list pins to none.
    #[must_use]
    pub fn to(cores: &[usize]) -> Self {
        match cores {
            [] => Self::Free,
            cores => Self::Cores(cores.to_vec()),
        }
    }
}

/// What a worker waits with.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Waiting {
    /// A runtime of its own: for connections that are tasks of the runtime.
    #[default]
    Runtime,
    /// An event loop of its own ([`EventLoop`]): for connections whose sockets that drives. Tasks that await the runtime
    /// are woken by another thread.
    Sockets,
}

/// How many workers a setting asks for: 0 is one per core that this process may use.
#[must_use]
pub fn count(wanted: usize) -> usize {
    match wanted {
        0 => std::thread::available_parallelism().map_or(1, usize::from),
        wanted => wanted,
    }
}

/// A set of running workers.
#[derive(Debug)]
pub struct Workers {
    threads: Vec<JoinHandle<io::Result<()>>>,
    shutdown: Shutdown,
}

/// Starts `count` workers named `name-0`, `name-1`, …; each runs `body` to its end on its own runtime.
///
/// `body` is called once on each new thread; the future it returns need not be `Send`. It is expected to
/// end some time after `shutdown` fires. Tasks it spawned with `tokio::task::spawn_local` end with it.
///
/// # Errors
/// When the system refuses a thread. Errors of `body` are reported by [`Workers::join`].
pub fn spawn<F, Fut>(
    count: usize,
    name: &str,
    pinning: &Pinning,
    waiting: Waiting,
    shutdown: &Shutdown,
    body: F,
) -> io::Result<Workers>
where
    F: Fn(WorkerContext) -> Fut + Clone + Send + 'static,
    Fut: Future<Output = io::Result<()>> + 'static,
{
    let beside = match waiting {
        Waiting::Runtime => None,
        Waiting::Sockets => Some(Beside::start(name)?),
    };
    let mut threads = Vec::with_capacity(count);
    for index in 0..count {
        let context = WorkerContext {
            index,
            count,
            shutdown: shutdown.clone(),
        };
        let core = match pinning {
            Pinning::Free => None,
            Pinning::Cores(ids) => ids.get(index % ids.len().max(1)).copied(),
        };
        let (body, beside) = (body.clone(), beside.clone());
        let thread = std::thread::Builder::new()
            .name(format!("{name}-{index}"))
            .spawn(move || {
                if let Some(id) = core
                    && !core_affinity::set_for_current(core_affinity::CoreId { id })
                {
                    tracing::warn!(
                        core = id,
                        "could not pin this worker to its core; it runs unpinned"
                    );
                }
                if let Some(beside) = beside {
                    return event_loop::run(&beside.handle, body(context))?;
                }
                let runtime = tokio::runtime::Builder::new_current_thread()
                    .enable_all()
                    .on_thread_park(|| {
                        wake::parks();
                    })
                    .on_thread_unpark(|| {
                        wake::woke();
                    })
                    .build()?;
                run(&runtime, body(context))
            })?;
        threads.push(thread);
    }
    Ok(Workers {
        threads,
        shutdown: shutdown.clone(),
    })
}

/// Runs a future, and the tasks that it spawns locally, to its end. A `LocalSet` polls its own root future whenever any
/// task wakes, so the future runs in a task of its own and the root only holds that task's handle.
pub(crate) fn run<T: 'static>(
    runtime: &tokio::runtime::Runtime,
    body: impl Future<Output = T> + 'static,
) -> T {
    let local = tokio::task::LocalSet::new();
    local.spawn_local(outside::take());
    let task = local.spawn_local(body);
    match local.block_on(runtime, task) {
        Ok(ended) => ended,
        // No caller aborts the task, so a join error means that it has panicked.
        Err(error) => std::panic::resume_unwind(error.into_panic()),
    }
}

impl Workers {
    /// Asks the workers to stop and waits until they have. Blocks the calling thread.
    ///
    /// # Errors
    /// The first error that a worker ended with; a panic of a worker is reported as one.
    pub fn stop(self) -> io::Result<()> {
        self.shutdown.fire();
        self.join()
    }

    /// Waits until every worker has ended. Blocks the calling thread.
    ///
    /// # Errors
    /// As [`Workers::stop`].
    pub fn join(self) -> io::Result<()> {
        let mut outcome = Ok(());
        for thread in self.threads {
            let name = thread.thread().name().unwrap_or("worker").to_owned();
            let ended = thread
                .join()
                .unwrap_or_else(|_| Err(io::Error::other(format!("worker {name} panicked; see the log"))));
            if outcome.is_ok() {
                outcome = ended;
            }
        }
        outcome
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::{Cell, RefCell};
    use std::io::Write as _;
    use std::net::{TcpListener, TcpStream};
    use std::rc::Rc;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::task::Waker;
    use std::time::{Duration, Instant};

    const BOTH: [Waiting; 2] = [Waiting::Runtime, Waiting::Sockets];

    #[test]
    fn every_worker_runs_and_stops() {
        BOTH.into_iter().for_each(runs_and_stops);
    }

    fn runs_and_stops(waiting: Waiting) {
        let seen = Arc::new(AtomicUsize::new(0));
        let counter = seen.clone();
        let workers = spawn(
            3,
            "t",
            &Pinning::Free,
            waiting,
            &Shutdown::new(),
            move |context| {
                let counter = counter.clone();
                async move {
                    counter.fetch_add(1 << (8 * context.index), Ordering::SeqCst);
                    context.shutdown.fired().await;
                    Ok(())
                }
            },
        )
        .unwrap();
        workers.stop().unwrap();
        assert_eq!(seen.load(Ordering::SeqCst), 0x01_01_01);
    }

    #[test]
    fn tasks_await_what_the_runtime_drives() {
        for waiting in BOTH {
            let workers = spawn(1, "s", &Pinning::Free, waiting, &Shutdown::new(), |_| async {
                tokio::task::spawn_local(tokio::time::sleep(Duration::from_millis(1))).await?;
                let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
                let address = listener.local_addr()?;
                let (accepted, connected) =
                    tokio::join!(listener.accept(), tokio::net::TcpStream::connect(address));
                accepted.and(connected.map(drop))
            });
            workers.unwrap().join().unwrap();
        }
    }

    /// Has some turns by its waker, then by its timer, then by a socket.
    struct Turns {
        event_loop: Rc<EventLoop>,
        log: RefCell<Vec<&'static str>>,
        due: Cell<Option<Instant>>,
        peer: TcpStream,
        done: RefCell<Option<tokio::sync::oneshot::Sender<Vec<&'static str>>>>,
    }

    impl Driven for Turns {
        fn ready(&self, key: u64, readiness: Readiness) {
            assert_eq!(key, 5);
            if readiness.readable {
                self.log.borrow_mut().push("socket");
            }
        }

        fn turn(&self, now: Instant, waker: &Waker) -> bool {
            let mut log = self.log.borrow_mut();
            match &log[..] {
                [] => {
                    log.push("more");
                    return true;
                }
                ["more"] => {
                    log.push("woken");
                    let waker = waker.clone();
                    drop(std::thread::spawn(move || waker.wake()));
                }
                ["more", "woken"] if self.due.get().is_none() => {
                    self.due.set(Some(now + Duration::from_millis(1)));
                }
                ["more", "woken"] if self.due.get().is_some_and(|due| due <= now) => {
                    self.due.set(None);
                    log.push("timer");
                    (&self.peer).write_all(b"bytes").unwrap();
                }
                [.., "socket"] => {
                    if let Some(done) = self.done.take() {
                        done.send(log.clone()).unwrap();
                    }
                }
                _ => {}
            }
            false
        }

        fn next(&self) -> Option<Instant> {
            self.due.get()
        }

        fn end(&self) {
            self.event_loop.sockets().remove(&self.peer);
        }
    }

    #[test]
    fn what_is_driven_has_turns_by_wakers_timers_and_sockets() {
        let workers = spawn(
            1,
            "d",
            &Pinning::Free,
            Waiting::Sockets,
            &Shutdown::new(),
            |_| async {
                let listener = TcpListener::bind("127.0.0.1:0")?;
                let peer = TcpStream::connect(listener.local_addr()?)?;
                let (socket, _) = listener.accept()?;
                socket.set_nonblocking(true)?;
                let event_loop = EventLoop::of_worker().unwrap();
                event_loop.sockets().add(&socket, 5)?;
                let (done, ended) = tokio::sync::oneshot::channel();
                let turns = Turns {
                    event_loop: event_loop.clone(),
                    log: RefCell::default(),
                    due: Cell::default(),
                    peer,
                    done: RefCell::new(Some(done)),
                };
                assert!(event_loop.drive(Rc::new(turns)).is_ok());
                assert_eq!(ended.await.unwrap(), ["more", "woken", "timer", "socket"]);
                Ok(())
            },
        );
        workers.unwrap().join().unwrap();
    }

    #[test]
    fn a_panic_is_an_error_of_join_not_of_the_process() {
        BOTH.into_iter().for_each(a_panic_is_an_error);
    }

    fn a_panic_is_an_error(waiting: Waiting) {
        let workers = spawn(1, "p", &Pinning::Free, waiting, &Shutdown::new(), |_| async {
            panic!("on purpose")
        })
        .unwrap();
        assert!(workers.join().unwrap_err().to_string().contains("p-0"));
    }
}
