//! The traffic of a BSF, made from a call model: bindings at its service-based interface (TS 29.521), and which
//! of them AFs have sessions for.
//!
//! - [`Sessions`]: what is in the binding of each PDU session, by its number;
//! - [`setup`]: the bindings that stand before the load; [`Stock`]: those that stand now;
//! - [`BsfWorkload`]: the load itself, and the judge of its answers.

mod sessions;
pub mod setup;
mod stock;
#[cfg(test)]
mod tests;
mod traffic;

pub use sessions::{Binding, Numbers, PCF_REALM, PCFS, Sessions, Standing};
pub use stock::Stock;
pub use traffic::{BsfWorkload, OPERATIONS, Part};

/// The collection of bindings of PDU sessions.
const COLLECTION: &str = "/nbsf-management/v1/pcfBindings";

/// The identifier at the end of a `Location`.
fn id_of(location: &str) -> Option<&str> {
    let (before, id) = location.rsplit_once('/')?;
    (before.ends_with(COLLECTION) && !id.is_empty() && id.len() <= 64).then_some(id)
}
