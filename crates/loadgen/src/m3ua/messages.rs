//! What nodes send, and the check of what arrives.

use rand::rngs::SmallRng;
use ss7_proto::m3ua::Data;

use crate::load::{Fault, Ticket};

/// The contract between the nodes of a generator thread and their traffic: what [`Workload`](crate::load::Workload) is
/// for HTTP. Nodes are named by their position in [`super::Nodes`].
///
/// One value per generator thread; the threads share nothing.
pub trait Messages: Send {
    /// Names of the operations, in the order of [`Ticket::operation`].
    fn operations(&self) -> Vec<String>;

    /// Appends the next message to `out`, which comes empty: a DATA that carries this transaction, or of a node of IPA a frame.
    fn next(&mut self, random: &mut SmallRng, transaction: u32, out: &mut Vec<u8>) -> Next;

    /// The transaction of a message that has arrived; `None` of one that cannot be of this traffic.
    fn read(&self, data: &Data<'_>) -> Option<Reading>;

    /// Judges a message that has arrived at the right node.
    ///
    /// # Errors
    /// What is wrong with it.
    fn judge(&mut self, ticket: &Ticket, transaction: u32, data: &Data<'_>) -> Result<(), Fault>;
}

/// A message that was made.
#[derive(Clone, Copy, Debug)]
pub struct Next {
    /// What is needed to judge it.
    pub ticket: Ticket,
    /// The node that sends it.
    pub from: usize,
    /// The node that receives it; the sender where the STP answers.
    pub to: usize,
    /// Another node that may receive it instead.
    pub second: Option<usize>,
    /// Link selection.
    pub sls: u8,
}

/// What a message is that has arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reading {
    /// Its transaction.
    pub transaction: u32,
    /// Why it came back, of a service message (Q.713 §3.12).
    pub returned: Option<u8>,
}
