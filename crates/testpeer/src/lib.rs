//! Peers for tests: scripted ones that may break the rules, and the real programs of others.
//!
//! A well-behaved client or server of a library cannot break the rules. The peers of [`http2`] and [`diameter`] put
//! raw frames on the wire, in any order and any state, and report what came back; a hostile peer is ten lines of a
//! test. [`sbi`] is the well-behaved counterpart: servers that answer with a closure, and what a test reads of an
//! answer.
//!
//! [`local`] runs a test with a deadline, [`process`] runs one in a process that can be killed. [`skip`] is how a test skips when a program is missing.

#[cfg(feature = "collector")]
pub mod collector;
#[cfg(feature = "diameter")]
pub mod diameter;
#[cfg(feature = "dns")]
pub mod dns;
#[cfg(feature = "diameter")]
pub mod freediameter;
pub mod http2;
pub mod kamailio;
pub mod maven;
#[cfg(feature = "openapi")]
pub mod openapi;
#[cfg(feature = "pages")]
mod pages;
pub mod pcap;
pub mod process;
pub mod python;
mod run;
#[cfg(feature = "sbi")]
pub mod sbi;
#[cfg(feature = "diameter")]
pub mod sctp;
pub mod sip;
pub mod skip;
#[cfg(feature = "tokens")]
pub mod tokens;
pub mod tshark;

#[cfg(feature = "pages")]
pub use pages::{page, request};
pub use run::{local, local_within, until};
