//! The laboratory over real sockets, and its reports against kept ones. Whole runs are tests of the program, in crate
//! `signalbox`.

mod diameter;
mod generator;
mod golden;
mod http2;
mod support;
mod traffic;
