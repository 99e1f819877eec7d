//! Header blocks written.

use crate::fields::name::{self, KNOWN, STATUS, known_len};
use crate::fields::{FIELD_OVERHEAD, Fields, Name, OTHER, RawField, decimal};
use crate::head::{RequestHead, ResponseHead};

use super::INITIAL_TABLE_SIZE;
use super::dynamic::{NewName, Table};
use super::integer::{write_integer, write_string};
use super::repeated::Encoded;
use super::static_table::{ENTRIES, PLACES, STATIC};

/// Encoder of the header blocks of one connection.
///
/// Each name has two slots, for the values that were inserted last. A value that a slot holds becomes an index; a
/// value that is new to a name that had another before becomes a literal, and is inserted when it comes twice in
/// succession: so values that keep changing never enter the table. Names whose values always change do not try.
pub struct Encoder {
    table: Table,
    /// By number of the known name, then [`OTHERS`] slots for names that are not known. Empty before the first block.
    slots: Vec<Slot>,
    /// The smallest size that the peer allowed since the last block, if a size update is due (RFC 7541 §4.2).
    smallest: Option<usize>,
    repeated: Encoded,
}

/// What a name was encoded as before.
#[derive(Clone, Copy, Default)]
struct Slot {
    /// Sequence numbers of the entries with its last two values; the last used one is first. What the table holds
    /// there is compared, so that an evicted entry does not match.
    entries: [u64; 2],
    /// Fingerprint of the last value that was not in the table; 0 before the first one.
    candidate: u32,
}

/// Slots for names that are not known; a power of two.
const OTHERS: usize = 16;

impl Default for Encoder {
    fn default() -> Self {
        Self::new()
    }
}

impl Encoder {
    /// An encoder for a peer whose SETTINGS have not arrived.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            table: Table::new(INITIAL_TABLE_SIZE),
            slots: Vec::new(),
            smallest: None,
            repeated: Encoded::new(),
        }
    }

    /// SETTINGS_HEADER_TABLE_SIZE of the peer. The encoder uses [`INITIAL_TABLE_SIZE`] of it at most.
    pub fn peer_table_size(&mut self, size: u32) {
        let size = (size as usize).min(INITIAL_TABLE_SIZE);
        if size != self.table.max() {
            self.smallest = Some(self.smallest.map_or(size, |smallest| smallest.min(size)));
            self.table.resize(size);
        }
    }

    /// Appends the block of a request: pseudo-header fields first, wherever they stand (RFC 9113 §8.3).
    pub fn request(&mut self, head: &RequestHead, out: &mut Vec<u8>) {
        self.block(0, &head.fields, out, |encoder, out| {
            for field in head.fields.raw(true) {
                encoder.field(field, out);
            }
            encoder.regular(&head.fields, out);
        });
    }

    /// Appends the block of a response.
    pub fn response(&mut self, head: &ResponseHead, out: &mut Vec<u8>) {
        let status = RawField {
            number: STATUS.known_number(),
            name: &[],
            value: head.status.as_str().as_bytes(),
            sensitive: false,
        };
        self.block(head.status.as_u16(), &head.fields, out, |encoder, out| {
            encoder.field(status, out);
            encoder.regular(&head.fields, out);
        });
    }

    /// Appends a field with a number to the block that was appended last.
    pub fn number(&mut self, name: Name<'static>, value: u64, out: &mut Vec<u8>) {
        let mut digits = [0; 20];
        let field = RawField {
            number: name.known_number(),
            name: &[],
            value: decimal(value, &mut digits),
            sensitive: false,
        };
        self.field(field, out);
    }

    /// Appends the block of trailers: pseudo-header fields are left out.
    pub fn fields(&mut self, fields: &Fields, out: &mut Vec<u8>) {
        self.begin(fields, out);
        self.regular(fields, out);
    }

    /// Bytes of memory that it holds.
    #[must_use]
    pub fn held(&self) -> usize {
        self.table.held() + self.slots.capacity() * size_of::<Slot>() + self.repeated.held()
    }

    /// Appends a block, that of the same list before where it still holds.
    #[inline]
    fn block(
        &mut self,
        status: u16,
        fields: &Fields,
        out: &mut Vec<u8>,
        encode: impl FnOnce(&mut Self, &mut Vec<u8>),
    ) {
        let (before, is_pure) = (self.table.state(), self.smallest.is_none());
        if is_pure && let Some(block) = self.repeated.find(status, fields, before) {
            return out.extend_from_slice(block);
        }
        self.begin(fields, out);
        let at = out.len();
        encode(self, out);
        if is_pure && self.table.state() == before {
            let block = out.get(at..).unwrap_or_default();
            self.repeated.remember(status, fields, before, block);
        }
    }

    fn begin(&mut self, fields: &Fields, out: &mut Vec<u8>) {
        if self.slots.is_empty() {
            self.slots = vec![Slot::default(); KNOWN + OTHERS];
        }
        out.reserve(8 * fields.len() + 64);
        if let Some(smallest) = self.smallest.take() {
            if smallest < self.table.max() {
                write_integer(0x20, 0x1f, smallest, out);
            }
            write_integer(0x20, 0x1f, self.table.max(), out);
        }
    }

    fn regular(&mut self, fields: &Fields, out: &mut Vec<u8>) {
        for field in fields.raw(false) {
            self.field(field, out);
        }
    }

    #[inline]
    fn field(&mut self, field: RawField<'_>, out: &mut Vec<u8>) {
        let place = slot_of(&field);
        if !field.sensitive {
            if let Some(index) = static_index(&field) {
                return out.push(0x80 | index);
            }
            if let Some(index) = self.held_index(place, &field) {
                return write_integer(0x80, 0x7f, STATIC + 1 + index, out);
            }
        }
        self.literal(place, &field, out);
    }

    /// Index in the dynamic table of a field that a slot of its name knows.
    #[inline]
    fn held_index(&mut self, place: usize, field: &RawField<'_>) -> Option<usize> {
        let slot = self.slots.get_mut(place)?;
        let [first, second] = slot.entries;
        if let Some(index) = index_of(&self.table, first, field) {
            return Some(index);
        }
        let index = index_of(&self.table, second, field)?;
        slot.entries = [second, first];
        Some(index)
    }

    /// A field that the tables do not hold (RFC 7541 §6.2).
    fn literal(&mut self, place: usize, field: &RawField<'_>, out: &mut Vec<u8>) {
        let named = self.named(place, field);
        let insert = !field.sensitive && self.is_worth(place, field, named.is_some());
        let (kind, mask) = match (insert, field.sensitive) {
            (true, _) => (0x40, 0x3f),
            (false, true) => (0x10, 0x0f),
            (false, false) => (0x00, 0x0f),
        };
        match named {
            Some(index) => write_integer(kind, mask, index, out),
            None => {
                out.push(kind);
                let name = Name::of_number(field.number).map(|name| name.as_str().as_bytes());
                write_string(name.unwrap_or(field.name), out);
            }
        }
        write_string(field.value, out);
        if insert && let Some(slot) = self.slots.get_mut(place) {
            slot.entries = [self.table.next(), slot.entries[0]];
            let name = match field.number {
                OTHER => NewName::Text(field.name),
                number => NewName::Known(number),
            };
            self.table.insert(name, field.value, None);
        }
    }

    /// Index of an entry with the name of the field, in both tables.
    fn named(&self, place: usize, field: &RawField<'_>) -> Option<usize> {
        if let Some(place) = PLACES.get(usize::from(field.number))
            && place.index > 0
        {
            return Some(usize::from(place.index));
        }
        let slot = self.slots.get(place)?;
        slot.entries.iter().find_map(|sequence| {
            let (index, entry) = self.table.live(*sequence)?;
            let same = entry.number == field.number
                && (field.number != OTHER || self.table.name(entry) == field.name);
            same.then_some(STATIC + 1 + index)
        })
    }

    /// Whether a field enters the table.
    fn is_worth(&mut self, place: usize, field: &RawField<'_>, named: bool) -> bool {
        let size = known_len(field.number) + field.name.len() + field.value.len() + FIELD_OVERHEAD;
        // A name that only this table can hold is worth an entry that evicts none.
        let for_name = !named && self.table.size() + size <= self.table.max();
        if CHANGING.get(usize::from(field.number)).copied().unwrap_or(false) {
            return for_name;
        }
        // A long value would evict many entries, and its copy costs the same wherever it comes from.
        if size > self.table.max() / 4 {
            return false;
        }
        let Some(slot) = self.slots.get_mut(place) else {
            return false;
        };
        let fingerprint = fingerprint(field);
        let before = std::mem::replace(&mut slot.candidate, fingerprint);
        before == 0 || before == fingerprint || for_name
    }
}

#[inline]
fn slot_of(field: &RawField<'_>) -> usize {
    if field.number != OTHER {
        return usize::from(field.number);
    }
    let name = field.name;
    let last = name.last().copied().unwrap_or_default();
    KNOWN + (name.len() * 7 + usize::from(last)) % OTHERS
}

/// Index of an entry of the dynamic table if it is still there and is this field. Only names that are not known share
/// a slot.
#[inline(always)]
fn index_of(table: &Table, sequence: u64, field: &RawField<'_>) -> Option<usize> {
    let (index, entry) = table.live(sequence)?;
    let same =
        table.value(entry) == field.value && (field.number != OTHER || table.name(entry) == field.name);
    same.then_some(index)
}

/// Index in the static table of a field with its value.
#[inline]
fn static_index(field: &RawField<'_>) -> Option<u8> {
    let place = PLACES.get(usize::from(field.number))?;
    for index in place.index..place.index + place.values {
        if ENTRIES.get(usize::from(index) - 1)?.1.as_bytes() == field.value {
            return Some(index);
        }
    }
    None
}

/// Not 0, and the same for the same field.
fn fingerprint(field: &RawField<'_>) -> u32 {
    let mix = |hash: u32, byte: &u8| (hash ^ u32::from(*byte)).wrapping_mul(0x0100_0193);
    field.name.iter().chain(field.value).fold(0x811c_9dc5, mix) | 1
}

/// Names whose values are those of one message, and credentials (RFC 7541 §7.1.3).
static CHANGING: [bool; KNOWN] = {
    let names = [
        name::PATH,
        name::AUTHORIZATION,
        name::PROXY_AUTHORIZATION,
        name::COOKIE,
        name::SET_COOKIE,
        name::AGE,
        name::CONTENT_LENGTH,
        name::CONTENT_LOCATION,
        name::CONTENT_RANGE,
        name::DATE,
        name::ETAG,
        name::EXPIRES,
        name::IF_MATCH,
        name::IF_MODIFIED_SINCE,
        name::IF_NONE_MATCH,
        name::IF_RANGE,
        name::IF_UNMODIFIED_SINCE,
        name::LAST_MODIFIED,
        name::LOCATION,
        name::RANGE,
        name::TRACEPARENT,
        name::TRACESTATE,
        name::SBI_CLIENT_CREDENTIALS,
        name::SBI_SOURCE_NF_CLIENT_CREDENTIALS,
        name::SBI_ACCESS_TOKEN,
        name::SBI_SENDER_TIMESTAMP,
        name::SBI_ORIGINATION_TIMESTAMP,
        name::SBI_CORRELATION_INFO,
        name::SBI_NOTIFICATION_CORRELATION,
        name::SBI_BINDING,
        name::SBI_ETAGS,
        name::SBI_DISCOVERY_SUPI,
        name::SBI_DISCOVERY_GPSI,
    ];
    let mut changing = [false; KNOWN];
    let mut at = 0;
    while at < names.len() {
        changing[names[at].known_number() as usize] = true;
        at += 1;
    }
    changing
};
