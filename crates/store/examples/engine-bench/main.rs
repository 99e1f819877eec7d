//! Compares storage engines on the write and read path of a binding repository: each insert is a record of some
//! 400 bytes with three secondary keys and one by time of modification, 256 inserts are made durable together.
//!
//! ```sh
//! cargo run --release -p store --features bench-engines --example engine-bench -- --records 1000000 --directory /tmp/bench
//! ```
//!
//! One engine after the other, each in a process of its own, so that memory and CPU are its own.

#[path = "../store-bench/binding.rs"]
mod binding;
mod engines;
#[path = "../store-bench/meter.rs"]
mod meter;

use std::io::Write as _;
use std::path::PathBuf;

use binding::{Binding, mix};
use clap::Parser;
use engines::Engine;
use meter::{Meter, disk};
use store::{IndexKeys, Record as _};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

#[derive(Parser)]
struct Arguments {
    /// Records.
    #[arg(long, default_value_t = 1_000_000)]
    records: u64,
    /// Where the data goes; removed at the end.
    #[arg(long)]
    directory: PathBuf,
    /// One engine only: signalbox, fjall, redb, sqlite.
    #[arg(long)]
    engine: Option<String>,
}

/// Records that are made durable together.
const GROUP: u64 = 256;
const LOOKUPS: u64 = 100_000;

/// A record as the engines get it.
pub(crate) struct Bytes {
    id: [u8; 16],
    keys: Vec<(u8, Vec<u8>)>,
    modified: u64,
    value: Vec<u8>,
}

fn bytes(number: u64) -> Bytes {
    let binding = Binding::new(number);
    let (mut keys, mut value) = (IndexKeys::default(), Vec::new());
    binding.index(&mut keys);
    binding.encode(&mut value);
    Bytes {
        id: Binding::id(number),
        keys: keys.iter().map(|(index, key)| (index.0, key.to_vec())).collect(),
        modified: 1_700_000_000_000_000 + number,
        value,
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments = Arguments::parse();
    let Some(name) = &arguments.engine else {
        for name in ["signalbox", "fjall", "redb", "sqlite"] {
            let records = arguments.records.to_string();
            std::process::Command::new(std::env::current_exe()?)
                .args(["--engine", name, "--records", &records, "--directory"])
                .arg(&arguments.directory)
                .status()?;
        }
        return Ok(());
    };
    let mut say = |line: String| writeln!(std::io::stdout(), "{name:<10} {line}");
    let directory = arguments.directory.join(name);
    std::fs::create_dir_all(&directory)?;
    let mut engine = engines::open(name, &directory)?;

    let meter = Meter::start();
    for first in (0..arguments.records).step_by(GROUP as usize) {
        let group: Vec<Bytes> = (first..(first + GROUP).min(arguments.records))
            .map(bytes)
            .collect();
        engine.insert(&group)?;
    }
    say(meter.report("insert, durable", arguments.records))?;
    say(format!(
        "disk {} bytes a record",
        disk(&directory) / arguments.records.max(1)
    ))?;
    let pick = |turn: u64| mix(turn) % arguments.records;
    lookups(&mut *engine, &pick, &mut say)?;

    let deletes = arguments.records / 5;
    let meter = Meter::start();
    for first in (0..deletes).step_by(GROUP as usize) {
        let group: Vec<[u8; 16]> = (first..(first + GROUP).min(deletes)).map(Binding::id).collect();
        engine.delete(&group)?;
    }
    say(meter.report("delete by key, durable", deletes))?;
    drop(engine);
    std::fs::remove_dir_all(&directory)?;
    Ok(())
}

fn lookups(
    engine: &mut dyn Engine,
    pick: &dyn Fn(u64) -> u64,
    say: &mut dyn FnMut(String) -> std::io::Result<()>,
) -> Result<(), Box<dyn std::error::Error>> {
    // The first round fills caches.
    for round in 0..2 {
        let (mut missing, meter) = (0u64, Meter::start());
        for turn in 0..LOOKUPS {
            missing += u64::from(engine.get(&Binding::id(pick(turn)))?.is_none());
        }
        let get = meter.report("get by key", LOOKUPS);
        let meter = Meter::start();
        for turn in 0..LOOKUPS {
            missing += u64::from(engine.find(0, &Binding::ipv4(pick(turn + 3)))?.is_none());
        }
        if round == 1 {
            say(get)?;
            say(meter.report("find by address", LOOKUPS))?;
        }
        if missing > 0 {
            say(format!("WRONG: {missing} not found"))?;
        }
    }
    Ok(())
}
