//! Which set of translations an address belongs to.

use super::content::{Content, Number};
use crate::digits::Digits;
use crate::point_code::PointCode;
use crate::sccp::{Address, GlobalTitle};
use crate::tcap::ContextPrefix;

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
    /// What the title of the calling party begins with.
    pub calling: Option<Digits>,
    /// The operation that it invokes.
    pub operation: Option<i32>,
    /// What its application context begins with.
    pub context: Option<ContextPrefix>,
    /// The number that the translations are about; `None`: that of the called title. With another one the selector fits a message
    /// for whose number there is a translation.
    pub number: Option<Number>,
}

/// What a message has beside its called address.
#[derive(Clone, Debug, Default)]
pub struct Circumstances<'a> {
    /// The node that has sent it.
    pub opc: Option<PointCode>,
    /// What is behind its addresses, and the calling one; without it no selector fits that names some of it.
    pub content: Option<Content<'a>>,
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
        calling: None,
        operation: None,
        context: None,
        number: None,
    };

    /// Whether the selector fits a message with a title in its called address, as far as [`Self::fits_content`] does not say.
    #[inline]
    pub(super) fn fits(
        &self,
        address: &Address<'_>,
        title: &GlobalTitle<'_>,
        opc: Option<PointCode>,
    ) -> bool {
        fits(self.indicator, Some(title.indicator))
            && fits(self.translation_type, title.translation_type)
            && fits(self.numbering_plan, title.numbering_plan)
            && fits(self.nature, title.nature)
            && fits(self.ssn, address.ssn)
            && fits(self.opc, opc)
    }

    /// Whether it names something of the content of a message.
    pub(super) const fn names_content(&self) -> bool {
        self.calling.is_some() || self.operation.is_some() || self.context.is_some() || self.number.is_some()
    }

    /// Whether it fits the content of a message, the number that translations are about left out.
    pub(super) fn fits_content(&self, content: &Content<'_>) -> bool {
        let begins = |prefix: &Digits| {
            let calling = content.number(Number::Calling);
            calling.is_some_and(|number| number.starts_with(prefix))
        };
        self.calling.as_ref().is_none_or(begins)
            && (self.operation.is_none() || self.operation == content.operation())
            && self
                .context
                .is_none_or(|prefix| content.context().is_some_and(|context| prefix.fits(context)))
    }

    /// How much it names, greater for more: first those with a number of their own, which leave to others what they have no translation
    /// for; then fields, of as many the longer calling number, then the longer context.
    pub(super) fn rank(&self) -> (bool, usize, usize, usize) {
        let calling = self.calling.map_or(0, |digits| digits.len());
        let context = self.context.map_or(0, |prefix| prefix.len());
        (self.number.is_some(), self.fields(), calling, context)
    }

    fn fields(&self) -> usize {
        let octets = [
            self.indicator,
            self.translation_type,
            self.numbering_plan,
            self.nature,
            self.ssn,
        ];
        let others = [
            self.opc.is_some(),
            self.calling.is_some(),
            self.operation.is_some(),
            self.context.is_some(),
            self.number.is_some(),
        ];
        octets.iter().flatten().count() + others.iter().filter(|names| **names).count()
    }
}

fn fits<T: PartialEq>(wanted: Option<T>, present: Option<T>) -> bool {
    wanted.is_none() || wanted == present
}
