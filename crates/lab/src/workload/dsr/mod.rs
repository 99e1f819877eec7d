//! MMEs at their S6a end (TS 29.272): ULR, AIR and PUR towards HSSs behind a Diameter router.

mod mme;

pub use mme::{Mmes, Plan, mme};

/// The realm of the simulated network (TS 23.003 §19.2).
pub const REALM: &str = "epc.mnc001.mcc001.3gppnetwork.org";
/// The first simulated subscriber.
pub const FIRST_SUBSCRIBER: u64 = 1_010_000_000_000;
/// Bytes that the Session-Id takes in each message.
pub const SESSION_BYTES: usize = 64;
