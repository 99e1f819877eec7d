//! Bounded runs of the fuzz targets.

use fuzz_support::run;
use http2::fuzzing;

#[test]
fn header_blocks() {
    run("http2_hpack", 20_000, fuzzing::header_blocks);
}

#[test]
fn connections() {
    run("http2_connection", 20_000, fuzzing::connection);
}
