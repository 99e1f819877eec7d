#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| sbi_proto::fuzzing::headers(bytes));
