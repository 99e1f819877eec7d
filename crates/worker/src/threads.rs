//! The threads of a function: its workers, and one for what is not on the data path.

use std::future::Future;
use std::io;
use std::thread::JoinHandle;

use crate::{Shutdown, Workers};

/// Starts a thread that runs `body` on a runtime of its own, for work that must not delay a worker: audits, reloads,
/// notifications. The future need not be `Send`; tasks that it spawns locally end with it.
///
/// # Errors
/// When the system refuses a runtime or a thread.
pub fn control<F, Fut>(name: &str, body: F) -> io::Result<JoinHandle<()>>
where
    F: FnOnce() -> Fut + Send + 'static,
    Fut: Future<Output = ()> + 'static,
{
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    std::thread::Builder::new()
        .name(name.to_owned())
        .spawn(move || crate::run(&runtime, body()))
}

/// All threads of a running function. Dropping them makes them stop, without waiting for it.
#[derive(Debug)]
pub struct Threads {
    shutdown: Shutdown,
    workers: Option<Workers>,
    control: Option<JoinHandle<()>>,
}

impl Threads {
    /// Workers, which `shutdown` stops.
    #[must_use]
    pub fn new(shutdown: Shutdown, workers: Workers) -> Self {
        Self {
            shutdown,
            workers: Some(workers),
            control: None,
        }
    }

    /// Adds a control thread, which ends with the workers or by `shutdown`.
    #[must_use]
    pub fn and(mut self, control: JoinHandle<()>) -> Self {
        self.control = Some(control);
        self
    }

    /// Stops them: the workers finish what is in progress, then the control thread ends. Blocks.
    ///
    /// # Errors
    /// The first error a thread ended with; a panic is one.
    pub fn stop(mut self) -> io::Result<()> {
        self.shutdown.fire();
        let ended = self.workers.take().map_or(Ok(()), Workers::join);
        if let Some(control) = self.control.take()
            && control.join().is_err()
        {
            return Err(io::Error::other("the control thread panicked; see the log"));
        }
        ended
    }
}

impl Drop for Threads {
    fn drop(&mut self) {
        self.shutdown.fire();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Pinning, Waiting, spawn};

    fn threads(control: impl FnOnce() + Send + 'static) -> Threads {
        let shutdown = Shutdown::new();
        let workers = spawn(
            2,
            "t",
            &Pinning::to(&[]),
            Waiting::Runtime,
            &shutdown,
            |context| async move {
                context.shutdown.fired().await;
                Ok(())
            },
        );
        let ends = shutdown.clone();
        let control = super::control("t-control", move || async move {
            ends.fired().await;
            control();
        });
        Threads::new(shutdown, workers.unwrap()).and(control.unwrap())
    }

    #[test]
    fn all_threads_end_together() {
        let (sender, ended) = std::sync::mpsc::sync_channel(1);
        threads(move || sender.send(7).unwrap()).stop().unwrap();
        assert_eq!(ended.recv(), Ok(7));
    }

    #[test]
    fn a_panic_of_the_control_thread_is_reported() {
        let ended = threads(|| panic!("on purpose")).stop();
        assert!(ended.unwrap_err().to_string().contains("panicked"));
    }
}
