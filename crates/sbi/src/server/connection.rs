//! One connection: the engine is polled, new requests begin, and what was written leaves.

use std::cell::Cell;
use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use h2::Reason;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::time::Sleep;
use worker::Shutdown;

use super::config::ServerConfig;
use super::exchange::{self, Outgoing};
use super::stats::{ServerStats, add, count};
use crate::io::{Driver, Gather, IoSizes, pair};
use crate::message::{Peer, Service};

/// What all connections of a worker's server have in common.
pub(super) struct Shared<S> {
    pub(super) service: Rc<S>,
    pub(super) config: Arc<ServerConfig>,
    pub(super) stats: Arc<ServerStats>,
    pub(super) shutdown: Shutdown,
}

/// What the requests of a connection tell its driver.
#[derive(Debug)]
pub(super) struct Activity {
    /// Requests in progress, answers still being sent included.
    open: Cell<u32>,
    /// When a request last began or ended.
    last: Cell<Instant>,
}

/// A request in progress; ends when its answer has left (or was given up).
#[derive(Debug)]
pub(super) struct InProgress(Rc<Activity>);

impl Activity {
    fn begin(self: &Rc<Self>, now: Instant) -> InProgress {
        self.open.set(self.open.get() + 1);
        self.last.set(now);
        InProgress(self.clone())
    }
}

impl Drop for InProgress {
    fn drop(&mut self) {
        self.0.open.set(self.0.open.get() - 1);
        self.0.last.set(Instant::now());
    }
}

/// Why a connection ended, other than by the peer's wish.
enum End {
    Peer,
    Fault,
    Idle,
    Stalled,
    Drained,
}

/// Serves a connection to its end.
pub(super) async fn drive<S, T>(io: T, peer: Rc<Peer>, shared: &Rc<Shared<S>>)
where
    S: Service,
    T: AsyncRead + AsyncWrite + Unpin + 'static,
{
    let (gather, driver) = pair(io, IoSizes::default(), Instant::now());
    let Some(engine) = handshake(gather, &driver, &shared.config).await else {
        count(&shared.stats.handshakes_failed);
        return;
    };
    let activity = Rc::new(Activity {
        open: Cell::new(0),
        last: Cell::new(Instant::now()),
    });
    let (bytes_in, bytes_out) = (Cell::new(0), Cell::new(0));
    let end = {
        let mut running = Running {
            engine,
            driver: &driver,
            peer,
            shared,
            activity,
            window: RateWindow::default(),
            draining: false,
        };
        let mut shutdown = pin!(shared.shutdown.fired());
        let mut check = pin!(tokio::time::sleep(running.check_period()));
        poll_fn(|cx| {
            let end = running.poll(cx, shutdown.as_mut(), check.as_mut());
            let (read, wrote) = driver.bytes();
            add(&shared.stats.bytes_in, read - bytes_in.replace(read));
            add(&shared.stats.bytes_out, wrote - bytes_out.replace(wrote));
            end
        })
        .await
    };
    match end {
        End::Peer | End::Drained => {}
        End::Fault => count(&shared.stats.connections_faulty),
        End::Idle => count(&shared.stats.connections_idle),
        End::Stalled => count(&shared.stats.connections_stalled),
    }
}

type Engine<T> = h2::server::Connection<Gather<T>, Outgoing>;

async fn handshake<T>(gather: Gather<T>, driver: &Driver<T>, config: &ServerConfig) -> Option<Engine<T>>
where
    T: AsyncRead + AsyncWrite + Unpin,
{
    let window =
        |size: settings::ByteSize| u32::try_from(size.bytes()).unwrap_or(u32::MAX).min((1 << 31) - 1);
    let mut engine = h2::server::Builder::new();
    engine
        .max_concurrent_streams(config.max_concurrent_streams)
        .max_header_list_size(window(config.max_header_list))
        .initial_window_size(window(config.stream_window))
        .initial_connection_window_size(window(config.connection_window))
        .max_pending_accept_reset_streams(config.max_pending_resets as usize)
        .max_local_error_reset_streams(Some(config.max_error_resets as usize))
        .max_concurrent_reset_streams(64)
        .reset_stream_duration(Duration::from_secs(1));
    let mut handshake = pin!(engine.handshake::<_, Outgoing>(gather));
    let both = poll_fn(|cx| {
        let done = handshake.as_mut().poll(cx);
        // An error of the socket shows in the handshake as well.
        let _ = driver.flush(cx);
        done
    });
    tokio::time::timeout(config.handshake_timeout.duration(), both)
        .await
        .ok()?
        .ok()
}

struct Running<'a, S, T> {
    engine: Engine<T>,
    driver: &'a Driver<T>,
    peer: Rc<Peer>,
    shared: &'a Rc<Shared<S>>,
    activity: Rc<Activity>,
    window: RateWindow,
    draining: bool,
}

impl<S, T> Running<'_, S, T>
where
    S: Service,
    T: AsyncRead + AsyncWrite + Unpin + 'static,
{
    fn poll(
        &mut self,
        cx: &mut Context<'_>,
        shutdown: Pin<&mut impl Future<Output = ()>>,
        mut check: Pin<&mut Sleep>,
    ) -> Poll<End> {
        if !self.draining && shutdown.poll(cx).is_ready() {
            self.draining = true;
            self.engine.graceful_shutdown();
        }
        let end = loop {
            match self.engine.poll_accept(cx) {
                Poll::Ready(Some(Ok((request, respond)))) => self.begin(request, respond, cx),
                Poll::Ready(Some(Err(error))) => {
                    let ours = error.is_library() || error.reason().is_some_and(|r| r != Reason::NO_ERROR);
                    break Some(if ours && !error.is_io() {
                        End::Fault
                    } else {
                        End::Peer
                    });
                }
                Poll::Ready(None) => break Some(if self.draining { End::Drained } else { End::Peer }),
                Poll::Pending => break None,
            }
        };
        let flushed = self.driver.flush(cx);
        if let Some(end) = end {
            // A GOAWAY that says why is worth one attempt to send it; the peer may be gone.
            return Poll::Ready(end);
        }
        if matches!(flushed, Poll::Ready(Err(_))) {
            return Poll::Ready(End::Peer);
        }
        while check.as_mut().poll(cx).is_ready() {
            if let Some(end) = self.overdue(Instant::now()) {
                return Poll::Ready(end);
            }
            check
                .as_mut()
                .reset(tokio::time::Instant::now() + self.check_period());
        }
        Poll::Pending
    }

    fn begin(
        &mut self,
        request: http::Request<h2::RecvStream>,
        respond: h2::server::SendResponse<Outgoing>,
        cx: &mut Context<'_>,
    ) {
        let now = Instant::now();
        count(&self.shared.stats.requests);
        let in_progress = self.activity.begin(now);
        if !self.window.admits(self.shared.config.max_request_rate, now) {
            count(&self.shared.stats.requests_over_rate);
            exchange::refuse_over_rate(respond, in_progress);
            return;
        }
        let mut exchange = Box::pin(exchange::run(
            request,
            respond,
            self.shared.clone(),
            self.peer.clone(),
            now,
            in_progress,
        ));
        // Most are answered right here, from memory; only those that wait for something become tasks.
        if exchange.as_mut().poll(cx).is_pending() {
            tokio::task::spawn_local(exchange);
        }
    }

    /// How often the slow limits are looked at: often enough to be exact to a quarter.
    fn check_period(&self) -> Duration {
        let config = &self.shared.config;
        let shortest = config
            .write_stall_timeout
            .duration()
            .min(config.idle_timeout.duration());
        (shortest / 4).clamp(Duration::from_millis(5), Duration::from_secs(5))
    }

    fn overdue(&self, now: Instant) -> Option<End> {
        let config = &self.shared.config;
        let open = self.activity.open.get();
        let quiet = now.saturating_duration_since(self.activity.last.get());
        let untaken = now.saturating_duration_since(self.driver.progress());
        if self.driver.waiting() > 0 && untaken >= config.write_stall_timeout.duration() {
            return Some(End::Stalled);
        }
        (open == 0 && quiet >= config.idle_timeout.duration()).then_some(End::Idle)
    }
}

/// Requests of the running second.
#[derive(Default)]
struct RateWindow {
    began: Option<Instant>,
    count: u32,
}

impl RateWindow {
    fn admits(&mut self, limit: u32, now: Instant) -> bool {
        if limit == 0 {
            return true;
        }
        if self
            .began
            .is_none_or(|began| now.saturating_duration_since(began) >= Duration::from_secs(1))
        {
            self.began = Some(now);
            self.count = 0;
        }
        self.count = self.count.saturating_add(1);
        self.count <= limit
    }
}
