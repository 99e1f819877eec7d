//! The initial address message (Q.763 table 32) and the edit of its called party number.

use super::number::Number;

/// The message type.
pub(super) const INITIAL_ADDRESS: u8 = 1;
/// Number portability status (Q.763 §3.101): query done for called number, not ported; query done, ported.
const NOT_PORTED: u8 = 2;
/// See [`NOT_PORTED`].
const PORTED: u8 = 3;

/// Positions: message type; the pointers to the called party number and to the optional part, behind the circuit (two octets),
/// the type and four fixed parameters of five octets.
pub(super) const MESSAGE_TYPE: usize = 2;
const POINTER: usize = 8;
const OPTIONAL_POINTER: usize = 9;
/// Names of optional parameters (Q.763 table 5).
const CALLING_PARTY_NUMBER: u8 = 0x0a;
const PORTABILITY_INFORMATION: u8 = 0x8d;

/// Why octets are not an IAM that can be read.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Fault {
    /// Another message.
    #[error("it is another message of ISUP")]
    MessageType,
    /// It ends before its pointers.
    #[error("it ends before its pointers")]
    Short,
    /// A pointer leads into the fixed part, past the end, or to an optional part before the called party number.
    #[error("a pointer leads to no parameter")]
    Pointer,
}

/// A pointer or length of one octet cannot have the value.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("the message has no room for the number")]
pub struct TooLong;

/// A view over an IAM of ITU's form.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Iam<'a> {
    octets: &'a [u8],
    /// Where the called party number begins, its length octet, and where it ends.
    called: (usize, usize),
    /// Where the optional part begins.
    optional: Option<usize>,
}

impl<'a> Iam<'a> {
    /// Proves pointers and the called party number.
    ///
    /// # Errors
    /// [`Fault`].
    pub fn parse(octets: &'a [u8]) -> Result<Self, Fault> {
        if octets.get(MESSAGE_TYPE) != Some(&INITIAL_ADDRESS) {
            return Err(Fault::MessageType);
        }
        let pointer = |at: usize| octets.get(at).map(|pointer| usize::from(*pointer));
        let to_called = pointer(POINTER).ok_or(Fault::Short)?;
        let to_optional = pointer(OPTIONAL_POINTER).ok_or(Fault::Short)?;
        let begin = POINTER + to_called;
        let length = octets.get(begin).ok_or(Fault::Pointer)?;
        let end = begin + 1 + usize::from(*length);
        // The optional part stands behind the variable one, and that behind the pointers (Q.763 §1.5).
        let optional = (to_optional > 0).then_some(OPTIONAL_POINTER + to_optional);
        let is_behind = |at| at >= end && at < octets.len();
        if begin <= OPTIONAL_POINTER || end > octets.len() || !optional.is_none_or(is_behind) {
            return Err(Fault::Pointer);
        }
        Ok(Self {
            octets,
            called: (begin, end),
            optional,
        })
    }

    /// The circuit identification code, as its octets.
    #[must_use]
    pub fn circuit(&self) -> [u8; 2] {
        self.octets.first_chunk().copied().unwrap_or_default()
    }

    /// The called party number, where it can be read.
    #[must_use]
    pub fn called(&self) -> Option<Number> {
        let (begin, end) = self.called;
        Number::read(self.octets.get(begin + 1..end)?)
    }

    /// The calling party number, where there is one that can be read.
    #[must_use]
    pub fn calling(&self) -> Option<Number> {
        let at = self.optional_parameter(CALLING_PARTY_NUMBER)?;
        let length = usize::from(*self.octets.get(at.checked_sub(1)?)?);
        Number::read(self.octets.get(at..at + length)?)
    }

    /// Whether an exchange before has queried the portability of the called number, or a reason not to (Q.769.1).
    #[must_use]
    pub fn is_queried(&self) -> bool {
        let at = self.optional_parameter(PORTABILITY_INFORMATION);
        let octet = at.and_then(|at| self.octets.get(at));
        octet.is_some_and(|octet| matches!(octet & 0x0f, NOT_PORTED | PORTED))
    }

    /// Where the contents of an optional parameter begin; `None` too where the part cannot be read before it.
    fn optional_parameter(&self, name: u8) -> Option<usize> {
        optional_parameter(self.octets, self.optional?, name)
    }

    /// Octets of what [`Self::write_with_called`] appends.
    #[must_use]
    pub fn len_with_called(&self, called: &Number) -> usize {
        let (begin, end) = self.called;
        self.octets.len() - (end - begin) + 3 + called.digits.packed().len()
    }

    /// Appends the message with another called party number. A portability status that is there becomes *ported* where the
    /// number is one that was queried; every other octet stays, optional parameters and their segmentation indicator included.
    ///
    /// # Errors
    /// [`TooLong`]; nothing was appended then.
    pub fn write_with_called(&self, called: &Number, ported: bool, out: &mut Vec<u8>) -> Result<(), TooLong> {
        let (begin, end) = self.called;
        let start = out.len();
        let old = end - begin - 1;
        let new = 2 + called.digits.packed().len();
        let length = u8::try_from(new).map_err(|_| TooLong)?;
        let pointer = self
            .optional
            .map(|at| u8::try_from(at + new - old - OPTIONAL_POINTER).map_err(|_| TooLong));
        let pointer = pointer.transpose()?;
        out.extend_from_slice(self.octets.get(..begin).unwrap_or_default());
        out.push(length);
        called.write(out);
        out.extend_from_slice(self.octets.get(end..).unwrap_or_default());
        let written = out.get_mut(start..).unwrap_or_default();
        if let (Some(pointer), Some(octet)) = (pointer, written.get_mut(OPTIONAL_POINTER)) {
            *octet = pointer;
        }
        if ported
            && let Some(at) = self.optional_parameter(PORTABILITY_INFORMATION)
            && let Some(octet) = written.get_mut(at + new - old)
        {
            *octet = *octet & 0xf0 | PORTED;
        }
        Ok(())
    }
}

/// Where the contents of a parameter begin in an optional part that begins at `at`; `None` too where it cannot be read before it.
pub(super) fn optional_parameter(octets: &[u8], mut at: usize, name: u8) -> Option<usize> {
    loop {
        let (found, length) = match octets.get(at..)? {
            [0, ..] => return None,
            [found, length, ..] => (*found, usize::from(*length)),
            _ => return None,
        };
        let content = at + 2;
        let end = content + length;
        if end > octets.len() {
            return None;
        }
        if found == name && length > 0 {
            return Some(content);
        }
        at = end;
    }
}
