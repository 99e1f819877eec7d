//! Overload between Diameter nodes: pure, with time and randomness as arguments.
//!
//! | file | what it holds | standard |
//! |---|---|---|
//! | [`doic`] | overload reports: read, written, obeyed, made | RFC 7683, RFC 8582 |
//! | [`load`] | how loaded a node says it is | RFC 8583 |
//! | [`priority`] | how important a message is | RFC 7944 |

pub mod doic;
pub mod load;
pub mod priority;
