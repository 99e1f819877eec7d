//! Overload control in simulated time.

mod admission;
mod properties;
mod queue;
