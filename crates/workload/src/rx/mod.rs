//! AFs (P-CSCFs) at their Rx end (TS 29.214): AARs with the addresses of UEs, later ones for the same session,
//! STRs; RARs and ASRs from the other side are answered.
//!
//! Whoever uses them says by [`Ues`] which UEs there are, for example those whose bindings stand. A session
//! ends by an STR, by the answer 5002, or after an ASR, which the AF follows with an STR as TS 29.214 §4.4.6.1
//! asks.

mod af;
mod held;
#[cfg(test)]
mod tests;
mod ue;

pub use af::{AfPlan, Afs, OPERATIONS, Shares, af};
pub use ue::{Ue, UePool, Ues};
