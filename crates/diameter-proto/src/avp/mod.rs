//! One AVP as it lies in a message, and the walk over several (RFC 6733 §4).
//!
//! The walk allocates nothing and reads no further than the next AVP. Each step checks that the header is complete,
//! that the length covers it and that data and padding are present.

pub mod kind;
mod writer;

use std::fmt;

use bytes::{BufMut, Bytes, BytesMut};

pub use writer::{AvpWriter, encode_one};

use crate::fault::{Fault, ResultCode};
use kind::{Kind, Tag, ValueError};

/// Length of an AVP header without Vendor-Id.
pub const AVP_HEADER_LEN: usize = 8;
/// Length of an AVP header with Vendor-Id.
pub const AVP_VENDOR_HEADER_LEN: usize = 12;

/// AVP flags (RFC 6733 §4.1).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct AvpFlags(pub u8);

impl AvpFlags {
    /// A Vendor-Id field is present.
    pub const VENDOR: Self = Self(0x80);
    /// A receiver that does not understand the AVP must refuse the message.
    pub const MANDATORY: Self = Self(0x40);
    /// Once meant for end-to-end security; now ignored.
    pub const PROTECTED: Self = Self(0x20);
    /// Reserved bits.
    pub const RESERVED: Self = Self(0x1f);

    /// Whether every bit of `other` is set.
    #[inline]
    #[must_use]
    pub const fn contains(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }
}

impl fmt::Debug for AvpFlags {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// `VM`, `M`, `-`: a letter per bit, `r` and the bits in hexadecimal for reserved ones.
impl fmt::Display for AvpFlags {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0 == 0 {
            return f.write_str("-");
        }
        for (flag, letter) in [
            (Self::VENDOR, "V"),
            (Self::MANDATORY, "M"),
            (Self::PROTECTED, "P"),
        ] {
            if self.contains(flag) {
                f.write_str(letter)?;
            }
        }
        match self.0 & Self::RESERVED.0 {
            0 => Ok(()),
            reserved => write!(f, "r{reserved:02x}"),
        }
    }
}

/// What an AVP is: its code in the name space of a vendor. Vendor 0 is the IETF.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct AvpKey {
    /// Vendor-Id, 0 when the V flag is not set.
    pub vendor: u32,
    /// AVP code.
    pub code: u32,
}

impl AvpKey {
    /// An AVP of the IETF.
    #[must_use]
    pub const fn ietf(code: u32) -> Self {
        Self { vendor: 0, code }
    }
}

/// `263`, `10415:1400`.
impl fmt::Display for AvpKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.vendor {
            0 => write!(f, "{}", self.code),
            vendor => write!(f, "{vendor}:{}", self.code),
        }
    }
}

/// An AVP in a received message.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Avp<'a> {
    /// AVP code.
    pub code: u32,
    /// Vendor-Id, 0 when there is none.
    pub vendor: u32,
    /// Flags as received.
    pub flags: AvpFlags,
    /// The data, without padding.
    pub data: &'a [u8],
    /// Header and data, without padding.
    pub raw: &'a [u8],
}

impl<'a> Avp<'a> {
    /// Code and vendor.
    #[inline]
    #[must_use]
    pub const fn key(&self) -> AvpKey {
        AvpKey {
            vendor: self.vendor,
            code: self.code,
        }
    }

    /// Whether this is the AVP that `tag` names.
    #[inline]
    #[must_use]
    pub fn is<K: Kind>(&self, tag: Tag<K>) -> bool {
        self.code == tag.key.code && self.vendor == tag.key.vendor
    }

    /// The data read as a value of type `K`.
    ///
    /// # Errors
    /// [`Fault`] with `DIAMETER_INVALID_AVP_LENGTH` or `DIAMETER_INVALID_AVP_VALUE` and this AVP.
    pub fn read<K: Kind>(&self) -> Result<K::Value<'a>, Fault> {
        K::read(self.data).map_err(|error| self.value_fault(error))
    }

    fn value_fault(&self, error: ValueError) -> Fault {
        let reason = format!("AVP {}: {error}", self.key());
        match error {
            ValueError::Length { .. } => {
                Fault::new(ResultCode::INVALID_AVP_LENGTH, reason).about(self.padded())
            }
            ValueError::Content(_) => Fault::new(ResultCode::INVALID_AVP_VALUE, reason).about(self.padded()),
        }
    }

    /// The AVPs inside, when this one is Grouped.
    #[inline]
    #[must_use]
    pub fn group(&self) -> Avps<'a> {
        Avps::new(self.data)
    }

    /// A copy of the whole AVP with its padding, as it would go into a Failed-AVP.
    #[must_use]
    pub fn padded(&self) -> Bytes {
        let mut out = BytesMut::with_capacity(self.raw.len() + 3);
        out.extend_from_slice(self.raw);
        out.put_bytes(0, padding(self.raw.len()));
        out.freeze()
    }
}

impl fmt::Debug for Avp<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Avp({} {} {} bytes)", self.key(), self.flags, self.data.len())
    }
}

/// Bytes that follow an AVP of `length` to reach a multiple of four.
#[inline]
#[must_use]
pub const fn padding(length: usize) -> usize {
    length.wrapping_neg() & 3
}

/// Why a walk could not go on. Turn it into a [`Fault`] to answer with it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct WalkError<'a> {
    /// Where the offending AVP begins, from the start of the walked bytes.
    pub offset: usize,
    /// What is wrong with it.
    pub reason: WalkReason,
    /// The bytes from the offending AVP to the end of the message or group.
    pub rest: &'a [u8],
}

/// What can be wrong with the frame of an AVP.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum WalkReason {
    /// Fewer bytes remain than a header takes.
    HeaderCut,
    /// The length is smaller than the header's.
    BelowHeader {
        /// Length field as received.
        length: usize,
    },
    /// The length reaches beyond the end of the message or group.
    BeyondEnd {
        /// Length field as received.
        length: usize,
    },
    /// The data is there, its padding is not.
    PaddingCut,
}

impl fmt::Display for WalkError<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (at, left) = (self.offset, self.rest.len());
        match self.reason {
            WalkReason::HeaderCut => write!(f, "{left} bytes at offset {at} are too few for an AVP header"),
            WalkReason::BelowHeader { length } => {
                write!(
                    f,
                    "the AVP at offset {at} claims {length} bytes, less than its header takes"
                )
            }
            WalkReason::BeyondEnd { length } => {
                write!(
                    f,
                    "the AVP at offset {at} claims {length} bytes where {left} are left"
                )
            }
            WalkReason::PaddingCut => write!(f, "the AVP at offset {at} is not padded to a multiple of four"),
        }
    }
}

impl std::error::Error for WalkError<'_> {}

/// The walk over the AVPs of a message or a group. Ends after the first error.
#[derive(Clone, Debug)]
pub struct Avps<'a> {
    rest: &'a [u8],
    offset: usize,
}

impl<'a> Avps<'a> {
    /// Walks over `bytes`, which begin with an AVP (or are empty).
    #[inline]
    #[must_use]
    pub const fn new(bytes: &'a [u8]) -> Self {
        Self {
            rest: bytes,
            offset: 0,
        }
    }

    /// The bytes not yet walked.
    #[inline]
    #[must_use]
    pub const fn remaining(&self) -> &'a [u8] {
        self.rest
    }

    /// The first AVP that `tag` names, among those not yet walked. The walk stops there.
    ///
    /// # Errors
    /// When the walk meets a broken AVP before it.
    pub fn find<K: Kind>(mut self, tag: Tag<K>) -> Result<Option<Avp<'a>>, WalkError<'a>> {
        self.find_next(tag)
    }

    /// As [`Avps::find`], but goes on from where the last search ended: for AVPs that repeat.
    ///
    /// # Errors
    /// When the walk meets a broken AVP before it.
    pub fn find_next<K: Kind>(&mut self, tag: Tag<K>) -> Result<Option<Avp<'a>>, WalkError<'a>> {
        for avp in self {
            let avp = avp?;
            if avp.is(tag) {
                return Ok(Some(avp));
            }
        }
        Ok(None)
    }

    /// The value of the first AVP that `tag` names.
    ///
    /// # Errors
    /// When the walk meets a broken AVP before it, or its data does not fit the type.
    pub fn get<K: Kind>(self, tag: Tag<K>) -> Result<Option<K::Value<'a>>, Fault> {
        self.find(tag)?.map(|avp| avp.read::<K>()).transpose()
    }

    /// The value of the first AVP that `tag` names, which has to be there.
    ///
    /// # Errors
    /// As [`Avps::get`], and `DIAMETER_MISSING_AVP` with an example of it when there is none.
    pub fn require<K: Kind>(self, tag: Tag<K>) -> Result<K::Value<'a>, Fault> {
        self.get(tag)?.ok_or_else(|| Fault::missing(tag))
    }

    #[cold]
    fn fail(&mut self, reason: WalkReason) -> WalkError<'a> {
        let error = WalkError {
            offset: self.offset,
            reason,
            rest: self.rest,
        };
        self.rest = &[];
        error
    }
}

impl<'a> Iterator for Avps<'a> {
    type Item = Result<Avp<'a>, WalkError<'a>>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        let bytes = self.rest;
        if bytes.is_empty() {
            return None;
        }
        let Some((head, after)) = bytes.split_first_chunk::<AVP_HEADER_LEN>() else {
            return Some(Err(self.fail(WalkReason::HeaderCut)));
        };
        let [c0, c1, c2, c3, flags, l0, l1, l2] = *head;
        let flags = AvpFlags(flags);
        let length = u32::from_be_bytes([0, l0, l1, l2]) as usize;
        let (vendor, header_len) = if flags.contains(AvpFlags::VENDOR) {
            match after.first_chunk::<4>() {
                Some(vendor) => (u32::from_be_bytes(*vendor), AVP_VENDOR_HEADER_LEN),
                None => return Some(Err(self.fail(WalkReason::HeaderCut))),
            }
        } else {
            (0, AVP_HEADER_LEN)
        };
        if length < header_len {
            return Some(Err(self.fail(WalkReason::BelowHeader { length })));
        }
        if length > bytes.len() {
            return Some(Err(self.fail(WalkReason::BeyondEnd { length })));
        }
        let Some(rest) = bytes.get(length + padding(length)..) else {
            return Some(Err(self.fail(WalkReason::PaddingCut)));
        };
        let raw = &bytes[..length];
        self.rest = rest;
        self.offset += length + padding(length);
        Some(Ok(Avp {
            code: u32::from_be_bytes([c0, c1, c2, c3]),
            vendor,
            flags,
            data: &raw[header_len..],
            raw,
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NAME: [u8; 12] = [0, 0, 0, 1, 0x40, 0, 0, 11, b'a', b'b', b'c', 0];

    #[test]
    fn a_whole_avp_is_walked_with_its_padding() {
        let mut two = NAME.to_vec();
        two.extend_from_slice(&[0, 0, 5, 0x78, 0xc0, 0, 0, 12, 0, 0, 0x28, 0xaf]);
        let avps: Vec<_> = Avps::new(&two).collect::<Result<_, _>>().unwrap();
        assert_eq!(avps[0].data, b"abc");
        assert_eq!(
            avps[1].key(),
            AvpKey {
                vendor: 10415,
                code: 1400
            }
        );
        assert_eq!(avps[1].flags.to_string(), "VM");
        assert!(avps[1].data.is_empty());
    }

    #[test]
    fn broken_frames_are_named_and_answered_with_a_whole_failed_avp() {
        let cases: [(&[u8], WalkReason); 6] = [
            (&NAME[..7], WalkReason::HeaderCut),
            (&[0, 0, 0, 1, 0x80, 0, 0, 12, 0, 0], WalkReason::HeaderCut),
            (
                &[0, 0, 0, 1, 0x40, 0, 0, 7],
                WalkReason::BelowHeader { length: 7 },
            ),
            (
                &[0, 0, 0, 1, 0xc0, 0, 0, 8, 0, 0, 0x28, 0xaf],
                WalkReason::BelowHeader { length: 8 },
            ),
            (
                &[0, 0, 0, 1, 0x40, 255, 255, 255],
                WalkReason::BeyondEnd { length: 0xff_ffff },
            ),
            (&NAME[..11], WalkReason::PaddingCut),
        ];
        for (bytes, reason) in cases {
            let mut walk = Avps::new(bytes);
            let error = walk.next().unwrap().unwrap_err();
            assert_eq!(error.reason, reason);
            assert!(walk.next().is_none(), "a walk ends with its first error");
            let fault = Fault::from(error);
            assert_eq!(fault.code, ResultCode::INVALID_AVP_LENGTH);
            let failed = fault.failed_avp.unwrap();
            assert_eq!(Avps::new(&failed).count(), 1);
            assert!(Avps::new(&failed).all(|avp| avp.is_ok()));
        }
    }
}
