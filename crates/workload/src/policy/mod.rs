//! The traffic of a PCF, made from a call model: SM policy associations of SMFs (TS 29.512), AM and UE policy
//! associations of AMFs (TS 29.507, TS 29.525).
//!
//! - [`Documents`]: what is sent for each association, by its number, and what its answer has to show;
//! - [`setup`]: the associations that stand before the load;
//! - [`PolicyWorkload`]: the load itself, and the judge of its answers.

mod documents;
pub mod setup;
#[cfg(test)]
mod tests;
mod traffic;

pub use documents::{Documents, FIRST_IMSI, Kind, Service, kinds};
pub use traffic::{OPERATIONS, Part, PolicyWorkload, Standing};

/// The identifier at the end of a `Location` below this collection.
fn id_of<'a>(location: &'a str, collection: &str) -> Option<&'a str> {
    let (before, id) = location.rsplit_once('/')?;
    (before.ends_with(collection) && !id.is_empty() && id.len() <= 128).then_some(id)
}
