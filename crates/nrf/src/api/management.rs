//! Nnrf_NFManagement, NF instances (TS 29.510 §6.1.3.2, §6.1.3.3).

use std::fmt::Write as _;

use function::sbi::Call;
use http::{Method, StatusCode};
use model::{NfInstanceId, NfType};
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use registry::Entry;
use sbi::name::{ACCEPT_ENCODING, ALLOW, CONTENT_TYPE, ETAG, IF_MATCH, IF_NONE_MATCH, LOCATION};
use sbi::problem::{Cause, Problem};
use sbi::response::no_content;
use sbi::{Request, Response, Value as FieldValue};
use serde_json::{Value, json};

use crate::registrar::{Done, Preconditions, What, not_found};
use crate::worker::Worker;

/// Features of the service this NRF supports (TS 29.510 §6.1.9); none of the optional ones is negotiated.
const SUPPORTED_FEATURES: &str = "0";

/// What `/nf-instances` can do.
pub(crate) fn options() -> Response {
    let body = json!({"supportedFeatures": SUPPORTED_FEATURES});
    sbi::json::response(StatusCode::OK, &body)
        .with(ALLOW, FieldValue::from_static("GET, OPTIONS"))
        .with(ACCEPT_ENCODING, FieldValue::from_static("gzip"))
}

/// The instance that the path names.
fn id_of(call: &Call<Worker>) -> Result<NfInstanceId, Problem> {
    let [id, ..] = &call.parameters;
    NfInstanceId::parse(id).map_err(|expected| {
        Problem::new(Cause::MandatoryIeIncorrect)
            .detail(format!("the NF instance id of the URI: {expected}"))
            .invalid_param("{nfInstanceID}", expected)
    })
}

/// Retrieves a profile.
pub(crate) async fn retrieve(call: Call<Worker>) -> Result<Response, Problem> {
    let id = id_of(&call)?;
    let (worker, request) = (&call.worker, &call.request);
    let snapshot = worker.snapshot();
    if let Some(entry) = snapshot.get(&id) {
        return Ok(found(request, entry));
    }
    if !worker.is_in_cluster() {
        return Err(not_found(id));
    }
    // Another NRF may have registered it a moment ago.
    match worker.write(What::Find { id }).await? {
        Done::Found(entry) => Ok(found(request, &entry)),
        _ => Err(not_found(id)),
    }
}

/// Registers, updates or deregisters an instance.
pub(crate) async fn change(call: Call<Worker>) -> Result<Response, Problem> {
    let id = id_of(&call)?;
    let gzip = sbi::coding::accepts_gzip(call.request.headers());
    let what = write_of(&call.worker, call.request, id)?;
    let done = call.worker.write(what).await?;
    Ok(answer(&call.worker, done, gzip))
}

fn write_of(worker: &Worker, request: Request, id: NfInstanceId) -> Result<What, Problem> {
    let headers = &request.head.fields;
    let wanted = Preconditions {
        matches: every(headers.get_all(IF_MATCH)),
        none_match: every(headers.get_all(IF_NONE_MATCH)),
    };
    Ok(match *request.head.method() {
        Method::PUT => {
            sbi::json::expect_type(headers, "application/json")?;
            let body = super::body_of(worker, headers, request.body, worker.max_profile())?;
            What::Put { id, body, wanted }
        }
        Method::PATCH => {
            super::expect_patch(worker, headers)?;
            let body = super::body_of(worker, headers, request.body, worker.max_profile())?;
            What::Patch { id, body, wanted }
        }
        // The table has no other method.
        _ => What::Delete { id, wanted },
    })
}

/// All fields of a name as one list (RFC 9110 §5.3).
fn every<'a>(fields: impl Iterator<Item = FieldValue<'a>>) -> Option<Box<str>> {
    let texts: Vec<String> = fields
        .filter_map(|value| value.to_str().ok().map(str::to_owned))
        .collect();
    (!texts.is_empty()).then(|| texts.join(",").into())
}

fn answer(worker: &Worker, done: Done, gzip: bool) -> Response {
    match done {
        Done::Created(entry) => {
            let mut response = profile(&entry, StatusCode::CREATED, gzip);
            // The root was parsed as a URI, an id is hexadecimal digits.
            let location = worker.instance_uri(&entry.id);
            response.headers_mut().set_printed(LOCATION, location);
            response
        }
        Done::Replaced(entry) => profile(&entry, StatusCode::OK, gzip),
        _ => no_content(),
    }
}

fn profile(entry: &Entry, status: StatusCode, gzip: bool) -> Response {
    let mut response = sbi::json::response_of(status, entry.document());
    insert_etag(&mut response, entry);
    if gzip {
        sbi::coding::encode(response)
    } else {
        response
    }
}

fn insert_etag(response: &mut Response, entry: &Entry) {
    response.headers_mut().set_printed(ETAG, entry.etag());
}

fn found(request: &Request, entry: &Entry) -> Response {
    if sbi::etag::none_match_hits(request.headers(), &entry.etag()) {
        let mut response = Response::new(StatusCode::NOT_MODIFIED);
        insert_etag(&mut response, entry);
        return response;
    }
    profile(
        entry,
        StatusCode::OK,
        sbi::coding::accepts_gzip(request.headers()),
    )
}

/// HAL links to the instances (TS 29.510 §6.1.3.2.3.1), a page of them.
pub(crate) fn list(call: &Call<Worker>) -> Result<Response, Problem> {
    let (worker, asked) = (&call.worker, Listing::parse(call.request.query())?);
    let snapshot = worker.snapshot();
    let mut ids: Vec<NfInstanceId> = match &asked.nf_type {
        Some(nf_type) => snapshot
            .of_type(nf_type)
            .into_iter()
            .flat_map(|t| t.iter())
            .map(|e| e.id)
            .collect(),
        None => snapshot.iter().map(|entry| entry.id).collect(),
    };
    ids.sort_unstable();
    let total = ids.len();
    if let Some(limit) = asked.limit {
        ids.truncate(limit);
    }
    let collection = format!("{}/nnrf-nfm/v1/nf-instances", worker.root());
    let mut links = json!({"self": {"href": &collection}});
    if let Some(size) = asked.page_size {
        let page = asked.page_number.unwrap_or(1);
        let start = (page - 1).saturating_mul(size);
        let pages = ids.len().div_ceil(size);
        ids = ids.into_iter().skip(start).take(size).collect();
        let mut link = |name: &str, number: usize| {
            let href = format!("{collection}?{}", asked.of_page(number, size));
            links[name] = json!({ "href": href });
        };
        if page < pages {
            link("next", page + 1);
        }
        if page > 1 {
            link("prev", page - 1);
        }
        link("first", 1);
        link("last", pages.max(1));
    }
    let items: Vec<Value> = ids
        .iter()
        .map(|id| json!({"href": worker.instance_uri(id)}))
        .collect();
    // An array of links has at least one (TS 29.571 §5.2.4.7, LinksValueSchema).
    if !items.is_empty() {
        links["item"] = Value::Array(items);
    }
    let body = json!({"_links": links, "totalItemCount": total});
    let hal = FieldValue::from_static("application/3gppHal+json");
    Ok(sbi::json::response(StatusCode::OK, &body).with(CONTENT_TYPE, hal))
}

/// The query of a list of instances.
#[derive(Debug, Default)]
struct Listing {
    nf_type: Option<NfType>,
    limit: Option<usize>,
    page_number: Option<usize>,
    page_size: Option<usize>,
}

impl Listing {
    /// Reads a query. What this release does not know means nothing (TS 29.500 §5.2.9); what it knows has one value.
    fn parse(query: Option<&str>) -> Result<Self, Problem> {
        let mut asked = Self::default();
        let pairs = sbi::query::pairs(query).map_err(|error| bad_query(&error.name, "expected UTF-8"))?;
        for (at, (name, value)) in pairs.iter().enumerate() {
            let number = || -> Result<Option<usize>, Problem> {
                let parsed = value.parse().ok().filter(|number| *number >= 1);
                parsed
                    .map(Some)
                    .ok_or_else(|| bad_query(name, "expected a number of at least 1"))
            };
            match &**name {
                "nf-type" if value.is_empty() => return Err(bad_query(name, "expected a value")),
                "nf-type" => asked.nf_type = Some(NfType::from(&**value)),
                "limit" => asked.limit = number()?,
                "page-number" => asked.page_number = number()?,
                "page-size" => asked.page_size = number()?,
                _ => continue,
            }
            // Equal values may repeat, as in discoveries.
            if pairs[..at]
                .iter()
                .any(|(earlier, other)| earlier == name && other != value)
            {
                return Err(bad_query(name, "expected once"));
            }
        }
        Ok(asked)
    }

    /// The query of another page of the same list.
    fn of_page(&self, number: usize, size: usize) -> String {
        let mut query = format!("page-number={number}&page-size={size}");
        if let Some(limit) = self.limit {
            // Writing to a String cannot fail.
            let _ = write!(query, "&limit={limit}");
        }
        if let Some(nf_type) = &self.nf_type {
            let text = nf_type.to_string();
            let _ = write!(query, "&nf-type={}", utf8_percent_encode(&text, NON_ALPHANUMERIC));
        }
        query
    }
}

fn bad_query(name: &str, expected: &str) -> Problem {
    Problem::new(Cause::OptionalQueryParamIncorrect).invalid_param(format!("query {name}"), expected)
}
