//! Routers that query a database processor, for the generator: the look-ups of one tick leave in one frame of each connection.
//!
//! * [`Routers`]: the connections of a generator thread, each that of a worker of a router;
//! * [`Lookups`]: what they ask, and whether an answer is right.
//!
//! The codec is crate `dp-proto`'s. Deliberately missing: probes, another processor for what a lost connection owes.

mod link;
mod routers;
#[cfg(test)]
mod tests;

use dp_proto::{Answer, Kind};
use rand::rngs::SmallRng;

use crate::load::{Fault, Ticket};

pub use routers::Routers;

/// What routers ask; one value for each generator thread.
pub trait Lookups: Send {
    /// Names of the operations, in the order of [`Ticket::operation`].
    fn operations(&self) -> Vec<String>;

    /// Draws the next look-up: appends its value to `value`, which is empty.
    fn next(&mut self, random: &mut SmallRng, value: &mut Vec<u8>) -> Question;

    /// Judges an answer.
    ///
    /// # Errors
    /// What is wrong with it.
    fn judge(&mut self, ticket: &Ticket, answer: &Answer<'_>) -> Result<(), Fault>;
}

/// A look-up, beside its value.
#[derive(Clone, Copy, Debug)]
pub struct Question {
    /// What the answer is judged by.
    pub ticket: Ticket,
    /// What the value is.
    pub kind: Kind,
    /// The service that the destination is for.
    pub service: &'static [u8],
}
