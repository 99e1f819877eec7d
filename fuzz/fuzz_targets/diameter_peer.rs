//! Bytes as a sequence of events for the peer state machine.
#![no_main]

#[allow(dead_code)]
#[path = "../../crates/diameter-proto/tests/it/exercise.rs"]
mod exercise;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let mut left = bytes.iter();
    let events = bytes.len() / 4;
    // A choice takes two bytes; when they are used up, the first of each choice is taken.
    exercise::peer(1, events, &mut |bound| {
        let high = left.next().copied().unwrap_or_default();
        let low = left.next().copied().unwrap_or_default();
        usize::from(u16::from_be_bytes([high, low])) % bound.max(1)
    });
});
