//! Gx (TS 29.212): CCR and RAA to documents of N7, decisions to CCA and RAR.
//!
//! [`Request::read`] makes of a CCR what Npcf_SMPolicyControl has in its bodies: `SmPolicyContextData` (CCR-I),
//! `SmPolicyUpdateContextData` (CCR-U), `SmPolicyDeleteData` (CCR-T). What has no member there stands in an object `gx`.
//! [`put_change`] writes what a PCEF lacks of a decision: it compares what rules mean on Gx, so that a change of a
//! rule's `QosData` provides the rule again.

mod change;
mod definition;
mod features;
mod location;
mod report;
mod request;
pub(crate) mod sd;
mod triggers;
mod usage;

pub use change::{put_change, put_release, put_restoration};
pub use features::Features;
pub use report::read_report;
pub use request::{Request, RequestKind};

pub(crate) use location::{put_location, put_time_zone};
pub(crate) use report::IP_CAN_MEMBER;
