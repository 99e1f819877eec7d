//! What a Diameter message begins with (RFC 6733 §3).

use crate::MAX_MESSAGE;

pub(crate) const HEADER: usize = 20;

/// The length of the message that begins here: version and length can be those of one.
pub(crate) fn length(bytes: &[u8]) -> Option<usize> {
    let [1, a, b, c, ..] = bytes else { return None };
    let length = u32::from_be_bytes([0, *a, *b, *c]) as usize;
    (HEADER..=MAX_MESSAGE).contains(&length).then_some(length)
}

/// Whether a message begins here, in a stream that may be of another protocol: also reserved flags and the first AVP are as a
/// sender of Diameter has them.
pub(crate) fn begins(bytes: &[u8]) -> bool {
    let Some(length) = length(bytes) else { return false };
    let Some(flags) = bytes.get(4) else { return false };
    if length % 4 != 0 || flags & 0x0f != 0 {
        return false;
    }
    // Code, flags and length of the first AVP.
    match bytes.get(HEADER..HEADER + 8) {
        Some([_, _, _, _, flags, a, b, c]) if length > HEADER => {
            let avp = u32::from_be_bytes([0, *a, *b, *c]) as usize;
            flags & 0x1f == 0 && avp >= 8 && avp <= length - HEADER
        }
        _ => bytes.len() >= HEADER,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_protocols_do_not_begin_like_a_message() {
        let mut message = vec![1, 0, 0, 32, 0x80, 0, 1, 24];
        message.resize(HEADER, 0);
        message.extend_from_slice(&[0, 0, 1, 8, 0x40, 0, 0, 12, 1, 2, 3, 4]);
        assert!(begins(&message));
        assert!(begins(&message[..HEADER]));
        for (at, value) in [
            (0, 2),
            (3, 30),
            (4, 0x81),
            (24, 0x41),
            (27, 7),
            (27, 13),
            (1, 0x7f),
        ] {
            let mut other = message.clone();
            other[at] = value;
            assert!(!begins(&other), "{at}");
        }
        for other in [&b"GET / HTTP/1.1\r\nHost: example\r\n"[..], &[0x16, 3, 1], &[]] {
            assert!(!begins(other));
        }
    }
}
