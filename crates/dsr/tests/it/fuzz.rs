//! Random bytes, for each parser.

use dsr::fuzzing;
use fuzz_support::run;

#[test]
fn identities() {
    run("dsr_identities", 20000, fuzzing::identities);
}

#[test]
fn configurations() {
    run("dsr_configuration", 300, fuzzing::configuration);
}
