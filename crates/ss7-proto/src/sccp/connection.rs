//! Messages of a connection, as far as a relay needs them (Q.713 §4.2 to §4.17).

use super::kind::MessageType;
use super::message::{Optionals, Parts};
use super::unitdata::TooLong;
use crate::octets::le24;

const CALLED: u8 = 0x03;
const CALLING: u8 = 0x04;
const DATA: u8 = 0x0f;

/// A message of a connection.
#[derive(Clone, Copy, Debug)]
pub struct Connection<'a> {
    /// The type.
    pub message_type: MessageType,
    parts: Parts<'a>,
}

impl<'a> Connection<'a> {
    pub(super) const fn new(message_type: MessageType, parts: Parts<'a>) -> Self {
        Self { message_type, parts }
    }

    /// The receiver's reference; CR has none.
    #[must_use]
    pub fn destination_reference(&self) -> Option<u32> {
        let (destination, _) = self.message_type.references();
        if destination {
            le24(self.parts.fixed, 0)
        } else {
            None
        }
    }

    /// The sender's reference.
    #[must_use]
    pub fn source_reference(&self) -> Option<u32> {
        let (destination, source) = self.message_type.references();
        if source {
            le24(self.parts.fixed, if destination { 3 } else { 0 })
        } else {
            None
        }
    }

    /// The protocol class of CR, CC and IT: 2, or 3 with flow control.
    #[must_use]
    pub fn protocol_class(&self) -> Option<u8> {
        let at = match self.message_type {
            MessageType::Cr => 3,
            MessageType::Cc | MessageType::It => 6,
            _ => return None,
        };
        self.parts.fixed.get(at).map(|octet| octet & 0x0f)
    }

    /// The cause of CREF, RLSD, RSR and ERR (Q.713 §3.11, §3.13 to §3.15).
    #[must_use]
    pub fn cause(&self) -> Option<u8> {
        let at = match self.message_type {
            MessageType::Cref | MessageType::Err => 3,
            MessageType::Rlsd | MessageType::Rsr => 6,
            _ => return None,
        };
        self.parts.fixed.get(at).copied()
    }

    /// The called party address of CR; an optional parameter of CC and CREF.
    #[must_use]
    pub fn called(&self) -> Option<&'a [u8]> {
        match self.message_type {
            MessageType::Cr => Some(self.parts.variable[0]),
            _ => self.optionals().get(CALLED),
        }
    }

    /// The calling party address of CR.
    #[must_use]
    pub fn calling(&self) -> Option<&'a [u8]> {
        self.optionals().get(CALLING)
    }

    /// The data of the user.
    #[must_use]
    pub fn data(&self) -> Option<&'a [u8]> {
        match self.message_type {
            MessageType::Dt1 | MessageType::Dt2 | MessageType::Ed => Some(self.parts.variable[0]),
            _ => self.optionals().get(DATA),
        }
    }

    /// The optional parameters.
    #[must_use]
    pub const fn optionals(&self) -> Optionals<'a> {
        Optionals::new(self.parts.optional)
    }

    /// Appends the message with another called party address, which CR alone has: the rest is copied.
    ///
    /// # Errors
    /// When a part does not fit, or the message is another than CR; `out` then ends as before.
    pub fn write_with_called(&self, called: &[u8], out: &mut Vec<u8>) -> Result<(), TooLong> {
        let length = u8::try_from(called.len()).map_err(|_| TooLong)?;
        if self.message_type != MessageType::Cr {
            return Err(TooLong);
        }
        let optional = match self.parts.optional {
            [] => 0,
            _ => length.checked_add(2).ok_or(TooLong)?,
        };
        out.push(self.message_type as u8);
        out.extend_from_slice(self.parts.fixed);
        out.extend_from_slice(&[2, optional, length]);
        out.extend_from_slice(called);
        if optional != 0 {
            out.extend_from_slice(self.parts.optional);
            out.push(0);
        }
        Ok(())
    }

    /// Writes other references into the octets of a message that [`super::Message::parse`] has proven, where it has such
    /// references: what an association of two connection sections needs (Q.714 §3.1.1).
    pub fn patch_references(octets: &mut [u8], destination: Option<u32>, source: Option<u32>) {
        let Some(kind) = octets
            .first()
            .and_then(|number| MessageType::from_number(*number))
        else {
            return;
        };
        let mut write = |at: usize, reference: u32| {
            if let Some(field) = octets.get_mut(at..at + 3) {
                field.copy_from_slice(&reference.to_le_bytes()[..3]);
            }
        };
        let (has_destination, has_source) = kind.references();
        if let (true, Some(reference)) = (has_destination, destination) {
            write(1, reference);
        }
        if let (true, Some(reference)) = (has_source, source) {
            write(if has_destination { 4 } else { 1 }, reference);
        }
    }
}
