//! `GET /records`: records in order, page by page.

use bytes::Bytes;
use function::sbi::Call;
use numbers::{Key, Kind, MOST_DIGITS};
use sbi::Response;
use sbi::name::CONTENT_TYPE;
use sbi::problem::Problem;

use super::subscribers::line;
use super::{Answer, OFFSET, follows, number, query_of, unreadable, wrong};
use crate::events::Event;
use crate::subject::{NAME, Subject};
use crate::worker::Worker;

/// Media type of lines of JSON.
pub(super) const NDJSON: sbi::Value<'static> = sbi::Value::from_static("application/x-ndjson");
/// Records of a page, without `limit` and at most.
const USUAL: u64 = 1_000;
const MOST: u64 = 10_000;

/// A page of the records of a kind above `after`.
pub(crate) fn read(call: &Call<Worker>) -> Answer {
    let worker = &*call.worker;
    follows(worker)?;
    let [kind, after, limit] = query_of(&call.request, ["kind", "after", "limit"])?;
    let kind = kind.ok_or_else(|| wrong("query kind: missing; expected imei, imsi, msisdn or name"))?;
    let limit = number("limit", limit.as_deref(), USUAL, MOST)? as usize;
    worker.count(Event::Read);
    let (offset, page) = if kind == NAME {
        names(worker, after.as_deref(), limit)
    } else {
        numbers(worker, &kind, after.as_deref(), limit)?
    };
    let mut response = Response::ok(Bytes::from(page)).with(CONTENT_TYPE, NDJSON);
    response.headers_mut().set_number(OFFSET, offset);
    Ok(response)
}

fn names(worker: &Worker, after: Option<&str>, limit: usize) -> (u64, Vec<u8>) {
    let (offset, names) = worker.shared().data.names();
    let after = after.map(str::to_ascii_lowercase);
    let mut page = Vec::new();
    for (name, set) in names.above(after.as_deref()).take(limit) {
        push(&mut page, &Subject::Name(name.into()), set.as_str());
    }
    (offset, page)
}

fn numbers(
    worker: &Worker,
    kind: &str,
    after: Option<&str>,
    limit: usize,
) -> Result<(u64, Vec<u8>), Problem> {
    let known = Kind::ALL.iter().position(|one| one.name() == kind);
    let place = known.ok_or_else(|| wrong("query kind: expected imei, imsi, msisdn or name"))?;
    let after = match after {
        Some(digits) => {
            let key = Kind::ALL
                .get(place)
                .map(|kind| Key::new(*kind, digits.as_bytes()));
            key.transpose()
                .map_err(|error| wrong(format!("query after: {error}")))?
        }
        // The last number of the kind before.
        None => place
            .checked_sub(1)
            .and_then(|before| Kind::ALL.get(before))
            .and_then(|before| Key::from_number(*before, MOST_DIGITS, 10_u64.pow(MOST_DIGITS as u32) - 1)),
    };
    let (offset, numbers) = worker.shared().data.numbers(after, limit);
    let mut page = Vec::new();
    for record in numbers.take(limit) {
        let (key, set) = record.map_err(unreadable)?;
        if key.kind().name() != kind {
            break;
        }
        push(&mut page, &Subject::Number(key), set.as_str());
    }
    Ok((offset, page))
}

fn push(page: &mut Vec<u8>, subject: &Subject, destinations: &str) {
    // A value always has a form in JSON, and a vector takes it.
    let _ = serde_json::to_writer(&mut *page, &line(subject, destinations));
    page.push(b'\n');
}
