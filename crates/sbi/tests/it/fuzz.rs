//! Bounded runs of the fuzz targets.

use fuzz_support::run;
use sbi::fuzzing;

#[test]
fn tokens() {
    run("sbi_token", 2_000, fuzzing::token);
}
