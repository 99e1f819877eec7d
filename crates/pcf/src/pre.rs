//! The policy runtime engine: runs the project of a service for an event of an association.

use std::pin::pin;
use std::time::Instant;

use ::policy::{Fault, Input, Member, Project, Rejection, Scratch, Service, Trace};
use function::sbi::elsewhere;
use serde_json::{Map, Value, json};
use time::OffsetDateTime;

use crate::activity::{Entry, trail};
use crate::association::Association;
use crate::association::ledger::{self, Draft};
use crate::association::messages::Message;
use crate::association::{refused, sd};
use crate::config::Fallback;
use crate::events::Event;
use crate::explain;
use crate::pds::{self, Data, Missing};
use crate::quotas::{self, Quotas};
use crate::subscriber_state;
use crate::worker::Worker;

/// What was decided.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Decision {
    /// The decision in the form of the service: `SmPolicyDecision`, `PolicyAssociation`.
    pub(crate) policy: Map<String, Value>,
    /// State variables to keep with the association.
    pub(crate) state: Map<String, Value>,
    /// State variables to keep with its subscriber.
    subscriber_state: Map<String, Value>,
    /// Limits whose quotas apply.
    pub(crate) limits: Vec<String>,
    /// Messages to servers of the operator, for when it is written.
    pub(crate) messages: Vec<Message>,
    /// When the time of day that the project has read is another one.
    next_change: Option<OffsetDateTime>,
}

/// The cause of [`Refusal::Late`] (TS 29.512 §5.7.3).
pub(crate) const LATE: &str = "LATE_OVERLAPPING_REQUEST";

/// Why there is no decision.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Refusal {
    /// The project refuses the request.
    Policy {
        status: u16,
        cause: String,
        detail: Option<String>,
    },
    /// The evaluation failed, and the fallback refuses the request.
    Fault(Fault),
    /// Data of the subscriber are missing, and the settings refuse a request without them.
    Missing(Missing),
    /// The request collides with a session whose establishment was begun later.
    Late,
    /// Another node has a session of this Session-Id.
    Foreign,
}

/// Decides for an event of an association: `create`, `update` or another name that projects know. `request` is what they
/// read as `$request`. The data of the subscriber come from [`pds`], its quotas and state variables from the store: the draft has
/// what the event reports, and gets what the decision changes of them.
pub(crate) async fn decide(
    worker: &Worker,
    event: &str,
    association: &Association,
    request: &Value,
    draft: &mut Draft,
) -> Result<Decision, Refusal> {
    let decided = async {
        let data = elsewhere(pin!(pds::of(worker, association))).await;
        let data = data.map_err(Refusal::Missing)?;
        with_data(worker, event, association, (request, &Value::Null), &data, draft).await
    };
    let decided = decided.await;
    decided.inspect_err(|refusal| refused(worker, event, association, refusal))
}

/// Asks the project of a session whether it accepts what an AF asks for (event `af`, `$af`). Of the decision the refusal alone counts.
pub(crate) async fn authorize(worker: &Worker, association: &Association, af: &Value) -> Result<(), Refusal> {
    const EVENT: &str = "af";
    let data = elsewhere(pin!(pds::of(worker, association))).await;
    let data = data.map_err(Refusal::Missing)?;
    let asked = (&association.context, af);
    let decided = with_data(worker, EVENT, association, asked, &data, &mut Draft::default()).await;
    let decided = decided.inspect_err(|refusal| refused(worker, EVENT, association, refusal));
    decided.map(drop)
}

/// Decides for a new association: queries the sources and subscribes to their changes. The caller ends the subscriptions
/// ([`pds::close`]) where the association does not come to be.
pub(crate) async fn decide_new(
    worker: &Worker,
    association: &mut Association,
    draft: &mut Draft,
) -> Result<Decision, Refusal> {
    let data = elsewhere(pin!(pds::open(worker, association))).await;
    let data = data.map_err(Refusal::Missing);
    let data = data.inspect_err(|refusal| refused(worker, "create", association, refusal))?;
    let asked = (&association.context, &Value::Null);
    let decided = with_data(worker, "create", association, asked, &data, draft).await;
    if let Err(refusal) = &decided {
        refused(worker, "create", association, refusal);
        pds::close(worker, association).await;
    }
    decided
}

/// A request is refused: for the record of policy events.
pub(crate) fn refused(worker: &Worker, event: &str, association: &Association, refusal: &Refusal) {
    let cause = match refusal {
        Refusal::Policy { cause, .. } => cause.as_str(),
        Refusal::Fault(_) => "policy fault",
        Refusal::Missing(Missing::User) => "USER_UNKNOWN",
        Refusal::Missing(_) => "data missing",
        Refusal::Late => LATE,
        Refusal::Foreign => "UNKNOWN_SESSION_ID",
    };
    worker.policy_events().refused(association, event, cause);
    trail::note(|| Entry::new("decision", format!("{event}: refused, {cause}")));
}

/// The subtraction of what an event reports from the quotas, in a draft.
pub(crate) async fn report(
    worker: &Worker,
    association: &Association,
    report: &Value,
    draft: &mut Draft,
) -> Result<(), Refusal> {
    let reported = quotas::report(worker, association, report, draft).await;
    reported.map_err(|error| unreadable(&error))
}

fn unreadable(error: &store::Error) -> Refusal {
    tracing::debug!(%error, "the quotas of a subscriber cannot be read");
    Refusal::Missing(Missing::Quotas)
}

fn without_state(error: &store::Error) -> Refusal {
    tracing::debug!(%error, "the state variables of a subscriber cannot be read");
    Refusal::Missing(Missing::State)
}

/// Decides with data that are known: opens the quotas and the state variables of the subscriber, evaluates, and puts into the
/// draft what the decision sets. `asked`: the request, and what an AF asks for.
async fn with_data(
    worker: &Worker,
    event: &str,
    association: &Association,
    asked: (&Value, &Value),
    data: &Data,
    draft: &mut Draft,
) -> Result<Decision, Refusal> {
    let opened = quotas::open(worker, association, &data.subscriber, draft).await;
    let quotas = opened.map_err(|error| unreadable(&error))?;
    let opened = subscriber_state::open(worker, association, draft).await;
    opened.map_err(|error| without_state(&error))?;
    let shared = draft.state.variables();
    let mut decided = decided(worker, event, association, asked, data, &quotas, &shared)?;
    let variables = std::mem::take(&mut decided.subscriber_state);
    let set = subscriber_state::set(worker, association, variables, draft).await;
    set.map_err(|error| without_state(&error))?;
    Ok(decided)
}

/// The decision of the project, with thresholds of quotas and the time at which it is made again.
fn decided(
    worker: &Worker,
    event: &str,
    association: &Association,
    (request, af): (&Value, &Value),
    data: &Data,
    quotas: &Quotas,
    subscriber_state: &Value,
) -> Result<Decision, Refusal> {
    let session = quotas.session(association);
    let state = Value::Object(association.state.clone());
    let input = Input {
        event,
        request,
        subscriber: &data.subscriber,
        counters: &data.counters,
        session: &session,
        state: &state,
        subscriber_state,
        af,
    };
    let decided = evaluated(worker, association, &input)?;
    let mut policy = quotas.attach(decided.policy);
    let next = [data.next_change, decided.next_change]
        .into_iter()
        .flatten()
        .min();
    if let Some(at) = next.filter(|_| association.kind.service() == Service::Sm) {
        let mut decision = Value::Object(policy);
        pcc::decision::revalidate(&mut decision, at);
        policy = match decision {
            Value::Object(policy) => policy,
            _ => Map::new(),
        };
    }
    Ok(Decision {
        policy,
        limits: quotas.limits(),
        ..decided
    })
}

fn evaluated(worker: &Worker, association: &Association, input: &Input<'_>) -> Result<Decision, Refusal> {
    let service = association.kind.service();
    let pair = worker.projects(service);
    let (scratch, built_in) = worker.scratches(service);
    let mut trace = trail::is_traced().then(Trace::new);
    let began = Instant::now();
    let ran = run(&pair.project, &mut scratch.borrow_mut(), input, trace.as_mut());
    worker.latencies().evaluated(service, began);
    if let Some(trace) = &trace {
        note(input.event, pair.project.name(), trace, &ran);
    }
    let fault = match ran {
        Ok(decided) => return decided.inspect_err(|_| worker.count(Event::Refused)),
        Err(fault) => fault,
    };
    worker.count(Event::PolicyFault);
    let (project, block) = (pair.project.name(), &fault.block);
    tracing::warn!(
        project,
        block,
        what = fault.what,
        "the evaluation of a policy project failed"
    );
    match worker.config().policy.fallback {
        Fallback::Refuse => Err(Refusal::Fault(fault)),
        Fallback::BuiltIn => {
            let ran = run(&pair.built_in, &mut built_in.borrow_mut(), input, None);
            ran.map_err(Refusal::Fault)?
        }
    }
}

fn run(
    project: &Project,
    scratch: &mut Scratch,
    input: &Input<'_>,
    trace: Option<&mut Trace>,
) -> Result<Result<Decision, Refusal>, Fault> {
    let decision = project.decide(scratch, input, OffsetDateTime::now_utc(), trace)?;
    if let Some(rejection) = decision.rejection() {
        return Ok(Err(refusal(rejection)));
    }
    let Value::Object(policy) = decision.to_json() else {
        return Ok(Ok(Decision {
            policy: Map::new(),
            state: Map::new(),
            subscriber_state: Map::new(),
            limits: Vec::new(),
            messages: Vec::new(),
            next_change: None,
        }));
    };
    let variables = |set: &[Member<'_>]| {
        let set = set.iter();
        set.filter_map(|(name, value)| Some(((*name).to_owned(), serde_json::to_value(value).ok()?)))
            .collect()
    };
    Ok(Ok(Decision {
        policy,
        state: variables(decision.state()),
        subscriber_state: variables(decision.subscriber_state()),
        limits: Vec::new(),
        messages: decision.notifications().iter().map(Message::of).collect(),
        next_change: decision.next_change(),
    }))
}

/// Keeps which blocks have decided what.
fn note(event: &str, project: &str, trace: &Trace, ran: &Result<Result<Decision, Refusal>, Fault>) {
    trail::note(|| {
        let mut body = json!({"blocks": trace.events.iter().map(explain::block).collect::<Vec<_>>()});
        match ran {
            Ok(Ok(decision)) => body["decision"] = Value::Object(decision.policy.clone()),
            Ok(Err(_)) => {}
            Err(fault) => body["fault"] = json!({"block": fault.block, "what": fault.what}),
        }
        Entry::new("decision", format!("{event}: project {project}")).body(body)
    });
}

fn refusal(rejection: &Rejection<'_>) -> Refusal {
    let cause = rejection.cause;
    // TS 29.512 table 5.7.3-1, TS 29.507 table 5.7.3-1: 403 is what a project means that does not say another status.
    let status = match (rejection.status, cause) {
        (
            403,
            "USER_UNKNOWN" | "ERROR_INITIAL_PARAMETERS" | "ERROR_TRIGGER_EVENT" | "ERROR_REQUEST_PARAMETERS",
        ) => 400,
        (status, _) => status,
    };
    Refusal::Policy {
        status,
        cause: cause.to_owned(),
        detail: rejection.detail.map(str::to_owned),
    }
}

/// Keeps what was decided with its association.
pub(crate) fn keep(association: &mut Association, decision: Decision) {
    refused::forget(association);
    let mut policy = decision.policy;
    sd::keep_part(association, pcc::sd::split(&mut policy));
    association.policy = policy;
    for (name, value) in decision.state {
        match value {
            Value::Null => drop(association.state.shift_remove(&name)),
            value => drop(association.state.insert(name, value)),
        }
    }
    association.messages = decision.messages.into();
    ledger::keep_limits(association, decision.limits);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::association::Kind;

    #[test]
    fn a_state_variable_that_is_set_to_null_is_removed() {
        let mut association = Association::new(Kind::Am, json!({}));
        for (set, kept) in [
            (json!({"a": 1, "b": 2}), json!({"a": 1, "b": 2})),
            (json!({"a": null, "c": null}), json!({"b": 2})),
        ] {
            let decision = Decision {
                policy: Map::new(),
                state: set.as_object().unwrap().clone(),
                subscriber_state: Map::new(),
                limits: Vec::new(),
                messages: Vec::new(),
                next_change: None,
            };
            keep(&mut association, decision);
            assert_eq!(Value::Object(association.state.clone()), kept);
        }
    }
}
