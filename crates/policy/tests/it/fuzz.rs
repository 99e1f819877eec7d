//! Bytes of unknown senders and of careless authors, for each parser.

use fuzz_support::run;
use policy::fuzzing;

#[test]
fn projects() {
    run("policy_project", 1500, fuzzing::project);
}

#[test]
fn scripts() {
    run("policy_script", 400, fuzzing::script);
}

#[test]
fn inputs() {
    run("policy_input", 3000, fuzzing::input);
}
