//! Arbitrary bytes, for each parser.

use fuzz_support::run;
use numbers::fuzzing;

#[test]
fn files() {
    run("numbers_file", 1500, fuzzing::file);
}

#[test]
fn lines() {
    run("numbers_lines", 400, fuzzing::lines);
}
