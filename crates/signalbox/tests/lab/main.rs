//! The laboratory with the program of this build: whole runs against the real functions, and simulators as processes.
#![cfg(feature = "lab")]

mod bad_day;
mod bench;
mod bsf;
mod database;
mod ending;
mod nrf;
mod policy;
mod scef;
mod scp;
mod simulators;
mod stp;
mod whole;
mod whole_core;

use std::path::PathBuf;

use lab::report::{Check, Report};

/// The program that Cargo has built for these tests.
fn program() -> PathBuf {
    PathBuf::from(env!("CARGO_BIN_EXE_signalbox"))
}

/// Where the programs of a bench run: in this folder, on any core.
fn site(folder: &tempfile::TempDir) -> lab::bench::Site {
    lab::bench::Site {
        pin: Vec::new(),
        out: folder.path().to_owned(),
        program: Some(program()),
    }
}

/// The checks of content that did not hold. What measures time says how fast and how busy this machine is, and is a matter
/// of benches: checks know of themselves whether they do. Requests without an answer in time are late and not wrong, unless
/// most of them are.
fn failed(report: &Report) -> Vec<&Check> {
    let is_dead = report.success_ratio <= 0.5;
    let is_of_time = |check: &Check| check.of_time && !(is_dead && check.name == "success");
    let checks = report.checks.iter();
    checks.filter(|check| !check.pass && !is_of_time(check)).collect()
}
