//! Global titles (Q.713 §3.4.2.3, T1.112.3 §3.4.2.3).

use super::address::{AddressFault, Format};
use crate::digits::Digits;

/// Encoding schemes: semi-octets, odd or even count.
const BCD_ODD: u8 = 1;
const BCD_EVEN: u8 = 2;

/// A global title.
///
/// The number of digits follows from the encoding scheme, or the odd/even bit of indicator 0001; without either each octet
/// has two. The semi-octet behind an odd count is filler, whatever its value.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct GlobalTitle<'a> {
    /// Global title indicator, 1 to 15.
    pub indicator: u8,
    /// Translation type.
    pub translation_type: Option<u8>,
    /// Numbering plan: 1 = E.164, 6 = E.212, 7 = E.214.
    pub numbering_plan: Option<u8>,
    /// Encoding scheme.
    pub encoding_scheme: Option<u8>,
    /// Nature of address: 3 = national, 4 = international.
    pub nature: Option<u8>,
    /// Whether indicator 0001 counts an odd number.
    pub odd: Option<bool>,
    /// The octets of the digits.
    pub octets: &'a [u8],
}

impl<'a> GlobalTitle<'a> {
    /// Reads what follows subsystem number and point code.
    #[inline]
    pub(super) fn read(format: Format, indicator: u8, octets: &'a [u8]) -> Result<Self, AddressFault> {
        let mut title = Self {
            indicator,
            translation_type: None,
            numbering_plan: None,
            encoding_scheme: None,
            nature: None,
            odd: None,
            octets,
        };
        let short = AddressFault::ShortTitle(indicator);
        match (format.is_ansi(), indicator) {
            (false, 1) => {
                let (nature, digits) = octets.split_first().ok_or(short)?;
                (title.nature, title.odd) = (Some(nature & 0x7f), Some(nature & 0x80 != 0));
                title.octets = digits;
            }
            (_, 2) => {
                let (translation_type, digits) = octets.split_first().ok_or(short)?;
                title.translation_type = Some(*translation_type);
                title.octets = digits;
            }
            (false, 3) | (true, 1) => {
                let [translation_type, plan, digits @ ..] = octets else {
                    return Err(short);
                };
                title.translation_type = Some(*translation_type);
                title.plan(*plan);
                title.octets = digits;
            }
            (false, 4) => {
                let [translation_type, plan, nature, digits @ ..] = octets else {
                    return Err(short);
                };
                title.translation_type = Some(*translation_type);
                title.plan(*plan);
                title.nature = Some(nature & 0x7f);
                title.octets = digits;
            }
            // Indicators that the standard leaves open: octets without a meaning.
            _ => {}
        }
        Ok(title)
    }

    const fn plan(&mut self, octet: u8) {
        self.numbering_plan = Some(octet >> 4);
        self.encoding_scheme = Some(octet & 0x0f);
    }

    /// The digits; `None` for more than 40 and for indicators without a meaning.
    #[inline]
    #[must_use]
    pub fn digits(&self) -> Option<Digits> {
        if self.translation_type.is_none() && self.nature.is_none() {
            return None;
        }
        let odd = self.odd.unwrap_or(self.encoding_scheme == Some(BCD_ODD));
        let count = 2 * self.octets.len();
        Digits::unpack(self.octets, if odd { count.saturating_sub(1) } else { count })
    }

    /// The title for an address that we make.
    #[must_use]
    pub fn to_buf(&self) -> Option<GlobalTitleBuf> {
        Some(GlobalTitleBuf {
            indicator: self.indicator,
            translation_type: self.translation_type.unwrap_or_default(),
            numbering_plan: self.numbering_plan.unwrap_or_default(),
            nature: self.nature.unwrap_or_default(),
            digits: self.digits()?,
        })
    }
}

/// A global title of our own. The encoding scheme follows from the count of digits, filler is 0.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct GlobalTitleBuf {
    /// Global title indicator, 1 to 4 (ANSI: 1 or 2).
    pub indicator: u8,
    /// Translation type, where the indicator has one.
    pub translation_type: u8,
    /// Numbering plan, where the indicator has one.
    pub numbering_plan: u8,
    /// Nature of address, where the indicator has one.
    pub nature: u8,
    /// The digits. With indicator 0010 a reader cannot know whether the last semi-octet of an odd count is filler.
    pub digits: Digits,
}

impl GlobalTitleBuf {
    #[inline]
    pub(super) fn write(&self, format: Format, out: &mut Vec<u8>) -> Result<(), AddressFault> {
        let odd = !self.digits.len().is_multiple_of(2);
        let scheme = if odd { BCD_ODD } else { BCD_EVEN };
        let plan = self.numbering_plan << 4 | scheme;
        let nature = self.nature & 0x7f;
        match (format.is_ansi(), self.indicator) {
            (false, 1) => out.push(if odd { nature | 0x80 } else { nature }),
            (_, 2) => out.push(self.translation_type),
            (false, 3) | (true, 1) => out.extend_from_slice(&[self.translation_type, plan]),
            (false, 4) => out.extend_from_slice(&[self.translation_type, plan, nature]),
            _ => return Err(AddressFault::Indicator(self.indicator)),
        }
        out.extend_from_slice(self.digits.packed());
        Ok(())
    }
}
