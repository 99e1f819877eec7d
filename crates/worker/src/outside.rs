//! Wake-ups by other threads: a store that has written, a database that has answered.
//!
//! The set of tasks of a thread runs what its own tasks and sockets have woken before what other threads have: of those it
//! takes one in 31 while it has others to run (`LocalSet` of tokio). On a worker with more to do than it can, each request
//! that waits for a store would wait for 31 turns of connections as well, one request after the other. So other threads hand
//! in here what they wake, and one task wakes all of it from within.

use std::cell::RefCell;
use std::future::poll_fn;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Wake, Waker};

thread_local! {
    static OF_THREAD: RefCell<Option<Arc<Handed>>> = const { RefCell::new(None) };
}

/// What other threads have woken on one thread. There is at most one for each task that waits.
#[derive(Default)]
struct Handed(Mutex<State>);

#[derive(Default)]
struct State {
    woken: Vec<Waker>,
    /// Wakes the task that takes them, while it waits.
    taker: Option<Waker>,
    /// The thread runs no tasks any more.
    is_over: bool,
}

/// A waker of a task of that thread.
struct Outside {
    handed: Arc<Handed>,
    waker: Waker,
}

/// Polls what another thread completes, with a waker that is fair to it where the thread's tasks are run by this crate
/// ([`spawn`](crate::spawn), [`control`](crate::control)); elsewhere as it is.
pub fn poll<T>(context: &mut Context<'_>, poll: impl FnOnce(&mut Context<'_>) -> T) -> T {
    let Some(handed) = OF_THREAD.with_borrow(Clone::clone) else {
        return poll(context);
    };
    let waker = Waker::from(Arc::new(Outside {
        handed,
        waker: context.waker().clone(),
    }));
    poll(&mut Context::from_waker(&waker))
}

/// Wakes what other threads hand in for this thread, for as long as it is polled. The set of tasks that it is spawned in
/// has to be the one whose tasks [`poll`].
pub(crate) async fn take() {
    let ends = Ends(Arc::default());
    let handed = &ends.0;
    OF_THREAD.set(Some(handed.clone()));
    let mut woken = Vec::new();
    poll_fn(|context| -> Poll<()> {
        {
            let mut state = handed.lock();
            // A wake-up while these are woken asks for another poll.
            state.taker = Some(context.waker().clone());
            std::mem::swap(&mut state.woken, &mut woken);
        }
        woken.drain(..).for_each(Waker::wake);
        Poll::Pending
    })
    .await;
}

impl Handed {
    fn lock(&self) -> MutexGuard<'_, State> {
        // No code panics while it holds the lock.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn hand_in(&self, waker: Waker) {
        let taker = {
            let mut state = self.lock();
            if state.is_over {
                drop(state);
                return waker.wake();
            }
            state.woken.push(waker);
            state.taker.take()
        };
        if let Some(taker) = taker {
            taker.wake();
        }
    }
}

impl Wake for Outside {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        let is_inside =
            OF_THREAD.with_borrow(|own| own.as_ref().is_some_and(|own| Arc::ptr_eq(own, &self.handed)));
        match is_inside {
            true => self.waker.wake_by_ref(),
            false => self.handed.hand_in(self.waker.clone()),
        }
    }
}

/// The thread's tasks end.
struct Ends(Arc<Handed>);

impl Drop for Ends {
    fn drop(&mut self) {
        let woken = {
            let mut state = self.0.lock();
            state.is_over = true;
            state.taker = None;
            std::mem::take(&mut state.woken)
        };
        woken.into_iter().for_each(Waker::wake);
        OF_THREAD.set(None);
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::pin::pin;
    use std::rc::Rc;

    use tokio::sync::{Notify, oneshot};

    use super::*;
    use crate::{Pinning, Shutdown, Waiting, spawn};

    /// Tasks that wait for another thread, on a worker that is never without a task to run.
    const WAITING: usize = 100;

    #[test]
    fn what_others_wake_runs_beside_tasks_that_never_rest() {
        for waiting in [Waiting::Runtime, Waiting::Sockets] {
            let workers = spawn(1, "o", &Pinning::Free, waiting, &Shutdown::new(), |_| async {
                let turns = Rc::new(Cell::new(0));
                let (one, other) = (Rc::new(Notify::new()), Rc::new(Notify::new()));
                for (wait, wake) in [(one.clone(), other.clone()), (other, one.clone())] {
                    let turns = turns.clone();
                    tokio::task::spawn_local(tokio::task::unconstrained(async move {
                        loop {
                            wait.notified().await;
                            turns.set(turns.get() + 1);
                            wake.notify_one();
                        }
                    }));
                }
                let (senders, receivers): (Vec<_>, Vec<_>) =
                    (0..WAITING).map(|_| oneshot::channel::<()>()).unzip();
                let tasks: Vec<_> = receivers
                    .into_iter()
                    .map(|mut receiver| {
                        tokio::task::spawn_local(poll_fn(move |context| {
                            poll(context, |context| pin!(&mut receiver).poll(context))
                        }))
                    })
                    .collect();
                tokio::task::yield_now().await;
                one.notify_one();
                let done = std::thread::spawn(|| senders.into_iter().for_each(|it| it.send(()).unwrap()));
                // The thread keeps this one from its tasks, so that all are woken before any runs.
                done.join().unwrap();
                let before = turns.get();
                for task in tasks {
                    task.await?.unwrap();
                }
                let passed = turns.get() - before;
                assert!(passed < 2 * WAITING, "{passed} turns of others");
                Ok(())
            });
            workers.unwrap().join().unwrap();
        }
    }

    #[test]
    fn a_thread_without_tasks_of_ours_is_woken_as_usual() {
        let (sender, mut receiver) = oneshot::channel();
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let thread = std::thread::spawn(move || sender.send(7).unwrap());
        let came = poll_fn(|context| poll(context, |context| pin!(&mut receiver).poll(context)));
        assert_eq!(runtime.block_on(came).unwrap(), 7);
        thread.join().unwrap();
    }

    /// What is handed in when the tasks have ended goes to its waker.
    #[test]
    fn nothing_is_kept_for_a_thread_that_has_ended() {
        let handed = {
            let ends = Ends(Arc::default());
            ends.0.clone()
        };
        struct Flag(std::sync::atomic::AtomicBool);
        impl Wake for Flag {
            fn wake(self: Arc<Self>) {
                self.0.store(true, std::sync::atomic::Ordering::SeqCst);
            }
        }
        let flag = Arc::new(Flag(false.into()));
        let waker = Waker::from(flag.clone());
        Waker::from(Arc::new(Outside { handed, waker })).wake();
        assert!(flag.0.load(std::sync::atomic::Ordering::SeqCst));
    }
}
