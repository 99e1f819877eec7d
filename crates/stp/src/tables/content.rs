//! What screening rules see of an SCCP message.

use smallvec::SmallVec;
use ss7_proto::Digits;
use ss7_proto::sccp::{self, Address, MessageType, Unitdata};
use ss7_proto::tcap::{ComponentType, Fault, OperationCode, Transaction};

use super::Message;

/// Components of a message that are read, so that a rule costs the same for each message.
const MOST_COMPONENTS: usize = 8;

/// The parts of a message that rules have conditions on.
pub(super) struct Content<'a> {
    pub(super) message_type: Option<MessageType>,
    pub(super) called: Party<'a>,
    pub(super) calling: Party<'a>,
    pub(super) operations: Operations,
}

/// An address as rules see it.
pub(super) enum Party<'a> {
    /// The message carries none.
    Absent,
    Known {
        address: Address<'a>,
        /// Those of its title, which each rule compares; `None` as well for more than a number has, or an unknown form.
        digits: Option<Digits>,
    },
    /// It cannot be read: what it is to the next node is unknown.
    Unreadable,
}

/// Operations that a message invokes.
pub(super) enum Operations {
    /// It is not a message of TCAP, or brings one back.
    Absent,
    Known(SmallVec<[i32; MOST_COMPONENTS]>),
    Unreadable,
}

impl<'a> Content<'a> {
    /// Of other users, and where no rule asks.
    pub(super) const NONE: Self = Self {
        message_type: None,
        called: Party::Absent,
        calling: Party::Absent,
        operations: Operations::Absent,
    };

    /// Called and calling party are those of messages without connection, and those of a connection that carry some (CR).
    pub(super) fn read(message: &Message<'a>) -> Self {
        let read = |octets| match Address::parse(octets, message.format) {
            Ok(address) => Party::Known {
                digits: address.title.and_then(|title| title.digits()),
                address,
            },
            Err(_) => Party::Unreadable,
        };
        let octets = message.data.user_data;
        let message_type = octets.first().and_then(|first| MessageType::from_number(*first));
        let (called, calling, operations) = match sccp::Message::parse(octets) {
            Ok(sccp::Message::Unitdata(unitdata)) => (
                read(unitdata.called),
                read(unitdata.calling),
                Operations::read(&unitdata),
            ),
            Ok(sccp::Message::Connection(connection)) => (
                connection.called().map_or(Party::Absent, read),
                connection.calling().map_or(Party::Absent, read),
                Operations::Absent,
            ),
            Err(_) => (Party::Unreadable, Party::Unreadable, Operations::Unreadable),
        };
        Self {
            message_type,
            called,
            calling,
            operations,
        }
    }
}

impl Operations {
    fn read(unitdata: &Unitdata<'_>) -> Self {
        // What a service message brings back is not invoked (Q.714 §4).
        if unitdata.message_type.is_service() {
            return Self::Absent;
        }
        // The operation may stand in another segment.
        if !unitdata.is_whole() {
            return Self::Unreadable;
        }
        let transaction = match Transaction::parse(unitdata.data) {
            Ok(transaction) => transaction,
            // Another user's octets, such as those of BSSAP: no reader takes them for TCAP.
            Err(Fault::Empty | Fault::MessageType(_)) => return Self::Absent,
            Err(Fault::Ber(_) | Fault::TransactionId) => return Self::Unreadable,
        };
        let mut found = SmallVec::new();
        for (at, component) in transaction.components.enumerate() {
            match component {
                Ok(_) if at == MOST_COMPONENTS => return Self::Unreadable,
                Ok(component) if component.component_type != ComponentType::Invoke => {}
                Ok(component) => {
                    use OperationCode::{Local, National, Private};
                    if let Some(Local(code) | National(code) | Private(code)) = component.operation {
                        found.push(code);
                    }
                }
                Err(_) => return Self::Unreadable,
            }
        }
        Self::Known(found)
    }
}
