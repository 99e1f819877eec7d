//! Routing decisions that need neither sockets nor clocks: what a service's policy allows, how far away a
//! producer is, and whether a failed attempt may be followed by another.

mod created;
mod places;
mod reroute;
mod status;
mod table;

pub use places::{Distances, Places};
pub use reroute::{Attempt, Budget, Failure, Verdict};
pub use status::{StatusProcessing, Suspended, Takes};
pub use table::{Phase, PolicyTable, Reroute, RerouteRule, Route, Scope, ServicePolicy, StagePolicy};
