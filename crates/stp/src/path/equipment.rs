//! The equipment identity register at subsystem 9: checkIMEI (TS 29.002 §8.7) by the lists of the Diameter register.

use smallvec::SmallVec;
use ss7_proto::map::{Fields, operation};
use ss7_proto::tcap::{ApplicationContext, Component, OperationCode, Outcome, Problem, Reason};

use super::request::{self, Invoke, Request};
use crate::cause::Equipment;

/// The application context of checkIMEI, equipmentMngt (TS 29.002 §17.3.2.14).
const EQUIPMENT_MANAGEMENT: u8 = 13;
/// The newest version of it, which is offered instead of one that is not supported.
const NEWEST: ApplicationContext<'_> = ApplicationContext::new(&[4, 0, 0, 1, 0, EQUIPMENT_MANAGEMENT, 3]);
/// Errors of the operation (TS 29.002 §17.6.1): systemFailure is not ours.
const UNKNOWN_EQUIPMENT: u8 = 7;
const DATA_MISSING: u8 = 35;
/// Tags of arguments: IMEI, the sequence of version 3, the information that is requested in it.
const OCTET_STRING: u32 = 0x04;
const SEQUENCE: u32 = 0x30;
const BIT_STRING: u32 = 0x03;

/// What a message to the register is answered by.
pub(super) enum Reply {
    /// Nothing.
    None,
    /// A Reject or an Abort.
    Refusal(Vec<u8>),
    /// The result or an error of checkIMEI, and what the lists say.
    Checked(Vec<u8>, Equipment),
}

/// Serves a message of TCAP.
pub(super) fn serve(lists: &dsr_eir::Eir, data: &[u8]) -> Reply {
    match request::read(data, accepts) {
        Request::None => Reply::None,
        Request::Refused(octets) => Reply::Refusal(octets),
        Request::Invoke(invoke) => check(lists, &invoke),
    }
}

fn accepts(context: ApplicationContext<'_>) -> Result<(), Reason<'_>> {
    match context.map() {
        Some((EQUIPMENT_MANAGEMENT, 1..=3)) => Ok(()),
        Some((EQUIPMENT_MANAGEMENT, _)) => Err(Reason::Context(NEWEST)),
        _ => Err(Reason::Context(context)),
    }
}

fn check(lists: &dsr_eir::Eir, invoke: &Invoke<'_>) -> Reply {
    // Version 1 has no dialogue.
    let version = invoke
        .context
        .and_then(|context| context.map())
        .map_or(1, |(_, version)| version);
    if invoke.component.operation != Some(OperationCode::Local(operation::CHECK_IMEI)) {
        return Reply::Refusal(invoke.answer(Outcome::Reject(Problem::UnrecognizedOperation)));
    }
    let found = match imei(&invoke.component) {
        // Requests of MAP name no subscriber.
        Ok(imei) => match lists.status_of(&imei, b"") {
            Some("white") => Equipment::White,
            Some("black") => Equipment::Black,
            Some("grey") => Equipment::Grey,
            _ => Equipment::Unknown,
        },
        Err(outcome) => return Reply::Checked(invoke.answer(outcome), Equipment::Unreadable),
    };
    // EquipmentStatus; from version 3 on within the sequence of CheckIMEI-Res.
    let result = [0x30, 3, 0x0a, 1, found as u8];
    let outcome = match found {
        Equipment::Unknown | Equipment::Unreadable => Outcome::Error(UNKNOWN_EQUIPMENT),
        Equipment::White | Equipment::Black | Equipment::Grey => {
            let bare = if version < 3 { 2 } else { 0 };
            let result = result.get(bare..).unwrap_or_default();
            Outcome::Result(operation::CHECK_IMEI as u8, result)
        }
    };
    Reply::Checked(invoke.answer(outcome), found)
}

/// The IMEI, or what its absence or a wrong form is answered by.
fn imei(invoke: &Component<'_>) -> Result<SmallVec<[u8; 16]>, Outcome<'static>> {
    let missing = Outcome::Error(DATA_MISSING);
    let mistyped = Outcome::Reject(Problem::MistypedParameter);
    let parameter = invoke.parameter.ok_or(missing)?;
    if parameter.tag.0 == SEQUENCE {
        // Its first member, which every version 3 request has.
        match parameter.elements().next() {
            None => return Err(missing),
            Some(Ok(first)) if first.tag.0 == OCTET_STRING => {}
            // Without IMEI it begins with the requested information.
            Some(Ok(first)) if first.tag.0 == BIT_STRING => return Err(missing),
            Some(_) => return Err(mistyped),
        }
    } else if parameter.tag.0 != OCTET_STRING {
        return Err(mistyped);
    }
    let imei = Fields::read(operation::CHECK_IMEI, parameter)
        .imei
        .ok_or(missing)?;
    let imei = imei.digits().ok_or(mistyped)?;
    let fits = (14..=16).contains(&imei.len()) && imei.iter().all(|digit| digit < 10);
    let text = imei.iter().map(|digit| b'0' + digit);
    if fits { Ok(text.collect()) } else { Err(mistyped) }
}
