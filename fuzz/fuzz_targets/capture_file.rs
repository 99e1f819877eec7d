#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let _ = capture::read_from(bytes, &mut |captured| assert!(captured.bytes.len() <= capture::MAX_MESSAGE));
});
