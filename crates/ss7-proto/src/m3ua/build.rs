//! Writing messages.

use super::kind::MessageType;
use super::message::HEADER_LEN;
use super::parameter::Tag;

/// Writes one message behind what `out` holds; [`Builder::finish`] sets its length.
///
/// ```
/// use ss7_proto::m3ua::{Builder, Message, MessageType, Tag};
///
/// let mut out = Vec::new();
/// let mut aspac = Builder::new(MessageType::Aspac, &mut out);
/// aspac.word(Tag::TRAFFIC_MODE_TYPE, 2).words(Tag::ROUTING_CONTEXT, &[10, 11]);
/// aspac.finish();
/// let message = Message::parse(&out).unwrap();
/// assert_eq!(message.routing_contexts().collect::<Vec<_>>(), [10, 11]);
/// ```
#[derive(Debug)]
#[must_use = "a message is complete after `finish`"]
pub struct Builder<'a> {
    out: &'a mut Vec<u8>,
    start: usize,
}

impl<'a> Builder<'a> {
    /// Writes the header.
    pub fn new(message_type: MessageType, out: &'a mut Vec<u8>) -> Self {
        let start = out.len();
        let class = message_type.class() as u8;
        out.extend_from_slice(&[1, 0, class, message_type.number(), 0, 0, 0, 0]);
        Self { out, start }
    }

    /// Adds a parameter.
    ///
    /// # Panics
    /// When it exceeds 65,531 octets: the caller's own mistake.
    pub fn parameter(&mut self, tag: Tag, value: &[u8]) -> &mut Self {
        self.open(tag, |out| out.extend_from_slice(value))
    }

    /// Adds a number of 32 bits.
    pub fn word(&mut self, tag: Tag, word: u32) -> &mut Self {
        self.parameter(tag, &word.to_be_bytes())
    }

    /// Adds a list of numbers of 32 bits.
    ///
    /// # Panics
    /// When there are more than 16,382.
    pub fn words(&mut self, tag: Tag, words: &[u32]) -> &mut Self {
        self.open(tag, |out| {
            for word in words {
                out.extend_from_slice(&word.to_be_bytes());
            }
        })
    }

    /// Adds a parameter that consists of others.
    ///
    /// # Panics
    /// When they exceed 65,531 octets.
    pub fn group(&mut self, tag: Tag, members: impl FnOnce(&mut Builder<'_>)) -> &mut Self {
        self.open(tag, |out| {
            let start = out.len();
            members(&mut Builder { out, start });
        })
    }

    /// Adds a parameter whose value is appended: the length follows.
    #[inline]
    pub(super) fn open(&mut self, tag: Tag, value: impl FnOnce(&mut Vec<u8>)) -> &mut Self {
        let start = self.out.len();
        let [high, low] = tag.0.to_be_bytes();
        self.out.extend_from_slice(&[high, low, 0, 0]);
        value(self.out);
        let length = u16::try_from(self.out.len() - start).expect("a parameter has at most 65,535 octets");
        if let Some(field) = self.out.get_mut(start + 2..start + 4) {
            field.copy_from_slice(&length.to_be_bytes());
        }
        self.pad();
        self
    }

    fn pad(&mut self) {
        let length = (self.out.len() - self.start).next_multiple_of(4);
        self.out.resize(self.start + length, 0);
    }

    /// Sets the length of the message.
    pub fn finish(self) {
        let length = self.out.len() - self.start;
        let length = u32::try_from(length).unwrap_or(u32::MAX).to_be_bytes();
        if let Some(field) = self.out.get_mut(self.start + 4..self.start + HEADER_LEN) {
            field.copy_from_slice(&length);
        }
    }
}
