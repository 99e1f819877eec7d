//! Bytes as a CER or CEA.
#![no_main]

#[allow(dead_code)]
#[path = "../../crates/diameter-proto/tests/it/exercise.rs"]
mod exercise;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| exercise::capabilities(bytes));
