//! A message while rules change it: its AVPs by reference, so that it is written once, after the last rule.

use diameter::proto::{Avp, Avps, BuildError, Header, Message, MessageBuilder, MessageMut, known};

/// Room for the header of an AVP with a vendor, and its padding.
const AVP_OVERHEAD: usize = 16;

/// A message that rules examine and change.
#[derive(Debug)]
pub(super) struct Draft<'m> {
    header: Header,
    /// As it came; empty once it is edited.
    original: Avps<'m>,
    /// Its AVPs with the changes so far; an AVP with new data has no `raw`. None: no rule fits yet.
    edited: Option<Vec<Avp<'m>>>,
}

impl<'m> Draft<'m> {
    pub(super) fn new<B: AsRef<[u8]>>(message: &'m Message<B>) -> Self {
        Self {
            header: message.header(),
            original: message.avps(),
            edited: None,
        }
    }

    pub(super) const fn header(&self) -> &Header {
        &self.header
    }

    /// The top-level AVPs with the changes so far. The message was scanned before; should its frames be wrong all the
    /// same, what follows the first wrong one is left out.
    pub(super) fn avps(&self) -> impl Iterator<Item = Avp<'m>> {
        let edited = self.edited.iter().flatten().copied();
        edited.chain(self.original.clone().map_while(Result::ok))
    }

    /// The Result-Code of an answer, or its Experimental-Result-Code.
    pub(super) fn result(&self) -> Option<u32> {
        let find = |key| self.avps().find(|avp| avp.key() == key);
        if let Some(code) = find(known::RESULT_CODE.key) {
            return code.data.try_into().ok().map(u32::from_be_bytes);
        }
        let group = find(known::EXPERIMENTAL_RESULT.key)?.group();
        group.get(known::EXPERIMENTAL_RESULT_CODE).ok()?
    }

    /// The AVPs, to be changed.
    pub(super) fn edit(&mut self) -> &mut Vec<Avp<'m>> {
        let original = std::mem::replace(&mut self.original, Avps::new(&[]));
        self.edited
            .get_or_insert_with(|| original.map_while(Result::ok).collect())
    }

    /// The changed message; none: no rule changed it.
    ///
    /// # Errors
    /// When it is longer than a message can be.
    pub(super) fn finish(self) -> Option<Result<MessageMut, BuildError>> {
        let avps = self.edited?;
        let length = avps
            .iter()
            .map(|avp| avp.data.len() + AVP_OVERHEAD)
            .sum::<usize>();
        let mut builder = MessageBuilder::with_capacity(self.header, length + AVP_OVERHEAD);
        for avp in &avps {
            match avp.raw.is_empty() {
                true => builder.put_raw(avp.key(), avp.flags, avp.data),
                false => builder.copy(avp),
            };
        }
        Some(builder.finish())
    }
}
