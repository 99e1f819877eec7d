//! MAP (TS 29.002) as a walk from an Invoke to the fields that routing and screening use.
//!
//! A table says for each operation where a field stands: below which tag, which one of that tag. Versions 1 to 3 of an
//! operation differ in the tag around the argument and in tags of fields; a field is read wherever a version puts it.

mod table;
mod tbcd;
mod tpdu;

pub use tbcd::{AddressString, Tbcd};

use crate::ber::{Element, Elements, Tag};
use crate::digits::Digits;
use table::{Field, OPERATIONS, Place, Row};

/// Operation codes (TS 29.002 §17.5) that have a name here.
pub mod operation {
    pub use super::table::operation::*;
    pub use super::table::operation_name as name;
}

/// Where a short message comes from or goes to (TS 29.002 §7.6.8.1, §7.6.8.2).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SmRpAddress<'a> {
    /// IMSI, of a destination.
    Imsi(Tbcd<'a>),
    /// LMSI, of a destination.
    Lmsi(&'a [u8]),
    /// MSISDN, of an origin.
    Msisdn(AddressString<'a>),
    /// Service centre.
    ServiceCentre(AddressString<'a>),
    /// Without an address.
    None,
}

/// The fields of one operation.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Fields<'a> {
    /// IMSI.
    pub imsi: Option<Tbcd<'a>>,
    /// MSISDN.
    pub msisdn: Option<AddressString<'a>>,
    /// VLR number.
    pub vlr: Option<AddressString<'a>>,
    /// MSC number.
    pub msc: Option<AddressString<'a>>,
    /// SGSN number.
    pub sgsn: Option<AddressString<'a>>,
    /// Service centre address outside of SM-RP-DA and SM-RP-OA.
    pub service_centre: Option<AddressString<'a>>,
    /// Address of a service control function.
    pub scf: Option<AddressString<'a>>,
    /// IMEI.
    pub imei: Option<Tbcd<'a>>,
    /// SM-RP-DA.
    pub sm_rp_da: Option<SmRpAddress<'a>>,
    /// SM-RP-OA.
    pub sm_rp_oa: Option<SmRpAddress<'a>>,
    /// SM-RP-UI: the TPDU of a short message.
    pub sm_rp_ui: Option<&'a [u8]>,
}

impl<'a> Fields<'a> {
    /// Reads the argument of an operation; without fields for operations that the table lacks. What is broken ends the
    /// walk: fields before it stay.
    #[must_use]
    pub fn read(operation: i32, argument: Element<'a>) -> Self {
        let mut fields = Self::default();
        let Some((_, row)) = OPERATIONS.iter().find(|(code, _)| *code == operation) else {
            return fields;
        };
        // Versions 1 and 2 of some operations have the field itself as argument.
        if argument.tag == Tag::OCTET_STRING {
            if let Some(alone) = row.alone {
                fields.set(alone, argument.value);
            }
            return fields;
        }
        fields.walk(argument.elements(), row);
        fields
    }

    /// The destination within a short message that goes to a service centre (TP-DA). One that comes from there has none.
    #[must_use]
    pub fn tp_da(&self) -> Option<Digits> {
        match self.sm_rp_da? {
            SmRpAddress::ServiceCentre(_) => tpdu::destination(self.sm_rp_ui?),
            _ => None,
        }
    }

    fn walk(&mut self, elements: Elements<'a>, row: &Row) {
        let mut octet_strings = 0;
        for (position, element) in elements.map_while(Result::ok).enumerate() {
            if element.tag == Tag::OCTET_STRING {
                octet_strings += 1;
            }
            let nth = if element.tag == Tag::OCTET_STRING {
                octet_strings
            } else {
                1
            };
            let here = |place: &Place| match place {
                Place::Tag(tag) => element.tag.0 == *tag,
                Place::OctetString(n) => element.tag == Tag::OCTET_STRING && nth == *n,
                Place::Position(n) => position == *n,
            };
            let Some((_, field)) = row.fields.iter().find(|(place, _)| here(place)) else {
                continue;
            };
            match field {
                Field::Inner(place) => {
                    for (tag, field) in *place {
                        if let Some(found) = element.elements().find_tag(Tag(*tag)) {
                            self.set(*field, found.value);
                        }
                    }
                }
                Field::SmRpDa => self.sm_rp_da = sm_rp(element, true),
                Field::SmRpOa => self.sm_rp_oa = sm_rp(element, false),
                field => self.set(*field, element.value),
            }
        }
    }

    fn set(&mut self, field: Field, value: &'a [u8]) {
        let address = AddressString::read(value);
        match field {
            Field::Imsi => self.imsi = self.imsi.or(Some(Tbcd::new(value))),
            Field::Imei => self.imei = Some(Tbcd::new(value)),
            Field::Msisdn => self.msisdn = address,
            Field::Vlr => self.vlr = address,
            Field::Msc => self.msc = address,
            Field::Sgsn => self.sgsn = address,
            Field::ServiceCentre => self.service_centre = address,
            Field::Scf => self.scf = address,
            Field::SmRpUi => self.sm_rp_ui = Some(value),
            Field::Inner(_) | Field::SmRpDa | Field::SmRpOa => {}
        }
    }
}

fn sm_rp(element: Element<'_>, destination: bool) -> Option<SmRpAddress<'_>> {
    Some(match (element.tag.0, destination) {
        (0x80, true) => SmRpAddress::Imsi(Tbcd::new(element.value)),
        (0x81, true) => SmRpAddress::Lmsi(element.value),
        (0x82, false) => SmRpAddress::Msisdn(AddressString::read(element.value)?),
        (0x84, _) => SmRpAddress::ServiceCentre(AddressString::read(element.value)?),
        (0x85, _) => SmRpAddress::None,
        _ => return None,
    })
}
