//! Bytes of unknown senders, for each reader.

use fuzz_support::run;
use pcc::fuzzing;

#[test]
fn messages() {
    run("pcc_message", 20_000, fuzzing::message);
}

#[test]
fn documents() {
    run("pcc_document", 20_000, fuzzing::document);
}
