//! Load information of nodes (RFC 8583): unlike an overload report it asks for no reduction; it is a weight for the
//! choice between nodes that can serve a request.

use crate::avp::AvpWriter;
use crate::avp::Avps;
use crate::fault::{Fault, ResultCode};
use crate::known;
use crate::message::Message;

/// Load-Value runs from this, no load at all, down to 0, fully loaded: like a weight of DNS SRV, a higher value
/// attracts more (RFC 8583 §7.3).
pub const IDLE: u16 = u16::MAX;

/// The node that the load is of (RFC 8583 §7.2).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum LoadType {
    /// The load of the node that made the answer; goes unchanged through agents.
    Host,
    /// The load of the neighbour that sent the message; ends with the next hop.
    Peer,
}

/// A Load AVP.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Load {
    /// Whose load.
    pub kind: LoadType,
    /// Remaining capacity: 0 for a node that is fully loaded, [`IDLE`] for one without load.
    pub value: u16,
    /// The DiameterIdentity of the node it is about.
    pub source: String,
}

impl Load {
    /// Reads the inside of a Load AVP.
    ///
    /// When it lacks a part or has an invalid one. The receiver then ignores it (RFC 8583 §6.2): it does not refuse the
    /// answer.
    pub fn read(group: Avps<'_>) -> Result<Self, Fault> {
        let kind = match group.clone().require(known::LOAD_TYPE)? {
            0 => LoadType::Host,
            1 => LoadType::Peer,
            other => return Err(wrong(format!("Load-Type {other} is neither HOST nor PEER"))),
        };
        let value = group.clone().require(known::LOAD_VALUE)?;
        let value = u16::try_from(value).map_err(|_| wrong(format!("Load-Value {value} is above {IDLE}")))?;
        Ok(Self {
            kind,
            value,
            source: group.require(known::SOURCE_ID)?.to_owned(),
        })
    }

    /// Every right Load of a message.
    pub fn all<B: AsRef<[u8]>>(message: &Message<B>) -> impl Iterator<Item = Self> {
        let loads = message
            .avps()
            .map_while(Result::ok)
            .filter(|avp| avp.is(known::LOAD));
        loads.filter_map(|avp| Self::read(avp.group()).ok())
    }

    /// Appends it.
    pub fn write(&self, out: &mut AvpWriter) {
        out.group(known::LOAD, |group| {
            group
                .put(known::LOAD_TYPE, self.kind as i32)
                .put(known::LOAD_VALUE, u64::from(self.value))
                .put(known::SOURCE_ID, &self.source);
        });
    }

    /// Share of its capacity that the node has left, as a weight: never 0, since a fully loaded node may
    /// still be the only one.
    #[must_use]
    pub const fn weight(&self) -> u32 {
        self.value as u32 + 1
    }
}

fn wrong(reason: String) -> Fault {
    Fault::new(ResultCode::INVALID_AVP_VALUE, reason)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::build::MessageBuilder;

    #[test]
    fn loads_survive_the_wire_and_wrong_ones_are_left_out() {
        let host = Load {
            kind: LoadType::Host,
            value: 0,
            source: "hss.example".into(),
        };
        let peer = Load {
            kind: LoadType::Peer,
            value: IDLE,
            source: "dra.example".into(),
        };
        let mut builder = MessageBuilder::request(316, 0);
        host.write(&mut builder);
        builder.group(known::LOAD, |group| {
            group
                .put(known::LOAD_TYPE, 7)
                .put(known::LOAD_VALUE, 1)
                .put(known::SOURCE_ID, "x");
        });
        builder.group(known::LOAD, |group| {
            group
                .put(known::LOAD_TYPE, 0)
                .put(known::LOAD_VALUE, 70_000)
                .put(known::SOURCE_ID, "x");
        });
        peer.write(&mut builder);
        let message = builder.finish().unwrap();
        assert_eq!(
            Load::all(&message).collect::<Vec<_>>(),
            [host.clone(), peer.clone()]
        );
        // A value of 0 is full load (RFC 8583 §7.3).
        assert_eq!((host.weight(), peer.weight()), (1, 65_536));
    }
}
