//! The memory of an answer, in which names point to the name of the question (RFC 1035 §4.1.4).

use std::convert::Infallible;

use domain::base::name::ToName;
use domain::base::wire::Composer;
use domain::dep::octseq::{OctetsBuilder, Truncate};

/// Octets of a message. Owners are the name of the question or end it, so that no other place is remembered: the search for one took
/// a third of the time of an answer.
#[derive(Default)]
pub(super) struct Target {
    octets: Vec<u8>,
    /// Where the name of the question begins and ends, its root included. Empty before it is written.
    question: (usize, usize),
}

impl Target {
    /// Takes the memory of an earlier answer.
    pub(super) fn new(mut octets: Vec<u8>) -> Self {
        octets.clear();
        Self {
            octets,
            question: (0, 0),
        }
    }

    pub(super) fn into_octets(self) -> Vec<u8> {
        self.octets
    }

    /// Where the name that was written from `begin` on can end, and what is there instead of the rest: a place within the question.
    fn pointer(&self, begin: usize) -> Option<(usize, u16)> {
        let (first, end) = self.question;
        let question = self.octets.get(first..end)?;
        let mut at = begin;
        loop {
            let rest = self.octets.get(at..)?;
            let length = usize::from(*rest.first()?);
            // The root is shorter than a pointer.
            if length == 0 {
                return None;
            }
            if let Some(place) = question.len().checked_sub(rest.len())
                && question.get(place..)?.eq_ignore_ascii_case(rest)
                && is_label(question, place)
            {
                return Some((at, u16::try_from(first + place).ok()?));
            }
            at += 1 + length;
        }
    }
}

/// Whether a label of a name begins there.
fn is_label(name: &[u8], place: usize) -> bool {
    let mut at = 0;
    while at < place
        && let Some(length) = name.get(at)
    {
        at += 1 + usize::from(*length);
    }
    at == place
}

impl Composer for Target {
    fn append_compressed_name<N: ToName + ?Sized>(&mut self, name: &N) -> Result<(), Infallible> {
        let begin = self.octets.len();
        name.compose(self)?;
        if self.question == (0, 0) {
            self.question = (begin, self.octets.len());
        } else if let Some((at, place)) = self.pointer(begin) {
            self.octets.truncate(at);
            self.append_slice(&(0xc000 | place).to_be_bytes())?;
        }
        Ok(())
    }

    fn can_compress(&self) -> bool {
        true
    }
}

impl OctetsBuilder for Target {
    type AppendError = Infallible;

    fn append_slice(&mut self, slice: &[u8]) -> Result<(), Infallible> {
        self.octets.extend_from_slice(slice);
        Ok(())
    }
}

impl Truncate for Target {
    fn truncate(&mut self, length: usize) {
        self.octets.truncate(length);
        if length < self.question.1 {
            self.question = (0, 0);
        }
    }
}

impl AsRef<[u8]> for Target {
    fn as_ref(&self) -> &[u8] {
        &self.octets
    }
}

impl AsMut<[u8]> for Target {
    fn as_mut(&mut self) -> &mut [u8] {
        &mut self.octets
    }
}

#[cfg(test)]
mod tests {
    use domain::base::Name;
    use domain::base::name::ParsedName;
    use domain::dep::octseq::Parser;
    use proptest::prelude::*;

    use super::*;

    /// Names with labels of few octets, some of which look like lengths.
    fn names() -> impl Strategy<Value = Name<Vec<u8>>> {
        let octet = prop::sample::select(vec![1_u8, 2, b'a', b'A', b'b']);
        let label = prop::collection::vec(octet, 1..4);
        prop::collection::vec(label, 0..6).prop_map(|labels| {
            let mut octets = Vec::new();
            for label in labels {
                octets.push(label.len() as u8);
                octets.extend(label);
            }
            octets.push(0);
            Name::from_octets(octets).unwrap()
        })
    }

    proptest! {
        #[test]
        fn each_name_reads_as_it_was_written(all in prop::collection::vec(names(), 1..6)) {
            let mut target = Target::new(vec![0xff; 40]);
            target.append_slice(&[0; 12]).unwrap();
            let mut places = Vec::new();
            for name in &all {
                places.push(target.octets.len());
                target.append_compressed_name(name).unwrap();
            }
            for (name, place) in all.iter().zip(places) {
                let mut parser = Parser::from_ref(target.octets.as_slice());
                parser.advance(place).unwrap();
                let read = ParsedName::parse(&mut parser).unwrap();
                prop_assert!(read.name_eq(name), "{read} instead of {name}");
            }
        }
    }

    #[test]
    fn the_question_and_its_ends_are_two_octets() {
        let name = |text: &str| text.parse::<Name<Vec<u8>>>().unwrap();
        let mut target = Target::new(Vec::new());
        target.append_slice(&[0; 12]).unwrap();
        let mut written = |text: &str| {
            let begin = target.octets.len();
            target.append_compressed_name(&name(text)).unwrap();
            target.octets[begin..].to_vec()
        };
        assert_eq!(written("1.4.E164.example"), b"\x011\x014\x04E164\x07example\0");
        assert_eq!(written("1.4.e164.example"), [0xc0, 12]);
        assert_eq!(written("e164.example"), [0xc0, 16]);
        assert_eq!(written("ns.example"), b"\x02ns\xc0\x15");
        assert_eq!(written("ns.test"), b"\x02ns\x04test\0");
        assert_eq!(written("."), [0]);
    }
}
