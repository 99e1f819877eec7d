//! `POST /records`: many records, one a line, as JSON or as the text of numbers.
//!
//! Nothing is written where a line is wrong. Otherwise the lines are written in transactions: an array on a line is one, and so are
//! lines of single records that follow one another, up to a thousand.

use std::io::BufReader;

use bytes::{Buf as _, Bytes};
use function::sbi::Call;
use http::StatusCode;
use numbers::DestinationSet;
use numbers::csv::{Entry, ImportError, Mistake, entries};
use sbi::Body;
use sbi::problem::{Cause, Problem};
use serde_json::{Value, json};

use super::{Answer, MOST_TRANSACTION, OFFSET, body_of, parsed, too_large, write, wrong};
use crate::change::{Change, MOST_CHANGES, MOST_RECORD, check, transaction};
use crate::subject::Subject;
use crate::worker::Worker;

/// Writes the records of a body.
pub(crate) async fn write_all(call: Call<Worker>) -> Answer {
    let worker = &*call.worker;
    let headers = &call.request.head.fields;
    let is_text = sbi::json::is_type(headers, "text/csv");
    if !is_text && !sbi::json::is_type(headers, "application/x-ndjson") {
        let detail = "expected a body of type application/x-ndjson or text/csv";
        return Err(Problem::new(Cause::UnsupportedMediaType).detail(detail));
    }
    let body = body_of(worker, &call.request, usize::MAX)?;
    let transactions = parsed(body, if is_text { of_text } else { of_lines }).await?;
    let (mut records, mut offset, count) = (0, 0, transactions.len());
    for changes in transactions {
        let more = changes.len();
        match write(worker, changes, None).await {
            Ok(written) => offset = written,
            Err(problem) => return Err(after(problem, records)),
        }
        records += more;
    }
    let document = json!({"records": records, "transactions": count, "offset": offset});
    let mut response = sbi::json::response(StatusCode::OK, &document);
    response.headers_mut().set_number(OFFSET, offset);
    Ok(response)
}

/// The problem of a transaction that others were written before.
fn after(mut problem: Problem, records: usize) -> Problem {
    let details = problem.details_mut();
    let detail = details.detail.take().unwrap_or_default();
    details.detail = Some(format!("{detail}; {records} records before were written"));
    details.more.insert("records".to_owned(), records.into());
    problem
}

/// Transactions being collected.
#[derive(Default)]
struct Transactions {
    whole: Vec<Vec<Change>>,
    /// Single records that may be joined by more.
    open: Vec<Change>,
    subjects: std::collections::HashSet<Subject>,
}

impl Transactions {
    fn push(&mut self, change: Change) {
        // A later line of a record is a transaction behind the earlier one.
        if self.open.len() == MOST_CHANGES || !self.subjects.insert(change.subject.clone()) {
            self.end();
            self.subjects.insert(change.subject.clone());
        }
        self.open.push(change);
    }

    fn push_whole(&mut self, changes: Vec<Change>) {
        self.end();
        self.whole.push(changes);
    }

    fn end(&mut self) {
        self.subjects.clear();
        if !self.open.is_empty() {
            self.whole.push(std::mem::take(&mut self.open));
        }
    }
}

fn of_lines(body: Bytes) -> Result<Vec<Vec<Change>>, Problem> {
    let mut all = Transactions::default();
    let Some(text) = body.strip_suffix(b"\n") else {
        let lines = body.split(|byte| *byte == b'\n').count();
        return Err(wrong_line(lines, "the line has no end; the body is cut"));
    };
    for (at, line) in text.split(|byte| *byte == b'\n').enumerate() {
        let is_array = line.trim_ascii_start().starts_with(b"[");
        let most = if is_array { MOST_TRANSACTION } else { MOST_RECORD };
        if line.len() > most {
            let problem = too_large(format!("more than {most} bytes"));
            return Err(of_line(at + 1, problem));
        }
        let refused = |reason: String| wrong_line(at + 1, reason);
        if is_array {
            all.push_whole(transaction(line).map_err(|wrong| refused(of_change(wrong)))?);
        } else {
            let value = sbi::json::parse_unique(&Body::from(body.slice_ref(line)))
                .map_err(|problem| refused(problem.details().detail.clone().unwrap_or_default()))?;
            all.push(of_value(&value).map_err(refused)?);
        }
    }
    all.end();
    Ok(all.whole)
}

fn of_value(value: &Value) -> Result<Change, String> {
    let change = Change::from_json(value)?;
    check(std::slice::from_ref(&change)).map_err(of_change)?;
    Ok(change)
}

fn of_change((at, reason): (usize, String)) -> String {
    match at {
        0 => reason,
        at => format!("change {at}: {reason}"),
    }
}

fn of_text(body: Bytes) -> Result<Vec<Vec<Change>>, Problem> {
    let mut all = Transactions::default();
    let taken = entries(&mut BufReader::new(body.reader()), |line, entry| {
        let Entry {
            kind,
            value,
            destinations,
        } = entry;
        let subject = Subject::parse(kind, value).map_err(|error| Mistake::at(line, error))?;
        let set = DestinationSet::parse(destinations).map_err(|error| Mistake::at(line, error))?;
        all.push(Change::new(subject, Some(set)));
        Ok(())
    });
    match taken {
        Ok((lines, 0)) => {
            return Err(wrong_line(
                usize::try_from(lines).unwrap_or_default(),
                "no record",
            ));
        }
        Ok(_) => {}
        Err(ImportError::Line { line, mistake }) => {
            return Err(wrong_line(usize::try_from(line).unwrap_or_default(), mistake));
        }
        Err(error) => return Err(wrong(error.to_string())),
    }
    all.end();
    Ok(all.whole)
}

/// The first line that is wrong.
fn wrong_line(line: usize, reason: impl std::fmt::Display) -> Problem {
    of_line(line, wrong(reason.to_string()))
}

fn of_line(line: usize, mut problem: Problem) -> Problem {
    let details = problem.details_mut();
    let reason = details.detail.take().unwrap_or_default();
    details.detail = Some(format!("line {line}: {reason}; nothing was written"));
    details.more.insert("line".to_owned(), line.into());
    problem
}
