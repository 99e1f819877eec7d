//! `kill -9` under load: every binding whose registration, change or removal was acknowledged is afterwards as it
//! was acknowledged, found by each of its keys, and none is half-written. More rounds: `BSF_CRASH_ROUNDS=100`.

use std::path::Path;
use std::time::{Duration, Instant};

use bsf::Config;
use bsf::repository::Repository;
use http::{Method, StatusCode};
use rand::Rng as _;
use settings::ByteSize;

use crate::churn::{COLLECTION, Churn, Life, Lives, Stage, by_address, members, settle};
use crate::process::Process;
use crate::support::{client, config, local, request, send};

const ROUNDS: &str = "BSF_CRASH_ROUNDS";
/// PCFs at the same time.
const PCFS: usize = 32;

/// Files of the log so small that kills also meet new files and compactions.
fn small(directory: &Path) -> Config {
    let mut config = config(directory);
    config.workers = 2;
    config.store.max_batch_bytes = ByteSize::kib(64);
    config.store.embedded.segment = ByteSize::kib(256);
    config
}

#[test]
fn no_acknowledged_binding_is_lost_when_the_process_is_killed() {
    let directory = tempfile::tempdir().unwrap();
    let config = small(directory.path());
    let rounds: u32 = std::env::var(ROUNDS)
        .ok()
        .and_then(|rounds| rounds.parse().ok())
        .unwrap_or(10);
    let (mut all, mut slowest) = (Lives::new(), Duration::ZERO);
    for round in 0..rounds {
        let when = format!("round {round}");
        let begun = Instant::now();
        let bsf = Process::start(&config);
        slowest = slowest.max(begun.elapsed());
        let lives = under_load(bsf, all.last_key_value().map_or(1, |(last, _)| last + 1));
        all.extend(lives.clone());
        local(async {
            let repository = Repository::open(&config.store, 16).await.unwrap();
            settle(&repository, &mut all, &when).await;
            repository.store().clone().close().await;
            drop(repository);
            over_the_wire(&Process::start(&config), &lives, &when).await;
        });
    }
    let reached = |life: &&Life| life.acknowledged > Stage::Nothing;
    let acknowledged = all.values().filter(reached).count();
    eprintln!("{rounds} kills, {acknowledged} bindings acknowledged; ready again after {slowest:?} at most");
    assert!(
        acknowledged > 5 * rounds as usize,
        "{acknowledged} bindings in all"
    );
}

/// Lets PCFs work with a BSF until it is killed, at a moment that chance chooses.
fn under_load(bsf: Process, first: u64) -> Lives {
    local(async {
        let churn = Churn::default();
        churn.next.set(first);
        let clients: Vec<_> = (0..4).map(|_| client()).collect();
        let pcfs: Vec<_> = (0..PCFS)
            .map(|pcf| {
                churn
                    .clone()
                    .pcf(clients[pcf % clients.len()].clone(), bsf.origin.clone())
            })
            .map(tokio::task::spawn_local)
            .collect();
        // The time of the kill counts from the first that was done, so that each round has some.
        churn.goes_on(1).await;
        tokio::time::sleep(Duration::from_millis(rand::rng().random_range(5..600))).await;
        drop(bsf);
        for pcf in pcfs {
            pcf.await.unwrap();
        }
        assert_eq!(churn.errors.get(), 0);
        churn.lives.take()
    })
}

/// What the next process answers of bindings that nothing was in doubt of.
async fn over_the_wire(bsf: &Process, lives: &Lives, when: &str) {
    let client = client();
    let ask = async |method, path: &str| {
        send(&client, &bsf.origin, request(method, path, "", ""))
            .await
            .unwrap()
    };
    for (number, life) in lives.iter().filter(|(_, life)| life.asked.is_none()) {
        for (stage, changed) in [(Stage::Registered, false), (Stage::Changed, true)] {
            let value = members(*number, changed);
            let got = ask(Method::GET, &by_address(&value)).await;
            if life.acknowledged == stage {
                assert_eq!(
                    (got.status, got.json),
                    (StatusCode::OK, value),
                    "{when}: binding {number}"
                );
            } else {
                assert_eq!(
                    got.status,
                    StatusCode::NO_CONTENT,
                    "{when}: binding {number} at {life:?}"
                );
            }
        }
        if let (Stage::Removed, Some(id)) = (life.acknowledged, &life.id) {
            let got = ask(Method::DELETE, &format!("{COLLECTION}/{id}")).await;
            assert_eq!(got.status, StatusCode::NOT_FOUND, "{when}: binding {number}");
        }
    }
}
