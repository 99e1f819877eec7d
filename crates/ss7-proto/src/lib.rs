//! SS7 as octets and time in, octets and events out. No sockets, no clocks, no tasks: the crate's `Cargo.toml` names no
//! runtime, so the compiler keeps the promise. [docs/ss7.md](../../../docs/ss7.md) teaches the protocols in one page.
//!
//! # A tour
//!
//! | to … | use |
//! |---|---|
//! | read a message of an association | [`m3ua::Message::parse`]: proves header and parameters once |
//! | write one | [`m3ua::Builder`], [`m3ua::Data::write`] |
//! | read the SCCP message in it | [`sccp::Message::parse`], [`sccp::Address::parse`] |
//! | find where it leads | [`gtt::Table::translate`], [`gtt::Group::choose`] |
//! | pass it on with another address | [`sccp::Unitdata::write`] |
//! | look into its data | [`tcap::Transaction::parse`], [`map::Fields::read`], [`cap::InitialDp::read`] |
//! | change the called number of a call | [`isup::Iam::parse`], [`isup::Iam::write_with_called`] |
//! | keep the states of ASPs and application servers | [`asp::Asp`], [`asp::Gateway`] |
//! | read a link message, its MSU | [`m2pa::Message::parse`], [`mtp3::Msu::read`] |
//! | keep the state of a link, and of the links of a set | [`m2pa::Link`], [`mtp3::LinkTest`], [`mtp3::LinkSet`] |
//! | read and write SCCP without MTP | [`ipa::Frame::read`], [`ipa::write_sccp`] |
//! | refuse one | [`m3ua::Fault`], [`m3ua::Fault::write_error`] |
//!
//! A message is a view over its octets. What we do not interpret (unknown parameters, spare bits) stays unchanged.

pub mod asp;
pub mod ber;
pub mod cap;
mod digits;
pub mod gtt;
pub mod ipa;
pub mod isup;
pub mod m2pa;
pub mod m3ua;
pub mod map;
pub mod mtp3;
mod numbered;
mod octets;
pub mod point_code;
pub mod sccp;
pub mod tcap;

pub use digits::{Digits, MAX_DIGITS};
pub use point_code::{Plan, PointCode};
