//! Nnrf_NFDiscovery (TS 29.510 §6.2): the way of a discovery.
//!
//! ```text
//! query string, subscriber cut out ─ known? ─ no: parse ─┐
//!                                       └────── plan ◄───┘
//!   goes to another NRF? ─ ask it, pass its answer on
//!   subscriber of a located type? ─ ask the location function for the group
//!   answer kept for this group and this state of the registry? ─ yes: send its bytes
//!   no: select, order, render, keep, send
//! ```

use std::borrow::Cow;
use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;

use ahash::AHashMap;
use http::header::{CACHE_CONTROL, CONTENT_TYPE, ETAG};
use http::{HeaderValue, Method, StatusCode};
use model::NfType;
use sbi::{Body, Request, Response};

use crate::discovery::{About, Answer, ParamFault, Policy, Query, select};
use crate::events::Event;
use crate::forwarding::{Destination, Question};
use crate::service::Worker;
use crate::slf::Resolution;

/// Queries a worker knows, with the answers it has given.
pub(crate) struct Plans {
    by_query: RefCell<AHashMap<Box<str>, Rc<Plan>>>,
    queries_max: usize,
    answers_max: usize,
    policy: Policy,
}

/// A parsed query and its answers.
struct Plan {
    query: Query,
    /// `target-nf-type`, which every parsed query has.
    target: NfType,
    answers: RefCell<Answers>,
}

/// Answers as of one state of the target type's profiles.
#[derive(Default)]
struct Answers {
    generation: u64,
    by_group: AHashMap<GroupKey, Rc<Answer>>,
}

/// What an answer depends on beside query and registry.
#[derive(Clone, PartialEq, Eq, Hash)]
enum GroupKey {
    /// No subscriber, or nobody could be asked for the group.
    NotAsked,
    NoGroup,
    Group(Arc<str>),
}

impl Plans {
    pub(crate) fn new(settings: &crate::config::Discovery) -> Self {
        Self {
            by_query: RefCell::default(),
            queries_max: settings.cached_queries.max(1),
            answers_max: settings.cached_answers_per_query.max(1),
            policy: settings.policy(),
        }
    }

    /// The plan of a query string without its subscriber.
    fn of(&self, text: &str) -> Result<Rc<Plan>, ParamFault> {
        if let Some(plan) = self.by_query.borrow().get(text) {
            return Ok(plan.clone());
        }
        let uri = http::Uri::try_from(format!("/?{text}"))
            .map_err(|_| ParamFault::new("query", "expected a URI query"))?;
        let pairs =
            sbi::query::pairs(&uri).map_err(|error| ParamFault::new(&error.name, "expected UTF-8"))?;
        let query = Query::parse(&pairs)?;
        let target = query
            .target
            .clone()
            .ok_or_else(|| ParamFault::missing("target-nf-type"))?;
        let plan = Rc::new(Plan {
            query,
            target,
            answers: RefCell::default(),
        });
        let mut plans = self.by_query.borrow_mut();
        if plans.len() >= self.queries_max {
            plans.clear();
        }
        plans.insert(text.into(), plan.clone());
        Ok(plan)
    }
}

/// `/nf-instances` of the discovery service.
pub(crate) async fn discover(worker: Rc<Worker>, request: Request) -> Response {
    if *request.method() != Method::GET {
        return super::method_not_allowed(request.method(), "GET");
    }
    match run(&worker, &request).await {
        Ok(response) => response,
        Err(fault) => {
            worker.counters().count(Event::BadRequest);
            fault.into_problem().into_response()
        }
    }
}

async fn run(worker: &Worker, request: &Request) -> Result<Response, ParamFault> {
    let raw = request.uri().query().unwrap_or_default();
    let (text, supi, gpsi) = cut_subscriber(raw)?;
    // Complex queries name subscribers inside; all others are the same for every subscriber.
    let plan = worker.plans().of(&text)?;
    let destination = forwards_to(worker, &plan, request);
    if let Some(destination) = destination.as_ref().filter(|one| !one.only_when_empty) {
        return Ok(forward(worker, destination, request).await);
    }
    let subscriber = supi.as_deref().or(gpsi.as_deref());
    let group = match subscriber {
        Some(subscriber) if !plan.query.names_groups && worker.slf().concerns(&plan.target) => {
            let snapshot = worker.snapshot();
            match worker.slf().group_of(&plan.target, subscriber, &snapshot).await {
                Resolution::Group(group) => GroupKey::Group(group),
                Resolution::Unknown => GroupKey::NoGroup,
                Resolution::Unavailable => GroupKey::NotAsked,
            }
        }
        _ => GroupKey::NotAsked,
    };
    let answer = answer_of(worker, &plan, supi, gpsi, group);
    worker.counters().count(Event::Discovered);
    if answer.profiles == 0 {
        worker.counters().count(Event::FoundNothing);
        if let Some(destination) = &destination {
            return Ok(forward(worker, destination, request).await);
        }
    }
    Ok(respond(worker, request, &answer))
}

fn forwards_to(worker: &Worker, plan: &Plan, request: &Request) -> Option<Destination> {
    let query = &plan.query;
    let question = Question {
        target: &plan.target,
        services: &query.services,
        home_nrf: query.home_nrf.as_deref(),
        target_plmns: &query.target_plmns,
    };
    worker.forwarder().destination(&question, request.headers())
}

async fn forward(worker: &Worker, destination: &Destination, request: &Request) -> Response {
    let path = request
        .uri()
        .path_and_query()
        .map_or("/", http::uri::PathAndQuery::as_str);
    worker.forwarder().ask(destination, path, request.headers()).await
}

fn answer_of(
    worker: &Worker,
    plan: &Plan,
    supi: Option<Cow<'_, str>>,
    gpsi: Option<Cow<'_, str>>,
    group: GroupKey,
) -> Rc<Answer> {
    let snapshot = worker.snapshot();
    let table = snapshot.of_type(&plan.target);
    let generation = table.map_or(0, |table| table.generation());
    {
        let mut answers = plan.answers.borrow_mut();
        if answers.generation != generation {
            answers.generation = generation;
            answers.by_group.clear();
        }
        if let Some(answer) = answers.by_group.get(&group) {
            worker.counters().count(Event::AnswerReused);
            return answer.clone();
        }
    }
    let located = match &group {
        GroupKey::NotAsked => None,
        GroupKey::NoGroup => Some(None),
        GroupKey::Group(group) => Some(Some(&**group)),
    };
    let plans = worker.plans();
    let about = About {
        supi: supi.as_deref(),
        gpsi: gpsi.as_deref(),
        group: located,
    };
    let selection = select(&plan.query, about, table.map(|table| &**table), &plans.policy);
    let answer = Rc::new(selection.answer);
    if selection.by_group_only {
        let mut answers = plan.answers.borrow_mut();
        if answers.by_group.len() >= plans.answers_max {
            answers.by_group.clear();
        }
        answers.by_group.insert(group, answer.clone());
    }
    answer
}

fn respond(worker: &Worker, request: &Request, answer: &Answer) -> Response {
    let headers = request.headers();
    let etag = answer.etag.to_str().unwrap_or_default();
    let mut response = if sbi::etag::none_match_hits(headers, etag) {
        worker.counters().count(Event::NotModified);
        let mut response = Response::default();
        *response.status_mut() = StatusCode::NOT_MODIFIED;
        response
    } else {
        let mut response = Response::new(Body::from(answer.body.clone()));
        response.headers_mut().insert(CONTENT_TYPE, sbi::json::JSON);
        if sbi::coding::accepts_gzip(headers) {
            sbi::coding::encode(response)
        } else {
            response
        }
    };
    let fresh = format!("max-age={}", answer.validity);
    if let Ok(value) = HeaderValue::from_str(&fresh) {
        response.headers_mut().insert(CACHE_CONTROL, value);
    }
    response.headers_mut().insert(ETAG, answer.etag.clone());
    response
}

/// What [`cut_subscriber`] finds.
type Cut<'a> = (Cow<'a, str>, Option<Cow<'a, str>>, Option<Cow<'a, str>>);

/// Takes `supi` and `gpsi` out of a query string, so that what remains is the same for all subscribers.
fn cut_subscriber(raw: &str) -> Result<Cut<'_>, ParamFault> {
    let (mut supi, mut gpsi) = (None, None);
    if !raw.contains("supi=") && !raw.contains("gpsi=") {
        return Ok((Cow::Borrowed(raw), None, None));
    }
    let mut rest = String::with_capacity(raw.len());
    for pair in raw.split('&') {
        let (place, name) = match pair.split_once('=') {
            Some(("supi", _)) => (&mut supi, "supi"),
            Some(("gpsi", _)) => (&mut gpsi, "gpsi"),
            _ => {
                if !rest.is_empty() {
                    rest.push('&');
                }
                rest.push_str(pair);
                continue;
            }
        };
        let value = percent_encoding::percent_decode_str(&pair[name.len() + 1..]);
        let value = value
            .decode_utf8()
            .map_err(|_| ParamFault::new(name, "expected UTF-8"))?;
        if value.is_empty() {
            return Err(ParamFault::new(name, "expected a value"));
        }
        if place.replace(value).is_some() {
            return Err(ParamFault::new(name, "expected once"));
        }
    }
    Ok((Cow::Owned(rest), supi, gpsi))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_subscriber_is_cut_out() {
        let (rest, supi, gpsi) =
            cut_subscriber("target-nf-type=UDM&supi=imsi-1&x=y&gpsi=msisdn%2D2").unwrap();
        assert_eq!(
            (&*rest, supi.as_deref(), gpsi.as_deref()),
            ("target-nf-type=UDM&x=y", Some("imsi-1"), Some("msisdn-2"))
        );
        assert!(cut_subscriber("supi=a&supi=b").is_err() && cut_subscriber("supi=").is_err());
        assert_eq!(cut_subscriber("a=b").unwrap().0, "a=b");
    }
}
