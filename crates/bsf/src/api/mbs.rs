//! `/pcf-mbs-bindings`: bindings of multicast and broadcast sessions (TS 29.521 §5.3.8, §5.3.9).

use std::rc::Rc;

use http::{Method, StatusCode};
use sbi::problem::{Cause, Problem};
use sbi::{Request, Response};
use serde_json::Value;
use store::{Conflict, Error};

use super::{
    bad_query, body_of, created, features_of, id_of, list, method_not_allowed, no_content, not_found, pairs,
};
use crate::binding::{BindingId, MbsBinding, negotiate, shape};
use crate::events::Event;
use crate::repository::problem;
use crate::service::Worker;

/// `/pcf-mbs-bindings`.
pub(crate) async fn collection(worker: Rc<Worker>, request: Request) -> Result<Response, Problem> {
    match *request.method() {
        Method::POST => register(&worker, request).await,
        Method::GET => discover(&worker, &request).await,
        ref other => Ok(method_not_allowed(other, "GET, POST")),
    }
}

/// `/pcf-mbs-bindings/{bindingId}`.
pub(crate) async fn individual(
    worker: Rc<Worker>,
    request: Request,
    id: String,
) -> Result<Response, Problem> {
    match *request.method() {
        Method::PATCH => update(&worker, request, &id).await,
        Method::DELETE => {
            let repository = worker.repository();
            if !repository.remove(&repository.mbs, id_of(&id)?).await? {
                return Err(not_found(&id));
            }
            worker.count(Event::MbsChanged);
            Ok(no_content())
        }
        ref other => Ok(method_not_allowed(other, "DELETE, PATCH")),
    }
}

async fn register(worker: &Worker, request: Request) -> Result<Response, Problem> {
    let value = body_of(worker, request, "application/json")?;
    shape::check(&shape::MBS_BINDING, &value)?;
    let repository = worker.repository();
    let mut document = repository.document(BindingId::random(), value);
    negotiate(&mut document);
    let binding = MbsBinding(document);
    match repository.add(&repository.mbs, &binding).await {
        Ok(()) => {
            worker.count(Event::MbsChanged);
            Ok(created(worker, "pcf-mbs-bindings", &binding.0))
        }
        Err(Error::Conflict {
            conflict: Conflict::Unique { .. },
            ..
        }) => Err(existing(worker, &binding).await?),
        Err(error) => Err(problem(error)),
    }
}

/// 403 with where the other PCF is (`MbsExtProblemDetails`).
async fn existing(worker: &Worker, wanted: &MbsBinding) -> Result<Problem, Problem> {
    worker.count(Event::ExistingFound);
    let mut problem = Problem::with_cause(StatusCode::FORBIDDEN, "EXISTING_BINDING_INFO_FOUND")
        .detail("the MBS session has a binding");
    let id = wanted.0.member("mbsSessionId").cloned().unwrap_or_default();
    for held in find(worker, &id).await? {
        for name in ["pcfFqdn", "pcfIpEndPoints"] {
            if let Some(value) = held.0.member(name) {
                problem.details_mut().more.insert(name.to_owned(), value.clone());
            }
        }
    }
    Ok(problem)
}

async fn find(worker: &Worker, session: &Value) -> Result<Vec<MbsBinding>, Problem> {
    let key = MbsBinding::session_key(session);
    let found = worker
        .repository()
        .mbs
        .find(MbsBinding::SESSION, &key, 1)
        .await
        .map_err(problem)?;
    Ok(found.into_iter().map(|stored| stored.record).collect())
}

async fn discover(worker: &Worker, request: &Request) -> Result<Response, Problem> {
    let mut session = None;
    for (name, value) in &pairs(request.uri())? {
        match &**name {
            "mbs-session-id" => {
                let parsed: Value = serde_json::from_str(value)
                    .map_err(|error| bad_query(name, format!("expected an MbsSessionId: {error}")))?;
                if let Some(fault) = shape::MBS_SESSION.check(&parsed).into_iter().next() {
                    return Err(bad_query(name, format!("{}: {}", fault.pointer, fault.expected)));
                }
                session = Some(parsed);
            }
            "supp-feat" => drop(features_of(name, value)?),
            _ => {}
        }
    }
    let session = session.ok_or_else(|| {
        Problem::new(Cause::MandatoryQueryParamMissing)
            .detail("mbs-session-id is missing")
            .invalid_param("query mbs-session-id", "is mandatory")
    })?;
    let found = find(worker, &session).await?;
    worker.count(match found.is_empty() {
        true => Event::FoundNothing,
        false => Event::Discovered,
    });
    Ok(list(found.iter().map(|binding| &binding.0)))
}

async fn update(worker: &Worker, request: Request, id_text: &str) -> Result<Response, Problem> {
    let size = worker.max_body();
    let patch = body_of(worker, request, sbi::json::MERGE_PATCH)?;
    let id = id_of(id_text)?;
    let repository = worker.repository();
    let changed = repository
        .change(&repository.mbs, id, |binding| {
            let mut value = binding.0.value().clone();
            shape::merge(&mut value, &patch, shape::MBS_PATCH, &shape::MBS_BINDING, size)?;
            Ok(MbsBinding(repository.document(id, value)))
        })
        .await?
        .ok_or_else(|| not_found(id_text))?;
    worker.count(Event::MbsChanged);
    Ok(sbi::json::response_of(StatusCode::OK, changed.0.text().clone()))
}
