//! Called and calling party addresses (Q.713 §3.4, T1.112.3 §3.4).

use super::title::{GlobalTitle, GlobalTitleBuf};
use crate::octets::le24;
use crate::point_code::PointCode;

/// Whose form an address has.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Format {
    /// Q.713: point code of 14 bits in two octets before the subsystem number.
    Itu,
    /// As Q.713, with a point code of 16 bits in two octets (Japan).
    Japan,
    /// As Q.713, with a point code of 24 bits in three octets (China).
    China,
    /// T1.112: subsystem number before a point code of three octets.
    Ansi,
}

impl Format {
    pub(super) const fn is_ansi(self) -> bool {
        matches!(self, Self::Ansi)
    }

    pub(super) const fn point_code_octets(self) -> usize {
        match self {
            Self::Itu | Self::Japan => 2,
            Self::Ansi | Self::China => 3,
        }
    }

    pub(super) fn write_point_code(self, code: PointCode, out: &mut Vec<u8>) {
        let code = match self {
            Self::Itu => code.0 & 0x3fff,
            Self::Japan | Self::Ansi | Self::China => code.0,
        };
        out.extend_from_slice(
            code.to_le_bytes()
                .get(..self.point_code_octets())
                .unwrap_or_default(),
        );
    }

    /// Appends an address with a point code in it, every other octet as it was; returns whether it did: not for an address that
    /// has one.
    pub fn insert_point_code(self, address: &[u8], code: PointCode, out: &mut Vec<u8>) -> bool {
        let Some((indicator, rest)) = address.split_first() else {
            return false;
        };
        let (bit, before) = match self {
            Self::Itu | Self::Japan | Self::China => (1, 0),
            // The subsystem number stands before the point code.
            Self::Ansi => (2, usize::from(indicator & 1)),
        };
        let Some((before, behind)) = rest.split_at_checked(before) else {
            return false;
        };
        if indicator & bit != 0 {
            return false;
        }
        out.push(indicator | bit);
        out.extend_from_slice(before);
        self.write_point_code(code, out);
        out.extend_from_slice(behind);
        true
    }

    /// Reads a point code, and returns what follows it.
    pub(super) fn read_point_code(self, octets: &[u8]) -> Option<(PointCode, &[u8])> {
        let (own, rest) = octets.split_at_checked(self.point_code_octets())?;
        let code = match (self, own) {
            // Bits 7 and 8 of the second octet are spare.
            (Self::Itu, [low, high]) => u32::from(u16::from_le_bytes([*low, *high]) & 0x3fff),
            (_, [low, high]) => u32::from(u16::from_le_bytes([*low, *high])),
            _ => le24(own, 0)?,
        };
        Some((PointCode(code), rest))
    }
}

/// What is wrong with an address.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum AddressFault {
    /// Without an address indicator.
    #[error("the address is empty")]
    Empty,
    /// It ends before the point code or subsystem number that its indicator announces.
    #[error("the address ends before what its indicator {0:#04x} announces")]
    Short(u8),
    /// It ends within the fixed octets of a global title.
    #[error("the address ends before the digits of a global title with indicator {0}")]
    ShortTitle(u8),
    /// An indicator that cannot be written.
    #[error("global title indicator {0} has no form that could be written")]
    Indicator(u8),
}

/// An address as a view over its octets.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Address<'a> {
    /// The point code of the destination.
    pub point_code: Option<PointCode>,
    /// The subsystem.
    pub ssn: Option<u8>,
    /// Whether routers translate the global title; else they route by point code and subsystem.
    pub route_on_title: bool,
    /// The bit for national use.
    pub national: bool,
    /// The global title.
    pub title: Option<GlobalTitle<'a>>,
}

impl<'a> Address<'a> {
    /// Reads an address.
    ///
    /// # Errors
    /// [`AddressFault`].
    #[inline]
    pub fn parse(octets: &'a [u8], format: Format) -> Result<Self, AddressFault> {
        let (indicator, mut rest) = octets.split_first().ok_or(AddressFault::Empty)?;
        let short = AddressFault::Short(*indicator);
        let mut address = Self {
            point_code: None,
            ssn: None,
            route_on_title: indicator & 0x40 == 0,
            national: indicator & 0x80 != 0,
            title: None,
        };
        let (first, second) = (indicator & 1 != 0, indicator & 2 != 0);
        let (has_code, has_ssn) = if format.is_ansi() {
            (second, first)
        } else {
            (first, second)
        };
        if has_code && !format.is_ansi() {
            let (code, more) = format.read_point_code(rest).ok_or(short)?;
            (address.point_code, rest) = (Some(code), more);
        }
        if has_ssn {
            let (ssn, more) = rest.split_first().ok_or(short)?;
            (address.ssn, rest) = (Some(*ssn), more);
        }
        if has_code && format.is_ansi() {
            let (code, more) = format.read_point_code(rest).ok_or(short)?;
            (address.point_code, rest) = (Some(code), more);
        }
        let title = indicator >> 2 & 0x0f;
        if title != 0 {
            address.title = Some(GlobalTitle::read(format, title, rest)?);
        }
        Ok(address)
    }

    /// The address for one that we make; a title whose digits cannot be read is lost.
    #[must_use]
    pub fn to_buf(&self) -> AddressBuf {
        AddressBuf {
            point_code: self.point_code,
            ssn: self.ssn,
            route_on_title: self.route_on_title,
            national: self.national,
            title: self.title.and_then(|title| title.to_buf()),
        }
    }
}

/// An address of our own.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct AddressBuf {
    /// The point code.
    pub point_code: Option<PointCode>,
    /// The subsystem.
    pub ssn: Option<u8>,
    /// Whether routers translate the global title.
    pub route_on_title: bool,
    /// The bit for national use; ANSI networks set it.
    pub national: bool,
    /// The global title.
    pub title: Option<GlobalTitleBuf>,
}

impl AddressBuf {
    /// Appends the address, without its length.
    ///
    /// # Errors
    /// [`AddressFault::Indicator`].
    #[inline]
    pub fn write(&self, format: Format, out: &mut Vec<u8>) -> Result<(), AddressFault> {
        let bit = |set: bool, bit: u8| if set { bit } else { 0 };
        let (has_code, has_ssn) = (self.point_code.is_some(), self.ssn.is_some());
        let (first, second) = match format {
            Format::Itu | Format::Japan | Format::China => (has_code, has_ssn),
            Format::Ansi => (has_ssn, has_code),
        };
        let title = self.title.map_or(0, |title| (title.indicator & 0x0f) << 2);
        out.push(
            bit(first, 1)
                | bit(second, 2)
                | title
                | bit(!self.route_on_title, 0x40)
                | bit(self.national, 0x80),
        );
        if let (true, Some(ssn)) = (format.is_ansi(), self.ssn) {
            out.push(ssn);
        }
        if let Some(code) = self.point_code {
            format.write_point_code(code, out);
        }
        if let (false, Some(ssn)) = (format.is_ansi(), self.ssn) {
            out.push(ssn);
        }
        match self.title {
            Some(title) => title.write(format, out),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn point_codes_have_the_width_of_their_plan() {
        for (format, code, octets) in [
            (Format::Itu, 0x2abc, &[0x43, 0xbc, 0x2a, 6][..]),
            (Format::Japan, 0xc864, &[0x43, 0x64, 0xc8, 6]),
            (Format::China, 0x64_03_04, &[0x43, 0x04, 0x03, 0x64, 6]),
            (Format::Ansi, 0x64_03_04, &[0x43, 6, 0x04, 0x03, 0x64]),
        ] {
            let address = Address::parse(octets, format).unwrap();
            assert_eq!(
                (address.point_code, address.ssn),
                (Some(PointCode(code)), Some(6))
            );
            let mut written = Vec::new();
            address.to_buf().write(format, &mut written).unwrap();
            assert_eq!(written, octets, "{format:?}");
            assert!(Address::parse(&octets[..octets.len() - 1], format).is_err());
            // Into an address with a title whose encoding we would not write, and not twice.
            let ssn = if format.is_ansi() { 1 } else { 2 };
            let title = [0x48 | ssn, 6, 0, 0x99, 0xaa];
            let mut with = Vec::new();
            assert!(format.insert_point_code(&title, PointCode(code), &mut with));
            let address = Address::parse(&with, format).unwrap();
            assert_eq!(
                (address.point_code, address.ssn, address.route_on_title),
                (Some(PointCode(code)), Some(6), false)
            );
            assert_eq!(address.title.unwrap().octets, &[0x99, 0xaa]);
            assert!(!format.insert_point_code(&with, PointCode(code), &mut Vec::new()));
        }
    }
}
