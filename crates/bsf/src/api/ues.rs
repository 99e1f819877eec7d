//! `/pcf-ue-bindings`: bindings of UEs (TS 29.521 §5.3.6, §5.3.7).

use std::rc::Rc;

use http::{Method, StatusCode};
use sbi::problem::{Cause, Problem};
use sbi::{Request, Response};

use super::{body_of, created, features_of, id_of, list, method_not_allowed, no_content, not_found, pairs};
use crate::binding::{BindingId, PcfBinding, UeBinding, negotiate, shape};
use crate::events::Event;
use crate::repository::problem;
use crate::service::Worker;

/// `/pcf-ue-bindings`.
pub(crate) async fn collection(worker: Rc<Worker>, request: Request) -> Result<Response, Problem> {
    match *request.method() {
        Method::POST => register(&worker, request).await,
        Method::GET => discover(&worker, &request).await,
        ref other => Ok(method_not_allowed(other, "GET, POST")),
    }
}

/// `/pcf-ue-bindings/{bindingId}`.
pub(crate) async fn individual(
    worker: Rc<Worker>,
    request: Request,
    id: String,
) -> Result<Response, Problem> {
    match *request.method() {
        Method::PATCH => update(&worker, request, &id).await,
        Method::DELETE => deregister(&worker, &id).await,
        ref other => Ok(method_not_allowed(other, "DELETE, PATCH")),
    }
}

async fn register(worker: &Worker, request: Request) -> Result<Response, Problem> {
    let value = body_of(worker, request, "application/json")?;
    shape::check(&shape::UE_BINDING, &value)?;
    let repository = worker.repository();
    let mut document = repository.document(BindingId::random(), value);
    negotiate(&mut document);
    let binding = UeBinding(document);
    repository.add(&repository.ues, &binding).await.map_err(problem)?;
    worker.count(Event::UeChanged);
    worker.tell_ue(&binding, true).await;
    Ok(created(worker, "pcf-ue-bindings", &binding.0))
}

async fn discover(worker: &Worker, request: &Request) -> Result<Response, Problem> {
    let (mut supi, mut gpsi) = (None, None);
    let all = pairs(request.uri())?;
    for (name, value) in &all {
        match &**name {
            "supi" => supi = Some(&**value),
            "gpsi" => gpsi = Some(&**value),
            "supp-feat" => drop(features_of(name, value)?),
            _ => {}
        }
    }
    let (index, identity) = match (supi, gpsi) {
        (Some(supi), _) => (UeBinding::SUPI, supi),
        (None, Some(gpsi)) => (UeBinding::GPSI, gpsi),
        (None, None) => {
            return Err(Problem::new(Cause::MandatoryQueryParamMissing)
                .detail("a UE is found by its SUPI or its GPSI")
                .invalid_param("query supi", "expected supi or gpsi"));
        }
    };
    let key = PcfBinding::identity_key(identity);
    let repository = worker.repository();
    let found = repository
        .ues
        .find(index, &key, worker.max_candidates())
        .await
        .map_err(problem)?;
    let same = |wanted: Option<&str>, binding: &UeBinding, name: &str| {
        wanted.is_none_or(|wanted| binding.0.text_of(name) == Some(wanted))
    };
    let matching: Vec<&UeBinding> = found
        .iter()
        .map(|stored| &stored.record)
        .filter(|binding| same(supi, binding, "supi") && same(gpsi, binding, "gpsi"))
        .collect();
    worker.count(match matching.is_empty() {
        true => Event::FoundNothing,
        false => Event::Discovered,
    });
    Ok(list(matching.into_iter().map(|binding| &binding.0)))
}

async fn update(worker: &Worker, request: Request, id_text: &str) -> Result<Response, Problem> {
    let size = worker.max_body();
    let patch = body_of(worker, request, sbi::json::MERGE_PATCH)?;
    let id = id_of(id_text)?;
    let repository = worker.repository();
    let changed = repository
        .change(&repository.ues, id, |binding| {
            let mut value = binding.0.value().clone();
            shape::merge(&mut value, &patch, shape::UE_PATCH, &shape::UE_BINDING, size)?;
            Ok(UeBinding(repository.document(id, value)))
        })
        .await?
        .ok_or_else(|| not_found(id_text))?;
    worker.count(Event::UeChanged);
    worker.tell_ue(&changed, true).await;
    Ok(sbi::json::response_of(StatusCode::OK, changed.0.text().clone()))
}

async fn deregister(worker: &Worker, id_text: &str) -> Result<Response, Problem> {
    let id = id_of(id_text)?;
    let repository = worker.repository();
    let held = repository.ues.get(&id.0).await.map_err(problem)?;
    if !repository.remove(&repository.ues, id).await? {
        return Err(not_found(id_text));
    }
    worker.count(Event::UeChanged);
    if let Some(held) = held {
        worker.tell_ue(&held.record, false).await;
    }
    Ok(no_content())
}
