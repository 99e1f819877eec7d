#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| dp_proto::fuzzing::frames(bytes));
