//! The equipment identity register at subsystem 9: checkIMEI (TS 29.002 §8.7) by the lists of the Diameter register.

use ss7_proto::map::{Fields, operation};
use ss7_proto::sccp::Unitdata;
use ss7_proto::tcap::{Answer, OperationCode, Outcome};

use super::number::single_invoke;
use crate::cause::Equipment;

/// The subsystem of an EIR (TS 23.003 §8.2).
pub(super) const SUBSYSTEM: u8 = 9;
/// The application context of checkIMEI, equipmentMngt (TS 29.002 §17.3.2.14).
const EQUIPMENT_MANAGEMENT: u8 = 13;
/// Errors of MAP (TS 29.002 §17.6.6): unknownEquipment, unexpectedDataValue.
const UNKNOWN_EQUIPMENT: u8 = 7;
const UNEXPECTED_VALUE: u8 = 36;

/// The End that answers checkIMEI, and what the lists say; `None` for other messages.
pub(super) fn check_imei(lists: &dsr_eir::Eir, unitdata: Unitdata<'_>) -> Option<(Vec<u8>, Equipment)> {
    let (begin, invoke) = single_invoke(unitdata)?;
    if invoke.operation != Some(OperationCode::Local(operation::CHECK_IMEI)) {
        return None;
    }
    let version = match begin.context {
        // Version 1 has no dialogue.
        None => 1,
        Some(context) => match context.map()? {
            (EQUIPMENT_MANAGEMENT, version @ 1..=3) => version,
            _ => return None,
        },
    };
    let imei = Fields::read(operation::CHECK_IMEI, invoke.parameter?).imei;
    let imei = imei.map(|imei| imei.to_string());
    let is_imei =
        |text: &String| (14..=16).contains(&text.len()) && text.bytes().all(|digit| digit.is_ascii_digit());
    let found = match imei.filter(is_imei) {
        None => Equipment::Unreadable,
        // Requests of MAP name no subscriber.
        Some(imei) => match lists.status_of(imei.as_bytes(), b"") {
            Some("white") => Equipment::White,
            Some("black") => Equipment::Black,
            Some("grey") => Equipment::Grey,
            _ => Equipment::Unknown,
        },
    };
    // EquipmentStatus; from version 3 on within the sequence of CheckIMEI-Res.
    let status = |status| [0x30, 3, 0x0a, 1, status];
    let result;
    let outcome = match found {
        Equipment::Unreadable => Outcome::Error(UNEXPECTED_VALUE),
        Equipment::Unknown => Outcome::Error(UNKNOWN_EQUIPMENT),
        Equipment::White | Equipment::Black | Equipment::Grey => {
            result = status(found as u8);
            let bare = if version < 3 { 2 } else { 0 };
            Outcome::Result(
                operation::CHECK_IMEI as u8,
                result.get(bare..).unwrap_or_default(),
            )
        }
    };
    let mut out = Vec::with_capacity(64);
    Answer {
        destination: begin.originating?,
        context: begin.context,
        invoke_id: i8::try_from(invoke.invoke_id?).ok()?,
        outcome,
    }
    .write(&mut out);
    Some((out, found))
}
