//! The initial address message of ANSI (T1.113.3 table 4), and its form after a query of number portability: the location routing number
//! is the called number, the number that was dialled stands in a generic address.

use super::iam::{Fault, INITIAL_ADDRESS, MESSAGE_TYPE, TooLong, optional_parameter};
use super::number::Number;

/// Positions: the second octet of the forward call indicators, behind circuit, message type and nature of connection; the pointers to
/// user service information, called party number and optional part, behind the calling party's category.
const SECOND_INDICATORS: usize = 5;
const SERVICE_POINTER: usize = 7;
const CALLED_POINTER: usize = 8;
const OPTIONAL_POINTER: usize = 9;
/// Bit M of the forward call indicators: the number was translated, that is queried.
const TRANSLATED: u8 = 0x10;
/// Generic address, and its type of address "ported number".
const GENERIC_ADDRESS: u8 = 0xc0;
const PORTED_NUMBER: u8 = 0xc0;
/// See [`GENERIC_ADDRESS`].
const CALLING_PARTY_NUMBER: u8 = 0x0a;

/// A view over an IAM of ANSI's form.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct AnsiIam<'a> {
    octets: &'a [u8],
    /// Where user service information begins, its length octet.
    service: usize,
    /// Where the called party number begins, its length octet, and where it ends.
    called: (usize, usize),
    /// Where the optional part begins.
    optional: Option<usize>,
}

impl<'a> AnsiIam<'a> {
    /// Proves pointers and the parameters of the variable part.
    ///
    /// # Errors
    /// [`Fault`].
    pub fn parse(octets: &'a [u8]) -> Result<Self, Fault> {
        if octets.get(MESSAGE_TYPE) != Some(&INITIAL_ADDRESS) {
            return Err(Fault::MessageType);
        }
        let pointer = |at: usize| {
            octets
                .get(at)
                .map(|pointer| usize::from(*pointer))
                .ok_or(Fault::Short)
        };
        let (to_service, to_called) = (pointer(SERVICE_POINTER)?, pointer(CALLED_POINTER)?);
        let to_optional = pointer(OPTIONAL_POINTER)?;
        let parameter = |begin: usize| {
            let length = octets.get(begin).ok_or(Fault::Pointer)?;
            let end = begin + 1 + usize::from(*length);
            let is_right = begin > OPTIONAL_POINTER && end <= octets.len();
            is_right.then_some((begin, end)).ok_or(Fault::Pointer)
        };
        let service = parameter(SERVICE_POINTER + to_service)?;
        let called = parameter(CALLED_POINTER + to_called)?;
        let optional = (to_optional > 0).then_some(OPTIONAL_POINTER + to_optional);
        // The optional part stands behind the variable one, whose parameters do not overlap (T1.113.3 §1).
        let is_behind = |at| at >= service.1.max(called.1) && at < octets.len();
        let overlaps = service.0 < called.1 && called.0 < service.1;
        if overlaps || !optional.is_none_or(is_behind) {
            return Err(Fault::Pointer);
        }
        Ok(Self {
            octets,
            service: service.0,
            called,
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
        Number::read(self.parameter(CALLING_PARTY_NUMBER)?)
    }

    /// Whether an exchange before has queried the portability of the called number.
    #[must_use]
    pub fn is_queried(&self) -> bool {
        let indicators = self.octets.get(SECOND_INDICATORS);
        indicators.is_some_and(|octet| octet & TRANSLATED != 0)
    }

    /// The number that was dialled, where the called one is the location routing number of its network.
    #[must_use]
    pub fn ported(&self) -> Option<Number> {
        let (kind, number) = self.parameter(GENERIC_ADDRESS)?.split_first()?;
        (*kind == PORTED_NUMBER).then(|| Number::read(number))?
    }

    /// Octets of what [`Self::write_queried`] appends.
    #[must_use]
    pub fn queried_len(&self, called: &Number, ported: Option<&Number>) -> usize {
        let (begin, end) = self.called;
        let address = ported.map_or(0, |ported| {
            let terminator = usize::from(self.optional.is_none());
            5 + ported.digits.packed().len() + terminator
        });
        self.octets.len() - (end - begin) + 3 + called.digits.packed().len() + address
    }

    fn parameter(&self, name: u8) -> Option<&'a [u8]> {
        let at = optional_parameter(self.octets, self.optional?, name)?;
        let length = usize::from(*self.octets.get(at.checked_sub(1)?)?);
        self.octets.get(at..at + length)
    }

    /// Appends the message with another called party number, marked as queried; `ported` stands in a generic address then. Every other
    /// octet stays.
    ///
    /// # Errors
    /// [`TooLong`]; nothing was appended then.
    pub fn write_queried(
        &self,
        called: &Number,
        ported: Option<&Number>,
        out: &mut Vec<u8>,
    ) -> Result<(), TooLong> {
        let (begin, end) = self.called;
        let (old, new) = (end - begin - 1, 2 + called.digits.packed().len());
        let length = u8::try_from(new).map_err(|_| TooLong)?;
        let is_behind = |at: usize| at >= end;
        let moved = |at: usize| if is_behind(at) { at + new - old } else { at };
        let pointer = |to: usize, from: usize| u8::try_from(moved(to) - from).map_err(|_| TooLong);
        let to_service = pointer(self.service, SERVICE_POINTER)?;
        // Without an optional part one begins at the end.
        let begins = self.optional.or(ported.map(|_| self.octets.len()));
        let to_optional = begins.map_or(Ok(0), |at| pointer(at, OPTIONAL_POINTER))?;
        let start = out.len();
        out.extend_from_slice(self.octets.get(..begin).unwrap_or_default());
        out.push(length);
        called.write(out);
        let rest = begins.unwrap_or(self.octets.len());
        out.extend_from_slice(self.octets.get(end..rest).unwrap_or_default());
        if let Some(ported) = ported {
            // At most 40 digits.
            out.extend([
                GENERIC_ADDRESS,
                3 + ported.digits.packed().len() as u8,
                PORTED_NUMBER,
            ]);
            ported.write(out);
        }
        out.extend_from_slice(self.octets.get(rest..).unwrap_or_default());
        if self.optional.is_none() && ported.is_some() {
            out.push(0);
        }
        let written = out.get_mut(start..).unwrap_or_default();
        for (at, octet) in [(SERVICE_POINTER, to_service), (OPTIONAL_POINTER, to_optional)] {
            if let Some(slot) = written.get_mut(at) {
                *slot = octet;
            }
        }
        if let Some(octet) = written.get_mut(SECOND_INDICATORS) {
            *octet |= TRANSLATED;
        }
        Ok(())
    }
}
