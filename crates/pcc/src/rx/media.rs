//! Media-Component-Description (TS 29.214 §5.3.16) as `MediaComponent`.

use diameter_proto::kind::{Enumerated, Unsigned32, Unsigned64};
use diameter_proto::known::{self, VENDOR_3GPP, key};
use diameter_proto::{Avp, AvpKey, Fault};
use serde_json::{Value, json};

use crate::avp::{self, Names, push};
use crate::json::{self, Object};
use crate::rate;

const MEDIA_TYPE: Names = &[
    (0, "AUDIO"),
    (1, "VIDEO"),
    (2, "DATA"),
    (3, "APPLICATION"),
    (4, "CONTROL"),
    (5, "TEXT"),
    (6, "MESSAGE"),
    (-1, "OTHER"),
];
const FLOW_USAGE: Names = &[(0, "NO_INFO"), (1, "RTCP"), (2, "AF_SIGNALLING")];
const SIGNALLING_PROTOCOL: Names = &[(0, "NO_INFORMATION"), (1, "SIP")];
const SHARING: Names = &[(0, "ENABLED"), (1, "DISABLED")];

/// Bandwidths and their members.
const BANDWIDTHS: &[(AvpKey, &str, u64)] = &[
    (key::MAX_REQUESTED_BANDWIDTH_UL, "marBwUl", 1),
    (key::MAX_REQUESTED_BANDWIDTH_DL, "marBwDl", 1),
    (key::MIN_REQUESTED_BANDWIDTH_UL, "mirBwUl", 1),
    (key::MIN_REQUESTED_BANDWIDTH_DL, "mirBwDl", 1),
    (key::RS_BANDWIDTH, "rsBw", 1),
    (key::RR_BANDWIDTH, "rrBw", 1),
    (tgpp(544), "maxSuppBwUl", 1),
    (tgpp(543), "maxSuppBwDl", 1),
    (tgpp(546), "minDesBwUl", 1),
    (tgpp(545), "minDesBwDl", 1),
];
/// Bandwidths in kbit/s, which count where they are present.
const EXTENDED: &[(AvpKey, &str, u64)] = &[
    (key::EXTENDED_MAX_REQUESTED_BW_UL, "marBwUl", 1000),
    (key::EXTENDED_MAX_REQUESTED_BW_DL, "marBwDl", 1000),
    (key::EXTENDED_MIN_REQUESTED_BW_UL, "mirBwUl", 1000),
    (key::EXTENDED_MIN_REQUESTED_BW_DL, "mirBwDl", 1000),
];

const fn tgpp(code: u32) -> AvpKey {
    AvpKey {
        vendor: VENDOR_3GPP,
        code,
    }
}

/// Number and content of a component.
pub(super) fn component(avp: &Avp<'_>) -> Result<(u32, Value), Fault> {
    let number = avp.group().require(known::MEDIA_COMPONENT_NUMBER)?;
    let mut out = Object::new();
    out.insert("medCompN".to_owned(), number.into());
    avp::walk(avp.group(), |inner| {
        match inner.key() {
            key::MEDIA_SUB_COMPONENT => {
                let (flow, value) = sub_component(inner)?;
                let flows = json::object(out.entry("medSubComps").or_insert_with(|| json!({})));
                if flows.len() < avp::MAX_ITEMS {
                    flows.insert(flow.to_string(), value);
                }
            }
            key::AF_APPLICATION_IDENTIFIER => {
                out.insert("afAppId".to_owned(), avp::text(inner).into());
            }
            key::MEDIA_TYPE => json::put(&mut out, "medType", avp::named(inner, MEDIA_TYPE)?),
            key::FLOW_STATUS => json::put(&mut out, "fStatus", avp::named(inner, avp::FLOW_STATUS)?),
            key::CODEC_DATA => push(&mut out, "codecs", avp::text(inner).into()),
            key::RESERVATION_PRIORITY => json::put(&mut out, "resPrio", priority(inner)?),
            key::PRE_EMPTION_CAPABILITY => {
                json::put(
                    &mut out,
                    "preemptCap",
                    avp::named(inner, avp::PREEMPTION_CAPABILITY)?,
                );
            }
            key::PRE_EMPTION_VULNERABILITY => {
                json::put(
                    &mut out,
                    "preemptVuln",
                    avp::named(inner, avp::PREEMPTION_VULNERABILITY)?,
                );
            }
            key::SHARING_KEY_DL => drop(out.insert("sharingKeyDl".to_owned(), number_of(inner)?)),
            key::SHARING_KEY_UL => drop(out.insert("sharingKeyUl".to_owned(), number_of(inner)?)),
            key::CONTENT_VERSION => {
                out.insert("contVer".to_owned(), inner.read::<Unsigned64>()?.into());
            }
            other if other == tgpp(550) => json::put(&mut out, "prioSharingInd", avp::named(inner, SHARING)?),
            other if other == tgpp(566) => {
                out.insert("flusId".to_owned(), avp::text(inner).into());
            }
            _ => {}
        }
        bandwidth(inner, &mut out, BANDWIDTHS)
    })?;
    avp::walk(avp.group(), |inner| bandwidth(inner, &mut out, EXTENDED))?;
    Ok((number, Value::Object(out)))
}

/// Number and content of a flow.
fn sub_component(avp: &Avp<'_>) -> Result<(u32, Value), Fault> {
    let number = avp.group().require(known::FLOW_NUMBER)?;
    let mut out = Object::new();
    out.insert("fNum".to_owned(), number.into());
    avp::walk(avp.group(), |inner| {
        match inner.key() {
            key::FLOW_DESCRIPTION => push(&mut out, "fDescs", avp::text(inner).into()),
            key::FLOW_STATUS => json::put(&mut out, "fStatus", avp::named(inner, avp::FLOW_STATUS)?),
            key::FLOW_USAGE => json::put(&mut out, "flowUsage", avp::named(inner, FLOW_USAGE)?),
            key::AF_SIGNALLING_PROTOCOL => {
                json::put(&mut out, "afSigProtocol", avp::named(inner, SIGNALLING_PROTOCOL)?);
            }
            key::TOS_TRAFFIC_CLASS => {
                out.insert("tosTrCl".to_owned(), avp::hex(inner.data).into());
            }
            _ => {}
        }
        bandwidth(inner, &mut out, BANDWIDTHS)
    })?;
    avp::walk(avp.group(), |inner| bandwidth(inner, &mut out, EXTENDED))?;
    Ok((number, Value::Object(out)))
}

fn bandwidth(avp: &Avp<'_>, out: &mut Object, names: &[(AvpKey, &str, u64)]) -> Result<(), Fault> {
    if let Some((_, member, factor)) = names.iter().find(|(known, ..)| *known == avp.key()) {
        let rate = u64::from(avp.read::<Unsigned32>()?) * factor;
        out.insert((*member).to_owned(), rate::text(rate).into());
    }
    Ok(())
}

fn number_of(avp: &Avp<'_>) -> Result<Value, Fault> {
    Ok(avp.read::<Unsigned32>()?.into())
}

/// `ReservPriority` of a Reservation-Priority: DEFAULT (0) is `PRIO_1`.
pub(super) fn priority(avp: &Avp<'_>) -> Result<Option<String>, Fault> {
    let priority = avp.read::<Enumerated>()?;
    Ok((0..=15)
        .contains(&priority)
        .then(|| format!("PRIO_{}", priority + 1)))
}
