//! Management of subsystems: the data of a UDT to subsystem 1 (Q.713 §5).

use super::address::Format;
use crate::numbered::numbered;
use crate::point_code::PointCode;

numbered! {
    /// What a management message says (Q.713 §5.2.1).
    ManagementType: u8 {
        /// Subsystem allowed.
        Ssa = 1 "SSA";
        /// Subsystem prohibited.
        Ssp = 2 "SSP";
        /// Subsystem status test.
        Sst = 3 "SST";
        /// Subsystem out of service request.
        Sor = 4 "SOR";
        /// Subsystem out of service grant.
        Sog = 5 "SOG";
        /// Subsystem congested.
        Ssc = 6 "SSC";
    }
}

/// A management message.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Management {
    /// What it says.
    pub management_type: ManagementType,
    /// The subsystem; 1 is SCCP itself.
    pub ssn: u8,
    /// Where the subsystem is.
    pub point_code: PointCode,
    /// 0 unknown, 1 solitary, 2 duplicated (Q.713 §5.2.3).
    pub multiplicity: u8,
    /// Congestion level, of SSC: 1 to 8.
    pub congestion_level: u8,
}

impl Management {
    /// Reads the data of a UDT; `None` when they are not a management message. Octets behind it are ignored.
    #[must_use]
    pub fn read(octets: &[u8], format: Format) -> Option<Self> {
        let number = *octets.first()?;
        let management_type = ManagementType::from_number(number)?;
        let ssn = *octets.get(1)?;
        let (point_code, rest) = format.read_point_code(octets.get(2..)?)?;
        let multiplicity = *rest.first()? & 3;
        let congestion_level = match management_type {
            ManagementType::Ssc => *rest.get(1)? & 0x0f,
            _ => 0,
        };
        Some(Self {
            management_type,
            ssn,
            point_code,
            multiplicity,
            congestion_level,
        })
    }

    /// Appends the message.
    pub fn write(&self, format: Format, out: &mut Vec<u8>) {
        out.extend_from_slice(&[self.management_type as u8, self.ssn]);
        format.write_point_code(self.point_code, out);
        out.push(self.multiplicity & 3);
        if self.management_type == ManagementType::Ssc {
            out.push(self.congestion_level & 0x0f);
        }
    }
}
