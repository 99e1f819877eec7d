//! AFs (P-CSCFs) at their Rx end (TS 29.214): AARs with the addresses of UEs, later ones for the same session,
//! STRs; RARs and ASRs from the other side are answered.
//!
//! The caller provides the UEs by [`Ues`], for example those with a binding. A session ends by an STR, by the answer
//! 5002, or after an ASR, which the AF follows with an STR as TS 29.214 §4.4.6.1 asks.

mod af;
mod held;
#[cfg(test)]
mod tests;
mod ue;

pub use af::{AfPlan, Afs, OPERATIONS, Shares, af};
pub use ue::{Ue, UePool, Ues};
