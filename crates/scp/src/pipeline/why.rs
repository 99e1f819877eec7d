//! Explanations of the route of a request. An explanation runs the steps of the pipeline with a recorder, up to the
//! connection, so that it shows the decisions about a real request.

use std::net::{Ipv4Addr, SocketAddr};
use std::rc::Rc;
use std::time::Instant;

use http::Method;
use http::uri::PathAndQuery;
use routing::network::{Network, NfStatus, ServiceRef};
use routing::policy::{Places, ServicePolicy};
use routing::target::Has;
use sbi::headers::{discovery, names};
use sbi::name::AUTHORITY;
use sbi::{Body, Fields, Name, Peer as Connection, Request, RequestHead, Value as FieldValue};
use serde_json::{Value, json};
use tokio::sync::oneshot;

use super::attempts::Attempts;
use super::deadline::Deadline;
use super::message::{Admitted, Arrived, Caller, Outgoing, Step, Target};
use super::planner::{Plan, Round};
use super::recorder::Notes;
use super::{Pipeline, loops};
use crate::live::Live;
use crate::refusal::{Refusal, Refused};

/// Every service instance, in the order of the selection.
pub(crate) fn routes(network: &Network, live: &Live) -> Value {
    let mut all: Vec<ServiceRef> = network
        .producers()
        .flat_map(|producer| {
            (0..producer.services.len()).filter_map(|at| ServiceRef::new(producer.clone(), at))
        })
        .collect();
    sort(&mut all, live);
    all.iter().map(|one| row(one, live)).collect()
}

fn sort(all: &mut [ServiceRef], live: &Live) {
    all.sort_by_key(|one| {
        let service = one.service();
        (
            service.name.clone(),
            service.status,
            live.distances.of(one.producer.locality.as_deref()),
            service.priority,
            one.producer.id.clone(),
        )
    });
}

fn row(one: &ServiceRef, live: &Live) -> Value {
    let (producer, service) = (&one.producer, one.service());
    let distance = live.distances.of(producer.locality.as_deref());
    let hop = producer
        .locality
        .as_deref()
        .filter(|_| distance == Places::ELSEWHERE)
        .and_then(|locality| live.next_hops.get(locality)?.first());
    json!({
        "service": &*service.name,
        "nfType": &*producer.nf_type,
        "nfInstanceId": &*producer.id,
        "sets": producer.sets.iter().map(|set| &**set).collect::<Vec<_>>(),
        "endpoint": one.endpoint().to_string(),
        "status": status(service.status),
        "distance": (match distance { Places::SITE => "site", Places::REGION => "region", _ => "elsewhere" }),
        "through": hop.map(ToString::to_string),
        "priority": service.priority,
        "capacity": service.capacity,
        "load": service.load,
    })
}

fn status(status: NfStatus) -> &'static str {
    match status {
        NfStatus::Registered => "REGISTERED",
        NfStatus::CanaryRelease => "CANARY_RELEASE",
        NfStatus::Undiscoverable => "UNDISCOVERABLE",
        NfStatus::Suspended => "SUSPENDED",
    }
}

/// A request to be explained.
pub(crate) struct Question {
    request: RequestHead,
    body: Body,
    answer: oneshot::Sender<Value>,
}

impl Question {
    /// Builds the request of these parameters, and the receiver of the explanation. `method` and `path` are those of
    /// the request, `authority` is its `:authority`, `body` its body; `apiroot`, `nfset` and `nfinst` are its target or binding;
    /// names of headers (`3gpp-sbi-…`, `user-agent`, `via`, `authorization`) and `header=NAME: VALUE` are headers, all
    /// others are discovery parameters.
    pub(crate) fn new(asked: &[(String, String)]) -> Result<(Self, oneshot::Receiver<Value>), String> {
        let named = |name: &str| {
            let found = asked.iter().find(|(known, _)| known.eq_ignore_ascii_case(name));
            found.map(|(_, value)| value.as_str())
        };
        let path = named("path").unwrap_or_default();
        let target: PathAndQuery = match path.starts_with('/') {
            true => path
                .parse()
                .map_err(|error| format!("`{path}` is not a path: {error}"))?,
            false => {
                return Err(
                    "expected `path`, such as path=/nudm-sdm/v2/imsi-001010000000001/am-data".to_owned(),
                );
            }
        };
        let method = named("method").unwrap_or("GET");
        let method: Method = method
            .parse()
            .map_err(|_| format!("`{method}` is not a method; expected one such as GET"))?;
        let mut request = RequestHead::to(method, header_value("path", target.as_str())?);
        let headers = &mut request.fields;
        for (name, value) in asked {
            add_header(headers, &name.to_ascii_lowercase(), value)?;
        }
        let binding = match (named("nfinst"), named("nfset")) {
            (Some(instance), Some(set)) => Some(format!("bl=nf-instance; nfinst={instance}; nfset={set}")),
            (Some(instance), None) => Some(format!("bl=nf-instance; nfinst={instance}")),
            (None, Some(set)) => Some(format!("bl=nf-set; nfset={set}")),
            (None, None) => None,
        };
        if let Some(binding) = binding {
            headers.set(names::ROUTING_BINDING, header_value("nfset", &binding)?);
        }
        let body = named("body").map_or_else(Body::empty, |body| body.to_owned().into());
        let (answer, answered) = oneshot::channel();
        let question = Self {
            request,
            body,
            answer,
        };
        Ok((question, answered))
    }
}

fn add_header(headers: &mut Fields, name: &str, value: &str) -> Result<(), String> {
    match name {
        "method" | "path" | "nfinst" | "nfset" | "body" => {}
        "authority" => headers.set(AUTHORITY, header_value(name, value)?),
        "header" => {
            let (name, value) = value
                .split_once(':')
                .ok_or_else(|| format!("`{value}` is not a header; expected NAME: VALUE"))?;
            let (name, value) = (name.trim().to_ascii_lowercase(), value.trim());
            let header = Name::new(name.as_bytes()).map_err(|_| format!("`{name}` is not a header"))?;
            headers.append(header, header_value(&name, value)?);
        }
        "apiroot" => {
            headers.set(names::TARGET_API_ROOT, header_value(name, value)?);
        }
        name if name.starts_with("3gpp-") || ["user-agent", "via", "authorization"].contains(&name) => {
            let header = Name::new(name.as_bytes()).map_err(|_| format!("`{name}` is not a header"))?;
            headers.append(header, header_value(name, value)?);
        }
        name => {
            if !discovery::set(headers, name, value) {
                return Err(format!("`{name}` is not a discovery parameter"));
            }
        }
    }
    Ok(())
}

fn header_value<'v>(name: &str, value: &'v str) -> Result<FieldValue<'v>, String> {
    FieldValue::try_from(value).map_err(|_| format!("the value of `{name}` is not a valid header value"))
}

/// The candidates and attempts that an explanation shows.
#[derive(Default)]
struct Shown {
    candidates: Vec<Value>,
    attempts: Vec<Value>,
    /// Whom the first request would be sent to.
    chosen: Option<ServiceRef>,
    /// Who was passed over before that, and why.
    passed: Vec<(ServiceRef, String)>,
}

impl Pipeline {
    /// Explains a request. No producer gets a request; an NRF is queried as for the request itself.
    pub(crate) async fn explain(&self, question: Question) {
        let (notes, mut shown) = (Notes::default(), Shown::default());
        let outcome = self
            .follow((question.request, question.body), &notes, &mut shown)
            .await;
        let (step, decision) = match outcome {
            Ok(decision) => ("relay", decision),
            Err((step, refused)) => (step, describe_refusal(&refused)),
        };
        let notes = notes.0.into_inner();
        let why: Vec<String> = notes
            .iter()
            .map(|(step, text)| format!("{step}: {text}"))
            .collect();
        // The receiver may have given up.
        let _ = question.answer.send(json!({
            "decision": decision,
            "decidedBy": step,
            "why": why,
            "candidates": shown.candidates,
            "attempts": shown.attempts,
        }));
    }

    /// Runs a request through the steps, as [`Pipeline::answer`] does. Returns the outcome, or the refusal with its
    /// step.
    async fn follow(
        &self,
        request: (RequestHead, Body),
        notes: &Notes,
        shown: &mut Shown,
    ) -> Result<String, (&'static str, Box<Refused>)> {
        let at = |step: &'static str| move |refused| (step, refused);
        let mut request = request_of(request);
        let (address, unsure) = self.arrival.read(&mut request).map_err(at("arrival"))?;
        if self.own.is_own(&request, address.path()) {
            return Ok("The SCP itself answers the request: it is for a resource of the SCP.".to_owned());
        }
        let mut arrived = Arrived {
            has: Has::among(request.headers()),
            metrics: self
                .services
                .of(address.service(), || self.offers(address.service())),
            request,
            address,
            unsure,
        };
        let admitted = self.admission.inspect(&mut arrived, notes);
        let mut admitted = admitted.map_err(at("admission"))?;
        let config = &self.live.config;
        let headers = admitted.arrived.request.headers();
        let has = admitted.arrived.has;
        let hops = loops::hops(headers, has, &self.answer.name, config.max_forward_hops);
        let hops = hops.map_err(at("loops"))?;
        self.mediator.request(&mut admitted).map_err(at("mediator"))?;
        let arrived = &*admitted.arrived;
        let policy = self.live.policies.of(arrived.address.service());
        let deadline = Deadline::of(arrived.request.headers(), arrived.has, &config.late_requests);
        let deadline = deadline.map_err(at("deadline"))?;
        let plan = self.planner.plan(&admitted, policy, &deadline, notes).await;
        let mut plan = plan.map_err(|problem| ("planner", Refusal::Target.with(problem)))?;
        let Admitted {
            arrived,
            caller,
            priority,
        } = admitted;
        let outgoing = Outgoing::new(arrived, hops, deadline, &self.answer.via, &self.answer.name);
        let before = plan.clone();
        let attempts = Attempts::new(&self.planner, &caller, &mut plan);
        let outcome = self.attempt(attempts, &caller, &outgoing, policy, priority, shown);
        let ended = (shown.chosen.as_ref(), &shown.passed[..]);
        shown.candidates = self.judged(&before, &caller, &outgoing, ended);
        outcome.map_err(at("relay"))
    }

    /// The candidates of a plan, each with why it is chosen or not.
    fn judged(
        &self,
        plan: &Plan,
        caller: &Caller,
        outgoing: &Outgoing,
        (chosen, passed): (Option<&ServiceRef>, &[(ServiceRef, String)]),
    ) -> Vec<Value> {
        let round = Round {
            caller,
            headers: &outgoing.headers,
            tried: &[],
            reach: match plan.named {
                Some(_) => plan.stage.reroute.reach().unwrap_or(plan.reach),
                None => plan.reach,
            },
            rested: false,
        };
        let named = plan.named.as_ref().and_then(|named| named.service.as_ref());
        let mut plan = plan.clone();
        let name = plan.named.clone();
        self.planner.complete(&mut plan, name.as_deref());
        let mut others: Vec<ServiceRef> = plan.others.to_vec();
        sort(&mut others, &self.live);
        let others = others.iter().map(|one| {
            let mut row = row(one, &self.live);
            let standing = self.planner.standing_in_words(&plan, one, &round);
            row["standing"] = standing.into();
            let passed = passed.iter().find(|(passed, _)| is_same(passed, one));
            row["outcome"] = match (chosen, passed) {
                (Some(chosen), _) if is_same(chosen, one) => CHOSEN.to_owned(),
                (_, Some((_, why))) => why.clone(),
                (Some(chosen), None) if standing.starts_with("may serve") => {
                    self.planner.passed_over(&plan, one, chosen, &round)
                }
                _ => standing.to_owned(),
            }
            .into();
            row
        });
        let named = named.map(|one| {
            let mut row = row(one, &self.live);
            row["standing"] = "named by the request".into();
            row["outcome"] = match chosen {
                Some(chosen) if is_same(chosen, one) => CHOSEN,
                _ => "named by the request, and not used: see the attempts",
            }
            .into();
            row
        });
        named.into_iter().chain(others).collect()
    }

    /// Lists the attempts of the relay, if each of them failed.
    fn attempt(
        &self,
        mut attempts: Attempts<'_>,
        caller: &Caller,
        outgoing: &Outgoing,
        policy: &ServicePolicy,
        priority: u8,
        shown: &mut Shown,
    ) -> Step<String> {
        let mut first = None;
        let mut obstacle: Option<Box<Refused>> = None;
        while let Some(target) = attempts.next(&outgoing.headers) {
            let verdict = self.verdict(&target, &attempts, caller, outgoing, priority);
            let said = match (&verdict, &first) {
                (Ok(said), None) => said.clone(),
                (Ok(said), Some(_)) => {
                    format!("{said}, if the one before fails in a way that allows another attempt")
                }
                (Err(refused), _) => format!("passed over: {}", detail(refused)),
            };
            if let (Err(_), Some(one)) = (&verdict, &target.service) {
                shown.passed.push((one.clone(), said.clone()));
            }
            let hop = target.hop(attempts.hop);
            shown.attempts.push(json!({
                "target": target.root.to_string(),
                "nfInstanceId": target.service.as_ref().map(|one| &*one.producer.id),
                "through": hop.map(ToString::to_string),
                "verdict": said,
            }));
            match verdict {
                Ok(_) => {
                    attempts.sent();
                    if first.is_none() {
                        shown.chosen.clone_from(&target.service);
                    }
                    first.get_or_insert_with(|| describe_target(&target, hop.is_some()));
                    let farthest = attempts.plan.stage.reroute.reach();
                    let sent = shown.attempts.len() < usize::from(policy.attempts);
                    if !sent || !farthest.is_some_and(|far| attempts.may_follow(&outgoing.headers, far)) {
                        break;
                    }
                }
                Err(refused) => {
                    if refused.refusal == Refusal::Forbidden {
                        obstacle = Some(refused);
                    } else {
                        obstacle.get_or_insert(refused);
                    }
                    if !attempts.pass_over() {
                        break;
                    }
                }
            }
        }
        match (first, obstacle) {
            (Some(decision), _) => Ok(decision),
            (None, Some(refused)) => Err(refused),
            (None, None) => Err(Refusal::NoProducer.into()),
        }
    }

    /// Whether a request would be sent to a target, and with what.
    fn verdict(
        &self,
        target: &Target,
        attempts: &Attempts<'_>,
        caller: &Caller,
        outgoing: &Outgoing,
        priority: u8,
    ) -> Step<String> {
        let authorizer = &self.relay.authorizer;
        if let Err(why) = authorizer.allowed(target, caller, outgoing, attempts.plan.callback) {
            let problem = sbi::problem::Problem::new(sbi::problem::Cause::Forbidden);
            return Err(Refusal::Forbidden.with(problem.detail(why)));
        }
        let way = target.way(attempts.hop, outgoing.address.service());
        let producers = &self.relay.producers;
        producers.would_send(way, priority, Instant::now())?;
        let delegated = attempts.plan.discovered;
        let token = match authorizer.wants_token(outgoing, target, delegated) {
            Some(_) => ", with an access token that this SCP gets from the NRF",
            None => "",
        };
        Ok(format!("would be sent{token}"))
    }
}

/// What is shown of the candidate that gets the request.
const CHOSEN: &str = "chosen";

/// Whether both are one service instance of one producer.
fn is_same(one: &ServiceRef, other: &ServiceRef) -> bool {
    one.producer.id == other.producer.id && std::ptr::eq(one.service(), other.service())
}

fn request_of((head, body): (RequestHead, Body)) -> Request {
    let nowhere = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    let connection = Connection {
        addr: nowhere,
        local: nowhere,
        tls: None,
        connection: 0,
        given_up: sbi::GivenUp::default(),
    };
    Request {
        head,
        body,
        peer: Rc::new(connection),
        received: Instant::now(),
        stream: 1,
        waited: std::time::Duration::ZERO,
    }
}

fn describe_target(target: &Target, through: bool) -> String {
    let whom = match &target.service {
        Some(one) => format!("{} {}", one.producer.nf_type, one.producer.id),
        None => "a destination without a known profile".to_owned(),
    };
    let through = if through {
        ", through an SCP of its region"
    } else {
        ""
    };
    format!("The request goes to {} ({whom}){through}.", target.root)
}

fn describe_refusal(refused: &Refused) -> String {
    let details = refused.problem.details();
    format!(
        "The SCP refuses the request with {} {} (reason `{}`): {}.",
        refused.problem.status().as_u16(),
        details.cause.as_deref().unwrap_or_default(),
        refused.refusal.label(),
        detail(refused)
    )
}

fn detail(refused: &Refused) -> &str {
    refused.problem.details().detail.as_deref().unwrap_or("no detail")
}
