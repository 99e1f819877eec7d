//! Settings of functions that serve consumers over the service-based interface, where they mean the same in each.

mod overload;
mod tokens;

pub use overload::{ConsumerRate, Overload, OverloadLevel};
pub use tokens::{TokenKey, TokenSettings, Tokens};
