//! Writes at a subscriber database server, at a rate, over a few connections.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use serde_json::json;

use super::nodes::Database;
use super::outcome::{self, Outcome, Visibility};
use super::watch::{Front, Shown, Visible, Written, watch};
use super::{Record, Records};
use loadgen::client::{Client, Request};

/// Connections to the server, each with one write in flight.
pub(crate) const WRITERS: u64 = 4;
/// Acknowledged writes that a watcher has not taken; it takes them also while its processor is dead.
const MOST_UNSEEN: usize = 10_000;
/// How long a write may take.
const PATIENCE: Duration = Duration::from_secs(10);
/// Pause before a write that has no answer is repeated.
const AGAIN: Duration = Duration::from_millis(20);
/// The longest a writer sleeps before it checks whether it is to end.
const NAP: Duration = Duration::from_millis(50);

/// What writers share.
#[derive(Debug, Default)]
struct Shared {
    is_over: AtomicBool,
    acknowledged: Mutex<Vec<u64>>,
    refused: AtomicU64,
    repeated: AtomicU64,
}

/// Writes in progress, and what watches for them. They end when this is dropped.
pub(crate) struct Provisioning {
    shared: Arc<Shared>,
    records: Records,
    rate: f64,
    begun: Instant,
    server: SocketAddr,
    processors: Vec<(String, SocketAddr)>,
    writers: Vec<JoinHandle<()>>,
    watchers: Vec<JoinHandle<Shown>>,
}

impl Provisioning {
    /// Begins to write a number of records a second, from the first one on; `visible` gets the count up to which every
    /// processor answers them.
    pub(crate) fn start(database: &Database, records: Records, rate: f64, visible: Visible) -> Self {
        let nodes = database.processors.iter();
        let processors: Vec<(String, SocketAddr)> =
            nodes.map(|one| (one.name.clone(), one.address)).collect();
        let (shared, front) = (
            Arc::<Shared>::default(),
            Arc::new(Front::new(processors.len(), visible)),
        );
        let (mut senders, mut watchers) = (Vec::new(), Vec::new());
        for (index, (_, address)) in processors.iter().enumerate() {
            let (sender, receiver) = sync_channel(MOST_UNSEEN);
            senders.push(sender);
            watchers.push(watch(*address, index, receiver, records.clone(), front.clone()));
        }
        let begun = Instant::now();
        let writers = (0..WRITERS).map(|first| {
            let writer = Writer {
                server: database.server.address,
                shared: shared.clone(),
                records: records.clone(),
                watchers: senders.clone(),
                client: None,
            };
            std::thread::spawn(move || writer.run(first, rate, begun))
        });
        Self {
            writers: writers.collect(),
            shared,
            records,
            rate,
            begun,
            server: database.server.address,
            processors,
            watchers,
        }
    }

    /// The count of writes that were acknowledged so far.
    pub(crate) fn acknowledged(&self) -> u64 {
        self.shared.numbers().len() as u64
    }

    /// Ends the writes, waits until the last ones are visible, and compares all of them with what server and processors answer.
    pub(crate) fn finish(mut self) -> Outcome {
        let seconds = self.end_writers();
        let watchers = std::mem::take(&mut self.watchers).into_iter();
        // A watcher that has panicked has seen nothing.
        let shown = watchers.map(|thread| thread.join().unwrap_or_default());
        let names = self.processors.iter().map(|(name, _)| name.clone());
        let visibility = names.zip(shown).map(|(name, shown)| Visibility { name, shown });
        let visibility = visibility.collect();
        let numbers = self.shared.numbers().clone();
        Outcome {
            wanted: self.rate,
            seconds,
            acknowledged: numbers.len() as u64,
            refused: self.shared.refused.load(Ordering::Relaxed),
            repeated: self.shared.repeated.load(Ordering::Relaxed),
            visibility,
            missing: outcome::missing(&numbers, &self.records, self.server, &self.processors),
        }
    }

    /// Ends the writers; the seconds that they have written for.
    fn end_writers(&mut self) -> f64 {
        self.shared.is_over.store(true, Ordering::Relaxed);
        let seconds = self.begun.elapsed().as_secs_f64();
        for writer in self.writers.drain(..) {
            // One that has panicked has written too little.
            let _ = writer.join();
        }
        seconds
    }
}

impl Drop for Provisioning {
    fn drop(&mut self) {
        self.end_writers();
    }
}

impl Shared {
    fn numbers(&self) -> std::sync::MutexGuard<'_, Vec<u64>> {
        self.acknowledged.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until this moment; whether the writes go on.
    fn wait(&self, due: Instant) -> bool {
        while !self.is_over.load(Ordering::Relaxed) {
            let left = due.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return true;
            }
            std::thread::sleep(left.min(NAP));
        }
        false
    }
}

/// One connection to the server.
struct Writer {
    server: SocketAddr,
    shared: Arc<Shared>,
    records: Records,
    watchers: Vec<SyncSender<Written>>,
    client: Option<Client>,
}

impl Writer {
    fn run(mut self, first: u64, rate: f64, begun: Instant) {
        let mut number = first;
        while self
            .shared
            .wait(begun + Duration::from_secs_f64(number as f64 / rate))
        {
            let record = (self.records)(number);
            let status = loop {
                match self.put(&record) {
                    // One that was interrupted may be sent again.
                    None | Some(0 | 503) => {
                        self.client = None;
                        self.shared.repeated.fetch_add(1, Ordering::Relaxed);
                        if !self.shared.wait(Instant::now() + AGAIN) {
                            return;
                        }
                    }
                    Some(status) => break status,
                }
            };
            if status == 200 {
                let at = Instant::now();
                self.shared.numbers().push(number);
                for watcher in &self.watchers {
                    // A watcher that has ended counts what it misses.
                    let _ = watcher.send(Written { number, at });
                }
            } else {
                self.shared.refused.fetch_add(1, Ordering::Relaxed);
            }
            number += WRITERS;
        }
    }

    /// The status of a write; none: there was no answer.
    fn put(&mut self, record: &Record) -> Option<u16> {
        if self.client.is_none() {
            self.client = Client::connect(self.server, PATIENCE).ok();
        }
        let body = json!({ "destinations": record.destination }).to_string();
        let request = Request::new("PUT", record.path()).with("application/json", body);
        let answers = self.client.as_mut()?.exchange(&[request]).ok()?;
        answers.first().map(|answer| answer.status)
    }
}
