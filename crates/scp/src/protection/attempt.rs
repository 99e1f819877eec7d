//! Route of an attempt, reasons against it, and its outcome.

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

/// Route of an attempt.
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

/// An SCP before producers of another region.
pub(crate) struct Hop {
    pub(crate) root: TargetApiRoot,
    pub(crate) peer: Rc<Peer>,
}

impl<'a> Way<'a> {
    pub(super) fn hop(&self) -> Option<&'a Hop> {
        self.hops.and_then(|(hops, position)| hops.get(position))
    }

    /// Host of the SCP before the producer, if there is one.
    pub(super) fn hop_name(&self) -> Option<&'a str> {
        self.hop().map(|hop| hop.root.origin.host())
    }
}

/// Why a producer gets no request now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Held {
    /// It fails and is ejected.
    Ejected,
    /// Too many requests are outstanding there.
    Outstanding,
    /// It has reported overload (`3gpp-Sbi-Oci`).
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
    /// No valid answer.
    Failed(&'a SendError),
}

impl Ended<'_> {
    /// Whether the outcome is that of the SCP before the producer, not of the producer: no answer came, or the SCP
    /// itself is overloaded (`Server` names it then, TS 29.500 §6.10.8.1).
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

/// `Retry-After` of a producer. That of a 429 concerns one consumer only and does not count.
pub(super) fn rest_of(status: StatusCode, headers: &Fields) -> Option<Duration> {
    /// Longest `Retry-After` that counts, in seconds.
    const LONGEST: u64 = 60;
    if status != StatusCode::SERVICE_UNAVAILABLE {
        return None;
    }
    let seconds: u64 = headers.get(RETRY_AFTER)?.to_str().ok()?.trim().parse().ok()?;
    Some(Duration::from_secs(seconds.min(LONGEST)))
}
