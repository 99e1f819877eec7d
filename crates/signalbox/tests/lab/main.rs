//! The laboratory with the program of this build: whole runs against the real functions, and simulators as processes.
#![cfg(feature = "lab")]

mod bench;
mod bsf;
mod ending;
mod nrf;
mod policy;
mod scp;
mod simulators;
mod whole;
mod whole_core;

use std::path::PathBuf;

/// The program that Cargo has built for these tests.
fn program() -> PathBuf {
    PathBuf::from(env!("CARGO_BIN_EXE_signalbox"))
}
