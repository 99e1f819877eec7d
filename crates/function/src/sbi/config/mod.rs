//! Settings of functions that serve consumers over the service-based interface, where they mean the same in each.

mod interface;
mod nrf;
mod outgoing;
mod overload;
mod tokens;

pub use interface::Interface;
pub use nrf::{Nrf, check_root};
pub use outgoing::Outgoing;
pub use overload::{ConsumerRate, Overload, OverloadLevel};
pub use tokens::{TokenKey, TokenSettings, Tokens};
