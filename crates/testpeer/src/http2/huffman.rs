//! As much of HPACK's Huffman code (RFC 7541 annex B) as a status code needs.

/// Decodes a text of digits; `None` when there is anything else.
pub(super) fn digits(coded: &[u8]) -> Option<Vec<u8>> {
    let bit = |at: usize| coded.get(at / 8).map(|byte| byte >> (7 - at % 8) & 1);
    let bits = |from: usize, count: usize| {
        (from..from + count).try_fold(0u8, |value, at| Some(value << 1 | bit(at)?))
    };
    let (mut text, mut at) = (Vec::new(), 0);
    while at + 5 <= coded.len() * 8 {
        // 0, 1 and 2 have five bits (0 to 2), 3 to 9 six (25 to 31).
        match (bits(at, 5)?, bits(at, 6)) {
            (short @ 0..=2, _) => {
                text.push(b'0' + short);
                at += 5;
            }
            (_, Some(long @ 25..=31)) => {
                text.push(b'3' + long - 25);
                at += 6;
            }
            // The rest of the last byte is padded with ones.
            _ if coded.len() * 8 - at < 8 => break,
            _ => return None,
        }
    }
    Some(text)
}
