//! What functions that keep records have in common: changes that collide, what the faults of a store are to a consumer, and
//! what an audit may remove.

mod ages;
mod collisions;
mod faults;
mod removals;

pub use ages::Ages;
pub use collisions::{Attempt, ChangeFault, Turns};
pub use faults::{overtaken, store_problem};
pub use removals::Removals;
