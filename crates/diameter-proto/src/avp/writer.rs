//! Writing AVPs, typed by [`Tag`]: lengths, padding and the V flag follow from the content.

use bytes::{BufMut, Bytes, BytesMut};

use super::kind::{Grouped, Kind, Tag};
use super::{AVP_HEADER_LEN, AVP_VENDOR_HEADER_LEN, Avp, AvpFlags, AvpKey, padding};
use crate::fault::{Fault, ResultCode};
use crate::header::MAX_LENGTH;

/// Appends AVPs to a buffer.
#[derive(Debug, Default)]
pub struct AvpWriter {
    pub(crate) out: BytesMut,
    /// Set when a length did not fit; the output is invalid then.
    pub(crate) too_long: bool,
}

impl AvpWriter {
    /// A writer with room for `bytes`.
    #[must_use]
    pub fn with_capacity(bytes: usize) -> Self {
        Self {
            out: BytesMut::with_capacity(bytes),
            too_long: false,
        }
    }

    /// Appends an AVP.
    pub fn put<K: Kind>(&mut self, tag: Tag<K>, value: K::Value<'_>) -> &mut Self {
        let start = self.begin(tag.key, tag.flags());
        K::write(value, &mut self.out);
        self.end(start)
    }

    /// Appends an AVP if there is a value for it.
    pub fn maybe<K: Kind>(&mut self, tag: Tag<K>, value: Option<K::Value<'_>>) -> &mut Self {
        match value {
            Some(value) => self.put(tag, value),
            None => self,
        }
    }

    /// Appends a Grouped AVP with what `fill` writes.
    pub fn group(&mut self, tag: Tag<Grouped>, fill: impl FnOnce(&mut Self)) -> &mut Self {
        let start = self.begin(tag.key, tag.flags());
        fill(self);
        self.end(start)
    }

    /// Appends an AVP whose type is known only at run time. The V flag follows from `key`.
    pub fn put_raw(&mut self, key: AvpKey, flags: AvpFlags, data: &[u8]) -> &mut Self {
        let start = self.begin(key, flags);
        self.out.extend_from_slice(data);
        self.end(start)
    }

    /// Appends a Grouped AVP whose type is known only at run time.
    ///
    /// # Errors
    /// Those of `fill`; the group is then left out.
    pub fn group_raw<E>(
        &mut self,
        key: AvpKey,
        flags: AvpFlags,
        fill: impl FnOnce(&mut Self) -> Result<(), E>,
    ) -> Result<&mut Self, E> {
        let start = self.begin(key, flags);
        match fill(self) {
            Ok(()) => Ok(self.end(start)),
            Err(error) => {
                self.out.truncate(start);
                Err(error)
            }
        }
    }

    /// Appends an AVP exactly as it was received.
    pub fn copy(&mut self, avp: &Avp<'_>) -> &mut Self {
        self.out.extend_from_slice(avp.raw);
        self.out.put_bytes(0, padding(avp.raw.len()));
        self
    }

    /// Appends AVPs that are encoded and padded already.
    pub fn append_encoded(&mut self, avps: &[u8]) -> &mut Self {
        self.out.extend_from_slice(avps);
        self
    }

    fn begin(&mut self, key: AvpKey, flags: AvpFlags) -> usize {
        let start = self.out.len();
        self.out.put_u32(key.code);
        if key.vendor == 0 {
            self.out.put_u32(u32::from(flags.0 & !AvpFlags::VENDOR.0) << 24);
        } else {
            self.out.put_u32(u32::from(flags.0 | AvpFlags::VENDOR.0) << 24);
            self.out.put_u32(key.vendor);
        }
        start
    }

    fn end(&mut self, start: usize) -> &mut Self {
        let length = self.out.len() - start;
        if length > MAX_LENGTH {
            self.too_long = true;
        }
        let [_, l0, l1, l2] = (length as u32).to_be_bytes();
        // `begin` wrote at least eight bytes at `start`.
        self.out[start + 5..start + 8].copy_from_slice(&[l0, l1, l2]);
        self.out.put_bytes(0, padding(length));
        self
    }

    /// The output.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        &self.out
    }

    /// Returns the output.
    #[must_use]
    pub fn into_bytes(self) -> Bytes {
        self.out.freeze()
    }
}

/// Encodes a single AVP, padded: for what is appended to relayed messages again and again.
#[must_use]
pub fn encode_one<K: Kind>(tag: Tag<K>, value: K::Value<'_>) -> Bytes {
    let mut writer = AvpWriter::with_capacity(AVP_VENDOR_HEADER_LEN + 64);
    writer.put(tag, value);
    writer.into_bytes()
}

const _: () = assert!(
    AVP_HEADER_LEN == 8,
    "AvpWriter::end patches the length at byte 5 of an AVP"
);

impl Fault {
    /// The AVP `tag` names should have been there. The Failed-AVP holds an example of it: a value of the
    /// smallest right length, all zeros (§7.5).
    #[must_use]
    pub fn missing<K: Kind>(tag: Tag<K>) -> Self {
        let mut example = AvpWriter::with_capacity(16);
        example.put_raw(tag.key, tag.flags(), &[0; 8][..K::MIN_LEN.min(8)]);
        Self::new(ResultCode::MISSING_AVP, format!("AVP {} is missing", tag.key)).about(example.into_bytes())
    }
}
