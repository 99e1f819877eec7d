//! What a proxy has to find in order before it passes a request on (RFC 6733 §4.1, §6.1). What it does not use is
//! the PCF's to judge.

use diameter::proto::known;
use diameter::proto::{Avps, Dictionary, Fault, MessageMut, ResultCode, Routing};

/// Groups within groups are followed so deep; the deepest of 3GPP's go to about eight.
const MAX_DEPTH: usize = 16;

/// The AVPs that a request needs to get anywhere and its answer to come back.
pub(super) fn addressed(routing: &Routing<'_>) -> Result<(), Fault> {
    let missing = if routing.session_id.is_none() {
        Fault::missing(known::SESSION_ID)
    } else if routing.origin_host.is_none() {
        Fault::missing(known::ORIGIN_HOST)
    } else if routing.origin_realm.is_none() {
        Fault::missing(known::ORIGIN_REALM)
    } else if routing.destination_realm.is_none() {
        Fault::missing(known::DESTINATION_REALM)
    } else {
        return Ok(());
    };
    Err(missing)
}

/// No AVP, at any depth, that has the M flag and is not known.
pub(super) fn understood(message: &MessageMut) -> Result<(), Fault> {
    walk(message.avps(), Dictionary::standard(), 0)
}

fn walk(avps: Avps<'_>, dictionary: &Dictionary, depth: usize) -> Result<(), Fault> {
    for avp in avps {
        let avp = avp?;
        match dictionary.avp(avp.key()) {
            None if avp.flags.contains(diameter::proto::AvpFlags::MANDATORY) => {
                let why = format!("AVP {} is not known and has the M flag", avp.key());
                return Err(Fault::new(ResultCode::AVP_UNSUPPORTED, why).about(avp.padded()));
            }
            Some(definition) if definition.kind == diameter::proto::AvpType::Grouped => {
                if depth >= MAX_DEPTH {
                    let why = "groups are nested too deep";
                    return Err(Fault::new(ResultCode::INVALID_AVP_VALUE, why).about(avp.padded()));
                }
                walk(avp.group(), dictionary, depth + 1)?;
            }
            _ => {}
        }
    }
    Ok(())
}
