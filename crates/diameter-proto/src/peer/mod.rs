//! A peer: capabilities exchange, watchdog, disconnection, election, and reconnection. Bytes, events and time go in,
//! messages and decisions come out.
//!
//! | file | what it holds | standard |
//! |---|---|---|
//! | [`table`] | the state machine, row by row | RFC 6733 §5.6 |
//! | [`machine`] | what the rows' actions do | RFC 6733 §5.3 to §5.6 |
//! | [`events`] | inputs, outputs and settings of the machine | |
//! | `messages` | what the machine sends | RFC 6733 §5.3 to §5.5 |
//! | [`rules`] | what CER, DWR and DPR have to be | RFC 6733 §3, §5.3 to §5.5, §6.10, §6.11 |
//! | [`watchdog`] | whether the peer is alive | RFC 3539 §3.4 |
//! | [`capabilities`] | CER and CEA as types, the applications in common | RFC 6733 §5.3 |
//!
//! Messages of applications do not pass through here: when the machine is open, the driver delivers them itself and
//! only reports to the watchdog that a message arrived ([`Machine::traffic`]).

pub mod capabilities;
pub mod events;
pub mod machine;
mod messages;
mod rules;
pub mod table;
pub mod watchdog;

pub use capabilities::{ApplicationId, Capabilities};
pub use events::{DownReason, Duplicate, Input, Output, PeerSettings};
pub use machine::Machine;
pub use messages::capabilities_answer;
pub use rules::{check_cer, check_host_address};
pub use table::{Action, Event, Side, State};
pub use watchdog::{Health, Reopen};
