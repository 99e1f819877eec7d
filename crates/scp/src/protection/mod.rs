//! What keeps this SCP and the producers behind it from harm.
//!
//! A worker judges for itself: it sees enough of every producer to know how it does. What it shares with the
//! others are the rates, which are promises of the whole SCP and cut into shares, and what producers tell of
//! their load. Whom a request is from and whom it goes to is looked up once; what follows are a few additions.

mod attempt;
mod consumers;
mod fault;
mod federation;
mod load;
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
