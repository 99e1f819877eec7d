//! RIR: reports of monitoring events, from the HSS over S6t and from MME and SGSN over T6a and T6b (TS 29.336 §7.2.2, TS 29.128
//! §5.4).

use diameter::endpoint::Request;
use diameter::proto::known;
use diameter::proto::{Avps, Fault, MessageMut};
use serde_json::{Value, json};
use store::{Batch, Stored};

use super::{unable, written};
use crate::events::Event;
use crate::record::{Notice, Subscription};
use crate::repository::delete_as_read;
use crate::s6t;
use crate::worker::Worker;

/// Takes the reports of a request: they are stored for the SCS/AS before the answer.
pub(super) async fn take(worker: &Worker, request: &Request) -> Result<Option<MessageMut>, Fault> {
    let (mut batch, mut notices, mut unknown) = (Batch::default(), Vec::new(), false);
    let (mut ended, mut reported) = (Vec::new(), 0);
    for group in s6t::reports(&request.message) {
        let reference = group.clone().require(known::SCEF_REFERENCE_ID)?;
        let key = reference.to_be_bytes();
        let found = worker
            .repository()
            .subscriptions
            .get(&key)
            .await
            .map_err(unable)?;
        let Some(found) = found.filter(|_| is_ours(worker, &group)) else {
            unknown = true;
            continue;
        };
        let report = s6t::report(&found.document, &group)?;
        reported += 1;
        if let Some(reports) = reports_about(&found, &mut notices) {
            // Several reports about one subscription in a request: one change of its record, all in one notification.
            reports.push(report);
            continue;
        }
        notices.push(notice(worker, &found, report));
        ended.extend(count_down(worker, found, &mut batch));
    }
    if notices.is_empty() && unknown {
        worker.count(Event::UnknownReference);
        let fault = Fault::new(s6t::REFERENCE_UNKNOWN, "SCEF-Reference-ID is not known here");
        return Err(fault.of_vendor(known::VENDOR_3GPP));
    }
    let Some(answer) = written(worker, request, batch, notices).await? else {
        return Ok(None);
    };
    (0..reported).for_each(|_| worker.count(Event::Reported));
    for scs in ended {
        worker.shared().subscriptions.sub(&scs);
        worker.count(Event::Unsubscribed);
    }
    Ok(Some(answer))
}

/// Whether a report is for this SCEF; one without SCEF-ID is.
fn is_ours(worker: &Worker, group: &Avps<'_>) -> bool {
    let id = group.clone().get(known::SCEF_ID);
    let host = &worker.config().diameter.host;
    id.is_ok_and(|id| id.is_none_or(|id| id.eq_ignore_ascii_case(host)))
}

fn notice(worker: &Worker, found: &Subscription, report: Value) -> Notice {
    let uri = worker.shared().subscription_uri(found);
    let body = json!({"subscription": uri, "monitoringEventReports": [report]});
    worker.shared().notice(found.id(), &found.document, body)
}

/// The reports of the notification about a subscription, if a request has brought one before.
fn reports_about<'a>(found: &Subscription, notices: &'a mut [Notice]) -> Option<&'a mut Vec<Value>> {
    let about = found.id();
    let notice = notices.iter_mut().find(|notice| notice.about == about)?;
    notice.body["monitoringEventReports"].as_array_mut()
}

/// One report less may follow; the last one ends the subscription (TS 23.682 §5.6.0), whose SCS/AS it returns.
fn count_down(worker: &Worker, found: Stored<Subscription>, batch: &mut Batch) -> Option<String> {
    let table = &worker.repository().subscriptions;
    match found.left? {
        0 | 1 => {
            delete_as_read(batch, table, &found);
            Some(found.record.scs)
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
