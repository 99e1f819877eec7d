//! Protection of this SCP and of the producers behind it.
//!
//! Each worker decides by its own measurements of producers. Workers share only the rates, which hold for the whole SCP
//! and are divided into shares, and the load reports of producers. A request looks up its consumer and its producer
//! once; after that only counters change.

mod attempt;
mod consumers;
mod fault;
mod federation;
mod load;
mod newness;
mod producer;
mod producers;
mod rate;
mod reports;
mod standing;

pub(crate) use attempt::{Ended, Held, Hop, Way};
pub(crate) use consumers::{Consumer, Consumers};
pub(crate) use fault::{Sent, source};
pub(crate) use federation::{Federation, LEAST_INTERVAL, Others, Usage};
pub(crate) use load::Load;
pub(crate) use producer::Peer;
pub(crate) use producers::Peers;
pub(crate) use rate::{CUT, Rates};
pub(crate) use reports::Board;
pub(crate) use standing::{PeerState, PeerStates};
