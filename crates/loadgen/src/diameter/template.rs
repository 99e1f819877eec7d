//! A message parsed once from text; each use patches a few digits.
//!
//! The text is that of [`diameter_proto::text`], with holes: `Session-Id = "mme{client:3};{session:10}"` is a value of
//! which three and ten digits are filled in for each message. Holes stand in values of top-level AVPs that are text,
//! and are decimal digits. The rest of the message is not checked at run time, so each template has a test in its own
//! module.

use diameter_proto::text::{self, TextError};
use diameter_proto::{AvpType, Dictionary, Message};

/// The placeholder of a digit until it is filled in; no other value of the lab has it.
const BLANK: char = '~';

/// A template cannot be made.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TemplateError {
    /// The text is not a valid message.
    #[error("{0}")]
    Text(#[from] TextError),
    /// A hole is not of the form `{name:digits}`, or is where none can be.
    #[error("{0:?} is not a hole; use {{name:digits}} in the text of a top-level AVP")]
    Hole(String),
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Hole {
    name: String,
    offset: usize,
    length: usize,
}

/// A message with holes.
#[derive(Clone, Debug)]
pub struct Template {
    bytes: Vec<u8>,
    holes: Vec<Hole>,
}

/// A kind of hole, by its number in the template; found once, used often.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Places(smallvec::SmallVec<[(u32, u32); 2]>);

impl Template {
    /// Reads a template.
    ///
    /// # Errors
    /// When the text is not a valid message, or a hole is not where it can be.
    pub fn parse(text: &str) -> Result<Self, TemplateError> {
        let mut names: Vec<(String, usize)> = Vec::new();
        let mut plain = String::with_capacity(text.len());
        let mut rest = text;
        // A brace that opens a group is followed by a blank; one that opens a hole by its name.
        while let Some(at) = rest.find('{') {
            let (before, from) = rest.split_at(at);
            plain.push_str(before);
            let inner = from.get(1..).unwrap_or_default();
            if !inner.starts_with(|c: char| c.is_ascii_lowercase()) {
                plain.push('{');
                rest = inner;
                continue;
            }
            let end = inner.find('}').unwrap_or(inner.len());
            let wrong = || TemplateError::Hole(inner[..end].to_owned());
            let (name, digits) = inner[..end].split_once(':').ok_or_else(wrong)?;
            let digits: usize = digits.parse().map_err(|_| wrong())?;
            plain.extend(std::iter::repeat_n(BLANK, digits));
            names.push((name.to_owned(), digits));
            rest = inner.get(end + 1..).unwrap_or_default();
        }
        plain.push_str(rest);
        let message = text::parse(&plain, Dictionary::standard())?;
        let mut bytes = message.as_bytes().to_vec();
        let mut holes = Vec::new();
        let mut names = names.into_iter();
        let start = message.as_bytes().as_ptr() as usize;
        for avp in message.avps().map_while(Result::ok) {
            let is_text = Dictionary::standard().avp(avp.key()).is_some_and(|definition| {
                matches!(definition.kind, AvpType::Utf8String | AvpType::DiameterIdentity)
            });
            if !is_text {
                continue;
            }
            let mut at = avp.data.as_ptr() as usize - start;
            let end = at + avp.data.len();
            while at < end {
                if bytes[at] != BLANK as u8 {
                    at += 1;
                    continue;
                }
                let Some((name, length)) = names.next() else { break };
                bytes[at..at + length].fill(b'0');
                holes.push(Hole {
                    name,
                    offset: at,
                    length,
                });
                at += length;
            }
        }
        match names.next() {
            Some((name, _)) => Err(TemplateError::Hole(name)),
            None => Ok(Self { bytes, holes }),
        }
    }

    /// The same template with a hole filled in permanently.
    #[must_use]
    pub fn with(mut self, name: &str, number: u64) -> Self {
        let places = self.places(name);
        fill_in(&mut self.bytes, &places, number);
        self.holes.retain(|hole| hole.name != name);
        self
    }

    /// Where the holes of this name are.
    #[must_use]
    pub fn places(&self, name: &str) -> Places {
        let mine = self.holes.iter().filter(|hole| hole.name == name);
        Places(
            mine.map(|hole| (hole.offset as u32, hole.length as u32))
                .collect(),
        )
    }

    /// The message with zeros in its holes.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The message with zeros in its holes, as a message.
    #[must_use]
    pub fn message(&self) -> Message<&[u8]> {
        // `parse` took the bytes from a message, and only digits have changed since.
        Message::parse(&self.bytes[..]).unwrap_or_else(|_| unreachable!("the bytes are those of a message"))
    }
}

/// Writes a number into holes, with leading zeros; digits that have no room are left out at the front.
pub fn fill_in(message: &mut [u8], places: &Places, number: u64) {
    for (offset, length) in &places.0 {
        let (from, to) = (*offset as usize, (*offset + *length) as usize);
        let Some(digits) = message.get_mut(from..to) else {
            continue;
        };
        let mut rest = number;
        for digit in digits.iter_mut().rev() {
            *digit = b'0' + (rest % 10) as u8;
            rest /= 10;
        }
    }
}

/// Text that brings a template nearest to `bytes`: the largest fitting number of `unit`s, at `{more}` in `text`.
///
/// # Errors
/// When it is not a valid template.
pub fn fill(text: &str, unit: impl Fn(usize) -> String, bytes: usize) -> Result<Template, TemplateError> {
    let with = |count: usize| {
        let more: String = (0..count).map(&unit).collect();
        Template::parse(&text.replace("{more}", &more))
    };
    let bare = with(0)?;
    let one = with(1)?.bytes.len().saturating_sub(bare.bytes.len()).max(1);
    let count = (bytes.saturating_sub(bare.bytes.len()) + one / 2) / one;
    with(count)
}

#[cfg(test)]
mod tests {
    use super::*;
    use diameter_proto::known;

    const TEXT: &str = r#"ULR {
        Session-Id = "mme{client:3};{session:10};x"
        Vendor-Specific-Application-Id = { Vendor-Id = 10415 }
        Origin-Host = "mme{client:3}.example"
        User-Name = "00101{imsi:10}"
        {more}
    }"#;

    #[test]
    fn holes_are_filled_in_wherever_they_are() {
        let template = fill(
            TEXT,
            |n| format!("Active-APN = {{ Context-Identifier = {n} }}\n"),
            400,
        )
        .unwrap();
        assert!(
            (template.as_bytes().len() as i64 - 400).abs() < 20,
            "{}",
            template.as_bytes().len()
        );
        let template = template.with("client", 42);
        let mut bytes = template.as_bytes().to_vec();
        fill_in(&mut bytes, &template.places("session"), 12_345_678_901);
        fill_in(&mut bytes, &template.places("imsi"), 7);
        let message = Message::parse(&bytes[..]).unwrap();
        assert_eq!(message.require(known::SESSION_ID).unwrap(), "mme042;2345678901;x");
        assert_eq!(message.require(known::ORIGIN_HOST).unwrap(), "mme042.example");
        assert_eq!(message.require(known::USER_NAME).unwrap(), "001010000000007");
        assert_eq!(template.places("client"), Places::default());
    }

    #[test]
    fn mistakes_are_reported() {
        for (text, part) in [
            ("ULR { User-Name = \"{imsi}\" }", "imsi"),
            ("ULR { Failed-AVP = { User-Name = \"{imsi:4}\" } }", "imsi"),
            ("ULR { Usr-Name = \"{imsi:4}\" }", "User-Name"),
        ] {
            let error = Template::parse(text).unwrap_err().to_string();
            assert!(error.contains(part), "{error}");
        }
    }
}
