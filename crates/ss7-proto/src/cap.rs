//! CAP (TS 29.078) and INAP (EN 301 140-1, Q.1218) as a walk from InitialDP to the fields that number services use, and the
//! arguments that answer it.
//!
//! CAP is a subset of INAP with parameters of its own, so that one walk reads both: tags have one meaning.

use crate::ber::{Element, Tag};
use crate::isup::{Cause, Number};
use crate::map::{AddressString, Tbcd};
use crate::tcap::element;

/// Operation codes.
pub mod operation {
    /// A call has met a trigger.
    pub const INITIAL_DP: i32 = 0;
    /// The call goes on to another number.
    pub const CONNECT: u8 = 20;
    /// The call ends.
    pub const RELEASE_CALL: u8 = 22;
    /// The call goes on as it was.
    pub const CONTINUE: u8 = 31;
    /// A short message has met a trigger (CAP).
    pub const INITIAL_DP_SMS: i32 = 60;
}

/// Errors (TS 29.078 §5.5).
pub mod error {
    /// A parameter is missing.
    pub const MISSING_PARAMETER: u8 = 7;
    /// The node cannot serve it now.
    pub const SYSTEM_FAILURE: u8 = 11;
}

/// Fields of InitialDP and InitialDPSMS.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct InitialDp<'a> {
    /// The service.
    pub service_key: Option<i32>,
    /// Called party number, as ISUP has it; the dialled digits of INAP where it is absent.
    pub called: Option<Number>,
    /// Called party number as a mobile has dialled it (TS 24.008 §10.5.4.7).
    pub dialled: Option<AddressString<'a>>,
    /// Calling party number; of a short message an address of MAP.
    pub calling: Option<Calling<'a>>,
    /// IMSI, of CAP.
    pub imsi: Option<Tbcd<'a>>,
}

/// A calling number in the form of its operation.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Calling<'a> {
    /// Of a call.
    Number(Number),
    /// Of a short message.
    Address(AddressString<'a>),
}

impl<'a> InitialDp<'a> {
    /// Reads the argument of an operation; without fields for another one. What is broken ends the walk: fields before it
    /// stay.
    #[must_use]
    pub fn read(operation: i32, argument: Element<'a>) -> Self {
        let mut fields = Self::default();
        if argument.tag != Tag::SEQUENCE {
            return fields;
        }
        let set: fn(&mut Self, Element<'a>) = match operation {
            operation::INITIAL_DP => Self::of_call,
            operation::INITIAL_DP_SMS => Self::of_short_message,
            _ => return fields,
        };
        let elements = argument.elements().map_while(Result::ok);
        elements.for_each(|element| set(&mut fields, element));
        fields
    }

    /// TS 29.078 §6.1.1, Q.1218 §2.2.1; the first of a kind counts.
    fn of_call(&mut self, element: Element<'a>) {
        match element.tag.0 {
            0x80 => self.set_service_key(&element),
            // Dialled digits stand before the called party number, which counts more.
            0x81 => self.called = Number::read(element.value),
            0x82 => self.called = Number::read(element.value).or(self.called),
            0x83 => self.calling = Number::read(element.value).map(Calling::Number),
            0x9f32 => self.imsi = Some(Tbcd::new(element.value)),
            0x9f38 => self.dialled = AddressString::read(element.value),
            _ => {}
        }
    }

    /// TS 29.078 §7.1.1.
    fn of_short_message(&mut self, element: Element<'a>) {
        match element.tag.0 {
            0x80 => self.set_service_key(&element),
            0x81 => self.dialled = AddressString::read(element.value),
            0x82 => self.calling = AddressString::read(element.value).map(Calling::Address),
            0x84 => self.imsi = Some(Tbcd::new(element.value)),
            _ => {}
        }
    }

    fn set_service_key(&mut self, element: &Element<'_>) {
        self.service_key = element.integer().filter(|key| *key >= 0);
    }
}

/// Appends the argument of Connect: one destination routing address.
pub fn connect(number: &Number, out: &mut Vec<u8>) {
    element(0x30, out, |out| {
        element(0xa0, out, |out| element(0x04, out, |out| number.write(out)));
    });
}

/// Appends the argument of ReleaseCall.
pub fn release_call(cause: Cause, out: &mut Vec<u8>) {
    element(0x04, out, |out| out.extend(cause.octets()));
}
