//! Bounded runs of the fuzz targets.

use crate::exercise;

#[test]
fn m3ua() {
    fuzz_support::run("ss7_m3ua", 200_000, exercise::m3ua);
}

#[test]
fn m2pa() {
    fuzz_support::run("ss7_m2pa", 100_000, exercise::m2pa);
}

#[test]
fn sccp() {
    fuzz_support::run("ss7_sccp", 200_000, exercise::sccp);
}

#[test]
fn tcap() {
    fuzz_support::run("ss7_tcap", 200_000, exercise::tcap);
}

#[test]
fn ipa() {
    fuzz_support::run("ss7_ipa", 200_000, exercise::ipa);
}

#[test]
fn isup() {
    fuzz_support::run("ss7_isup", 200_000, exercise::isup);
}
