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

use super::activity::{Activity, Outgoing};
use super::config::ServerConfig;
use super::exchange;
use super::places::Seat;
use super::rate::RateWindow;
use super::stats::{ServerStats, add, count, set};
use crate::io::{Driver, FRAME_SIZE, Flood, FrameLimits, FrameWatch, Gather, IoSizes, LINGER, pair, window};
use crate::memory::{Charge, Told};
use crate::message::{Peer, Service};

/// How many resets of streams that were not yet looked at the engine bears where there is no limit of ours.
const PENDING_RESETS: usize = 10_000;

/// What all connections of a worker's server have in common.
pub(super) struct Shared<S> {
    pub(super) service: Rc<S>,
    pub(super) config: Arc<ServerConfig>,
    pub(super) stats: Arc<ServerStats>,
    pub(super) shutdown: Shutdown,
}

/// Why a connection ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    /// By the peer's wish.
    Peer,
    /// The peer broke the rules of HTTP/2, or a limit of the engine.
    Fault,
    Idle,
    Stalled,
    SlowHeaders,
    Flood(Flood),
    /// It held most where all together held too much.
    Greedy,
    /// Another one needed its place.
    Displaced,
    Drained,
}

/// Serves a connection to its end.
pub(super) async fn drive<S, T>(io: T, peer: Rc<Peer>, shared: &Rc<Shared<S>>, seat: Seat)
where
    S: Service,
    T: AsyncRead + AsyncWrite + Unpin + 'static,
{
    let config = &shared.config;
    let watch = FrameWatch::of_client(FrameLimits {
        control: config.max_control_rate,
        resets: config.max_reset_rate,
        windows: config.max_window_update_rate,
    });
    let (gather, driver) = pair(io, IoSizes::default(), watch, Instant::now());
    let activity = seat.activity().clone();
    let engine = tokio::select! {
        engine = handshake(gather, &driver, config) => engine,
        () = activity.account().has_to_do_something() => return,
    };
    let Some(engine) = engine else {
        count(&shared.stats.handshakes_failed);
        return;
    };
    seat.opened(Instant::now());
    let _closes = CloseAtEnd(activity.clone());
    let end = {
        let mut running = Running {
            engine,
            driver: &driver,
            peer,
            shared,
            activity: activity.clone(),
            seat: &seat,
            window: RateWindow::default(),
            ending: None,
            ended_at: None,
            quiet_since: Instant::now(),
            taken: 0,
            counted: Counted::default(),
            buffers: Charge::new(activity.account().clone()),
        };
        let mut shutdown = pin!(shared.shutdown.fired());
        let mut check = pin!(tokio::time::sleep(running.check_period()));
        poll_fn(|cx| running.poll(cx, shutdown.as_mut(), check.as_mut())).await
    };
    let stats = &shared.stats;
    set(&stats.memory_held, activity.account().memory().held() as u64);
    match end {
        End::Peer | End::Drained => return,
        End::Idle => return count(&stats.connections_idle),
        End::Stalled => return count(&stats.connections_stalled),
        End::Displaced => {}
        End::Greedy => {
            count(&stats.connections_greedy);
            // The answers that are still being made go nowhere.
            activity.close();
        }
        End::Fault => count(&stats.connections_faulty),
        End::SlowHeaders => count(&stats.connections_slow_headers),
        End::Flood(Flood::Control | Flood::Windows) => count(&stats.connections_flooding),
        End::Flood(Flood::Resets) => count(&stats.connections_resetting),
    }
    // The peer is told why, if it still listens.
    let linger = tokio::time::timeout(LINGER.1, driver.linger(LINGER.0));
    tokio::select! {
        _ = linger => {}
        () = activity.account().has_to_let_go(), if end == End::Displaced => {}
    }
}

/// Lets the streams of a connection go, however it ends: they and their answers hold one another.
struct CloseAtEnd(Rc<Activity>);

impl Drop for CloseAtEnd {
    fn drop(&mut self) {
        self.0.close();
    }
}

type Engine<T> = h2::server::Connection<Gather<T>, Outgoing>;

async fn handshake<T>(gather: Gather<T>, driver: &Driver<T>, config: &ServerConfig) -> Option<Engine<T>>
where
    T: AsyncRead + AsyncWrite + Unpin,
{
    // A byte more than a body may have, so that its excess arrives and is answered 413.
    let stream_window = config.max_body.bytes().saturating_add(1);
    let pending_resets = match config.max_reset_rate {
        0 => PENDING_RESETS,
        limit => limit as usize,
    };
    let mut engine = h2::server::Builder::new();
    engine
        .max_concurrent_streams(config.max_concurrent_streams)
        // What is somewhat too large is answered by us, with problem details.
        .max_header_list_size(window(config.max_header_list.bytes().saturating_mul(2)))
        .initial_window_size(window(stream_window))
        .max_frame_size(FRAME_SIZE)
        .initial_connection_window_size(window(stream_window.max(config.max_arriving.bytes())))
        .max_pending_accept_reset_streams(pending_resets)
        .max_local_error_reset_streams(Some(config.max_error_resets as usize))
        .max_concurrent_reset_streams(64)
        .reset_stream_duration(Duration::from_secs(1));
    let mut handshake = pin!(engine.handshake::<_, Outgoing>(gather));
    let both = poll_fn(|cx| {
        driver.turn();
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

/// What the statistics know of the connection already.
#[derive(Default)]
struct Counted {
    bytes_in: Cell<u64>,
    bytes_out: Cell<u64>,
    not_taken: Cell<u64>,
}

struct Running<'a, S, T> {
    engine: Engine<T>,
    driver: &'a Driver<T>,
    peer: Rc<Peer>,
    shared: &'a Rc<Shared<S>>,
    activity: Rc<Activity>,
    seat: &'a Seat,
    window: RateWindow,
    /// Why the connection is being ended, once that is decided, and when it was.
    ending: Option<End>,
    ended_at: Option<Instant>,
    /// Since when there has been no request, as far as the checks have seen.
    quiet_since: Instant,
    /// Requests the engine gave us.
    taken: u64,
    counted: Counted,
    /// What the buffers of the socket hold.
    buffers: Charge,
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
        self.activity.account().listen(cx);
        if self.driver.is_resting() && self.activity.account().told() != Some(Told::LetGo) {
            return Poll::Pending;
        }
        if self.ending.is_none() && shutdown.poll(cx).is_ready() {
            self.end(End::Drained);
        }
        match (self.activity.account().told(), self.ending) {
            (Some(Told::LetGo), _) => return Poll::Ready(self.end_at_once(End::Greedy, cx)),
            (Some(Told::MakePlace), None) if self.activity.open() == 0 => {
                return Poll::Ready(self.end_at_once(End::Displaced, cx));
            }
            // A request came meanwhile: it is answered first.
            (Some(Told::MakePlace), None) => self.end(End::Idle),
            _ => {}
        }
        self.driver.turn();
        let mut over = self.serve(cx);
        let flood = self.driver.watch(FrameWatch::flood);
        if let (None, None | Some(End::Drained | End::Idle), Some(flood)) = (over, self.ending, flood) {
            self.end(End::Flood(flood));
            // Once more, for the GOAWAY.
            over = self.serve(cx);
        }
        let flushed = self.driver.flush(cx);
        self.activity.sweep();
        let block_limit = self.shared.config.max_header_list.as_usize().saturating_mul(2);
        self.buffers.set(self.driver.held(block_limit));
        self.count();
        if let Some(end) = over {
            return Poll::Ready(end);
        }
        if matches!(flushed, Poll::Ready(Err(_))) {
            return Poll::Ready(self.ending.unwrap_or(End::Peer));
        }
        while check.as_mut().poll(cx).is_ready() {
            if let Poll::Ready(end) = self.check(Instant::now()) {
                return Poll::Ready(end);
            }
            check
                .as_mut()
                .reset(tokio::time::Instant::now() + self.check_period());
            // The check may have given the engine something to do.
            cx.waker().wake_by_ref();
        }
        Poll::Pending
    }

    /// Ends the connection without waiting for anything: GOAWAY, as far as the socket takes it.
    fn end_at_once(&mut self, end: End, cx: &mut Context<'_>) -> End {
        self.end(end);
        // The GOAWAY names the last request that was looked at; what the peer sent after it is safe to repeat.
        let _ = self.engine.poll_closed(cx);
        let _ = self.driver.flush(cx);
        self.count();
        end
    }

    /// Lets the engine read and write, and begins the requests that came; `Some` when the connection is over.
    fn serve(&mut self, cx: &mut Context<'_>) -> Option<End> {
        let mut now = None;
        loop {
            match self.engine.poll_accept(cx) {
                Poll::Ready(Some(Ok((request, respond)))) => {
                    let now = *now.get_or_insert_with(Instant::now);
                    self.begin(request, respond, now, cx);
                }
                Poll::Ready(Some(Err(error))) => {
                    let blamed = error.is_library() || error.reason().is_some_and(|r| r != Reason::NO_ERROR);
                    let end = if blamed && !error.is_io() && !error.is_remote() {
                        End::Fault
                    } else {
                        End::Peer
                    };
                    return Some(self.ending.unwrap_or(end));
                }
                Poll::Ready(None) => return Some(self.ending.unwrap_or(End::Peer)),
                Poll::Pending => return None,
            }
        }
    }

    fn begin(
        &mut self,
        request: http::Request<h2::RecvStream>,
        mut respond: h2::server::SendResponse<Outgoing>,
        now: Instant,
        cx: &mut Context<'_>,
    ) {
        let (config, stats) = (&self.shared.config, &self.shared.stats);
        count(&stats.requests);
        self.taken += 1;
        if self.activity.untaken() > config.max_untaken.as_usize() {
            count(&stats.requests_refused_untaken);
            respond.send_reset(Reason::REFUSED_STREAM);
            return;
        }
        if self.activity.account().is_greedy() {
            count(&stats.requests_refused_memory);
            respond.send_reset(Reason::REFUSED_STREAM);
            return;
        }
        self.seat.used(now);
        let in_progress = self.activity.begin();
        let place = in_progress.place();
        if !self.window.admits(config.max_request_rate, now) {
            count(&stats.requests_over_rate);
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
            let task = tokio::task::spawn_local(exchange);
            self.activity.became(place, task.abort_handle());
        }
    }

    /// Begins to end the connection: nicely (what is in progress finishes) or at once.
    fn end(&mut self, end: End) {
        match end {
            End::Drained | End::Idle => self.engine.graceful_shutdown(),
            End::Displaced => self.engine.abrupt_shutdown(Reason::NO_ERROR),
            End::Flood(_) | End::SlowHeaders | End::Greedy => {
                self.engine.abrupt_shutdown(Reason::ENHANCE_YOUR_CALM);
            }
            End::Peer | End::Fault | End::Stalled => {}
        }
        self.ending = Some(end);
        self.ended_at = Some(Instant::now());
    }

    /// How often the slow limits are looked at: often enough to be exact to a quarter.
    fn check_period(&self) -> Duration {
        let config = &self.shared.config;
        let shortest = config
            .write_stall_timeout
            .min(config.idle_timeout)
            .min(config.header_timeout)
            .min(config.answer_timeout);
        (shortest.duration() / 4).clamp(Duration::from_millis(5), Duration::from_secs(5))
    }

    /// The limits that only time passes.
    fn check(&mut self, now: Instant) -> Poll<End> {
        let config = self.shared.config.clone();
        if self.activity.moved() || self.activity.open() > 0 {
            self.quiet_since = now;
        }
        let untaken = now.saturating_duration_since(self.driver.progress());
        if self.driver.waiting() > 0 && untaken >= config.write_stall_timeout.duration() {
            return Poll::Ready(End::Stalled);
        }
        let given_up = self
            .activity
            .give_up_untaken(now, config.answer_timeout.duration());
        add(&self.shared.stats.answers_not_taken, given_up);
        let header_limit = config.header_timeout.duration();
        let slow = self.driver.watch(|watch| watch.is_slow(now, header_limit));
        match (self.ending, self.ended_at) {
            // Whoever was told to go and stays is not waited for.
            (Some(end), Some(at))
                if end != End::Drained
                    && now.saturating_duration_since(at) >= config.handshake_timeout.duration() =>
            {
                return Poll::Ready(end);
            }
            (Some(_), _) => {}
            (None, _) if slow => self.end(End::SlowHeaders),
            (None, _)
                if now.saturating_duration_since(self.quiet_since) >= config.idle_timeout.duration() =>
            {
                self.end(End::Idle);
            }
            (None, _) => {}
        }
        Poll::Pending
    }

    fn count(&self) {
        let (stats, counted) = (&self.shared.stats, &self.counted);
        let (read, wrote) = self.driver.bytes();
        set(&stats.memory_held, self.activity.account().memory().held() as u64);
        add(&stats.bytes_in, read - counted.bytes_in.replace(read));
        add(&stats.bytes_out, wrote - counted.bytes_out.replace(wrote));
        let opened = self.driver.watch(FrameWatch::opened);
        let not_taken = opened.saturating_sub(self.taken);
        let before = counted.not_taken.get();
        if not_taken > before {
            counted.not_taken.set(not_taken);
            add(&stats.streams_refused, not_taken - before);
        }
    }
}
