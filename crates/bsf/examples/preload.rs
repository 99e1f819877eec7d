//! Fills a store with bindings of PDU sessions: `preload --bindings 25000000 [--directory run/preload]`.
//!
//! Two sessions a subscriber, as operators have: one for data, one for voice. Prints bytes per binding on disk and in
//! memory, the rate, and how long lookups and a restart take. Pass `--keep` to leave the data for a BSF.

use std::collections::VecDeque;
use std::io::{ErrorKind, Write as _};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use bsf::binding::{BindingId, Document, PcfBinding, Query};
use bsf::repository::Repository;
use serde_json::json;
use store::Batch;

/// Bindings in one batch, and batches on their way at the same time.
const BATCH: u64 = 256;
const AHEAD: usize = 16;

struct Arguments {
    bindings: u64,
    directory: PathBuf,
    keep: bool,
}

fn arguments() -> Result<Arguments, String> {
    let mut parsed = Arguments {
        bindings: 1_000_000,
        directory: PathBuf::from("run/preload"),
        keep: false,
    };
    let mut given = std::env::args().skip(1);
    while let Some(argument) = given.next() {
        let mut value = || given.next().ok_or_else(|| format!("{argument} wants a value"));
        match argument.as_str() {
            "--bindings" => {
                parsed.bindings = value()?.parse().map_err(|error| format!("--bindings: {error}"))?;
            }
            "--directory" => parsed.directory = value()?.into(),
            "--keep" => parsed.keep = true,
            other => {
                return Err(format!(
                    "{other} is not known; --bindings N --directory DIR --keep are"
                ));
            }
        }
    }
    Ok(parsed)
}

/// The finaliser of splitmix64: a permutation, so identities do not collide.
fn mix(number: u64) -> u64 {
    let mut mixed = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

fn binding(number: u64) -> PcfBinding {
    let [.., a, b, c, d] = number.to_be_bytes();
    let (subscriber, pcf) = (number / 2, number % 16);
    let dnn = if number.is_multiple_of(2) {
        "internet"
    } else {
        "ims"
    };
    let value = json!({
        "supi": format!("imsi-00101{subscriber:010}"), "gpsi": format!("msisdn-1555{subscriber:09}"),
        "ipv4Addr": format!("{}.{b}.{c}.{d}", a.wrapping_add(10)), "dnn": dnn, "snssai": {"sst": 1, "sd": "000001"},
        "pcfFqdn": format!("pcf{pcf}.5gc.mnc001.mcc001.3gppnetwork.org"),
        "pcfDiamHost": format!("pcf{pcf}.epc.mnc001.mcc001.3gppnetwork.org"),
        "pcfDiamRealm": "epc.mnc001.mcc001.3gppnetwork.org",
        "pcfId": format!("6f1c7a52-0000-4000-8000-0000000000{pcf:02x}"),
        "pcfSetId": "set1.pcfset.5gc.mnc001.mcc001", "suppFeat": "7",
    });
    let mut id = [0; 16];
    id[..8].copy_from_slice(&mix(number).to_be_bytes());
    id[8..].copy_from_slice(&mix(number ^ 0x5bd1_e995).to_be_bytes());
    PcfBinding(Document::new(BindingId(id), value, true))
}

/// Resident memory that is not pages of files, in bytes.
fn anonymous_memory() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("RssAnon:"));
    let kib = line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok());
    kib.unwrap_or(0) * 1024
}

fn cpu() -> Duration {
    overload::cpu::read::process().unwrap_or_default()
}

async fn run(arguments: Arguments) -> Result<(), Box<dyn std::error::Error>> {
    let mut out = std::io::stdout();
    let mut config = store::Config::default();
    config.embedded.directory.clone_from(&arguments.directory);
    let repository = Repository::open(&config, 16).await?;
    let (begun, used) = (Instant::now(), cpu());
    let mut waiting = VecDeque::new();
    let mut number = 0;
    while number < arguments.bindings {
        let mut batch = Batch::default();
        for _ in 0..BATCH.min(arguments.bindings - number) {
            batch.insert(&repository.sessions, &binding(number));
            number += 1;
        }
        waiting.push_back(repository.store().commit(batch));
        if waiting.len() > AHEAD
            && let Some(receipt) = waiting.pop_front()
        {
            receipt.await?;
        }
    }
    for receipt in waiting {
        receipt.await?;
    }
    let (took, used) = (begun.elapsed(), cpu().saturating_sub(used));
    let stats = repository.store().stats();
    let each = |bytes: u64| bytes as f64 / arguments.bindings as f64;
    writeln!(
        out,
        "{number} bindings in {:.1} s: {:.0}/s, {:.1} us of CPU each",
        took.as_secs_f64(),
        number as f64 / took.as_secs_f64(),
        used.as_secs_f64() * 1e6 / number as f64
    )?;
    writeln!(
        out,
        "per binding: {:.0} bytes of record and keys, {:.0} on disk, {:.0} of indexes in memory, {:.0} resident",
        each(stats.live_bytes),
        each(stats.disk_bytes),
        each(stats.index_bytes as u64),
        each(anonymous_memory())
    )?;
    let (begun, before, asked) = (Instant::now(), cpu(), 200_000_u64.min(number));
    for turn in 0..asked {
        let wanted = mix(turn) % number;
        let query = Query {
            ipv4: binding(wanted)
                .0
                .text_of("ipv4Addr")
                .and_then(|text| text.parse().ok()),
            ..Query::default()
        };
        if repository.matching(&query).await?.is_empty() {
            return Err(format!("binding {wanted} is not found").into());
        }
    }
    let took = begun.elapsed().as_secs_f64() * 1e6 / asked as f64;
    let used = cpu().saturating_sub(before).as_secs_f64() * 1e6 / asked as f64;
    writeln!(
        out,
        "lookup by address, question included: {took:.1} us, {used:.1} us of CPU"
    )?;
    let store = repository.store().clone();
    drop(repository);
    store.close().await;
    for what in ["with the checkpoint", "without it"] {
        let (begun, used) = (Instant::now(), cpu());
        let repository = Repository::open(&config, 16).await?;
        writeln!(
            out,
            "restart to ready, {what}: {:.1} s, {:.1} s of CPU, {:.0} bytes resident per binding",
            begun.elapsed().as_secs_f64(),
            cpu().saturating_sub(used).as_secs_f64(),
            each(anonymous_memory())
        )?;
        let store = repository.store().clone();
        drop(repository);
        store.close().await;
        if what == "with the checkpoint" {
            // A start that has no checkpoint reads the whole log.
            std::fs::remove_file(arguments.directory.join("store.index"))
                .or_else(|error| (error.kind() == ErrorKind::NotFound).then_some(()).ok_or(error))?;
        }
    }
    if !arguments.keep {
        std::fs::remove_dir_all(&arguments.directory)?;
    }
    Ok(())
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments = arguments()?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()?;
    runtime.block_on(run(arguments))
}
