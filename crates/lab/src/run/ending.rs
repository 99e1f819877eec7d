//! What the lab has started ends with it, also when a signal ends the lab.
//!
//! Ctrl-C in a terminal reaches every process of the lab; `kill`, `timeout` and a service manager reach the lab alone.
//! Each process and server that the lab starts leaves here how it is ended, until it has ended.

use std::process::exit;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::Poll;
use std::{fmt, io, thread};

use tokio::signal::unix::{SignalKind, signal};

/// The signals that end the lab, with their names.
const SIGNALS: [(SignalKind, &str); 3] = [
    (SignalKind::terminate(), "SIGTERM"),
    (SignalKind::interrupt(), "SIGINT"),
    (SignalKind::hangup(), "SIGHUP"),
];

/// What runs, with what ends it.
static RUNNING: Mutex<Running> = Mutex::new(Running {
    next: 0,
    ends: Vec::new(),
});

struct Running {
    next: u64,
    ends: Vec<(u64, End)>,
}

type End = Box<dyn FnOnce() + Send>;

/// Something that ends with the lab, until this is dropped.
pub(crate) struct Ends(u64);

/// Something is being started: until it is known how it is ended, no signal ends the lab.
pub(crate) struct Starting(MutexGuard<'static, Running>);

/// Call it before something is started that must end with the lab.
pub(crate) fn starting() -> Starting {
    Starting(running())
}

impl Starting {
    /// `end` ends what was started. It is called from another thread, while what holds this may be in use.
    pub(crate) fn ends_by(mut self, end: impl FnOnce() + Send + 'static) -> Ends {
        let running = &mut *self.0;
        running.next += 1;
        running.ends.push((running.next, Box::new(end)));
        Ends(running.next)
    }
}

impl Drop for Ends {
    fn drop(&mut self) {
        running().ends.retain(|(number, _)| *number != self.0);
    }
}

impl fmt::Debug for Ends {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Ends").field(&self.0).finish()
    }
}

fn running() -> MutexGuard<'static, Running> {
    RUNNING.lock().unwrap_or_else(PoisonError::into_inner)
}

/// From now on a signal that ends this process first ends what it has started, the last first.
///
/// # Errors
/// When the system refuses a thread, or to report signals.
pub(crate) fn end_all_on_signal() -> io::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let mut signals = Vec::new();
    for (kind, name) in SIGNALS {
        let entered = runtime.enter();
        signals.push((signal(kind)?, kind, name));
        drop(entered);
    }
    #[expect(
        clippy::disallowed_methods,
        reason = "the main thread may wait for minutes, and has nothing to flush"
    )]
    let wait_and_end = move || {
        let came = std::future::poll_fn(|cx| {
            let came = signals.iter_mut().find_map(|(signal, kind, name)| {
                let came = signal.poll_recv(cx).is_ready();
                came.then_some((*kind, *name))
            });
            match came {
                Some(came) => Poll::Ready(came),
                None => Poll::Pending,
            }
        });
        let (kind, name) = runtime.block_on(came);
        // Held to the end: nothing starts or ends any longer.
        let mut running = running();
        eprintln!("{name}: ending the {} processes of the lab", running.ends.len());
        while let Some((_, end)) = running.ends.pop() {
            end();
        }
        // As a shell reports it.
        exit(128 + kind.as_raw_value());
    };
    thread::Builder::new()
        .name("signals".to_owned())
        .spawn(wait_and_end)?;
    Ok(())
}
