//! SCCP (Q.711 to Q.714, T1.112).
//!
//! [`Message::parse`] proves fixed part, pointers, variable and optional parts once, then [`Unitdata`] (UDT, XUDT, LUDT and
//! what returns them) or [`Connection`] (class 2 and 3) are views. A relay writes a [`Unitdata`] with another called or
//! calling address; all other octets, addresses that it does not translate among them, pass as they came.
//!
//! Tolerated: variable parts in any order, gaps between them, an optional part without its end, unknown optional
//! parameters, an empty calling party address.

mod address;
mod cause;
mod connection;
mod kind;
mod management;
mod message;
mod reassembly;
mod title;
mod unitdata;

pub use address::{Address, AddressBuf, AddressFault, Format};
pub use cause::ReturnCause;
pub use connection::Connection;
pub use kind::MessageType;
pub use management::{Management, ManagementType};
pub use message::{Fault, Message, OptionalParameter, Optionals};
pub use reassembly::{Reassembled, Reassembly, ReassemblyFault, ReassemblyLimits};
pub use title::{GlobalTitle, GlobalTitleBuf};
pub use unitdata::{HopCounter, Segmentation, TooLong, Unitdata, optional_part};
