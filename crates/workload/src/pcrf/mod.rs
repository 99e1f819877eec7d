//! PCEFs at Gx (TS 29.212) and P-CSCFs at Rx (TS 29.214) of a PCRF: sessions begin, report and end, calls begin, change and end
//! within them.
//!
//! One thread has both sides, as a call belongs to a session: the P-CSCF names the address that the PCEF has given. RARs are
//! answered and counted: the rules of each call must reach the PCEF, and go away again.

mod clients;
mod counts;
mod messages;
mod sessions;
#[cfg(test)]
mod tests;

pub use clients::{OPERATIONS, PcrfClients, Plan, REALM, pcef};
pub use counts::{Counts, Seen};
pub use messages::imsi;
pub(crate) use sessions::take;
