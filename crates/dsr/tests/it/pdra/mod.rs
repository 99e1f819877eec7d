//! The Policy DRA at the wire (TS 29.213 §7).

mod addresses;
mod audit;
mod beginning;
mod capture;
mod correlation;
mod crowds;
mod failures;
pub(crate) mod hiding;
mod kept;
mod modes;
mod order;
mod programs;
mod released;
mod sites;
pub(crate) mod support;
mod suspects;
mod tdf;
