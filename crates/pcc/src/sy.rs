//! Sy (TS 29.219): policy counters of a subscriber at an OCS, as the documents of Nchf_SpendingLimitControl (TS 29.594).

use diameter_proto::known::{self, key};
use diameter_proto::{Avp, AvpWriter, Fault, MessageRef};
use serde_json::{Value, json};
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

use crate::avp;
use crate::json::Object;

/// END_USER_E164, END_USER_IMSI, END_USER_NAI (RFC 8506 §8.47).
const E164: i32 = 0;
const IMSI: i32 = 1;
const NAI: i32 = 3;
/// Abort Session Request (TS 29.219 table 5.3.7-1).
const ABORT: u32 = 1 << 1;

/// SL-Request-Type (TS 29.219 §5.3.4).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RequestKind {
    /// The Sy session begins.
    Initial,
    /// Other policy counters are wanted.
    Intermediate,
}

/// Appends what a Spending-Limit-Request asks for: the statuses of these counters, or where none is named of all that the OCS
/// has for the subscriber (TS 29.219 §4.5.1). `identities` are a SUPI and a GPSI (TS 29.571); others are left out.
pub fn put_request<'a>(
    out: &mut AvpWriter,
    kind: RequestKind,
    identities: impl IntoIterator<Item = &'a str>,
    counters: impl IntoIterator<Item = &'a str>,
) {
    let kind = match kind {
        RequestKind::Initial => 0,
        RequestKind::Intermediate => 1,
    };
    out.put(known::SL_REQUEST_TYPE, kind);
    for identity in identities {
        put_subscription(out, identity);
    }
    for counter in counters {
        out.put(known::POLICY_COUNTER_IDENTIFIER, counter);
    }
}

/// Appends the Subscription-Id of a SUPI or GPSI; of other identities nothing.
pub(crate) fn put_subscription(out: &mut AvpWriter, identity: &str) {
    let (kind, data) = match identity.split_once('-') {
        Some(("imsi", digits)) => (IMSI, digits),
        Some(("nai", nai)) => (NAI, nai),
        Some(("msisdn", digits)) => (E164, digits),
        _ => return,
    };
    out.group(known::SUBSCRIPTION_ID, |out| {
        out.put(known::SUBSCRIPTION_ID_TYPE, kind)
            .put(known::SUBSCRIPTION_ID_DATA, data);
    });
}

/// What an SLA or SNR says: `PolicyCounterInfo` by identifier.
///
/// # Errors
/// A [`Fault`] where an AVP is wrong.
pub fn read_status(message: MessageRef<'_>) -> Result<Object, Fault> {
    let mut counters = Object::new();
    avp::walk(message.walk(), |avp| {
        if avp.key() == key::POLICY_COUNTER_STATUS_REPORT {
            let (id, info) = report(avp)?;
            counters.insert(id, info);
        }
        Ok(())
    })?;
    Ok(counters)
}

/// Whether an SNR asks for the end of the Sy session (TS 29.219 §4.5.4).
///
/// # Errors
/// A [`Fault`] where the AVP is wrong.
pub fn is_abort(message: MessageRef<'_>) -> Result<bool, Fault> {
    let kind = message.get(known::SN_REQUEST_TYPE)?;
    Ok(kind.is_some_and(|bits| bits & ABORT != 0))
}

/// A Policy-Counter-Status-Report (TS 29.219 §5.3.3).
fn report(avp: &Avp<'_>) -> Result<(String, Value), Fault> {
    let group = avp.group();
    let id = group.clone().require(known::POLICY_COUNTER_IDENTIFIER)?;
    let status = group.clone().require(known::POLICY_COUNTER_STATUS)?;
    let mut info = json!({"policyCounterId": id, "currentStatus": status});
    let mut pending = Vec::new();
    avp::walk(group, |inner| {
        if inner.key() != key::PENDING_POLICY_COUNTER_INFORMATION {
            return Ok(());
        }
        let group = inner.group();
        let status = group.clone().require(known::POLICY_COUNTER_STATUS)?;
        let time = group.require(known::PENDING_POLICY_COUNTER_CHANGE_TIME)?;
        let time = OffsetDateTime::from(time.to_system_time()).format(&Rfc3339);
        if let Ok(time) = time {
            pending.push(json!({"policyCounterStatus": status, "activationTime": time}));
        }
        Ok(())
    })?;
    if !pending.is_empty() {
        info["penPolCounterStatuses"] = pending.into();
    }
    Ok((id.to_owned(), info))
}
