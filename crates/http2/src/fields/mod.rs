//! Header blocks as flat memory: one piece of text, and where in it each value lies.
//!
//! A block of 20 fields takes two allocations however it is filled, and is copied by two `memcpy`. Names that are
//! known are kept as numbers, so that looking for one compares numbers. Nothing is hashed.

pub mod name;
mod value;

use std::fmt;

pub use name::{InvalidName, Name};
pub use value::{InvalidValue, NotText, Value};

/// What each field counts in the size of a list beside its bytes (RFC 9113 §6.5.2).
pub const FIELD_OVERHEAD: usize = 32;

/// The fields of a message in their order; pseudo-header fields of a request are among them.
#[derive(Clone, Default)]
pub struct Fields {
    entries: Vec<Entry>,
    /// Names that are not known, and values. What was replaced or removed stays until the block is dropped.
    text: Vec<u8>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
struct Entry {
    /// Number of a known name, or [`OTHER`].
    number: u16,
    sensitive: bool,
    name_len: u32,
    /// Where the name lies if it is not known; the value follows it.
    at: u32,
    value_len: u32,
}

/// The name is in the text.
pub(crate) const OTHER: u16 = u16::MAX;

/// A field as HPACK needs it.
#[derive(Clone, Copy)]
pub(crate) struct RawField<'a> {
    /// Number of a known name, or [`OTHER`].
    pub(crate) number: u16,
    /// Empty if the name is known.
    pub(crate) name: &'a [u8],
    pub(crate) value: &'a [u8],
    pub(crate) sensitive: bool,
}

/// One field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Field<'a> {
    /// Its name.
    pub name: Name<'a>,
    /// Its value.
    pub value: Value<'a>,
    /// Whether intermediaries must not put it into a compression context (RFC 7541 §7.1.3).
    pub sensitive: bool,
}

impl Fields {
    /// No fields.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            entries: Vec::new(),
            text: Vec::new(),
        }
    }

    /// No fields, with room for `fields` whose text takes `bytes`.
    #[must_use]
    pub fn with_capacity(fields: usize, bytes: usize) -> Self {
        Self {
            entries: Vec::with_capacity(fields),
            text: Vec::with_capacity(bytes),
        }
    }

    /// The first field of this name.
    #[must_use]
    #[inline]
    pub fn get<'n>(&self, name: impl Into<Name<'n>>) -> Option<Value<'_>> {
        let entry = self.entries.get(self.position(name.into())?)?;
        Some(self.value(entry))
    }

    /// The values of all fields of this name, in their order.
    pub fn get_all<'s, 'n: 's>(&'s self, name: impl Into<Name<'n>>) -> impl Iterator<Item = Value<'s>> {
        let name = name.into();
        let named = self
            .entries
            .iter()
            .filter(move |entry| self.has_name(entry, name));
        named.map(|entry| self.value(entry))
    }

    /// Whether there is a field of this name.
    #[must_use]
    #[inline]
    pub fn contains<'n>(&self, name: impl Into<Name<'n>>) -> bool {
        self.position(name.into()).is_some()
    }

    /// One field of this name with this value, in the place of those there were.
    pub fn set<'n, 'v>(&mut self, name: impl Into<Name<'n>>, value: impl Into<Value<'v>>) {
        let name = name.into();
        if let Some(entry) = self.write(name, value.into(), false) {
            self.put(name, entry);
        }
    }

    /// As [`Fields::set`], for a value that is to stay out of compression contexts.
    pub fn set_sensitive<'n, 'v>(&mut self, name: impl Into<Name<'n>>, value: impl Into<Value<'v>>) {
        let name = name.into();
        if let Some(entry) = self.write(name, value.into(), true) {
            self.put(name, entry);
        }
    }

    /// As [`Fields::set`] with what `value` prints, which is written in place; `false`, and nothing changes, when a
    /// field cannot hold that.
    pub fn set_printed<'n>(&mut self, name: impl Into<Name<'n>>, value: impl fmt::Display) -> bool {
        let name = name.into();
        let entry = self.print(name, value);
        entry.map(|entry| self.put(name, entry)).is_some()
    }

    /// As [`Fields::append`] with what `value` prints; `false`, and nothing changes, when a field cannot hold that.
    pub fn append_printed<'n>(&mut self, name: impl Into<Name<'n>>, value: impl fmt::Display) -> bool {
        let entry = self.print(name.into(), value);
        entry.map(|entry| self.entries.push(entry)).is_some()
    }

    /// As [`Fields::set`], where the field usually has that value or one that is as long.
    pub(crate) fn set_again(&mut self, name: Name<'_>, value: Value<'_>) {
        let Some(first) = self.position(name) else {
            return self.set(name, value);
        };
        let entry = self.entries[first];
        let mut after = self.entries[first + 1..].iter();
        if entry.value_len as usize == value.len() && !after.any(|entry| self.has_name(entry, name)) {
            let at = entry.at as usize + entry.name_len as usize;
            if let Some(text) = self.text.get_mut(at..at + value.len()) {
                return text.copy_from_slice(value.as_bytes());
            }
        }
        self.set(name, value);
    }

    /// `entry` in the place of all fields of this name, or after all others.
    fn put(&mut self, name: Name<'_>, entry: Entry) {
        let Some(first) = self.position(name) else {
            return self.entries.push(entry);
        };
        self.entries[first] = entry;
        let mut at = 0;
        let text = &self.text;
        self.entries.retain(|entry| {
            at += 1;
            at <= first + 1 || !has_name(text, entry, name)
        });
    }

    /// As [`Fields::set`] with a number.
    pub fn set_number<'n>(&mut self, name: impl Into<Name<'n>>, value: u64) {
        let mut digits = [0_u8; 20];
        self.set(name, Value::again(decimal(value, &mut digits)));
    }

    /// One more field, after all others.
    #[inline]
    pub fn append<'n, 'v>(&mut self, name: impl Into<Name<'n>>, value: impl Into<Value<'v>>) {
        if let Some(entry) = self.write(name.into(), value.into(), false) {
            self.entries.push(entry);
        }
    }

    /// As [`Fields::append`], for a value that is to stay out of compression contexts.
    pub fn append_sensitive<'n, 'v>(&mut self, name: impl Into<Name<'n>>, value: impl Into<Value<'v>>) {
        if let Some(entry) = self.write(name.into(), value.into(), true) {
            self.entries.push(entry);
        }
    }

    /// Removes all fields of this name; whether there were any.
    pub fn remove<'n>(&mut self, name: impl Into<Name<'n>>) -> bool {
        let name = name.into();
        let Some(first) = self.position(name) else {
            return false;
        };
        self.entries.remove(first);
        let (text, rest) = (&self.text, &self.entries[first..]);
        if rest.iter().any(|entry| has_name(text, entry, name)) {
            self.entries.retain(|entry| !has_name(text, entry, name));
        }
        true
    }

    /// The discovery parameters among the fields (TS 29.500 §5.2.3.2.7), in their order: name of the field, parameter and
    /// value. Fields of other names cost one comparison.
    pub fn discovery_parameters(&self) -> impl Iterator<Item = (Name<'_>, &str, Value<'_>)> {
        let may_be = |entry: &&Entry| entry.number >= name::DISCOVERY_FIRST;
        self.entries.iter().filter(may_be).filter_map(|entry| {
            let Field { name, value, .. } = field(&self.text, entry);
            Some((name, name.discovery_parameter()?, value))
        })
    }

    /// Removes all discovery parameters (TS 29.500 §5.2.3.2.7).
    pub fn remove_discovery_parameters(&mut self) {
        let text = &self.text;
        self.entries.retain(|entry| {
            entry.number < name::DISCOVERY_FIRST || field(text, entry).name.discovery_parameter().is_none()
        });
    }

    /// Keeps the fields that `keep` accepts.
    pub fn retain(&mut self, mut keep: impl FnMut(Field<'_>) -> bool) {
        let text = &self.text;
        self.entries.retain(|entry| keep(field(text, entry)));
    }

    /// The fields of the message, pseudo-header fields left out.
    pub fn iter(&self) -> impl Iterator<Item = Field<'_>> {
        self.all().filter(|field| !field.name.is_pseudo())
    }

    /// All fields, pseudo-header fields among them.
    pub fn all(&self) -> impl Iterator<Item = Field<'_>> {
        self.entries.iter().map(|entry| field(&self.text, entry))
    }

    /// How many fields, pseudo-header fields among them.
    #[must_use]
    #[inline]
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Removes all fields; the memory stays for the next ones.
    pub fn clear(&mut self) {
        self.entries.clear();
        self.text.clear();
    }

    /// The size of the list as RFC 9113 §6.5.2 counts it.
    #[must_use]
    pub fn list_size(&self) -> usize {
        let size = |field: Field<'_>| field.name.as_str().len() + field.value.len() + FIELD_OVERHEAD;
        self.all().map(size).sum()
    }

    /// Bytes of memory that it holds.
    #[must_use]
    pub fn held(&self) -> usize {
        self.text.capacity() + self.entries.capacity() * size_of::<Entry>()
    }

    /// The fields as HPACK needs them: only the pseudo-header fields, or only the others.
    #[inline]
    pub(crate) fn raw(&self, pseudo: bool) -> impl Iterator<Item = RawField<'_>> {
        let wanted = move |entry: &&Entry| (entry.number <= name::PSEUDO_LAST) == pseudo;
        self.entries.iter().filter(wanted).map(|entry| RawField {
            number: entry.number,
            name: name_text(&self.text, entry),
            value: field_value(&self.text, entry).as_bytes(),
            sensitive: entry.sensitive,
        })
    }

    /// Appends a field whose name and value were checked; `name` is empty if `number` is that of a known one.
    pub(crate) fn push(&mut self, number: u16, name: &[u8], value: &[u8], sensitive: bool) {
        let at = self.text.len();
        self.text.extend_from_slice(name);
        self.text.extend_from_slice(value);
        self.push_entry(number, at, name.len() as u32, sensitive);
    }

    /// As [`Fields::push`], where the value lies behind a name of `name_len` bytes.
    #[inline]
    pub(crate) fn push_text(&mut self, number: u16, name_len: u32, text: &[u8]) {
        let at = self.text.len();
        self.text.extend_from_slice(text);
        self.push_entry(number, at, name_len, false);
    }

    /// Appends the field whose text begins at `at`: the limits of a list keep it below 4 GiB.
    #[inline]
    fn push_entry(&mut self, number: u16, at: usize, name_len: u32, sensitive: bool) {
        let value_len = (self.text.len() - at) as u32 - name_len;
        self.entries.push(Entry {
            number,
            sensitive,
            name_len,
            at: at as u32,
            value_len,
        });
    }

    /// Names that are not known, and values, in one piece.
    #[inline]
    pub(crate) fn text(&self) -> &[u8] {
        &self.text
    }

    #[inline]
    pub(crate) fn text_len(&self) -> usize {
        self.text.len()
    }

    /// The fields of `other` in the place of those here; the memory is used again.
    #[inline]
    pub(crate) fn copy_from(&mut self, other: &Self) {
        self.entries.clone_from(&other.entries);
        self.text.clone_from(&other.text);
    }

    /// A copy that holds no more memory than it needs.
    pub(crate) fn compact(&self) -> Self {
        Self {
            entries: self.entries.as_slice().into(),
            text: self.text.as_slice().into(),
        }
    }

    /// Whether both hold the same bytes. Fields that are equal may lie in memory otherwise.
    #[inline]
    pub(crate) fn is_copy_of(&self, other: &Self) -> bool {
        self.text == other.text && self.entries == other.entries
    }

    /// Memory for that much more.
    #[inline]
    pub(crate) fn reserve(&mut self, fields: usize, bytes: usize) {
        self.entries.reserve(fields);
        self.text.reserve(bytes);
    }

    /// Appends the fields of a map.
    pub(crate) fn extend_of_map(&mut self, map: &http::HeaderMap) {
        for (name, value) in map {
            if value.is_sensitive() {
                self.append_sensitive(name, value);
            } else {
                self.append(name, value);
            }
        }
    }

    /// Writes the text of a field; `None` beyond 4 GiB, which no limit allows.
    #[inline]
    fn write(&mut self, name: Name<'_>, value: Value<'_>, sensitive: bool) -> Option<Entry> {
        let at = u32::try_from(self.text.len()).ok()?;
        let number = name.number().unwrap_or(OTHER);
        let mut name_len = 0;
        if number == OTHER {
            name_len = u32::try_from(name.as_str().len()).ok()?;
            self.text.extend_from_slice(name.as_str().as_bytes());
            // Names come in lower case from peers; text of ours may be as 3GPP writes it.
            self.text[at as usize..].make_ascii_lowercase();
        }
        let value_len = u32::try_from(value.len()).ok()?;
        self.text.extend_from_slice(value.as_bytes());
        Some(Entry {
            number,
            sensitive,
            name_len,
            at,
            value_len,
        })
    }

    /// Writes a field whose value is what `value` prints; `None` when a field cannot hold that.
    fn print(&mut self, name: Name<'_>, value: impl fmt::Display) -> Option<Entry> {
        let before = self.text.len();
        let mut entry = self.write(name, Value::again(b""), false)?;
        let at = self.text.len();
        let printed = fmt::write(&mut Printed(&mut self.text), format_args!("{value}")).is_ok();
        let text = self.text.get(at..).unwrap_or_default();
        match u32::try_from(text.len()) {
            Ok(len) if printed && Value::new(text).is_ok() => {
                entry.value_len = len;
                Some(entry)
            }
            _ => {
                self.text.truncate(before);
                None
            }
        }
    }

    /// Where the first field of this name stands.
    #[inline]
    fn position(&self, name: Name<'_>) -> Option<usize> {
        match name.number() {
            // Nearly all names are known, where this is called: the other case is then left out.
            Some(number) => self.position_of(number),
            None => self.position_of_other(name),
        }
    }

    fn position_of_other(&self, name: Name<'_>) -> Option<usize> {
        self.entries.iter().position(|entry| self.has_name(entry, name))
    }

    /// Where the first field of a known name stands: one comparison for each field.
    fn position_of(&self, number: u16) -> Option<usize> {
        self.entries.iter().position(|entry| entry.number == number)
    }

    #[inline]
    fn has_name(&self, entry: &Entry, name: Name<'_>) -> bool {
        has_name(&self.text, entry, name)
    }

    #[inline]
    fn value(&self, entry: &Entry) -> Value<'_> {
        field_value(&self.text, entry)
    }
}

#[inline(always)]
fn has_name(text: &[u8], entry: &Entry, name: Name<'_>) -> bool {
    match name.number() {
        Some(number) => entry.number == number,
        None => {
            entry.number == OTHER && name_text(text, entry).eq_ignore_ascii_case(name.as_str().as_bytes())
        }
    }
}

#[inline]
fn name_text<'a>(text: &'a [u8], entry: &Entry) -> &'a [u8] {
    let at = entry.at as usize;
    text.get(at..at + entry.name_len as usize).unwrap_or_default()
}

#[inline]
fn field_value<'a>(text: &'a [u8], entry: &Entry) -> Value<'a> {
    let at = (entry.at + entry.name_len) as usize;
    Value::again(text.get(at..at + entry.value_len as usize).unwrap_or_default())
}

#[inline]
fn field<'a>(text: &'a [u8], entry: &Entry) -> Field<'a> {
    Field {
        name: Name::of_number(entry.number).unwrap_or_else(|| Name::again(name_text(text, entry))),
        value: field_value(text, entry),
        sensitive: entry.sensitive,
    }
}

/// The digits of a number, at the end of `digits`.
pub(crate) fn decimal(mut number: u64, digits: &mut [u8; 20]) -> &[u8] {
    let mut at = digits.len();
    loop {
        at -= 1;
        digits[at] = b'0' + (number % 10) as u8;
        number /= 10;
        if number == 0 {
            return &digits[at..];
        }
    }
}

/// Text is printed to the end of it.
struct Printed<'a>(&'a mut Vec<u8>);

impl fmt::Write for Printed<'_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.0.extend_from_slice(text.as_bytes());
        Ok(())
    }
}

impl fmt::Debug for Fields {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map()
            .entries(self.all().map(|field| (field.name, field.value)))
            .finish()
    }
}

/// Two blocks are equal if they have the same fields in the same order.
impl PartialEq for Fields {
    fn eq(&self, other: &Self) -> bool {
        self.all().eq(other.all())
    }
}

impl Eq for Fields {}

impl From<&http::HeaderMap> for Fields {
    fn from(map: &http::HeaderMap) -> Self {
        let mut fields = Self::with_capacity(map.len() + 4, 512);
        fields.extend_of_map(map);
        fields
    }
}

impl From<&Fields> for http::HeaderMap {
    /// Without pseudo-header fields.
    fn from(fields: &Fields) -> Self {
        let mut map = Self::with_capacity(fields.len());
        for field in fields.iter() {
            let name = http::HeaderName::from_bytes(field.name.as_str().as_bytes());
            let value = http::HeaderValue::from_bytes(field.value.as_bytes());
            if let (Ok(name), Ok(mut value)) = (name, value) {
                value.set_sensitive(field.sensitive);
                map.append(name, value);
            }
        }
        map
    }
}

#[cfg(test)]
mod tests {
    use super::name::{ACCEPT, CONTENT_LENGTH, PATH, SBI_OCI};
    use super::*;
    use proptest::prelude::*;

    fn value(text: &str) -> Value<'_> {
        Value::new(text.as_bytes()).unwrap()
    }

    #[test]
    fn fields_keep_their_order_and_their_values() {
        let mut fields = Fields::new();
        fields.append(PATH, value("/a"));
        fields.append("x-one", value("1"));
        fields.append(ACCEPT, value("a"));
        fields.append("X-One", value("2"));
        fields.append("3gpp-Sbi-Oci", value("load"));
        assert_eq!(fields.get(SBI_OCI), Some(value("load")));
        assert_eq!(
            fields.get_all("x-ONE").collect::<Vec<_>>(),
            [value("1"), value("2")]
        );
        fields.set("x-one", value("3"));
        fields.set(PATH, value("/longer"));
        fields.set_number(CONTENT_LENGTH, 1_024);
        let all: Vec<String> = fields
            .all()
            .map(|f| format!("{}={:?}", f.name, f.value))
            .collect();
        let expected = [
            ":path=\"/longer\"",
            "x-one=\"3\"",
            "accept=\"a\"",
            "3gpp-sbi-oci=\"load\"",
            "content-length=\"1024\"",
        ];
        assert_eq!(all, expected);
        assert_eq!((fields.iter().count(), fields.len()), (4, 5));
        assert!(fields.remove(ACCEPT) && !fields.remove(ACCEPT) && !fields.contains(ACCEPT));
    }

    #[test]
    fn what_is_printed_is_a_value_or_nothing() {
        let mut fields = Fields::new();
        fields.append(ACCEPT, value("a"));
        fields.append_sensitive("x-one", value("1"));
        fields.append(ACCEPT, value("b"));
        assert!(fields.set_printed(ACCEPT, format_args!("{}%", 5)));
        assert!(fields.append_printed("X-One", 2));
        let before = (fields.clone(), fields.text.len());
        assert!(
            !fields.set_printed(ACCEPT, "a\nb")
                && !fields.set_printed(ACCEPT, "a ")
                && !fields.append_printed("x-two", "\0")
        );
        assert_eq!((fields.clone(), fields.text.len()), before);
        fields.set_sensitive("x-three", value("3"));
        let all: Vec<_> = fields
            .all()
            .map(|f| (f.name.as_str(), f.value, f.sensitive))
            .collect();
        let expected = [
            ("accept", value("5%"), false),
            ("x-one", value("1"), true),
            ("x-one", value("2"), false),
            ("x-three", value("3"), true),
        ];
        assert_eq!(all, expected);
    }

    #[test]
    fn values_have_no_control_characters_and_no_blanks_around() {
        for invalid in ["a\r\nb", "\0", "\x7f", "a\x1f", " a", "a ", "\ta", "a\t", " "] {
            assert_eq!(Value::new(invalid.as_bytes()), Err(InvalidValue));
        }
        assert_eq!(value("a\tb").to_str(), Ok("a\tb"));
        let padded = http::HeaderValue::from_static(" a b\t");
        assert_eq!(Value::from(&padded), "a b");
        assert_eq!(Value::new(b"\xff").unwrap().to_str(), Err(NotText));
    }

    proptest! {
        #[test]
        fn a_block_is_a_list_of_pairs(steps in proptest::collection::vec((0..4_u8, "[a-c]|accept|3gpp-sbi-oci", "([!-~]([ -~]{0,7}[!-~])?)?"), 0..40)) {
            let (mut fields, mut list) = (Fields::new(), Vec::<(String, String)>::new());
            for (step, name, text) in steps {
                match step {
                    0 | 1 => {
                        fields.append(name.as_str(), value(&text));
                        list.push((name, text));
                    }
                    2 => {
                        let had = list.iter().any(|(n, _)| *n == name);
                        prop_assert_eq!(fields.remove(name.as_str()), had);
                        list.retain(|(n, _)| *n != name);
                    }
                    _ => {
                        fields.set(name.as_str(), value(&text));
                        match list.iter().position(|(n, _)| *n == name) {
                            None => list.push((name, text)),
                            Some(first) => {
                                list[first].1 = text;
                                let mut at = 0;
                                list.retain(|(n, _)| { at += 1; at <= first + 1 || *n != name });
                            }
                        }
                    }
                }
                let all: Vec<_> = fields.all().map(|f| (f.name.to_string(), f.value.to_str().unwrap().to_owned())).collect();
                prop_assert_eq!(&all, &list);
                prop_assert_eq!(fields.list_size(), list.iter().map(|(n, v)| n.len() + v.len() + 32).sum::<usize>());
            }
            let there_and_back = Fields::from(&http::HeaderMap::from(&fields));
            prop_assert_eq!(there_and_back.len(), fields.len());
        }
    }
}
