//! Units of IPA in pairs, which send SCCP to each other through an STP that routes by point code: IPA has no routing label, so that
//! each unit has one destination.

use std::net::IpAddr;

use loadgen::m3ua::{Messages, Next, Reading};
use loadgen::{Fault, Ticket};
use rand::Rng;
use rand::rngs::SmallRng;
use ss7_proto::PointCode;
use ss7_proto::ipa::{HEADER_LEN, write_sccp};
use ss7_proto::m3ua::Data;
use ss7_proto::sccp::Format;

use super::content;
use super::network::loopback;
use super::traffic::{Parts, subsystem};

/// The first point code.
const UNITS: u32 = 0x1800;
/// What a message is about; the STP does not read it.
const DIGITS: &str = "436600000000";

/// A unit: an even number sends to the next one, an odd one to the one before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unit(pub u16);

impl Unit {
    /// Its name, as in the settings of the STP.
    #[must_use]
    pub fn name(self) -> String {
        format!("unit{:03}", self.0)
    }

    /// Its point code.
    #[must_use]
    pub const fn point_code(self) -> PointCode {
        PointCode(UNITS + self.0 as u32)
    }

    /// The unit that it sends to.
    #[must_use]
    pub const fn destination(self) -> Self {
        Self(self.0 ^ 1)
    }

    /// The loopback address that it connects from.
    #[must_use]
    pub fn address(self) -> IpAddr {
        loopback(self.point_code())
    }
}

/// What units send.
#[derive(Debug)]
pub struct Pairs {
    count: u16,
    /// Octets with which messages have their size.
    filler: usize,
    parts: Parts,
}

impl Pairs {
    /// This number of pairs, whose frames have this number of octets.
    #[must_use]
    pub fn new(count: u16, frame_bytes: u16) -> Self {
        let mut made = Self {
            count,
            filler: 0,
            parts: Parts::default(),
        };
        // Lengths take more octets where the filler is long.
        for _ in 0..2 {
            made.write(Unit(0), 0);
            let size = HEADER_LEN + made.parts.user_data.len();
            made.filler = (made.filler + usize::from(frame_bytes)).saturating_sub(size);
        }
        made
    }

    /// All units.
    pub fn units(&self) -> impl Iterator<Item = Unit> {
        (0..self.count * 2).map(Unit)
    }

    fn write(&mut self, from: Unit, transaction: u32) {
        self.parts.clear();
        let Parts {
            called,
            calling,
            content,
            ..
        } = &mut self.parts;
        // An address with a point code of 14 bits can be written always.
        let _ = subsystem(6, from.destination().point_code()).write(Format::Itu, called);
        let _ = subsystem(8, from.point_code()).write(Format::Itu, calling);
        content::begin(
            transaction,
            content::UPDATE_LOCATION,
            DIGITS,
            self.filler,
            content,
        );
        self.parts.write_unitdata();
    }
}

impl Messages for Pairs {
    fn operations(&self) -> Vec<String> {
        vec!["MTP routing".to_owned()]
    }

    fn next(&mut self, random: &mut SmallRng, transaction: u32, out: &mut Vec<u8>) -> Next {
        let from = Unit(random.random_range(0..self.count * 2));
        self.write(from, transaction);
        write_sccp(&self.parts.user_data, out);
        Next {
            ticket: Ticket {
                first: u32::from(from.0),
                ..Ticket::default()
            },
            from: usize::from(from.0),
            to: usize::from(from.destination().0),
            second: None,
            sls: 0,
        }
    }

    fn read(&self, data: &Data<'_>) -> Option<Reading> {
        content::reading(data)
    }

    fn judge(&mut self, ticket: &Ticket, transaction: u32, data: &Data<'_>) -> Result<(), Fault> {
        self.write(Unit(ticket.first as u16), transaction);
        if data.user_data == self.parts.user_data {
            Ok(())
        } else {
            Err(Fault::Body("the octets have changed".to_owned()))
        }
    }
}

#[cfg(test)]
mod tests {
    use rand::SeedableRng;

    use super::*;
    use ss7_proto::ipa::Frame;

    #[test]
    fn a_message_has_its_size_and_is_judged_by_its_octets() {
        let mut random = SmallRng::seed_from_u64(1);
        for size in [120, 200, 260] {
            let mut pairs = Pairs::new(2, size);
            assert_eq!(pairs.units().count(), 4);
            let mut out = Vec::new();
            let next = pairs.next(&mut random, 77, &mut out);
            assert_eq!((out.len(), next.to), (usize::from(size), next.from ^ 1));
            let Frame::Sccp(message) = Frame::read(&out) else {
                panic!("{out:?}");
            };
            let data = |user_data| Data::sccp(PointCode(0), PointCode(0), 0, user_data);
            let reading = pairs.read(&data(message)).unwrap();
            assert_eq!((reading.transaction, reading.returned), (77, None));
            assert!(pairs.judge(&next.ticket, 77, &data(message)).is_ok());
            assert!(pairs.judge(&next.ticket, 78, &data(message)).is_err());
            assert_eq!(pairs.read(&data(b"none")), None);
        }
    }

    #[test]
    fn units_have_addresses_of_their_own() {
        let all: std::collections::HashSet<_> = (0..999).map(|number| Unit(number).address()).collect();
        assert_eq!(all.len(), 999);
    }
}
