//! Discovery (TS 29.510 §5.3.2, §6.2): selection of NFs for a query, their order, and the answer as bytes.
//!
//! A query string is parsed into a [`Query`] (crate `discovery`): tests on profiles, a filter of services, preferences.
//! [`select`] runs it over the profiles of the target type and renders an [`Answer`]. The module has no IO and no clock;
//! the answer of a location function is an argument.

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
