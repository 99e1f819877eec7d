//! Arbitrary bytes for each parser.

use fuzz_support::run;
use scp::fuzzing;

#[test]
fn producers() {
    run("scp_producer", 3000, fuzzing::producer);
}

#[test]
fn mediation() {
    run("scp_mediation", 3000, fuzzing::mediation);
}
