//! State machines of M3UA (RFC 4666 §4.3): messages and moments in, messages and events out.
//!
//! | machine | side |
//! |---|---|
//! | [`Asp`] | the process that asks: ASP, and the asking half of an IPSP |
//! | [`Gateway`] | the side that grants: SGP, and the granting half of an IPSP; all ASPs and application servers of it |
//!
//! In the single exchange of IPSPs (§4.3.1.2) one side asks and both are active by it; in the double exchange each side has
//! both machines on one association. Both machines ignore what belongs to the other, so a driver hands each message to both.

mod client;
mod gateway;
mod server;

pub use client::{Asp, AspEvent, AspSettings, AspState};
pub use gateway::{AsId, AspId, Gateway, GatewayEvent};
pub use server::{ApplicationServer, AsSettings, AsState, Distribution};
