//! `/subscribers/{kind}/{value}`: one record.

use function::sbi::Call;
use http::StatusCode;
use sbi::problem::{Cause, Problem};
use serde_json::Value;

use super::{Answer, OFFSET, follows, json_of, shown, subject_of, unreadable, write, written, wrong};
use crate::change::{Change, named};
use crate::events::Event;
use crate::subject::Subject;
use crate::worker::Worker;

fn unknown(subject: &Subject) -> Problem {
    Problem::new(Cause::ResourceNotFound).detail(format!("{subject} is not known"))
}

/// The destinations of a record, and the offset of which they are.
pub(crate) fn read(call: &Call<Worker>) -> Answer {
    let worker = &*call.worker;
    follows(worker)?;
    let subject = subject_of(&call.parameters)?;
    worker.count(Event::Read);
    let data = &worker.shared().data;
    let offset = data.offset();
    let set = data.find(&subject).map_err(unreadable)?;
    let set = set.ok_or_else(|| unknown(&subject))?;
    let mut document = named(&subject, shown(&set));
    document["offset"] = offset.into();
    let mut response = sbi::json::response(StatusCode::OK, &document);
    response.headers_mut().set_number(OFFSET, offset);
    Ok(response)
}

/// Sets a record.
pub(crate) async fn set(call: Call<Worker>) -> Answer {
    let worker = &*call.worker;
    let subject = subject_of(&call.parameters)?;
    let document = json_of(worker, &call.request)?;
    let members = document.as_object();
    let of_path = members.filter(|members| !members.contains_key(subject.kind()));
    if of_path.is_none() {
        return Err(wrong(
            "expected an object with destinations, and perhaps expected",
        ));
    }
    let change = Change::from_json(&named(&subject, document)).map_err(wrong)?;
    if change.destinations.is_none() {
        return Err(wrong(
            "destinations: expected a string; DELETE removes the record",
        ));
    }
    write(worker, vec![change], None).await.map(written)
}

/// Removes a record.
pub(crate) async fn remove(call: Call<Worker>) -> Answer {
    let worker = &*call.worker;
    let subject = subject_of(&call.parameters)?;
    // The record of another server may not be here yet.
    let find = || worker.shared().data.find(&subject).map_err(unreadable);
    if find()?.is_none() {
        worker.shared().journal.refresh().await;
        if find()?.is_none() {
            return Err(unknown(&subject));
        }
    }
    let change = Change::new(subject, None);
    write(worker, vec![change], None).await.map(written)
}

/// A record as a line of an export.
pub(super) fn line(subject: &Subject, destinations: &str) -> Value {
    named(subject, serde_json::json!({"destinations": destinations}))
}
