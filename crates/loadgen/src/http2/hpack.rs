//! Header compression (RFC 7541): a full decoder, and an encoder that indexes what repeats.

use std::collections::VecDeque;

use super::huffman;

/// The static table of RFC 7541 appendix A; entry 1 comes first.
#[rustfmt::skip]
const STATIC: [(&str, &str); 61] = [
    (":authority", ""), (":method", "GET"), (":method", "POST"), (":path", "/"), (":path", "/index.html"),
    (":scheme", "http"), (":scheme", "https"), (":status", "200"), (":status", "204"), (":status", "206"),
    (":status", "304"), (":status", "400"), (":status", "404"), (":status", "500"), ("accept-charset", ""),
    ("accept-encoding", "gzip, deflate"), ("accept-language", ""), ("accept-ranges", ""), ("accept", ""),
    ("access-control-allow-origin", ""), ("age", ""), ("allow", ""), ("authorization", ""),
    ("cache-control", ""), ("content-disposition", ""), ("content-encoding", ""), ("content-language", ""),
    ("content-length", ""), ("content-location", ""), ("content-range", ""), ("content-type", ""),
    ("cookie", ""), ("date", ""), ("etag", ""), ("expect", ""), ("expires", ""), ("from", ""), ("host", ""),
    ("if-match", ""), ("if-modified-since", ""), ("if-none-match", ""), ("if-range", ""),
    ("if-unmodified-since", ""), ("last-modified", ""), ("link", ""), ("location", ""), ("max-forwards", ""),
    ("proxy-authenticate", ""), ("proxy-authorization", ""), ("range", ""), ("referer", ""), ("refresh", ""),
    ("retry-after", ""), ("server", ""), ("set-cookie", ""), ("strict-transport-security", ""),
    ("transfer-encoding", ""), ("user-agent", ""), ("vary", ""), ("via", ""), ("www-authenticate", ""),
];

/// The table size both sides start with (RFC 7541 §4.2, RFC 9113 §6.5.2).
const DEFAULT_TABLE: usize = 4096;
/// What an entry costs beyond its text (RFC 7541 §4.1).
const ENTRY_OVERHEAD: usize = 32;
/// Decoded header lists longer than this are refused, so that a peer cannot make us hold more.
const LONGEST_LIST: usize = 64 * 1024;

/// A decoded header list; reused from block to block, so that steady traffic allocates nothing.
#[derive(Debug, Default)]
pub struct Fields {
    text: Vec<u8>,
    spans: Vec<(u32, u32, u32)>,
}

impl Fields {
    /// The fields in order, pseudo-headers included.
    pub fn iter(&self) -> impl Iterator<Item = (&[u8], &[u8])> {
        self.spans.iter().map(|(start, middle, end)| {
            (
                &self.text[*start as usize..*middle as usize],
                &self.text[*middle as usize..*end as usize],
            )
        })
    }

    /// The first value of a field, by its lower-case name.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&[u8]> {
        self.iter()
            .find(|(n, _)| *n == name.as_bytes())
            .map(|(_, value)| value)
    }

    fn clear(&mut self) {
        self.text.clear();
        self.spans.clear();
    }
}

/// Name and value of the dynamic table.
type Entry = (Box<[u8]>, Box<[u8]>);

/// Decodes the header blocks of one connection, in order.
#[derive(Debug)]
pub(super) struct Decoder {
    entries: VecDeque<Entry>,
    size: usize,
    limit: usize,
}

impl Default for Decoder {
    fn default() -> Self {
        Self {
            entries: VecDeque::new(),
            size: 0,
            limit: DEFAULT_TABLE,
        }
    }
}

/// The header block cannot be decoded; the connection is lost (RFC 9113 §4.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct BadBlock;

impl Decoder {
    /// Decodes a complete header block into `fields`.
    pub(super) fn decode(&mut self, block: &[u8], fields: &mut Fields) -> Result<(), BadBlock> {
        fields.clear();
        let mut input = block;
        while let Some(&first) = input.first() {
            if first & 0x80 != 0 {
                let index = integer(&mut input, 7)?;
                self.copy(index, fields, true)?;
            } else if first & 0xe0 == 0x20 {
                let limit = integer(&mut input, 5)?;
                if limit > DEFAULT_TABLE {
                    return Err(BadBlock);
                }
                self.limit = limit;
                self.evict(0);
            } else {
                let indexed = first & 0x40 != 0;
                let index = integer(&mut input, if indexed { 6 } else { 4 })?;
                if index == 0 {
                    let start = offset(&fields.text)?;
                    string(&mut input, &mut fields.text)?;
                    let middle = offset(&fields.text)?;
                    fields.spans.push((start, middle, middle));
                } else {
                    self.copy(index, fields, false)?;
                }
                string(&mut input, &mut fields.text)?;
                let end = offset(&fields.text)?;
                if let Some(span) = fields.spans.last_mut() {
                    span.2 = end;
                    if indexed {
                        let (start, middle) = (span.0 as usize, span.1 as usize);
                        self.insert(fields.text[start..middle].into(), fields.text[middle..].into());
                    }
                }
            }
            if fields.text.len() > LONGEST_LIST {
                return Err(BadBlock);
            }
        }
        Ok(())
    }

    fn copy(&self, index: usize, fields: &mut Fields, with_value: bool) -> Result<(), BadBlock> {
        let (name, value): (&[u8], &[u8]) = match index {
            0 => return Err(BadBlock),
            1..=61 => (STATIC[index - 1].0.as_bytes(), STATIC[index - 1].1.as_bytes()),
            _ => self
                .entries
                .get(index - 62)
                .map(|(n, v)| (&**n, &**v))
                .ok_or(BadBlock)?,
        };
        let start = offset(&fields.text)?;
        fields.text.extend_from_slice(name);
        let middle = offset(&fields.text)?;
        if with_value {
            fields.text.extend_from_slice(value);
        }
        let end = offset(&fields.text)?;
        fields.spans.push((start, middle, end));
        Ok(())
    }

    fn insert(&mut self, name: Box<[u8]>, value: Box<[u8]>) {
        let cost = name.len() + value.len() + ENTRY_OVERHEAD;
        self.evict(cost);
        if cost <= self.limit {
            self.size += cost;
            self.entries.push_front((name, value));
        }
    }

    fn evict(&mut self, room: usize) {
        while self.size + room > self.limit {
            let Some((name, value)) = self.entries.pop_back() else {
                break;
            };
            self.size -= name.len() + value.len() + ENTRY_OVERHEAD;
        }
    }
}

fn offset(text: &[u8]) -> Result<u32, BadBlock> {
    u32::try_from(text.len()).map_err(|_| BadBlock)
}

/// An integer with an `n`-bit prefix (RFC 7541 §5.1).
fn integer(input: &mut &[u8], n: u32) -> Result<usize, BadBlock> {
    let (first, mut rest) = input.split_first().ok_or(BadBlock)?;
    let mask = (1_usize << n) - 1;
    let mut value = usize::from(*first) & mask;
    if value == mask {
        let mut shift = 0;
        loop {
            let (byte, after) = rest.split_first().ok_or(BadBlock)?;
            rest = after;
            value += usize::from(byte & 0x7f) << shift;
            shift += 7;
            if byte & 0x80 == 0 {
                break;
            }
            if shift > 21 {
                return Err(BadBlock);
            }
        }
    }
    *input = rest;
    Ok(value)
}

/// A string literal (RFC 7541 §5.2), appended to `out`.
fn string(input: &mut &[u8], out: &mut Vec<u8>) -> Result<(), BadBlock> {
    let huffman = input.first().ok_or(BadBlock)? & 0x80 != 0;
    let length = integer(input, 7)?;
    if length > input.len() {
        return Err(BadBlock);
    }
    let (text, rest) = input.split_at(length);
    *input = rest;
    if huffman {
        huffman::decode(text, out).then_some(()).ok_or(BadBlock)
    } else {
        out.extend_from_slice(text);
        Ok(())
    }
}

/// Encodes the header blocks of one connection.
///
/// Fields that repeat on every message are indexed once and cost a byte afterwards; the others are literals
/// without Huffman coding, which saves the generator's time and costs the function under test a few bytes.
#[derive(Debug)]
pub(super) struct Encoder {
    entries: Vec<(String, String)>,
    size: usize,
    limit: usize,
    announce: bool,
}

impl Default for Encoder {
    fn default() -> Self {
        Self {
            entries: Vec::new(),
            size: 0,
            limit: DEFAULT_TABLE,
            announce: false,
        }
    }
}

impl Encoder {
    /// The size of the table that the peer permits (`SETTINGS_HEADER_TABLE_SIZE`).
    pub(super) fn resize(&mut self, limit: usize) {
        let limit = limit.min(DEFAULT_TABLE);
        if limit != self.limit {
            self.limit = limit;
            self.announce = true;
            self.entries.clear();
            self.size = 0;
        }
    }

    /// To be called before the fields of each block.
    pub(super) fn begin(&mut self, out: &mut Vec<u8>) {
        if std::mem::take(&mut self.announce) {
            put_integer(out, 0x20, 5, 0);
            put_integer(out, 0x20, 5, self.limit);
        }
    }

    /// A field that will come again with the same value.
    pub(super) fn stable(&mut self, out: &mut Vec<u8>, name: &str, value: &str) {
        if let Some(age) = self
            .entries
            .iter()
            .rev()
            .position(|(n, v)| n == name && v == value)
        {
            return put_integer(out, 0x80, 7, 62 + age);
        }
        if let Some(index) = STATIC.iter().position(|e| *e == (name, value)) {
            return put_integer(out, 0x80, 7, index + 1);
        }
        let cost = name.len() + value.len() + ENTRY_OVERHEAD;
        if self.size + cost > self.limit {
            // Never evicts: what was indexed first stays, so that no index ever moves out of the table.
            return self.literal(out, name, value.as_bytes());
        }
        put_name(out, 0x40, 6, name);
        put_string(out, value.as_bytes());
        self.entries.push((name.to_owned(), value.to_owned()));
        self.size += cost;
    }

    /// A field whose value changes from message to message.
    pub(super) fn literal(&mut self, out: &mut Vec<u8>, name: &str, value: &[u8]) {
        put_name(out, 0x00, 4, name);
        put_string(out, value);
    }
}

fn put_name(out: &mut Vec<u8>, pattern: u8, bits: u32, name: &str) {
    let index = STATIC.iter().position(|(n, _)| *n == name).map_or(0, |i| i + 1);
    put_integer(out, pattern, bits, index);
    if index == 0 {
        put_string(out, name.as_bytes());
    }
}

fn put_string(out: &mut Vec<u8>, text: &[u8]) {
    put_integer(out, 0x00, 7, text.len());
    out.extend_from_slice(text);
}

fn put_integer(out: &mut Vec<u8>, pattern: u8, bits: u32, value: usize) {
    let mask = (1_usize << bits) - 1;
    if value < mask {
        out.push(pattern | value as u8);
        return;
    }
    out.push(pattern | mask as u8);
    let mut rest = value - mask;
    while rest >= 0x80 {
        out.push(rest as u8 | 0x80);
        rest >>= 7;
    }
    out.push(rest as u8);
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn list(fields: &Fields) -> Vec<(String, String)> {
        let text = |b: &[u8]| String::from_utf8_lossy(b).into_owned();
        fields.iter().map(|(n, v)| (text(n), text(v))).collect()
    }

    /// RFC 7541 appendix C.4: three requests on one connection, Huffman coded, with a dynamic table.
    #[test]
    fn requests_of_the_standard() {
        let mut decoder = Decoder::default();
        let mut fields = Fields::default();
        let first = [
            0x82, 0x86, 0x84, 0x41, 0x8c, 0xf1, 0xe3, 0xc2, 0xe5, 0xf2, 0x3a, 0x6b, 0xa0, 0xab, 0x90, 0xf4,
            0xff,
        ];
        decoder.decode(&first, &mut fields).unwrap();
        assert_eq!(fields.get(":authority"), Some(&b"www.example.com"[..]));
        let second = [
            0x82, 0x86, 0x84, 0xbe, 0x58, 0x86, 0xa8, 0xeb, 0x10, 0x64, 0x9c, 0xbf,
        ];
        decoder.decode(&second, &mut fields).unwrap();
        assert_eq!(
            list(&fields).last().unwrap(),
            &("cache-control".to_owned(), "no-cache".to_owned())
        );
        assert_eq!(fields.get(":authority"), Some(&b"www.example.com"[..]));
    }

    #[test]
    fn invalid_blocks_are_refused() {
        let mut decoder = Decoder::default();
        for block in [
            &[0x80][..],
            &[0xff, 0xff, 0xff, 0xff, 0xff, 0xff],
            &[0xbe],
            &[0x00, 0x05, b'a'],
            &[0x3f, 0xff, 0x7f],
        ] {
            assert_eq!(
                decoder.decode(block, &mut Fields::default()),
                Err(BadBlock),
                "{block:02x?}"
            );
        }
    }

    proptest! {
        #[test]
        fn what_is_encoded_is_decoded(
            blocks in prop::collection::vec(prop::collection::vec(("[a-z:-]{1,12}", "[ -~]{0,40}", any::<bool>()), 0..8), 1..20),
            resize in prop::option::of(0_usize..5000),
        ) {
            let (mut encoder, mut decoder) = (Encoder::default(), Decoder::default());
            for (at, block) in blocks.iter().enumerate() {
                if let (1, Some(size)) = (at, resize) {
                    encoder.resize(size);
                }
                let mut out = Vec::new();
                encoder.begin(&mut out);
                for (name, value, stable) in block {
                    if *stable { encoder.stable(&mut out, name, value) } else { encoder.literal(&mut out, name, value.as_bytes()) }
                }
                let mut fields = Fields::default();
                decoder.decode(&out, &mut fields).unwrap();
                let expected: Vec<_> = block.iter().map(|(n, v, _)| (n.clone(), v.clone())).collect();
                prop_assert_eq!(list(&fields), expected);
            }
        }

        #[test]
        fn no_bytes_make_the_decoder_panic(block in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = Decoder::default().decode(&block, &mut Fields::default());
        }
    }
}
