//! T4 (TS 29.337): device triggers for an SMS-SC, and its reports.

use diameter::proto::known::{self, application, command};
use diameter::proto::{AvpWriter, MessageMut};
use serde_json::Value;

use crate::config::Config;
use crate::record::Trigger;
use crate::{identity, s6m, s6t, shape};

/// DIAMETER_ERROR_ORIGINAL_MESSAGE_NOT_PENDING (TS 29.337 §7.3.7).
pub(crate) const NOT_PENDING: u32 = 5535;
/// DIAMETER_ERROR_SC_CONGESTION (TS 29.338 §7.3).
pub(crate) const CONGESTION: u32 = 5531;

/// What a DTR asks for (Trigger-Action, TS 29.337 §6.3.6).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Action {
    Trigger,
    Recall,
    Replace,
}

/// DTR about a trigger (TS 29.337 §6.2.3). `reference` is that of the trigger that it brings; a recall brings none.
pub(crate) fn submit(
    config: &Config,
    trigger: &Trigger,
    action: Action,
    reference: Option<u32>,
    nodes: &AvpWriter,
) -> Option<MessageMut> {
    let (settings, document) = (&config.diameter, &trigger.document);
    let which = (command::DEVICE_TRIGGER, application::T4);
    let session = s6t::session_id(settings);
    let mut request = s6t::begin(settings, which, &session, settings.sms_sc(), |_| {});
    identity::put_user_of(&mut request, Some(&trigger.imsi), document);
    let old = (action != Action::Trigger).then(|| trigger.reference());
    let number = |name: &str| document.get(name).and_then(Value::as_u64);
    let number = |name: &str| number(name).and_then(|number| u32::try_from(number).ok());
    request
        .put(
            known::SM_RP_SMEA,
            &identity::sme_address(&config.triggering.sme_address),
        )
        .put(known::PAYLOAD, &shape::octets_of(document, "triggerPayload"))
        .append_encoded(nodes.as_bytes())
        .maybe(known::REFERENCE_NUMBER, reference)
        .maybe(known::VALIDITY_TIME, number("validityPeriod"))
        .put(known::PRIORITY_INDICATION, s6m::priority(document))
        .maybe(known::APPLICATION_PORT_IDENTIFIER, number("applicationPortId"))
        .maybe(known::OLD_REFERENCE_NUMBER, old)
        .put(known::TRIGGER_ACTION, action as u32);
    request.finish().ok()
}

/// `DeliveryResult` (TS 29.122 §5.7.2.2.3) of a SM-Delivery-Outcome-T4 (TS 29.337 §6.3.1).
pub(crate) fn result_of(outcome: i32) -> &'static str {
    match outcome {
        // ABSENT_SUBSCRIBER, UE_MEMORY_CAPACITY_EXCEEDED.
        0 | 1 => "FAILURE",
        // SUCCESSFUL_TRANSFER.
        2 => "SUCCESS",
        // VALIDITY_TIME_EXPIRED.
        3 => "EXPIRED",
        _ => "UNKNOWN",
    }
}
