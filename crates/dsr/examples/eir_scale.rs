//! Size and speed of an equipment identity register: `eir_scale FILE RANGES IMEIS PAIRS` writes a file of lists (unless it is
//! there), loads it as the router does, and looks entries up at random: memory, load time, time of a look-up, each answer
//! compared with what was written.

use std::fs::File;
use std::hint::black_box;
use std::io::{BufWriter, Write};
use std::path::Path;
use std::time::Instant;

use dsr::probes::Register;
use dsr_eir::config::Eir;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

const LISTS: [&str; 3] = ["white", "grey", "black"];
/// Ranges are prefixes of nine digits, every eighth one from here on: no two touch.
const FIRST_PREFIX: u64 = 100_000_000;
const STEP: u64 = 8;
/// Single IMEIs, and IMEIs of pairs; in no range.
const FIRST_IMEI: u64 = 30_000_000_000_000;
const FIRST_PAIRED: u64 = 40_000_000_000_000;
/// IMSIs of an IMEI, as the benchmarking guide has them.
const IMSIS: u64 = 10;
const LOOK_UPS: u64 = 5_000_000;

fn list(number: u64) -> &'static str {
    LISTS[(number % 3) as usize]
}

/// The number that stands at this position: a permutation, so that the file is in no order.
fn shuffled(position: u64, count: u64) -> u64 {
    // A prime larger than any count shares no factor with it.
    (u128::from(position) * 2_654_435_761 % u128::from(count.max(1))) as u64
}

fn paired(number: u64) -> (u64, u64) {
    (FIRST_PAIRED + number / IMSIS, 1_010_000_000_000 + number)
}

fn write(path: &Path, [ranges, imeis, pairs]: [u64; 3]) -> std::io::Result<()> {
    let mut file = BufWriter::with_capacity(1 << 20, File::create(path)?);
    for position in 0..ranges {
        let number = shuffled(position, ranges);
        writeln!(file, "{},{:09}", list(number), FIRST_PREFIX + number * STEP)?;
    }
    for position in 0..imeis {
        let number = shuffled(position, imeis);
        writeln!(file, "{},{:014}", list(number), FIRST_IMEI + number)?;
    }
    for position in 0..pairs {
        let number = shuffled(position, pairs);
        let (imei, imsi) = paired(number);
        writeln!(file, "pair,{imei:014},{imsi:015},{}", list(number))?;
    }
    file.flush()
}

/// A line of `/proc/self/status` in MB.
fn memory(key: &str) -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix(key));
    let kilobytes = line.and_then(|rest| {
        rest.trim_matches([':', ' ', '\t', 'k', 'B'])
            .trim()
            .parse::<f64>()
            .ok()
    });
    kilobytes.unwrap_or_default() / 1024.0
}

/// Processor time of this thread in nanoseconds: other programs may use the cores meanwhile.
fn used() -> f64 {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    let first = text.split(' ').next().and_then(|first| first.parse().ok());
    first.unwrap_or_default()
}

/// Looks up what `entry` gives for numbers at random, and prints the time of one.
fn look_up(
    register: &Register,
    what: &str,
    count: u64,
    entry: impl Fn(u64) -> (u64, u64, Option<&'static str>),
) -> std::io::Result<()> {
    if count == 0 {
        return Ok(());
    }
    // Texts are made before: a message has them already.
    let mut random = 88_172_645_463_325_252_u64;
    let mut wrong = 0;
    let mut spent = 0.0;
    for _ in 0..LOOK_UPS / 10_000 {
        let batch: Vec<_> = (0..10_000)
            .map(|_| {
                random ^= random << 13;
                random ^= random >> 7;
                random ^= random << 17;
                let (imei, imsi, expected) = entry(random % count);
                (format!("{imei:014}"), format!("{imsi:015}"), expected)
            })
            .collect();
        let before = used();
        for (imei, imsi, expected) in &batch {
            let found = register.status(black_box(imei.as_bytes()), black_box(imsi.as_bytes()));
            wrong += u64::from(found != *expected);
        }
        spent += used() - before;
    }
    let each = spent / LOOK_UPS as f64;
    writeln!(
        std::io::stdout(),
        "look-up, {what}: {each:.0} ns, {wrong} of {LOOK_UPS} wrong"
    )
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [file, ranges, imeis, pairs] = &arguments[..] else {
        return Err("usage: eir_scale FILE RANGES IMEIS PAIRS".into());
    };
    let path = Path::new(file);
    let counts = [ranges.parse()?, imeis.parse()?, pairs.parse()?];
    if !path.exists() {
        write(path, counts)?;
    }
    let [ranges, imeis, pairs] = counts;
    writeln!(
        std::io::stdout(),
        "file: {:.2} GB",
        path.metadata()?.len() as f64 / 1e9
    )?;
    let before = memory("VmRSS");
    let (begun, before_cpu) = (Instant::now(), used());
    let register = Register::load(&Eir {
        file: Some(path.to_owned()),
        ..Eir::default()
    })?;
    writeln!(
        std::io::stdout(),
        "loaded in {:.1} s, {:.1} s of processor time",
        begun.elapsed().as_secs_f64(),
        (used() - before_cpu) / 1e9
    )?;
    writeln!(
        std::io::stdout(),
        "resident: {:.0} MB for the lists, {:.0} MB at most while they were loaded",
        memory("VmRSS") - before,
        memory("VmHWM") - before
    )?;
    for (name, entries, bytes) in register.tables() {
        writeln!(
            std::io::stdout(),
            "{name}: {entries} entries, {:.0} MB",
            bytes as f64 / 1e6
        )?;
    }
    // A range decides when no pair and no IMEI does.
    look_up(&register, "an IMEI in a range", ranges, |number| {
        let imei = (FIRST_PREFIX + number * STEP) * 100_000 + number % 100_000;
        (imei, 1_010_000_000_000, Some(list(number)))
    })?;
    look_up(&register, "a listed IMEI", imeis, |number| {
        (FIRST_IMEI + number, 1_010_000_000_000, Some(list(number)))
    })?;
    look_up(&register, "a pair", pairs, |number| {
        let (imei, imsi) = paired(number);
        (imei, imsi, Some(list(number)))
    })?;
    look_up(&register, "in no list", 1_000_000_000, |number| {
        (90_000_000_000_000 + number, 1_010_000_000_000, None)
    })?;
    Ok(())
}
