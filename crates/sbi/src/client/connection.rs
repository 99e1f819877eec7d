//! One connection to a peer and the requests on it.

use std::cell::{Cell, RefCell};
use std::future::{Future, poll_fn};
use std::net::{IpAddr, SocketAddr};
use std::pin::{Pin, pin};
use std::rc::{Rc, Weak};
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

use futures_util::stream::{FuturesUnordered, StreamExt};
use h2::client::SendRequest;
use rustls_pki_types::ServerName;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpStream, lookup_host};
use tokio_rustls::TlsConnector;

use super::config::ClientConfig;
use super::error::{SendError, SendErrorKind};
use super::outgoing::Outgoing;
use super::pace::Pace;
use super::pool::Pool;
use crate::body::Body;
use crate::collect::{CollectFault, collect};
use crate::io::{Driver, FRAME_SIZE, Flood, FrameLimits, FrameWatch, Gather, IoSizes, LINGER, pair, window};
use crate::memory::{self, Account, Charge, Memory};
use crate::message::Response;
use crate::server::{ServerStats, count};

type Answer = Pin<Box<dyn Future<Output = Result<Response, SendError>>>>;

/// A connection that requests can be sent on.
pub(super) struct Connection {
    /// `None` once the connection takes no more requests.
    sender: RefCell<Option<SendRequest<Outgoing>>>,
    in_progress: Cell<u32>,
    streams_max: u32,
    body_max: usize,
    abandoned_max: usize,
    abandoned_wait: Duration,
    resets: Rc<Pace>,
    last_used: Cell<Instant>,
    /// Answers that nobody waits for any more.
    abandoned: RefCell<FuturesUnordered<Pin<Box<dyn Future<Output = ()>>>>>,
    driver_waker: RefCell<Option<Waker>>,
    /// What is held for it.
    account: Rc<Account>,
    /// Nobody drives the connection any more.
    ended: Cell<bool>,
    pool: Weak<Pool>,
}

/// A request on its way. Dropping it before the answer is here leaves the answer to the connection.
pub(super) struct Exchange {
    answer: Option<Answer>,
    connection: Rc<Connection>,
}

/// Why a request was not sent.
pub(super) enum NotBegun {
    /// The connection takes no more requests; here is this one.
    Gone(Box<http::Request<Body>>),
    /// The request cannot be sent.
    Failed(SendError),
}

/// Why we ended a connection, where that was the peer's doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Blamed {
    /// It sent too many frames.
    Flood(Flood),
    /// Its answers held most where all connections of the worker together held too much.
    Greedy,
}

/// Counts a request as being in progress.
struct InProgress(Rc<Connection>);

impl Drop for InProgress {
    fn drop(&mut self) {
        self.0.in_progress.set(self.0.in_progress.get() - 1);
        self.0.last_used.set(Instant::now());
        if let Some(pool) = self.0.pool.upgrade() {
            pool.serve_waiting();
        }
    }
}

impl Connection {
    pub(super) fn is_usable(&self) -> bool {
        self.sender.borrow().is_some()
    }

    pub(super) fn in_progress(&self) -> u32 {
        self.in_progress.get()
    }

    pub(super) fn has_room(&self) -> bool {
        self.has_room_for(1)
    }

    pub(super) fn has_room_for(&self, more: u32) -> bool {
        let sender = self.sender.borrow();
        let allowed = sender.as_ref().map_or(0, SendRequest::current_max_send_streams);
        let allowed = u32::try_from(allowed).unwrap_or(u32::MAX).min(self.streams_max);
        self.in_progress.get().saturating_add(more) <= allowed
    }

    /// Opens a stream for the request; gives the request back if the connection takes no more.
    pub(super) fn begin(self: &Rc<Self>, request: http::Request<Body>) -> Result<Exchange, NotBegun> {
        // A handle of its own for each stream: one that may have to wait does not keep others from opening.
        let Some(mut sender) = self.sender.borrow().clone() else {
            return Err(NotBegun::Gone(Box::new(request)));
        };
        // A connection that ended or said goodbye tells so here, while the request is still ours.
        if !matches!(
            sender.poll_ready(&mut Context::from_waker(Waker::noop())),
            Poll::Ready(Ok(()))
        ) {
            self.retire();
            return Err(NotBegun::Gone(Box::new(request)));
        }
        let (head, body) = request.into_parts();
        let bodiless = body.is_empty();
        let opened = sender.send_request(http::Request::from_parts(head, ()), bodiless);
        // Neither the network's nor the peer's doing: the engine cannot send such a request.
        let (response, mut stream) = opened.map_err(|error| {
            NotBegun::Failed(SendError::not_sent(SendErrorKind::Unsendable(error.to_string())))
        })?;
        if !bodiless {
            // The engine queues what the peer's window does not take yet.
            stream
                .send_data(Outgoing(body), true)
                .map_err(|error| NotBegun::Failed(SendError::of_stream(&error)))?;
        }
        self.in_progress.set(self.in_progress.get() + 1);
        let (in_progress, body_max) = (InProgress(self.clone()), self.body_max);
        let mut charge = Charge::new(self.account.clone());
        let answer: Answer = Box::pin(async move {
            let _in_progress = in_progress;
            let response = response.await.map_err(|error| SendError::of_stream(&error))?;
            let (head, mut stream) = response.into_parts();
            let list = memory::header_list(&head.headers);
            charge.add(memory::headers(list, head.headers.len()));
            let body = if stream.is_end_stream() {
                Body::empty()
            } else {
                collect(&mut stream, body_max, |bytes| charge.add(bytes))
                    .await
                    .map_err(|fault| match fault {
                        CollectFault::TooLarge => SendError::unknown(SendErrorKind::TooLarge),
                        CollectFault::Broken(error) => SendError::of_stream(&error),
                    })?
            };
            Ok(Response::from_parts(head, body))
        });
        Ok(Exchange {
            answer: Some(answer),
            connection: self.clone(),
        })
    }

    /// No more requests on this connection; those on it finish.
    pub(super) fn retire(&self) {
        *self.sender.borrow_mut() = None;
        if let Some(pool) = self.pool.upgrade() {
            pool.lost();
        }
    }
}

impl Exchange {
    /// Waits for the answer.
    pub(super) async fn response(&mut self) -> Result<Response, SendError> {
        let outcome = poll_fn(|cx| match &mut self.answer {
            Some(answer) => answer.as_mut().poll(cx),
            // Asked again after the answer was given: there is no second one.
            None => Poll::Ready(Err(SendError::unknown(SendErrorKind::Timeout))),
        })
        .await;
        self.answer = None;
        outcome
    }
}

impl Drop for Exchange {
    fn drop(&mut self) {
        let Some(mut answer) = self.answer.take() else {
            return;
        };
        let connection = &self.connection;
        if connection.ended.get() {
            return;
        }
        let abandoned = connection.abandoned.borrow();
        // Beyond the bound the stream is reset as soon as it is its turn.
        let wait = if abandoned.len() < connection.abandoned_max {
            connection.abandoned_wait
        } else {
            Duration::ZERO
        };
        let resets = connection.resets.clone();
        abandoned.push(Box::pin(async move {
            if tokio::time::timeout(wait, &mut answer).await.is_err() {
                // The answer may still come before the turn does.
                tokio::select! {
                    biased;
                    _ = &mut answer => {}
                    () = resets.turn() => {}
                }
            }
        }));
        if let Some(waker) = connection.driver_waker.borrow_mut().take() {
            waker.wake();
        }
    }
}

/// Connects to the pool's origin; the text of the error says what failed.
pub(super) async fn connect(pool: &Rc<Pool>) -> Result<Rc<Connection>, String> {
    let config = &pool.config;
    let attempt = async {
        let origin = &pool.origin;
        let stream = open(pool).await?;
        let _ = stream.set_nodelay(true);
        match &pool.tls {
            None => start(stream, pool).await,
            Some(tls) => {
                let name = ServerName::try_from(origin.host().to_owned()).map_err(|e| e.to_string())?;
                let stream = TlsConnector::from(tls.load()).connect(name, stream).await;
                let stream = stream.map_err(|error| format!("TLS: {error}"))?;
                if stream.get_ref().1.alpn_protocol() != Some(b"h2") {
                    return Err("TLS: the peer does not offer HTTP/2 (ALPN h2)".to_owned());
                }
                start(stream, pool).await
            }
        }
    };
    let limit = config.connect_timeout.duration();
    tokio::time::timeout(limit, attempt)
        .await
        .unwrap_or_else(|_| Err(format!("no connection within {limit:?}")))
}

/// Connects to one of the addresses of the pool's host.
async fn open(pool: &Pool) -> Result<TcpStream, String> {
    let (host, port) = (pool.origin.host(), pool.origin.port());
    let names = pool.names.as_ref().filter(|_| host.parse::<IpAddr>().is_err());
    let mut addresses: Vec<SocketAddr> = match names {
        Some(names) => {
            let found = names.addresses(host).await.map_err(|e| e.to_string())?;
            found.iter().map(|ip| SocketAddr::new(*ip, port)).collect()
        }
        None => {
            let found = lookup_host((host, port)).await.map_err(|e| e.to_string())?;
            found.collect()
        }
    };
    if let Some(guard) = &pool.guard {
        addresses = guard.screen(addresses)?;
    }
    let mut why = String::new();
    // An address that stays silent leaves the others their part of the time.
    let limit = pool.config.connect_timeout.duration() / u32::try_from(addresses.len().max(1)).unwrap_or(1);
    for address in addresses {
        match tokio::time::timeout(limit, TcpStream::connect(address)).await {
            Ok(Ok(stream)) => return Ok(stream),
            Ok(Err(error)) => why = format!("{}: {error}", address.ip()),
            Err(_) => why = format!("{}: no connection within {limit:?}", address.ip()),
        }
    }
    Err(why)
}

async fn start<T>(io: T, pool: &Rc<Pool>) -> Result<Rc<Connection>, String>
where
    T: AsyncRead + AsyncWrite + Unpin + 'static,
{
    let config = &pool.config;
    let watch = FrameWatch::of_server(FrameLimits {
        control: config.max_control_rate,
        resets: 0,
        windows: config.max_window_update_rate,
    });
    let (gather, driver) = pair(io, IoSizes::default(), watch, Instant::now());
    // A byte more than a body may have, so that its excess is seen.
    let stream_window = config.max_body.bytes().saturating_add(1);
    let mut engine = h2::client::Builder::new();
    engine
        .enable_push(false)
        .initial_max_send_streams(config.max_streams_per_connection as usize)
        .max_header_list_size(window(config.max_header_list.bytes()))
        .initial_window_size(window(stream_window))
        .max_frame_size(FRAME_SIZE)
        .initial_connection_window_size(window(stream_window.max(config.max_arriving.bytes())))
        .max_concurrent_reset_streams(1_000)
        .reset_stream_duration(Duration::from_secs(1));
    let mut handshake = pin!(engine.handshake::<_, Outgoing>(gather));
    let (sender, engine) = poll_fn(|cx| {
        driver.turn();
        let done = handshake.as_mut().poll(cx);
        // An error of the socket shows in the handshake as well.
        let _ = driver.flush(cx);
        done
    })
    .await
    .map_err(|error| error.to_string())?;
    let connection = Rc::new(Connection {
        sender: RefCell::new(Some(sender)),
        in_progress: Cell::new(0),
        streams_max: config.max_streams_per_connection,
        body_max: config.max_body.as_usize(),
        abandoned_max: config.max_abandoned as usize,
        abandoned_wait: config.abandoned_wait.duration(),
        resets: Rc::new(Pace::new(config.max_cancel_rate)),
        last_used: Cell::new(Instant::now()),
        abandoned: RefCell::default(),
        driver_waker: RefCell::default(),
        account: Memory::of_worker().open(),
        ended: Cell::new(false),
        pool: Rc::downgrade(pool),
    });
    let (driven, config) = (connection.clone(), pool.config.clone());
    tokio::task::spawn_local(async move {
        let blamed = drive(engine, &driver, &driven, &config).await;
        driven.ended.set(true);
        // The abandoned hold the connection that holds them.
        drop(driven.abandoned.take());
        if let Some(blamed) = blamed {
            driven.account.memory().stats(|stats| blamed.count(stats));
            if let Some(pool) = driven.pool.upgrade() {
                pool.blamed(blamed);
            }
        }
        driven.retire();
        if blamed.is_some() {
            // The GOAWAY says why, if the peer still listens.
            driver.say_goodbye(h2::Reason::ENHANCE_YOUR_CALM.into());
            let _ = tokio::time::timeout(LINGER.1, driver.linger(LINGER.0)).await;
        }
    });
    Ok(connection)
}

impl Blamed {
    /// In words, for those who had requests on the connection.
    pub(super) fn what(self) -> &'static str {
        match self {
            Self::Flood(flood) => flood.what(),
            Self::Greedy => "more than there is memory for",
        }
    }

    fn count(self, stats: &ServerStats) {
        match self {
            Self::Flood(_) => count(&stats.peers_flooding),
            Self::Greedy => count(&stats.peers_greedy),
        }
    }
}

/// Moves the bytes of a connection until it ends, is idle for too long, or answers no probe; what the peer did
/// wrong, if that is why. With the engine gone, the requests that are left fail.
async fn drive<T>(
    mut engine: h2::client::Connection<Gather<T>, Outgoing>,
    driver: &Driver<T>,
    connection: &Rc<Connection>,
    config: &ClientConfig,
) -> Option<Blamed>
where
    T: AsyncRead + AsyncWrite + Unpin,
{
    let mut ping = engine.ping_pong();
    let mut probed: Option<Instant> = None;
    let mut heard: (u64, Instant) = (0, Instant::now());
    let period = check_period(config);
    let mut check = pin!(tokio::time::sleep(period));
    let mut buffers = Charge::new(connection.account.clone());
    let block_limit = config.max_header_list.as_usize();
    poll_fn(|cx| {
        if driver.is_resting() {
            return Poll::Pending;
        }
        driver.turn();
        let ended = Pin::new(&mut engine).poll(cx).is_ready();
        let broken = matches!(driver.flush(cx), Poll::Ready(Err(_)));
        buffers.set(driver.held(block_limit));
        let blamed = match connection.account.told() {
            Some(_) => Some(Blamed::Greedy),
            None => driver.watch(FrameWatch::flood).map(Blamed::Flood),
        };
        if ended || broken || blamed.is_some() {
            return Poll::Ready(blamed);
        }
        connection.account.listen(cx);
        discard(connection, cx);
        // The peer may have raised its limit of streams.
        if let Some(pool) = connection.pool.upgrade() {
            pool.serve_waiting();
        }
        while check.as_mut().poll(cx).is_ready() {
            let now = Instant::now();
            let bytes_in = driver.bytes().0;
            if bytes_in != heard.0 {
                heard = (bytes_in, now);
                probed = None;
            }
            if let (Some(at), false) = (probed, config.ping_interval.is_zero())
                && now.saturating_duration_since(at) >= config.ping_timeout.duration()
            {
                return Poll::Ready(None);
            }
            let silent = now.saturating_duration_since(heard.1);
            let probe = !config.ping_interval.is_zero() && silent >= config.ping_interval.duration();
            if probe
                && probed.is_none()
                && connection.in_progress.get() > 0
                && let Some(ping) = &mut ping
                && ping.send_ping(h2::Ping::opaque()).is_ok()
            {
                probed = Some(now);
            }
            let unused = now.saturating_duration_since(connection.last_used.get());
            if connection.in_progress.get() == 0 && unused >= config.idle_timeout.duration() {
                connection.retire();
            }
            check.as_mut().reset(tokio::time::Instant::now() + period);
        }
        // A pong is only bytes that came; taking it lets the next probe be sent.
        if let Some(ping) = &mut ping {
            let _ = ping.poll_pong(cx);
        }
        Poll::Pending
    })
    .await
}

fn discard(connection: &Connection, cx: &mut Context<'_>) {
    let mut abandoned = connection.abandoned.borrow_mut();
    while let Poll::Ready(Some(())) = abandoned.poll_next_unpin(cx) {}
    *connection.driver_waker.borrow_mut() = Some(cx.waker().clone());
}

fn check_period(config: &ClientConfig) -> Duration {
    let mut shortest = config.idle_timeout.duration();
    if !config.ping_interval.is_zero() {
        shortest = shortest
            .min(config.ping_interval.duration())
            .min(config.ping_timeout.duration());
    }
    (shortest / 4).clamp(Duration::from_millis(5), Duration::from_secs(5))
}
