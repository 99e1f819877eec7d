//! Where an attempt goes, why none is made, and how one has ended.

use std::rc::Rc;
use std::time::Duration;

use http::StatusCode;
use routing::network::ServiceRef;
use sbi::Fields;
use sbi::client::SendError;
use sbi::headers::TargetApiRoot;
use sbi::name::{RETRY_AFTER, SERVER};

use super::producer::Peer;
use crate::refusal::Refusal;

/// Where an attempt goes, as far as it matters here.
#[derive(Clone, Copy)]
pub(crate) struct Way<'a> {
    pub(crate) peer: &'a Peer,
    /// The service instance, if its profile is known.
    pub(crate) service: Option<&'a ServiceRef>,
    /// The API name of the request.
    pub(crate) api: &'a str,
    /// The SCPs through which the producer is reached, and the position of the one that gets this request.
    pub(crate) hops: Option<(&'a [Hop], usize)>,
}

/// An SCP on the way to producers of another region.
pub(crate) struct Hop {
    pub(crate) root: TargetApiRoot,
    pub(crate) peer: Rc<Peer>,
}

impl<'a> Way<'a> {
    pub(super) fn hop(&self) -> Option<&'a Hop> {
        self.hops.and_then(|(hops, position)| hops.get(position))
    }

    /// Host of the SCP on the way, if there is one.
    pub(super) fn hop_name(&self) -> Option<&'a str> {
        self.hop().map(|hop| hop.root.origin.host())
    }
}

/// Why nothing is sent to a producer now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Held {
    /// It fails, and is left alone for a while.
    Ejected,
    /// Too many requests are outstanding there.
    Outstanding,
    /// It has told that it is overloaded.
    Overloaded,
    /// Its rate is reached.
    Rate,
    /// Every connection to it is at `client.maxRequestRate`.
    ConnectionRate,
    /// Its circuit is open.
    Open,
}

impl Held {
    /// The refusal when no other producer is left.
    pub(crate) fn refusal(self) -> Refusal {
        match self {
            Self::Ejected => Refusal::Ejected,
            Self::Outstanding => Refusal::Outstanding,
            Self::Overloaded => Refusal::ProducerOverload,
            Self::Rate => Refusal::EgressRate,
            Self::ConnectionRate => Refusal::ConnectionRate,
            Self::Open => Refusal::CircuitOpen,
        }
    }
}

/// How an attempt has ended.
pub(crate) enum Ended<'a> {
    /// The producer answered.
    Answered(StatusCode, &'a Fields),
    /// It did not.
    Failed(&'a SendError),
}

impl Ended<'_> {
    /// Whether the end is that of an SCP on the way, not of the producer behind it: no answer came, or the SCP itself
    /// is overloaded (`Server` names it then, TS 29.500 §6.10.8.1).
    pub(super) fn is_of_hop(&self) -> bool {
        match self {
            Ended::Failed(_) => true,
            Ended::Answered(status, headers) => {
                let is_proxy = |name: &[u8]| name.starts_with(b"SCP-") || name.starts_with(b"SEPP-");
                *status == StatusCode::SERVICE_UNAVAILABLE
                    && headers.get(SERVER).is_some_and(|name| is_proxy(name.as_bytes()))
            }
        }
    }
}

/// How long a producer asks to be left alone. What it says to one consumer alone (429) is not for the others.
pub(super) fn rest_of(status: StatusCode, headers: &Fields) -> Option<Duration> {
    /// However long it says, it is tried again after this.
    const LONGEST: u64 = 60;
    if status != StatusCode::SERVICE_UNAVAILABLE {
        return None;
    }
    let seconds: u64 = headers.get(RETRY_AFTER)?.to_str().ok()?.trim().parse().ok()?;
    Some(Duration::from_secs(seconds.min(LONGEST)))
}
