//! What is sent to each function, and what it must answer: a module per function or kind of peer.

pub mod bsf;
pub mod dsr;
pub mod nrf;
pub mod rx;
pub mod scp;
