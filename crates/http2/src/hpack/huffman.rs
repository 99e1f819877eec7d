//! The Huffman code of HPACK (RFC 7541 §5.2 and appendix B).
//!
//! The code is canonical: the lengths of its words give the words. A table of the next 12 bits yields one or two
//! symbols at a time; the words above 12 bits, which text does not have, are found by their lengths.

use super::HpackError;

/// End of string: a symbol that no string may hold.
const EOS: u16 = 256;
const SYMBOLS: usize = 257;

/// Lengths of the words in bits (appendix B).
#[rustfmt::skip]
const LENGTHS: [u8; SYMBOLS] = [
    13, 23, 28, 28, 28, 28, 28, 28, 28, 24, 30, 28, 28, 30, 28, 28,
    28, 28, 28, 28, 28, 28, 30, 28, 28, 28, 28, 28, 28, 28, 28, 28,
    6, 10, 10, 12, 13, 6, 8, 11, 10, 10, 8, 11, 8, 6, 6, 6,
    5, 5, 5, 6, 6, 6, 6, 6, 6, 6, 7, 8, 15, 6, 12, 10,
    13, 6, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7,
    7, 7, 7, 7, 7, 7, 7, 7, 8, 7, 8, 13, 19, 13, 14, 6,
    15, 5, 6, 5, 6, 5, 6, 6, 6, 5, 7, 7, 6, 6, 6, 5,
    6, 7, 6, 5, 5, 6, 7, 7, 7, 7, 7, 15, 11, 14, 13, 28,
    20, 22, 20, 20, 22, 22, 22, 23, 22, 23, 23, 23, 23, 23, 24, 23,
    24, 24, 22, 23, 24, 23, 23, 23, 23, 21, 22, 23, 22, 23, 23, 24,
    22, 21, 20, 22, 22, 23, 23, 21, 23, 22, 22, 24, 21, 22, 23, 23,
    21, 21, 22, 21, 23, 22, 23, 23, 20, 22, 22, 22, 23, 22, 22, 23,
    26, 26, 20, 19, 22, 23, 22, 25, 26, 26, 26, 27, 27, 26, 24, 25,
    19, 21, 26, 27, 27, 26, 27, 24, 21, 21, 26, 26, 28, 27, 27, 27,
    20, 24, 20, 21, 22, 21, 21, 23, 22, 22, 25, 25, 24, 24, 26, 23,
    26, 27, 26, 26, 27, 27, 27, 27, 27, 28, 27, 27, 27, 27, 27, 26,
    30,
];

const LONGEST: usize = 30;

/// The words of one length.
#[derive(Clone, Copy)]
struct Group {
    /// The first of them.
    first: u32,
    /// Where its symbol stands in [`CODE`]'s order.
    at: u16,
    /// The first word beyond them, aligned left in 32 bits; 2^32 after the last.
    end: u64,
}

struct Code {
    /// Symbols in the order of their words: by length, then by number.
    order: [u16; SYMBOLS],
    groups: [Group; LONGEST + 1],
}

static CODE: Code = code();

const fn code() -> Code {
    let none = Group {
        first: 0,
        at: 0,
        end: 0,
    };
    let mut code = Code {
        order: [0; SYMBOLS],
        groups: [none; LONGEST + 1],
    };
    let (mut length, mut at, mut word) = (1, 0, 0_u32);
    while length <= LONGEST {
        word <<= 1;
        let (first, first_at) = (word, at as u16);
        let mut symbol = 0;
        while symbol < SYMBOLS {
            if LENGTHS[symbol] as usize == length {
                code.order[at] = symbol as u16;
                at += 1;
                word += 1;
            }
            symbol += 1;
        }
        code.groups[length] = Group {
            first,
            at: first_at,
            end: (word as u64) << (32 - length),
        };
        length += 1;
    }
    code
}

const WINDOW: usize = 12;

/// What the next [`WINDOW`] bits begin with.
#[derive(Clone, Copy)]
struct Step {
    symbols: [u8; 2],
    /// Bits of the first symbol; 0: its word is longer than the window.
    first: u8,
    /// Bits of all symbols here: above `first` if there are two.
    bits: u8,
}

static STEPS: [Step; 1 << WINDOW] = steps();

const fn steps() -> [Step; 1 << WINDOW] {
    let code = code();
    let none = Step {
        symbols: [0; 2],
        first: 0,
        bits: 0,
    };
    let mut steps = [none; 1 << WINDOW];
    let mut length = 5;
    while length <= WINDOW {
        let group = code.groups[length];
        let beyond = (group.end >> (32 - length)) as u32;
        let mut word = group.first;
        while word < beyond {
            let symbol = code.order[group.at as usize + (word - group.first) as usize] as u8;
            let spread = 1_usize << (WINDOW - length);
            let mut tail = 0;
            while tail < spread {
                steps[((word as usize) << (WINDOW - length)) + tail] = Step {
                    symbols: [symbol, 0],
                    first: length as u8,
                    bits: length as u8,
                };
                tail += 1;
            }
            word += 1;
        }
        length += 1;
    }
    // A second symbol where its word fits behind the first.
    let single = steps;
    let mut bits = 0;
    while bits < 1 << WINDOW {
        let first = single[bits].first as usize;
        let second = single[(bits << first) % (1 << WINDOW)];
        if first > 0 && second.first > 0 && first + second.first as usize <= WINDOW {
            steps[bits].symbols[1] = second.symbols[0];
            steps[bits].bits += second.first;
        }
        bits += 1;
    }
    steps
}

/// The symbol whose word the bits begin with, and the length of the word.
fn long(bits: u32) -> (u16, u32) {
    for length in WINDOW + 1..=LONGEST {
        let group = &CODE.groups[length];
        if u64::from(bits) < group.end {
            let at = usize::from(group.at) + ((bits >> (32 - length)) - group.first) as usize;
            return (CODE.order.get(at).copied().unwrap_or(EOS), length as u32);
        }
    }
    (EOS, LONGEST as u32)
}

/// Appends the text of a code word string to `out`.
pub(super) fn decode(coded: &[u8], out: &mut Vec<u8>) -> Result<(), HpackError> {
    let before = out.len();
    // The shortest word has 5 bits; 2 bytes more because symbols are written in pairs.
    out.resize(before + coded.len() * 8 / 5 + 2, 0);
    let text = out.get_mut(before..).unwrap_or_default();
    let written = decode_into(coded, text)?;
    out.truncate(before + written);
    Ok(())
}

fn decode_into(coded: &[u8], text: &mut [u8]) -> Result<usize, HpackError> {
    let (mut at, mut written) = (0_usize, 0_usize);
    // Eight bytes hold 57 bits or more behind `at`: enough for one long word, or four steps.
    while let Some(word) = coded.get(at / 8..).and_then(|rest| rest.first_chunk::<8>()) {
        let mut word = u64::from_be_bytes(*word) << (at % 8);
        for steps in 0..4 {
            let step = STEPS[(word >> (64 - WINDOW)) as usize];
            if step.first == 0 {
                if steps == 0 {
                    let (symbol, bits) = long((word >> 32) as u32);
                    put(text, &mut written, symbol)?;
                    at += bits as usize;
                }
                break;
            }
            if let Some(pair) = text.get_mut(written..written + 2) {
                pair.copy_from_slice(&step.symbols);
            }
            written += 1 + usize::from(step.bits > step.first);
            word <<= step.bits;
            at += usize::from(step.bits);
        }
    }
    // The rest fits into one word; ones behind it, as padding is.
    let mut left = coded.len() * 8 - at;
    let mut last = [0xff; 8];
    for (into, byte) in last.iter_mut().zip(coded.get(at / 8..).unwrap_or_default()) {
        *into = *byte;
    }
    let mut unset = !u64::from_be_bytes(last) << (at % 8);
    loop {
        if left < 8 && unset >> 56 == 0 {
            return Ok(written);
        }
        let word = !unset;
        let step = STEPS[(word >> (64 - WINDOW)) as usize];
        let (symbol, bits) = match step.first {
            0 => long((word >> 32) as u32),
            first => (u16::from(step.symbols[0]), u32::from(first)),
        };
        left = left.checked_sub(bits as usize).ok_or(HpackError::Huffman)?;
        put(text, &mut written, symbol)?;
        unset <<= bits;
    }
}

fn put(text: &mut [u8], written: &mut usize, symbol: u16) -> Result<(), HpackError> {
    let byte = u8::try_from(symbol).map_err(|_| HpackError::Huffman)?;
    if let Some(place) = text.get_mut(*written) {
        *place = byte;
    }
    *written += 1;
    Ok(())
}

/// The code of a text. The encoder does not use it: what it saves on a wire of a data centre costs more in
/// instructions, on both sides.
#[cfg(test)]
pub(super) fn encode(text: &[u8]) -> Vec<u8> {
    let (mut out, mut word, mut bits) = (Vec::new(), 0_u64, 0);
    let push = |symbol: usize, word: &mut u64, bits: &mut u32| {
        let length = LENGTHS[symbol];
        let group = CODE.groups[usize::from(length)];
        let at = CODE.order.iter().position(|s| usize::from(*s) == symbol).unwrap();
        *word = *word << length | u64::from(group.first + at as u32 - u32::from(group.at));
        *bits += u32::from(length);
    };
    for byte in text {
        push(usize::from(*byte), &mut word, &mut bits);
        while bits >= 8 {
            bits -= 8;
            out.push((word >> bits) as u8);
        }
    }
    if bits > 0 {
        out.push((word << (8 - bits)) as u8 | (0xff >> bits));
    }
    out
}
