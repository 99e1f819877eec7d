//! S6m (TS 29.336 §5, §6): where a device that is to be triggered is served.

use diameter::proto::known::{self, application, command};
use diameter::proto::{AvpWriter, Fault, Message, MessageMut};
use serde_json::Value;

use crate::config::Config;
use crate::{identity, s6t};

/// DEVICE_TRIGGER of Service-ID (TS 29.336 §6.4.3).
const DEVICE_TRIGGER: i32 = 0;
/// S6m/S6n Indicator of SIR-Flags: the sender is an MTC-IWF (TS 29.336 §6.4.10).
const S6M: u32 = 1;
/// Teleservice Not Provisioned and Call Barred of HSS-Cause (TS 29.336 §6.4.9). An absent subscriber does not hinder: the SMS-SC
/// keeps the trigger.
const HINDRANCES: u32 = 0b110;

/// Where a device is served.
#[derive(Debug)]
pub(crate) struct Served {
    pub(crate) imsi: String,
    /// Serving-Node and Additional-Serving-Node as the HSS has sent them.
    pub(crate) nodes: AvpWriter,
}

/// SIR for the device of a trigger.
pub(crate) fn query(config: &Config, document: &Value) -> Option<MessageMut> {
    let settings = &config.diameter;
    let which = (command::SUBSCRIBER_INFORMATION, application::S6M);
    let session = s6t::session_id(settings);
    let mut request = s6t::begin(settings, which, &session, settings.hss(), |_| {});
    identity::put_user(&mut request, document);
    request.put(known::SERVICE_ID, DEVICE_TRIGGER);
    request.group(known::SERVICE_PARAMETERS, |group| {
        group.group(known::T4_PARAMETERS, |group| {
            let originator = identity::sme_address(&config.triggering.sme_address);
            group
                .put(known::PRIORITY_INDICATION, priority(document))
                .put(known::SM_RP_SMEA, &originator);
        });
    });
    request.put(known::SIR_FLAGS, S6M);
    request.finish().ok()
}

/// Priority-Indication of a trigger (TS 29.368 §6.4.7).
pub(crate) fn priority(document: &Value) -> i32 {
    let priority = document.get("priority").and_then(Value::as_str);
    i32::from(priority == Some("PRIORITY"))
}

/// Where the device of a SIA is served; `None` if it has no short messages, or they are barred.
pub(crate) fn served(answer: &Message) -> Result<Option<Served>, Fault> {
    let mut nodes = AvpWriter::with_capacity(64);
    let data = answer.get(known::SERVICE_DATA)?;
    let data = data.map(|data| data.get(known::T4_DATA)).transpose()?.flatten();
    if let Some(data) = data {
        let cause = data.clone().get(known::HSS_CAUSE)?;
        if cause.is_some_and(|cause| cause & HINDRANCES != 0) {
            return Ok(None);
        }
        for avp in data.map_while(Result::ok) {
            if avp.is(known::SERVING_NODE) || avp.is(known::ADDITIONAL_SERVING_NODE) {
                nodes.copy(&avp);
            }
        }
    }
    let user = answer.require(known::USER_IDENTIFIER)?;
    let imsi = identity::imsi(user)?.ok_or_else(|| {
        let code = diameter::proto::ResultCode::INVALID_AVP_VALUE;
        Fault::new(code, "User-Identifier of a SIA has no IMSI")
    })?;
    Ok(Some(Served { imsi, nodes }))
}
