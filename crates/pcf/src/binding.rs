//! Session binding: the association that an AF's request is about (TS 29.513 §6.2, TS 29.514 §4.2.2.2).

use std::pin::pin;

use ::policy::Service;
use function::sbi::elsewhere;
use pcc::{Cause, Refusal};
use serde_json::Value;
use store::Stored;

use crate::activity::trail;
use crate::association::address::UeAddress;
use crate::association::af::{self, AfSession};
use crate::association::claims::network;
use crate::association::{Association, AssociationId, Kind};
use crate::events::Event;
use crate::pds;
use crate::pre;
use crate::worker::Worker;

/// Why an AF's request finds no session.
#[derive(Debug)]
pub(crate) enum Unbound {
    /// There is none.
    Refused(Refusal),
    /// The store failed.
    Store(store::Error),
}

impl From<store::Error> for Unbound {
    fn from(error: store::Error) -> Self {
        Self::Store(error)
    }
}

/// The members of a request that have an address of the UE.
const ADDRESSES: [&str; 3] = ["ueIpv4", "ueIpv6", "ueMac"];

/// The association that `AppSessionContextReqData` is about: by the address of the UE, and where several have it by DNN,
/// slice and subscriber, of those the newest.
pub(crate) async fn bind(worker: &Worker, request: &Value) -> Result<AssociationId, Unbound> {
    find(worker, request).await.map(|association| association.id)
}

/// As [`bind`], the association itself; a request without an address (P-CSCF restoration over Rx) finds it by the subscriber.
pub(crate) async fn find(worker: &Worker, request: &Value) -> Result<Association, Unbound> {
    let text = |member: &str| request.get(member).and_then(Value::as_str);
    let domain = text("ipDomain");
    for member in ADDRESSES {
        let Some(address) = text(member).and_then(UeAddress::parse) else {
            continue;
        };
        let found = worker.repository().at_in(address, domain, text("dnn")).await?;
        if let Some(stored) = found.into_iter().find(|stored| fits(&stored.record, request)) {
            return Ok(stored.record);
        }
    }
    // A search by the address reads some of its sessions only, of which none may be the subscriber's.
    let addresses: Vec<UeAddress> = ADDRESSES
        .iter()
        .filter_map(|member| text(member).and_then(UeAddress::parse))
        .collect();
    let has_address = ADDRESSES.iter().any(|member| request.get(member).is_some());
    if let Some(supi) = text("supi") {
        let found = worker.repository().of_supi(supi).await?;
        let is_there = |one: &Association| addresses.iter().any(|address| address.is_of(one, domain));
        let is_own = |one: &Association| {
            !one.has_invalid_supi() && fits(one, request) && (!has_address || is_there(one))
        };
        if let Some(stored) = found.into_iter().find(|stored| is_own(&stored.record)) {
            return Ok(stored.record);
        }
    }
    trail::concerns_subscriber(text("supi"), text("gpsi"));
    Err(Unbound::Refused(Refusal {
        cause: Cause::SessionNotAvailable,
        at: String::new(),
        detail: "no session has this address, DNN, slice and subscriber".to_owned(),
    }))
}

/// Adds or replaces an AF session of an association ([`af::put`]). That there is no room for one more is counted.
pub(crate) fn attach(
    worker: &Worker,
    association: &mut Association,
    session: &AfSession,
) -> Result<(), Refusal> {
    af::put(association, session, worker.mapping()).inspect_err(|refusal| {
        if refusal.cause == Cause::RequestedServiceTemporarilyNotAuthorized {
            worker.count(Event::AfSessionsFull);
        }
    })
}

/// Whether the project of sessions decides on what AFs ask for.
pub(crate) fn has_project(worker: &Worker) -> bool {
    worker.projects(Service::Sm).project.reads_af()
}

/// Refuses what an AF asks for where the project does (event `af`), with its cause if that is one of TS 29.514 table 5.7-1.
/// `before`: what it has asked for so far; a change of its subscription to events alone is not asked about.
pub(crate) async fn ask_project(
    worker: &Worker,
    association: &Association,
    (before, request): (Option<&Value>, &Value),
) -> Result<(), Refusal> {
    let is_same = before.is_some_and(|before| without_events(before) == without_events(request));
    if is_same || !has_project(worker) {
        return Ok(());
    }
    let refused = match pre::authorize(worker, association, request).await {
        Ok(()) => return Ok(()),
        Err(refused) => refused,
    };
    let (cause, detail) = match refused {
        pre::Refusal::Policy { cause, detail, .. } => (
            Cause::named(&cause).unwrap_or(Cause::RequestedServiceNotAuthorized),
            detail,
        ),
        // It cannot decide now.
        _ => (Cause::RequestedServiceTemporarilyNotAuthorized, None),
    };
    Err(Refusal {
        cause,
        at: String::new(),
        detail: detail.unwrap_or_else(|| "the policy refuses it".to_owned()),
    })
}

/// A request of an AF without its subscription to events.
fn without_events(request: &Value) -> Vec<(&String, &Value)> {
    let members = request.as_object().into_iter().flatten();
    members.filter(|(name, _)| *name != "evSubsc").collect()
}

/// Refuses a service that the subscriber may not use (`allowedServices`, TS 29.519 §5.4.2.5), where the settings have it so. Without
/// policy data, or an `afAppId`, nothing is refused.
pub(crate) async fn check_services(
    worker: &Worker,
    association: &Association,
    request: &Value,
) -> Result<(), Refusal> {
    if !worker.mapping().allowed_services {
        return Ok(());
    }
    let Ok(data) = elsewhere(pin!(pds::of(worker, association))).await else {
        return Ok(());
    };
    let Some(allowed) = allowed_services(&data.subscriber, association) else {
        return Ok(());
    };
    let components = request.get("medComponents").and_then(Value::as_object);
    let components = components.into_iter().flatten();
    let parts = components.map(|(key, component)| (format!("/medComponents/{key}/afAppId"), component));
    for (at, part) in std::iter::once(("/afAppId".to_owned(), request)).chain(parts) {
        let service = part.get("afAppId").and_then(Value::as_str);
        if let Some(service) = service.filter(|service| !allowed.contains(service)) {
            return Err(Refusal {
                cause: Cause::RequestedServiceNotAuthorized,
                at,
                detail: format!("the subscriber may not use the service {service:?}"),
            });
        }
    }
    Ok(())
}

/// Refuses a new AF session with media at a session of an emergency DNN that is not about an emergency (TS 29.214 §4.4.1, §5.5.3;
/// TS 29.514 table 5.7-1). One without media, or for signalling alone, serves the registration of the UE.
pub(crate) fn check_emergency(
    worker: &Worker,
    association: &Association,
    request: &Value,
) -> Result<(), Refusal> {
    let settings = &worker.config().emergency;
    let is_local = association.text_of("dnn").is_some_and(|dnn| settings.has(dnn));
    let components = request.get("medComponents").and_then(Value::as_object);
    let has_media = components.is_some_and(|components| components.values().any(is_media));
    if !settings.require_service_urn || !is_local || !has_media || is_emergency(request) {
        return Ok(());
    }
    Err(Refusal {
        cause: Cause::UnauthorizedNonEmergencySession,
        at: "/servUrn".to_owned(),
        detail: "the session of the UE is for emergency services alone".to_owned(),
    })
}

/// Whether a media component is more than signalling.
fn is_media(component: &Value) -> bool {
    let flows = component.get("medSubComps").and_then(Value::as_object);
    let usage = |flow: &Value| flow.get("flowUsage").and_then(Value::as_str) == Some("AF_SIGNALLING");
    flows.is_none_or(|flows| flows.is_empty() || !flows.values().all(usage))
}

/// Whether a request is about an emergency service (RFC 5031 §4.2): `sos`, `sos.fire`, with or without `urn:service:`.
fn is_emergency(request: &Value) -> bool {
    let urn = request.get("servUrn").and_then(Value::as_str).unwrap_or_default();
    let urn = urn.to_ascii_lowercase();
    let service = urn.strip_prefix("urn:service:").unwrap_or(&urn);
    service.split('.').next() == Some("sos")
}

/// The services that policy data allow in the slice and DNN of an association; `None`: they say nothing of it.
fn allowed_services<'d>(data: &'d Value, association: &Association) -> Option<Vec<&'d str>> {
    let dnn = association.text_of("dnn")?;
    let wanted = association.context.get("sliceInfo");
    let slices = data.get("smPolicySnssaiData")?.as_object()?.values();
    let of_slice = |slice: &&Value| match (wanted, slice.get("snssai")) {
        (Some(wanted), Some(held)) => same_slice(wanted, held),
        _ => true,
    };
    let mut found = slices.filter(of_slice).filter_map(|slice| {
        let data = pcc::usage::of_dnn(slice.get("smPolicyDnnData")?, dnn)?;
        data.get("allowedServices")?.as_array()
    });
    Some(found.next()?.iter().filter_map(Value::as_str).collect())
}

/// The associations of a name that another protocol gives, the newest.
pub(crate) async fn named(worker: &Worker, name: &str) -> Result<Option<Stored<Association>>, store::Error> {
    Ok(worker.repository().of_name(name).await?.into_iter().next())
}

fn fits(association: &Association, request: &Value) -> bool {
    let text = |member: &str| request.get(member).and_then(Value::as_str);
    let same = |member: &str| {
        let (wanted, held) = (text(member), association.text_of(member));
        wanted.is_none() || held.is_none() || wanted == held
    };
    let dnn = match (text("dnn"), association.text_of("dnn")) {
        (Some(wanted), Some(held)) => network(wanted).eq_ignore_ascii_case(network(held)),
        _ => true,
    };
    let slice = match (request.get("sliceInfo"), association.context.get("sliceInfo")) {
        (Some(wanted), Some(held)) => same_slice(wanted, held),
        _ => true,
    };
    matches!(association.kind, Kind::Sm | Kind::Gx) && dnn && slice && same("supi") && same("gpsi")
}

fn same_slice(wanted: &Value, held: &Value) -> bool {
    let sd = |slice: &Value| {
        slice
            .get("sd")
            .and_then(Value::as_str)
            .map(str::to_ascii_lowercase)
    };
    wanted.get("sst") == held.get("sst") && sd(wanted) == sd(held)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn dnn_slice_and_subscriber_distinguish_sessions_of_one_address() {
        let context = json!({"dnn": "ims.mnc001.mcc001.gprs", "supi": "imsi-1", "sliceInfo": {"sst": 1, "sd": "00000A"}});
        let association = Association::new(Kind::Sm, context);
        for (request, expected) in [
            (json!({}), true),
            (json!({"dnn": "IMS"}), true),
            (json!({"dnn": "internet"}), false),
            (json!({"sliceInfo": {"sst": 1, "sd": "00000a"}}), true),
            (json!({"sliceInfo": {"sst": 1}}), false),
            (json!({"supi": "imsi-2"}), false),
            (json!({"gpsi": "msisdn-2"}), true),
        ] {
            assert_eq!(fits(&association, &request), expected, "{request}");
        }
        assert!(!fits(&Association::new(Kind::Am, json!({})), &json!({})));
    }
}
