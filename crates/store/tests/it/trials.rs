//! Damage of every kind, at random: either the store refuses to open and names file and byte, or every acknowledged
//! record has its acknowledged value and every acknowledged deletion stays.
//!
//! `STORE_DAMAGE_TRIALS=10000` makes more trials, `STORE_DAMAGE_SEED` begins with another one. A trial that fails
//! says its seed and leaves its directory.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rand::rngs::StdRng;
use rand::seq::IndexedRandom as _;
use rand::{Rng, SeedableRng};
use settings::ByteSize;
use store::{Batch, Condition, Config, Store, Table, TableDef};

use crate::session::{Session, embedded_config, id};

/// Files by name.
type Files = BTreeMap<String, Vec<u8>>;
/// What each record was, write by write; `None`: deleted.
type History = BTreeMap<u64, Vec<Option<String>>>;

fn number(name: &str, otherwise: u64) -> u64 {
    let given = std::env::var(name).ok();
    given.and_then(|text| text.parse().ok()).unwrap_or(otherwise)
}

fn config(directory: &Path) -> Config {
    let mut config = Config {
        max_batch_bytes: ByteSize::kib(4),
        ..embedded_config(directory)
    };
    config.embedded.segment = ByteSize::kib(8);
    config.embedded.group_interval = settings::Period::from_millis(0);
    config
}

/// A directory in memory where there is one: trials flush a lot.
pub(crate) fn directory() -> tempfile::TempDir {
    let memory = Path::new("/dev/shm");
    let made = match memory.is_dir() {
        true => tempfile::tempdir_in(memory),
        false => tempfile::tempdir(),
    };
    made.unwrap()
}

fn read(directory: &Path) -> Option<Files> {
    let mut files = Files::new();
    for entry in std::fs::read_dir(directory).unwrap() {
        let entry = entry.ok()?;
        if entry.file_type().ok()?.is_file() {
            let name = entry.file_name().into_string().unwrap();
            files.insert(name, std::fs::read(entry.path()).ok()?);
        }
    }
    Some(files)
}

/// The files at one moment, as `kill -9` would leave them: compaction does not stand still.
fn snapshot(directory: &Path) -> Files {
    for _ in 0..1_000 {
        if let (Some(one), Some(other)) = (read(directory), read(directory))
            && one == other
        {
            return one;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    panic!("the files never stand still");
}

fn restore(files: &Files, directory: &Path) {
    for (name, bytes) in files {
        std::fs::write(directory.join(name), bytes).unwrap();
    }
}

/// A store that is being written, and what it has acknowledged.
struct Writing {
    store: Store,
    sessions: Table<Session>,
    history: History,
    random: StdRng,
}

impl Writing {
    async fn open(directory: &Path, seed: u64, history: History) -> Writing {
        let store = Store::open(&config(directory), &[TableDef::of::<Session>()])
            .await
            .unwrap();
        let sessions = store.table::<Session>().unwrap();
        Writing {
            store,
            sessions,
            history,
            random: StdRng::seed_from_u64(seed),
        }
    }

    fn batch(&mut self, operations: usize) -> (Batch, Vec<(u64, Option<String>)>) {
        let (mut batch, mut said) = (Batch::default(), Vec::<(u64, Option<String>)>::new());
        for _ in 0..operations {
            let record = self.random.random_range(0..60);
            if said.iter().any(|(known, _)| *known == record) {
                continue;
            }
            if self.random.random_bool(0.3) {
                batch.delete(&self.sessions, &id(record), Condition::Always);
                said.push((record, None));
            } else {
                let note =
                    format!("{}-", self.random.random::<u64>()).repeat(self.random.random_range(1..12));
                let session = Session::new(record, "imsi-1").note(&note);
                batch.put(&self.sessions, &session, Condition::Always);
                said.push((record, Some(note)));
            }
        }
        (batch, said)
    }

    async fn write(&mut self, batches: usize) {
        for _ in 0..batches {
            let operations = self.random.random_range(1..5);
            let (batch, said) = self.batch(operations);
            self.store.commit(batch).await.unwrap();
            for (record, note) in said {
                self.history.entry(record).or_default().push(note);
            }
        }
    }

    async fn compactions(&self, count: u64) {
        for _ in 0..2_000 {
            if self.store.stats().compactions >= count {
                return;
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        panic!("no compaction: {:?}", self.store.stats());
    }

    async fn close(self) -> History {
        drop(self.sessions);
        self.store.close().await;
        self.history
    }
}

/// What a trial begins with.
struct Base {
    files: Files,
    history: History,
    /// A crash: the end of the newest file from here on, and the older marks.
    crash: Option<Crash>,
}

struct Crash {
    file: String,
    /// What was flushed.
    durable: usize,
    marks: Vec<Vec<u8>>,
    /// What may be there as well, wholly or not at all.
    unfinished: Vec<(u64, Option<String>)>,
}

fn newest(files: &Files) -> String {
    files.keys().rfind(|name| name.ends_with(".log")).unwrap().clone()
}

async fn bases(seed: u64) -> Vec<Base> {
    let place = directory();
    let mut bases = Vec::new();
    let mut keep = |files: Files, history: &History, crash| {
        bases.push(Base {
            files,
            history: history.clone(),
            crash,
        });
    };
    let mut writing = Writing::open(place.path(), seed, History::new()).await;
    writing.write(6).await;
    keep(snapshot(place.path()), &writing.history, None);
    writing.write(120).await;
    writing.compactions(3).await;
    let killed = snapshot(place.path());
    keep(killed.clone(), &writing.history, None);

    // Killed between the renaming of a compacted file and the removal of its sources.
    writing.write(120).await;
    writing.compactions(6).await;
    let mut interrupted = snapshot(place.path());
    for (name, bytes) in killed.iter().filter(|(name, _)| name.ends_with(".log")) {
        interrupted.entry(name.clone()).or_insert_with(|| bytes.clone());
    }
    let sealed = |name: &String| interrupted.get(name).map(Vec::len) == killed.get(name).map(Vec::len);
    let active = newest(&killed);
    if !sealed(&active) {
        interrupted.remove(&active);
    }
    keep(interrupted, &writing.history, None);

    // Killed, or without power, in the middle of a group.
    let mut marks = vec![snapshot(place.path())["store.mark"].clone()];
    writing.write(1).await;
    let before = snapshot(place.path());
    marks.push(before["store.mark"].clone());
    let (batch, unfinished) = writing.batch(8);
    writing.store.commit(batch).await.unwrap();
    let after = snapshot(place.path());
    let file = newest(&before);
    if newest(&after) == file {
        let crash = Crash {
            durable: before[&file].len(),
            file,
            marks,
            unfinished: unfinished.clone(),
        };
        keep(after, &writing.history, Some(crash));
    }
    for (record, note) in unfinished {
        writing.history.entry(record).or_default().push(note);
    }

    writing.write(40).await;
    let history = writing.close().await;
    keep(read(place.path()).unwrap(), &history, None);
    let writing = Writing::open(place.path(), seed + 1, history).await;
    let history = writing.close().await;
    keep(read(place.path()).unwrap(), &history, None);
    bases
}

/// Damages the files; says how.
fn damage(files: &mut Files, random: &mut StdRng) -> String {
    let names: Vec<String> = files
        .keys()
        .filter(|name| *name != "store.lock")
        .cloned()
        .collect();
    let name = names.choose(random).unwrap().clone();
    let other = names.choose(random).unwrap().clone();
    let other_bytes = files[&other].clone();
    let bytes = files.get_mut(&name).unwrap();
    let length = bytes.len().max(1);
    // Half of all places are those at which entries begin.
    let aligned = if random.random_bool(0.5) { 8 } else { 1 };
    let mut any = |below: usize| random.random_range(0..below.max(1)) / aligned * aligned;
    let (from, count) = (any(length), any(length).clamp(1, 600));
    let (to, kind) = (any(length), any(72) / 8);
    let end = (from + count).min(bytes.len());
    let range = from.min(end)..end;
    let what = match kind {
        0 | 1 => {
            for _ in 0..=kind * 3 {
                let at = random.random_range(0..length);
                if let Some(byte) = bytes.get_mut(at) {
                    *byte ^= 1 << random.random_range(0..8);
                }
            }
            "bits flipped"
        }
        2 => {
            bytes.truncate(from);
            "cut"
        }
        3 => {
            files.remove(&name);
            "removed"
        }
        4 => {
            bytes[range].fill(0);
            "zeroed"
        }
        5 => {
            let copy = bytes[range].to_vec();
            for (offset, byte) in copy.into_iter().enumerate() {
                if let Some(place) = bytes.get_mut(to + offset) {
                    *place = byte;
                }
            }
            "overwritten with itself"
        }
        6 => {
            let copy = bytes[range].to_vec();
            let to = to.min(bytes.len());
            bytes.splice(to..to, copy);
            "doubled in part"
        }
        7 => {
            bytes.drain(range);
            "shortened inside"
        }
        _ => {
            *bytes = other_bytes;
            "replaced by another"
        }
    };
    format!("{name} {what} (from {from}, {count} bytes, to {to}, other {other})")
}

/// Tears the unfinished group at the end; says how.
fn tear(files: &mut Files, crash: &Crash, random: &mut StdRng) -> String {
    let bytes = files.get_mut(&crash.file).unwrap();
    let mark = random.random_range(0..crash.marks.len());
    let from = random.random_range(crash.durable..=bytes.len());
    let how = random.random_range(0..4);
    match how {
        0 => bytes.truncate(from),
        // What was not written reads as zeros, in blocks or all.
        1 => bytes[from..].fill(0),
        2 => {
            let end = (from + 512).min(bytes.len());
            bytes[from..end].fill(0);
        }
        _ => {}
    }
    files.insert("store.mark".to_owned(), crash.marks[mark].clone());
    format!("{} torn from {from} ({how}), mark {mark}", crash.file)
}

/// Whether each record is as it was acknowledged last, or, where `any`, as it was acknowledged once.
async fn compare(directory: &Path, history: &History, any: bool) -> Result<(), String> {
    let store = Store::open(&config(directory), &[TableDef::of::<Session>()])
        .await
        .map_err(|error| error.to_string())?;
    let sessions = store.table::<Session>().unwrap();
    let mut wrong = None;
    for record in 0..60 {
        let row = sessions
            .get(&id(record))
            .await
            .map_err(|error| error.to_string())?;
        let note = row.map(|row| row.record.note);
        let known = history.get(&record).map(Vec::as_slice).unwrap_or(&[None]);
        let as_acknowledged = known.last() == Some(&note);
        let as_once = any && (note.is_none() || known.contains(&note));
        if !as_acknowledged && !as_once {
            wrong = Some(format!(
                "LOST: record {record} is {note:?}, was {:?}",
                known.last()
            ));
        }
    }
    drop(sessions);
    store.close().await;
    wrong.map_or(Ok(()), Err)
}

/// One trial; what went wrong.
async fn trial(base: &Base, directory: &Path, random: &mut StdRng) -> Result<&'static str, String> {
    let mut files = base.files.clone();
    if let Some(crash) = &base.crash {
        let how = tear(&mut files, crash, random);
        restore(&files, directory);
        let damage = store::verify(directory)
            .map_err(|error| error.to_string())?
            .damage;
        let mut with = base.history.clone();
        for (record, note) in &crash.unfinished {
            with.entry(*record).or_default().push(note.clone());
        }
        let without = compare(directory, &base.history, false).await;
        // The batch is there as a whole or not at all; and what was decided once stays.
        let again = match without {
            Ok(()) => compare(directory, &base.history, false).await,
            Err(_) => compare(directory, &with, false).await,
        };
        return match (again, damage.is_empty()) {
            (Ok(()), true) => Ok("crashed"),
            (result, _) => Err(format!("{how}: {result:?}, {damage:?}, {without:?}")),
        };
    }
    let how = damage(&mut files, random);
    restore(&files, directory);
    let verified = store::verify(directory);
    let found = verified
        .as_ref()
        .map_or(true, |verified| !verified.damage.is_empty());
    match compare(directory, &base.history, false).await {
        Ok(()) if found => Err(format!("{how}: it opens, though {verified:?}")),
        Ok(()) => Ok("opened"),
        Err(said) if said.starts_with("LOST") => Err(format!("{how}: {said}")),
        Err(said) if !found => Err(format!("{how}: nothing was found, though {said}")),
        Err(said) => {
            // The directory, a file in it, and a byte.
            let place = said.split_once(directory.to_str().unwrap()).map(|(_, rest)| rest);
            let named = place.and_then(|rest| rest.split_once(": damaged at byte "));
            if !named.is_some_and(|(file, _)| file.ends_with(".log") || file.starts_with("/store.")) {
                return Err(format!("{how}: no file and byte in: {said}"));
            }
            if said.contains("store.json") {
                return Ok("refused");
            }
            let salvaged = store::salvage(directory).map_err(|error| format!("{how}: {said}: {error}"))?;
            let left = store::verify(directory)
                .map_err(|error| error.to_string())?
                .damage;
            if !left.is_empty() {
                return Err(format!("{how}: {said}: after salvage: {left:?}"));
            }
            // Where nothing had to be dropped, nothing is lost.
            compare(directory, &base.history, !salvaged.dropped.is_empty())
                .await
                .map_err(|after| format!("{how}: {said}: after salvage: {after}: {salvaged:?}"))?;
            Ok("salvaged")
        }
    }
}

/// Trials with the same stores.
const GENERATION: u64 = 1_000;

#[tokio::test]
async fn damage_is_refused_or_harmless() {
    let (seed, trials) = (number("STORE_DAMAGE_SEED", 1), number("STORE_DAMAGE_TRIALS", 500));
    let mut stores = bases(seed / GENERATION).await;
    let mut ends: BTreeMap<&str, u64> = BTreeMap::new();
    for number in seed..seed + trials {
        if number % GENERATION == 0 {
            stores = bases(number / GENERATION).await;
        }
        let mut random = StdRng::seed_from_u64(number);
        let base = stores.choose(&mut random).unwrap();
        let place = directory();
        match trial(base, place.path(), &mut random).await {
            Ok(end) => *ends.entry(end).or_default() += 1,
            Err(said) => {
                let kept: PathBuf = place.keep();
                restore(&base.files, &directory_beside(&kept));
                panic!("STORE_DAMAGE_SEED={number}, see {}: {said}", kept.display());
            }
        }
    }
    eprintln!("{trials} trials from seed {seed}: {ends:?}");
    assert!(ends.values().sum::<u64>() == trials);
}

/// Where the files as they were before the damage go.
fn directory_beside(place: &Path) -> PathBuf {
    let beside = place.with_extension("before");
    std::fs::create_dir_all(&beside).unwrap();
    beside
}
