//! Messages without a connection: UDT, XUDT, LUDT and their service messages (Q.713 §4.10, §4.11, §4.18 to §4.21).

use super::cause::ReturnCause;
use super::kind::MessageType;
use super::message::{Optionals, Parts};
use crate::octets::le24;

/// Name codes of optional parameters (Q.713 §3.1).
pub(super) const SEGMENTATION: u8 = 0x10;
pub(super) const IMPORTANCE: u8 = 0x12;

/// The bit of a protocol class that asks for the return of data that are not delivered (Q.713 §3.6).
const RETURN_ON_ERROR: u8 = 0x80;

/// A message without a connection: read with [`super::Message::parse`], changed as a struct, written with
/// [`Unitdata::write`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Unitdata<'a> {
    /// UDT, XUDT, LUDT or a service message.
    pub message_type: MessageType,
    /// Protocol class and message handling; of a service message, the return cause.
    pub class_or_cause: u8,
    /// Of XUDT, LUDT and their service messages.
    pub hop_counter: u8,
    /// Called party address: [`super::Address::parse`] reads it.
    pub called: &'a [u8],
    /// Calling party address.
    pub calling: &'a [u8],
    /// The data of the user.
    pub data: &'a [u8],
    /// Optional parameters without their end; [`optional_part`] makes them.
    pub optional: &'a [u8],
}

/// A relay may not pass the message on: cause 12.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("the hop counter is spent")]
pub struct HopCounter;

/// A part does not fit its pointer or length.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("the parts of the message exceed what its pointers and lengths can say")]
pub struct TooLong;

impl<'a> Unitdata<'a> {
    #[inline]
    pub(super) fn new(message_type: MessageType, parts: Parts<'a>) -> Self {
        let fixed = |at: usize| parts.fixed.get(at).copied().unwrap_or_default();
        let [called, calling, data] = parts.variable;
        Self {
            message_type,
            class_or_cause: fixed(0),
            hop_counter: fixed(1),
            called,
            calling,
            data,
            optional: parts.optional,
        }
    }

    /// The protocol class: 0, or 1 for data in sequence. `None` of a service message.
    #[must_use]
    pub const fn protocol_class(&self) -> Option<u8> {
        if self.message_type.is_service() {
            return None;
        }
        Some(self.class_or_cause & 0x0f)
    }

    /// Whether the sender wants data back that are not delivered.
    #[must_use]
    pub const fn returns_on_error(&self) -> bool {
        !self.message_type.is_service() && self.class_or_cause & RETURN_ON_ERROR != 0
    }

    /// Why the data return, of a service message.
    #[must_use]
    pub const fn return_cause(&self) -> Option<ReturnCause> {
        if self.message_type.is_service() {
            return Some(ReturnCause(self.class_or_cause));
        }
        None
    }

    /// The optional parameters.
    #[must_use]
    pub const fn optionals(&self) -> Optionals<'a> {
        Optionals::new(self.optional)
    }

    /// Which segment of longer data this is.
    #[must_use]
    pub fn segmentation(&self) -> Option<Segmentation> {
        Segmentation::read(self.optionals().get(SEGMENTATION)?)
    }

    /// Whether the data are whole: a segment is not.
    #[must_use]
    pub fn is_whole(&self) -> bool {
        self.segmentation()
            .is_none_or(|one| one.first && one.remaining == 0)
    }

    /// How important the message is, 0 to 7 (Q.713 §3.19).
    #[must_use]
    pub fn importance(&self) -> Option<u8> {
        self.optionals().get(IMPORTANCE)?.first().map(|octet| octet & 7)
    }

    /// The message with its hop counter decremented, as global title translation wants it (Q.714 §2.3.1). UDT has none and
    /// stays as it is.
    ///
    /// # Errors
    /// When the counter reaches 0. A counter above 15 (Q.713 §3.18) counts as 15: a sender's mistake must not let a
    /// message circle longer.
    pub const fn next_hop(mut self) -> Result<Self, HopCounter> {
        if matches!(self.message_type, MessageType::Udt | MessageType::Udts) {
            return Ok(self);
        }
        let counter = if self.hop_counter > 15 {
            15
        } else {
            self.hop_counter
        };
        if counter <= 1 {
            return Err(HopCounter);
        }
        self.hop_counter = counter - 1;
        Ok(self)
    }

    /// The service message that returns the data to the sender (Q.714 §4.2), when the sender wants it: addresses change
    /// places, the hop counter begins again.
    #[must_use]
    pub fn returned(&self, cause: ReturnCause) -> Option<Self> {
        if !self.returns_on_error() {
            return None;
        }
        Some(Self {
            message_type: self.message_type.service()?,
            class_or_cause: cause.0,
            hop_counter: 15,
            called: self.calling,
            calling: self.called,
            ..*self
        })
    }

    /// Appends the message, each part behind the one before it; the optional part before the data where its pointer could not reach it.
    ///
    /// # Errors
    /// When a part does not fit; `out` then ends as before.
    pub fn write(&self, out: &mut Vec<u8>) -> Result<(), TooLong> {
        let start = out.len();
        let written = if self.message_type.is_long() {
            self.write_long(out)
        } else {
            self.write_short(out)
        };
        if written.is_err() {
            out.truncate(start);
        }
        written
    }

    fn write_fixed(&self, out: &mut Vec<u8>) -> bool {
        let (fixed, _, optional) = self.message_type.parts();
        out.push(self.message_type as u8);
        out.push(self.class_or_cause);
        if fixed == 2 {
            out.push(self.hop_counter);
        }
        optional
    }

    #[inline]
    fn write_short(&self, out: &mut Vec<u8>) -> Result<(), TooLong> {
        let has_optional = self.write_fixed(out);
        let pointers = 3 + usize::from(has_optional);
        let octet = |number: usize| u8::try_from(number).map_err(|_| TooLong);
        let addresses = 1 + self.called.len() + 1 + self.calling.len();
        let calling = pointers - 1 + 1 + self.called.len();
        let (mut data, mut optional) = (pointers - 2 + addresses, 0);
        let mut data_last = false;
        if has_optional && !self.optional.is_empty() {
            optional = 1 + addresses + 1 + self.data.len();
            // A pointer has one octet. Where long data take the optional part out of its reach, the data stand last: parts
            // are found by their pointers, in any order (Q.713 §1.5).
            if optional > usize::from(u8::MAX) {
                data_last = true;
                optional = 1 + addresses;
                data += self.optional.len() + 1;
            }
        }
        out.extend_from_slice(&[pointers as u8, octet(calling)?, octet(data)?]);
        if has_optional {
            out.push(octet(optional)?);
        }
        for part in [self.called, self.calling] {
            out.push(octet(part.len())?);
            out.extend_from_slice(part);
        }
        if data_last {
            self.write_optional(has_optional, out);
        }
        out.push(octet(self.data.len())?);
        out.extend_from_slice(self.data);
        if !data_last {
            self.write_optional(has_optional, out);
        }
        Ok(())
    }

    fn write_long(&self, out: &mut Vec<u8>) -> Result<(), TooLong> {
        let has_optional = self.write_fixed(out);
        let two = |number: usize| u16::try_from(number).map(u16::to_le_bytes).map_err(|_| TooLong);
        let octet = |number: usize| u8::try_from(number).map_err(|_| TooLong);
        // Pointers count from their second octet; eight octets of pointers.
        let called = 7;
        let calling = 5 + 1 + self.called.len();
        let data = 3 + 1 + self.called.len() + 1 + self.calling.len();
        let optional = 1 + 1 + self.called.len() + 1 + self.calling.len() + 2 + self.data.len();
        out.extend_from_slice(&two(called)?);
        out.extend_from_slice(&two(calling)?);
        out.extend_from_slice(&two(data)?);
        out.extend_from_slice(&two(if self.optional.is_empty() { 0 } else { optional })?);
        for part in [self.called, self.calling] {
            out.push(octet(part.len())?);
            out.extend_from_slice(part);
        }
        out.extend_from_slice(&two(self.data.len())?);
        out.extend_from_slice(self.data);
        self.write_optional(has_optional, out);
        Ok(())
    }

    fn write_optional(&self, has_optional: bool, out: &mut Vec<u8>) {
        if has_optional && !self.optional.is_empty() {
            out.extend_from_slice(self.optional);
            out.push(0);
        }
    }
}

/// A segment of data that did not fit one message (Q.713 §3.17).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Segmentation {
    /// Whether this is the first segment.
    pub first: bool,
    /// The protocol class that the data had: 1 for data in sequence.
    pub class: u8,
    /// How many segments follow, at most 15.
    pub remaining: u8,
    /// The reference that segments share. It is unique for a calling party address (and originating point code) only.
    pub reference: u32,
}

impl Segmentation {
    fn read(value: &[u8]) -> Option<Self> {
        let octet = *value.first()?;
        Some(Self {
            first: octet & 0x80 != 0,
            class: octet >> 6 & 1,
            remaining: octet & 0x0f,
            reference: le24(value, 1)?,
        })
    }

    /// The value of the parameter.
    #[must_use]
    pub const fn octets(self) -> [u8; 4] {
        let [low, middle, high, _] = self.reference.to_le_bytes();
        let first = if self.first { 0x80 } else { 0 };
        [
            first | (self.class & 1) << 6 | self.remaining & 0x0f,
            low,
            middle,
            high,
        ]
    }
}

/// An optional part for [`Unitdata::optional`].
#[must_use]
pub fn optional_part(segmentation: Option<Segmentation>, importance: Option<u8>) -> Vec<u8> {
    let mut out = Vec::new();
    if let Some(segmentation) = segmentation {
        out.extend_from_slice(&[SEGMENTATION, 4]);
        out.extend_from_slice(&segmentation.octets());
    }
    if let Some(importance) = importance {
        out.extend_from_slice(&[IMPORTANCE, 1, importance & 7]);
    }
    out
}
