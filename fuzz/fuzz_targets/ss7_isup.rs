//! Octets as a message of ISUP.
#![no_main]

#[allow(dead_code)]
#[path = "../../crates/ss7-proto/tests/it/exercise.rs"]
mod exercise;

libfuzzer_sys::fuzz_target!(|octets: &[u8]| exercise::isup(octets));
