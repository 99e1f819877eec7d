//! Routing decisions that need neither sockets nor clocks: what a service's policy allows, how far away a
//! producer is, and whether a failed attempt may be followed by another.

mod places;
mod policy;
mod reroute;
mod status;

pub use places::{Distances, Places};
pub use policy::{Phase, PolicyTable, Reroute, Route, Scope, ServicePolicy, StagePolicy};
pub use reroute::{Attempt, Budget, Failure, Verdict};
pub use status::{StatusProcessing, Suspended, Takes};
