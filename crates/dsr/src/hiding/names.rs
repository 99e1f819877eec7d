//! Names that are replaced by others, wherever a message has them: as an identity, in a URI, a Session-Id or a text, in a group.

use std::borrow::Cow;

use ahash::AHashMap;
use diameter::proto::{Avp, AvpFlags, AvpWriter, Avps};

use crate::edit::Edit;
use crate::routing::find_lower;

/// Names in lower case, with those that take their place.
#[derive(Debug, Default)]
pub(crate) struct Names {
    names: AHashMap<Box<[u8]>, Box<[u8]>>,
    /// Bytes of the shortest name.
    shortest: usize,
}

/// Groups in groups that are read: those of messages have a few.
const MOST_DEPTH: u8 = 8;

impl Names {
    pub(crate) fn new<'n>(names: impl Iterator<Item = (&'n str, &'n str)>) -> Self {
        let pair = |(name, other): (&str, &str)| (lower(name), other.as_bytes().into());
        let names: AHashMap<Box<[u8]>, Box<[u8]>> = names.map(pair).collect();
        Self {
            shortest: names.keys().map(|name| name.len()).min().unwrap_or(usize::MAX),
            names,
        }
    }

    /// The name that takes the place of this one.
    pub(crate) fn get(&self, name: &[u8]) -> Option<&[u8]> {
        find_lower(&self.names, name).map(|other| &**other)
    }

    /// An AVP with the other names.
    pub(crate) fn edit<'e>(&self, avp: &Avp<'_>) -> Edit<'e> {
        match self.replace(avp.data, MOST_DEPTH) {
            Some(data) => Edit::Data(Cow::Owned(data)),
            None => Edit::Keep,
        }
    }

    /// Encoded AVPs with the other names; none: they have none of the names.
    pub(crate) fn replace_in(&self, avps: &[u8]) -> Option<Vec<u8>> {
        self.replace_group(avps, MOST_DEPTH)
    }

    /// Data of an AVP with the other names; none: it has none of the names.
    fn replace(&self, data: &[u8], depth: u8) -> Option<Vec<u8>> {
        if data.len() < self.shortest {
            return None;
        }
        match depth > 0 && is_group(data) {
            true => self.replace_group(data, depth - 1),
            false => self.replace_text(data),
        }
    }

    /// One pass, however deep groups are: those of an unknown sender may be deep.
    fn replace_group(&self, data: &[u8], depth: u8) -> Option<Vec<u8>> {
        let mut group: Option<AvpWriter> = None;
        let mut avps = Avps::new(data);
        loop {
            let before = data.len() - avps.remaining().len();
            let Some(Ok(avp)) = avps.next() else { break };
            match (self.replace(avp.data, depth), &mut group) {
                (Some(other), _) => {
                    let begun = || {
                        let mut group = AvpWriter::with_capacity(data.len());
                        group.append_encoded(data.get(..before).unwrap_or_default());
                        group
                    };
                    let group = group.get_or_insert_with(begun);
                    group.put_raw(avp.key(), avp.flags, &other);
                }
                (None, Some(group)) => {
                    group.copy(&avp);
                }
                (None, None) => {}
            }
        }
        group.map(|group| group.as_bytes().to_vec())
    }

    /// A name counts as a whole: not where it is a part of a longer one.
    fn replace_text(&self, data: &[u8]) -> Option<Vec<u8>> {
        let mut out: Option<Vec<u8>> = None;
        let mut copied = 0;
        let mut rest = 0;
        while let Some(begin) = data.iter().skip(rest).position(|byte| is_of_name(*byte)) {
            let begin = rest + begin;
            let tail = data.get(begin..).unwrap_or_default();
            let length = tail.iter().position(|byte| !is_of_name(*byte));
            rest = begin + length.unwrap_or(tail.len());
            let word = data.get(begin..rest).unwrap_or_default();
            // The dot at the end of a sentence.
            let dots = word.iter().rev().take_while(|byte| **byte == b'.').count();
            let name = word.get(..word.len() - dots).unwrap_or_default();
            if let Some(other) = self.get(name) {
                let out = out.get_or_insert_default();
                out.extend(data.get(copied..begin).unwrap_or_default());
                out.extend(other);
                copied = begin + name.len();
            }
        }
        out.map(|mut out| {
            out.extend(data.get(copied..).unwrap_or_default());
            out
        })
    }
}

pub(super) fn lower(name: &str) -> Box<[u8]> {
    name.to_ascii_lowercase().into_bytes().into()
}

/// Whether a byte may be one of a DiameterIdentity.
const fn is_of_name(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-' | b'_')
}

/// Whether data is that of a group, which no dictionary has to know. Text is never: its letters in place of a length say more bytes
/// than a message has.
fn is_group(data: &[u8]) -> bool {
    let known = AvpFlags::VENDOR.0 | AvpFlags::MANDATORY.0 | AvpFlags::PROTECTED.0;
    let is_valid = |avp: Avp<'_>| avp.flags.0 & !known == 0;
    !data.is_empty() && Avps::new(data).all(|avp| avp.is_ok_and(is_valid))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn names() -> Names {
        Names::new([("Pcrf1.example", "a.edge"), ("home.example", "edge.example")].into_iter())
    }

    fn replaced(text: &str) -> Option<String> {
        let other = names().replace(text.as_bytes(), MOST_DEPTH)?;
        Some(String::from_utf8(other).unwrap())
    }

    #[test]
    fn names_are_replaced_in_text_as_a_whole() {
        let expected = [
            ("pcrf1.example", Some("a.edge")),
            ("PCRF1.EXAMPLE;1;2", Some("a.edge;1;2")),
            (
                "aaa://pcrf1.example:3868;transport=tcp",
                Some("aaa://a.edge:3868;transport=tcp"),
            ),
            ("no route to pcrf1.example.", Some("no route to a.edge.")),
            ("(pcrf1.example, home.example)", Some("(a.edge, edge.example)")),
            ("xpcrf1.example", None),
            ("pcrf1.example.org", None),
            ("pcrf1.home.example", None),
            ("pcrf1", None),
            ("", None),
        ];
        for (text, other) in expected {
            assert_eq!(replaced(text).as_deref(), other, "{text}");
        }
    }

    #[test]
    fn names_are_replaced_in_groups_of_groups() {
        use diameter::proto::known;
        let mut avps = AvpWriter::with_capacity(0);
        avps.group(known::FAILED_AVP, |group| {
            group
                .put(known::USER_NAME, "before")
                .put(known::DESTINATION_HOST, "pcrf1.example")
                .group(known::PROXY_INFO, |inner| {
                    inner.put(known::PROXY_HOST, "pcrf1.example");
                })
                .put(known::USER_NAME, "behind");
        });
        let other = names().replace_in(avps.as_bytes()).unwrap();
        let failed = Avps::new(&other).find(known::FAILED_AVP).unwrap().unwrap();
        assert_eq!(
            failed.group().get(known::DESTINATION_HOST).unwrap(),
            Some("a.edge")
        );
        let kept = failed.group().map_while(Result::ok);
        let kept = kept.filter(|avp| avp.is(known::USER_NAME));
        assert!(kept.map(|avp| avp.data).eq([&b"before"[..], b"behind"]));
        let inner = failed.group().find(known::PROXY_INFO).unwrap().unwrap();
        assert_eq!(inner.group().get(known::PROXY_HOST).unwrap(), Some("a.edge"));
        assert!(names().replace_in(&other).is_none());
    }

    proptest! {
        #[test]
        fn any_bytes_are_read(bytes in proptest::collection::vec(any::<u8>(), 0..64)) {
            let _ = names().replace(&bytes, MOST_DEPTH);
        }

        #[test]
        fn what_is_around_a_name_stays(before in "[ ;:/@,]{0,9}", after in "[ ;:/@,]{0,9}") {
            let text = format!("{before}pcrf1.example{after}");
            prop_assert_eq!(replaced(&text), Some(format!("{before}a.edge{after}")));
        }
    }
}
