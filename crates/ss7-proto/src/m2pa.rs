//! M2PA (RFC 4165): an SCTP association as a link of MTP.

mod buffer;
mod event;
mod link;
mod timers;

use crate::numbered::numbered;
use crate::octets::be32;

pub use event::{Failure, LinkEvent, Received, Retrieval, forward_number, messages_behind};
pub use link::{Link, LinkState};
pub use timers::Timers;

/// Payload protocol identifier of M2PA (RFC 4165 §2.1).
pub const PPID: u32 = 5;
/// The registered port of M2PA.
pub const PORT: u16 = 3565;
/// Octets of both headers.
pub const HEADER_LEN: usize = 16;
/// Sequence numbers have 24 bits and wrap (RFC 4165 §2.2).
pub const SEQUENCE_MASK: u32 = 0x00ff_ffff;

const VERSION: u8 = 1;
const CLASS: u8 = 11;

numbered! {
    /// Status of a link (RFC 4165 §2.3.2).
    LinkStatus: u32 {
        /// Alignment.
        Alignment = 1;
        /// Proving, normal.
        ProvingNormal = 2;
        /// Proving, emergency.
        ProvingEmergency = 3;
        /// Ready.
        Ready = 4;
        /// Processor outage.
        ProcessorOutage = 5;
        /// Processor recovered.
        ProcessorRecovered = 6;
        /// Busy.
        Busy = 7;
        /// Busy ended.
        BusyEnded = 8;
        /// Out of service.
        OutOfService = 9;
    }
}

/// What a message carries.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Content<'a> {
    /// An MSU: the priority octet (0 outside of Japan), then service information octet and field.
    UserData {
        /// The priority octet.
        priority: u8,
        /// Service information octet and field.
        msu: &'a [u8],
    },
    /// User data without an MSU: an acknowledgement.
    Acknowledgement,
    /// Link status; filler of proving follows it and is ignored.
    LinkStatus(LinkStatus),
}

/// A message.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Message<'a> {
    /// Backward sequence number: the last that was received.
    pub bsn: u32,
    /// Forward sequence number: that of this MSU, or of the last one.
    pub fsn: u32,
    /// The content.
    pub content: Content<'a>,
}

/// Why octets are not an M2PA message.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Fault {
    /// Too few octets, or another length than the header says.
    #[error("the message length is not that of the octets received")]
    Length,
    /// Another version.
    #[error("version {0} where 1 is spoken")]
    Version(u8),
    /// Another class or type.
    #[error("class {0}, type {1} is not of M2PA")]
    Type(u8, u8),
    /// An unknown link status.
    #[error("unknown link status {0}")]
    LinkStatus(u32),
}

impl<'a> Message<'a> {
    /// Takes octets as one message.
    ///
    /// # Errors
    /// [`Fault`].
    pub fn parse(octets: &'a [u8]) -> Result<Self, Fault> {
        let (Some([version, _, class, kind, ..]), Some(length)) =
            (octets.first_chunk::<4>(), be32(octets, 4))
        else {
            return Err(Fault::Length);
        };
        if *version != VERSION {
            return Err(Fault::Version(*version));
        }
        if *class != CLASS || !matches!(kind, 1 | 2) {
            return Err(Fault::Type(*class, *kind));
        }
        let (Some(bsn), Some(fsn), Some(data)) =
            (be32(octets, 8), be32(octets, 12), octets.get(HEADER_LEN..))
        else {
            return Err(Fault::Length);
        };
        if length as usize != octets.len() {
            return Err(Fault::Length);
        }
        let content = match (kind, data) {
            (1, []) => Content::Acknowledgement,
            // Priority and service information octet at least.
            (1, [priority, msu @ ..]) if !msu.is_empty() => Content::UserData {
                priority: *priority,
                msu,
            },
            (2, _) => {
                let number = be32(data, 0).ok_or(Fault::Length)?;
                Content::LinkStatus(LinkStatus::from_number(number).ok_or(Fault::LinkStatus(number))?)
            }
            _ => return Err(Fault::Length),
        };
        Ok(Self {
            bsn: bsn & SEQUENCE_MASK,
            fsn: fsn & SEQUENCE_MASK,
            content,
        })
    }

    /// Appends the message.
    pub fn write(&self, out: &mut Vec<u8>) {
        let start = out.len();
        let kind = if matches!(self.content, Content::LinkStatus(_)) {
            2
        } else {
            1
        };
        out.extend_from_slice(&[VERSION, 0, CLASS, kind, 0, 0, 0, 0]);
        out.extend_from_slice(&(self.bsn & SEQUENCE_MASK).to_be_bytes());
        out.extend_from_slice(&(self.fsn & SEQUENCE_MASK).to_be_bytes());
        match self.content {
            Content::Acknowledgement => {}
            Content::UserData { priority, msu } => {
                out.push(priority);
                out.extend_from_slice(msu);
            }
            Content::LinkStatus(status) => out.extend_from_slice(&(status as u32).to_be_bytes()),
        }
        let length = u32::try_from(out.len() - start).unwrap_or(u32::MAX);
        if let Some(field) = out.get_mut(start + 4..start + 8) {
            field.copy_from_slice(&length.to_be_bytes());
        }
    }

    /// The stream: link status on 0, user data on 1 (RFC 4165 §2.1). *Processor Recovered* and the *Ready* that answers it keep
    /// the sequence of user data (§4.1.4); the *Ready* of an alignment, before any MSU, does not need to.
    #[must_use]
    pub const fn stream(&self) -> u16 {
        let is_initial = self.bsn == SEQUENCE_MASK && self.fsn == SEQUENCE_MASK;
        match self.content {
            Content::LinkStatus(LinkStatus::ProcessorRecovered) => 1,
            Content::LinkStatus(LinkStatus::Ready) if !is_initial => 1,
            Content::LinkStatus(_) => 0,
            _ => 1,
        }
    }
}
