//! How a function starts: addresses, settings, store, and only then requests.

use std::io;
use std::rc::Rc;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use telemetry::health::Pulse;
use telemetry::journal::Kind;
use telemetry::{Alarms, Health, Registry, trace};
use worker::{Pinning, Shutdown, Threads, WorkerContext};

use crate::certificates;
use crate::contract::{
    Beginning, Beginnings, Front, Listeners as _, Live, NetworkFunction, Opened, Opening, Seat,
};
use crate::error::StartError;
use crate::running::{Handle, Running};

/// A worker that has not run for this long hangs; only a restart helps.
const LONGEST_SILENCE: Duration = Duration::from_secs(30);
/// Start does not wait longer for workers that do not begin to serve: they hang, see [`LONGEST_SILENCE`].
const LONGEST_BEGINNING: Duration = Duration::from_secs(10);
/// Interval at which a worker renews its sign of life.
const BEAT: Duration = Duration::from_secs(1);
/// Longest delay until a reload that sets `checkInterval` for the first time takes effect.
const UNWATCHED: Duration = Duration::from_secs(60);

/// What a function shows of itself, from before its start on: metrics, health, alarms.
#[derive(Clone, Debug)]
pub struct Frame {
    /// Its metrics.
    pub registry: Registry,
    /// Whether it is ready.
    pub health: Health,
    /// Its alarms.
    pub alarms: Alarms,
    /// The subscribers that are followed in it.
    pub follow: follow::Room,
}

impl Frame {
    /// The frame of a function that has not been started.
    #[must_use]
    pub fn new<F: NetworkFunction>() -> Self {
        let registry = Registry::with_series(F::SERIES);
        let alarms = Alarms::new(&registry);
        Self {
            registry,
            health: Health::new(),
            alarms,
            follow: follow::Room::new(F::NAME),
        }
    }
}

/// Starts a function. Blocks until it is ready.
///
/// # Errors
/// When a setting, an address, a file or the store cannot be used; nothing is left running then.
pub fn start<F: NetworkFunction>(config: F::Config) -> Result<Running<F>, StartError> {
    start_within(config, Frame::new::<F>())
}

/// As [`start`]; `frame` shows how the start goes. A start that waits for a database ends when `Health::stop` is called.
///
/// # Errors
/// As [`start`].
pub fn start_within<F: NetworkFunction>(
    mut config: F::Config,
    frame: Frame,
) -> Result<Running<F>, StartError> {
    let common = F::common(&config);
    let (count, pinning) = (worker::count(common.workers), Pinning::to(common.cores));
    let listeners = Arc::new(F::bind(&mut config, count)?);
    let config = Arc::new(config);
    let derived = F::derive(&config, None).map_err(StartError::Config)?;
    let live = Arc::new(Live::<F>::new(config, derived));

    let Frame {
        registry,
        health,
        alarms,
        follow,
    } = frame;
    listeners.observe(&registry);
    if let Some(watched) = listeners.watched() {
        certificates::observe(&registry, watched);
    }
    let (shutdown, drained) = (Shutdown::new(), Shutdown::new());
    let opening = Opening::<F> {
        live: live.clone(),
        listeners: listeners.clone(),
        workers: count,
        registry: registry.clone(),
        health: health.clone(),
        alarms: alarms.clone(),
        shutdown: shutdown.clone(),
        drained: drained.clone(),
    };
    let (function, control) = open(opening, follow.clone())?;
    let handle = Handle {
        function,
        live,
        listeners,
        registry,
        health,
        alarms,
        follow,
    };
    match serve(&handle, count, &pinning, &shutdown, &drained) {
        Ok(workers) => Ok(Running::new(handle, Threads::new(shutdown, workers).and(control))),
        Err(error) => {
            shutdown.fire();
            drained.fire();
            let _ = control.join();
            Err(error)
        }
    }
}

/// Starts the control thread; answers when the function is open.
fn open<F: NetworkFunction>(
    opening: Opening<F>,
    room: follow::Room,
) -> Result<(Arc<F>, JoinHandle<()>), StartError> {
    // Of the standard library: a function may be started from inside a runtime.
    let (ready, opened) = std::sync::mpsc::sync_channel(1);
    let run = move || async move {
        follow::enter(room);
        trace::enter(F::NAME);
        let (live, listeners) = (opening.live.clone(), opening.listeners.clone());
        let alarms = opening.alarms.clone();
        match F::open(opening).await {
            Ok(Opened { function, control }) => {
                if ready.send(Ok(function)).is_ok() {
                    if let Some(watched) = listeners.watched() {
                        tokio::task::spawn_local(certificates::watch(
                            alarms.clone(),
                            Arc::downgrade(watched),
                        ));
                    }
                    // The task ends with the thread.
                    tokio::task::spawn_local(follow_files::<F>(live, listeners, alarms));
                    control.await;
                }
            }
            Err(error) => drop(ready.send(Err(error))),
        }
    };
    let thread = worker::control(&format!("{}-control", F::NAME), run)
        .map_err(StartError::io("starting the control thread"))?;
    match opened.recv() {
        Ok(Ok(function)) => Ok((function, thread)),
        Ok(Err(error)) => {
            let _ = thread.join();
            Err(error)
        }
        Err(_) => Err(StartError::io("starting the control thread")(io::Error::other(
            "it ended before it was ready; see the log",
        ))),
    }
}

/// Lets the listeners accept, and starts the workers.
fn serve<F: NetworkFunction>(
    handle: &Handle<F>,
    count: usize,
    pinning: &Pinning,
    shutdown: &Shutdown,
    drained: &Shutdown,
) -> Result<worker::Workers, StartError> {
    handle.listeners.listen()?;
    let last = Arc::new(Last(drained.clone()));
    let handle = handle.clone();
    let (beginnings, begun) = Beginnings::new(count);
    let beginnings = Arc::new(beginnings);
    let run = move |context: WorkerContext| {
        let (handle, last, beginning) = (handle.clone(), last.clone(), beginnings.next());
        async move {
            let pulse = handle
                .health
                .pulse(&format!("worker-{}", context.index), LONGEST_SILENCE);
            let ended = life(handle, context, beginning, pulse).await;
            drop(last);
            ended
        }
    };
    let waiting = F::Listeners::WAITING;
    let workers = worker::spawn(count, F::NAME, pinning, waiting, shutdown, run)
        .map_err(StartError::io("starting the workers"))?;
    if !begun.wait(LONGEST_BEGINNING) {
        tracing::warn!(function = F::NAME, "workers do not begin to serve");
    }
    Ok(workers)
}

async fn life<F: NetworkFunction>(
    handle: Handle<F>,
    context: WorkerContext,
    beginning: Beginning,
    pulse: Pulse,
) -> io::Result<()> {
    let room = handle.follow;
    follow::enter(room.clone());
    trace::enter(F::NAME);
    let seat = Seat {
        context,
        listeners: handle.listeners,
        live: handle.live,
        registry: handle.registry,
        alarms: handle.alarms,
    };
    let front: Rc<Front<F>> = Front::new(handle.function, seat);
    let beating = async {
        loop {
            let now = Instant::now();
            pulse.beat(now);
            room.sweep(now);
            tokio::time::sleep(BEAT).await;
        }
    };
    tokio::select! {
        ended = F::serve(front, beginning) => ended,
        () = beating => Ok(()),
    }
}

/// Fires when the last worker drops it, however that worker ends.
struct Last(Shutdown);

impl Drop for Last {
    fn drop(&mut self) {
        self.0.fire();
    }
}

/// Checks periodically whether files have changed, under the lock of all changes.
async fn follow_files<F: NetworkFunction>(live: Arc<Live<F>>, listeners: Arc<F::Listeners>, alarms: Alarms) {
    let mut known = None;
    loop {
        let interval = F::common(&live.load().config).files_interval();
        tokio::time::sleep(interval.unwrap_or(UNWATCHED)).await;
        if interval.is_none() {
            continue;
        }
        let watched = listeners.watched().cloned();
        let (live, listeners) = (live.clone(), listeners.clone());
        // The files may be on a slow disk, so a blocking thread reads them; the panic handler has logged a panic there.
        let read = move || live.hold(|now| listeners.reload_files(&F::common(&now.config)));
        let read = tokio::task::spawn_blocking(read).await;
        if let Ok(Ok(true)) = read {
            let detail = certificates::in_words(watched.as_ref());
            alarms.journal().record(Kind::Certificate, "tls", &detail);
        }
        let fault = read.ok().and_then(Result::err);
        alarms.set(&certificates::REFUSED, "tls", fault.clone());
        if let Some(fault) = fault.as_ref().filter(|fault| known.as_ref() != Some(*fault)) {
            tracing::warn!(function = F::NAME, %fault, "TLS files invalid; handshakes use the certificates loaded before");
        }
        known = fault;
    }
}
