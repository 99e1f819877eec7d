//! Moves copies from the lanes of the workers into batches and sends these to the brokers.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use ::function::Shutdown;

use super::message::Source;
use super::{Receivers, Shared};
use crate::config::PartitionSelection;

/// Why a batch was not delivered.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(super) struct SinkError(pub(super) String);

/// A message for a partition.
#[derive(Clone, Debug)]
#[cfg_attr(not(feature = "kafka"), allow(dead_code, reason = "brokers alone read it"))]
pub(super) struct Record {
    pub(super) key: Vec<u8>,
    pub(super) value: Vec<u8>,
    /// Nanoseconds since 1970.
    pub(super) at: i64,
}

/// Receiver of batches.
pub(super) trait Sink: 'static {
    /// Number of partitions; 0: not connected.
    fn partitions(&self) -> usize;
    /// Connects or reconnects.
    async fn connect(&self) -> Result<(), SinkError>;
    /// Closes the connections.
    fn disconnect(&self);
    /// Delivers a batch to a partition.
    async fn send(&self, partition: usize, records: Vec<Record>) -> Result<(), SinkError>;
}

/// The work of the feed's thread.
pub(super) struct Pump {
    shared: Arc<Shared>,
    receivers: Receivers,
}

/// A batch of one partition.
#[derive(Default)]
struct Batch {
    records: Vec<Record>,
    size: usize,
    /// Bytes held, in the order of the receivers.
    held: Vec<u64>,
    /// When its first message was put in.
    since: Option<Instant>,
}

/// State that the tasks of batches in flight share with the pump.
struct Ways<S> {
    sink: S,
    shared: Arc<Shared>,
    /// The lanes of this pump, in the order of its receivers.
    lanes: Vec<usize>,
    /// Batches in flight, by partition.
    under_way: RefCell<Vec<usize>>,
    /// Failures since the last delivery.
    failures: Cell<u32>,
    resumes: Cell<Option<Instant>>,
}

impl<S> Ways<S> {
    fn release(&self, held: &[u64]) {
        for (lane, bytes) in self.lanes.iter().zip(held) {
            self.shared.lanes[*lane].release(*bytes);
        }
    }

    fn set_paused(&self, paused: bool) {
        for lane in &self.lanes {
            self.shared.lanes[*lane].paused.store(paused, Ordering::Relaxed);
        }
    }

    fn failed(&self, error: &SinkError, now: Instant) {
        let failures = self.failures.get() + 1;
        self.failures.set(failures);
        let settings = &self.shared.settings;
        if failures < settings.consecutive_failures || self.resumes.get().is_some() {
            tracing::debug!(%error, "a batch of the feed failed");
            return;
        }
        tracing::warn!(%error, failures, "brokers fail; the feed pauses");
        self.shared.counts.pauses.inc();
        self.set_paused(true);
        let until = now.checked_add(settings.degradation_period.duration());
        self.resumes.set(Some(until.unwrap_or(now)));
    }

    /// Whether the feed pauses at `now`; a pause that is over has ended.
    fn pauses(&self, now: Instant) -> bool {
        match self.resumes.get() {
            Some(until) if now < until => true,
            Some(_) => {
                self.resumes.set(None);
                self.failures.set(0);
                self.set_paused(false);
                false
            }
            None => false,
        }
    }
}

impl Pump {
    pub(super) fn new(shared: Arc<Shared>, receivers: Receivers) -> Self {
        Self { shared, receivers }
    }

    /// Runs until the shutdown, then delivers the remaining copies.
    pub(super) async fn run<S: Sink>(self, sink: S, source: Source, stop: Shutdown) {
        let settings = self.shared.settings.clone();
        let ways = Rc::new(Ways {
            sink,
            shared: self.shared.clone(),
            lanes: self.receivers.iter().map(|(lane, _)| *lane).collect(),
            under_way: RefCell::default(),
            failures: Cell::new(0),
            resumes: Cell::new(None),
        });
        let mut batches: Vec<Batch> = Vec::new();
        let mut turn = 0;
        let mut tick = tokio::time::interval(settings.linger.duration());
        tick.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        loop {
            let stopping = tokio::select! {
                _ = tick.tick() => false,
                () = stop.fired() => true,
            };
            let now = Instant::now();
            if ways.pauses(now) {
                self.drop_waiting();
            } else if ways.sink.partitions() == 0 {
                let connected = match self.anything_waits() {
                    true => ways.sink.connect().await,
                    false => Ok(()),
                };
                match connected {
                    Ok(()) => {
                        let partitions = ways.sink.partitions();
                        batches.resize_with(partitions, Batch::default);
                        ways.under_way.borrow_mut().resize(partitions, 0);
                    }
                    Err(error) => {
                        // Without a connection no batch can be delivered, so one failure starts the pause.
                        ways.failures.set(settings.consecutive_failures.saturating_sub(1));
                        ways.failed(&error, Instant::now());
                    }
                }
            }
            if ways.sink.partitions() == 0 || ways.resumes.get().is_some() {
                // Batches for failed brokers are dropped.
                self.abandon(&mut batches, &ways);
            } else {
                self.fill(&mut batches, &mut turn, &source, &ways).await;
                self.flush(&mut batches, &ways, stopping);
            }
            if stopping {
                break;
            }
        }
        let patience = settings.delivery_timeout.duration();
        let all_done = async {
            while ways.under_way.borrow().iter().any(|count| *count > 0) {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        let _ = tokio::time::timeout(patience, all_done).await;
        self.abandon(&mut batches, &ways);
        // Copies that arrived after the last turn.
        for (lane, receiver) in &self.receivers {
            for copied in receiver.try_iter() {
                self.shared.lanes[*lane].release(copied.cost);
                self.shared.counts.failed.inc();
            }
        }
    }

    /// Drops the copies in batches.
    fn abandon<S: Sink>(&self, batches: &mut [Batch], ways: &Rc<Ways<S>>) {
        for batch in batches {
            let gone = std::mem::take(batch);
            self.shared.counts.failed.add(gone.records.len() as u64);
            ways.release(&gone.held);
        }
    }

    fn anything_waits(&self) -> bool {
        self.receivers.iter().any(|(_, receiver)| !receiver.is_empty())
    }

    /// Drops the queued copies during a pause.
    fn drop_waiting(&self) {
        for (lane, receiver) in &self.receivers {
            for copied in receiver.try_iter() {
                self.shared.lanes[*lane].release(copied.cost);
                self.shared.counts.paused.inc();
            }
        }
    }

    /// Moves queued copies into batches and sends full ones.
    async fn fill<S: Sink>(
        &self,
        batches: &mut [Batch],
        turn: &mut usize,
        source: &Source,
        ways: &Rc<Ways<S>>,
    ) {
        let settings = &self.shared.settings;
        let lanes = self.receivers.len();
        for (position, (lane, receiver)) in self.receivers.iter().enumerate() {
            // Copies that arrive meanwhile wait for the next turn, so that no lane starves the others.
            for copied in receiver.try_iter().take(receiver.len()) {
                let now = Instant::now();
                if now.saturating_duration_since(copied.given) > settings.blocking_send_timeout.duration() {
                    self.shared.lanes[*lane].release(copied.cost);
                    self.shared.counts.late.inc();
                    continue;
                }
                let partition = match settings.partition_selection {
                    PartitionSelection::RoundRobin => {
                        *turn = turn.wrapping_add(1);
                        *turn % batches.len()
                    }
                    PartitionSelection::CorrelationId => {
                        // Numbers are dense in their lower half and name the worker in their upper.
                        (copied.exchange.number as usize) % batches.len()
                    }
                };
                let text = source.encode(&copied);
                let batch = &mut batches[partition];
                batch.held.resize(lanes, 0);
                batch.held[position] += copied.cost;
                batch.size += text.len();
                batch.since.get_or_insert(now);
                batch.records.push(Record {
                    key: source.correlation(&copied.exchange).into_bytes(),
                    value: text,
                    at: i64::try_from(copied.at).unwrap_or_default(),
                });
                if batch.size >= settings.batch_size.as_usize() && !has_left(batch, partition, ways) {
                    self.wait_for_room(batch, partition, ways).await;
                }
            }
        }
    }

    /// Waits at most `maxBlock` until a full batch can be sent; then drops it.
    async fn wait_for_room<S: Sink>(&self, batch: &mut Batch, partition: usize, ways: &Rc<Ways<S>>) {
        let until = Instant::now() + self.shared.settings.max_block.duration();
        while !has_left(batch, partition, ways) {
            if Instant::now() >= until {
                let gone = std::mem::take(batch);
                self.shared.counts.blocked.add(gone.records.len() as u64);
                ways.release(&gone.held);
                return;
            }
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    }

    /// Sends batches that have waited for `linger`.
    fn flush<S: Sink>(&self, batches: &mut [Batch], ways: &Rc<Ways<S>>, all: bool) {
        let (settings, now) = (&self.shared.settings, Instant::now());
        for (partition, batch) in batches.iter_mut().enumerate() {
            let Some(since) = batch.since else { continue };
            let age = now.saturating_duration_since(since);
            if (all || age >= settings.linger.duration()) && has_left(batch, partition, ways) {
                continue;
            }
            if age >= settings.delivery_timeout.duration() {
                let gone = std::mem::take(batch);
                self.shared.counts.late.add(gone.records.len() as u64);
                ways.release(&gone.held);
            }
        }
    }
}

/// Sends a batch, if fewer than `maxInFlight` are in flight to its partition; the batch is empty then.
fn has_left<S: Sink>(batch: &mut Batch, partition: usize, ways: &Rc<Ways<S>>) -> bool {
    let settings = &ways.shared.settings;
    {
        let mut under_way = ways.under_way.borrow_mut();
        let Some(count) = under_way.get_mut(partition) else {
            return false;
        };
        if *count >= settings.max_in_flight {
            return false;
        }
        *count += 1;
    }
    let Batch {
        records, held, since, ..
    } = std::mem::take(batch);
    let waited = since.map_or(Duration::ZERO, |since| since.elapsed());
    let patience = settings.delivery_timeout.duration().saturating_sub(waited);
    let ways = ways.clone();
    tokio::task::spawn_local(async move {
        let count = records.len() as u64;
        let sent = tokio::time::timeout(patience, ways.sink.send(partition, records)).await;
        let counts = &ways.shared.counts;
        match sent.unwrap_or_else(|_| Err(SinkError("not delivered within deliveryTimeout".to_owned()))) {
            Ok(()) => {
                counts.delivered.add(count);
                ways.failures.set(0);
            }
            Err(error) => {
                counts.failed.add(count);
                ways.failed(&error, Instant::now());
                if ways.resumes.get().is_some() {
                    // After repeated failures the connections are closed and recreated after the pause.
                    ways.sink.disconnect();
                }
            }
        }
        ways.release(&held);
        if let Some(count) = ways.under_way.borrow_mut().get_mut(partition) {
            *count -= 1;
        }
    });
    true
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{Config, Feed, FeedPoint};
    use crate::feed::{Shown, Tap, plumb};
    use http::Method;
    use sbi::{Body, Fields};
    use telemetry::Registry;

    /// Brokers as a test wants them.
    #[derive(Clone, Default)]
    struct Fake(Rc<State>);

    #[derive(Default)]
    struct State {
        connected: Cell<bool>,
        gone: Cell<bool>,
        hangs: Cell<bool>,
        connects: Cell<u32>,
        got: RefCell<Vec<(usize, usize)>>,
    }

    impl Sink for Fake {
        fn partitions(&self) -> usize {
            match self.0.connected.get() {
                true => 3,
                false => 0,
            }
        }

        async fn connect(&self) -> Result<(), SinkError> {
            self.0.connects.set(self.0.connects.get() + 1);
            if self.0.gone.get() {
                return Err(SinkError("gone".to_owned()));
            }
            self.0.connected.set(true);
            Ok(())
        }

        fn disconnect(&self) {
            self.0.connected.set(false);
        }

        async fn send(&self, partition: usize, records: Vec<Record>) -> Result<(), SinkError> {
            if self.0.hangs.get() {
                std::future::pending::<()>().await;
            }
            if self.0.gone.get() {
                return Err(SinkError("gone".to_owned()));
            }
            self.0.got.borrow_mut().push((partition, records.len()));
            Ok(())
        }
    }

    fn give(tap: &Tap, count: usize, size: usize) {
        let (target, headers) = ("/a/v1", Fields::new());
        let body = Body::from(vec![b' '; size]);
        for _ in 0..count {
            let exchange = tap.begin("a", None).unwrap();
            let shown = Shown {
                point: FeedPoint::RxRequest,
                method: &Method::GET,
                target,
                status: None,
                headers: &headers,
                body: &body,
            };
            tap.copy(&exchange, &shown);
        }
    }

    fn run<F: Future>(test: F) -> F::Output {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap();
        tokio::task::LocalSet::new().block_on(&runtime, test)
    }

    struct Rig {
        tap: Tap,
        sink: Fake,
        stop: Shutdown,
        pump: tokio::task::JoinHandle<()>,
    }

    fn rig(settings: &Feed, sink: Fake) -> Rig {
        let (mut taps, mut pumps) = plumb(settings, 1, &Registry::new());
        let stop = Shutdown::new();
        let source = Source::new(&Config::default());
        let pump = pumps.remove(0).run(sink.clone(), source, stop.clone());
        let pump = tokio::task::spawn_local(pump);
        Rig {
            tap: taps.remove(0),
            sink,
            stop,
            pump,
        }
    }

    async fn until(mut holds: impl FnMut() -> bool) {
        for _ in 0..2_000 {
            if holds() {
                return;
            }
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
        panic!("it never came to this");
    }

    fn patient() -> Feed {
        Feed {
            enabled: true,
            blocking_send_timeout: settings::Period::from_secs(60),
            max_block: settings::Period::from_secs(60),
            ..Feed::default()
        }
    }

    #[test]
    fn everything_is_delivered_evenly_and_memory_given_back() {
        run(async {
            let rig = rig(&patient(), Fake::default());
            give(&rig.tap, 300, 100);
            let counts = &rig.tap.shared.counts;
            until(|| counts.delivered.value() == 300).await;
            let got = rig.sink.0.got.borrow();
            for partition in 0..3 {
                let of: usize = got.iter().filter(|one| one.0 == partition).map(|one| one.1).sum();
                assert_eq!(of, 100);
            }
            assert_eq!(rig.tap.shared.lanes[0].held(), 0);
            assert_eq!(rig.sink.0.connects.get(), 1);
        });
    }

    #[test]
    fn brokers_that_are_gone_cost_a_pause_and_come_back() {
        run(async {
            let sink = Fake::default();
            sink.0.gone.set(true);
            let settings = Feed {
                degradation_period: settings::Period::from_millis(30),
                ..patient()
            };
            let rig = rig(&settings, sink);
            let counts = &rig.tap.shared.counts;
            give(&rig.tap, 10, 10);
            until(|| counts.pauses.value() > 0).await;
            until(|| rig.tap.shared.lanes[0].held() == 0).await;
            give(&rig.tap, 10, 10);
            rig.sink.0.gone.set(false);
            until(|| !rig.tap.shared.lanes[0].paused.load(Ordering::Relaxed)).await;
            give(&rig.tap, 7, 10);
            until(|| counts.delivered.value() >= 7).await;
            let lost = counts.paused.value();
            assert_eq!(counts.delivered.value() + lost, 27, "every copy is accounted for");
        });
    }

    #[test]
    fn brokers_that_hang_fill_the_memory_and_no_more() {
        run(async {
            let sink = Fake::default();
            sink.0.hangs.set(true);
            let settings = Feed {
                buffer_memory: settings::ByteSize::kib(100),
                batch_size: settings::ByteSize::kib(1),
                max_block: settings::Period::from_millis(5),
                delivery_timeout: settings::Period::from_millis(100),
                consecutive_failures: 1_000_000,
                ..patient()
            };
            let rig = rig(&settings, sink);
            let counts = &rig.tap.shared.counts;
            for _ in 0..20 {
                give(&rig.tap, 50, 1_000);
                assert!(rig.tap.shared.lanes[0].held() <= 100 << 10);
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
            assert!(counts.full.value() > 0);
            // What hangs is given up after the time for a delivery.
            until(|| rig.tap.shared.lanes[0].held() == 0).await;
            let lost =
                counts.full.value() + counts.failed.value() + counts.blocked.value() + counts.late.value();
            assert_eq!(lost, 1_000);
        });
    }

    #[test]
    fn what_is_there_at_the_end_is_sent() {
        run(async {
            let settings = Feed {
                linger: settings::Period::from_millis(1),
                ..patient()
            };
            let rig = rig(&settings, Fake::default());
            give(&rig.tap, 5, 10);
            until(|| rig.sink.0.connected.get()).await;
            give(&rig.tap, 5, 10);
            rig.stop.fire();
            rig.pump.await.unwrap();
            assert_eq!(rig.tap.shared.counts.delivered.value(), 10);
        });
    }
}
