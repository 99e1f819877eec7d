//! `/subscriptions`: subscriptions to a subscriber's bindings (TS 29.521 §5.3.4, §5.3.5).

use function::sbi::Call;
use http::StatusCode;
use sbi::headers::{Binding, SbiHeader};
use sbi::problem::Cause;
use sbi::{Request, Response};
use serde_json::Value;

use super::fault::Fault;
use super::{created, id_of, no_content, not_found, settled_body_of};
use crate::binding::{
    BindingId, Document, PcfBinding, SessionChange, Subscription, UeBinding, negotiate, shape,
};
use crate::events::Event;
use crate::worker::Worker;

/// Creates a subscription.
pub(crate) async fn create(call: Call<Worker>) -> Result<Response, Fault> {
    let worker = &*call.worker;
    let subscription = read(worker, call.request, BindingId::random())?;
    let repository = worker.repository();
    repository.watch();
    repository.add(&repository.subscriptions, &subscription).await?;
    worker.count(Event::Subscribed);
    Ok(created(
        worker,
        "subscriptions",
        &met(worker, &subscription).await?,
    ))
}

/// Replaces a subscription.
pub(crate) async fn replace(call: Call<Worker>) -> Result<Response, Fault> {
    let (worker, [id, ..]) = (&*call.worker, &call.parameters);
    let subscription = read(worker, call.request, id_of(id)?)?;
    let repository = worker.repository();
    repository
        .change(&repository.subscriptions, subscription.0.id, |_| {
            Ok::<_, Fault>(subscription.clone())
        })
        .await?
        .ok_or_else(|| not_found(id))?;
    let shown = met(worker, &subscription).await?;
    Ok(sbi::json::response_of(StatusCode::OK, shown.text().clone()))
}

/// Ends a subscription.
pub(crate) async fn end(call: Call<Worker>) -> Result<Response, Fault> {
    let (worker, [id, ..]) = (&*call.worker, &call.parameters);
    let repository = worker.repository();
    if !repository.remove(&repository.subscriptions, id_of(id)?).await? {
        return Err(not_found(id));
    }
    worker.count(Event::Unsubscribed);
    Ok(no_content())
}

fn read(worker: &Worker, request: Request, id: BindingId) -> Result<Subscription, Fault> {
    let set = callback_set(request.headers());
    let value = settled_body_of(worker, &request, &shape::SUBSCRIPTION)?;
    let target = value.get("notifUri").and_then(Value::as_str).unwrap_or_default();
    worker.check_uri(target).map_err(|expected| Fault::Member {
        pointer: "/notifUri",
        cause: Cause::MandatoryIeIncorrect,
        expected,
    })?;
    let mut document = worker.repository().document(id, value);
    negotiate(&mut document);
    Ok(Subscription(document, set))
}

/// The NF set that takes the notifications, as a binding for callbacks says (TS 29.500 §6.12.4). One that cannot
/// be read binds nothing.
fn callback_set(headers: &sbi::Fields) -> Option<String> {
    let binding = Binding::of(headers).ok().flatten()?;
    let mut sets = binding
        .0
        .iter()
        .filter(|one| one.is_of_callbacks())
        .filter_map(|one| one.nf_set());
    sets.next().filter(|set| set.len() <= 255).map(str::to_owned)
}

/// The subscription with what is met already (`BsfSubscriptionResp`).
async fn met(worker: &Worker, subscription: &Subscription) -> Result<Document, Fault> {
    let repository = worker.repository();
    let supi = subscription.0.text_of("supi").unwrap_or_default();
    let sessions = repository.of_subscriber(supi).await?;
    let sessions: Vec<&PcfBinding> = sessions.iter().map(|stored| &stored.record).collect();
    let key = PcfBinding::identity_key(supi);
    let ues = repository
        .ues
        .find(UeBinding::SUPI, &key, worker.max_candidates())
        .await?;
    let ue = ues.iter().find(|ue| ue.record.0.text_of("supi") == Some(supi));
    let bodies = [
        subscription.sessions_body(&sessions, SessionChange::Began),
        ue.and_then(|ue| subscription.ue_body(&ue.record, true)),
    ];
    let events: Vec<Value> = bodies
        .into_iter()
        .flatten()
        .filter_map(|mut body| Some(body.get_mut("eventNotifs")?.take()))
        .flat_map(|events| events.as_array().cloned().unwrap_or_default())
        .collect();
    let mut shown = subscription.0.clone();
    if !events.is_empty() {
        shown.change(|members| {
            members.insert("eventNotifs".to_owned(), Value::Array(events));
        });
    }
    Ok(shown)
}
