//! The requests of Diameter clients, and the check of their answers.

use diameter_proto::{MessageRef, ResultCode, known};
use rand::rngs::SmallRng;

use super::Introduction;
use crate::load::{Fault, Ticket};

/// The contract between Diameter clients and the traffic of one kind of node: what
/// [`Workload`](crate::load::Workload) is for HTTP.
///
/// One value per generator thread; the threads share nothing.
pub trait Requests: Send {
    /// Names of the operations, in the order of [`Ticket::operation`].
    fn operations(&self) -> Vec<String>;

    /// The next request, appended to `out`, which comes empty; identifiers are set by the connection.
    fn next(&mut self, random: &mut SmallRng, turn: Turn<'_>, out: &mut Vec<u8>) -> Next;

    /// Judges an answer.
    ///
    /// # Errors
    /// What is wrong with it.
    fn judge(&mut self, ticket: &Ticket, answer: MessageRef<'_>) -> Result<(), Fault>;

    /// Its request has failed without an answer.
    fn lost(&mut self, _ticket: &Ticket) {}

    /// Answers a request of the peer: the answer is appended to `out`.
    fn asked(&mut self, turn: Turn<'_>, request: MessageRef<'_>, out: &mut Vec<u8>) {
        turn.introduction
            .put_result(request, ResultCode::COMMAND_UNSUPPORTED, out);
    }
}

/// The connection that a request is for, or came from.
#[derive(Clone, Copy, Debug)]
pub struct Turn<'a> {
    /// Its number within the thread.
    pub line: usize,
    /// The node it belongs to.
    pub introduction: &'a Introduction,
}

/// A request that was made.
#[derive(Clone, Copy, Debug)]
pub struct Next {
    /// What is needed to judge the answer.
    pub ticket: Ticket,
    /// The connection it goes to: that of the turn, unless it belongs to something begun on another.
    pub line: usize,
}

/// Result-Code of an answer, or its Experimental-Result-Code; 0 when it has neither.
#[must_use]
pub fn result_of(answer: MessageRef<'_>) -> u32 {
    for avp in answer.walk().map_while(Result::ok) {
        if avp.is(known::RESULT_CODE) {
            return avp.read::<diameter_proto::kind::Unsigned32>().unwrap_or_default();
        }
        if avp.is(known::EXPERIMENTAL_RESULT) {
            let code = avp.group().get(known::EXPERIMENTAL_RESULT_CODE);
            return code.ok().flatten().unwrap_or_default();
        }
    }
    0
}
