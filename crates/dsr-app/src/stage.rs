//! What an application is shown.

use diameter_proto::{Message, MessageMut, Origin};

use crate::parking::Ticket;
use crate::view::View;

/// A request on its way to a peer.
#[derive(Debug)]
pub struct Request<'r> {
    /// The request.
    pub message: &'r MessageMut,
    /// What rules see of it.
    pub view: &'r View<'r>,
    /// The peer that sent it, by the name of its capabilities exchange; empty: the router itself.
    pub peer: &'r str,
    /// Our names at the local node that received the request.
    pub names: &'r Origin,
}

/// An answer on its way back: of a peer, of an application behind, or of the router itself.
#[derive(Debug)]
pub struct Answered<'r> {
    /// The request, as it was sent but for what hiding changed.
    pub request: &'r Message,
    /// Its answer.
    pub answer: &'r MessageMut,
    /// Our names at the local node that received the request.
    pub names: &'r Origin,
}

/// A request that no peer answers.
#[derive(Debug)]
pub struct Lost<'r> {
    /// The request.
    pub request: &'r Message,
    /// Why.
    pub why: Loss,
    /// Our names at the local node that received the request.
    pub names: &'r Origin,
}

/// Why no peer answers a request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Loss {
    /// No peer was available for it: it was not sent.
    NoPeer,
    /// A peer got it and did not answer in time.
    Timeout,
    /// The connection of the last peer that got it was lost.
    Disconnected,
    /// A queue, a throttle group or the bound of parked transactions was full.
    Full,
    /// A rule or an application behind has dropped it: its sender gets no answer.
    Dropped,
}

/// A parked transaction, as it was when it was parked.
#[derive(Debug)]
pub enum Resumed<'r> {
    /// Its request had come.
    Request(Request<'r>),
    /// Its answer had come.
    Answer(Answered<'r>),
    /// It had been lost.
    Lost(Lost<'r>),
}

/// A few bytes that an application keeps with a transaction. They are zero at first.
pub type Memo = [u8; 32];

/// A [`Memo`] in fields.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Fields {
    /// Of the application.
    pub bytes: [u8; 6],
    /// Of the application.
    pub numbers: [u64; 2],
    /// A ticket under which the transaction was parked.
    pub ticket: Ticket,
}

impl Fields {
    /// Reads them.
    #[must_use]
    pub fn read(memo: &Memo) -> Self {
        let (words, _) = memo.as_chunks::<8>();
        let word = |at: usize| words.get(at).copied().map_or(0, u64::from_be_bytes);
        let [a, b, c, d, e, f, high, low, ..] = *memo;
        Self {
            bytes: [a, b, c, d, e, f],
            numbers: [word(1), word(2)],
            ticket: Ticket {
                worker: u16::from_be_bytes([high, low]),
                number: word(3),
            },
        }
    }

    /// Writes them.
    pub fn write(self, memo: &mut Memo) {
        let ([a, b, c, d, e, f], [one, other]) = (self.bytes, self.numbers);
        let [high, low] = self.ticket.worker.to_be_bytes();
        let words = [one, other, self.ticket.number].map(u64::to_be_bytes);
        let all = [[a, b, c, d, e, f, high, low], words[0], words[1], words[2]];
        memo.copy_from_slice(all.as_flattened());
    }
}
