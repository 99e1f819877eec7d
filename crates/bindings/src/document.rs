//! A resource as JSON: every member survives, known or not.

use bytes::Bytes;
use records::{DecodeError, Key};
use serde_json::{Map, Value};

use super::pack;

/// Identity of a resource: a UUID in URIs, sixteen bytes in the store.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct BindingId(pub [u8; 16]);

impl BindingId {
    /// A fresh one.
    #[must_use]
    pub fn random() -> Self {
        Self(*uuid::Uuid::new_v4().as_bytes())
    }

    /// Of the last segment of a URI; `None` for what this BSF never gave out.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        uuid::Uuid::try_parse(text)
            .ok()
            .map(|uuid| Self(*uuid.as_bytes()))
    }
}

impl std::fmt::Display for BindingId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        uuid::Uuid::from_bytes(self.0).hyphenated().fmt(f)
    }
}

/// What audits have found of a resource. Kept with it, and never shown to consumers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Audited {
    /// Audits in a row that did not find its PCF.
    pub attempts: u32,
    /// When it was audited last, in microseconds since 1970.
    pub at: u64,
    /// When a PCF wrote it last: audits write as well.
    pub written: u64,
}

/// Begins what stands at the end of stored JSON that has been audited: with a space, which nothing that we write
/// of a consumer has there.
const AUDITED: &str = ", \"x-audit\":[";

impl Audited {
    /// Takes what [`Document::encode`] appended off a text.
    fn take(text: Bytes) -> (Bytes, Option<Self>) {
        // Three numbers, and what stands around them.
        const LONGEST: usize = 80;
        let from = text.len().saturating_sub(LONGEST);
        let tail = text.get(from..).unwrap_or_default();
        let found = tail
            .strip_suffix(b"]}")
            .and_then(|tail| Some((tail, last_place(tail, AUDITED.as_bytes())?)));
        let Some((tail, place)) = found else {
            return (text, None);
        };
        let read = || {
            let numbers = std::str::from_utf8(tail.get(place + AUDITED.len()..)?).ok()?;
            let mut numbers = numbers.split(',');
            let audited = Self {
                attempts: numbers.next()?.parse().ok()?,
                at: numbers.next()?.parse().ok()?,
                written: numbers.next()?.parse().ok()?,
            };
            numbers.next().is_none().then_some(audited)
        };
        let Some(audited) = read() else {
            return (text, None);
        };
        let mut rest = text.get(..from + place).unwrap_or_default().to_vec();
        rest.push(b'}');
        (rest.into(), Some(audited))
    }
}

/// The last place of a piece in some bytes.
fn last_place(bytes: &[u8], piece: &[u8]) -> Option<usize> {
    bytes.windows(piece.len()).rposition(|window| window == piece)
}

/// A JSON object with an identity, as value and as text.
#[derive(Clone, Debug, PartialEq)]
pub struct Document {
    /// Its identity.
    pub id: BindingId,
    value: Value,
    text: Bytes,
    packed: bool,
    audited: Option<Audited>,
}

impl Document {
    /// A document of an object. `packed`: kept in the store's compact form, which only this function reads;
    /// otherwise as JSON.
    #[must_use]
    pub fn new(id: BindingId, value: Value, packed: bool) -> Self {
        let mut document = Self {
            id,
            value,
            text: Bytes::new(),
            packed,
            audited: None,
        };
        document.write();
        document
    }

    fn write(&mut self) {
        // A value of serde_json always serialises.
        self.text = serde_json::to_vec(&self.value).unwrap_or_default().into();
    }

    /// What audits have found of it; nothing since a PCF wrote it last.
    #[must_use]
    pub fn audited(&self) -> Option<Audited> {
        self.audited
    }

    /// The same after an audit.
    #[must_use]
    pub fn after_audit(&self, audited: Audited) -> Self {
        Self {
            audited: Some(audited),
            ..self.clone()
        }
    }

    /// Its JSON.
    #[must_use]
    pub fn text(&self) -> &Bytes {
        &self.text
    }

    /// Its value.
    #[must_use]
    pub fn value(&self) -> &Value {
        &self.value
    }

    /// A member.
    #[must_use]
    pub fn member(&self, name: &str) -> Option<&Value> {
        self.value.get(name)
    }

    /// A member that is a text.
    #[must_use]
    pub fn text_of(&self, name: &str) -> Option<&str> {
        self.value.get(name)?.as_str()
    }

    /// The texts of a member that is a list.
    pub fn texts_of<'a>(&'a self, name: &str) -> impl Iterator<Item = &'a str> + use<'a> {
        let list = self.value.get(name).and_then(Value::as_array);
        list.into_iter().flatten().filter_map(Value::as_str)
    }

    /// Changes its members.
    pub fn change(&mut self, change: impl FnOnce(&mut Map<String, Value>)) {
        if let Some(members) = self.value.as_object_mut() {
            change(members);
            self.write();
        }
    }

    /// Its key in the store.
    #[must_use]
    pub fn key(&self) -> Key {
        Key::from_slice(&self.id.0)
    }

    /// Appends it as the store keeps it.
    pub fn encode(&self, out: &mut Vec<u8>) {
        let with_audit = self.audited.and_then(|audited| {
            let open = self.text.strip_suffix(b"}")?;
            let Audited {
                attempts,
                at,
                written,
            } = audited;
            Some([open, format!("{AUDITED}{attempts},{at},{written}]}}").as_bytes()].concat())
        });
        let text = with_audit.as_deref().unwrap_or(&self.text);
        if self.packed {
            pack::pack(text, out);
        } else {
            out.extend_from_slice(text);
        }
    }

    /// Reads what [`Document::encode`] wrote.
    ///
    /// # Errors
    /// When it is no document.
    pub fn decode(key: &[u8], stored: &[u8]) -> Result<Self, DecodeError> {
        let id = key
            .try_into()
            .map(BindingId)
            .map_err(|_| DecodeError(format!("an identity has 16 bytes, this one {}", key.len())))?;
        let packed = pack::is_packed(stored);
        let text = if packed {
            Bytes::from(pack::unpack(stored).map_err(|reason| DecodeError(reason.to_owned()))?)
        } else {
            Bytes::copy_from_slice(stored)
        };
        let (text, audited) = Audited::take(text);
        let value = serde_json::from_slice(&text).map_err(|error| DecodeError(error.to_string()))?;
        Ok(Self {
            id,
            value,
            text,
            packed,
            audited,
        })
    }
}

/// A key of at most 64 characters of a subscriber's identity, as the column of the database is wide. Longer
/// or foreign ones are cut and made distinct by a checksum; a lookup compares the whole.
pub(super) fn identity_key(identity: &str) -> Key {
    const WIDEST: usize = 64;
    if identity.len() <= WIDEST && identity.is_ascii() {
        return Key::from_slice(identity.as_bytes());
    }
    let mut key = Key::from_slice(format!("#{:08x}", crc32fast::hash(identity.as_bytes())).as_bytes());
    key.extend(identity.bytes().filter(u8::is_ascii).take(WIDEST - 9));
    key
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn what_audits_find_is_kept_and_not_shown() {
        let plain = json!({"supi": "imsi-1", "list": [1, 2]});
        for packed in [true, false] {
            let document = Document::new(BindingId([1; 16]), plain.clone(), packed);
            let audited = Audited {
                attempts: 2,
                at: 1_777_000_000_123_456,
                written: u64::MAX,
            };
            for one in [document.clone(), document.after_audit(audited)] {
                let mut stored = Vec::new();
                one.encode(&mut stored);
                let read = Document::decode(&[1; 16], &stored).unwrap();
                assert_eq!(read, one);
                assert_eq!((read.text(), read.value()), (document.text(), &plain));
            }
        }
        // A consumer's own member of that name is a member like any other.
        let odd = json!({"a": 1, "x-audit": [1, 2, 3]});
        let mut stored = Vec::new();
        Document::new(BindingId([1; 16]), odd.clone(), true).encode(&mut stored);
        let read = Document::decode(&[1; 16], &stored).unwrap();
        assert_eq!((read.value(), read.audited()), (&odd, None));
    }
}
