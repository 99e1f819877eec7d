//! BER (X.690) as a walk over elements, without recursion.
//!
//! An element of indefinite length ends where as many end-of-contents octets have come as lengths are open. The search
//! counts them, at most [`MAX_DEPTH`]: deeper nesting is refused, so that 1,000 open lengths cost 16 steps.

/// How deep indefinite lengths may nest. TCAP and MAP nest 10 deep with everything that is defined.
pub const MAX_DEPTH: usize = 16;

/// Why octets are not BER.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum BerFault {
    /// An element ends past the octets around it.
    #[error("an element ends past the octets around it")]
    Short,
    /// A tag of more than four octets.
    #[error("a tag has more than four octets")]
    LongTag,
    /// A length of more than four octets, or the reserved form.
    #[error("a length has a form that cannot be read")]
    Length,
    /// A primitive element of indefinite length.
    #[error("a primitive element has an indefinite length")]
    IndefinitePrimitive,
    /// Too many open lengths.
    #[error("indefinite lengths nest deeper than {MAX_DEPTH}")]
    Depth,
}

/// A tag as its octets, the first one most significant: `0x62`, `0x9f22`.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Tag(pub u32);

impl Tag {
    /// Integer.
    pub const INTEGER: Self = Self(0x02);
    /// Octet string.
    pub const OCTET_STRING: Self = Self(0x04);
    /// Object identifier.
    pub const OBJECT_IDENTIFIER: Self = Self(0x06);
    /// Sequence.
    pub const SEQUENCE: Self = Self(0x30);
}

/// One element.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Element<'a> {
    /// The tag.
    pub tag: Tag,
    /// The contents.
    pub value: &'a [u8],
}

impl<'a> Element<'a> {
    /// The elements within a constructed one.
    #[must_use]
    pub const fn elements(&self) -> Elements<'a> {
        Elements(self.value)
    }

    /// An integer of up to four octets.
    #[must_use]
    pub fn integer(&self) -> Option<i32> {
        let (first, rest) = self.value.split_first()?;
        if rest.len() > 3 {
            return None;
        }
        let sign = i32::from((*first).cast_signed());
        Some(
            rest.iter()
                .fold(sign, |number, octet| number << 8 | i32::from(*octet)),
        )
    }
}

/// A run of elements; returns an error once.
#[derive(Clone, Copy, Debug)]
pub struct Elements<'a>(&'a [u8]);

impl<'a> Elements<'a> {
    /// Those in octets.
    #[must_use]
    pub const fn new(octets: &'a [u8]) -> Self {
        Self(octets)
    }

    /// The next, when its tag is this one; else it stays.
    ///
    /// # Errors
    /// [`BerFault`].
    pub fn take_if(&mut self, tag: Tag) -> Result<Option<Element<'a>>, BerFault> {
        let before = *self;
        match self.next() {
            Some(Ok(element)) if element.tag == tag => Ok(Some(element)),
            Some(Err(fault)) => Err(fault),
            _ => {
                *self = before;
                Ok(None)
            }
        }
    }

    /// The first with a tag; `None` too where the octets are not BER before it.
    #[must_use]
    pub fn find_tag(self, tag: Tag) -> Option<Element<'a>> {
        self.map_while(Result::ok).find(|element| element.tag == tag)
    }
}

impl<'a> Iterator for Elements<'a> {
    type Item = Result<Element<'a>, BerFault>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.0.is_empty() {
            return None;
        }
        match element(self.0) {
            Ok((element, rest)) => {
                self.0 = rest;
                Some(Ok(element))
            }
            Err(fault) => {
                self.0 = &[];
                Some(Err(fault))
            }
        }
    }
}

/// A header: tag, length (`None` where indefinite), and its octets.
struct Head {
    tag: Tag,
    length: Option<usize>,
    octets: usize,
}

fn head(octets: &[u8]) -> Result<Head, BerFault> {
    let first = *octets.first().ok_or(BerFault::Short)?;
    let mut tag = u32::from(first);
    let mut at = 1;
    if first & 0x1f == 0x1f {
        loop {
            let octet = *octets.get(at).ok_or(BerFault::Short)?;
            if at == 4 {
                return Err(BerFault::LongTag);
            }
            tag = tag << 8 | u32::from(octet);
            at += 1;
            if octet & 0x80 == 0 {
                break;
            }
        }
    }
    let octet = *octets.get(at).ok_or(BerFault::Short)?;
    at += 1;
    let length = match octet {
        0..0x80 => Some(usize::from(octet)),
        0x80 if first & 0x20 == 0 => return Err(BerFault::IndefinitePrimitive),
        0x80 => None,
        0x81..=0x84 => {
            let count = usize::from(octet & 0x7f);
            let digits = octets.get(at..at + count).ok_or(BerFault::Short)?;
            at += count;
            Some(
                digits
                    .iter()
                    .fold(0_usize, |number, octet| number << 8 | usize::from(*octet)),
            )
        }
        _ => return Err(BerFault::Length),
    };
    Ok(Head {
        tag: Tag(tag),
        length,
        octets: at,
    })
}

fn element(octets: &[u8]) -> Result<(Element<'_>, &[u8]), BerFault> {
    let head = head(octets)?;
    let body = octets.get(head.octets..).ok_or(BerFault::Short)?;
    let (value, rest) = match head.length {
        Some(length) => body.split_at_checked(length).ok_or(BerFault::Short)?,
        None => indefinite(body)?,
    };
    Ok((Element { tag: head.tag, value }, rest))
}

/// Splits contents of indefinite length from what follows their end.
fn indefinite(body: &[u8]) -> Result<(&[u8], &[u8]), BerFault> {
    let (mut at, mut open) = (0, 1);
    loop {
        let rest = body.get(at..).ok_or(BerFault::Short)?;
        if let [0, 0, ..] = rest {
            open -= 1;
            if open == 0 {
                return Ok((
                    body.get(..at).ok_or(BerFault::Short)?,
                    rest.get(2..).unwrap_or_default(),
                ));
            }
            at += 2;
            continue;
        }
        let head = head(rest)?;
        at += head.octets;
        match head.length {
            Some(length) => at = at.checked_add(length).ok_or(BerFault::Short)?,
            None if open == MAX_DEPTH => return Err(BerFault::Depth),
            None => open += 1,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn first(octets: &[u8]) -> Result<Element<'_>, BerFault> {
        Elements::new(octets).next().unwrap()
    }

    #[test]
    fn lengths_and_tags() {
        assert_eq!(first(&[4, 1, 9]).unwrap().value, [9]);
        assert_eq!(first(&[4, 0x81, 1, 9]).unwrap().value, [9]);
        assert_eq!(first(&[4, 0x84, 0, 0, 0, 1, 9]).unwrap().value, [9]);
        assert_eq!(first(&[0x9f, 0x22, 1, 9]).unwrap().tag, Tag(0x9f22));
        assert_eq!(first(&[0x30, 0x80, 4, 1, 9, 0, 0]).unwrap().value, [4, 1, 9]);
        assert_eq!(first(&[4, 2, 9]), Err(BerFault::Short));
        assert_eq!(first(&[4]), Err(BerFault::Short));
        assert_eq!(first(&[4, 0x84, 0xff, 0xff, 0xff, 0xff]), Err(BerFault::Short));
        assert_eq!(first(&[4, 0x85, 0, 0, 0, 0, 1, 9]), Err(BerFault::Length));
        assert_eq!(first(&[4, 0xff]), Err(BerFault::Length));
        assert_eq!(first(&[4, 0x80, 0, 0]), Err(BerFault::IndefinitePrimitive));
        assert_eq!(first(&[0x1f, 0x81, 0x82, 0x83, 0x84, 0]), Err(BerFault::LongTag));
        assert_eq!(first(&[0x30, 0x80, 4, 1, 9]), Err(BerFault::Short));
    }

    #[test]
    fn a_thousand_open_lengths_are_refused() {
        let mut octets = [0x30, 0x80].repeat(1000);
        assert_eq!(first(&octets), Err(BerFault::Depth));
        octets.extend([0, 0].repeat(1000));
        assert_eq!(first(&octets), Err(BerFault::Depth));
        let mut deepest = [0x30, 0x80].repeat(MAX_DEPTH);
        deepest.extend([0, 0].repeat(MAX_DEPTH));
        assert!(first(&deepest).is_ok());
    }

    #[test]
    fn integers_have_a_sign() {
        let integer = |value: &[u8]| {
            let element = Element {
                tag: Tag::INTEGER,
                value,
            };
            element.integer()
        };
        assert_eq!(integer(&[0xff]), Some(-1));
        assert_eq!(integer(&[0x7f]), Some(127));
        assert_eq!(integer(&[0, 0x80]), Some(128));
        assert_eq!(integer(&[0x80, 0, 0, 0]), Some(i32::MIN));
        assert_eq!(integer(&[0, 0, 0, 0, 1]), None);
        assert_eq!(integer(&[]), None);
    }
}
