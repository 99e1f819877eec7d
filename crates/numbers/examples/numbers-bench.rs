//! What numbers cost: bytes and time to build, open, find one by one and in batches, and change, beside a
//! `std::collections::HashMap` and random reads of memory in the same run. Times are those of the processor, so that other work
//! on the machine counts as little as it can.
//!
//! ```sh
//! make bench-numbers NUMBERS=100000000
//! ```

use std::collections::HashMap;
use std::hint::black_box;
use std::io::Write as _;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use clap::Parser;
use numbers::{Change, DestinationSet, Key, Kind, Load, Map, NameFile, NameWriter, NoJournal, SetId, Writer};
use rustix::time::{ClockId, clock_gettime};

/// Keys that are looked up; each list is more than the caches keep.
const ASKED: usize = 1 << 20;
const BATCH: usize = 16;

#[derive(Debug, Parser)]
struct Args {
    /// Numbers: two thirds IMSIs of 15 digits, one third MSISDNs of 12
    #[arg(long, default_value_t = 10_000_000)]
    numbers: u64,
    /// Mean distance between neighbours
    #[arg(long, default_value_t = 20)]
    gap: u64,
    /// Different destination sets, one at random for each number
    #[arg(long, default_value_t = 300)]
    sets: u32,
    /// Neighbours in a row that have the same set
    #[arg(long, default_value_t = 1)]
    shared: u64,
    /// Unknown numbers to look up
    #[arg(long, default_value_t = 10_000_000)]
    unknown: usize,
    /// Numbers in the HashMap beside it; about 20 to 40 bytes of memory each
    #[arg(long, default_value_t = 100_000_000)]
    hash_numbers: u64,
    /// Names of 27 bytes in a file beside that of the numbers, of which neighbours are as far apart
    #[arg(long, default_value_t = 0)]
    names: u64,
    /// Copy the file into huge pages instead of mapping it
    #[arg(long)]
    copied: bool,
    /// Folder of the file; it is removed
    #[arg(long, default_value = ".")]
    directory: PathBuf,
}

/// Numbers that look random and are the same each time (xorshift).
struct Random(u64);

impl Random {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        ((u128::from(self.0) * u128::from(bound)) >> 64) as u64
    }
}

/// Calls `each` with every number, the position of its set, and the distance to the next number.
fn population(args: &Args, mut each: impl FnMut(Key, u32, u64)) {
    let mut random = Random(0x9e37_79b9_7f4a_7c15);
    let imsis = args.numbers - args.numbers / 3;
    let parts = [
        (Kind::Imsi, 15, 262_010_000_000_000, imsis),
        (Kind::Msisdn, 12, 491_500_000_000, args.numbers - imsis),
    ];
    for (kind, length, first, count) in parts {
        let (mut number, mut set) = (first, 0);
        for position in 0..count {
            if position % args.shared == 0 {
                set = random.below(u64::from(args.sets)) as u32;
            }
            let gap = 1 + random.below(2 * args.gap - 1);
            if let Some(key) = Key::from_number(kind, length, number) {
                each(key, set, gap);
            }
            number += gap;
        }
    }
}

fn say(text: &str) {
    // Who reads the lines may have seen enough.
    let _ = writeln!(std::io::stdout(), "{text}");
}

/// Resident memory of this process without that of files, in bytes.
fn anonymous_memory() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("RssAnon:"));
    let kilobytes = line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok());
    kilobytes.unwrap_or(0) * 1024
}

/// Time of the processor that this process has used.
fn processor() -> Duration {
    let used = clock_gettime(ClockId::ProcessCPUTime);
    Duration::new(used.tv_sec.unsigned_abs(), used.tv_nsec as u32)
}

fn nanoseconds(took: Duration, count: usize) -> f64 {
    took.as_nanos() as f64 / count as f64
}

/// The time of one call, of which the next one's argument depends on the answer, as that of a request does.
fn one_by_one<K: Clone>(keys: &[K], mut find: impl FnMut(K) -> u64) -> f64 {
    let nothing = black_box(0);
    let (mut at, mut sum) = (0, 0_u64);
    let begun = processor();
    while let Some(key) = keys.get(at) {
        let found = find(key.clone());
        sum = sum.wrapping_add(found);
        at += 1 + (found & nothing) as usize;
    }
    let took = processor() - begun;
    black_box(sum);
    nanoseconds(took, keys.len())
}

struct Samples {
    known: Vec<(Key, u32)>,
    unknown: Vec<Key>,
}

fn build(args: &Args, path: &std::path::Path) -> Result<Samples, numbers::Error> {
    let mut random = Random(7);
    let mut samples = Samples {
        known: Vec::with_capacity(ASKED),
        unknown: Vec::with_capacity(args.unknown),
    };
    let (begun, used) = (Instant::now(), processor());
    let mut writer = Writer::create(path)?;
    let ids: Result<Vec<SetId>, _> = (0..args.sets).map(|set| writer.intern(&set_of(set))).collect();
    let ids = ids?;
    let mut failed = None;
    population(args, |key, set, gap| {
        if let Err(error) = writer.push(key, ids[set as usize]) {
            failed = Some(error);
        }
        if random.below(args.numbers) < ASKED as u64 {
            samples.known.push((key, set));
        }
        if gap > 1 && random.below(args.numbers) < args.unknown as u64 {
            let next = Key::from_number(key.kind(), key.length(), key.number() + 1 + random.below(gap - 1));
            samples.unknown.extend(next);
        }
    });
    failed.map_or(Ok(()), Err)?;
    let written = writer.finish()?;
    let (took, used) = (begun.elapsed().as_secs_f64(), (processor() - used).as_secs_f64());
    say(&format!(
        "built       {} numbers, {} blocks, {} bytes: {:.2} bytes a number, in {took:.1} s, {used:.1} s of the processor ({:.1} million a second)",
        written.numbers,
        written.blocks,
        written.bytes,
        written.bytes as f64 / written.numbers as f64,
        written.numbers as f64 / used / 1e6
    ));
    shuffle(&mut random, &mut samples.known);
    shuffle(&mut random, &mut samples.unknown);
    Ok(samples)
}

fn shuffle<T>(random: &mut Random, items: &mut [T]) {
    for at in (1..items.len()).rev() {
        items.swap(at, random.below(at as u64 + 1) as usize);
    }
}

fn set_of(number: u32) -> DestinationSet {
    let text = format!("hss{number}.epc.mnc001.mcc262.3gppnetwork.org");
    DestinationSet::parse(&text).expect("a destination")
}

fn find(map: &Map, key: Key) -> u64 {
    match map.find(key) {
        Ok(Some(set)) => map.set(set).map_or(0, |_| 1),
        Ok(None) => 0,
        Err(error) => panic!("{error}"),
    }
}

fn look_up(map: &Map, samples: &Samples) -> (f64, f64) {
    for (key, set) in &samples.known {
        let found = map.find(*key).expect("a sound file").expect("a known number");
        assert_eq!(map.set(found).as_deref(), Some(&set_of(*set)), "{key}");
    }
    let strangers = samples.unknown.iter().map(|key| find(map, *key)).sum::<u64>();
    say(&format!(
        "unknown     {} numbers looked up, {strangers} found",
        samples.unknown.len()
    ));
    let keys: Vec<Key> = samples.known.iter().map(|(key, _)| *key).collect();
    let exists = |key| map.find(key).is_ok_and(|set| set.is_some()).into();
    let (mut known, mut unknown, mut batch) = (f64::MAX, f64::MAX, f64::MAX);
    for _ in 0..3 {
        known = known.min(one_by_one(&keys, exists));
        let some = &samples.unknown[..samples.unknown.len().min(ASKED)];
        unknown = unknown.min(one_by_one(some, exists));
        let (mut count, begun) = (0_u64, processor());
        for keys in keys.chunks(BATCH) {
            map.find_many(keys, |found| {
                count += u64::from(found.is_ok_and(|set| set.is_some()));
            });
        }
        batch = batch.min(nanoseconds(processor() - begun, keys.len()));
        assert_eq!(count as usize, keys.len());
    }
    say(&format!("known       {known:.0} ns each, one by one"));
    say(&format!("unknown     {unknown:.0} ns each, one by one"));
    say(&format!(
        "batch of {BATCH} {batch:.0} ns each, {:.2} of one by one",
        batch / known
    ));
    (known, batch)
}

/// Random reads, each of which depends on the one before, in as much memory as the file has.
fn memory_read(bytes: u64) -> f64 {
    let mut random = Random(11);
    let words = (bytes / 8).next_power_of_two() as usize;
    let memory: Vec<u64> = (0..words).map(|_| random.below(u64::MAX)).collect();
    let mut at = 0;
    let begun = processor();
    for step in 0..ASKED {
        at = (memory[at] as usize ^ step.wrapping_mul(0x9e37_79b9_7f4a_7c15)) & (words - 1);
    }
    let took = processor() - begun;
    black_box(at);
    nanoseconds(took, ASKED)
}

fn hash_map(args: &Args, samples: &Samples) -> (f64, f64) {
    let count = args.numbers.min(args.hash_numbers);
    let before = anonymous_memory();
    let mut map: HashMap<Key, u16> = HashMap::with_capacity(count as usize);
    population(args, |key, set, _| {
        if (map.len() as u64) < count {
            map.insert(key, set as u16);
        }
    });
    let each = (anonymous_memory() - before) as f64 / count as f64;
    let keys: Vec<Key> = samples.known.iter().map(|(key, _)| *key).collect();
    let mut known = f64::MAX;
    for _ in 0..3 {
        known = known.min(one_by_one(&keys, |key: Key| {
            map.get(&key).map_or(0, |set| u64::from(*set))
        }));
    }
    say(&format!(
        "HashMap     {count} numbers, {each:.1} bytes of memory a number, {known:.0} ns each, one by one"
    ));
    (each, known)
}

fn change(map: &Map, samples: &Samples) {
    let mut journal = NoJournal::default();
    let count = samples.known.len().min(20_000);
    let begun = processor();
    for (key, set) in &samples.known[..count] {
        let set = set_of(set + 1);
        map.change(&[Change::Put { key: *key, set }], &mut journal)
            .expect("a sound file");
    }
    let each = nanoseconds(processor() - begun, count) / 1000.0;
    say(&format!(
        "change      {each:.1} µs each, {count} of them, one block rebuilt for each"
    ));
}

/// A name of 27 bytes.
fn name(number: u64) -> String {
    format!("imei{number:011}@iot.example")
}

/// The same for names in a file, beside numbers of which it is still open.
fn names(args: &Args) -> Result<(), numbers::Error> {
    let path = args.directory.join("numbers-bench.names");
    let (mut random, mut number) = (Random(5), 0);
    let (mut known, mut unknown) = (Vec::new(), Vec::new());
    let sets: Vec<DestinationSet> = (0..args.sets).map(set_of).collect();
    let (begun, used) = (Instant::now(), processor());
    let mut writer = NameWriter::create(&path)?;
    for _ in 0..args.names {
        let gap = 1 + random.below(2 * args.gap - 1);
        let set = random.below(u64::from(args.sets)) as usize;
        writer.push(name(number).as_bytes(), &sets[set])?;
        if random.below(args.names) < ASKED as u64 {
            known.push((name(number), set));
            unknown.extend((gap > 1).then(|| name(number + 1 + random.below(gap - 1))));
        }
        number += gap;
    }
    let count = writer.finish()?;
    let (took, used) = (begun.elapsed().as_secs_f64(), (processor() - used).as_secs_f64());
    let begun = Instant::now();
    let load = if args.copied { Load::Copied } else { Load::Mapped };
    let file = NameFile::open(&path, load)?;
    say(&format!(
        "names       {count} of 27 bytes, {:.2} bytes a name, built in {took:.1} s, {used:.1} s of the processor, ready in {:.3} s",
        file.bytes() as f64 / count as f64,
        begun.elapsed().as_secs_f64()
    ));
    shuffle(&mut random, &mut known);
    shuffle(&mut random, &mut unknown);
    for (name, set) in &known {
        let found = file.find(name.as_bytes()).expect("a sound file");
        assert_eq!(found.map(|found| &**found), Some(&sets[*set]), "{name}");
    }
    let exists = |name: &str| u64::from(file.find(name.as_bytes()).is_ok_and(|set| set.is_some()));
    let strangers = unknown.iter().map(|name| exists(name)).sum::<u64>();
    let known: Vec<&str> = known.iter().map(|(name, _)| name.as_str()).collect();
    let unknown_names: Vec<&str> = unknown.iter().map(String::as_str).collect();
    let times = [known, unknown_names].map(|names| {
        let times = (0..3).map(|_| one_by_one(&names, exists));
        times.fold(f64::MAX, f64::min)
    });
    say(&format!(
        "            {:.0} ns for a known and {:.0} ns for an unknown name, {strangers} of {} unknown ones found",
        times[0],
        times[1],
        unknown.len()
    ));
    std::fs::remove_file(&path).ok();
    Ok(())
}

fn main() -> Result<(), numbers::Error> {
    let args = Args::parse();
    let path = args.directory.join("numbers-bench.num");
    let samples = build(&args, &path)?;
    let load = if args.copied { Load::Copied } else { Load::Mapped };
    let begun = Instant::now();
    let map = Map::open(&path, None, load)?;
    assert_eq!(find(&map, samples.known[0].0), 1);
    say(&format!(
        "ready       in {:.3} s, {load:?}",
        begun.elapsed().as_secs_f64()
    ));
    let bytes = std::fs::metadata(&path).map_or(0, |file| file.len());
    let each = bytes as f64 / args.numbers as f64;
    let (known, _) = look_up(&map, &samples);
    let read = memory_read(bytes);
    say(&format!(
        "memory      {read:.0} ns for a random read; a look-up takes {:.1} of them",
        known / read
    ));
    let (memory, hashed) = hash_map(&args, &samples);
    say(&format!(
        "beside it   1/{:.1} of the HashMap's memory, {:.2} of its time",
        memory / each,
        known / hashed
    ));
    change(&map, &samples);
    if args.names > 0 {
        names(&args)?;
    }
    std::fs::remove_file(&path).ok();
    Ok(())
}
