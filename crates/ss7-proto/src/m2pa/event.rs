//! What links report, and what they leave.

use std::collections::VecDeque;

use super::buffer::next;
use super::link::FSN;
use super::{Fault, HEADER_LEN, LinkStatus, SEQUENCE_MASK};

/// Why a link went out of service.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Failure {
    /// T2.
    #[error("the peer has not sent Alignment (T2)")]
    NotAligned,
    /// T3.
    #[error("the peer has not begun to prove the link (T3)")]
    NotProved,
    /// T1.
    #[error("the peer has not sent Ready (T1)")]
    NotReady,
    /// The peer has taken the link out of service, or aligns it again.
    #[error("the peer has sent the link status {0:?}")]
    Status(LinkStatus),
    /// T6.
    #[error("the peer has been busy for too long (T6)")]
    Busy,
    /// T7.
    #[error("the peer has not acknowledged an MSU (T7)")]
    Unacknowledged,
    /// Another number than that behind the last.
    #[error("the peer has sent the MSU {0} out of sequence")]
    Forward(u32),
    /// An acknowledgement of what was not sent.
    #[error("the peer has acknowledged {0}, which was not sent or is older than before")]
    Backward(u32),
    /// Octets that cannot be read.
    #[error("{0}")]
    Malformed(#[from] Fault),
}

/// What happened.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LinkEvent {
    /// MSUs may be sent.
    InService,
    /// The link is out of service; what is not acknowledged can be retrieved.
    Failed(Failure),
    /// The peer has a processor outage: it takes no MSUs.
    RemoteOutage,
    /// The peer takes MSUs again.
    RemoteRecovered,
}

/// What a received message led to.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Received<'a> {
    /// What happened, before the MSU.
    pub event: Option<LinkEvent>,
    /// The MSU that was accepted.
    pub msu: Option<&'a [u8]>,
}

/// What a link that is out of service leaves (Q.703 §9, RFC 4165 §4.2.1).
#[derive(Debug)]
pub struct Retrieval<M> {
    /// FSN of the last MSU that was accepted from the peer (BSNT).
    pub accepted: u32,
    /// Messages that the peer has not acknowledged, in their order; each has its own FSN.
    pub unacknowledged: VecDeque<M>,
}

impl From<LinkEvent> for Received<'_> {
    fn from(event: LinkEvent) -> Self {
        Some(event).into()
    }
}

impl From<Option<LinkEvent>> for Received<'_> {
    fn from(event: Option<LinkEvent>) -> Self {
        Self { event, msu: None }
    }
}

/// The FSN of a message of user data, such as one of [`Retrieval::unacknowledged`].
#[must_use]
pub fn forward_number(message: &[u8]) -> Option<u32> {
    let number = message.get(FSN..HEADER_LEN)?.try_into().ok()?;
    Some(u32::from_be_bytes(number) & SEQUENCE_MASK)
}

/// Of messages that were retrieved, those behind the last that the peer has accepted; `None` when that is not one of them.
/// `first` is the FSN of the first message, `count` their number.
#[must_use]
pub fn messages_behind(first: u32, count: usize, accepted: u32) -> Option<usize> {
    let skipped = next(accepted).wrapping_sub(first) & SEQUENCE_MASK;
    (skipped as usize <= count).then_some(skipped as usize)
}
