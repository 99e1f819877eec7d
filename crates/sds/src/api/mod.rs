//! One file per resource: parse the request, call, write the answer.

pub(crate) mod bulk;
pub(crate) mod checkpoint;
pub(crate) mod export;
pub(crate) mod groups;
pub(crate) mod journal;
pub(crate) mod subscribers;
pub(crate) mod transactions;
pub(crate) mod xml;

use std::borrow::Cow;

use bytes::Bytes;
use function::records::store_problem;
use http::StatusCode;
use numbers::DestinationSet;
use sbi::problem::{Cause, Problem};
use sbi::{Body, Request, Response};
use serde_json::{Map, Value, json};

use crate::change::{Change, MOST_RECORD};
use crate::data::Unchangeable;
use crate::events::{Event, OVERTAKEN};
use crate::journal::{Refused, Transaction};
use crate::outside::outside;
use crate::repository::GroupWrite;
use crate::subject::Subject;
use crate::worker::Worker;

/// What an answer is.
type Answer = Result<Response, Problem>;

/// Bytes of a transaction as JSON or XML, at most.
const MOST_TRANSACTION: usize = 6 * 1_024 * 1_024;
/// The offset that an answer stands for.
const OFFSET: &str = "journal-offset";
/// The identity of the journal.
const ID: &str = "journal-id";
/// The newest offset of the journal.
const HEAD: &str = "journal-head";

/// The body, decoded, of at most this many bytes: parsed, it takes many times as much memory.
fn body_of(worker: &Worker, request: &Request, most: usize) -> Result<Bytes, Problem> {
    let limit = worker.config().server.max_body.as_usize();
    let body = sbi::coding::decode(&request.head.fields, request.body.clone(), limit)?;
    if body.len() > limit {
        return Err(too_large(format!(
            "a body of more than {limit} bytes (server.maxBody)"
        )));
    }
    if body.len() > most {
        return Err(too_large(format!("a body of more than {most} bytes")));
    }
    Ok(body.into_bytes())
}

/// The body of a record or of a group as JSON.
fn json_of(worker: &Worker, request: &Request) -> Result<Value, Problem> {
    sbi::json::expect_type(&request.head.fields, "application/json")?;
    sbi::json::parse_unique(&Body::from(body_of(worker, request, MOST_RECORD)?))
}

/// What `parse` makes of a body; of a large one on another thread, so that other requests have their turn meanwhile.
async fn parsed<T: Send + 'static>(
    body: Bytes,
    parse: impl FnOnce(Bytes) -> Result<T, Problem> + Send + 'static,
) -> Result<T, Problem> {
    if body.len() <= MOST_RECORD {
        return parse(body);
    }
    let parsing = outside(tokio::task::spawn_blocking(move || parse(body)));
    let failed = |error: tokio::task::JoinError| Problem::new(Cause::SystemFailure).detail(error.to_string());
    parsing.await.unwrap_or_else(|error| Err(failed(error)))
}

fn too_large(detail: impl Into<String>) -> Problem {
    Problem::new(Cause::PayloadTooLarge).detail(detail)
}

fn wrong(detail: impl Into<String>) -> Problem {
    Problem::new(Cause::InvalidMsgFormat).detail(detail)
}

/// A wrong change, by its position from 1; 0 stands for the whole.
fn wrong_change((at, reason): (usize, String)) -> Problem {
    match at {
        0 => wrong(reason),
        at => wrong(format!("change {at}: {reason}")),
    }
}

/// A parameter of the path, decoded.
fn parameter(text: &str) -> Result<Cow<'_, str>, Problem> {
    let decoded = percent_encoding::percent_decode_str(text).decode_utf8();
    decoded.map_err(|_| wrong("the path is not in UTF-8"))
}

/// The subject of a path.
fn subject_of(parameters: &[String; 3]) -> Result<Subject, Problem> {
    let [kind, value, _] = parameters;
    Subject::parse(kind, &parameter(value)?).map_err(|error| wrong(error.to_string()))
}

/// The query, each of its parameters known and once.
fn query_of<'q, const N: usize>(
    request: &'q Request,
    names: [&str; N],
) -> Result<[Option<Cow<'q, str>>; N], Problem> {
    let mut found = [const { None }; N];
    let bad = |name: &str, expected: &str| {
        Problem::new(Cause::InvalidQueryParam)
            .detail(format!("query {name}: {expected}"))
            .invalid_param(format!("query {name}"), expected)
    };
    let pairs = sbi::query::pairs(request.query()).map_err(|error| wrong(error.to_string()))?;
    for (name, value) in pairs {
        let place = names.iter().position(|one| *one == name);
        let place = place.and_then(|place| found.get_mut(place));
        let place = place.ok_or_else(|| bad(&name, &format!("unknown; use {}", names.join(", "))))?;
        if place.replace(value).is_some() {
            return Err(bad(&name, "expected once"));
        }
    }
    Ok(found)
}

/// A number of the query, within bounds.
fn number(name: &str, text: Option<&str>, usual: u64, most: u64) -> Result<u64, Problem> {
    let Some(text) = text else { return Ok(usual) };
    let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let number = digits.then(|| text.parse().ok()).flatten();
    number.filter(|number| *number <= most).ok_or_else(|| {
        Problem::new(Cause::InvalidQueryParam).detail(format!("query {name}: expected 0 to {most}"))
    })
}

/// Refuses where this server does not follow the journal any more.
fn follows(worker: &Worker) -> Result<(), Problem> {
    match &worker.shared().known.borrow().stopped {
        None => Ok(()),
        Some(reason) => Err(stopped(reason)),
    }
}

fn stopped(reason: &str) -> Problem {
    Problem::of_status(StatusCode::SERVICE_UNAVAILABLE).detail(reason)
}

/// Writes a transaction; its offset.
async fn write(worker: &Worker, changes: Vec<Change>, group: Option<GroupWrite>) -> Result<u64, Problem> {
    follows(worker)?;
    let count = changes.len();
    let transaction = Transaction { changes, group };
    match worker.shared().journal.write(transaction).await {
        Ok(offset) => {
            worker.count(Event::Transaction);
            worker.count_by(Event::Change, count);
            Ok(offset)
        }
        Err(refused) => Err(problem(refused)),
    }
}

fn problem(refused: Refused) -> Problem {
    match refused {
        Refused::Store(error) => store_problem(error),
        Refused::Overtaken => {
            Problem::with_cause(StatusCode::SERVICE_UNAVAILABLE, OVERTAKEN).detail(refused.to_string())
        }
        Refused::Stopped(reason) => stopped(&reason),
        Refused::Older { .. } => stopped(&refused.to_string()),
        Refused::Full => Problem::new(Cause::NfCongestion).detail(refused.to_string()),
        Refused::Expected { .. } | Refused::Taken { .. } | Refused::Group => {
            Problem::new(Cause::Conflict).detail(refused.to_string())
        }
        Refused::Unchangeable(Unchangeable::Sets) => {
            Problem::of_status(StatusCode::INSUFFICIENT_STORAGE).detail(refused.to_string())
        }
        Refused::Unchangeable(Unchangeable::Damaged(damaged)) => unreadable(damaged),
    }
}

fn unreadable(damaged: numbers::Damaged) -> Problem {
    tracing::error!(%damaged, "a record cannot be read");
    Problem::new(Cause::SystemFailure).detail(damaged.to_string())
}

/// 200 with the offset of what was written.
fn written(offset: u64) -> Response {
    let mut response = sbi::json::response(StatusCode::OK, &json!({"offset": offset}));
    response.headers_mut().set_number(OFFSET, offset);
    response
}

/// Destinations by service, beside others: those of each service, and the one of all other services.
fn shown(set: &DestinationSet) -> Value {
    let mut services = Map::new();
    let mut any = Value::Null;
    for (service, destination) in set.iter() {
        if service.is_empty() {
            any = destination.into();
        } else {
            services.insert(service.to_owned(), destination.into());
        }
    }
    json!({"destinations": set.as_str(), "services": services, "otherServices": any})
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[tokio::test]
    async fn others_have_their_turn_while_a_large_body_is_parsed() {
        let (sender, receiver) = std::sync::mpsc::sync_channel(1);
        let body = Bytes::from(vec![b' '; MOST_RECORD + 1]);
        let parsing = parsed(body, move |_| {
            let sent = receiver.recv_timeout(Duration::from_secs(60));
            sent.map_err(|error| wrong(error.to_string()))
        });
        let (sent, other) = tokio::join!(parsing, async { sender.send(7) });
        assert_eq!((sent.unwrap(), other), (7, Ok(())));
    }
}
