//! The Service Communication Proxy: indirect communication of network functions, Models C and D
//! (TS 29.500 §6.10, TS 23.501 annex E).

pub mod discovery;
pub mod mediation;
pub mod network;
pub mod routing;
pub mod selection;
