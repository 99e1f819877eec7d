//! The Policy DRA at the wire (TS 29.213 §7).

mod beginning;
mod correlation;
mod failures;
mod kept;
pub(crate) mod support;
