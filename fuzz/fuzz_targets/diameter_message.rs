//! Bytes as a Diameter stream and message: framed, walked, checked, answered, printed, parsed.
#![no_main]

#[allow(dead_code)]
#[path = "../../crates/diameter-proto/tests/it/exercise.rs"]
mod exercise;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| exercise::message(bytes, true));
