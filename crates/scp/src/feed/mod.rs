//! A copy of messages for analytics, to Kafka.
//!
//! ```text
//! worker ─ Tap ─ lane (bounded in bytes) ┐
//! worker ─ Tap ─ lane                    ├─ thread `scp-feed-0`: encode, batch, send, count
//! worker ─ Tap ─ lane                    ┘
//! worker ─ Tap ─ lane                    ── thread `scp-feed-1`, where `senders` is 2
//! ```
//!
//! A worker hands over cheap copies (bodies are shared, not copied) and never waits; a thread of the feed
//! encodes them. Memory is bounded in bytes from the copy to the broker's answer. After
//! several consecutive failures of brokers the thread pauses, and its workers only check a flag.

#[cfg_attr(not(feature = "kafka"), path = "without_kafka.rs")]
mod kafka;
mod message;
mod pump;

use std::cell::{Cell, RefCell};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use std::thread::JoinHandle;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use ::function::{Shutdown, StartError};
use crossbeam_channel::{Receiver, Sender, unbounded};
use http::{Method, StatusCode};
use overload::Discard;
use sbi::{Body, Fields};
use telemetry::metrics::Counter;
use telemetry::{Alert, Registry, When};

pub(crate) use message::Exchange;

use crate::config::{Config, Feed, FeedPoint};

telemetry::declare! {
    /// Metrics of the feed.
    pub METRICS;
    counter COPIED = "signalbox_scp_feed_copied_total" ["point"]: "Messages copied for the feed, by trigger point.";
    counter DELIVERED = "signalbox_scp_feed_delivered_total" []: "Copies delivered to a broker.";
    counter LOST = "signalbox_scp_feed_lost_total" ["reason"]: "Copies that were dropped: full, paused, late, blocked, failed.";
    counter PAUSES = "signalbox_scp_feed_pauses_total" []: "Times that the feed paused because brokers failed several times in a row.",
        alert Alert::minor(When::Occurs, 1, "Check the brokers and the connection to them: copies of messages are dropped meanwhile.");
    gauge BUFFERED = "signalbox_scp_feed_buffered_bytes" []: "Memory of copies that are not delivered yet.";
}

/// Memory of a copy beside its headers and body, in bytes.
const OVERHEAD: u64 = 512;

/// A copied message between a worker and the feed.
pub(crate) struct Copied {
    point: FeedPoint,
    /// Nanoseconds since 1970.
    at: u64,
    given: Instant,
    exchange: Exchange,
    method: Method,
    /// Path and query.
    target: String,
    status: Option<StatusCode>,
    headers: Fields,
    body: Body,
    /// Its accounted memory, in bytes.
    cost: u64,
}

/// State shared by a worker and the feed. Each field has one writer.
#[derive(Debug, Default)]
struct Lane {
    /// Whether the feed pauses, so that copies are dropped; written by the feed.
    paused: AtomicBool,
    /// Bytes given; written by the worker.
    given: AtomicU64,
    /// Bytes delivered or dropped; written by the feed.
    done: AtomicU64,
}

impl Lane {
    fn held(&self) -> u64 {
        let done = self.done.load(Ordering::Acquire);
        self.given.load(Ordering::Relaxed).saturating_sub(done)
    }

    /// Releases bytes; only the feed calls this.
    fn release(&self, bytes: u64) {
        let done = self.done.load(Ordering::Relaxed);
        self.done.store(done.wrapping_add(bytes), Ordering::Release);
    }
}

/// The counters of the feed.
#[derive(Clone, Debug)]
struct Counts {
    copied: [Counter; 4],
    delivered: Counter,
    pauses: Counter,
    full: Counter,
    paused: Counter,
    late: Counter,
    blocked: Counter,
    failed: Counter,
}

impl Counts {
    fn new(registry: &Registry) -> Self {
        let (copied, lost) = (registry.counters(&COPIED), registry.counters(&LOST));
        let point = |point: FeedPoint| copied.get(&[point.as_str()]);
        Self {
            copied: [
                FeedPoint::RxRequest,
                FeedPoint::TxRequest,
                FeedPoint::RxResponse,
                FeedPoint::TxResponse,
            ]
            .map(point),
            delivered: registry.counter(&DELIVERED),
            pauses: registry.counter(&PAUSES),
            full: lost.get(&["full"]),
            paused: lost.get(&["paused"]),
            late: lost.get(&["late"]),
            blocked: lost.get(&["blocked"]),
            failed: lost.get(&["failed"]),
        }
    }
}

/// State shared by all workers.
struct Shared {
    settings: Feed,
    lanes: Vec<Lane>,
    counts: Counts,
}

/// The feed of an SCP: a tap for each worker, and its threads.
pub(crate) struct Running {
    shared: Arc<Shared>,
    /// Alive as long as a tap exists.
    used: Weak<()>,
    taps: parking_lot::Mutex<Vec<Option<Tap>>>,
    threads: parking_lot::Mutex<Vec<JoinHandle<()>>>,
    stop: Shutdown,
}

impl Running {
    /// Returns the tap of a worker, once.
    pub(crate) fn tap(&self, worker: usize) -> Option<Tap> {
        self.taps.lock().get_mut(worker)?.take()
    }

    /// Memory of copies that are not delivered yet.
    pub(crate) fn buffered(&self) -> u64 {
        self.shared.lanes.iter().map(Lane::held).sum()
    }

    /// Waits until no worker uses the feed, after another feed has replaced it, and ends it. Blocks.
    pub(crate) fn retire(&self) {
        /// Longer than an exchange takes; later copies are lost and counted.
        const MOST: Duration = Duration::from_secs(60);
        self.taps.lock().clear();
        let began = Instant::now();
        while self.used.strong_count() > 0 && began.elapsed() < MOST {
            std::thread::sleep(Duration::from_millis(10));
        }
        self.stop();
    }

    /// Sends the remaining copies within `deliveryTimeout`, and ends. Blocks.
    pub(crate) fn stop(&self) {
        self.stop.fire();
        let threads = std::mem::take(&mut *self.threads.lock());
        for thread in threads {
            if thread.join().is_err() {
                tracing::error!("a thread of the feed panicked; see the log");
            }
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // Ends a feed that was started for a failed reload.
        self.stop.fire();
    }
}

impl std::fmt::Debug for Running {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Feed")
    }
}

/// Starts the feed if it is enabled, even if no broker is reachable.
///
/// # Errors
/// When the certificates cannot be used, or the system has no thread to give.
pub(crate) fn start(
    config: &Config,
    workers: usize,
    registry: &Registry,
) -> Result<Option<Running>, StartError> {
    let settings = &config.feed;
    if !settings.enabled {
        return Ok(None);
    }
    let (taps, pumps) = plumb(settings, workers, registry);
    let Some(shared) = taps.first().map(|tap| tap.shared.clone()) else {
        return Ok(None);
    };
    let running = Running {
        shared,
        used: taps
            .first()
            .map(|tap| Arc::downgrade(&tap.used))
            .unwrap_or_default(),
        taps: parking_lot::Mutex::new(taps.into_iter().map(Some).collect()),
        threads: parking_lot::Mutex::default(),
        stop: Shutdown::new(),
    };
    let source = message::Source::new(config);
    for (number, pump) in pumps.into_iter().enumerate() {
        let thread = start_thread(number, pump, settings, source.clone(), running.stop.clone())?;
        running.threads.lock().push(thread);
    }
    Ok(Some(running))
}

#[cfg_attr(
    not(feature = "kafka"),
    expect(
        unused,
        reason = "without Kafka there are no brokers, and what follows is never reached"
    )
)]
fn start_thread(
    number: usize,
    pump: pump::Pump,
    settings: &Feed,
    source: message::Source,
    stop: Shutdown,
) -> Result<JoinHandle<()>, StartError> {
    let brokers = kafka::Brokers::new(settings).map_err(StartError::Config)?;
    let run = move || {
        let runtime = match tokio::runtime::Builder::new_current_thread().enable_all().build() {
            Ok(runtime) => runtime,
            Err(error) => {
                tracing::error!(%error, "feed could not be started; all copies will be lost");
                return;
            }
        };
        let sink = kafka::Kafka::new(brokers);
        tokio::task::LocalSet::new().block_on(&runtime, pump.run(sink, source, stop));
    };
    std::thread::Builder::new()
        .name(format!("scp-feed-{number}"))
        .spawn(run)
        .map_err(StartError::io("starting a thread of the feed"))
}

/// Creates the taps of the workers and the pumps that empty them.
fn plumb(settings: &Feed, workers: usize, registry: &Registry) -> (Vec<Tap>, Vec<pump::Pump>) {
    let shared = Arc::new(Shared {
        settings: settings.clone(),
        lanes: (0..workers).map(|_| Lane::default()).collect(),
        counts: Counts::new(registry),
    });
    let used = Arc::new(());
    let senders = usize::from(settings.senders).clamp(1, workers.max(1));
    let (mut taps, mut receivers) = (Vec::new(), vec![Vec::new(); senders]);
    for lane in 0..workers {
        // Bounded by the bytes of the lane, not by a number of messages.
        let (sender, receiver) = unbounded();
        receivers[lane % senders].push((lane, receiver));
        taps.push(Tap::new(shared.clone(), lane, sender, used.clone()));
    }
    let pumps = receivers
        .into_iter()
        .map(|receivers| pump::Pump::new(shared.clone(), receivers))
        .collect();
    (taps, pumps)
}

/// Input of a worker to the feed.
pub(crate) struct Tap {
    shared: Arc<Shared>,
    /// Held by the taps of a feed only, so that its last drop shows the end of their use.
    used: Arc<()>,
    lane: usize,
    sender: Sender<Copied>,
    points: [bool; 4],
    /// Bytes of undelivered copies of this worker at most.
    most: u64,
    skipped: RefCell<Discard>,
    next: Cell<u64>,
}

/// A message that may be copied.
pub(crate) struct Shown<'a> {
    pub(crate) point: FeedPoint,
    pub(crate) method: &'a Method,
    /// Path and query.
    pub(crate) target: &'a str,
    pub(crate) status: Option<StatusCode>,
    pub(crate) headers: &'a Fields,
    pub(crate) body: &'a Body,
}

impl Tap {
    fn new(shared: Arc<Shared>, lane: usize, sender: Sender<Copied>, used: Arc<()>) -> Self {
        let settings = &shared.settings;
        let mut points = [false; 4];
        for point in &settings.trigger_points {
            points[point.index()] = true;
        }
        Self {
            points,
            most: settings.buffer_memory.bytes() / shared.lanes.len().max(1) as u64,
            skipped: RefCell::default(),
            // Each worker has its own range of numbers.
            next: Cell::new((lane as u64) << 48),
            lane,
            sender,
            used,
            shared,
        }
    }

    /// Begins an exchange, if it is to be copied.
    pub(crate) fn begin(&self, service: &str, consumer: Option<&[u8]>) -> Option<Exchange> {
        let settings = &self.shared.settings;
        if !settings.services.is_empty() && !settings.services.iter().any(|one| one == service) {
            return None;
        }
        let left_out = 1.0 - settings.allowed_traffic_percentage.fraction();
        if self.skipped.borrow_mut().next(left_out) {
            return None;
        }
        let number = self.next.get();
        self.next.set(number.wrapping_add(1));
        Some(Exchange {
            number,
            consumer: consumer.map(|name| String::from_utf8_lossy(name).into()),
            producer: None,
            instance: None,
            attempt: 0,
        })
    }

    /// Copies a message of an exchange, if there is room.
    pub(crate) fn copy(&self, exchange: &Exchange, shown: &Shown<'_>) {
        let (shared, point) = (&*self.shared, shown.point.index());
        if !self.points[point] {
            return;
        }
        let lane = &shared.lanes[self.lane];
        if lane.paused.load(Ordering::Relaxed) {
            shared.counts.paused.inc();
            return;
        }
        let fields = shown.headers.iter();
        let length: usize = fields
            .map(|field| field.name.as_str().len() + field.value.len())
            .sum();
        let body = match shared.settings.bodies {
            true => shown.body.clone(),
            false => Body::empty(),
        };
        // The encoded text exists beside the copy for a moment; binary bodies grow by a third.
        let cost = OVERHEAD + (length + body.len()) as u64 * 3 / 2;
        if lane.held() + cost > self.most {
            shared.counts.full.inc();
            return;
        }
        let copied = Copied {
            point: shown.point,
            at: unix_nanos(),
            given: Instant::now(),
            exchange: exchange.clone(),
            method: shown.method.clone(),
            target: shown.target.to_owned(),
            status: shown.status,
            headers: shown.headers.clone(),
            body,
            cost,
        };
        let given = lane.given.load(Ordering::Relaxed);
        lane.given.store(given.wrapping_add(cost), Ordering::Release);
        if self.sender.send(copied).is_err() {
            lane.given.store(given, Ordering::Release);
            shared.counts.failed.inc();
            return;
        }
        shared.counts.copied[point].inc();
    }
}

fn unix_nanos() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_nanos()).unwrap_or(u64::MAX)
}

/// Ends of workers, each with the number of its lane.
type Receivers = Vec<(usize, Receiver<Copied>)>;

#[cfg(test)]
mod tests {
    use super::*;

    fn shown<'a>(target: &'a str, headers: &'a Fields, body: &'a Body) -> Shown<'a> {
        Shown {
            point: FeedPoint::RxRequest,
            method: &Method::POST,
            target,
            status: None,
            headers,
            body,
        }
    }

    #[test]
    fn memory_is_bounded_and_what_exceeds_it_is_counted() {
        let registry = Registry::new();
        let settings = Feed {
            buffer_memory: settings::ByteSize(4 * 2012),
            ..Feed::default()
        };
        let (taps, _pumps) = plumb(&settings, 2, &registry);
        let (target, headers) = ("/a/v1/b", Fields::new());
        let body = Body::from(vec![b'x'; 1000]);
        let exchange = taps[0].begin("a", Some(b"AMF")).unwrap();
        for _ in 0..5 {
            taps[0].copy(&exchange, &shown(target, &headers, &body));
        }
        // Half of the memory is the other worker's.
        assert_eq!(taps[0].shared.counts.copied[0].value(), 2);
        assert_eq!(taps[0].shared.counts.full.value(), 3);
        taps[1].copy(&exchange, &shown(target, &headers, &body));
        assert_eq!(taps[0].shared.counts.copied[0].value(), 3);
        let held: u64 = taps[0].shared.lanes.iter().map(Lane::held).sum();
        assert_eq!(held, 6036);
    }

    #[test]
    fn only_the_share_the_services_and_the_points_that_are_wanted() {
        let settings = Feed {
            allowed_traffic_percentage: settings::Percent::new(25.0),
            services: vec!["a".into()],
            trigger_points: vec![FeedPoint::TxResponse],
            ..Feed::default()
        };
        let (taps, _pumps) = plumb(&settings, 1, &Registry::new());
        assert!(taps[0].begin("b", None).is_none());
        let some = (0..100).filter(|_| taps[0].begin("a", None).is_some()).count();
        assert_eq!(some, 25);
        let (target, headers, body) = ("/", Fields::new(), Body::empty());
        let exchange = (0..4).find_map(|_| taps[0].begin("a", None)).unwrap();
        taps[0].copy(&exchange, &shown(target, &headers, &body));
        assert_eq!(taps[0].shared.counts.copied[0].value(), 0);
    }

    #[test]
    fn workers_are_divided_among_the_senders() {
        let settings = |senders| Feed {
            senders,
            ..Feed::default()
        };
        for (senders, workers, pumps) in [(1, 4, 1), (2, 5, 2), (9, 3, 3)] {
            let (taps, plumbed) = plumb(&settings(senders), workers, &Registry::new());
            assert_eq!((taps.len(), plumbed.len()), (workers, pumps));
        }
    }
}
