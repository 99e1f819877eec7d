//! The Policy DRA at the wire (TS 29.213 §7).

mod addresses;
mod audit;
mod beginning;
mod correlation;
mod failures;
mod hiding;
mod kept;
mod order;
mod programs;
pub(crate) mod support;
