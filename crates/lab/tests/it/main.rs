//! The laboratory over real sockets and processes, and its reports against kept ones.

mod bsf;
mod diameter;
mod generator;
mod golden;
mod http2;
mod scp;
mod simulators;
mod support;
mod traffic;
mod whole;
