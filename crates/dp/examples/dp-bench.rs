//! Look-ups a second of a database processor with one worker over one connection: `make bench-dp`.

#![allow(clippy::print_stdout)]

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::time::{Duration, Instant};

use dp_proto::{Answer, Bundle, Frame, Kind, Outcome, Query};
use numbers::{DestinationSet, Key, Writer};

type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

/// Destinations of the population.
const DESTINATIONS: u64 = 300;
/// Distance of neighbouring numbers.
const DISTANCE: u64 = 20;
/// The first number.
const FIRST: u64 = 1_010_000_000_000;
/// Bundles that are in flight.
const IN_FLIGHT: usize = 8;

fn main() -> Result<()> {
    let mut given = std::env::args().skip(1).map(|text| text.parse::<u64>());
    let mut next = |default| given.next().unwrap_or(Ok(default));
    let (count, seconds, bundle) = (next(10_000_000)?, next(10)?, next(64)?);
    let folder = tempfile::tempdir()?;
    let file = folder.path().join("bench.num");
    populate(&file, count)?;
    let local = SocketAddr::from(([127, 0, 0, 1], 0));
    let processor = dp::start(dp::Config {
        admin: local,
        workers: 1,
        listen: local.into(),
        numbers: Some(file),
        ..dp::Config::default()
    })?;
    let address = *processor.addresses().first().ok_or("no address")?;
    println!("{count} numbers, bundles of {bundle}, {IN_FLIGHT} in flight, {seconds} s");
    let (before, begun) = (worker_time(), Instant::now());
    let (answers, known) = ask(address, count, bundle, Duration::from_secs(seconds))?;
    let elapsed = begun.elapsed().as_secs_f64();
    let used = worker_time().saturating_sub(before).as_secs_f64();
    println!(
        "{:.0} look-ups/s over the connection, {:.0} in a second of the worker's processor time; {known} of {answers} known",
        answers as f64 / elapsed,
        answers as f64 / used,
    );
    Ok(())
}

/// Numbers in ascending order, with destinations at random.
fn populate(file: &Path, count: u64) -> Result<()> {
    let mut writer = Writer::create(file)?;
    let mut sets = Vec::new();
    for number in 0..DESTINATIONS {
        let set = DestinationSet::parse(&format!("hss{number}.epc.mnc001.mcc001.3gppnetwork.org"))?;
        sets.push(writer.intern(&set)?);
    }
    for number in 0..count {
        let key = Key::from_number(numbers::Kind::Imsi, 15, FIRST + number * DISTANCE);
        let set = sets.get((mixed(number) % DESTINATIONS) as usize);
        let (key, set) = key.zip(set).ok_or("too many numbers")?;
        writer.push(key, *set)?;
    }
    writer.finish()?;
    Ok(())
}

/// A number that looks random (SplitMix64).
const fn mixed(seed: u64) -> u64 {
    let seed = seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let seed = (seed ^ (seed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let seed = (seed ^ (seed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    seed ^ (seed >> 31)
}

/// Asks for known and unknown numbers in turns; returns the answers, and how many of them have a destination.
fn ask(address: SocketAddr, count: u64, bundle: u64, time: Duration) -> Result<(u64, u64)> {
    let mut stream = TcpStream::connect(address)?;
    stream.set_nodelay(true)?;
    let bundles: Vec<Vec<u8>> = (0..4_096).map(|seed| queries(seed, count, bundle)).collect();
    let mut turn = bundles.iter().cycle();
    let (mut input, mut chunk) = (Vec::new(), vec![0; 1 << 18]);
    let (mut answers, mut known, mut in_flight) = (0, 0, 0);
    let begun = Instant::now();
    loop {
        while in_flight < IN_FLIGHT && begun.elapsed() < time {
            stream.write_all(turn.next().ok_or("no bundle")?)?;
            in_flight += 1;
        }
        if in_flight == 0 {
            return Ok((answers, known));
        }
        let read = stream.read(&mut chunk)?;
        input.extend_from_slice(chunk.get(..read).unwrap_or_default());
        let mut done = 0;
        while let Some((frame, length)) = Frame::<Answer<'_>>::split(input.get(done..).unwrap_or_default())? {
            frame.each(|answer| known += u64::from(answer.outcome == Outcome::Exact))?;
            answers += frame.count() as u64;
            done += length;
            in_flight -= 1;
        }
        input.drain(..done);
    }
}

/// A bundle of queries, of which every second one is for a number between two known ones.
fn queries(seed: u64, count: u64, bundle: u64) -> Vec<u8> {
    let (mut frames, mut octets) = (Bundle::default(), Vec::new());
    for id in 0..bundle.clamp(1, dp_proto::MOST_ENTRIES as u64) {
        let number = mixed(seed << 32 | id) % count.max(1);
        let digits = format!("{:015}", FIRST + number * DISTANCE + id % 2);
        frames.push(&Query {
            id: id as u32,
            kind: Kind::Imsi,
            service: b"lte-hss",
            value: digits.as_bytes(),
        });
    }
    frames.take_into(&mut octets);
    octets
}

/// Processor time of the worker's thread.
fn worker_time() -> Duration {
    let tasks = std::fs::read_dir("/proc/self/task")
        .into_iter()
        .flatten()
        .flatten();
    let of_worker = tasks.filter(|task| {
        let name = std::fs::read_to_string(task.path().join("comm"));
        name.is_ok_and(|name| name.trim() == "dp-0")
    });
    let times = of_worker.filter_map(|task| {
        let text = std::fs::read_to_string(task.path().join("schedstat")).ok()?;
        text.split_whitespace()
            .next()?
            .parse()
            .ok()
            .map(Duration::from_nanos)
    });
    times.sum()
}
