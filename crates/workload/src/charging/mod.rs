//! Gateways with online charging (Gy, RFC 8506, TS 32.299 §6): sessions that begin, report and end, and one-time events.
//!
//! A gateway ends a session of which a request is refused, and names no OCS: the router finds it by the Session-Id. RARs are
//! answered and counted.

mod clients;
mod counts;
mod messages;
#[cfg(test)]
mod tests;

pub use clients::{ChargingClients, Plan, ctf};
pub use counts::{Counts, Refused, Seen};
pub use messages::{Kind, Messages};
