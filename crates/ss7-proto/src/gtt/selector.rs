//! Which set of translations an address belongs to.

use crate::point_code::PointCode;
use crate::sccp::{Address, GlobalTitle};

/// A set of translations.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct SetId(pub u16);

/// What of a message selects a set. A field that is none fits every message, also one that lacks the field.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct Selector {
    /// Global title indicator.
    pub indicator: Option<u8>,
    /// Translation type.
    pub translation_type: Option<u8>,
    /// Numbering plan.
    pub numbering_plan: Option<u8>,
    /// Nature of address.
    pub nature: Option<u8>,
    /// Subsystem number of the address.
    pub ssn: Option<u8>,
    /// The node that has sent the message.
    pub opc: Option<PointCode>,
    /// The operation that it invokes.
    pub operation: Option<i32>,
}

/// What a message has beside its called address.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Circumstances {
    /// The node that has sent it.
    pub opc: Option<PointCode>,
    /// The operation that it invokes.
    pub operation: Option<i32>,
}

impl Selector {
    /// Fits every title.
    pub const ANY: Self = Self {
        indicator: None,
        translation_type: None,
        numbering_plan: None,
        nature: None,
        ssn: None,
        opc: None,
        operation: None,
    };

    /// Whether the selector fits a message with a title in its called address.
    #[inline]
    pub(super) fn fits(
        &self,
        address: &Address<'_>,
        title: &GlobalTitle<'_>,
        message: &Circumstances,
    ) -> bool {
        fits(self.indicator, Some(title.indicator))
            && fits(self.translation_type, title.translation_type)
            && fits(self.numbering_plan, title.numbering_plan)
            && fits(self.nature, title.nature)
            && fits(self.ssn, address.ssn)
            && fits(self.opc, message.opc)
            && fits(self.operation, message.operation)
    }

    /// How many fields it names: the one with more comes first.
    pub(super) fn fields(&self) -> usize {
        let octets = [
            self.indicator,
            self.translation_type,
            self.numbering_plan,
            self.nature,
            self.ssn,
        ];
        let others = usize::from(self.opc.is_some()) + usize::from(self.operation.is_some());
        octets.iter().flatten().count() + others
    }
}

fn fits<T: PartialEq>(wanted: Option<T>, present: Option<T>) -> bool {
    wanted.is_none() || wanted == present
}
