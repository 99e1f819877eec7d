//! Arbitrary bytes, for the parser.

#[test]
fn frames() {
    fuzz_support::run("dp_frames", 2_000, dp_proto::fuzzing::frames);
}
