//! Bounded runs of the fuzz targets.

use fuzz_support::run;
use sbi_proto::fuzzing;

#[test]
fn headers() {
    run("sbi_headers", 4_000, fuzzing::headers);
}

#[test]
fn uris() {
    run("sbi_uris", 20_000, fuzzing::uris);
}

#[test]
fn patches() {
    run("sbi_patch", 10_000, fuzzing::patch);
}

#[test]
fn compressed_bodies() {
    run("sbi_gzip", 5_000, fuzzing::gzip);
}
