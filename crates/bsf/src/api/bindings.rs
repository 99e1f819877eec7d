//! What `/pcfBindings`, `/pcf-ue-bindings` and `/pcf-mbs-bindings` have in common: registration, change and deregistration.

use std::cell::RefCell;

use function::sbi::Call;
use http::StatusCode;
use model::SupportedFeatures;
use model::shape::{Shape, rules};
use sbi::{Request, Response};

use super::fault::Fault;
use super::{body_of, created, id_of, no_content, not_found, note, settled_body_of};
use crate::binding::{BindingId, negotiate, shape};
use crate::config::Tolerance;
use crate::events::Event;
use crate::notify::Change;
use crate::resource::Resource;
use crate::worker::Worker;

/// A resource of Nbsf_Management that PCFs register.
pub(crate) trait Served: Resource {
    /// Segment of the URI of the collection.
    const NAME: &'static str;
    /// Shape of a representation.
    const SHAPE: &'static Shape;
    /// Members that a PATCH may change.
    const PATCH: &'static [&'static str];
    /// Counted when one was registered, changed, deregistered.
    const EVENTS: [Event; 3];

    /// Writes a new binding, durably.
    async fn write(&self, worker: &Worker, _: &SupportedFeatures) -> Result<(), Fault> {
        let written = worker.repository().add(Self::table(worker.repository()), self);
        Ok(written.await.map(drop)?)
    }

    /// Answers a GET of the collection.
    async fn discover(worker: &Worker, request: &Request) -> Result<Response, Fault>;

    /// Whether subscribers are notified of a PATCH that has made this of `before`.
    fn is_news(&self, before: &Self) -> bool;
}

/// Answers a question about bindings.
pub(crate) async fn discover<T: Served>(call: Call<Worker>) -> Result<Response, Fault> {
    T::discover(&call.worker, &call.request).await
}

/// Registers a binding.
pub(crate) async fn register<T: Served>(call: Call<Worker>) -> Result<Response, Fault> {
    let worker = &*call.worker;
    let value = settled_body_of(worker, &call.request, T::SHAPE)?;
    let mut document = worker.repository().document(BindingId::random(), value);
    let features = negotiate(&mut document).unwrap_or_default();
    let binding = T::of(document);
    binding.write(worker, &features).await?;
    let [registered, _, _] = T::EVENTS;
    worker.count(registered);
    binding.notify(worker.notices(), Change::Registered).await;
    Ok(created(worker, T::NAME, binding.document()))
}

/// Changes a binding.
pub(crate) async fn update<T: Served>(call: Call<Worker>) -> Result<Response, Fault> {
    let (worker, [id_text, ..]) = (&*call.worker, &call.parameters);
    let size = worker.max_body();
    let patch = body_of(worker, &call.request, sbi::json::MERGE_PATCH)?;
    let id = id_of(id_text)?;
    let repository = worker.repository();
    let Tolerance { strict, host_names } = worker.config().tolerance;
    let dropped = RefCell::default();
    let (before, after) = repository
        .change(T::table(repository), id, |binding: &T| {
            let mut value = binding.document().value().clone();
            let merge = || shape::merge(&mut value, &patch, T::PATCH, T::SHAPE, size, strict);
            dropped.replace(rules::with_host_names(host_names, merge)?);
            Ok::<_, Fault>(T::of(repository.document(id, value)))
        })
        .await?
        .ok_or_else(|| not_found(id_text))?;
    note(worker, &call.request, &dropped.take());
    let [_, changed, _] = T::EVENTS;
    worker.count(changed);
    if after.is_news(&before) {
        after.notify(worker.notices(), Change::Moved).await;
    }
    Ok(sbi::json::response_of(
        StatusCode::OK,
        after.document().text().clone(),
    ))
}

/// Deregisters a binding.
pub(crate) async fn deregister<T: Served>(call: Call<Worker>) -> Result<Response, Fault> {
    let (worker, [id_text, ..]) = (&*call.worker, &call.parameters);
    let id = id_of(id_text)?;
    let repository = worker.repository();
    let table = T::table(repository);
    let held = match repository.is_watched() {
        true => table.get(&id.0).await?,
        false => None,
    };
    let mark = held.as_ref().and_then(|held| held.record.owed_removal());
    if !repository.remove_owing(table, id, mark).await? {
        return Err(not_found(id_text));
    }
    let [_, _, deregistered] = T::EVENTS;
    worker.count(deregistered);
    if let Some(held) = held {
        held.record.notify(worker.notices(), Change::Deregistered).await;
    }
    Ok(no_content())
}
