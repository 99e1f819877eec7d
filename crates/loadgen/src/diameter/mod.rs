//! Diameter clients for the generator, and what simulated servers share with them.
//!
//! The codec is crate `diameter-proto`'s; connections, capabilities exchange and watchdog are the lab's own, so that a
//! defect of the functions' peer state machine shows. Every part is built for low cost:
//!
//! * [`Template`]: a message parsed once from text; each use patches a few digits;
//! * [`Inbox`]: messages of a stream where they lie;
//! * [`Clients`]: the connections of a generator thread, each a node of its own; [`Requests`] says what they
//!   send and judges the answers;
//! * [`Habits`]: other events of clients, such as reconnections without a DPR;
//! * [`Introduction`]: the identity of a simulated node, and its CER, CEA, DWA and DPA.
//!
//! Deliberately missing: TLS and SCTP, redirects, retransmission (a request without an answer has failed).

mod base;
mod clients;
mod habits;
mod inbox;
mod line;
mod renewals;
mod requests;
mod template;

pub use base::{Introduction, append};
pub use clients::{Clients, Peer};
pub use habits::{HabitCounts, Habits};
pub use inbox::{Broken, Inbox};
pub use requests::{Next, Requests, Turn, result_of};
pub use template::{Places, Template, TemplateError, fill, fill_in};
