//! What is known of subscribers, on a store: read at a start, and written behind the messages.
//!
//! A part of the table is one record of the store, so that the store has no index of subscribers. A part that has changed is
//! written within a second, or later when more than [`BYTES_PER_SECOND`] have changed. Names are in records by a hash with secret
//! keys; the keys are stored as well, and where the hash of another build or processor is another one, the router begins to learn again.

use std::sync::Arc;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use ahash::RandomState;
use sbr::Contents;
use sbr::config::Settings as OfStore;
use store::{
    Batch, Condition, DecodeError, Error, IndexKeys, Key, Record, Store, Table, TableDef, TableSchema,
};

use crate::config::Dsa;
use crate::states::{EPOCH, SHARDS, States};

/// Bound on what is written in a second.
const BYTES_PER_SECOND: usize = 4 << 20;
const SECOND: Duration = Duration::from_secs(1);
/// Seconds between two writes of the time, when nothing else is written.
const HEARTBEAT: u64 = 10;
/// After a stop of more than this part of `learning` too much has moved unseen.
const STOP_PART: u64 = 24;

/// Keys of records.
const OF_TABLE: &[u8] = b"table";
const OF_SERVERS: &[u8] = b"servers";
const OF_PART: u8 = b'p';

/// A part of the table, under its key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Part {
    key: Vec<u8>,
    bytes: Vec<u8>,
}

impl Record for Part {
    const TABLE: &'static TableSchema = &TableSchema {
        name: "dsa_subscribers",
        indexes: &[],
        by_modified: false,
        sql: None,
    };

    fn key(&self) -> Key {
        Key::from_slice(&self.key)
    }

    fn index(&self, _: &mut IndexKeys) {}

    fn encode(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.bytes);
    }

    fn decode(key: &[u8], value: &[u8]) -> Result<Self, DecodeError> {
        let (key, bytes) = (key.to_vec(), value.to_vec());
        Ok(Self { key, bytes })
    }
}

/// What is stored of the table as a whole; times in seconds since 1970.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Head {
    keys: [u64; 4],
    /// The hash of a constant: whether names have the same hashes still.
    probe: u64,
    /// When learning began.
    began: u64,
    /// When the router ran last.
    ran: u64,
    /// When a subscriber was refused last; 0: none was.
    full: u64,
}

impl Head {
    fn new(now: u64) -> Self {
        let random = RandomState::new();
        let keys = [0, 1, 2, 3].map(|number: u64| random.hash_one(number));
        Self {
            keys,
            probe: probe(keys),
            began: now,
            ran: now,
            full: 0,
        }
    }

    fn to_bytes(self) -> Vec<u8> {
        let times = [self.probe, self.began, self.ran, self.full];
        let words = self.keys.into_iter().chain(times);
        words.flat_map(u64::to_le_bytes).collect()
    }

    fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let mut words = bytes.chunks_exact(8).filter_map(|word| word.try_into().ok());
        let mut next = || words.next().map(u64::from_le_bytes);
        Some(Self {
            keys: [next()?, next()?, next()?, next()?],
            probe: next()?,
            began: next()?,
            ran: next()?,
            full: next()?,
        })
    }

    /// When learning began, after a start at `now`: earlier, unless the router has not run for too long.
    fn began_after(&self, now: u64, learning: u64) -> u64 {
        let stop = now.saturating_sub(self.ran);
        if stop > learning / STOP_PART {
            now
        } else {
            self.began.min(now)
        }
    }
}

fn names(keys: [u64; 4]) -> RandomState {
    let [a, b, c, d] = keys;
    RandomState::with_seeds(a, b, c, d)
}

fn probe(keys: [u64; 4]) -> u64 {
    names(keys).hash_one(b"mme.epc.mnc001.mcc001.3gppnetwork.org".to_vec())
}

/// The settings that count.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Settings {
    store: store::Config,
    learning: Duration,
    lifetime: Duration,
    max_subscribers: usize,
}

impl Settings {
    /// None: what is known is in memory alone.
    pub(crate) fn of(config: &Dsa) -> Option<Self> {
        let mut store = store::Config::default();
        store.embedded.directory = config.directory()?.to_owned();
        Some(Self {
            store,
            learning: config.learning.duration(),
            lifetime: config.lifetime.duration(),
            max_subscribers: config.max_subscribers,
        })
    }
}

impl OfStore for Settings {
    fn store(&self) -> &store::Config {
        &self.store
    }

    fn store_mut(&mut self) -> &mut store::Config {
        &mut self.store
    }
}

/// The table, with its store.
#[derive(Clone, Debug)]
pub(crate) struct Durable {
    table: Table<Part>,
    settings: Settings,
    shared: Arc<Shared>,
}

#[derive(Debug, Default)]
struct Shared {
    states: OnceLock<Arc<States>>,
    head: OnceLock<Head>,
    /// Writes that failed, until a worker counts them.
    failed: AtomicU64,
}

/// What is in a batch.
#[derive(Default)]
struct Taken {
    parts: Vec<(usize, u64)>,
    servers: Option<usize>,
    bytes: usize,
}

impl Durable {
    /// What is known; once it has begun.
    pub(crate) fn states(&self) -> Option<&Arc<States>> {
        self.shared.states.get()
    }

    /// Writes that failed since the last call.
    pub(crate) fn take_failed(&self) -> u64 {
        match self.shared.failed.load(Ordering::Relaxed) {
            0 => 0,
            _ => self.shared.failed.swap(0, Ordering::Relaxed),
        }
    }

    /// Reads what an earlier process has stored.
    async fn restore(&self, now: u64) -> Result<(), Error> {
        let stored = self.table.get(OF_TABLE).await?;
        let head = stored.and_then(|stored| Head::from_bytes(&stored.record.bytes));
        let usable = head.filter(|head| head.probe == probe(head.keys));
        if head.is_some() && usable.is_none() {
            tracing::warn!(
                "stored subscribers have names in hashes of another build or processor; learning begins again"
            );
        }
        let is_restored = usable.is_some();
        let mut head = usable.unwrap_or_else(|| Head::new(now));
        let stop = now.saturating_sub(head.ran);
        head.began = head.began_after(now, self.settings.learning.as_secs());
        let moved = |at: u64| moved(at, now, OLDEST);
        let states = States::new(names(head.keys), moved(head.began).unwrap_or(0), moved(head.full));
        if is_restored {
            for part in 0..SHARDS {
                self.restore_part(&states, part, now).await?;
            }
            if let Some(servers) = self.table.get(OF_SERVERS).await? {
                states.restore_servers(&servers.record.bytes);
            }
        }
        let (subscribers, _) = states.size();
        let learning = self.settings.learning.as_secs().saturating_sub(now - head.began);
        tracing::info!(
            subscribers,
            stopped_for_seconds = stop,
            learning_seconds = learning,
            "subscribers restored"
        );
        let _ = self.shared.states.set(Arc::new(states));
        let _ = self.shared.head.set(head);
        Ok(())
    }

    async fn restore_part(&self, states: &States, part: usize, now: u64) -> Result<(), Error> {
        let Some(stored) = self.table.get(&key(part)).await? else {
            return Ok(());
        };
        if let Some((base, records)) = stored.record.bytes.split_first_chunk::<8>() {
            let base = u64::from_le_bytes(*base);
            let oldest = self.settings.lifetime.as_secs();
            states.restore(records, self.settings.max_subscribers, |seconds| {
                moved(base + u64::from(seconds), now, oldest)
            });
        }
        Ok(())
    }

    /// Writes parts that have changed, from `first` on, up to a bound; returns where the next turn begins, and whether there are
    /// more of them.
    async fn write(&self, first: usize, is_due: bool) -> (usize, bool) {
        let (Some(states), Some(head)) = (self.shared.states.get(), self.shared.head.get()) else {
            return (first, false);
        };
        let now = since_1970();
        let seconds = states.seconds(Instant::now());
        let base = now.saturating_sub(seconds.into());
        let (mut batch, mut taken) = (Batch::default(), Taken::default());
        let mut next = first;
        for step in 0..SHARDS {
            next = (first + step) % SHARDS;
            if taken.bytes >= BYTES_PER_SECOND {
                break;
            }
            if let Some((records, change)) = states.changed(next) {
                let bytes = [&base.to_le_bytes(), records.as_slice()].concat();
                taken.parts.push((next, change));
                taken.bytes += bytes.len();
                self.put(&mut batch, &key(next), bytes);
            }
        }
        if let Some((servers, count)) = states.changed_servers() {
            taken.servers = Some(count);
            self.put(&mut batch, OF_SERVERS, servers);
        }
        if batch.is_empty() && !is_due {
            return (next, false);
        }
        let full = states.full().map_or(0, |full| base + u64::from(full));
        let ran = now;
        self.put(&mut batch, OF_TABLE, Head { ran, full, ..*head }.to_bytes());
        if let Err(error) = self.table.store().commit(batch).await {
            if self.shared.failed.fetch_add(1, Ordering::Relaxed) == 0 {
                tracing::warn!(%error, "subscribers not stored; they will be tried again");
            }
            return (next, false);
        }
        for (part, change) in taken.parts {
            states.stored(part, change);
        }
        if let Some(count) = taken.servers {
            states.stored_servers(count);
        }
        (next, taken.bytes >= BYTES_PER_SECOND)
    }

    fn put(&self, batch: &mut Batch, key: &[u8], bytes: Vec<u8>) {
        let key = key.to_vec();
        batch.put(&self.table, &Part { key, bytes }, Condition::Always);
    }
}

impl Contents for Durable {
    type Settings = Settings;

    fn tables() -> Vec<TableDef> {
        vec![TableDef::of::<Part>()]
    }

    fn of(store: &Store, settings: &Settings, _: Option<u64>) -> Result<Self, Error> {
        Ok(Self {
            table: store.table()?,
            settings: settings.clone(),
            shared: Arc::default(),
        })
    }

    async fn begin(&self) -> Result<(), Error> {
        self.restore(since_1970()).await
    }

    async fn care(&self) -> Result<(), Error> {
        let (mut next, mut turn) = (0, 0);
        loop {
            tokio::time::sleep(SECOND).await;
            turn += 1;
            (next, _) = self.write(next, turn % HEARTBEAT == 0).await;
        }
    }

    async fn end(&self) {
        let mut next = 0;
        loop {
            let has_more;
            (next, has_more) = self.write(next, true).await;
            if !has_more {
                return;
            }
        }
    }
}

/// Bound on the age of what is restored: the clock of the table does not go back further.
const OLDEST: u64 = EPOCH as u64;

/// A time since 1970 by the clock of the table, which begins now; none: it is longer ago than `oldest`.
fn moved(at: u64, now: u64, oldest: u64) -> Option<u32> {
    let age = now.saturating_sub(at);
    if age > oldest {
        return None;
    }
    EPOCH.checked_sub(u32::try_from(age).ok()?)
}

fn key(part: usize) -> [u8; 3] {
    let [high, low] = (part as u16).to_be_bytes();
    [OF_PART, high, low]
}

fn since_1970() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.unwrap_or_default().as_secs()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn learning_goes_on_after_a_short_stop_and_begins_again_after_a_long_one() {
        let day = 24 * 3600;
        let head = Head {
            began: 1000,
            ran: 500_000,
            ..Head::new(0)
        };
        assert_eq!(Head::from_bytes(&head.to_bytes()), Some(head));
        assert_eq!(head.began_after(500_000 + 3600, day), 1000);
        assert_eq!(head.began_after(500_000 + 3601, day), 500_000 + 3601);
        // A clock that was put back.
        assert_eq!(head.began_after(400, day), 400);
        assert_eq!(Head::from_bytes(&head.to_bytes()[1..]), None);
    }

    #[test]
    fn times_keep_their_age() {
        assert_eq!(moved(900, 1000, 50), None);
        assert_eq!(moved(900, 1000, 100), Some(EPOCH - 100));
        assert_eq!(moved(2000, 1000, 100), Some(EPOCH));
        assert_eq!(moved(0, u64::MAX, u64::MAX), None);
    }
}
