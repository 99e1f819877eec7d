//! Diameter clients for the generator, and what simulated servers share with them.
//!
//! The codec is crate `diameter-proto`'s; connections, capabilities exchange and watchdog are the lab's own, so
//! that the peer machine of the functions under test is not judged by itself. Everything is made for cheapness:
//!
//! * [`Template`]: a message written once as text, of which each sending patches a few digits;
//! * [`Inbox`]: messages of a stream where they lie;
//! * [`Clients`]: the connections of a generator thread, each a node of its own; [`Requests`] says what they
//!   send and judges the answers;
//! * [`Habits`]: what clients do besides, such as connecting anew without a good-bye;
//! * [`Introduction`]: who a simulated node is, and its CER, CEA, DWA and DPA.
//!
//! Deliberately missing: TLS and SCTP, redirects, retransmission (a request without an answer has failed).

mod base;
mod clients;
mod habits;
mod inbox;
mod line;
mod renewals;
mod requests;
mod slots;
mod template;

pub use base::{Introduction, append};
pub use clients::{Clients, Peer};
pub use habits::{HabitCounts, Habits};
pub use inbox::{Broken, Inbox};
pub use requests::{Next, Requests, Turn, result_of};
pub use template::{Places, Template, TemplateError, fill, fill_in};
