//! The requests, and the check of their answers.

use bytes::Bytes;
use rand::rngs::SmallRng;

/// The contract between the generator and the traffic of one function.
///
/// One value per generator thread; the threads share nothing.
pub trait Workload: Send {
    /// Names of the operations, in the order of [`Ticket::operation`].
    fn operations(&self) -> Vec<String>;

    /// Header fields that every request carries.
    fn headers(&self) -> Vec<(&'static str, String)>;

    /// Makes the next request: fills `draft`, which is empty.
    fn next(&mut self, random: &mut SmallRng, draft: &mut Draft) -> Ticket;

    /// Whether the body of an answer is needed to judge it, once its head has arrived.
    fn interest(&mut self, ticket: &Ticket, status: u16, length: Option<u64>) -> Interest;

    /// Receives the `Location` of an answer's head.
    fn located(&mut self, _ticket: &Ticket, _location: &[u8]) {}

    /// Judges a complete answer.
    ///
    /// # Errors
    /// What is wrong with it.
    fn judge(&mut self, ticket: &Ticket, answer: &Answer<'_>) -> Result<(), Fault>;

    /// Its request has failed without an answer.
    fn lost(&mut self, _ticket: &Ticket) {}
}

/// Data of a request that the workload needs when the answer arrives.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ticket {
    /// Which operation.
    pub operation: u16,
    /// Of the workload's own meaning.
    pub first: u32,
    /// Of the workload's own meaning.
    pub second: u32,
}

/// A request draft; reused, so that steady traffic allocates nothing.
#[derive(Debug)]
pub struct Draft {
    /// `GET`, `PUT` …
    pub method: &'static str,
    /// Path and query.
    pub path: Vec<u8>,
    /// Content type of the body.
    pub content_type: Option<&'static str>,
    /// Further header fields of this request.
    pub headers: Vec<(&'static str, String)>,
    /// The body.
    pub body: Bytes,
}

impl Default for Draft {
    fn default() -> Self {
        Self {
            method: "GET",
            path: Vec::with_capacity(512),
            content_type: None,
            headers: Vec::new(),
            body: Bytes::new(),
        }
    }
}

impl Draft {
    /// Clears the draft.
    pub fn clear(&mut self) {
        self.method = "GET";
        self.path.clear();
        self.content_type = None;
        self.headers.clear();
        self.body = Bytes::new();
    }
}

/// Whether a body is needed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Interest {
    /// No: status and length decide.
    Skip,
    /// Yes.
    Body,
}

/// What is wrong with an answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fault {
    /// Its status is not one that this operation may have.
    Status,
    /// Its body is not what was asked for, in words.
    Body(String),
}

/// A complete answer.
#[derive(Clone, Copy, Debug)]
pub struct Answer<'a> {
    /// Its status code.
    pub status: u16,
    /// Bytes of its body.
    pub length: u64,
    /// Its body, if the workload was interested.
    pub body: Option<&'a [u8]>,
}
