#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| http2::fuzzing::header_blocks(bytes));
