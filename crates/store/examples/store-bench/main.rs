//! Measures the store on the write and read path of a binding repository.
//!
//! ```sh
//! cargo run --release -p store --example store-bench -- --records 1000000 --directory /tmp/bench
//! ```
//!
//! Phases: preload (inserts, many in flight, one batch each), lookups by primary key and by an index at random,
//! the session mix at a fixed rate (create, find by address, delete), close, open again, and a last look.

mod binding;
mod meter;

use std::collections::VecDeque;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use binding::{Binding, mix};
use clap::Parser;
use hdrhistogram::Histogram;
use meter::{Meter, disk};
use settings::{ByteSize, Period};
use store::{Batch, Condition, Config, Durability, EmbeddedConfig, Receipt, Store, Table, TableDef};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

#[derive(Parser)]
struct Arguments {
    /// Records to preload.
    #[arg(long, default_value_t = 1_000_000)]
    records: u64,
    /// Where the data goes; removed at the end unless `--keep`.
    #[arg(long)]
    directory: PathBuf,
    /// Inserts in flight at the same time.
    #[arg(long, default_value_t = 512)]
    in_flight: usize,
    /// MiB of a file of the log.
    #[arg(long, default_value_t = 128)]
    segment: u64,
    /// Microseconds from one group commit to the next, at least.
    #[arg(long, default_value_t = 1_000)]
    group_interval: u64,
    /// Durability without fsync.
    #[arg(long)]
    os: bool,
    /// Random lookups of each kind.
    #[arg(long, default_value_t = 200_000)]
    lookups: u64,
    /// Sessions a second in the mix; each is created, found once and deleted.
    #[arg(long, default_value_t = 9_000)]
    rate: u64,
    /// Seconds of the mix.
    #[arg(long, default_value_t = 10)]
    seconds: u64,
    /// The directory holds the records already.
    #[arg(long)]
    preloaded: bool,
    /// Leave the data there.
    #[arg(long)]
    keep: bool,
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), store::Error> {
    let arguments = Arguments::parse();
    let mut say = |line: String| {
        use std::io::Write as _;
        // Nobody reads any more: nothing to do about it.
        let _ = writeln!(std::io::stdout(), "{line}");
    };
    let config = Config {
        embedded: EmbeddedConfig {
            directory: arguments.directory.clone(),
            durability: if arguments.os {
                Durability::Os
            } else {
                Durability::Fsync
            },
            segment: ByteSize::mib(arguments.segment),
            group_interval: Period(Duration::from_micros(arguments.group_interval)),
            ..EmbeddedConfig::default()
        },
        ..Config::default()
    };
    let meter = Meter::start();
    let store = Store::open(&config, &[TableDef::of::<Binding>()]).await?;
    say(format!("open: {:.2} s", meter.elapsed().as_secs_f64()));
    let table = store.table::<Binding>()?;
    if !arguments.preloaded {
        let meter = Meter::start();
        preload(&store, &table, &arguments).await?;
        say(meter.report("preload", arguments.records));
    }
    let on_disk = |say: &mut dyn FnMut(String)| {
        let (bytes, stats) = (disk(&arguments.directory), store.stats());
        say(format!(
            "disk {} MB, {} bytes a record ({} MB current, {} files, {} compactions of {} MB); indexes {} MB, \
             {} bytes a record; {:.1} batches a group, {:.0} us a group commit",
            bytes >> 20,
            bytes / arguments.records.max(1),
            stats.live_bytes >> 20,
            stats.segments,
            stats.compactions,
            stats.compacted_bytes >> 20,
            stats.index_bytes >> 20,
            stats.index_bytes as u64 / arguments.records.max(1),
            stats.batches as f64 / stats.groups.max(1) as f64,
            stats.commit_time.as_secs_f64() * 1e6 / stats.groups.max(1) as f64,
        ));
    };
    on_disk(&mut say);
    for pass in ["first", "second"] {
        lookups(&table, &arguments, pass, 0, &mut say).await?;
    }
    mix_of_sessions(&store, &table, &arguments, &mut say).await?;
    on_disk(&mut say);
    drop(table);
    let meter = Meter::start();
    store.close().await;
    say(format!("close: {:.2} s", meter.elapsed().as_secs_f64()));
    let meter = Meter::start();
    let store = Store::open(&config, &[TableDef::of::<Binding>()]).await?;
    let table = store.table::<Binding>()?;
    let found = table.get(&Binding::id(arguments.records / 2)).await?.is_some();
    say(format!(
        "open again and read: {:.2} s, found {found}",
        meter.elapsed().as_secs_f64()
    ));
    lookups(
        &table,
        &arguments,
        "after restart",
        arguments.rate * arguments.seconds,
        &mut say,
    )
    .await?;
    drop(table);
    store.close().await;
    if !arguments.keep {
        let _ = std::fs::remove_dir_all(&arguments.directory);
    }
    Ok(())
}

async fn preload(store: &Store, table: &Table<Binding>, arguments: &Arguments) -> Result<(), store::Error> {
    let mut waiting: VecDeque<Receipt> = VecDeque::with_capacity(arguments.in_flight);
    for number in 0..arguments.records {
        if waiting.len() >= arguments.in_flight
            && let Some(receipt) = waiting.pop_front()
        {
            receipt.await?;
        }
        let mut batch = Batch::default();
        batch.insert(table, &Binding::new(number));
        waiting.push_back(store.commit(batch));
    }
    for receipt in waiting {
        receipt.await?;
    }
    Ok(())
}

async fn lookups(
    table: &Table<Binding>,
    arguments: &Arguments,
    pass: &str,
    deleted: u64,
    say: &mut impl FnMut(String),
) -> Result<(), store::Error> {
    // The mix has deleted the first ones.
    let pick = |turn: u64| deleted + mix(turn) % arguments.records.saturating_sub(deleted).max(1);
    let mut missing = 0u64;
    let meter = Meter::start();
    for turn in 0..arguments.lookups {
        missing += u64::from(table.get(&Binding::id(pick(turn))).await?.is_none());
    }
    say(meter.report(&format!("get by key, {pass}"), arguments.lookups));
    let meter = Meter::start();
    for turn in 0..arguments.lookups {
        let found = table
            .find(Binding::IPV4, &Binding::ipv4(pick(turn + 7)), 4)
            .await?;
        missing += u64::from(found.is_empty());
    }
    say(meter.report(&format!("find by address, {pass}"), arguments.lookups));
    let meter = Meter::start();
    for turn in 0..arguments.lookups {
        let found = table
            .find(Binding::SUPI, Binding::supi(pick(turn + 13)).as_bytes(), 4)
            .await?;
        missing += u64::from(found.is_empty());
    }
    say(meter.report(&format!("find by SUPI (2 each), {pass}"), arguments.lookups));
    let meter = Meter::start();
    for turn in 0..arguments.lookups {
        missing += u64::from(
            table
                .get(&Binding::id(arguments.records * 2 + 1_000_000_000 + turn))
                .await?
                .is_some(),
        );
    }
    say(meter.report(&format!("get of absent keys, {pass}"), arguments.lookups));
    if missing > 0 {
        say(format!("WRONG: {missing} lookups had the wrong answer"));
    }
    Ok(())
}

/// Creates, finds and deletes sessions at a rate, as a BSF does for each session of the guide's mix.
async fn mix_of_sessions(
    store: &Store,
    table: &Table<Binding>,
    arguments: &Arguments,
    say: &mut impl FnMut(String),
) -> Result<(), store::Error> {
    let total = arguments.rate * arguments.seconds;
    if total == 0 {
        return Ok(());
    }
    let mut latency = Histogram::<u64>::new(3).map_err(|error| store::Error::Invalid(error.to_string()))?;
    let mut waiting: VecDeque<(Instant, Receipt)> = VecDeque::new();
    let meter = Meter::start();
    let begun = Instant::now();
    let mut created = 0;
    while created < total {
        let due = (begun.elapsed().as_secs_f64() * arguments.rate as f64) as u64;
        for turn in created..due.min(total) {
            let mut create = Batch::default();
            create.insert(table, &Binding::new(arguments.records + turn));
            waiting.push_back((Instant::now(), store.commit(create)));
            table
                .find(Binding::IPV4, &Binding::ipv4(mix(turn) % arguments.records), 4)
                .await?;
            let mut delete = Batch::default();
            delete.delete(table, &Binding::id(turn), Condition::Always);
            waiting.push_back((Instant::now(), store.commit(delete)));
        }
        created = due.min(total).max(created);
        while let Some((asked, mut receipt)) = waiting.pop_front() {
            tokio::select! {
                biased;
                answer = &mut receipt => {
                    answer?;
                    // A value out of the histogram's range would be hours.
                    let _ = latency.record(asked.elapsed().as_micros() as u64);
                }
                () = tokio::time::sleep(Duration::from_micros(500)) => {
                    waiting.push_front((asked, receipt));
                    break;
                }
            }
        }
    }
    for (_, receipt) in waiting {
        receipt.await?;
    }
    say(meter.report("mix: create, find, delete", total));
    say(format!(
        "  commit latency us: p50 {} p99 {} p99.9 {} max {}",
        latency.value_at_quantile(0.5),
        latency.value_at_quantile(0.99),
        latency.value_at_quantile(0.999),
        latency.max()
    ));
    Ok(())
}
