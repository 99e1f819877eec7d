//! Random bytes and events. Seeds are fixed, so a failure can be repeated; the targets in `fuzz/` try more.

use diameter_proto::{Dictionary, Message, text};

use crate::exercise::{self, examples};

struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn below(&mut self, bound: usize) -> usize {
        (self.next() % bound.max(1) as u64) as usize
    }
}

/// Changes a few bytes, or the length of the whole; now and then everything.
fn mutate(random: &mut Random, example: &[u8], out: &mut Vec<u8>) {
    out.clear();
    out.extend_from_slice(example);
    match random.below(16) {
        0 => {
            out.clear();
            let length = random.below(120);
            out.extend((0..length).map(|_| random.next() as u8));
            if random.below(2) == 0 && length >= 4 {
                out[..4].copy_from_slice(&(length as u32).to_be_bytes());
                out[0] = 1;
            }
            return;
        }
        1 => out.truncate(random.below(example.len() + 1)),
        2 => {
            let more = random.below(40);
            out.extend((0..more).map(|_| random.next() as u8));
        }
        _ => {}
    }
    for _ in 0..=random.below(4) {
        if out.is_empty() {
            return;
        }
        // Half of the changes hit bytes that begin a word: lengths, flags and codes.
        let mut at = random.below(out.len());
        if random.below(2) == 0 {
            at &= !3;
        }
        out[at] = match random.below(4) {
            0 => 0,
            1 => 0xff,
            2 => out[at].wrapping_add(1),
            _ => random.next() as u8,
        };
    }
    // Most mutants keep a right length, so that what is behind the frame is reached.
    if random.below(8) != 0 && out.len() >= 20 {
        out.truncate(out.len() & !3);
        let length = (out.len() as u32).to_be_bytes();
        out[1..4].copy_from_slice(&length[1..]);
        out[0] = 1;
    }
}

#[test]
fn a_million_inputs() {
    let examples = examples();
    let mut random = Random(0x5eed);
    let mut bytes = Vec::new();
    for n in 0..1_000_000 {
        let example = &examples[random.below(examples.len())];
        mutate(&mut random, example, &mut bytes);
        exercise::message(&bytes, n % 16 == 0);
    }
}

#[test]
fn what_is_printed_parses_to_the_same_bytes() {
    let dictionary = Dictionary::standard();
    for example in examples() {
        let message = Message::parse(&example[..]).unwrap();
        let printed = text::print(&message, dictionary).to_string();
        assert_eq!(
            text::parse(&printed, dictionary).unwrap().as_bytes(),
            example,
            "{printed}"
        );
    }
}

#[test]
fn events_in_any_order() {
    let mut random = Random(0xe7e7);
    for round in 0..2_000 {
        exercise::peer(round, 60, &mut |bound| random.below(bound));
    }
}

#[test]
fn corpora() {
    fuzz_support::run("diameter_message", 20_000, |bytes| exercise::message(bytes, true));
    fuzz_support::run("diameter_capabilities", 50_000, exercise::capabilities);
}
