//! Arbitrary bytes, for each parser.

use bsf::fuzzing;
use fuzz_support::run;

#[test]
fn bindings() {
    run("bsf_binding", 4000, fuzzing::binding);
}

#[test]
fn queries() {
    run("bsf_query", 20000, fuzzing::query);
}
