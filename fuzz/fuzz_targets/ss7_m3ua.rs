//! Octets as an M3UA message: proven, read, written, refused.
#![no_main]

#[allow(dead_code)]
#[path = "../../crates/ss7-proto/tests/it/exercise.rs"]
mod exercise;

libfuzzer_sys::fuzz_target!(|octets: &[u8]| exercise::m3ua(octets));
