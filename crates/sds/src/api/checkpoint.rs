//! `/checkpoint`: all records of one offset as text, made while it is sent.

use function::sbi::Call;
use sbi::name::CONTENT_TYPE;
use sbi::problem::{Cause, Problem};
use sbi::{Body, Response, Value};

use super::{Answer, ID, OFFSET, follows};
use crate::data::Text;
use crate::events::Event;
use crate::worker::Worker;

/// The records as they are now.
pub(crate) fn read(call: &Call<Worker>) -> Answer {
    let (worker, shared) = (&*call.worker, call.worker.shared());
    follows(worker)?;
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
    let mut response = Response::ok(body).with(CONTENT_TYPE, Value::from_static("text/csv"));
    response.headers_mut().set_number(OFFSET, offset);
    response.headers_mut().set_printed(ID, id);
    Ok(response)
}
