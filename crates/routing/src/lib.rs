//! Where an SCP sends a request (TS 29.500 §6.10): what the request says, which producers are known, what the
//! operator allows. The crate has no runtime, socket or clock: the SCP brings them.
//!
//! | room | what is there |
//! |---|---|
//! | [`path`] | the one reading of a path by which a request is judged, routed and sent |
//! | [`query`] | the discovery that a consumer delegates (Model D) |
//! | [`network`] | producers as immutable snapshots |
//! | [`policy`] | what a service's policy allows, distances, and whether another attempt may follow |
//! | [`target`] | the destination that a request names |

pub mod network;
pub mod path;
pub mod policy;
pub mod query;
pub mod target;
