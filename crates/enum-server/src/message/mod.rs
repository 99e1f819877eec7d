//! From a query to its answer, without input and output.

mod answer;
mod query;
mod target;
mod write;

pub(crate) use answer::{Responder, Transport};
pub(crate) use query::{NoQuery, Query};
