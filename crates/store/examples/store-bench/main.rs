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
use futures_util::stream::FuturesUnordered;
use futures_util::{FutureExt as _, StreamExt as _};
use hdrhistogram::Histogram;
use meter::{Meter, disk};
use settings::{ByteSize, HostPort, Period, Secret};
use store::{
    Batch, Condition, Config, Durability, EmbeddedConfig, EngineKind, MariadbConfig, Receipt, Reply, Store,
    Stored, Table, TableDef,
};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

#[derive(Parser)]
struct Arguments {
    /// Records to preload.
    #[arg(long, default_value_t = 1_000_000)]
    records: u64,
    /// Where the data goes; removed at the end unless `--keep`.
    #[arg(long, default_value = "store-bench.data")]
    directory: PathBuf,
    /// Nodes of a database (user, password and database `signalbox`) instead of the embedded engine.
    #[arg(long, value_delimiter = ',')]
    mariadb: Vec<HostPort>,
    /// Connections that write to the database.
    #[arg(long, default_value_t = 2)]
    writers: usize,
    /// Bytes of a value, at least: 12288 for a policy session.
    #[arg(long, default_value_t = 0)]
    value: usize,
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
    binding::LARGE.store(arguments.value, std::sync::atomic::Ordering::Relaxed);
    let mut say = |line: String| {
        use std::io::Write as _;
        // The reader is gone: nothing to do about it.
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
    let config = if arguments.mariadb.is_empty() {
        config
    } else {
        database(&arguments, config)?
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

/// The same on a database.
fn database(arguments: &Arguments, config: Config) -> Result<Config, store::Error> {
    let password = std::env::temp_dir().join(format!("store-bench-{}", std::process::id()));
    std::fs::write(&password, "signalbox").map_err(|error| store::Error::Open(error.to_string()))?;
    let mariadb = MariadbConfig {
        nodes: arguments.mariadb.clone(),
        password: Some(Secret::File(password)),
        writers: arguments.writers,
        ..MariadbConfig::default()
    };
    Ok(Config {
        engine: EngineKind::Mariadb,
        max_batch_bytes: ByteSize::mib(4),
        mariadb,
        ..config
    })
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
    // One after the other where an answer is there at once, many at a time where it takes a while.
    let at_once = if arguments.mariadb.is_empty() { 1 } else { 64 };
    let kinds: [(&str, Ask<'_>); 4] = [
        (
            "get by key",
            Box::new(|turn| Lookup::get(table.get(&Binding::id(pick(turn))), true)),
        ),
        (
            "find by address",
            Box::new(|turn| Lookup::find(table.find(Binding::IPV4, &Binding::ipv4(pick(turn + 7)), 4))),
        ),
        (
            "find by SUPI (2 each)",
            Box::new(|turn| {
                Lookup::find(table.find(Binding::SUPI, Binding::supi(pick(turn + 13)).as_bytes(), 4))
            }),
        ),
        (
            "get of absent keys",
            Box::new(|turn| {
                Lookup::get(
                    table.get(&Binding::id(arguments.records * 2 + 1_000_000_000 + turn)),
                    false,
                )
            }),
        ),
    ];
    let mut missing = 0u64;
    for (name, ask) in &kinds {
        let meter = Meter::start();
        let mut answers = futures_util::stream::iter(0..arguments.lookups)
            .map(|turn| ask(turn).right())
            .buffer_unordered(at_once);
        while let Some(right) = answers.next().await {
            missing += u64::from(!right?);
        }
        say(meter.report(&format!("{name}, {pass}"), arguments.lookups));
    }
    if missing > 0 {
        say(format!("WRONG: {missing} lookups had the wrong answer"));
    }
    Ok(())
}

/// Asks the question of a turn.
type Ask<'a> = Box<dyn Fn(u64) -> Lookup + 'a>;

/// A question and what is expected.
enum Lookup {
    Get(Reply<Option<Stored<Binding>>>, bool),
    Find(Reply<Vec<Stored<Binding>>>),
}

impl Lookup {
    fn get(reply: Reply<Option<Stored<Binding>>>, there: bool) -> Lookup {
        Lookup::Get(reply, there)
    }

    fn find(reply: Reply<Vec<Stored<Binding>>>) -> Lookup {
        Lookup::Find(reply)
    }

    async fn right(self) -> Result<bool, store::Error> {
        Ok(match self {
            Lookup::Get(reply, there) => reply.await?.is_some() == there,
            Lookup::Find(reply) => !reply.await?.is_empty(),
        })
    }
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
    let mut finds = FuturesUnordered::new();
    let meter = Meter::start();
    let begun = Instant::now();
    let mut created = 0;
    while created < total {
        let due = (begun.elapsed().as_secs_f64() * arguments.rate as f64) as u64;
        for turn in created..due.min(total) {
            let mut create = Batch::default();
            create.insert(table, &Binding::new(arguments.records + turn));
            waiting.push_back((Instant::now(), store.commit(create)));
            // The embedded engine has answered already, a database answers later.
            match table
                .find(Binding::IPV4, &Binding::ipv4(mix(turn) % arguments.records), 4)
                .try_now()
            {
                Ok(found) => drop(found?),
                Err(later) => finds.push(later),
            }
            let mut delete = Batch::default();
            delete.delete(table, &Binding::id(turn), Condition::Always);
            waiting.push_back((Instant::now(), store.commit(delete)));
        }
        created = due.min(total).max(created);
        while let Some(Some(found)) = finds.next().now_or_never() {
            found?;
        }
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
    while let Some(found) = finds.next().await {
        found?;
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
