//! Nnrf_NFDiscovery (TS 29.510 §6.2): the steps of a discovery.
//!
//! ```text
//! query string, subscriber cut out ─ known? ─ no: parse ─┐
//!                                       └────── plan ◄───┘
//!   goes to another NRF? ─ ask it, pass its answer on
//!   subscriber of a located type? ─ ask the location function for the group
//!   answer kept for this group and this state of the registry? ─ yes: send its bytes
//!   no: select, order, render, keep, send
//!   nothing found: goes to another NRF by a rule, or by what that has said of itself (`nrfInfo`)? ─ ask it
//! ```

use std::borrow::Cow;
use std::rc::Rc;

use function::sbi::{Answering, Call, later, now};
use http::StatusCode;
use registry::TypeTable;
use sbi::name::{CACHE_CONTROL, CONTENT_ENCODING, ETAG, VARY};
use sbi::problem::{Cause, Problem};
use sbi::{Request, Response, Value};

use crate::config::{ForwardedOperation, WhenUnavailable};
use crate::discovery::{
    About, Answer, Answers, Class, Extent, Group, Key, ParamFault, Plan, select, select_noting,
};
use crate::events::Event;
use crate::forwarding::{Destination, Question};
use crate::slf::Resolution;
use crate::worker::Worker;

/// `/nf-instances` of the discovery service. What this NRF knows is answered at once, without a future in memory of its own.
pub(crate) fn discover(call: Call<Worker>) -> Answering<Worker> {
    let (worker, request) = (&call.worker, &call.request);
    let found = match Asked::read(worker, request) {
        Err(fault) => return now(Err(refused(worker, fault))),
        Ok(asked) if asked.waits(worker) => None,
        Ok(asked) => Some(found(worker, request, &asked, Group::NotAsked)),
    };
    match found {
        None => later(ask_others(call)),
        Some(Ok(response)) => now(Ok(response)),
        Some(Err(elsewhere)) => {
            later(async move { Ok(call.worker.forwarder().ask(&elsewhere, &call.request).await) })
        }
    }
}

fn refused(worker: &Worker, fault: ParamFault) -> Problem {
    worker.counters().count(Event::BadRequest);
    fault.into()
}

/// A discovery as its consumer asks for it.
struct Asked<'r> {
    plan: Rc<Plan>,
    supi: Option<Cow<'r, str>>,
    gpsi: Option<Cow<'r, str>>,
    /// Another NRF that a rule names.
    destination: Option<Destination>,
}

impl<'r> Asked<'r> {
    fn read(worker: &Worker, request: &'r Request) -> Result<Self, ParamFault> {
        let raw = request.query().unwrap_or_default();
        let (text, supi, gpsi) = cut_subscriber(raw)?;
        // Complex queries name subscribers inside; all others are the same for every subscriber.
        let plan = worker.plans().of(&text)?;
        worker
            .check_home_nrf(plan.query.home_nrf.as_deref())
            .map_err(|expected| ParamFault::new("hnrf-uri", expected))?;
        let destination = forwards_to(worker, &plan, request);
        Ok(Self {
            plan,
            supi,
            gpsi,
            destination,
        })
    }

    /// Another NRF that answers in any case.
    fn forwarded(&self) -> Option<&Destination> {
        self.destination.as_ref().filter(|one| !one.only_when_empty)
    }

    /// The subscriber whose group a location function has to be asked for.
    fn located(&self, worker: &Worker) -> Option<&str> {
        let subscriber = self.supi.as_deref().or(self.gpsi.as_deref());
        let plan = &self.plan;
        subscriber.filter(|_| !plan.query.names_groups && worker.slf().concerns(&plan.target))
    }

    /// Whether others are asked before this NRF can answer.
    fn waits(&self, worker: &Worker) -> bool {
        self.forwarded().is_some() || self.located(worker).is_some()
    }
}

/// Asks other functions first: another NRF by a rule, or the location function for the group of the subscriber.
async fn ask_others(call: Call<Worker>) -> Result<Response, Problem> {
    let (worker, request) = (&call.worker, &call.request);
    let asked = Asked::read(worker, request).map_err(|fault| refused(worker, fault))?;
    if let Some(destination) = asked.forwarded() {
        return Ok(worker.forwarder().ask(destination, request).await);
    }
    let group = match asked.located(worker) {
        None => Group::NotAsked,
        Some(subscriber) => {
            let snapshot = worker.snapshot();
            let target = &asked.plan.target;
            match worker.slf().group_of(target, subscriber, &snapshot).await {
                Resolution::Group(group) => Group::Is(group),
                Resolution::Unknown => Group::None,
                Resolution::Unavailable => match worker.slf().when_unavailable() {
                    (WhenUnavailable::Refuse, _) => {
                        let problem = Problem::new(Cause::TargetNfNotReachable);
                        let problem =
                            problem.detail("no location function answered for the group of the subscriber");
                        return Ok(problem.into_response());
                    }
                    (chosen, validity) => Group::Unavailable {
                        none: chosen == WhenUnavailable::NoGroup,
                        validity,
                    },
                },
            }
        }
    };
    match found(worker, request, &asked, group) {
        Ok(response) => Ok(response),
        Err(elsewhere) => Ok(worker.forwarder().ask(&elsewhere, request).await),
    }
}

/// The answer of this NRF.
///
/// # Errors
/// Where the discovery goes when this NRF finds nothing.
fn found(
    worker: &Worker,
    request: &Request,
    asked: &Asked<'_>,
    group: Group,
) -> Result<Response, Destination> {
    let (supi, gpsi) = (asked.supi.as_deref(), asked.gpsi.as_deref());
    let answer = answer_of(worker, &asked.plan, supi, gpsi, group);
    worker.counters().count(Event::Discovered);
    if answer.profiles == 0 {
        worker.counters().count(Event::FoundNothing);
        let elsewhere = || worker.served_elsewhere(&asked.plan.query, supi, gpsi, request.headers());
        if let Some(destination) = asked.destination.clone().or_else(elsewhere) {
            return Err(destination);
        }
    }
    Ok(respond(worker, request, &answer))
}

fn forwards_to(worker: &Worker, plan: &Plan, request: &Request) -> Option<Destination> {
    let question = question(plan);
    worker.forwarder().destination(&question, request.headers())
}

/// The attributes of a discovery that decide which NRF answers it.
pub(crate) fn question(plan: &Plan) -> Question<'_> {
    let query = &plan.query;
    Question {
        operation: ForwardedOperation::Discovery,
        target: Some(&plan.target),
        services: &query.services,
        home_nrf: query.home_nrf.as_deref(),
        target_plmns: &query.target_plmns,
    }
}

fn answer_of(
    worker: &Worker,
    plan: &Plan,
    supi: Option<&str>,
    gpsi: Option<&str>,
    group: Group,
) -> Rc<Answer> {
    let snapshot = worker.snapshot();
    let table = snapshot.of_type(&plan.target).map(|table| &**table);
    let generation = table.map_or(0, TypeTable::generation);
    let plans = worker.plans();
    let (class, is_trivial) = {
        let mut answers = plan.answers.borrow_mut();
        if answers.generation != generation {
            plans.kept.set(plans.kept.get().saturating_sub(answers.bytes()));
            *answers = Answers::of(generation);
        }
        match (supi, gpsi) {
            (None, None) => (Some(Class::default()), true),
            _ => {
                let classes = answers.classes(|| plans.classes_of(&plan.target, table));
                (classes.class(supi, gpsi), classes.is_trivial())
            }
        }
    };
    let key = class.map(|class| Key {
        group: group.clone(),
        class,
    });
    if let Some(key) = &key
        && let Some(answer) = plan.answers.borrow().get(key)
    {
        worker.counters().count(Event::AnswerReused);
        return answer.clone();
    }
    let about = About {
        supi,
        gpsi,
        group: group.as_about(),
        validity: group.validity(),
    };
    // A cached answer serves several consumers, so the stored search must not name a subscriber.
    let search = is_trivial
        .then(|| super::searches::id_of(&plan.text, about.group))
        .flatten();
    let candidates = table.map(|table| plan.candidates(table)).unwrap_or_default();
    let answer = Rc::new(select_noting(
        &plan.query,
        about,
        candidates.into_iter(),
        &plans.policy,
        &Extent::Page(search),
        &mut (),
    ));
    if let Some(key) = key {
        plans.keep(plan, key, &answer);
    }
    answer
}

/// Answers a stored search: runs the query on the present registry.
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
    let packed = match sbi::coding::accepts_gzip(headers) {
        true => answer.packed(),
        false => None,
    };
    let etag = packed.map_or(&answer.etag, |packed| &packed.etag);
    let response = if sbi::etag::none_match_hits(headers, etag.to_str().unwrap_or_default()) {
        worker.counters().count(Event::NotModified);
        Response::new(StatusCode::NOT_MODIFIED)
    } else {
        match packed {
            Some(packed) => sbi::json::response_of(StatusCode::OK, packed.body.clone())
                .with(CONTENT_ENCODING, Value::from_static("gzip")),
            None => sbi::json::response_of(StatusCode::OK, answer.body.clone()),
        }
    };
    response
        .with(CACHE_CONTROL, &answer.freshness)
        .with(ETAG, etag)
        .with(VARY, Value::from_static("accept-encoding"))
}

/// Parses a query and tests a profile by it, for the fuzz target.
pub(crate) fn try_query(raw: &str, profile: Option<&model::NfProfile>) {
    let Ok((rest, ..)) = cut_subscriber(raw) else {
        return;
    };
    assert!(rest.len() <= raw.len());
    let Ok(plan) = Plan::parse(&rest) else { return };
    let Some(profile) = profile else { return };
    for test in plan.query.tests.iter() {
        let _ = test.holds(profile);
    }
}

/// What [`cut_subscriber`] finds.
pub(crate) type Cut<'a> = (Cow<'a, str>, Option<Cow<'a, str>>, Option<Cow<'a, str>>);

/// Takes `supi` and `gpsi` out of a query string, so that what remains is the same for all subscribers.
pub(crate) fn cut_subscriber(raw: &str) -> Result<Cut<'_>, ParamFault> {
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
