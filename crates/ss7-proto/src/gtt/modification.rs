//! What a translation changes of an address (Q.714 §2.4.3).

use crate::digits::Digits;
use crate::point_code::PointCode;
use crate::sccp::AddressBuf;

/// What happens to the subsystem number.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum Change<T> {
    /// It stays.
    #[default]
    Keep,
    /// It goes.
    Remove,
    /// It becomes this.
    Set(T),
}

impl<T> Change<T> {
    fn apply(self, before: Option<T>) -> Option<T> {
        match self {
            Self::Keep => before,
            Self::Remove => None,
            Self::Set(value) => Some(value),
        }
    }
}

/// Changes of an address; the default changes nothing.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct Modification {
    /// Routers after this one route by point code and subsystem.
    pub route_on_ssn: bool,
    /// The global title goes.
    pub remove_title: bool,
    /// Point code.
    pub point_code: Change<PointCode>,
    /// Subsystem number.
    pub ssn: Change<u8>,
    /// Global title indicator.
    pub indicator: Option<u8>,
    /// Translation type.
    pub translation_type: Option<u8>,
    /// Numbering plan.
    pub numbering_plan: Option<u8>,
    /// Nature of address.
    pub nature: Option<u8>,
    /// Digits that go at the beginning.
    pub remove_prefix: u8,
    /// Digits that come in their place.
    pub prefix: Digits,
    /// Digits that go at the end.
    pub remove_suffix: u8,
    /// Digits that come in their place.
    pub suffix: Digits,
}

impl Modification {
    /// Whether the address passes octet for octet.
    #[inline]
    #[must_use]
    pub fn is_nothing(&self) -> bool {
        *self == Self::default()
    }

    /// The address with the changes. `None` when more than 40 digits result.
    #[inline]
    #[must_use]
    pub fn apply(&self, mut address: AddressBuf) -> Option<AddressBuf> {
        address.point_code = self.point_code.apply(address.point_code);
        address.ssn = self.ssn.apply(address.ssn);
        if self.route_on_ssn {
            address.route_on_title = false;
        }
        if self.remove_title {
            address.title = None;
        }
        let Some(title) = &mut address.title else {
            return Some(address);
        };
        title.indicator = self.indicator.unwrap_or(title.indicator);
        title.translation_type = self.translation_type.unwrap_or(title.translation_type);
        title.numbering_plan = self.numbering_plan.unwrap_or(title.numbering_plan);
        title.nature = self.nature.unwrap_or(title.nature);
        if self.remove_prefix > 0 || !self.prefix.is_empty() {
            let rest = title.digits.skip(usize::from(self.remove_prefix));
            title.digits = self.prefix.join(&rest)?;
        }
        if self.remove_suffix > 0 || !self.suffix.is_empty() {
            let kept = title.digits.len().saturating_sub(usize::from(self.remove_suffix));
            title.digits = title.digits.first(kept).join(&self.suffix)?;
        }
        Some(address)
    }
}
