//! M3UA (RFC 4666): MTP3 user messages over SCTP.
//!
//! [`Message::parse`] proves the frame once: header, the length of each parameter, the form of those that we know, and
//! that those which the message needs are there. Readers of a proven message cannot fail.
//!
//! Tolerated: padding that is missing behind the last parameter and not counted (RFC 4666 §3.1.4), parameters in any
//! order (§3.2), unknown parameters, INFO String in any message.

mod build;
mod data;
mod fault;
mod kind;
mod message;
mod parameter;
mod values;

pub use build::Builder;
pub use data::{Data, ServiceIndicator};
pub use fault::{ErrorCode, Fault, RECEIVED_OCTETS};
pub use kind::{Class, MessageType};
pub use message::{HEADER_LEN, Message};
pub use parameter::{Parameter, Parameters, Tag};
pub use values::{
    AffectedPointCode, RegistrationResult, RegistrationStatus, RoutingContexts, RoutingKey, Status,
    TrafficMode,
};

/// Payload protocol identifier of M3UA (RFC 4666 §7.1).
pub const PPID: u32 = 3;
/// The registered port of M3UA.
pub const PORT: u16 = 2905;
