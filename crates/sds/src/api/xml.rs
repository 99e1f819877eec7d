//! `/xml`: transactions and queries as XML documents.
//!
//! A document is an element `transaction` with `set` and `remove`, or `query` with `get`; all that is said is in attributes. A document
//! type is refused, and with it entities of its own; only the five entities of XML and characters by number are replaced.

use std::fmt::Write as _;

use function::sbi::Call;
use http::StatusCode;
use numbers::DestinationSet;
use quick_xml::events::{BytesStart, Event as Part};
use quick_xml::{Reader, XmlVersion, escape::escape};
use sbi::name::CONTENT_TYPE;
use sbi::problem::Problem;
use sbi::{Response, Value};

use super::{
    Answer, MOST_TRANSACTION, OFFSET, body_of, follows, parsed, unreadable, write, wrong, wrong_change,
};
use crate::change::{Change, MOST_CHANGES, check};
use crate::events::Event;
use crate::subject::Subject;
use crate::worker::Worker;

/// Media type of the documents.
const XML: Value<'static> = Value::from_static("application/xml");

/// What a document asks for.
#[derive(Debug, PartialEq, Eq)]
enum Document {
    Transaction(Vec<Change>),
    Query(Vec<Subject>),
}

/// Carries out a document. Refusals are documents as well.
pub(crate) async fn carry_out(call: Call<Worker>) -> Answer {
    let worker = &*call.worker;
    Ok(answer(worker, &call).await.unwrap_or_else(|problem| {
        function::sbi::Routed::failed(worker, &problem);
        refusal(&problem)
    }))
}

async fn answer(worker: &Worker, call: &Call<Worker>) -> Answer {
    let headers = &call.request.head.fields;
    if !sbi::json::is_type(headers, "text/xml") {
        sbi::json::expect_type(headers, "application/xml")?;
    }
    let body = body_of(worker, &call.request, MOST_TRANSACTION)?;
    let parsing = parsed(body, |body| {
        let text = std::str::from_utf8(&body).map_err(|_| wrong("the document is not in UTF-8"))?;
        parse(text).map_err(wrong_change)
    });
    match parsing.await? {
        Document::Transaction(changes) => {
            let offset = write(worker, changes, None).await?;
            Ok(document(
                StatusCode::OK,
                offset,
                &format!("<answer offset=\"{offset}\"/>\n"),
            ))
        }
        Document::Query(subjects) => query(worker, &subjects),
    }
}

fn query(worker: &Worker, subjects: &[Subject]) -> Answer {
    follows(worker)?;
    let data = &worker.shared().data;
    let offset = data.offset();
    let mut text = format!("<answer offset=\"{offset}\">\n");
    for subject in subjects {
        worker.count(Event::Read);
        let found = data.find(subject).map_err(unreadable)?;
        let (kind, value) = (subject.kind(), subject.value());
        let shown = match &found {
            Some(set) => format!(" destinations=\"{}\"", escape(set.as_str())),
            None => String::new(),
        };
        // A string takes all characters.
        let _ = writeln!(text, "  <record {kind}=\"{}\"{shown}/>", escape(&*value));
    }
    text.push_str("</answer>\n");
    Ok(document(StatusCode::OK, offset, &text))
}

fn document(status: StatusCode, offset: u64, text: &str) -> Response {
    let mut response = Response::new(status)
        .with(CONTENT_TYPE, XML)
        .with_body(text.to_owned());
    response.headers_mut().set_number(OFFSET, offset);
    response
}

fn refusal(problem: &Problem) -> Response {
    let detail = problem.details().detail.as_deref();
    let text = format!(
        "<error>{}</error>\n",
        escape(detail.unwrap_or("the request failed"))
    );
    Response::new(problem.status())
        .with(CONTENT_TYPE, XML)
        .with_body(text)
}

/// Parses a document.
///
/// # Errors
/// The operation that is wrong, from 1, and why; 0 for the whole.
fn parse(text: &str) -> Result<Document, (usize, String)> {
    let mut reader = Reader::from_str(text);
    let mut document = None;
    let mut operations = 0;
    // 0 before the element of the document, 1 in it, 2 in an operation.
    let mut level = 0;
    loop {
        let part = reader
            .read_event()
            .map_err(|error| (operations, error.to_string()))?;
        match part {
            Part::Eof if level == 0 => break,
            Part::Eof => return Err((operations, "the document is cut".to_owned())),
            Part::Start(element) if level == 0 && document.is_none() => {
                document = Some(root(&element)?);
                level = 1;
            }
            Part::Empty(element) if level == 0 && document.is_none() => document = Some(root(&element)?),
            Part::Start(element) | Part::Empty(element) if level != 1 => {
                let name = element.name().0.to_owned();
                return Err((operations, format!("element {name} is not expected here")));
            }
            Part::Start(element) => {
                operations += 1;
                operation(&element, &mut document).map_err(|reason| (operations, reason))?;
                level = 2;
            }
            Part::Empty(element) => {
                operations += 1;
                operation(&element, &mut document).map_err(|reason| (operations, reason))?;
            }
            Part::End(_) => level -= 1,
            Part::Text(text) if text.trim_ascii().is_empty() => {}
            Part::Decl(_) | Part::Comment(_) => {}
            Part::DocType(_) => return Err((0, "a document type is not allowed".to_owned())),
            Part::Text(_) | Part::CData(_) | Part::PI(_) | Part::GeneralRef(_) => {
                return Err((operations, "expected elements and attributes alone".to_owned()));
            }
        }
        if operations > MOST_CHANGES {
            return Err((
                operations,
                format!("a document has at most {MOST_CHANGES} operations"),
            ));
        }
    }
    let document = document.ok_or((0, "expected an element transaction or query".to_owned()))?;
    if let Document::Transaction(changes) = &document {
        check(changes)?;
    }
    Ok(document)
}

fn root(element: &BytesStart<'_>) -> Result<Document, (usize, String)> {
    match element.name().0 {
        "transaction" => Ok(Document::Transaction(Vec::new())),
        "query" => Ok(Document::Query(Vec::new())),
        name => Err((
            0,
            format!("element {name} is not expected here; use transaction or query"),
        )),
    }
}

/// Adds an operation to its document.
fn operation(element: &BytesStart<'_>, document: &mut Option<Document>) -> Result<(), String> {
    let (mut subject, mut destinations, mut expected) = (None, None, None);
    for attribute in element.attributes() {
        let attribute = attribute.map_err(|error| error.to_string())?;
        let value = attribute.normalized_value(XmlVersion::Implicit1_0);
        let value = value.map_err(|error| error.to_string())?;
        let set = || DestinationSet::parse(&value).map_err(|error| error.to_string());
        match attribute.key.0 {
            "destinations" => destinations = Some(set()?),
            "expected" if value.is_empty() => expected = Some(None),
            "expected" => expected = Some(Some(set()?)),
            kind => {
                let parsed = Subject::parse(kind, &value).map_err(|error| format!("{kind}: {error}"))?;
                if subject.replace(parsed).is_some() {
                    return Err(format!("{kind}: the operation has another subject already"));
                }
            }
        }
    }
    let subject = subject.ok_or("no subject; expected imsi, msisdn, imei or name")?;
    match (element.name().0, document, destinations) {
        ("set", Some(Document::Transaction(changes)), Some(set)) => changes.push(Change {
            subject,
            destinations: Some(set),
            expected,
        }),
        ("remove", Some(Document::Transaction(changes)), None) => changes.push(Change {
            subject,
            destinations: None,
            expected,
        }),
        ("get", Some(Document::Query(subjects)), None) if expected.is_none() => subjects.push(subject),
        (name, ..) => {
            return Err(format!(
                "element {name} is not expected here, or not with these attributes"
            ));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_document_is_what_its_attributes_say() {
        let set = |text| DestinationSet::parse(text).unwrap();
        let subject = |kind, value| Subject::parse(kind, value).unwrap();
        let parsed = parse(
            "<?xml version=\"1.0\"?>\n<!-- x -->\n<transaction>\n\
             <set imsi=\"001\" destinations=\"hss1,pcrf=p1\"/>\n\
             <remove name='a&amp;b@c' expected=\"hss1\"></remove>\n</transaction>\n",
        );
        let first = Change::new(subject("imsi", "001"), Some(set("hss1,pcrf=p1")));
        let second = Change {
            expected: Some(Some(set("hss1"))),
            ..Change::new(subject("name", "a&b@c"), None)
        };
        assert_eq!(parsed, Ok(Document::Transaction(vec![first, second])));
        let parsed = parse("<query><get msisdn=\"49\"/></query>");
        assert_eq!(parsed, Ok(Document::Query(vec![subject("msisdn", "49")])));
    }

    #[test]
    fn what_is_not_a_document_is_refused_with_the_reason() {
        for (text, reason) in [
            ("", "expected an element"),
            ("<x/>", "transaction or query"),
            ("<transaction/>", "no change"),
            ("<transaction><set imsi=\"1\" destinations=\"a\"/>", "cut"),
            ("<transaction><set imsi=\"1\" destinations=\"a\"", ""),
            ("<transaction><set imsi=\"1\"/></transaction>", "attributes"),
            (
                "<transaction><set destinations=\"a\"/></transaction>",
                "no subject",
            ),
            (
                "<transaction><set imsi=\"1A\" destinations=\"a\"/></transaction>",
                "not a digit",
            ),
            (
                "<transaction><set imsi=\"1\" imsi=\"2\" destinations=\"a\"/></transaction>",
                "",
            ),
            (
                "<transaction><get imsi=\"1\"/></transaction>",
                "not expected here",
            ),
            (
                "<transaction><set imsi=\"1\" destinations=\"a\"><b/></set></transaction>",
                "not expected here",
            ),
            (
                "<transaction>text<set imsi=\"1\" destinations=\"a\"/></transaction>",
                "alone",
            ),
            ("<query/><query/>", "not expected here"),
            (
                "<!DOCTYPE x [<!ENTITY a \"b\">]><query><get name=\"&a;\"/></query>",
                "document type",
            ),
            ("<query><get name=\"&a;\"/></query>", ""),
            ("<query>&lt;</query>", "alone"),
        ] {
            let (_, why) = parse(text).unwrap_err();
            assert!(why.contains(reason), "{text}: {why}");
        }
    }
}
