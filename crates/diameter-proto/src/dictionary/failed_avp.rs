//! The Failed-AVP of a broken AVP, for which the dictionary knows the shortest payload.

use super::Dictionary;
use crate::avp::{AVP_HEADER_LEN, AVP_VENDOR_HEADER_LEN, AvpFlags, AvpKey, AvpWriter, WalkError};
use crate::fault::{Fault, ResultCode};

/// The answer RFC 6733 §7.1.5 asks for: `DIAMETER_INVALID_AVP_LENGTH` with the offending header, completed
/// with zeros where it was cut, and a payload of zeros as short as the AVP's type allows.
impl From<WalkError<'_>> for Fault {
    fn from(error: WalkError<'_>) -> Self {
        let vendor = error
            .rest
            .get(4)
            .is_some_and(|flags| AvpFlags(*flags).contains(AvpFlags::VENDOR));
        let header_len = if vendor {
            AVP_VENDOR_HEADER_LEN
        } else {
            AVP_HEADER_LEN
        };
        let mut header = [0; AVP_VENDOR_HEADER_LEN];
        let kept = error.rest.len().min(header_len);
        header[..kept].copy_from_slice(&error.rest[..kept]);
        let [c0, c1, c2, c3, flags, _, _, _, v0, v1, v2, v3] = header;
        let vendor = if vendor {
            u32::from_be_bytes([v0, v1, v2, v3])
        } else {
            0
        };
        let key = AvpKey {
            vendor,
            code: u32::from_be_bytes([c0, c1, c2, c3]),
        };
        let least = Dictionary::standard()
            .avp(key)
            .map_or(0, |definition| definition.kind.min_len());
        let mut failed = AvpWriter::with_capacity(AVP_VENDOR_HEADER_LEN + 8);
        failed.put_raw(key, AvpFlags(flags), &[0; 8][..least]);
        Self::new(ResultCode::INVALID_AVP_LENGTH, error.to_string()).about(failed.into_bytes())
    }
}
