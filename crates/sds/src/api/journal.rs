//! `/journal`: transactions behind an offset, as lines; a poll waits for the next one.

use std::time::{Duration, Instant};

use function::records::store_problem;
use function::sbi::Call;
use http::StatusCode;
use sbi::Response;
use sbi::name::CONTENT_TYPE;
use sbi::problem::{Cause, Problem};

use super::export::NDJSON;
use super::{Answer, HEAD, ID, number, query_of, stopped, wrong};
use crate::events::Event;
use crate::journal::Known;
use crate::outside::outside;
use crate::repository::PAGE;
use crate::tail::line;
use crate::worker::Worker;

/// Transactions of a page, without `limit` and at most, and the bytes of a page.
const USUAL: u64 = 1_000;
const MOST: u64 = 10_000;
const PAGE_BYTES: usize = 1_024 * 1_024;
/// Transactions that are read from the store at first.
const FIRST_ENTRIES: usize = 8;
/// Seconds that a poll waits at most.
const MOST_SECONDS: u64 = 30;
/// Bytes of the name of a database processor.
const MOST_NAME: usize = 64;

/// A page of the journal.
pub(crate) async fn read(call: Call<Worker>) -> Answer {
    let (worker, shared) = (&*call.worker, call.worker.shared());
    let [after, limit, wait, dp] = query_of(&call.request, ["after", "limit", "wait", "dp"])?;
    let after = after.ok_or_else(|| wrong("query after: missing; expected an offset"))?;
    let after = number("after", Some(&after), 0, u64::MAX - 1)?;
    let limit = number("limit", limit.as_deref(), USUAL, MOST)?.max(1) as usize;
    let wait = Duration::from_secs(number("wait", wait.as_deref(), 0, MOST_SECONDS)?);
    worker.count(Event::Poll);
    if let Some(dp) = dp {
        let fits = (1..=MOST_NAME).contains(&dp.len()) && dp.bytes().all(|byte| byte.is_ascii_graphic());
        if !fits {
            return Err(wrong("query dp: expected 1 to 64 visible ASCII characters"));
        }
        shared.pollers.polled(&dp, after, Instant::now());
    }
    let mut known = shared.known.clone();
    if after > known.borrow().head.offset {
        // The processor may come from a server that is ahead of this one.
        shared.journal.refresh().await;
    }
    let deadline = tokio::time::Instant::now() + wait;
    loop {
        let now = known.borrow_and_update().clone();
        if let Some(reason) = &now.stopped {
            return Err(stopped(reason));
        }
        if after + 1 < now.head.first {
            return Err(removed(after, &now));
        }
        if after > now.head.offset {
            // A checkpoint of this server would undo what the processor has: the head shows that another one is needed.
            return Ok(answer(Vec::new(), &now));
        }
        if after < now.head.offset {
            return page(worker, after, limit, &now).await;
        }
        if wait.is_zero() || !changes(worker, &mut known, deadline).await? {
            return Ok(answer(Vec::new(), &now));
        }
    }
}

/// Waits for the next transaction; false where none comes in time, or the server stops.
async fn changes(
    worker: &Worker,
    known: &mut tokio::sync::watch::Receiver<Known>,
    deadline: tokio::time::Instant,
) -> Result<bool, Problem> {
    let shared = worker.shared();
    let _place = shared
        .pollers
        .wait()
        .ok_or_else(|| Problem::new(Cause::NfCongestion).detail("too many polls wait; try later"))?;
    // The control thread writes.
    Ok(outside(async {
        tokio::select! {
            changed = known.changed() => changed.is_ok(),
            () = tokio::time::sleep_until(deadline) => false,
            () = shared.shutdown.fired() => false,
        }
    })
    .await)
}

async fn page(worker: &Worker, after: u64, limit: usize, now: &Known) -> Answer {
    if let Some(lines) = worker.shared().tail.after(after, limit, PAGE_BYTES) {
        worker.count(Event::Page);
        return Ok(answer(lines, now));
    }
    let last = now.head.offset.min(after.saturating_add(limit as u64));
    let lines = stored(worker, after, last).await?;
    if lines.is_empty() {
        // They were removed meanwhile.
        return Err(removed(after, now));
    }
    worker.count(Event::Page);
    Ok(answer(lines, now))
}

/// Lines behind an offset up to another one, from the store. A transaction may have a hundred kilobytes: few are read at
/// first, and more where those did not fill the page.
async fn stored(worker: &Worker, after: u64, last: u64) -> Result<Vec<u8>, Problem> {
    let (mut lines, mut offset, mut count) = (Vec::new(), after, FIRST_ENTRIES);
    while offset < last {
        let entries = worker.shared().repository.entries(offset + 1, count);
        let entries = entries.await.map_err(store_problem)?;
        if entries.is_empty() {
            break;
        }
        for entry in &entries {
            let line = line(entry.offset, &entry.changes);
            let fits = lines.is_empty() || lines.len() + line.len() <= PAGE_BYTES;
            if entry.offset != offset + 1 || offset == last || !fits {
                return Ok(lines);
            }
            lines.extend_from_slice(&line);
            offset = entry.offset;
        }
        count = (count * 2).min(PAGE);
    }
    Ok(lines)
}

fn answer(lines: Vec<u8>, now: &Known) -> Response {
    let mut response = Response::ok(lines).with(CONTENT_TYPE, NDJSON);
    let headers = response.headers_mut();
    headers.set_number(HEAD, now.head.offset);
    headers.set_printed(ID, &now.head.id);
    response
}

/// The journal does not lead from an offset to the newest one: the processor takes a checkpoint.
fn removed(after: u64, now: &Known) -> Problem {
    let (first, last) = (now.head.first, now.head.offset);
    let detail =
        format!("the journal has transactions {first} to {last}, not those behind {after}; take /checkpoint");
    Problem::of_status(StatusCode::GONE).detail(detail)
}
