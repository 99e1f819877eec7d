//! `/checkpoint`: all records as text. Whole it is of one offset, and made while it is sent; with `limit` it is a part, as of the
//! moment of the request.

use function::sbi::Call;
use sbi::name::CONTENT_TYPE;
use sbi::problem::{Cause, Problem};
use sbi::{Body, Response, Value};

use super::{Answer, ID, OFFSET, follows, number, query_of, unreadable, wrong};
use crate::data::{Behind, Text, part};
use crate::events::Event;
use crate::subject::{NAME, Subject};
use crate::worker::Worker;

/// Records of a part, without `limit` and at most.
const MOST: u64 = 10_000;

/// The records as they are now.
pub(crate) fn read(call: &Call<Worker>) -> Answer {
    let worker = &*call.worker;
    follows(worker)?;
    let [after, limit] = query_of(&call.request, ["after", "limit"])?;
    let behind = after.as_deref().map(behind).transpose()?;
    if behind.is_none() && limit.is_none() {
        return whole(worker);
    }
    let most = number("limit", limit.as_deref(), MOST, MOST)?.max(1) as usize;
    if behind.is_none() {
        worker.count(Event::Checkpoint);
    }
    let shared = worker.shared();
    let id = shared.known.borrow().head.id.clone();
    let made = part(&shared.data, &id, behind.unwrap_or(Behind::Number(None)), most);
    let (text, offset) = made.map_err(|damaged| {
        worker.count(Event::CheckpointFailed);
        unreadable(damaged)
    })?;
    Ok(answer(Body::from(text), &id, offset))
}

/// Where the part behind `KIND,VALUE` begins; `name,` stands for the first name.
fn behind(after: &str) -> Result<Behind, Problem> {
    let expected = |reason: String| wrong(format!("query after: {reason}; expected KIND,VALUE"));
    let (kind, value) = after
        .split_once(',')
        .ok_or_else(|| expected("no comma".to_owned()))?;
    if kind == NAME && value.is_empty() {
        return Ok(Behind::Name(None));
    }
    let subject = Subject::parse(kind, value).map_err(|error| expected(error.to_string()))?;
    Ok(match subject {
        Subject::Number(key) => Behind::Number(Some(key)),
        Subject::Name(name) => Behind::Name(Some(name)),
    })
}

fn whole(worker: &Worker) -> Answer {
    let shared = worker.shared();
    let place = shared.pollers.checkpoint().ok_or_else(|| {
        Problem::new(Cause::NfCongestion).detail("too many checkpoints are being sent; try later")
    })?;
    worker.count(Event::Checkpoint);
    let id = shared.known.borrow().head.id.clone();
    let snapshot = shared.data.snapshot();
    let offset = snapshot.offset;
    let (mut text, counters) = (Text::new(snapshot, &id), worker.counters());
    let body = Body::streamed(move || {
        // Held until the body ends.
        let _place = &place;
        text.next().unwrap_or_else(|damaged| {
            tracing::error!(%damaged, "a checkpoint ends before its end");
            counters.count(Event::CheckpointFailed);
            None
        })
    });
    Ok(answer(body, &id, offset))
}

fn answer(text: Body, id: &str, offset: u64) -> Response {
    let mut response = Response::ok(text).with(CONTENT_TYPE, Value::from_static("text/csv"));
    let headers = response.headers_mut();
    headers.set_number(OFFSET, offset);
    headers.set_printed(ID, id);
    response
}
