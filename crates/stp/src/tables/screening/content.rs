//! What screening rules see of a message behind its label.

use smallvec::SmallVec;
use ss7_proto::m3ua::{Data, ServiceIndicator};
use ss7_proto::mtp3::Management;
use ss7_proto::sccp::{self, Address, MessageType, Unitdata};
use ss7_proto::tcap::{self, ComponentType, Fault, OperationCode, Transaction};
use ss7_proto::{Digits, Plan};

use super::Message;
use super::rule::Rule;
use crate::tables::Cluster;

/// Components of a message that are read, so that a rule costs the same for each message.
const MOST_COMPONENTS: usize = 8;

/// What rules have conditions on.
#[derive(Clone, Copy, Default, Debug)]
pub(super) struct Needs {
    /// Type and addresses of SCCP messages.
    sccp: bool,
    operations: bool,
    affected: bool,
}

impl Needs {
    pub(super) fn of(rules: &[Rule]) -> Self {
        let operations = rules.iter().any(|rule| !rule.operations.is_empty());
        let is_of_sccp =
            |rule: &Rule| rule.called.is_some() || rule.calling.is_some() || !rule.messages.is_empty();
        Self {
            sccp: operations || rules.iter().any(is_of_sccp),
            operations,
            affected: rules.iter().any(|rule| !rule.affected.is_empty()),
        }
    }

    pub(super) const fn or(self, other: Self) -> Self {
        Self {
            sccp: self.sccp || other.sccp,
            operations: self.operations || other.operations,
            affected: self.affected || other.affected,
        }
    }
}

/// The parts of a message that rules have conditions on.
pub(super) struct Content<'a> {
    pub(super) affected: Affected,
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

/// The destination that a message of network management concerns.
#[derive(Clone, Copy)]
pub(super) enum Affected {
    /// It is another message.
    Absent,
    Known(Cluster),
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
    const NONE: Self = Self {
        affected: Affected::Absent,
        message_type: None,
        called: Party::Absent,
        calling: Party::Absent,
        operations: Operations::Absent,
    };

    pub(super) fn read(message: &Message<'a>, needs: Needs) -> Self {
        match message.data.si {
            ServiceIndicator::SCCP if needs.sccp => Self::read_sccp(message, needs),
            ServiceIndicator::SNM if needs.affected => Self {
                affected: Affected::read(message.data, message.plan),
                ..Self::NONE
            },
            _ => Self::NONE,
        }
    }

    /// Called and calling party are those of messages without connection, and those of a connection that carry some (CR).
    fn read_sccp(message: &Message<'a>, needs: Needs) -> Self {
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
                if needs.operations {
                    Operations::read(&unitdata)
                } else {
                    Operations::Absent
                },
            ),
            Ok(sccp::Message::Connection(connection)) => (
                connection.called().map_or(Party::Absent, read),
                connection.calling().map_or(Party::Absent, read),
                Operations::Absent,
            ),
            Err(_) => (Party::Unreadable, Party::Unreadable, Operations::Unreadable),
        };
        Self {
            affected: Affected::Absent,
            message_type,
            called,
            calling,
            operations,
        }
    }
}

impl Affected {
    fn read(data: &Data<'_>, plan: Plan) -> Self {
        let Some(heading) = data.user_data.first() else {
            return Self::Unreadable;
        };
        if !Management::names_destination(*heading) {
            return Self::Absent;
        }
        Management::destination(data.user_data, plan).map_or(Self::Unreadable, |code| {
            Self::Known(if Management::names_cluster(*heading, plan) {
                Cluster::of_ansi(code)
            } else {
                Cluster::new(code, 0)
            })
        })
    }
}

impl Operations {
    fn read(unitdata: &Unitdata<'_>) -> Self {
        use OperationCode::{Local, National, Private};
        // What a service message brings back is not invoked (Q.714 §4).
        if unitdata.message_type.is_service() {
            return Self::Absent;
        }
        // The operation may stand in another segment.
        if !unitdata.is_whole() {
            return Self::Unreadable;
        }
        let transaction = match Transaction::parse(unitdata.data) {
            // Nothing is invoked with the end of a dialogue.
            Ok(transaction)
                if transaction.is_plain || transaction.message_type == tcap::MessageType::Abort =>
            {
                transaction
            }
            // Another user's octets, such as those of BSSAP: no reader takes them for TCAP.
            Err(Fault::Empty) => return Self::Absent,
            Err(Fault::MessageType(first)) if !is_tag_of_tcap(first) => return Self::Absent,
            Ok(_) | Err(_) => return Self::Unreadable,
        };
        let mut found = SmallVec::new();
        for (at, component) in transaction.components.with_unknown().enumerate() {
            let Ok(Some(component)) = component else {
                return Self::Unreadable;
            };
            match (component.component_type, component.operation) {
                _ if at == MOST_COMPONENTS => return Self::Unreadable,
                (ComponentType::Invoke, Some(Local(code) | National(code) | Private(code))) => {
                    found.push(code);
                }
                // An object identifier, or a number of more octets than it needs: nodes behind may take it for the number.
                (ComponentType::Invoke, _) => return Self::Unreadable,
                _ => {}
            }
        }
        Self::Known(found)
    }
}

/// Whether the first octet has class and number of a message of TCAP, or says that a number follows: as an element that is not
/// constructed, or with a longer tag, some readers take it for one.
const fn is_tag_of_tcap(first: u32) -> bool {
    first & 0x40 != 0 && matches!(first & 0x1f, 1..=7 | 22 | 31)
}
