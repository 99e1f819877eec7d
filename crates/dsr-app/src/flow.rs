//! What becomes of a request, an answer or a loss.

use std::borrow::Cow;
use std::time::Duration;

use diameter_proto::{Fault, MessageMut};

/// What becomes of a transaction.
#[derive(Debug)]
pub enum Flow<'a> {
    /// It goes on as it is: a request to the next application and then to routing, an answer to the application before and
    /// then to its peer; a loss is answered by the settings.
    Next,
    /// The request gets this destination, and goes on. After an answer or a loss it is sent once more.
    To(Destination<'a>),
    /// The message goes on as this one: a request, or an answer. After a loss it is the request, which is sent once more.
    Changed(MessageMut),
    /// The request is answered with this fault.
    Answer(Cow<'a, Fault>),
    /// The request is answered with this message.
    Reply(Reply),
    /// The transaction is dropped: its sender gets no answer.
    Drop,
    /// The router parks the transaction for this time, which the lifetime of the transaction bounds as well.
    Later(Duration),
}

impl<'a> Flow<'a> {
    /// Answers with a fault of this moment.
    #[must_use]
    pub const fn refuse(fault: Fault) -> Self {
        Self::Answer(Cow::Owned(fault))
    }

    /// Leads a request to this realm and host; where one is empty, the request keeps its own.
    pub fn to(realm: impl Into<Cow<'a, str>>, host: impl Into<Cow<'a, str>>) -> Self {
        let (realm, host) = (realm.into(), host.into());
        Self::To(Destination { realm, host })
    }
}

/// Destination-Realm and Destination-Host that a request gets.
#[derive(Clone, Debug)]
pub struct Destination<'a> {
    /// Destination-Realm; empty: that of the request stays.
    pub realm: Cow<'a, str>,
    /// Destination-Host; empty: that of the request stays.
    pub host: Cow<'a, str>,
}

/// The answer of an application.
#[derive(Debug)]
pub struct Reply {
    /// The answer; the router gives it the request's Hop-by-Hop Identifier.
    pub message: MessageMut,
    /// Vendor-Id and Experimental-Result-Code, or 0 and Result-Code: what it is counted as.
    pub result: (u32, u32),
}
