//! RIR: reports of monitoring events, from the HSS over S6t and from MME and SGSN over T6a and T6b (TS 29.336 §7.2.2, TS 29.128
//! §5.4).

use diameter::endpoint::Request;
use diameter::proto::known::{self, application};
use diameter::proto::{Avps, Fault, Message, MessageMut, ResultCode};
use serde_json::{Value, json};
use store::{Batch, Stored};

use super::senders::{self, Role};
use super::{unable, written};
use crate::events::Event;
use crate::record::{Notice, Subscription};
use crate::repository::delete_as_read;
use crate::s6t::Handling;
use crate::worker::Worker;
use crate::{gathered, identity, s6t};

/// Monitoring-Event-Reports and Group-Reports of a request at most.
const MOST: usize = 64;

/// What a request reports about a subscription.
struct Report<'a> {
    reference: u32,
    scef: Option<&'a str>,
    /// The device.
    user: Option<Avps<'a>>,
    content: Avps<'a>,
    handling: Option<Handling>,
}

/// Takes the reports of a request: they are stored for the SCS/AS before the answer.
pub(super) async fn take(worker: &Worker, request: &Request) -> Result<Option<MessageMut>, Fault> {
    let (mut batch, mut notices, mut unknown) = (Batch::default(), Vec::new(), false);
    let (mut ended, mut completed) = (Vec::new(), Vec::new());
    let (mut reported, mut counted, mut groups) = (0, Vec::new(), Vec::new());
    let all = reports(&request.message)?;
    for report in &all {
        let key = report.reference.to_be_bytes();
        let table = &worker.repository().subscriptions;
        let found = table.get(&key).await.map_err(unable)?;
        let Some(found) = found.filter(|_| is_ours(worker, report)) else {
            unknown = true;
            continue;
        };
        check(worker, request, &found, report)?;
        reported += 1;
        if report.handling == Some(Handling::Paused) {
            tracing::info!(reference = report.reference, "an event was suspended or resumed");
            continue;
        }
        add(worker, &found, report, &mut notices)?;
        // Several reports about one subscription in a request are one change of its record.
        if !counted.contains(&report.reference) {
            counted.push(report.reference);
            let mut same = all.iter().filter(|one| one.reference == report.reference);
            let is_cancelled = same.any(|one| one.handling == Some(Handling::Cancelled));
            match (is_cancelled, s6t::is_group(&found.document)) {
                (true, false) => {
                    delete_as_read(&mut batch, table, &found);
                    ended.push(found.record);
                }
                // HSS, MME and SGSN count the reports of each member.
                (_, true) => groups.push(found.record),
                (false, false) => completed.extend(count_down(worker, found, &mut batch)),
            }
        }
    }
    if reported == 0 && unknown {
        worker.count(Event::UnknownReference);
        let fault = Fault::new(s6t::REFERENCE_UNKNOWN, "SCEF-Reference-ID is not known here");
        return Err(fault.of_vendor(known::VENDOR_3GPP));
    }
    gather(worker, &mut batch, &groups, &mut notices).await?;
    mark_complete(&completed, &mut notices);
    let Some(answer) = written(worker, request, batch, notices).await? else {
        return Ok(None);
    };
    (0..reported).for_each(|_| worker.count(Event::Reported));
    if request.message.application() == application::T6A {
        completed.iter().for_each(|one| delete(worker, one));
    }
    for one in ended.into_iter().chain(completed) {
        worker.shared().subscriptions.sub(&one.scs);
        worker.count(Event::Unsubscribed);
    }
    Ok(Some(answer))
}

/// Leaves in `notices` what does not wait for the guard time of its group.
async fn gather(
    worker: &Worker,
    batch: &mut Batch,
    groups: &[Subscription],
    notices: &mut Vec<Notice>,
) -> Result<(), Fault> {
    for one in groups {
        let about = one.id();
        let Some(place) = notices.iter().position(|notice| notice.about == about) else {
            continue;
        };
        let notice = notices.remove(place);
        let gathered = gathered::add(worker.repository(), batch, one, &notice).await;
        if !gathered.map_err(unable)? {
            notices.insert(place, notice);
        }
    }
    Ok(())
}

/// The reporting of these subscriptions is complete (TS 29.122 §4.4.2.3).
fn mark_complete(completed: &[Subscription], notices: &mut [Notice]) {
    for one in completed {
        let about = one.id();
        let notice = notices.iter_mut().find(|notice| notice.about == about);
        if let Some(notice) = notice {
            notice.body["cancelInd"] = json!(true);
        }
    }
}

/// Has the HSS delete an event whose last report an MME or SGSN has sent, which the HSS does not know of (TS 23.682 §5.6.3.1).
fn delete(worker: &Worker, subscription: &Subscription) {
    let settings = &worker.config().diameter;
    if let Some(message) = s6t::delete(settings, subscription) {
        worker.count(Event::MonitoringMessage);
        worker.orders().inform(message, settings.timeout.duration());
    }
}

/// What a request reports, of single devices and of groups (TS 29.336 §8.4.3, §8.4.61).
fn reports(message: &Message) -> Result<Vec<Report<'_>>, Fault> {
    let mut found = Vec::new();
    let user = message.get(known::USER_IDENTIFIER)?;
    let groups = s6t::groups(message.avps(), known::GROUP_REPORT).count();
    if s6t::reports(message).count() + groups > MOST {
        // DIAMETER_AVP_OCCURS_TOO_MANY_TIMES.
        let reason = "at most 64 reports in a request are taken";
        return Err(Fault::new(ResultCode(5009), reason));
    }
    for group in s6t::reports(message) {
        let reference = group.clone().require(known::SCEF_REFERENCE_ID)?;
        let scef = group.clone().get(known::SCEF_ID)?;
        // The event that the network deletes (TS 23.682 §5.6.9), which may be another one.
        let deleted = group.clone().get(known::SCEF_REFERENCE_ID_FOR_DELETION)?;
        if deleted != Some(reference) {
            found.push(Report {
                reference,
                scef,
                user: user.clone(),
                handling: s6t::handling(&group),
                content: group.clone(),
            });
        }
        found.extend(deleted.map(|reference| Report {
            reference,
            scef,
            user: user.clone(),
            handling: Some(Handling::Cancelled),
            content: group,
        }));
    }
    for group in s6t::groups(message.avps(), known::GROUP_REPORT) {
        let reference = group.clone().require(known::SCEF_REFERENCE_ID)?;
        let scef = group.clone().get(known::SCEF_ID)?;
        let items = s6t::groups(group, known::GROUP_REPORT_ITEM);
        for item in items.filter(|item| !s6t::is_confirmation(item)) {
            found.push(Report {
                reference,
                scef,
                user: Some(item.clone().require(known::USER_IDENTIFIER)?),
                handling: s6t::handling(&item),
                content: item,
            });
        }
    }
    Ok(found)
}

/// Refuses an end of the event that another node than its HSS reports, and a report of another device than that of the event.
fn check(worker: &Worker, request: &Request, found: &Subscription, report: &Report<'_>) -> Result<(), Fault> {
    let asked = Some(&*found.hss).filter(|hss| !hss.is_empty());
    let ends = report.handling == Some(Handling::Cancelled);
    if ends && !senders::is_from(request, worker.config(), Role::Hss, asked)? {
        return Err(senders::refused(worker, Role::Hss));
    }
    let user = report.user.as_ref().filter(|_| !s6t::is_group(&found.document));
    if user.map_or(Ok(true), |user| identity::may_be(user, &found.document))? {
        return Ok(());
    }
    let reason = "User-Identifier is not that of the device of the event";
    Err(Fault::new(ResultCode::INVALID_AVP_VALUE, reason))
}

/// Whether a report is for this SCEF; one without SCEF-ID is.
fn is_ours(worker: &Worker, report: &Report<'_>) -> bool {
    let host = &worker.config().diameter.host;
    report.scef.is_none_or(|id| id.eq_ignore_ascii_case(host))
}

/// Adds a report to the notification about its subscription, which is one for all reports of a request.
fn add(
    worker: &Worker,
    found: &Subscription,
    report: &Report<'_>,
    notices: &mut Vec<Notice>,
) -> Result<(), Fault> {
    let (member, value) = match s6t::item_refusal(&report.content)? {
        _ if report.handling == Some(Handling::Cancelled) => cancelled(found, report)?,
        Some(code) => ("configResults", not_configured(report, code)?),
        None => {
            s6t::check_report(&found.document, &report.content)?;
            (
                "monitoringEventReports",
                s6t::report(&found.document, report.user.as_ref(), &report.content)?,
            )
        }
    };
    let about = found.id();
    if !notices.iter().any(|notice| notice.about == about) {
        let body = json!({"subscription": worker.shared().subscription_uri(found)});
        notices.push(worker.shared().notice(about.clone(), &found.document, body));
    }
    for notice in notices.iter_mut().filter(|notice| notice.about == about) {
        match &mut notice.body[member] {
            indication if value.is_boolean() => *indication = value.clone(),
            Value::Array(all) => all.push(value.clone()),
            absent => *absent = json!([value]),
        }
    }
    Ok(())
}

/// The members of a `MonitoringNotification` about an event that the network has cancelled (TS 29.122 §4.4.2.4): of the subscription, or
/// of a member of its group.
fn cancelled(found: &Subscription, report: &Report<'_>) -> Result<(&'static str, Value), Fault> {
    let user = report.user.as_ref().filter(|_| s6t::is_group(&found.document));
    let Some(user) = user else {
        return Ok(("cancelInd", json!(true)));
    };
    let mut member = serde_json::Map::new();
    identity::copy_member(user, &mut member)?;
    let of = |name: &str, list: &'static str| member.get(name).map(|id| (list, id.clone()));
    let named = of("externalId", "cancelExternalIds").or_else(|| of("msisdn", "cancelMsisdns"));
    named.ok_or_else(|| {
        let reason = "User-Identifier has no External-Identifier and no MSISDN";
        Fault::new(ResultCode::INVALID_AVP_VALUE, reason)
    })
}

/// `ConfigResult` (TS 29.122 §5.2.1.2.15) of a member of a group.
fn not_configured(report: &Report<'_>, code: u32) -> Result<Value, Fault> {
    tracing::info!(
        code,
        reference = report.reference,
        "an event was not configured for a member of a group"
    );
    let mut member = serde_json::Map::new();
    if let Some(user) = &report.user {
        identity::copy_member(user, &mut member)?;
    }
    let mut result = json!({"resultReason": "OTHER_REASON"});
    for (from, to) in [("externalId", "externalIds"), ("msisdn", "msisdns")] {
        if let Some(id) = member.remove(from) {
            result[to] = json!([id]);
        }
    }
    Ok(result)
}

/// One report less may follow; the last one ends the subscription (TS 23.682 §5.6.0), which is returned.
fn count_down(worker: &Worker, found: Stored<Subscription>, batch: &mut Batch) -> Option<Subscription> {
    let table = &worker.repository().subscriptions;
    match found.left? {
        0 | 1 => {
            delete_as_read(batch, table, &found);
            Some(found.record)
        }
        left => {
            let changed = Subscription {
                left: Some(left - 1),
                ..found.record
            };
            batch.update(table, &changed, found.version);
            None
        }
    }
}
