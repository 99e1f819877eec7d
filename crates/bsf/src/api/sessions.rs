//! `/pcfBindings`: bindings of PDU sessions (TS 29.521 §5.3.2, §5.3.3).

use std::rc::Rc;

use http::{Method, StatusCode};
use model::{Ipv6Prefix, SupportedFeatures};
use sbi::problem::{Cause, Problem};
use sbi::{Request, Response};
use serde_json::Value;
use store::Version;

use super::{
    bad_query, body_of, created, features_of, id_of, method_not_allowed, no_content, not_found, pairs,
};
use crate::binding::{
    BindingId, EXTENDED_SAME_PCF, MULTI_UE_ADDR, PcfBinding, Place, Query, SAME_PCF, Selection, negotiate,
    own, select, shape,
};
use crate::events::Event;
use crate::repository::problem;
use crate::service::Worker;

/// `/pcfBindings`.
pub(crate) async fn collection(worker: Rc<Worker>, request: Request) -> Result<Response, Problem> {
    match *request.method() {
        Method::POST => register(&worker, request).await,
        Method::GET => discover(&worker, &request).await,
        ref other => Ok(method_not_allowed(other, "GET, POST")),
    }
}

/// `/pcfBindings/{bindingId}`.
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
    shape::check(&shape::PCF_BINDING, &value)?;
    let repository = worker.repository();
    let mut document = repository.document(BindingId::random(), value);
    let features = negotiate(&mut document).unwrap_or_default();
    let binding = PcfBinding(document);
    let guarded = guarded(&binding, &features);
    if guarded && let Some(holder) = holder_of(worker, &binding, None).await? {
        return Err(existing(worker, &holder));
    }
    let version = repository.add_session(&binding).await.map_err(problem)?;
    // Two PCFs may have asked at the same moment: the later write gives way.
    if guarded && let Some(holder) = holder_of(worker, &binding, Some(version)).await? {
        repository.remove(&repository.sessions, binding.0.id).await?;
        return Err(existing(worker, &holder));
    }
    worker.count(Event::Registered);
    worker.tell_session(&binding, true).await;
    Ok(created(worker, "pcfBindings", &binding.0))
}

/// Whether the PCF wants to know of another that has the same subscriber, DNN and slice.
fn guarded(binding: &PcfBinding, features: &SupportedFeatures) -> bool {
    (features.has(SAME_PCF) || features.has(EXTENDED_SAME_PCF)) && binding.0.member("paraCom").is_some()
}

/// The binding of another PCF that fits the combination of `paraCom` (TS 29.521 §4.2.2.2); with `before`, only
/// one that was there before that write.
async fn holder_of(
    worker: &Worker,
    binding: &PcfBinding,
    before: Option<Version>,
) -> Result<Option<PcfBinding>, Problem> {
    let combination = |name: &str| binding.0.member("paraCom").and_then(|wanted| wanted.get(name));
    let supi = combination("supi")
        .and_then(Value::as_str)
        .or(binding.0.text_of("supi"));
    let Some(supi) = supi else {
        return Err(Problem::new(Cause::MandatoryIeMissing)
            .detail("a combination is looked up by SUPI")
            .invalid_param("/paraCom/supi", "is missing, and so is /supi"));
    };
    let query = Query {
        supi: Some(supi.to_owned()),
        dnn: combination("dnn").and_then(Value::as_str).map(str::to_owned),
        snssai: combination("snssai").and_then(|slice| serde_json::from_value(slice.clone()).ok()),
        ..Query::default()
    };
    let held = worker.repository().of_subscriber(supi).await.map_err(problem)?;
    let other = held.into_iter().find(|held| {
        held.record.0.id != binding.0.id
            && before.is_none_or(|before| held.created < before.micros())
            && query.matches(&held.record)
            && !held.record.same_pcf(binding)
    });
    Ok(other.map(|held| held.record))
}

/// 403 with where the other PCF is (`ExtProblemDetails`).
fn existing(worker: &Worker, holder: &PcfBinding) -> Problem {
    worker.count(Event::ExistingFound);
    let mut problem = Problem::with_cause(StatusCode::FORBIDDEN, "EXISTING_BINDING_INFO_FOUND")
        .detail("another PCF has a binding of this combination");
    for name in ["pcfSmFqdn", "pcfSmIpEndPoints"] {
        if let Some(value) = holder.0.member(name) {
            problem.details_mut().more.insert(name.to_owned(), value.clone());
        }
    }
    problem
}

async fn discover(worker: &Worker, request: &Request) -> Result<Response, Problem> {
    let (query, features) = query_of(request.uri())?;
    let matching = worker.repository().matching(&query).await.map_err(problem)?;
    match select(&matching, &query) {
        Selection::None => {
            worker.count(Event::FoundNothing);
            Ok(no_content())
        }
        Selection::Ambiguous => {
            worker.count(Event::FoundSeveral);
            Err(
                Problem::with_cause(StatusCode::BAD_REQUEST, "MULTIPLE_BINDING_INFO_FOUND").detail(format!(
                    "{} sessions match and differ in what the query does not say: add ipDomain, dnn or snssai",
                    matching.len()
                )),
            )
        }
        Selection::One(binding) => {
            worker.count(Event::Discovered);
            Ok(answer(binding, features))
        }
    }
}

/// 200 with the binding, without what the consumer does not support.
fn answer(binding: &PcfBinding, features: Option<SupportedFeatures>) -> Response {
    let Some(features) = features else {
        return sbi::json::response_of(StatusCode::OK, binding.0.text().clone());
    };
    let mut shown = binding.0.clone();
    let common = own().common(&features);
    shown.change(|members| {
        if !common.has(MULTI_UE_ADDR) {
            members.shift_remove("addIpv6Prefixes");
            members.shift_remove("addMacAddrs");
        }
        members.insert("suppFeat".to_owned(), Value::String(common.to_string()));
    });
    sbi::json::response_of(StatusCode::OK, shown.text().clone())
}

/// The question of a query string (TS 29.521 table 5.3.2.3.2-1).
pub(crate) fn query_of(uri: &http::Uri) -> Result<(Query, Option<SupportedFeatures>), Problem> {
    let mut query = Query::default();
    let mut features = None;
    for (name, value) in &pairs(uri)? {
        let text = || match value.is_empty() {
            true => Err(bad_query(name, "expected some text")),
            false => Ok(Some((**value).to_owned())),
        };
        match &**name {
            "ipv4Addr" => {
                let parsed = value
                    .parse()
                    .map_err(|_| bad_query(name, "expected an IPv4 address"))?;
                query.ipv4 = Some(parsed);
            }
            "ipv6Prefix" => {
                let parsed: Result<Ipv6Prefix, _> = value.parse();
                query.ipv6 = Some(parsed.map_err(|expected| bad_query(name, expected))?);
            }
            "macAddr48" => match Place::mac(value) {
                Some(Place::Mac(mac)) => query.mac = Some(mac),
                _ => {
                    return Err(bad_query(
                        name,
                        "expected a MAC address such as 00-1b-21-3c-9d-f0",
                    ));
                }
            },
            "dnn" => query.dnn = text()?,
            "supi" => query.supi = text()?,
            "gpsi" => query.gpsi = text()?,
            "ipDomain" => query.ip_domain = text()?,
            "snssai" => {
                let parsed = serde_json::from_str(value);
                query.snssai = Some(parsed.map_err(|error| {
                    bad_query(name, format!("expected a slice such as {{\"sst\":1}}: {error}"))
                })?);
            }
            "supp-feat" => features = Some(features_of(name, value)?),
            // Parameters of later releases are not for us (TS 29.500 §5.2.9).
            _ => {}
        }
    }
    if !query.is_searchable() {
        return Err(Problem::new(Cause::MandatoryQueryParamMissing)
            .detail("a session is found by an address of the UE, its SUPI or its GPSI")
            .invalid_param(
                "query ipv4Addr",
                "expected ipv4Addr, ipv6Prefix, macAddr48, supi or gpsi",
            ));
    }
    Ok((query, features))
}

async fn update(worker: &Worker, request: Request, id: &str) -> Result<Response, Problem> {
    let id_text = id;
    let size = worker.max_body();
    let patch = body_of(worker, request, sbi::json::MERGE_PATCH)?;
    let id = id_of(id)?;
    let repository = worker.repository();
    let changed = repository
        .change_session(id, |document| {
            let mut value = document.value().clone();
            shape::merge(
                &mut value,
                &patch,
                shape::SESSION_PATCH,
                &shape::PCF_BINDING,
                size,
            )?;
            Ok(repository.document(id, value))
        })
        .await?
        .ok_or_else(|| not_found(id_text))?;
    worker.count(Event::Updated);
    Ok(sbi::json::response_of(StatusCode::OK, changed.0.text().clone()))
}

async fn deregister(worker: &Worker, id: &str) -> Result<Response, Problem> {
    let id_text = id;
    let id = id_of(id)?;
    let repository = worker.repository();
    let told = match repository.is_watched() {
        true => repository.sessions.get(&id.0).await.map_err(problem)?,
        false => None,
    };
    if !repository.remove(&repository.sessions, id).await? {
        return Err(not_found(id_text));
    }
    worker.count(Event::Deregistered);
    if let Some(binding) = told {
        worker.tell_session(&binding.record, false).await;
    }
    Ok(no_content())
}
