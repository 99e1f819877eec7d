//! `kill -9` in the middle of writes: what was acknowledged is there, and no transaction is there in part.

use std::cell::Cell;
use std::rc::Rc;

use http::Method;
use serde_json::{Value, json};
use settings::Period;

use crate::process::Process;
use crate::support::{Api, config, imsi, local, until};

/// A transaction of one writer: the same destinations for three records, two of them its own.
fn transaction(writer: u64, step: u64) -> Value {
    let destinations = format!("hss{writer}-{step}");
    json!([
        {"imsi": imsi(writer * 1_000_000), "destinations": destinations},
        {"name": format!("writer{writer}@x"), "destinations": destinations},
        {"imsi": imsi(writer * 1_000_000 + 1 + step), "destinations": destinations},
    ])
}

/// Writes one transaction after the other until the server does not answer; all before the one that it returns are
/// acknowledged.
async fn writes(api: Api, writer: u64, from: u64, acknowledged: Rc<Cell<u64>>) -> u64 {
    let mut step = from;
    loop {
        let body = transaction(writer, step).to_string();
        let got = api
            .try_ask(Method::POST, "/transactions", "application/json", body)
            .await;
        match got.map(|got| got.status()) {
            Some(200) => {
                acknowledged.set(acknowledged.get() + 1);
                step += 1;
            }
            // Nothing was written.
            Some(status) => assert_eq!(status, 503),
            None => return step,
        }
    }
}

#[test]
fn acknowledged_transactions_survive_whole() {
    const WRITERS: u64 = 4;
    local(async {
        let directory = tempfile::tempdir().unwrap();
        let mut config = config(directory.path());
        // Saves and removals in the middle as well.
        config.journal.checkpoint = Period::from_millis(20);
        config.journal.keep = 5;
        let mut next = [0; WRITERS as usize];
        for _ in 0..4 {
            let sds = Process::start(&config);
            let acknowledged = Rc::new(Cell::new(0));
            let writers: Vec<_> = (0..WRITERS)
                .map(|writer| {
                    let from = next[writer as usize];
                    tokio::task::spawn_local(writes(sds.api.clone(), writer, from, acknowledged.clone()))
                })
                .collect();
            until("some transactions", async || acknowledged.get() > 60).await;
            sds.kill();
            for (writer, task) in writers.into_iter().enumerate() {
                next[writer] = task.await.unwrap();
            }
            let sds = Process::start(&config);
            for (writer, end) in (0..).zip(&next) {
                is_whole(&sds.api, writer, *end).await;
            }
        }
    });
}

/// All transactions before `end` are there; the one at `end` is there as a whole or not at all.
async fn is_whole(api: &Api, writer: u64, end: u64) {
    let last = api.find(&format!("name/writer{writer}@x")).await;
    let of_imsi = api.find(&format!("imsi/{}", imsi(writer * 1_000_000))).await;
    assert_eq!(last, of_imsi);
    for step in (0..end).rev().take(20) {
        let found = api
            .find(&format!("imsi/{}", imsi(writer * 1_000_000 + 1 + step)))
            .await;
        assert_eq!(
            found,
            Some(format!("hss{writer}-{step}")),
            "step {step} was acknowledged"
        );
    }
    let unanswered = api
        .find(&format!("imsi/{}", imsi(writer * 1_000_000 + 1 + end)))
        .await;
    let expected = match unanswered {
        Some(_) => Some(end),
        None => end.checked_sub(1),
    };
    assert_eq!(last, expected.map(|step| format!("hss{writer}-{step}")));
}
