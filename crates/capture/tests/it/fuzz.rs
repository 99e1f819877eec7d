//! Bytes of anyone: no panic, whatever they are.

#[test]
fn captures_of_any_bytes() {
    fuzz_support::run("capture_file", 2_000, |bytes| {
        let _ = capture::read_from(bytes, &mut |captured| {
            assert!((20..=capture::MAX_MESSAGE).contains(&captured.bytes.len()));
        });
    });
}
