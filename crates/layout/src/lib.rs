//! Checks of the source tree, as tests (`tests/it`): no circle between the rooms of a crate, no runtime under a pure
//! crate, no arrow upwards between crates.
//!
//! A room is a module at the top level of a crate. [`Rooms`] reads a crate's sources as text: tokens, modules and paths;
//! unit tests do not count. It sees `use` declarations, paths inside of code, `super::…` and the names that the crate's
//! root re-exports; it does not see what macros of other crates expand to.
//!
//! [`compliance`] makes the page of cited clauses.

mod circles;
pub mod compliance;
mod paths;
mod rooms;
mod tokens;

pub use rooms::Rooms;
