//! Which set of translations an address belongs to.

use crate::sccp::GlobalTitle;

/// A set of translations.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct SetId(pub u16);

/// What of a global title selects a set. A field that is none fits every title, also one that lacks the field.
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
}

impl Selector {
    /// Whether the selector fits a title.
    #[inline]
    pub(super) fn fits(&self, title: &GlobalTitle<'_>) -> bool {
        let fits = |wanted: Option<u8>, present: Option<u8>| wanted.is_none() || wanted == present;
        fits(self.indicator, Some(title.indicator))
            && fits(self.translation_type, title.translation_type)
            && fits(self.numbering_plan, title.numbering_plan)
            && fits(self.nature, title.nature)
    }

    /// How many fields it names: the one with more comes first.
    pub(super) fn fields(&self) -> usize {
        let fields = [
            self.indicator,
            self.translation_type,
            self.numbering_plan,
            self.nature,
        ];
        fields.iter().flatten().count()
    }
}
