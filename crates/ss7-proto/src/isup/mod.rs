//! ISUP (Q.763, T1.113) as far as number services use it: numbers of parties, the called number of an IAM, REL. The call itself is
//! between the exchanges.

mod ansi;
mod iam;
mod number;
mod release;

pub use ansi::AnsiIam;
pub use iam::{Fault, Iam, TooLong};
pub use number::Number;
pub use release::{Cause, write_release};

/// Natures of address (Q.763 §3.9).
pub mod nature {
    /// Subscriber number.
    pub const SUBSCRIBER: u8 = 1;
    /// Unknown: prefixes are part of the number.
    pub const UNKNOWN: u8 = 2;
    /// National (significant) number.
    pub const NATIONAL: u8 = 3;
    /// International number.
    pub const INTERNATIONAL: u8 = 4;
    /// Network routing number concatenated with called directory number.
    pub const ROUTING_NUMBER: u8 = 8;
}
