//! The data of SCCP messages: a Begin of TCAP (Q.773) with one operation of MAP (TS 29.002), and the answers to it.

use loadgen::m3ua::Reading;
use ss7_proto::Digits;
use ss7_proto::ber::Element;
use ss7_proto::m3ua::Data;
use ss7_proto::sccp::Message;
use ss7_proto::tcap::{ComponentType, MessageType, OperationCode, Transaction, element};

/// Operations (TS 29.002 §17.5).
pub(super) const SEND_ROUTING_INFO: u8 = 22;
pub(super) const CHECK_IMEI: u8 = 43;
pub(super) const MO_FORWARD_SM: u8 = 46;
pub(super) const SEND_ROUTING_INFO_FOR_SM: u8 = 45;
pub(super) const UPDATE_LOCATION: u8 = 2;
pub(super) const INSERT_SUBSCRIBER_DATA: u8 = 7;
/// Application contexts (TS 29.002 §17.3.2), of version 3.
const LOCATION_INFO: u8 = 5;
const EQUIPMENT_MANAGEMENT: u8 = 13;
/// Nature and plan of an address of MAP: international, E.164.
const ISDN: u8 = 0x91;
/// The error unknownEquipment (TS 29.002 §17.6.1).
pub(super) const UNKNOWN_EQUIPMENT: i32 = 7;

/// Appends a Begin: the operation about these digits, with as much filler as it says.
pub(super) fn begin(transaction: u32, operation: u8, digits: &str, filler: usize, out: &mut Vec<u8>) {
    let context = match operation {
        SEND_ROUTING_INFO => Some([LOCATION_INFO, 3]),
        CHECK_IMEI => Some([EQUIPMENT_MANAGEMENT, 3]),
        _ => None,
    };
    begin_in(context, transaction, operation, out, |out| {
        argument(operation, digits, filler, out);
    });
}

/// Appends a Begin with one Invoke; the application context by its number and version.
pub(super) fn begin_in(
    context: Option<[u8; 2]>,
    transaction: u32,
    operation: u8,
    out: &mut Vec<u8>,
    argument: impl FnOnce(&mut Vec<u8>),
) {
    element(0x62, out, |out| {
        element(0x48, out, |out| out.extend(transaction.to_be_bytes()));
        if let Some(context) = context {
            dialogue(context, out);
        }
        element(0x6c, out, |out| {
            element(0xa1, out, |out| {
                out.extend([2, 1, 1, 2, 1, operation]);
                element(0x30, out, argument);
            });
        });
    });
}

/// A dialogue request (Q.773 §4.2.1) for an application context of MAP or CAP.
fn dialogue([context, version]: [u8; 2], out: &mut Vec<u8>) {
    element(0x6b, out, |out| {
        element(0x28, out, |out| {
            out.extend([0x06, 7, 0, 0x11, 0x86, 5, 1, 1, 1]);
            element(0xa0, out, |out| {
                element(0x60, out, |out| {
                    out.extend([0x80, 2, 7, 0x80, 0xa1, 9, 6, 7, 4, 0, 0, 1, 0, context, version]);
                });
            });
        });
    });
}

fn argument(operation: u8, digits: &str, filler: usize, out: &mut Vec<u8>) {
    let number = |tag: u8, out: &mut Vec<u8>| {
        element(tag, out, |out| {
            out.push(ISDN);
            out.extend(tbcd(digits));
        });
    };
    match operation {
        SEND_ROUTING_INFO => {
            number(0x80, out);
            // interrogationType basicCall, gmsc-Address.
            out.extend([0x83, 1, 0, 0x86, 3, ISDN, 0x34, 0x66]);
        }
        CHECK_IMEI => {
            element(0x04, out, |out| out.extend(tbcd(digits)));
            // requestedEquipmentInfo: equipmentStatus.
            out.extend([3, 2, 6, 0x80]);
            return;
        }
        _ => number(0x80, out),
    }
    // An extension container (TS 29.002 §17.7.11), whose private part no reader knows.
    let tag = if operation == SEND_ROUTING_INFO {
        0xaa
    } else {
        0xa6
    };
    if filler > 0 {
        element(tag, out, |out| {
            element(0xa1, out, |out| {
                element(0x80, out, |out| {
                    let end = out.len() + filler;
                    out.resize(end, 0x55);
                });
            });
        });
    }
}

/// Digits of MAP: the filler of an odd count is 15.
pub(super) fn tbcd(digits: &str) -> Vec<u8> {
    let digits = Digits::parse(digits).unwrap_or_default();
    let mut octets = digits.packed().to_vec();
    if !digits.len().is_multiple_of(2)
        && let Some(last) = octets.last_mut()
    {
        *last |= 0xf0;
    }
    octets
}

/// The transaction of a message that has arrived, and why it came back.
pub(super) fn reading(data: &Data<'_>) -> Option<Reading> {
    let Ok(Message::Unitdata(unitdata)) = Message::parse(data.user_data) else {
        return None;
    };
    Some(Reading {
        transaction: transaction(unitdata.data)?,
        returned: unitdata.return_cause().map(|cause| cause.0),
    })
}

/// The transaction of a Begin, or the one that an End or Abort answers.
fn transaction(data: &[u8]) -> Option<u32> {
    let message = Transaction::parse(data).ok()?;
    let id = match message.message_type {
        MessageType::Begin => message.originating?,
        _ => message.destination?,
    };
    id.octets().try_into().ok().map(u32::from_be_bytes)
}

/// What an End says.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Answer<'a> {
    /// The result of this operation.
    Result(u8, Element<'a>),
    /// This operation in return, and its argument.
    Invoke(u8, Option<Element<'a>>),
    /// This error.
    Error(i32),
    /// Something else.
    Other,
}

/// The answer in an End with one component.
pub(super) fn answer(data: &[u8]) -> Answer<'_> {
    let read = || {
        let message = Transaction::parse(data).ok()?;
        if message.message_type != MessageType::End {
            return None;
        }
        let mut components = message.components;
        let component = components.next()?.ok()?;
        if components.next().is_some() || component.invoke_id != Some(1) {
            return None;
        }
        Some(match (component.component_type, component.operation) {
            (ComponentType::ReturnResult, Some(OperationCode::Local(operation))) => {
                Answer::Result(u8::try_from(operation).ok()?, component.parameter?)
            }
            (ComponentType::Invoke, Some(OperationCode::Local(operation))) => {
                Answer::Invoke(u8::try_from(operation).ok()?, component.parameter)
            }
            (ComponentType::ReturnError, _) => Answer::Error(component.error?),
            _ => Answer::Other,
        })
    };
    read().unwrap_or(Answer::Other)
}

/// The roaming number in a result of sendRoutingInfo of version 3, as MAP has it.
pub(super) fn roaming_number(result: &Element<'_>) -> Option<Vec<u8>> {
    let elements = result.elements().map_while(Result::ok);
    let mut numbers = elements.filter(|element| element.tag.0 == 0x04);
    Some(numbers.next()?.value.to_vec())
}

/// The address of MAP for a number.
pub(super) fn isdn(digits: &str) -> Vec<u8> {
    [&[ISDN][..], &tbcd(digits)].concat()
}

/// EquipmentStatus in a result of checkIMEI of version 3.
pub(super) fn equipment_status(result: &Element<'_>) -> Option<i32> {
    let first = result.elements().next()?.ok()?;
    first.integer()
}

#[cfg(test)]
mod tests {
    use super::*;
    use ss7_proto::map::Fields;

    #[test]
    fn requests_are_read_as_they_are_meant() {
        for operation in [
            SEND_ROUTING_INFO,
            CHECK_IMEI,
            MO_FORWARD_SM,
            SEND_ROUTING_INFO_FOR_SM,
            UPDATE_LOCATION,
        ] {
            for filler in [0, 100] {
                let mut octets = Vec::new();
                begin(0xdead_beef, operation, "35209900176148", filler, &mut octets);
                assert_eq!(transaction(&octets), Some(0xdead_beef));
                let message = Transaction::parse(&octets).unwrap();
                let context = message.context.and_then(|context| context.map());
                assert_eq!(
                    context.is_some(),
                    matches!(operation, SEND_ROUTING_INFO | CHECK_IMEI)
                );
                let invoke = message.components.clone().next().unwrap().unwrap();
                assert_eq!(invoke.operation, Some(OperationCode::Local(i32::from(operation))));
                let fields = Fields::read(i32::from(operation), invoke.parameter.unwrap());
                let read = fields.imei.and_then(|imei| imei.digits());
                assert_eq!(read.is_some(), operation == CHECK_IMEI);
                let number = fields.msisdn.and_then(|one| one.number.digits());
                if operation == SEND_ROUTING_INFO {
                    assert_eq!(number.unwrap().to_string(), "35209900176148");
                }
                assert_eq!(answer(&octets), Answer::Other, "a Begin answers nothing");
            }
        }
    }
}
