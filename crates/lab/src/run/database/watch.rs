//! When a processor answers what the server has acknowledged.

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use super::client::Client;
use super::{Record, Records};
use loadgen::OperationRecord;

/// Pause before writes that are not visible yet are asked for again.
const AGAIN: Duration = Duration::from_millis(1);
/// Pause before a processor that cannot be reached is connected to again.
const RECONNECT: Duration = Duration::from_millis(20);
/// Longest wait for a write.
const IDLE: Duration = Duration::from_millis(100);
/// How long writes may be invisible when no more are made.
const PATIENCE: Duration = Duration::from_secs(20);

/// A write that was acknowledged.
#[derive(Clone, Copy, Debug)]
pub(super) struct Written {
    pub(super) number: u64,
    pub(super) at: Instant,
}

/// How far the writes are visible at each processor.
pub(super) struct Front {
    /// Writes up to this count are visible, by processor.
    processors: Vec<AtomicU64>,
    /// Gets the count up to which all writes are visible at every processor.
    visible: Visible,
}

/// See [`Front`]. It is called by several threads, also with a lower count than before.
pub(crate) type Visible = Box<dyn Fn(u64) + Send + Sync>;

impl Front {
    pub(super) fn new(processors: usize, visible: Visible) -> Self {
        Self {
            processors: (0..processors).map(|_| AtomicU64::new(0)).collect(),
            visible,
        }
    }

    /// Notes how far the writes are visible at a processor.
    fn reach(&self, processor: usize, count: u64) {
        if let Some(own) = self.processors.get(processor) {
            own.store(count, Ordering::Release);
        }
        let counts = self.processors.iter().map(|one| one.load(Ordering::Acquire));
        (self.visible)(counts.min().unwrap_or(0));
    }
}

/// What one processor has shown.
#[derive(Clone, Debug, Default)]
pub(crate) struct Shown {
    /// Microseconds from the acknowledgement of a write until the processor has answered it.
    pub(crate) delays: OperationRecord,
    /// Writes that it has not answered in time.
    pub(crate) missed: u64,
}

/// Watches one processor until there are no more writes.
pub(super) fn watch(
    processor: SocketAddr,
    index: usize,
    writes: Receiver<Written>,
    records: Records,
    front: Arc<Front>,
) -> JoinHandle<Shown> {
    let watcher = Watcher {
        processor,
        index,
        writes,
        records,
        front,
        pending: Vec::new(),
        reached: 0,
        ahead: BTreeSet::new(),
        shown: Shown::default(),
    };
    std::thread::spawn(move || watcher.run())
}

struct Watcher {
    processor: SocketAddr,
    index: usize,
    writes: Receiver<Written>,
    records: Records,
    front: Arc<Front>,
    pending: Vec<Written>,
    /// All writes up to this count are visible, and these behind it.
    reached: u64,
    ahead: BTreeSet<u64>,
    shown: Shown,
}

impl Watcher {
    fn run(mut self) -> Shown {
        let (mut client, mut end) = (None, None);
        loop {
            let is_over = self.gather();
            if is_over && self.pending.is_empty() {
                return self.shown;
            }
            if is_over && Instant::now() > *end.get_or_insert_with(|| Instant::now() + PATIENCE) {
                self.shown.missed = self.pending.len() as u64;
                return self.shown;
            }
            if client.is_none() {
                client = Client::connect(self.processor).ok();
            }
            let answered = client.as_mut().and_then(|client| self.look(client));
            if answered.is_none() {
                client = None;
                std::thread::sleep(RECONNECT);
            } else if !self.pending.is_empty() {
                std::thread::sleep(AGAIN);
            }
        }
    }

    /// Takes the writes that were acknowledged meanwhile; whether there are no more.
    fn gather(&mut self) -> bool {
        if self.pending.is_empty() {
            match self.writes.recv_timeout(IDLE) {
                Ok(written) => self.pending.push(written),
                Err(RecvTimeoutError::Timeout) => return false,
                Err(RecvTimeoutError::Disconnected) => return true,
            }
        }
        loop {
            match self.writes.try_recv() {
                Ok(written) => self.pending.push(written),
                Err(error) => return error == std::sync::mpsc::TryRecvError::Disconnected,
            }
        }
    }

    /// Asks for all pending writes; none: the processor does not answer.
    fn look(&mut self, client: &mut Client) -> Option<()> {
        let records: Vec<Record> = self
            .pending
            .iter()
            .map(|one| (self.records)(one.number))
            .collect();
        let known = client.knows(&records).ok()?;
        let mut known = known.into_iter();
        let (now, ahead, delays) = (Instant::now(), &mut self.ahead, &mut self.shown.delays);
        self.pending.retain(|written| {
            let is_known = known.next().unwrap_or(false);
            if is_known {
                let delay = now.saturating_duration_since(written.at);
                delays.time((delay.as_micros() as u64).max(1));
                delays.succeeded += 1;
                ahead.insert(written.number);
            }
            !is_known
        });
        while self.ahead.remove(&self.reached) {
            self.reached += 1;
        }
        self.front.reach(self.index, self.reached);
        Some(())
    }
}
