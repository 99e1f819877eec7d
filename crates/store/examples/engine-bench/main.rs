//! Compares storage engines on the write and read path of a binding repository (records of some 400 bytes with three
//! secondary keys) and of policy sessions (JSON of 11.2 KB with seven, each updated fifteen times). All records have one
//! key more, by time of modification. 256 writes are made durable together.
//!
//! ```sh
//! cargo run --release -p store --features bench-engines --example engine-bench -- --records 1000000 --directory /tmp/bench
//! cargo run --release -p store --features bench-engines --example engine-bench -- --policy --records 50000 --directory /tmp/bench
//! ```
//!
//! One engine after the other, in processes of its own, so that memory and CPU are its own: the first writes, reads and is
//! killed, the second opens what it has left and closes it, the third opens that.

#[path = "../store-bench/binding.rs"]
mod binding;
mod engines;
#[path = "../store-bench/meter.rs"]
mod meter;
#[path = "../policy-bench/session.rs"]
mod session;
mod work;

use std::io::Write as _;
use std::path::{Path, PathBuf};

use binding::Binding;
use clap::{Parser, ValueEnum};
use engines::{Engine, Outcome};
use meter::{Meter, disk};
use session::Policy;
use work::{Bytes, Work, bytes, pick, written};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

#[derive(Parser)]
struct Arguments {
    /// Records.
    #[arg(long, default_value_t = 1_000_000)]
    records: u64,
    /// Policy sessions in place of bindings.
    #[arg(long)]
    policy: bool,
    /// Updates of each record; by default 15 of a policy session, none of a binding.
    #[arg(long)]
    updates: Option<u64>,
    /// Where the data goes; removed at the end.
    #[arg(long)]
    directory: PathBuf,
    /// One engine only: signalbox, rocksdb, rocksdb-blob, rocksdb-small, fjall, redb, sqlite.
    #[arg(long)]
    engine: Option<String>,
    /// What a process for one engine does.
    #[arg(long, hide = true)]
    phase: Option<Phase>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Phase {
    /// Write, read, be killed.
    Write,
    /// Open what the killed process has left, close it.
    Killed,
    /// Open what was closed.
    Closed,
}

/// Writes that are made durable together.
const GROUP: u64 = 256;
const LOOKUPS: u64 = 100_000;
/// Records that are compared after a restart.
const CHECKS: u64 = 2_000;

fn main() -> Outcome<()> {
    let arguments = Arguments::parse();
    let (Some(name), Some(phase)) = (&arguments.engine, arguments.phase) else {
        return all_engines(&arguments);
    };
    if arguments.policy {
        run::<Policy>(&arguments, name, phase)
    } else {
        run::<Binding>(&arguments, name, phase)
    }
}

/// Each engine and phase in a process of its own.
fn all_engines(arguments: &Arguments) -> Outcome<()> {
    let all = [
        "signalbox",
        "rocksdb",
        "rocksdb-blob",
        "rocksdb-small",
        "fjall",
        "redb",
        "sqlite",
    ];
    let wanted = arguments.engine.as_deref();
    for name in all
        .into_iter()
        .filter(|name| wanted.is_none_or(|wanted| wanted == *name))
    {
        for phase in ["write", "killed", "closed"] {
            let mut process = std::process::Command::new(std::env::current_exe()?);
            process.args(["--engine", name, "--phase", phase]);
            process.args(["--records", &arguments.records.to_string()]);
            process.args(arguments.policy.then_some("--policy"));
            if let Some(updates) = arguments.updates {
                process.args(["--updates", &updates.to_string()]);
            }
            let status = process.arg("--directory").arg(&arguments.directory).status()?;
            if !status.success() && phase != "write" {
                return Err(format!("{name}, {phase}: {status}").into());
            }
        }
    }
    Ok(())
}

fn run<W: Work>(arguments: &Arguments, name: &str, phase: Phase) -> Outcome<()> {
    let directory = arguments.directory.join(name);
    std::fs::create_dir_all(&directory)?;
    let updates = arguments.updates.unwrap_or(W::UPDATES);
    let bench = Bench {
        name,
        directory: &directory,
        records: arguments.records,
        updates,
    };
    match phase {
        Phase::Write => bench.write::<W>(),
        Phase::Killed => bench.restart::<W>("open after a kill"),
        Phase::Closed => {
            bench.restart::<W>("open after a close")?;
            Ok(std::fs::remove_dir_all(&directory)?)
        }
    }
}

struct Bench<'a> {
    name: &'a str,
    directory: &'a Path,
    records: u64,
    updates: u64,
}

impl Bench<'_> {
    fn say(&self, line: &str) -> Outcome<()> {
        Ok(writeln!(std::io::stdout(), "{:<12} {line}", self.name)?)
    }

    /// Records that are deleted at the end.
    fn deletes(&self) -> u64 {
        self.records / 5
    }

    fn write<W: Work>(&self) -> Outcome<()> {
        let sample = (self.records / 10).max(1);
        let meter = Meter::start();
        let length: usize = (0..sample).map(|number| bytes::<W>(number, 0).value.len()).sum();
        self.say(&meter.report("values alone, a tenth", sample))?;
        self.say(&format!("a value has {} bytes", length as u64 / sample))?;
        let mut engine = engines::open::<W>(self.name, self.directory)?;

        self.measure("insert, durable", self.records, || {
            self.groups(self.records, |numbers| {
                let group: Vec<Bytes> = numbers.map(|number| bytes::<W>(number, 0)).collect();
                engine.insert(&group)
            })
        })?;
        self.settle(&mut *engine, self.records)?;
        if self.updates > 0 {
            self.measure("read and update, durable", self.records * self.updates, || {
                (1..=self.updates).try_for_each(|change| {
                    self.groups(self.records, |numbers| {
                        let group: Vec<Bytes> = numbers.map(|number| bytes::<W>(number, change)).collect();
                        engine.update(&group)
                    })
                })
            })?;
            self.settle(&mut *engine, self.records * self.updates)?;
        }
        self.lookups::<W>(&mut *engine)?;
        self.measure("delete by key, durable", self.deletes(), || {
            self.groups(self.deletes(), |numbers| {
                let group: Vec<Vec<u8>> = numbers.map(W::id).collect();
                engine.delete(&group)
            })
        })?;
        self.on_disk()?;
        // No destructor runs: as after a crash of the process.
        rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::KILL)?;
        Ok(())
    }

    fn restart<W: Work>(&self, what: &str) -> Outcome<()> {
        let meter = Meter::start();
        let mut engine = engines::open::<W>(self.name, self.directory)?;
        // Ready: the first record is read.
        engine.get(&W::id(self.records - 1))?;
        self.say(&meter.report(what, 1))?;
        let mut wrong = 0u64;
        for turn in 0..CHECKS {
            let number = pick(turn, self.records);
            let found = engine.get(&W::id(number))?;
            wrong += u64::from(match found {
                Some(answer) => number < self.deletes() || !W::is_current(&answer, number, self.updates),
                None => number >= self.deletes(),
            });
        }
        if wrong > 0 {
            self.say(&format!(
                "WRONG: {wrong} of {CHECKS} are not as they were written"
            ))?;
        }
        let meter = Meter::start();
        drop(engine);
        self.say(&meter.report("close", 1))
    }

    /// Does something with all numbers, a group at a time.
    fn groups(&self, end: u64, mut work: impl FnMut(std::ops::Range<u64>) -> Outcome<()>) -> Outcome<()> {
        (0..end)
            .step_by(GROUP as usize)
            .try_for_each(|first| work(first..(first + GROUP).min(end)))
    }

    /// One line of what a phase has cost.
    fn measure(&self, what: &str, count: u64, work: impl FnOnce() -> Outcome<()>) -> Outcome<()> {
        let (meter, before) = (Meter::start(), written());
        work()?;
        let each = (written() - before) / count.max(1);
        self.say(&format!(
            "{}  {each} bytes written each",
            meter.report(what, count)
        ))
    }

    /// What the writes before cost in the background, and their space.
    fn settle(&self, engine: &mut dyn Engine, count: u64) -> Outcome<()> {
        let (meter, before) = (Meter::start(), written());
        if engine.settle()? {
            let each = (written() - before) / count.max(1);
            let line = meter.report("  and its background work", count);
            self.say(&format!("{line}  {each} bytes written each"))?;
        }
        self.on_disk()
    }

    fn on_disk(&self) -> Outcome<()> {
        self.say(&format!(
            "disk {} bytes a record",
            disk(self.directory) / self.records.max(1)
        ))
    }

    fn lookups<W: Work>(&self, engine: &mut dyn Engine) -> Outcome<()> {
        // The first round fills caches.
        for round in 0..2 {
            let (mut missing, meter) = (0u64, Meter::start());
            for turn in 0..LOOKUPS {
                missing += u64::from(engine.get(&W::id(pick(turn, self.records)))?.is_none());
            }
            let get = meter.report("get by key", LOOKUPS);
            let meter = Meter::start();
            for turn in 0..LOOKUPS {
                let (index, key) = W::key_of(pick(turn + 3, self.records), turn);
                missing += u64::from(engine.find(index, &key)?.is_none());
            }
            if round == 1 {
                self.say(&get)?;
                self.say(&meter.report("find by a secondary key", LOOKUPS))?;
            }
            if missing > 0 {
                self.say(&format!("WRONG: {missing} not found"))?;
            }
        }
        Ok(())
    }
}
