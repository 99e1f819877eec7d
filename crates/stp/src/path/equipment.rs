//! The equipment identity register at subsystem 9: checkIMEI (TS 29.002 §8.7) by the lists of the Diameter register.

use smallvec::SmallVec;
use ss7_proto::map::{Fields, operation};
use ss7_proto::tcap::{
    self, Answer, ApplicationContext, Component, ComponentType, MessageType, OperationCode, Outcome, Problem,
    Reason, Transaction,
};

use crate::cause::Equipment;

/// The subsystem of an EIR (TS 23.003 §8.2).
pub(super) const SUBSYSTEM: u8 = 9;
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

/// Serves a message of TCAP (Q.774 §3.2, §3.3).
pub(super) fn serve(lists: &dsr_eir::Eir, data: &[u8]) -> Reply {
    let Ok(message) = Transaction::parse(data) else {
        return Reply::None;
    };
    let (false, Some(to)) = (message.ansi, message.originating) else {
        // Neither End nor Abort nor Unidirectional has who could be answered.
        return Reply::None;
    };
    let reason = match message.message_type {
        MessageType::Begin => match context(&message) {
            Ok(version) => return begin(lists, &message, version),
            Err(reason) => reason,
        },
        MessageType::Continue => Reason::UnknownTransaction,
        MessageType::Unidirectional | MessageType::End | MessageType::Abort => return Reply::None,
    };
    let mut out = Vec::with_capacity(64);
    tcap::abort(to, reason, &mut out);
    Reply::Refusal(out)
}

/// The version of equipmentMngt, or why there is none.
fn context<'a>(begin: &Transaction<'a>) -> Result<u8, Reason<'a>> {
    match begin.context {
        None if begin.has_dialogue => Err(Reason::BadDialogue),
        // Version 1 has no dialogue.
        None => Ok(1),
        Some(context) => match context.map() {
            Some((EQUIPMENT_MANAGEMENT, version @ 1..=3)) => Ok(version),
            Some((EQUIPMENT_MANAGEMENT, _)) => Err(Reason::Context(NEWEST)),
            _ => Err(Reason::Context(context)),
        },
    }
}

fn begin(lists: &dsr_eir::Eir, begin: &Transaction<'_>, version: u8) -> Reply {
    let Some(destination) = begin.originating else {
        return Reply::None;
    };
    let answer = |invoke_id, outcome| {
        let mut out = Vec::with_capacity(64);
        Answer {
            destination,
            context: begin.context,
            invoke_id,
            outcome,
        }
        .write(&mut out);
        out
    };
    let reject = |id, problem| Reply::Refusal(answer(id, Outcome::Reject(problem)));
    let mut components = begin.components;
    let invoke = match (components.next(), components.next()) {
        (Some(Err(_)), _) => return reject(None, Problem::BadlyStructuredComponent),
        (Some(Ok(one)), None) if one.component_type == ComponentType::Invoke => one,
        // One request is what a dialogue with the register is for.
        _ => {
            let mut out = Vec::with_capacity(48);
            let has_dialogue = begin.has_dialogue;
            tcap::abort(destination, Reason::User { has_dialogue }, &mut out);
            return Reply::Refusal(out);
        }
    };
    let Some(id) = invoke.invoke_id.and_then(|id| i8::try_from(id).ok()) else {
        return reject(None, Problem::MistypedComponent);
    };
    if invoke.operation != Some(OperationCode::Local(operation::CHECK_IMEI)) {
        return reject(Some(id), Problem::UnrecognizedOperation);
    }
    let found = match imei(&invoke) {
        // Requests of MAP name no subscriber.
        Ok(imei) => match lists.status_of(&imei, b"") {
            Some("white") => Equipment::White,
            Some("black") => Equipment::Black,
            Some("grey") => Equipment::Grey,
            _ => Equipment::Unknown,
        },
        Err(outcome) => return Reply::Checked(answer(Some(id), outcome), Equipment::Unreadable),
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
    Reply::Checked(answer(Some(id), outcome), found)
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
