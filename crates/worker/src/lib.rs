//! One thread per core, each with a runtime of its own, and the shutdown they share.
//!
//! The data path of every function runs on *workers*: operating-system threads that each own a
//! single-threaded runtime, their listeners (`SO_REUSEPORT`), connection pools and caches. Nothing on a
//! worker is `Send`, so nothing on it can be shared by accident; what workers have in common they read
//! from snapshots. The control path (audits, reloads, admin) runs elsewhere.
//!
//! [`posts`] let workers send messages to one another. [`spawn`] starts the workers, [`control`] a thread for other
//! work, [`Shutdown`] makes all of them drain, and [`Threads`] joins them for the owner that stops the function.

mod listen;
mod post;
mod random;
mod shutdown;
mod threads;
mod wake;

use std::future::Future;
use std::io;
use std::thread::JoinHandle;

pub use listen::{bind, bind_each, listen, reserve};
pub use post::{Mailbox, Post, posts};
pub use random::Random;
pub use shutdown::Shutdown;
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
    shutdown: &Shutdown,
    body: F,
) -> io::Result<Workers>
where
    F: Fn(WorkerContext) -> Fut + Clone + Send + 'static,
    Fut: Future<Output = io::Result<()>> + 'static,
{
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
        let body = body.clone();
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
                let runtime = tokio::runtime::Builder::new_current_thread()
                    .enable_all()
                    .on_thread_park(wake::parks)
                    .on_thread_unpark(wake::woke)
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
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    #[test]
    fn every_worker_runs_and_stops() {
        let seen = Arc::new(AtomicUsize::new(0));
        let counter = seen.clone();
        let workers = spawn(3, "t", &Pinning::Free, &Shutdown::new(), move |context| {
            let counter = counter.clone();
            async move {
                counter.fetch_add(1 << (8 * context.index), Ordering::SeqCst);
                context.shutdown.fired().await;
                Ok(())
            }
        })
        .unwrap();
        workers.stop().unwrap();
        assert_eq!(seen.load(Ordering::SeqCst), 0x01_01_01);
    }

    #[test]
    fn a_panic_is_an_error_of_join_not_of_the_process() {
        let workers = spawn(1, "p", &Pinning::Free, &Shutdown::new(), |_| async {
            panic!("on purpose")
        })
        .unwrap();
        assert!(workers.join().unwrap_err().to_string().contains("p-0"));
    }
}
