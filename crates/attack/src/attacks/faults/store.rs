//! Acknowledged writes survive every fault of the process and of its files.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::time::Duration;

use anyhow::Context as _;
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

use super::{path, register, restart};
use crate::answer::{Ask, client, send};
use crate::attacks::admin;
use crate::field::Field;
use crate::measure;

/// Registers until the time is over or `count` requests were sent; returns the acknowledged ones.
async fn storm(field: &Field, from: u32, count: u32, time: Duration) -> anyhow::Result<BTreeSet<u32>> {
    let (client, origin) = (client("AMF-storm"), field.origin()?);
    let mut open = tokio::task::JoinSet::new();
    let (end, mut kept, mut number) = (tokio::time::Instant::now() + time, BTreeSet::new(), from);
    let take = |done: Option<Result<(u32, u16), _>>, kept: &mut BTreeSet<u32>| {
        if let Some(Ok::<_, tokio::task::JoinError>((number, 201))) = done {
            kept.insert(number);
        }
    };
    while tokio::time::Instant::now() < end && number < from + count {
        let (client, origin, ask) = (
            client.clone(),
            origin.clone(),
            register(number).within(Duration::from_secs(3)),
        );
        let this = number;
        open.spawn_local(async move { (this, send(&client, &origin, &ask).await.status) });
        number += 1;
        while open.len() >= 20 {
            take(open.join_next().await, &mut kept);
        }
    }
    while let Some(done) = open.join_next().await {
        take(Some(done), &mut kept);
    }
    Ok(kept)
}

/// How many of these are missing.
async fn lost(field: &Field, kept: &BTreeSet<u32>) -> usize {
    let client = client("OAM");
    let mut lost = 0;
    for number in kept {
        lost += usize::from(field.ask_as(&client, &Ask::get(path(*number))).await.status != 200);
    }
    lost
}

pub(super) async fn kill(field: Rc<Field>) -> anyhow::Result<()> {
    let mut kept = BTreeSet::new();
    for round in 0..field.of(6, 2) {
        let pid = field.world.borrow().process.pid().to_string();
        let killer = async {
            tokio::time::sleep(Duration::from_millis(field.of(1_500, 500))).await;
            // SIGKILL while requests are in flight.
            let _ = tokio::process::Command::new("kill")
                .args(["-KILL", &pid])
                .status()
                .await;
        };
        let most = Duration::from_millis(field.of(2_000, 700));
        let (storm, ()) = tokio::join!(storm(&field, 0x1000 + round * 100_000, 50_000, most), killer);
        kept.extend(storm?);
        restart(&field, "")?;
        let lost = lost(&field, &kept).await;
        field.check(
            lost == 0,
            format_args!("round {round}: {lost} of {} are lost", kept.len()),
        );
    }
    field.note(format_args!("{} registrations were acknowledged", kept.len()));
    Ok(())
}

pub(super) async fn full(field: Rc<Field>) -> anyhow::Result<()> {
    // 512-byte blocks: files of at most 1 MiB.
    restart(&field, "-f 2048")?;
    let log = field.world.borrow().process.log.clone();
    let before = measure::file_bytes(&log);
    let kept = storm(&field, 0x1000, field.of(20_000, 2_500), Duration::from_secs(10)).await?;
    let refused = field.ask(&register(1)).await;
    field.note(format_args!(
        "{} acknowledged, then {}",
        kept.len(),
        refused.text()
    ));
    field.check(
        refused.status >= 500,
        format_args!("a write that cannot be kept: {}", refused.text()),
    );
    let read = field.ask(&Ask::get(crate::stage::disc())).await;
    field.check(read.status == 200, format_args!("reading: {}", read.text()));
    let address = field.world.borrow().admin;
    let ready = admin::get_whole(address, "/readyz").await?;
    field.check(
        !ready.contains(" 200 "),
        "it reports ready while no write is possible",
    );
    let alarms = admin::get(address, "/alarms").await?;
    let text = alarms.to_lowercase();
    field.check(
        text.contains("store") || text.contains("disk"),
        "it raises no alarm of its store",
    );
    let grown = measure::file_bytes(&log).saturating_sub(before);
    field.check(
        grown < 64 << 10,
        format_args!("the log grew by {} KiB", grown >> 10),
    );
    restart(&field, "")?;
    let lost = lost(&field, &kept).await;
    field.check(lost == 0, format_args!("{lost} of {} are lost", kept.len()));
    let again = field.ask(&register(1)).await;
    field.check(
        again.status == 201,
        format_args!("a write when there is room: {}", again.text()),
    );
    Ok(())
}

/// A way to damage a store; false when there is nothing to damage so.
type Damage = fn(&[PathBuf], &mut StdRng) -> std::io::Result<bool>;

fn flip(path: &Path, at: u64) -> std::io::Result<bool> {
    let mut bytes = std::fs::read(path)?;
    let Some(byte) = usize::try_from(at).ok().and_then(|at| bytes.get_mut(at)) else {
        return Ok(false);
    };
    *byte ^= 4;
    std::fs::write(path, bytes)?;
    Ok(true)
}

const DAMAGES: &[(&str, Damage)] = &[
    (
        "a bit at the head of the newest file",
        |files, random| match files.last() {
            Some(newest) => flip(newest, random.random_range(0..8)),
            None => Ok(false),
        },
    ),
    ("a bit in the newest file", |files, random| match files.last() {
        Some(newest) => flip(newest, random.random_range(0..measure::file_bytes(newest).max(1))),
        None => Ok(false),
    }),
    ("a bit in an older file", |files, random| {
        match files.get(files.len() / 2) {
            Some(file) => flip(file, random.random_range(0..measure::file_bytes(file).max(1))),
            None => Ok(false),
        }
    }),
    ("a file missing from the middle", |files, _| {
        match files.get(files.len() / 2) {
            Some(file) => std::fs::remove_file(file).map(|()| true),
            None => Ok(false),
        }
    }),
    ("the newest file missing", |files, _| match files.last() {
        Some(file) => std::fs::remove_file(file).map(|()| true),
        None => Ok(false),
    }),
    ("an older file cut in half", |files, _| match files.first() {
        Some(file) => {
            let bytes = std::fs::read(file)?;
            std::fs::write(file, bytes.get(..bytes.len() / 2).unwrap_or_default()).map(|()| true)
        }
        None => Ok(false),
    }),
];

/// The files of a store that hold records: those of the newest kind by number, oldest first.
fn logs(folder: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let mut files: Vec<PathBuf> = std::fs::read_dir(folder)?
        .flatten()
        .map(|entry| entry.path())
        .filter(|path| path.is_file() && measure::file_bytes(path) > 1_024)
        .collect();
    files.sort();
    Ok(files)
}

fn copy(from: &Path, to: &Path) -> std::io::Result<()> {
    std::fs::create_dir_all(to)?;
    for entry in std::fs::read_dir(from)?.flatten() {
        let place = to.join(entry.file_name());
        if entry.path().is_dir() {
            copy(&entry.path(), &place)?;
        } else {
            std::fs::copy(entry.path(), place)?;
        }
    }
    Ok(())
}

pub(super) async fn damage(field: Rc<Field>) -> anyhow::Result<()> {
    let kept = storm(&field, 0x1000, field.of(2_000, 400), Duration::from_secs(20)).await?;
    let (store, safe) = {
        let mut world = field.world.borrow_mut();
        world.process.kill();
        let folder = world.folder.path();
        (folder.join("nrf-store"), folder.join("safe"))
    };
    copy(&store, &safe)?;
    let mut random = StdRng::seed_from_u64(29_510);
    for (what, damage) in DAMAGES {
        for _ in 0..field.of(4, 1) {
            std::fs::remove_dir_all(&store)?;
            copy(&safe, &store)?;
            let files = logs(&store)?;
            anyhow::ensure!(files.len() > 2, "the store has {} files only", files.len());
            if !damage(&files, &mut random).with_context(|| (*what).to_owned())? {
                continue;
            }
            match restart(&field, "") {
                // Refused: the message names the file.
                Err(refused) => {
                    let said = format!("{refused:#}");
                    let named = said.contains("nrf-store");
                    field.check(
                        named,
                        format_args!("{what}: refused without the file's name: {said:.300}"),
                    );
                }
                Ok(_) => {
                    let lost = lost(&field, &kept).await;
                    field.check(
                        lost == 0,
                        format_args!("{what}: it starts, and {lost} of {} are lost", kept.len()),
                    );
                }
            }
        }
    }
    std::fs::remove_dir_all(&store)?;
    copy(&safe, &store)?;
    restart(&field, "")?;
    let lost = lost(&field, &kept).await;
    field.check(
        lost == 0,
        format_args!("undamaged: {lost} of {} are lost", kept.len()),
    );
    Ok(())
}
