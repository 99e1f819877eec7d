//! A subscriber's life through every function of this project: registration, PDU session, IMS voice call, release.
//!
//! | step | passes |
//! |---|---|
//! | AM and UE policy association of the AMF (TS 29.507, TS 29.525) | SCP (Model D: it discovers the PCF at the NRF), PCF |
//! | SM policy association of the SMF (TS 29.512) | NRF (discovery by the SMF), SCP (Model C), PCF, BSF (binding) |
//! | AAR of the P-CSCF (TS 29.214) | Diameter router, BSF (the PCF of the binding), PCF; rules to the SMF |
//! | application session of an AF (TS 29.514) | BSF (discovery by address), SCP, PCF; rules to the SMF |
//! | the same backwards | the rules are removed at the SMF, the binding at the BSF, the associations at the PCF |
//!
//! Each leg is checked where it arrives, and timed. [`Caller`] makes one call after another on connections of its own.

mod board;
mod caller;
mod cscf;
mod documents;
mod legs;
mod listener;
mod party;
mod ues;

pub(crate) use board::Board;
pub(crate) use caller::{Caller, Credentials, Peers, Standing};
pub(crate) use cscf::host as cscf_host;
pub(crate) use documents::Ue;
pub(crate) use legs::{LEGS, Legs};
pub(crate) use listener::Listener;
pub(crate) use ues::Ues;
