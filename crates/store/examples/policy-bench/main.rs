//! Measures the store with policy sessions: JSON of some 12 KB under seven keys, some of them updated fifteen times.
//!
//! ```sh
//! cargo run --release -p store --example policy-bench -- --sessions 200000 --directory /tmp/bench
//! ```
//!
//! Phases: making the values alone (subtract its CPU from the others), inserts, updates (read, change one rule, write on the
//! condition of the version), lookups by each index, close, open with the checkpoint, open without it.

#[path = "../store-bench/meter.rs"]
mod meter;
mod session;

use std::path::PathBuf;
use std::time::Duration;

use clap::Parser;
use futures_util::StreamExt as _;
use futures_util::stream;
use meter::{Meter, disk};
use session::{KEYS, Policy};
use settings::{ByteSize, Period};
use store::{Batch, Condition, Config, EmbeddedConfig, Error, Index, Store, Table, TableDef};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

#[derive(Parser)]
struct Arguments {
    /// Sessions.
    #[arg(long, default_value_t = 200_000)]
    sessions: u64,
    /// Rules of a session, some 360 bytes each.
    #[arg(long, default_value_t = 33)]
    rules: u64,
    /// Of how many sessions one is updated.
    #[arg(long, default_value_t = 10)]
    one_in: u64,
    /// Updates of each of those.
    #[arg(long, default_value_t = 15)]
    updates: u64,
    /// Writes in flight at the same time.
    #[arg(long, default_value_t = 256)]
    in_flight: usize,
    /// Values larger than this many bytes are compressed; 0: none.
    #[arg(long, default_value_t = 1_024)]
    compress_above: u64,
    /// Lookups by each index.
    #[arg(long, default_value_t = 20_000)]
    lookups: u64,
    /// Where the data goes; removed at the end.
    #[arg(long, default_value = "policy-bench.data")]
    directory: PathBuf,
}

fn say(line: &str) {
    use std::io::Write as _;
    // The reader is gone: nothing to do about it.
    let _ = writeln!(std::io::stdout(), "{line}");
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Error> {
    let arguments = Arguments::parse();
    let config = Config {
        compress_above: ByteSize(arguments.compress_above),
        embedded: EmbeddedConfig {
            directory: arguments.directory.clone(),
            group_interval: Period(Duration::from_millis(1)),
            ..EmbeddedConfig::default()
        },
        ..Config::default()
    };
    let sessions = arguments.sessions;
    let meter = Meter::start();
    let bytes: usize = (0..sessions / 10)
        .map(|number| Policy::new(number, 0, arguments.rules).value.len())
        .sum();
    say(&meter.report("values alone, a tenth", sessions / 10));
    say(&format!(
        "a value has {} bytes",
        bytes as u64 / (sessions / 10).max(1)
    ));

    let (store, table) = open(&config, "open, empty").await?;
    let meter = Meter::start();
    each(&arguments, 0..sessions, async |number| {
        put(
            &table,
            &Policy::new(number, 0, arguments.rules),
            Condition::Absent,
        )
        .await
    })
    .await?;
    say(&meter.report("inserts", sessions));
    on_disk(&store, &arguments);

    let meter = Meter::start();
    let updated = sessions.div_ceil(arguments.one_in);
    for change in 1..=arguments.updates {
        each(&arguments, 0..updated, async |place| {
            update(&table, place * arguments.one_in, change, arguments.rules).await
        })
        .await?;
    }
    say(&meter.report("updates", updated * arguments.updates));
    on_disk(&store, &arguments);
    lookups(&table, &arguments).await?;
    drop(table);
    let meter = Meter::start();
    store.close().await;
    say(&format!("close: {:.2} s", meter.elapsed().as_secs_f64()));

    let (store, table) = open(&config, "open, with the checkpoint").await?;
    check(&table, &arguments).await?;
    drop(table);
    store.close().await;
    let _ = std::fs::remove_file(arguments.directory.join("store.index"));
    let (store, table) = open(&config, "open, without it").await?;
    check(&table, &arguments).await?;
    drop(table);
    store.close().await;
    std::fs::remove_dir_all(&arguments.directory).map_err(|error| Error::Engine(error.to_string()))
}

async fn open(config: &Config, what: &str) -> Result<(Store, Table<Policy>), Error> {
    let meter = Meter::start();
    let store = Store::open(config, &[TableDef::of::<Policy>()]).await?;
    say(&meter.report(what, 1));
    let table = store.table()?;
    Ok((store, table))
}

/// Does something with each number, `--in-flight` at a time.
async fn each(
    arguments: &Arguments,
    numbers: std::ops::Range<u64>,
    work: impl AsyncFn(u64) -> Result<(), Error>,
) -> Result<(), Error> {
    let mut running = stream::iter(numbers)
        .map(|number| work(number))
        .buffer_unordered(arguments.in_flight);
    while let Some(done) = running.next().await {
        done?;
    }
    Ok(())
}

async fn put(table: &Table<Policy>, policy: &Policy, condition: Condition) -> Result<(), Error> {
    let mut batch = Batch::default();
    batch.put(table, policy, condition);
    table.store().commit(batch).await.map(drop)
}

async fn update(table: &Table<Policy>, number: u64, change: u64, rules: u64) -> Result<(), Error> {
    let stored = table.get(&Policy::id(number)).await?;
    let stored = stored.ok_or_else(|| Error::Engine(format!("session {number} is lost")))?;
    let changed = Policy::new(number, change, rules);
    put(table, &changed, Condition::Version(stored.version)).await
}

async fn lookups(table: &Table<Policy>, arguments: &Arguments) -> Result<(), Error> {
    let meter = Meter::start();
    for place in 0..arguments.lookups {
        // Far from one another.
        let number = place.wrapping_mul(2_654_435_761) % arguments.sessions;
        for index in 0..KEYS {
            let key = Policy::index_key(number, index);
            let found = table.find(Index(index), key.as_bytes(), 2).await?;
            if found.len() != 1 || found[0].record.number != number {
                return Err(Error::Engine(format!(
                    "session {number} is not under its key {index}"
                )));
            }
        }
    }
    say(&meter.report("lookups by an index", arguments.lookups * u64::from(KEYS)));
    Ok(())
}

/// Whether sessions are what they were made to be.
async fn check(table: &Table<Policy>, arguments: &Arguments) -> Result<(), Error> {
    for place in 0..1_000 {
        let number = place * 7_919 % arguments.sessions;
        let changes = if number.is_multiple_of(arguments.one_in) {
            arguments.updates
        } else {
            0
        };
        let stored = table.get(&Policy::id(number)).await?;
        if stored.is_none_or(|stored| stored.record != Policy::new(number, changes, arguments.rules)) {
            return Err(Error::Engine(format!("session {number} is not what was written")));
        }
    }
    Ok(())
}

fn on_disk(store: &Store, arguments: &Arguments) {
    let (bytes, stats) = (disk(&arguments.directory), store.stats());
    let sessions = arguments.sessions.max(1);
    say(&format!(
        "disk {} MB, {} bytes a session ({} bytes current); {} compactions of {} MB; indexes {} MB, {} bytes a session",
        bytes >> 20,
        bytes / sessions,
        stats.live_bytes / sessions,
        stats.compactions,
        stats.compacted_bytes >> 20,
        stats.index_bytes >> 20,
        stats.index_bytes as u64 / sessions,
    ));
}
