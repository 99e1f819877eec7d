//! What a request says of its session.

use diameter_proto::{CommandFlags, Fault, Message, Routing, known};
use dsr_app::identity;
use dsr_app::session::session_id;
use sbr::{MAX_SESSION_ID, Party};

/// What a request says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Facts {
    pub(crate) session: Vec<u8>,
    /// Who sends it.
    pub(crate) sender: Party,
    /// Destination-Host and Destination-Realm; empty: none.
    pub(crate) destination: Party,
    /// Whether its sender has sent it before (T flag).
    pub(crate) is_again: bool,
}

impl Facts {
    /// Of a request of a session.
    ///
    /// # Errors
    /// When it has no Session-Id, or one that is too long to be a key.
    pub(crate) fn read<B: AsRef<[u8]>>(message: &Message<B>) -> Result<Self, Fault> {
        let text = |value: Result<Option<&str>, Fault>| value.ok().flatten().unwrap_or_default().to_owned();
        Ok(Self {
            session: session_id(message, MAX_SESSION_ID)?.to_vec(),
            sender: Party {
                host: text(message.get(known::ORIGIN_HOST)),
                realm: text(message.get(known::ORIGIN_REALM)),
            },
            destination: Party {
                host: text(message.get(known::DESTINATION_HOST)),
                realm: text(message.get(known::DESTINATION_REALM)),
            },
            is_again: message.flags().contains(CommandFlags::RETRANSMITTED),
        })
    }

    /// Of a CC-Request, which has a CC-Request-Number too (RFC 8506 §3.1).
    ///
    /// # Errors
    /// As [`Facts::read`], and when it has none.
    pub(crate) fn of_ccr<B: AsRef<[u8]>>(message: &Message<B>) -> Result<Self, Fault> {
        let facts = Self::read(message)?;
        message.require(known::CC_REQUEST_NUMBER)?;
        Ok(facts)
    }
}

/// By what an OCS is chosen: the subscriber, so that its sessions meet at one OCS; without a number, the session.
pub(crate) fn subscriber(routing: &Routing<'_>) -> Vec<u8> {
    let number = identity::imsi(routing).or_else(|| identity::msisdn(routing));
    match number {
        Some(digits) => digits.as_bytes().to_vec(),
        None => routing.session_id.unwrap_or_default().to_vec(),
    }
}
