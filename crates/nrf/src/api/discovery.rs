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
use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;

use ahash::AHashMap;
use http::header::{CACHE_CONTROL, CONTENT_TYPE, ETAG};
use http::{Method, StatusCode};
use model::NfType;
use sbi::{Body, Request, Response};

use crate::config::ForwardedOperation;
use crate::discovery::{About, Answer, Class, Classes, Extent, ParamFault, Policy, Query, select};
use crate::events::Event;
use crate::forwarding::{Destination, Question};
use crate::registry::TypeTable;
use crate::service::Worker;
use crate::slf::Resolution;

/// Queries a worker knows, with the answers it has given.
pub(crate) struct Plans {
    known: RefCell<Generations>,
    /// Subscriber classes by NF type, as of a state of its profiles.
    classes: RefCell<AHashMap<NfType, (u64, Rc<Classes>)>>,
    /// Bytes of the answers kept.
    kept: Cell<usize>,
    queries_max: usize,
    answers_max: usize,
    bytes_max: usize,
    text_max: usize,
    policy: Policy,
}

/// Target types whose classes are kept: far more than TS 29.510 names.
const TYPES_MAX: usize = 256;

/// Plans in two generations: when the young one is full it becomes the old one, and the old one goes. What
/// is asked for now and then stays, what is never asked for again goes, and nothing is ever walked through.
#[derive(Default)]
struct Generations {
    young: AHashMap<Box<str>, Rc<Plan>>,
    old: AHashMap<Box<str>, Rc<Plan>>,
}

/// A parsed query and its answers.
struct Plan {
    query: Query,
    /// The query as text, without its subscriber.
    text: Box<str>,
    /// `target-nf-type`, which every parsed query has.
    target: NfType,
    answers: RefCell<Answers>,
}

/// Answers as of one state of the target type's profiles.
#[derive(Default)]
struct Answers {
    generation: u64,
    classes: Rc<Classes>,
    by_key: AHashMap<Key, Rc<Answer>>,
}

/// What an answer depends on beside query and registry: the subscriber's group and class.
#[derive(Clone, PartialEq, Eq, Hash)]
struct Key {
    group: Group,
    class: Class,
}

/// What the location function says.
#[derive(Clone, PartialEq, Eq, Hash)]
enum Group {
    /// No subscriber, or nobody could be asked for the group.
    NotAsked,
    None,
    Is(Arc<str>),
}

impl Group {
    fn as_about(&self) -> Option<Option<&str>> {
        match self {
            Self::NotAsked => None,
            Self::None => Some(None),
            Self::Is(group) => Some(Some(group)),
        }
    }
}

impl Plans {
    pub(crate) fn new(settings: &crate::config::Discovery) -> Self {
        Self {
            known: RefCell::default(),
            classes: RefCell::default(),
            kept: Cell::new(0),
            queries_max: settings.cached_queries.max(2),
            answers_max: settings.cached_answers_per_query.max(1),
            bytes_max: settings.cached_bytes.as_usize(),
            text_max: settings.cached_query_size.as_usize(),
            policy: settings.policy(),
        }
    }

    /// The plan of a query string without its subscriber.
    fn of(&self, text: &str) -> Result<Rc<Plan>, ParamFault> {
        if text.len() > self.text_max {
            return Ok(Rc::new(Plan::parse(text)?));
        }
        let mut known = self.known.borrow_mut();
        if let Some(plan) = known.young.get(text) {
            return Ok(plan.clone());
        }
        let plan = match known.old.remove(text) {
            Some(plan) => plan,
            None => Rc::new(Plan::parse(text)?),
        };
        if known.young.len() >= self.queries_max / 2 {
            self.forget_old(&mut known);
        }
        known.young.insert(text.into(), plan.clone());
        Ok(plan)
    }

    fn forget_old(&self, known: &mut Generations) {
        known.old = std::mem::take(&mut known.young);
        // Counted anew: a plan may have been in use, and have got answers, after it was forgotten.
        let bytes = known.old.values().map(|plan| plan.answers.borrow().bytes());
        self.kept.set(bytes.sum());
    }

    fn classes_of(&self, target: &NfType, table: Option<&TypeTable>) -> Rc<Classes> {
        let Some(table) = table else { return Rc::default() };
        let mut known = self.classes.borrow_mut();
        match known.get(target) {
            Some((generation, classes)) if *generation == table.generation() => classes.clone(),
            _ => {
                let classes = Rc::new(Classes::of(table));
                if known.len() >= TYPES_MAX {
                    known.clear();
                }
                known.insert(target.clone(), (table.generation(), classes.clone()));
                classes
            }
        }
    }

    fn keep(&self, plan: &Plan, key: Key, answer: &Rc<Answer>) {
        if self.kept.get() + answer.body.len() > self.bytes_max {
            let mut known = self.known.borrow_mut();
            self.forget_old(&mut known);
            drop(known);
            if self.kept.get() + answer.body.len() > self.bytes_max {
                return;
            }
        }
        let mut answers = plan.answers.borrow_mut();
        if answers.by_key.len() >= self.answers_max {
            self.kept.set(self.kept.get().saturating_sub(answers.bytes()));
            answers.by_key.clear();
        }
        self.kept.set(self.kept.get() + answer.body.len());
        answers.by_key.insert(key, answer.clone());
    }
}

impl Plan {
    fn parse(text: &str) -> Result<Self, ParamFault> {
        let uri = http::Uri::try_from(format!("/?{text}"))
            .map_err(|_| ParamFault::new("query", "expected a URI query"))?;
        let pairs =
            sbi::query::pairs(&uri).map_err(|error| ParamFault::new(&error.name, "expected UTF-8"))?;
        let query = Query::parse(&pairs)?;
        let target = query
            .target
            .clone()
            .ok_or_else(|| ParamFault::missing("target-nf-type"))?;
        Ok(Self {
            query,
            text: text.into(),
            target,
            answers: RefCell::default(),
        })
    }
}

impl Answers {
    fn bytes(&self) -> usize {
        self.by_key.values().map(|answer| answer.body.len()).sum()
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
    worker
        .check_home_nrf(plan.query.home_nrf.as_deref())
        .map_err(|expected| ParamFault::new("hnrf-uri", expected))?;
    let destination = forwards_to(worker, &plan, request);
    if let Some(destination) = destination.as_ref().filter(|one| !one.only_when_empty) {
        return Ok(worker.forwarder().ask(destination, request).await);
    }
    let subscriber = supi.as_deref().or(gpsi.as_deref());
    let group = match subscriber {
        Some(subscriber) if !plan.query.names_groups && worker.slf().concerns(&plan.target) => {
            let snapshot = worker.snapshot();
            match worker.slf().group_of(&plan.target, subscriber, &snapshot).await {
                Resolution::Group(group) => Group::Is(group),
                Resolution::Unknown => Group::None,
                Resolution::Unavailable => Group::NotAsked,
            }
        }
        _ => Group::NotAsked,
    };
    let answer = answer_of(worker, &plan, supi, gpsi, group);
    worker.counters().count(Event::Discovered);
    if answer.profiles == 0 {
        worker.counters().count(Event::FoundNothing);
        if let Some(destination) = &destination {
            return Ok(worker.forwarder().ask(destination, request).await);
        }
    }
    Ok(respond(worker, request, &answer))
}

fn forwards_to(worker: &Worker, plan: &Plan, request: &Request) -> Option<Destination> {
    let query = &plan.query;
    let question = Question {
        operation: ForwardedOperation::Discovery,
        target: Some(&plan.target),
        services: &query.services,
        home_nrf: query.home_nrf.as_deref(),
        target_plmns: &query.target_plmns,
    };
    worker.forwarder().destination(&question, request.headers())
}

fn answer_of(
    worker: &Worker,
    plan: &Plan,
    supi: Option<Cow<'_, str>>,
    gpsi: Option<Cow<'_, str>>,
    group: Group,
) -> Rc<Answer> {
    let snapshot = worker.snapshot();
    let table = snapshot.of_type(&plan.target).map(|table| &**table);
    let generation = table.map_or(0, TypeTable::generation);
    let plans = worker.plans();
    let class = {
        let mut answers = plan.answers.borrow_mut();
        if answers.generation != generation {
            plans.kept.set(plans.kept.get().saturating_sub(answers.bytes()));
            *answers = Answers {
                generation,
                classes: plans.classes_of(&plan.target, table),
                by_key: AHashMap::new(),
            };
        }
        answers.classes.class(supi.as_deref(), gpsi.as_deref())
    };
    let key = class.map(|class| Key {
        group: group.clone(),
        class,
    });
    if let Some(key) = &key
        && let Some(answer) = plan.answers.borrow().by_key.get(key)
    {
        worker.counters().count(Event::AnswerReused);
        return answer.clone();
    }
    let about = About {
        supi: supi.as_deref(),
        gpsi: gpsi.as_deref(),
        group: group.as_about(),
    };
    // A stored search must not name a subscriber to whoever shares the answer.
    let shared = (supi.is_none() && gpsi.is_none()) || plan.answers.borrow().classes.is_trivial();
    let search = shared
        .then(|| super::searches::id_of(&plan.text, about.group))
        .flatten();
    let answer = Rc::new(select(
        &plan.query,
        about,
        table,
        &plans.policy,
        &Extent::Page(search),
    ));
    if let Some(key) = key {
        plans.keep(plan, key, &answer);
    }
    answer
}

/// The answer of a stored search: the query is asked again, of the registry as it is now.
pub(super) fn stored(
    worker: &Worker,
    text: &str,
    group: Option<Option<&str>>,
    extent: &Extent,
) -> Result<Answer, ParamFault> {
    let plan = worker.plans().of(text)?;
    let snapshot = worker.snapshot();
    let table = snapshot.of_type(&plan.target).map(|table| &**table);
    let about = About {
        group,
        ..About::default()
    };
    Ok(select(&plan.query, about, table, &worker.plans().policy, extent))
}

pub(super) fn respond(worker: &Worker, request: &Request, answer: &Answer) -> Response {
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
    response
        .headers_mut()
        .insert(CACHE_CONTROL, answer.freshness.clone());
    response.headers_mut().insert(ETAG, answer.etag.clone());
    response
}

/// A query from wherever, judged on a profile: for the fuzz target.
pub(crate) fn try_query(raw: &str, profile: Option<&model::NfProfile>) {
    let Ok((rest, ..)) = cut_subscriber(raw) else {
        return;
    };
    assert!(rest.len() <= raw.len());
    let Ok(plan) = Plan::parse(&rest) else { return };
    let Some(profile) = profile else { return };
    for test in &plan.query.tests {
        let _ = test.holds(profile);
    }
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

    #[test]
    fn long_queries_are_not_kept() {
        let settings = crate::config::Discovery {
            cached_query_size: settings::ByteSize::kib(1),
            ..crate::config::Discovery::default()
        };
        let plans = Plans::new(&settings);
        let query = |length: usize| {
            let more = "y".repeat(length);
            format!("target-nf-type=UDM&requester-nf-type=AMF&x={more}")
        };
        let same = |text: &str| Rc::ptr_eq(&plans.of(text).unwrap(), &plans.of(text).unwrap());
        assert!(same(&query(900)) && !same(&query(1_000)));
        assert_eq!(plans.known.borrow().young.len(), 1);
    }
}
