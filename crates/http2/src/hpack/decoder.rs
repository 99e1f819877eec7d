//! Header blocks read.

use crate::fields::name::{CONNECTION, PSEUDO_LAST, TE, TRANSFER_ENCODING, UPGRADE, known_len};
use crate::fields::{FIELD_OVERHEAD, Fields, Name, OTHER, Value};

use super::dynamic::{NewName, Table};
use super::integer::Input;
use super::repeated::Decoded;
use super::static_table::{self, STATIC};
use super::{HpackError, INITIAL_TABLE_SIZE, MAX_COPIED, huffman};

/// Decoder of the header blocks of one connection.
pub struct Decoder {
    table: Table,
    /// The largest size that the peer may set.
    limit: usize,
    /// Our SETTINGS_HEADER_TABLE_SIZE, once the peer has acknowledged it.
    setting: usize,
    /// The next block must begin with a size update (RFC 7541 §4.2).
    update_due: bool,
    /// Decoded Huffman code.
    scratch: Vec<u8>,
    repeated: Decoded,
}

/// Memory for this many fields is reserved at once: most messages have fewer.
const FIRST_FIELDS: usize = 20;

/// What of a header list is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Size of the list in bytes as RFC 9113 §6.5.2 counts them.
    pub list: usize,
    /// Number of fields.
    pub fields: usize,
}

/// Properties of a decoded list.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Outcome {
    /// Size of the whole list as RFC 9113 §6.5.2 counts it, also beyond the limits.
    pub size: usize,
    /// Number of its fields, also beyond the limits.
    pub fields: usize,
    /// The list is beyond the limits; the fields that exceed them are not stored.
    pub over: bool,
    /// The first rule that the list violates; the fields that violate one are not stored.
    pub malformed: Option<Malformed>,
    /// The pseudo-header fields in the list: bit n stands for the known name of number n.
    pub pseudo: u8,
    /// What was found out about the same block before, where that is cached.
    pub(crate) checked: Option<Checked>,
}

/// The head of a message that keeps the rules of RFC 9113 §8.3, which the same block always does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Checked {
    /// The length of the body that the head announces.
    pub(crate) announced: Option<u64>,
}

/// Why a message is malformed: a stream error PROTOCOL_ERROR (RFC 9113 §8.1.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Malformed {
    /// A name that is not a token in lower case, or an unknown pseudo-header field.
    #[error(
        "a field name is not a token in lower case, nor a known pseudo-header field (RFC 9113 §8.2.1, §8.3)"
    )]
    Name,
    /// A value with a control character, or with a blank at its start or end.
    #[error(
        "a field value has a control character (RFC 9110 §5.5), or a blank at its start or end (RFC 9113 §8.2.1)"
    )]
    Value,
    /// A field of HTTP/1.1 connections.
    #[error("a field is specific to HTTP/1.1 connections (RFC 9113 §8.2.2)")]
    ConnectionSpecific,
    /// A pseudo-header field behind another field.
    #[error("a pseudo-header field stands behind a regular field (RFC 9113 §8.3)")]
    LatePseudo,
    /// A pseudo-header field for the second time.
    #[error("a pseudo-header field occurs twice (RFC 9113 §8.3)")]
    RepeatedPseudo,
}

impl Decoder {
    /// A decoder for a peer that receives `table_max` as SETTINGS_HEADER_TABLE_SIZE.
    #[must_use]
    pub fn new(table_max: usize) -> Self {
        Self {
            table: Table::new(INITIAL_TABLE_SIZE),
            limit: table_max.max(INITIAL_TABLE_SIZE),
            setting: table_max,
            update_due: false,
            scratch: Vec::new(),
            repeated: Decoded::default(),
        }
    }

    /// The peer has acknowledged our SETTINGS: a table that is larger than they allow must shrink in the next block.
    pub fn settings_acknowledged(&mut self) {
        self.limit = self.setting;
        self.update_due |= self.table.max() > self.limit;
    }

    /// Decodes a whole header block (HEADERS and CONTINUATION joined) and appends its list to `fields`.
    ///
    /// # Errors
    /// When the block cannot be decoded: the connection is lost with it, since the tables of both ends differ.
    pub fn decode(
        &mut self,
        block: &[u8],
        limits: Limits,
        fields: &mut Fields,
    ) -> Result<Outcome, HpackError> {
        let before = self.table.state();
        self.repeated.leave();
        if !self.update_due
            && let Some(outcome) = self.repeated.find(block, before, limits, fields)
        {
            return Ok(outcome);
        }
        let mut input = Input(block);
        self.size_updates(&mut input)?;
        let is_pure = input.0.len() == block.len() && fields.is_empty();
        fields.reserve(FIRST_FIELDS.min(block.len()), block.len());
        let mut sink = Sink::new(fields, limits);
        let mut copied = 0;
        while let Some(first) = input.next() {
            if first & 0x80 != 0 {
                let index = input.integer(first, 0x7f)?;
                self.indexed(index, &mut sink)?;
            } else if first & 0x60 == 0x20 {
                return Err(HpackError::LateSizeUpdate);
            } else {
                self.literal(first, &mut input, &mut sink, &mut copied)?;
            }
        }
        let outcome = sink.outcome;
        if is_pure && self.table.state() == before {
            self.repeated.remember(block, before, limits, fields, outcome);
        }
        Ok(outcome)
    }

    /// The block that was decoded last is the head of a message that keeps the rules: it need not be checked again when
    /// it repeats itself.
    #[inline]
    pub(crate) fn check(&mut self, checked: Checked) {
        self.repeated.check(checked);
    }

    /// Bytes of memory that it holds.
    #[must_use]
    pub fn held(&self) -> usize {
        self.table.held() + self.scratch.capacity() + self.repeated.held()
    }

    /// Size of the dynamic table (RFC 7541 §4.1).
    #[cfg(test)]
    pub(super) fn table_size(&self) -> usize {
        self.table.size()
    }

    /// The size updates at the start of a block (RFC 7541 §4.2, §6.3).
    fn size_updates(&mut self, input: &mut Input<'_>) -> Result<(), HpackError> {
        while let Some(first) = input.0.first().copied()
            && first & 0xe0 == 0x20
        {
            input.next();
            let size = input.integer(first, 0x1f)?;
            if size as usize > self.limit {
                return Err(HpackError::TableSize(size));
            }
            self.table.resize(size as usize);
            self.update_due = false;
        }
        if self.update_due && !input.0.is_empty() {
            return Err(HpackError::NoSizeUpdate);
        }
        Ok(())
    }

    /// A field that is an entry of a table (§6.1).
    #[inline]
    fn indexed(&self, index: u32, sink: &mut Sink<'_>) -> Result<(), HpackError> {
        let missing = HpackError::Index(index);
        let index = index as usize;
        if let Some(dynamic) = index.checked_sub(STATIC + 1) {
            let (_, entry) = self.table.newest(dynamic).ok_or(missing)?;
            if sink.takes(entry.number, entry.size as usize, entry.flaw) {
                let text = self.table.text(entry);
                sink.fields.push_text(entry.number, entry.name_len, text);
            }
        } else {
            let (number, value) = static_table::entry(index).ok_or(missing)?;
            let size = known_len(number) + value.len() + FIELD_OVERHEAD;
            // The only field of the static table that HTTP/2 forbids (RFC 9113 §8.2.2).
            let is_specific = number == TRANSFER_ENCODING.known_number();
            if sink.takes(number, size, is_specific.then_some(Malformed::ConnectionSpecific)) {
                sink.fields.push_text(number, 0, value);
            }
        }
        Ok(())
    }

    /// A field whose value stands in the block (§6.2).
    fn literal(
        &mut self,
        first: u8,
        input: &mut Input<'_>,
        sink: &mut Sink<'_>,
        copied: &mut usize,
    ) -> Result<(), HpackError> {
        let insert = first & 0x40 != 0;
        let sensitive = first & 0x50 == 0x10;
        let index = input.integer(first, if insert { 0x3f } else { 0x0f })?;
        self.scratch.clear();
        let mut new = match index {
            0 => {
                let (text, coded) = input.string()?;
                if coded {
                    huffman::decode(text, &mut self.scratch)?;
                }
                NewName::Text(text)
            }
            index => self.name_at(index)?,
        };
        let name_coded = self.scratch.len();
        let name_is_coded = index == 0 && name_coded > 0;
        let (raw, coded) = input.string()?;
        if coded {
            huffman::decode(raw, &mut self.scratch)?;
        }
        let (name_text, value_text) = self.scratch.split_at_checked(name_coded).unwrap_or_default();
        let value = if coded { value_text } else { raw };

        let mut flaw = None;
        if let NewName::Text(text) = new {
            let text = if name_is_coded { name_text } else { text };
            new = NewName::Text(text);
            match Name::new(text) {
                Ok(name) => new = name.number().map_or(new, NewName::Known),
                Err(_) => flaw = Some(Malformed::Name),
            }
        }
        let (number, name) = match new {
            NewName::Known(number) => (number, &[][..]),
            NewName::Text(text) => (OTHER, text),
            NewName::Entry(sequence) => {
                let entry = self.table.live(sequence).map(|(_, entry)| entry);
                let entry = entry.ok_or(HpackError::Index(index))?;
                flaw = entry.flaw.filter(|flaw| *flaw == Malformed::Name);
                (OTHER, self.table.name(entry))
            }
        };
        let flaw = flaw.or_else(|| value_flaw(number, value));
        let size = known_len(number) + name.len() + value.len() + FIELD_OVERHEAD;
        if sink.takes(number, size, flaw) {
            sink.fields.push(number, name, value, sensitive);
        }
        if insert {
            if matches!(new, NewName::Entry(_)) {
                *copied += name.len();
                if *copied > MAX_COPIED {
                    return Err(HpackError::Work);
                }
            }
            self.table.insert(new, value, flaw);
        }
        Ok(())
    }

    fn name_at(&self, index: u32) -> Result<NewName<'static>, HpackError> {
        let missing = HpackError::Index(index);
        let Some(dynamic) = (index as usize).checked_sub(STATIC + 1) else {
            let (number, _) = static_table::entry(index as usize).ok_or(missing)?;
            return Ok(NewName::Known(number));
        };
        let (sequence, entry) = self.table.newest(dynamic).ok_or(missing)?;
        Ok(match entry.number {
            OTHER => NewName::Entry(sequence),
            number => NewName::Known(number),
        })
    }
}

/// What is wrong with the value of a field, or with the field in HTTP/2 at all.
fn value_flaw(number: u16, value: &[u8]) -> Option<Malformed> {
    if Value::new(value).is_err() {
        return Some(Malformed::Value);
    }
    const FIRST: u16 = CONNECTION.known_number();
    const LAST: u16 = UPGRADE.known_number();
    let specific = (FIRST..=LAST).contains(&number) || number == TRANSFER_ENCODING.known_number();
    let trailers = number == TE.known_number() && value.eq_ignore_ascii_case(b"trailers");
    (specific && !trailers).then_some(Malformed::ConnectionSpecific)
}

/// Where the fields of a block go.
struct Sink<'a> {
    fields: &'a mut Fields,
    limits: Limits,
    outcome: Outcome,
    /// A regular field was there: no pseudo-header field may follow.
    regular: bool,
}

impl<'a> Sink<'a> {
    fn new(fields: &'a mut Fields, limits: Limits) -> Self {
        Self {
            fields,
            limits,
            outcome: Outcome::default(),
            regular: false,
        }
    }

    /// Counts a field; whether it is to be stored.
    #[inline(always)]
    fn takes(&mut self, number: u16, size: usize, flaw: Option<Malformed>) -> bool {
        let outcome = &mut self.outcome;
        outcome.size += size;
        outcome.fields += 1;
        if let Some(flaw) = flaw {
            outcome.malformed.get_or_insert(flaw);
            return false;
        }
        if number > PSEUDO_LAST {
            self.regular = true;
        } else {
            let bit = 1 << number;
            if self.regular || outcome.pseudo & bit != 0 {
                let flaw = if self.regular {
                    Malformed::LatePseudo
                } else {
                    Malformed::RepeatedPseudo
                };
                outcome.malformed.get_or_insert(flaw);
                return false;
            }
            outcome.pseudo |= bit;
        }
        if outcome.size > self.limits.list || outcome.fields > self.limits.fields {
            outcome.over = true;
            return false;
        }
        true
    }
}
