//! Discovery (TS 29.510 §5.3.2, §6.2): which NFs fit a question, in which order, and the answer as bytes.
//!
//! A question is parsed into a [`Query`] (crate `discovery`): tests on profiles, a filter of services, preferences. [`select`]
//! runs it over the profiles of the target type and renders an [`Answer`]. No IO and no clock here; what a
//! location function says of the subscriber comes in as an argument.

mod answer;
mod classes;
mod notes;
mod order;
mod plans;
mod priorities;
mod select;

pub use ::discovery::{
    Localities, LocationType, ParamFault, PreferredLocation, Query, Requester, ServiceInstance,
    VersionIndication,
};
pub use answer::{Answer, supported_features};
pub use classes::{Class, Classes};
pub(crate) use plans::{Answers, Group, Key, Plan, Plans};
pub use select::{About, Extent, Policy, select};
pub(crate) use {notes::Notes, select::select_noting};
