//! The Huffman code of HPACK strings (RFC 7541 appendix B).
//!
//! The code is canonical: codes of one length are consecutive and follow the order of the symbols, so the
//! table of lengths is all there is to know; the rest is computed once.

use std::sync::LazyLock;

/// Code length in bits of each symbol; the last is the end-of-string symbol.
const LENGTHS: [u8; 257] = [
    13, 23, 28, 28, 28, 28, 28, 28, 28, 24, 30, 28, 28, 30, 28, 28, //
    28, 28, 28, 28, 28, 28, 30, 28, 28, 28, 28, 28, 28, 28, 28, 28, //
    6, 10, 10, 12, 13, 6, 8, 11, 10, 10, 8, 11, 8, 6, 6, 6, //
    5, 5, 5, 6, 6, 6, 6, 6, 6, 6, 7, 8, 15, 6, 12, 10, //
    13, 6, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, //
    7, 7, 7, 7, 7, 7, 7, 7, 8, 7, 8, 13, 19, 13, 14, 6, //
    15, 5, 6, 5, 6, 5, 6, 6, 6, 5, 7, 7, 6, 6, 6, 5, //
    6, 7, 6, 5, 5, 6, 7, 7, 7, 7, 7, 15, 11, 14, 13, 28, //
    20, 22, 20, 20, 22, 22, 22, 23, 22, 23, 23, 23, 23, 23, 24, 23, //
    24, 24, 22, 23, 24, 23, 23, 23, 23, 21, 22, 23, 22, 23, 23, 24, //
    22, 21, 20, 22, 22, 23, 23, 21, 23, 22, 22, 24, 21, 22, 23, 23, //
    21, 21, 22, 21, 23, 22, 23, 23, 20, 22, 22, 22, 23, 22, 22, 23, //
    26, 26, 20, 19, 22, 23, 22, 25, 26, 26, 26, 27, 27, 26, 24, 25, //
    19, 21, 26, 27, 27, 26, 27, 24, 21, 21, 26, 26, 28, 27, 27, 27, //
    20, 24, 20, 21, 22, 21, 21, 23, 22, 22, 25, 25, 24, 24, 26, 23, //
    26, 27, 26, 26, 27, 27, 27, 27, 27, 28, 27, 27, 27, 27, 27, 26, //
    30,
];
const LONGEST: usize = 30;
const END_OF_STRING: u16 = 256;

/// Canonical decoding: for each length, the first code and where its symbols start.
struct Table {
    first_code: [u32; LONGEST + 1],
    count: [u32; LONGEST + 1],
    first_symbol: [usize; LONGEST + 1],
    symbols: Vec<u16>,
}

static TABLE: LazyLock<Table> = LazyLock::new(|| {
    let mut table = Table {
        first_code: [0; LONGEST + 1],
        count: [0; LONGEST + 1],
        first_symbol: [0; LONGEST + 1],
        symbols: Vec::with_capacity(LENGTHS.len()),
    };
    let mut code = 0_u32;
    for length in 1..=LONGEST {
        code <<= 1;
        table.first_code[length] = code;
        table.first_symbol[length] = table.symbols.len();
        for symbol in (0..=END_OF_STRING).filter(|s| usize::from(LENGTHS[usize::from(*s)]) == length) {
            table.symbols.push(symbol);
            table.count[length] += 1;
            code += 1;
        }
    }
    table
});

/// Decodes `coded` and appends the text to `out`; false when it is not valid (RFC 7541 §5.2).
pub(super) fn decode(coded: &[u8], out: &mut Vec<u8>) -> bool {
    let table = &*TABLE;
    let (mut bits, mut held) = (0_u64, 0_usize);
    let mut input = coded.iter();
    loop {
        while held <= 56 {
            let Some(byte) = input.next() else { break };
            bits |= u64::from(*byte) << (56 - held);
            held += 8;
        }
        if held == 0 {
            return true;
        }
        let mut length = 5;
        let symbol = loop {
            if length > LONGEST || length > held {
                // What is left is padding: fewer than 8 bits, all ones.
                return held < 8 && bits >> (64 - held) == (1_u64 << held) - 1;
            }
            let code = (bits >> (64 - length)) as u32;
            let offset = code.wrapping_sub(table.first_code[length]);
            if offset < table.count[length] {
                break table.symbols[table.first_symbol[length] + offset as usize];
            }
            length += 1;
        };
        let Ok(byte) = u8::try_from(symbol) else {
            return false;
        };
        out.push(byte);
        bits <<= length;
        held -= length;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Examples of RFC 7541 appendix C.4 and C.6.
    #[test]
    fn the_examples_of_the_standard() {
        for (coded, text) in [
            (
                &[
                    0xf1, 0xe3, 0xc2, 0xe5, 0xf2, 0x3a, 0x6b, 0xa0, 0xab, 0x90, 0xf4, 0xff,
                ][..],
                "www.example.com",
            ),
            (&[0xa8, 0xeb, 0x10, 0x64, 0x9c, 0xbf], "no-cache"),
            (
                &[0x25, 0xa8, 0x49, 0xe9, 0x5b, 0xb8, 0xe8, 0xb4, 0xbf],
                "custom-value",
            ),
            (&[0x64, 0x02], "302"),
        ] {
            let mut out = Vec::new();
            assert!(decode(coded, &mut out));
            assert_eq!(out, text.as_bytes());
        }
    }

    #[test]
    fn bad_padding_and_the_end_symbol_are_refused() {
        for coded in [&[0x06][..], &[0xff, 0xff, 0xff, 0xff], &[0xff]] {
            assert!(!decode(coded, &mut Vec::new()), "{coded:02x?}");
        }
    }
}
