//! Nodes of an SS7 network around a signal transfer point, for the generator: M3UA over TCP, as laboratories may.
//!
//! The codecs are crate `ss7-proto`'s; associations and states of an ASP are the lab's own, so that a defect of the
//! functions' state machines shows.
//!
//! * [`Node`]: an ASP with an association, known to the STP by its address;
//! * [`Nodes`]: the nodes of a generator thread. They send and they receive, so that each message is judged where it
//!   arrives, by its intended time, by the order of its link selection, and once only; [`Messages`] says what they send;
//! * [`Counts`]: what no transaction shows, over all threads. [`Absence`]: a node that is away.
//!
//! A node may speak IPA ([`Protocol`]): SCCP without MTP over TCP, as `osmo-stp` does.
//!
//! Deliberately missing: SCTP, several ASPs of one application server.

mod counts;
mod deliveries;
mod ipa;
mod link;
mod messages;
mod nodes;
mod pending;

pub use counts::{Absence, Counts};
pub use messages::{Messages, Next, Reading};
pub use nodes::{Node, Nodes, Protocol, Unavailable};
