//! Octets as messages of a link of M2PA in each of its states, and the management of MTP3 in them.
#![no_main]

#[allow(dead_code)]
#[path = "../../crates/ss7-proto/tests/it/exercise.rs"]
mod exercise;

libfuzzer_sys::fuzz_target!(|octets: &[u8]| exercise::m2pa(octets));
