//! What Npcf_AMPolicyControl (TS 29.507 §5.3) and Npcf_UEPolicyControl (TS 29.525 §5.3) have in common: `/policies`.

use std::rc::Rc;

use http::{Method, StatusCode};
use model::shape::Shape;
use sbi::problem::Problem;
use sbi::response::{method_not_allowed, no_content};
use sbi::{Request, Response};
use serde_json::{Map, Value};

use super::callbacks;
use super::fault::Fault;
use super::owner::Consumer;
use super::{body_of, check_size, created, id_of, mark_of, negotiate, not_found, remove, update_of};
use crate::activity::trail;
use crate::association::ledger::Draft;
use crate::association::{Association, Kind, consumer, context, decision, repetition, triggers};
use crate::change;
use crate::creation;
use crate::delivery;
use crate::events::Event;
use crate::notices;
use crate::pds;
use crate::pre;
use crate::profile::allowed_nf_types;
use crate::renewal;
use crate::worker::Worker;

/// A policy service of AMFs.
pub(crate) struct Service {
    /// What its associations are for.
    pub(crate) kind: Kind,
    /// Shape of `PolicyAssociationRequest`.
    pub(crate) request: &'static Shape,
    /// Shape of `PolicyAssociationUpdateRequest`.
    pub(crate) update: &'static Shape,
    /// Features of this PCF.
    pub(crate) features: &'static [usize],
    /// What comes with triggers of an update.
    pub(crate) triggers: &'static [triggers::Data],
    /// Members of an update that report something; the context does not keep them.
    pub(crate) reports: &'static [&'static str],
    /// Counted when an association was created, updated, deleted.
    pub(crate) events: [Event; 3],
}

impl Service {
    /// Its name, which is its scope as well.
    fn name(&self) -> &'static str {
        match self.kind {
            Kind::Am => "npcf-am-policy-control",
            _ => "npcf-ue-policy-control",
        }
    }
}

/// `/policies`.
pub(crate) async fn collection(
    worker: &Rc<Worker>,
    service: &Service,
    request: &Request,
) -> Result<Response, Fault> {
    if *request.method() != Method::POST {
        return Ok(method_not_allowed(request.method(), "POST"));
    }
    let consumer = Consumer::of(worker, request, service.name())?;
    let mut members = body_of(worker, request, service.request)?;
    let features = negotiate(&members, service.features).unwrap_or_default();
    members.insert("suppFeat".to_owned(), Value::String(features.to_string()));
    let mut association = Association::new(service.kind, Value::Object(members));
    consumer.own(&mut association);
    let version = pds::version(worker, &association);
    creation::create(worker, &mut association, || true).await?;
    worker.count(service.events[0]);
    delivery::begin(worker, &association);
    if pds::version(worker, &association) != version {
        // The data have changed before the UDR could notify of an association.
        callbacks::after_creation(worker, association.id).await;
    }
    if request.is_given_up() {
        // The AMF does not learn the URI, so that it could never end the association.
        end(worker, service, &association.id.to_string()).await?;
    }
    Ok(created(worker, &association, &shown(&association)))
}

/// `/policies/{polAssoId}`.
pub(crate) async fn individual(
    worker: &Rc<Worker>,
    service: &Service,
    request: &Request,
    id: &str,
) -> Result<Response, Fault> {
    let consumer = Consumer::of(worker, request, service.name())?;
    match *request.method() {
        Method::GET => {
            let stored = worker.repository().get(id_of(id)?).await?;
            let association = stored
                .map(|stored| stored.record)
                .filter(|association| association.kind == service.kind)
                .ok_or_else(|| not_found(id))?;
            consumer.may_use(worker, consumer::of(&association)).await?;
            trail::concerns(&association);
            let mut body = shown(&association);
            body.insert("request".to_owned(), association.context);
            Ok(sbi::json::response(StatusCode::OK, &body))
        }
        Method::DELETE => {
            consumer.may_use_stored(worker, id).await?;
            end(worker, service, id).await?;
            Ok(no_content())
        }
        ref other => Ok(method_not_allowed(other, "DELETE, GET")),
    }
}

async fn end(worker: &Rc<Worker>, service: &Service, id: &str) -> Result<(), Fault> {
    if let Some((removed, _)) = remove(worker, id, service.kind, &Value::Null).await? {
        pds::close(worker, &removed).await;
        delivery::close(worker, &removed);
    }
    worker.count(service.events[2]);
    Ok(())
}

/// `/policies/{polAssoId}/update`: the answer has what the update changes (`PolicyUpdate`).
pub(crate) async fn update(
    worker: &Rc<Worker>,
    service: &Service,
    request: &Request,
    id: &str,
) -> Result<Response, Fault> {
    if *request.method() != Method::POST {
        return Ok(method_not_allowed(request.method(), "POST"));
    }
    let consumer = Consumer::of(worker, request, service.name())?;
    let update = update_of(worker, request, (service.request, service.update))?;
    check_triggers(service, &update)?;
    let mark = mark_of(request);
    let step = async |association: &mut Association, draft: &mut Draft| {
        if association.kind != service.kind {
            return Err(not_found(id));
        }
        // The AMF that a UE has moved to takes the association over with an address of its own (TS 29.507 §4.2.3.1); it has the
        // URI from the AMF before.
        match update.contains_key("notificationUri") {
            true => {
                let types = allowed_nf_types(service.name());
                consumer.take_over(worker, association, types).await?;
            }
            false => consumer.may_use(worker, consumer::of(association)).await?,
        }
        let earlier = repetition::earlier(association, &mark);
        context::merge(association, &update, service.reports);
        check_size(worker, &association.context)?;
        let asked = context::with_reports(association, &update, service.reports);
        let decided = pre::decide(worker, "update", association, &asked, draft).await?;
        let before = (decided.policy != association.policy).then(|| association.decision());
        pre::keep(association, decided);
        if earlier.is_some() {
            association.messages.clear();
        } else if let Some(before) = before {
            repetition::note(association, &mark, &before);
        }
        // The AMF has news of the UE, which may be reachable by now.
        delivery::plan(worker, association, true);
        Ok::<_, Fault>(earlier)
    };
    let rewritten = change::rewrite_with_draft(worker, id_of(id)?, step)
        .await?
        .ok_or_else(|| not_found(id))?;
    worker.count(service.events[1]);
    delivery::begin(worker, &rewritten.after);
    renewal::after(worker, &rewritten.after);
    let (before, after) = (rewritten.before.decision(), rewritten.after.decision());
    let address = |association: &Association| association.text_of("notificationUri").map(str::to_owned);
    let difference = match rewritten.answer {
        // It may not have got the answer to the first copy: it gets the whole decision, and what that answer removed.
        Some(removed) => decision::difference(removed, after),
        // The AMF before may have missed what it was notified of.
        None if address(&rewritten.before) != address(&rewritten.after) => {
            worker.notices().removals.complete(rewritten.after.id, after)
        }
        None => decision::difference(before, after),
    };
    let body = notices::policy_update(worker.root(), &rewritten.after, difference);
    Ok(sbi::json::response(StatusCode::OK, &body))
}

/// Refuses a trigger without its data: the decision would be made of what was before (TS 29.507 §5.7.3, TS 29.525 §5.7.3).
fn check_triggers(service: &Service, update: &Map<String, Value>) -> Result<(), Fault> {
    let Some((trigger, members)) = triggers::of_amf(update, service.triggers).next() else {
        return Ok(());
    };
    let reason = format!("{trigger} without {}", members.join(" or "));
    let problem = Problem::with_cause(StatusCode::BAD_REQUEST, "ERROR_REQUEST_PARAMETERS");
    let problem = problem.detail(format!("triggers: {reason}"));
    Err(problem.invalid_param("/triggers".to_owned(), reason).into())
}

/// `PolicyAssociation` without the request.
fn shown(association: &Association) -> Map<String, Value> {
    let mut body = notices::shown(association, association.decision());
    let features = association.text_of("suppFeat").unwrap_or("0");
    body.insert("suppFeat".to_owned(), Value::String(features.to_owned()));
    body
}
