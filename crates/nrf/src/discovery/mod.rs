//! Discovery (TS 29.510 §5.3.2, §6.2): which NFs fit a question, in which order, and the answer as bytes.
//!
//! A question is parsed into a [`Query`] (crate `discovery`): tests on profiles, a filter of services, preferences. [`select`]
//! runs it over the profiles of the target type and renders an [`Answer`]. No IO and no clock here; what a
//! location function says of the subscriber comes in as an argument.

mod answer;
mod classes;
mod order;
mod select;

pub use ::discovery::{
    Localities, ParamFault, PreferredLocation, Query, Requester, ServiceInstance, VersionWish,
};
pub use answer::Answer;
pub use classes::{Class, Classes};
pub use select::{About, Extent, Policy, select};
