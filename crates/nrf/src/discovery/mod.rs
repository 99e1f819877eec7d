//! Discovery (TS 29.510 §5.3.2, §6.2): which NFs fit a question, in which order, and the answer as bytes.
//!
//! A question is parsed into a [`Query`]: tests on profiles, a filter of services, preferences. [`select`]
//! runs it over the profiles of the target type and renders an [`Answer`]. No IO and no clock here; what a
//! location function says of the subscriber comes in as an argument.

mod answer;
mod classes;
mod complex;
mod fault;
mod locality;
mod order;
mod params;
mod preferences;
mod query;
mod requester;
mod select;
mod test;

pub use answer::Answer;
pub use classes::{Class, Classes};
pub use fault::ParamFault;
pub use locality::{Localities, PreferredLocation};
pub use preferences::VersionWish;
pub use query::{Query, ServiceInstance};
pub use requester::Requester;
pub use select::{About, Extent, Policy, select};
