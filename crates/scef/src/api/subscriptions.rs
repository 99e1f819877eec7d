//! `/subscriptions` of 3gpp-monitoring-event (TS 29.122 §4.4.2, §5.3).

use diameter::proto::known;
use function::records::store_problem;
use function::sbi::Call;
use http::StatusCode;
use sbi::problem::{Cause, Problem};
use sbi::response::no_content;
use serde_json::Value;
use store::{Batch, Stored};

use super::features::{self, MONITORING};
use super::{
    Answer, LISTED, body_of, count_in, created, forbidden, not_found, refused_by_hss, stored,
    test_notifications, too_late, with_self,
};
use crate::clock::now;
use crate::events::Event;
use crate::record::Subscription;
use crate::repository::delete_as_read;
use crate::spans::Caller;
use crate::worker::Worker;
use crate::{s6t, shape};

const TYPE: &str = "application/json";
/// Why a monitoring type that is not served is refused, with 500 (TS 29.122 table 5.3.5.3-1).
pub(crate) const UNSUPPORTED: &str = "EVENT_UNSUPPORTED";
/// Members that the SCEF alone sets.
const READ_ONLY: [&str; 3] = ["self", "monitoringEventReport", "addnMonEventReports"];
/// Members that stay as they were at the creation (TS 29.122 §4.4.2.2.1), beside the monitoring type, by which the HSS knows the event.
const FIXED: [&str; 5] = [
    "externalId",
    "msisdn",
    "externalGroupId",
    "monitoringType",
    "mtcProviderId",
];
/// References that are tried for a new subscription, of four billion.
const TRIES: usize = 8;

/// Creates a subscription; where one report is all that is asked and the HSS has it, answers with the report.
pub(crate) async fn create(call: Call<Worker>) -> Answer {
    let worker = &*call.worker;
    let scs = &call.parameters[0];
    let document = checked(worker, &call.request)?;
    if !s6t::feature(&document).is_some_and(|number| features::has(&document, number)) {
        return Err(
            Problem::with_cause(StatusCode::BAD_REQUEST, "EVENT_FEATURE_MISMATCH").detail(
                "supportedFeatures lacks the feature of this monitoringType (TS 29.122 table 5.3.4-1)",
            ),
        );
    }
    let quota = &worker.shared().subscriptions;
    let (table, most) = (
        &worker.repository().subscriptions,
        worker.config().limits.subscriptions,
    );
    let holder = (scs.as_str(), most);
    count_in(
        worker,
        quota,
        table,
        Subscription::SCS,
        holder,
        "RESOURCES_EXCEEDED",
    )
    .await?;
    let answer = configure_new(worker, Caller::of(&call.request), scs, document).await;
    match &answer {
        Ok(response) if response.status() == StatusCode::CREATED => worker.count(Event::Subscribed),
        _ => quota.sub(scs),
    }
    answer
}

async fn configure_new(worker: &Worker, caller: Caller<'_>, scs: &str, document: Value) -> Answer {
    let subscription = reserve(worker, scs, document).await?;
    let (hss, report) = match configure(worker, caller, &subscription).await {
        Ok(configured) => configured,
        Err(problem) => {
            let key = subscription.reference.to_be_bytes();
            let table = &worker.repository().subscriptions;
            let removed = worker.repository().remove(table, &key).await;
            removed.map_err(store_problem)?;
            return Err(problem);
        }
    };
    let done = report.is_some() && subscription.left == Some(1);
    confirm(worker, &subscription, hss, report.is_some(), done).await?;
    if let (true, Some(report)) = (done, &report) {
        return Ok(sbi::json::response(StatusCode::OK, report));
    }
    let uri = uri_of(worker, &subscription);
    if MONITORING.asks_for_test(&subscription.document) {
        test_notifications(worker, subscription.id(), &subscription.document, &uri).await;
    }
    let mut shown = with_self(&subscription.document, &uri);
    if let Some(report) = report {
        shown["monitoringEventReport"] = report;
    }
    Ok(created(&uri, &shown))
}

/// Writes a new subscription before the HSS knows of it: a report that comes at once finds it.
async fn reserve(worker: &Worker, scs: &str, document: Value) -> Result<Subscription, Problem> {
    let repository = worker.repository();
    for _ in 0..TRIES {
        let (_, chance) = uuid::Uuid::new_v4().as_u64_pair();
        let subscription = Subscription {
            reference: chance as u32,
            scs: scs.to_owned(),
            document: document.clone(),
            pending: true,
            left: s6t::last_report(&document),
            expires: s6t::ends(&document),
            hss: String::new(),
        };
        let inserted = repository.insert(&repository.subscriptions, &subscription).await;
        if inserted.map_err(store_problem)? {
            return Ok(subscription);
        }
    }
    Err(Problem::new(Cause::InsufficientResources).detail("no reference for a subscription is free"))
}

/// Configures the event at the HSS; returns the Origin-Host of its answer, and the report if it has one.
async fn configure(
    worker: &Worker,
    caller: Caller<'_>,
    subscription: &Subscription,
) -> Result<(String, Option<Value>), Problem> {
    worker.count(Event::MonitoringMessage);
    let message = s6t::configure(&worker.config().diameter, subscription);
    let answer = worker.ask_hss(caller, message).await?;
    let refusal = s6t::refusal(&answer).or_else(|| s6t::config_refusal(&answer));
    if let Some(refusal) = refusal {
        return Err(refused_by_hss(refusal));
    }
    let report = s6t::reports(&answer)
        .next()
        .filter(|_| !s6t::is_group(&subscription.document));
    let report = report.map(|group| s6t::report(&subscription.document, None, &group));
    let hss = answer.require(known::ORIGIN_HOST).map(str::to_owned);
    hss.and_then(|hss| Ok((hss, report.transpose()?)))
        .map_err(|fault| {
            tracing::warn!(%fault, "the HSS has answered with what cannot be read");
            let problem = Problem::of_status(StatusCode::INTERNAL_SERVER_ERROR);
            problem.detail("the answer of the HSS cannot be read")
        })
}

/// Marks a subscription as confirmed, after the HSS has accepted its event. Reports may have ended it meanwhile, or the one in the
/// answer is the last.
async fn confirm(
    worker: &Worker,
    subscription: &Subscription,
    hss: String,
    reported: bool,
    done: bool,
) -> Result<(), Problem> {
    let key = subscription.reference.to_be_bytes();
    let table = &worker.repository().subscriptions;
    if done {
        return worker
            .repository()
            .remove(table, &key)
            .await
            .map(drop)
            .map_err(store_problem);
    }
    while let Some(before) = table.get(&key).await.map_err(store_problem)? {
        let left = before.record.left;
        let changed = Subscription {
            pending: false,
            hss: hss.clone(),
            left: left.map(|left| left.saturating_sub(u32::from(reported))),
            ..before.record.clone()
        };
        if put(worker, &before, &changed).await? {
            break;
        }
    }
    Ok(())
}

/// Writes a subscription in place of the one before; one that has had its last report ends. False if the one before has changed since.
async fn put(
    worker: &Worker,
    before: &Stored<Subscription>,
    changed: &Subscription,
) -> Result<bool, Problem> {
    let table = &worker.repository().subscriptions;
    let mut batch = Batch::default();
    let is_over = changed.left == Some(0);
    match is_over {
        true => delete_as_read(&mut batch, table, before),
        false => batch.update(table, changed, before.version),
    }
    let is_written = worker.repository().commit(batch).await;
    let is_written = is_written.map_err(store_problem)?;
    if is_written && is_over {
        worker.shared().subscriptions.sub(&changed.scs);
        worker.count(Event::Unsubscribed);
    }
    Ok(is_written)
}

/// Lists the subscriptions of an SCS/AS.
pub(crate) async fn list(call: Call<Worker>) -> Answer {
    let (worker, scs) = (&*call.worker, &call.parameters[0]);
    let found = worker
        .repository()
        .subscriptions
        .find(Subscription::SCS, scs.as_bytes(), LISTED);
    let found = found.await.map_err(store_problem)?;
    let own = found.iter().filter(|one| one.scs == **scs && !one.pending);
    let shown: Vec<Value> = own
        .map(|one| with_self(&one.document, &uri_of(worker, one)))
        .collect();
    Ok(sbi::json::response(StatusCode::OK, &shown))
}

/// Reads a subscription.
pub(crate) async fn read(call: Call<Worker>) -> Answer {
    let worker = &*call.worker;
    let found = existing(worker, &call.parameters).await?;
    let shown = with_self(&found.document, &uri_of(worker, &found));
    Ok(sbi::json::response(StatusCode::OK, &shown))
}

/// Replaces a subscription: the HSS takes the new event in place of the one with the same reference (TS 29.336 §7.2.1).
pub(crate) async fn replace(call: Call<Worker>) -> Answer {
    let worker = &*call.worker;
    let found = existing(worker, &call.parameters).await?;
    let mut document = checked(worker, &call.request)?;
    let same = |name: &&str| document.get(*name) == found.document.get(*name);
    if let Some(name) = FIXED.into_iter().find(|name| !same(name)) {
        return Err(Problem::new(Cause::ModificationNotAllowed)
            .invalid_param(format!("/{name}"), "cannot be changed"));
    }
    keep_features(&mut document, &found.document);
    let tests = MONITORING.begins_to_ask(&document, &found.document);
    let changed = Subscription {
        left: s6t::last_report(&document),
        expires: s6t::ends(&document),
        document,
        ..found.record.clone()
    };
    let (hss, report) = configure(worker, Caller::of(&call.request), &changed).await?;
    let changed = Subscription { hss, ..changed };
    write(worker, &call.parameters, found, &changed, report.is_some()).await?;
    let uri = uri_of(worker, &changed);
    if tests {
        test_notifications(worker, changed.id(), &changed.document, &uri).await;
    }
    let mut shown = with_self(&changed.document, &uri);
    if let Some(report) = report {
        shown["monitoringEventReport"] = report;
    }
    Ok(sbi::json::response(StatusCode::OK, &shown))
}

/// The features that were negotiated when a subscription was created stay (TS 29.122 §4.4.2.2.1).
fn keep_features(document: &mut Value, before: &Value) {
    let name = "supportedFeatures";
    match (before.get(name), document.as_object_mut()) {
        (Some(features), Some(members)) => drop(members.insert(name.to_owned(), features.clone())),
        (None, Some(members)) => drop(members.shift_remove(name)),
        (_, None) => {}
    }
}

/// Writes a subscription in place of the one before, less the report that came with the answer of the HSS: after the last one it has
/// ended. A report meanwhile counts against the old event.
async fn write(
    worker: &Worker,
    path: &[String; 3],
    mut before: Stored<Subscription>,
    changed: &Subscription,
    reported: bool,
) -> Result<(), Problem> {
    let left = changed.left.map(|left| left.saturating_sub(u32::from(reported)));
    let changed = Subscription {
        left,
        ..changed.clone()
    };
    while !put(worker, &before, &changed).await? {
        before = existing(worker, path).await?;
    }
    Ok(())
}

/// Ends a subscription. An HSS that does not answer deletes the event after the answer to its next report (5515).
pub(crate) async fn end(call: Call<Worker>) -> Answer {
    let worker = &*call.worker;
    let found = existing(worker, &call.parameters).await?;
    let repository = worker.repository();
    let key = found.reference.to_be_bytes();
    let removed = repository.remove(&repository.subscriptions, &key).await;
    if !removed.map_err(store_problem)? {
        return Err(not_found("subscription"));
    }
    worker.shared().subscriptions.sub(&found.scs);
    worker.count(Event::Unsubscribed);
    worker.count(Event::MonitoringMessage);
    let answer = worker
        .ask_hss(
            Caller::of(&call.request),
            s6t::delete(&worker.config().diameter, &found),
        )
        .await;
    if let Some((vendor, code)) = answer.ok().as_ref().and_then(s6t::refusal) {
        tracing::info!(vendor, code, "the HSS has refused to delete an event");
    }
    Ok(no_content())
}

fn uri_of(worker: &Worker, subscription: &Subscription) -> String {
    worker.shared().subscription_uri(subscription)
}

/// The subscription of a path, where its SCS/AS has it.
async fn existing(worker: &Worker, [scs, id, _]: &[String; 3]) -> Result<Stored<Subscription>, Problem> {
    let reference = Subscription::reference_of(id).ok_or_else(|| not_found("subscription"))?;
    let found = worker.repository().subscriptions.get(&reference.to_be_bytes());
    let found = found.await.map_err(store_problem)?;
    found
        .filter(|one| one.scs == *scs && !one.pending)
        .ok_or_else(|| not_found("subscription"))
}

/// A body that can be configured.
fn checked(worker: &Worker, request: &sbi::Request) -> Result<Value, Problem> {
    let document = body_of(worker, request, TYPE)?;
    shape::monitoring(&document)?;
    worker.check_target(&document)?;
    if s6t::monitoring_type(&document).is_none() {
        return Err(
            Problem::with_cause(StatusCode::INTERNAL_SERVER_ERROR, UNSUPPORTED)
                .detail("this monitoringType is not served here"),
        );
    }
    if s6t::ends(&document).is_some_and(|at| at <= now()) {
        return Err(forbidden("PARAMETER_OUT_OF_RANGE", "monitorExpireTime is over"));
    }
    if !s6t::is_held(s6t::ends(&document)) {
        return Err(too_late("monitorExpireTime"));
    }
    if !s6t::permits_reports(&document) {
        return Err(forbidden(
            "PARAMETER_OUT_OF_RANGE",
            "maximumNumberOfReports is 1 for reachability for SMS and for the last known location (TS 29.336 §8.4.8)",
        ));
    }
    Ok(stored(document, &READ_ONLY, Some(&MONITORING)))
}
