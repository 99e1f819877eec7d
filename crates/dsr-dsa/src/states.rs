//! What is known of subscribers, how many messages peers have sent, and what was found: shared by the workers, and kept over
//! reloads.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use ahash::{AHashMap, AHashSet, RandomState};
use dsr_app::{Digits, Finding};
use parking_lot::Mutex;

use crate::measure::Measure;
use crate::network::Network;
use crate::races::{Fact, Races};
use crate::record::{Node, Record, TICK_SECONDS, short};

/// Parts of the table of subscribers, each with its lock. A power of two.
pub(crate) const SHARDS: usize = 256;
/// Bound on pairs of a peer and a command whose messages are counted.
const MAX_RATES: usize = 65_536;
/// Bytes of a name that count; names of DNS are shorter (RFC 1035 §2.3.4).
const MAX_NAME: usize = 256;
/// Bound on HSSs.
const MAX_SERVERS: usize = 65_536;
/// Time between two searches of a full part for what is out of date.
const SWEEP_SECONDS: u32 = 10;
/// The clock of the table begins here (388 days), so that what an earlier process has learned has a time before it.
pub(crate) const EPOCH: u32 = 1 << 25;
/// Bytes of a record, with its key, as they are stored.
const STORED: usize = size_of::<(u64, Record)>();

#[derive(Debug, Default)]
struct Shard {
    records: AHashMap<u64, Record>,
    races: Races,
    swept: u32,
    /// How often it has changed, and how often it had when it was stored.
    changes: u64,
    stored: u64,
}

#[derive(Debug, Default)]
struct Servers {
    names: AHashSet<u32>,
    /// How many of them are stored.
    stored: usize,
}

/// Second and count of messages.
type Window = (u32, u32);

/// What workers share.
#[derive(Debug)]
pub(crate) struct States {
    start: Instant,
    /// When learning began, by the clock of the table.
    began: u32,
    names: RandomState,
    shards: Vec<Mutex<Shard>>,
    rates: Mutex<AHashMap<(u64, u32, u32), Window>>,
    lines: Mutex<Window>,
    /// Samples of a minute, by partner and measure.
    samples: Mutex<AHashMap<(u16, Measure), Window>>,
    /// Hashes of the names of HSSs that have registered a subscriber.
    servers: Mutex<Servers>,
    findings: Mutex<BTreeMap<(String, Measure, &'static str), u64>>,
    /// When a subscriber was refused last.
    full: Mutex<Option<u32>>,
}

impl Default for States {
    fn default() -> Self {
        Self::new(RandomState::new(), EPOCH, None)
    }
}

impl States {
    /// A table without subscribers: the hash of names, when learning began, and when a subscriber was refused last.
    pub(crate) fn new(names: RandomState, began: u32, full: Option<u32>) -> Self {
        Self {
            start: Instant::now(),
            began,
            names,
            shards: (0..SHARDS).map(|_| Mutex::default()).collect(),
            rates: Mutex::default(),
            lines: Mutex::default(),
            samples: Mutex::default(),
            servers: Mutex::default(),
            findings: Mutex::default(),
            full: Mutex::new(full),
        }
    }

    /// When it was made.
    pub(crate) const fn start(&self) -> Instant {
        self.start
    }

    /// Seconds of the clock of the table.
    pub(crate) fn seconds(&self, now: Instant) -> u32 {
        let elapsed = now.saturating_duration_since(self.start);
        EPOCH.saturating_add(u32::try_from(elapsed.as_secs()).unwrap_or(u32::MAX))
    }

    /// When learning began, by the clock of the table.
    pub(crate) const fn began(&self) -> u32 {
        self.began
    }

    /// A name as records have it: peers choose names, so these take a fixed number of bytes. The keys of the hash are secret.
    pub(crate) fn name(&self, name: &[u8]) -> u32 {
        (self.hash_of_name(name) as u32).max(1)
    }

    fn hash_of_name(&self, name: &[u8]) -> u64 {
        let mut lower = [0; MAX_NAME];
        let name = name.get(..MAX_NAME).unwrap_or(name);
        let lower = lower.get_mut(..name.len()).unwrap_or_default();
        lower.copy_from_slice(name);
        lower.make_ascii_lowercase();
        self.names.hash_one(&*lower)
    }

    /// What is known of a subscriber.
    pub(crate) fn get(&self, imsi: &Digits, seconds: u32, lifetime: Duration) -> Option<Record> {
        let key = key(imsi);
        let shard = self.shard(key)?.lock();
        let record = shard.records.get(&key).copied()?;
        is_fresh(&record, seconds, lifetime).then_some(record)
    }

    /// Changes what is known of a subscriber, from nothing where it is not known; returns whether there was room.
    pub(crate) fn change(
        &self,
        imsi: &Digits,
        seconds: u32,
        bounds: (usize, Duration),
        change: impl FnOnce(&mut Record),
    ) -> bool {
        let (max, lifetime) = bounds;
        let key = key(imsi);
        let Some(shard) = self.shard(key) else {
            return false;
        };
        let mut shard = shard.lock();
        // Parts fill evenly.
        let room = max.div_ceil(SHARDS);
        if shard.records.len() >= room && !shard.records.contains_key(&key) {
            if seconds.saturating_sub(shard.swept) >= SWEEP_SECONDS {
                shard.swept = seconds;
                shard
                    .records
                    .retain(|_, record| is_fresh(record, seconds, lifetime));
            }
            if shard.records.len() >= room {
                *self.full.lock() = Some(seconds);
                return false;
            }
        }
        let record = shard.records.entry(key).or_default();
        if !is_fresh(record, seconds, lifetime) {
            *record = Record::default();
        }
        let before = *record;
        change(record);
        record.touch(seconds);
        let after = *record;
        shard.races.note(key, seconds, &before, &after);
        shard.changes += 1;
        true
    }

    /// Changes what is known of a subscriber that is known, without a new time.
    pub(crate) fn amend(&self, imsi: &Digits, seconds: u32, change: impl FnOnce(&mut Record)) {
        self.amend_with(imsi, seconds, |record, _| change(record));
    }

    /// An HSS has cancelled a subscriber at the node of that name. If the subscriber was at another one a moment ago, the answers to
    /// two registrations have overtaken each other, and it is there.
    pub(crate) fn cancel(&self, imsi: &Digits, seconds: u32, name: u32) {
        let key = key(imsi);
        self.amend_with(imsi, seconds, |record, races| {
            for node in [Node::Mme, Node::Sgsn] {
                let now = record.name(node);
                if record.is(node, name)
                    && let Some(other) = races.last(key, seconds, Fact::At(node), now)
                {
                    record.put(node, other);
                }
            }
            record.leaves(name);
        });
    }

    fn amend_with(&self, imsi: &Digits, seconds: u32, change: impl FnOnce(&mut Record, &Races)) {
        let key = key(imsi);
        let Some(shard) = self.shard(key) else { return };
        let mut shard = shard.lock();
        let Shard {
            records,
            races,
            changes,
            ..
        } = &mut *shard;
        if let Some(record) = records.get_mut(&key) {
            let before = *record;
            change(record, races);
            races.note(key, seconds, &before, record);
            *changes += 1;
        }
    }

    /// Whether a subscriber was registered at the node of that name a moment ago.
    pub(crate) fn was_at(&self, imsi: &Digits, seconds: u32, name: u32) -> bool {
        [Node::Mme, Node::Sgsn]
            .iter()
            .any(|node| self.had(imsi, seconds, Fact::At(*node), short(name)))
    }

    /// Whether it was authenticated by this network a moment ago.
    pub(crate) fn was_authenticated(&self, imsi: &Digits, seconds: u32, network: Network) -> bool {
        self.had(imsi, seconds, Fact::Authenticated, network.to_bits())
    }

    fn had(&self, imsi: &Digits, seconds: u32, fact: Fact, value: u64) -> bool {
        let key = key(imsi);
        let shard = self.shard(key);
        shard.is_some_and(|shard| shard.lock().races.had(key, seconds, fact, value))
    }

    /// Notes that an HSS has registered a subscriber.
    pub(crate) fn add_server(&self, name: u32) {
        let mut servers = self.servers.lock();
        if servers.names.len() < MAX_SERVERS {
            servers.names.insert(name);
        }
    }

    /// Whether an HSS has registered a subscriber, or may have.
    pub(crate) fn is_server(&self, name: u32) -> bool {
        let servers = self.servers.lock();
        servers.names.contains(&name) || servers.names.len() == MAX_SERVERS
    }

    /// Whether a subscriber may be unknown for want of room.
    pub(crate) fn was_full(&self, seconds: u32, lifetime: Duration) -> bool {
        let within = |at: u32| u64::from(seconds.saturating_sub(at)) < lifetime.as_secs();
        self.full.lock().is_some_and(within)
    }

    /// When a subscriber was refused last for want of room.
    pub(crate) fn full(&self) -> Option<u32> {
        *self.full.lock()
    }

    /// Whether the part with a subscriber is stored as it is.
    pub(crate) fn is_stored(&self, imsi: &Digits) -> bool {
        let shard = self.shard(key(imsi));
        shard.is_some_and(|shard| {
            let shard = shard.lock();
            shard.changes == shard.stored
        })
    }

    /// The records of a part that has changed since it was stored, and which change this was.
    pub(crate) fn changed(&self, part: usize) -> Option<(Vec<u8>, u64)> {
        let shard = self.shards.get(part)?.lock();
        if shard.changes == shard.stored {
            return None;
        }
        let mut bytes = Vec::with_capacity(shard.records.len() * STORED);
        for (key, record) in &shard.records {
            for word in [*key, record.names, record.packed] {
                bytes.extend_from_slice(&word.to_le_bytes());
            }
        }
        Some((bytes, shard.changes))
    }

    /// A part is stored as it was at this change.
    pub(crate) fn stored(&self, part: usize, change: u64) {
        if let Some(shard) = self.shards.get(part) {
            shard.lock().stored = change;
        }
    }

    /// Restores the records of a part. A record gets the time that `moved` makes of its own; without one it is out of date.
    pub(crate) fn restore(&self, bytes: &[u8], max: usize, moved: impl Fn(u32) -> Option<u32>) {
        let words = |bytes: &[u8]| {
            let mut words = bytes.chunks_exact(8).filter_map(|word| word.try_into().ok());
            let mut next = || words.next().map(u64::from_le_bytes);
            Some((next()?, next()?, next()?))
        };
        for (key, names, packed) in bytes.chunks_exact(STORED).filter_map(words) {
            let mut record = Record { names, packed };
            let Some(shard) = self.shard(key) else { continue };
            let mut shard = shard.lock();
            if let Some(seconds) = moved(record.seconds())
                && shard.records.len() < max.div_ceil(SHARDS)
            {
                record.touch(seconds);
                shard.records.insert(key, record);
            }
        }
    }

    /// The HSSs, when not all of them are stored, and how many there are.
    pub(crate) fn changed_servers(&self) -> Option<(Vec<u8>, usize)> {
        let servers = self.servers.lock();
        let count = servers.names.len();
        (count != servers.stored).then(|| {
            let names = servers.names.iter().flat_map(|name| name.to_le_bytes());
            (names.collect(), count)
        })
    }

    /// This many HSSs are stored.
    pub(crate) fn stored_servers(&self, count: usize) {
        self.servers.lock().stored = count;
    }

    /// Restores HSSs.
    pub(crate) fn restore_servers(&self, bytes: &[u8]) {
        let mut servers = self.servers.lock();
        let names = bytes.chunks_exact(4).filter_map(|name| name.try_into().ok());
        servers
            .names
            .extend(names.map(u32::from_le_bytes).take(MAX_SERVERS));
        servers.stored = servers.names.len();
    }

    fn shard(&self, key: u64) -> Option<&Mutex<Shard>> {
        let hash = self.names.hash_one(key) >> 32;
        self.shards.get(hash as usize & (SHARDS - 1))
    }

    /// Counts a message of a peer; returns whether it is within the rate.
    pub(crate) fn is_within(&self, peer: &str, command: (u32, u32), seconds: u32, rate: u32) -> bool {
        let key = (self.hash_of_name(peer.as_bytes()), command.0, command.1);
        let mut rates = self.rates.lock();
        if rates.len() >= MAX_RATES && !rates.contains_key(&key) {
            rates.retain(|_, (second, _)| *second == seconds);
            if rates.len() >= MAX_RATES {
                return true;
            }
        }
        counts(rates.entry(key).or_default(), seconds, rate)
    }

    /// Whether a line may be written about a finding.
    pub(crate) fn has_line(&self, seconds: u32, rate: u32) -> bool {
        counts(&mut self.lines.lock(), seconds, rate)
    }

    /// Whether a message of a partner that a measure has found may be sampled. Partners and measures are few.
    pub(crate) fn has_sample(&self, partner: u16, measure: Measure, seconds: u32, rate: u32) -> bool {
        let mut samples = self.samples.lock();
        counts(samples.entry((partner, measure)).or_default(), seconds / 60, rate)
    }

    /// Counts a finding.
    pub(crate) fn found(&self, partner: &str, measure: Measure, outcome: &'static str) {
        let mut findings = self.findings.lock();
        *findings
            .entry((partner.to_owned(), measure, outcome))
            .or_default() += 1;
    }

    /// Findings, by partner and measure.
    pub(crate) fn findings(&self) -> Vec<Finding> {
        let findings = self.findings.lock();
        let row = |((partner, measure, outcome), count): (&(String, Measure, &'static str), &u64)| Finding {
            partner: partner.clone(),
            measure: measure.as_str(),
            outcome,
            count: *count,
        };
        findings.iter().map(row).collect()
    }

    /// What records had until a moment ago, and the memory that it takes.
    pub(crate) fn races_size(&self) -> (usize, usize) {
        self.shards.iter().fold((0, 0), |(entries, bytes), shard| {
            let (more, taken) = shard.lock().races.size();
            (entries + more, bytes + taken)
        })
    }

    /// Known subscribers, and the memory that they take.
    pub(crate) fn size(&self) -> (usize, usize) {
        // A slot has the record, its key, and a byte of the table.
        const SLOT: usize = size_of::<(u64, Record)>() + 1;
        self.shards.iter().fold((0, 0), |(entries, bytes), shard| {
            let shard = shard.lock();
            let slots = (shard.records.capacity() * 8 / 7).next_power_of_two();
            (entries + shard.records.len(), bytes + slots * SLOT)
        })
    }
}

fn counts(window: &mut Window, seconds: u32, rate: u32) -> bool {
    if window.0 != seconds {
        *window = (seconds, 0);
    }
    window.1 = window.1.saturating_add(1);
    window.1 <= rate
}

fn is_fresh(record: &Record, seconds: u32, lifetime: Duration) -> bool {
    u64::from(seconds.saturating_sub(record.seconds())) <= lifetime.as_secs() + u64::from(TICK_SECONDS)
}

/// Digits and their number: leading zeros count.
fn key(imsi: &Digits) -> u64 {
    let count = imsi.as_bytes().len();
    imsi.prefix(count).unwrap_or_default() * 16 + count as u64
}
