//! Work that goes on where it is woken: by the worker that waits for a write, or by the thread that has written.
//!
//! A runtime would run it on a thread of its own, which has to be woken for that and wakes the worker then. The work must not wait
//! for a runtime's timers and sockets, and takes microseconds between its waits.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Wake, Waker};

use parking_lot::Mutex;

type Work = Pin<Box<dyn Future<Output = ()> + Send>>;

#[derive(Default)]
struct Task(Mutex<State>);

#[derive(Default)]
struct State {
    /// None: it is being polled, or is done.
    work: Option<Work>,
    /// It was woken while it was polled.
    is_woken: bool,
}

/// Does something as far as it goes now; what it waits for goes on with it.
pub(crate) fn start(work: impl Future<Output = ()> + Send + 'static) {
    let task = Arc::new(Task::default());
    task.run(Box::pin(work));
}

impl Task {
    fn run(self: &Arc<Self>, mut work: Work) {
        let waker = Waker::from(self.clone());
        let mut context = Context::from_waker(&waker);
        while work.as_mut().poll(&mut context).is_pending() {
            let mut state = self.0.lock();
            if !std::mem::take(&mut state.is_woken) {
                state.work = Some(work);
                return;
            }
        }
    }
}

impl Wake for Task {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        let work = {
            let mut state = self.0.lock();
            state.is_woken = state.work.is_none();
            state.work.take()
        };
        if let Some(work) = work {
            self.run(work);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;
    use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
    use std::task::Poll;

    use super::*;

    #[test]
    fn work_goes_on_with_the_thread_that_completes_what_it_waits_for() {
        let (sender, receiver) = tokio::sync::oneshot::channel::<u8>();
        let (done, waits) = std::sync::mpsc::sync_channel(1);
        start(async move {
            let got = receiver.await;
            let _ = done.send((got, std::thread::current().id()));
        });
        let other = std::thread::spawn(move || {
            let _ = sender.send(7);
            std::thread::current().id()
        });
        let other = other.join().unwrap();
        assert_eq!(waits.recv(), Ok((Ok(7), other)));
    }

    #[test]
    fn work_that_is_woken_while_it_is_polled_is_polled_again() {
        let polls = Arc::new(AtomicUsize::new(0));
        let counted = polls.clone();
        start(poll_fn(move |context| {
            if counted.fetch_add(1, Relaxed) < 5 {
                context.waker().wake_by_ref();
                return Poll::Pending;
            }
            Poll::Ready(())
        }));
        assert_eq!(polls.load(Relaxed), 6);
    }

    #[test]
    fn work_ends_when_what_it_waits_for_is_dropped() {
        let (sender, receiver) = tokio::sync::oneshot::channel::<u8>();
        let held = Arc::new(());
        let own = held.clone();
        start(async move {
            let _ = receiver.await;
            drop(own);
        });
        assert_eq!(Arc::strong_count(&held), 2);
        drop(sender);
        assert_eq!(Arc::strong_count(&held), 1);
    }

    /// Wakes from many threads lose no poll: each send is seen.
    #[test]
    fn wakes_of_many_threads_are_seen() {
        for _ in 0..200 {
            let (senders, receivers): (Vec<_>, Vec<_>) =
                (0..4).map(|_| tokio::sync::oneshot::channel::<()>()).unzip();
            let (done, waits) = std::sync::mpsc::sync_channel(1);
            start(async move {
                for receiver in receivers {
                    let _ = receiver.await;
                }
                let _ = done.send(());
            });
            std::thread::scope(|scope| {
                for sender in senders {
                    scope.spawn(move || {
                        let _ = sender.send(());
                    });
                }
            });
            assert_eq!(waits.recv(), Ok(()));
        }
    }
}
