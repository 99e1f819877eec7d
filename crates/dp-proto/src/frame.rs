//! Frames: a length, a head, entries.

use std::marker::PhantomData;

use crate::entry::Entry;

/// The version of the protocol.
pub const VERSION: u8 = 1;
/// Most entries of a frame.
pub const MOST_ENTRIES: usize = 256;
/// Most octets of a frame behind its length: those of as many entries of the longest form.
pub const MOST_FRAME_BYTES: usize = 80_000;
/// Octets of the length.
const LENGTH_BYTES: usize = 4;
/// Octets of length, version, code and count.
pub const HEAD_BYTES: usize = LENGTH_BYTES + 4;

/// Why bytes are not a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Malformed {
    /// The length is out of bounds.
    #[error("a frame of {0} octets; expected 4 to {MOST_FRAME_BYTES}")]
    Length(u32),
    /// The version is another.
    #[error("version {0}; expected {VERSION}")]
    Version(u8),
    /// The frame has entries of another kind.
    #[error("a frame of kind {0}")]
    Code(u8),
    /// There are too many entries.
    #[error("{0} entries; expected at most {MOST_ENTRIES}")]
    Count(u16),
    /// An entry is not one, or the frame does not end with the last one.
    #[error("entry {0} is malformed")]
    Entry(usize),
}

/// A frame whose head is sound.
#[derive(Clone, Copy, Debug)]
pub struct Frame<'b, E> {
    count: usize,
    entries: &'b [u8],
    of: PhantomData<E>,
}

impl<'b, E: Entry<'b>> Frame<'b, E> {
    /// The frame at the beginning of `bytes`, and how many octets it has; none: it is not whole yet.
    ///
    /// # Errors
    /// When the bytes do not begin a frame of such entries. It is noticed with the first octets, before the rest arrives.
    pub fn split(bytes: &'b [u8]) -> Result<Option<(Self, usize)>, Malformed> {
        let Some((length, rest)) = bytes.split_first_chunk::<LENGTH_BYTES>() else {
            return Ok(None);
        };
        let length = u32::from_be_bytes(*length);
        let body = usize::try_from(length).unwrap_or(usize::MAX);
        if !(HEAD_BYTES - LENGTH_BYTES..=MOST_FRAME_BYTES).contains(&body) {
            return Err(Malformed::Length(length));
        }
        let Some((head, _)) = rest.split_first_chunk::<{ HEAD_BYTES - LENGTH_BYTES }>() else {
            return Ok(None);
        };
        let [version, code, high, low] = *head;
        let count = u16::from_be_bytes([high, low]);
        if version != VERSION {
            return Err(Malformed::Version(version));
        }
        if code != E::CODE {
            return Err(Malformed::Code(code));
        }
        if usize::from(count) > MOST_ENTRIES {
            return Err(Malformed::Count(count));
        }
        let Some(entries) = rest.get(HEAD_BYTES - LENGTH_BYTES..body) else {
            return Ok(None);
        };
        let frame = Self {
            count: usize::from(count),
            entries,
            of: PhantomData,
        };
        Ok(Some((frame, LENGTH_BYTES + body)))
    }

    /// The number of entries that the head names.
    #[must_use]
    pub const fn count(&self) -> usize {
        self.count
    }

    /// Hands each entry to `take`, in order.
    ///
    /// # Errors
    /// When an entry is not one; those before it were handed over.
    pub fn each(&self, mut take: impl FnMut(E)) -> Result<(), Malformed> {
        let mut rest = self.entries;
        for index in 0..self.count {
            let (entry, behind) = E::read(rest).ok_or(Malformed::Entry(index))?;
            rest = behind;
            take(entry);
        }
        match rest {
            [] => Ok(()),
            _ => Err(Malformed::Entry(self.count)),
        }
    }
}

/// Frames that are being written: entries are bundled, [`MOST_ENTRIES`] in each frame at most.
#[derive(Debug, Default)]
pub struct Bundle {
    out: Vec<u8>,
    /// Where the last frame begins, and its count of entries; none: it is closed.
    open: Option<(usize, u16)>,
}

impl Bundle {
    /// Appends an entry.
    pub fn push<'b, E: Entry<'b>>(&mut self, entry: &E) {
        let (start, count) = match self.open {
            Some((start, count)) if usize::from(count) < MOST_ENTRIES => (start, count),
            _ => {
                self.close();
                (self.begin(E::CODE), 0)
            }
        };
        entry.write(&mut self.out);
        self.open = Some((start, count + 1));
    }

    /// Appends a frame without entries.
    pub fn probe<'b, E: Entry<'b>>(&mut self) {
        self.close();
        self.open = Some((self.begin(E::CODE), 0));
        self.close();
    }

    fn begin(&mut self, code: u8) -> usize {
        let start = self.out.len();
        self.out.extend_from_slice(&[0; LENGTH_BYTES]);
        self.out.extend_from_slice(&[VERSION, code, 0, 0]);
        start
    }

    /// Ends the frame that is being written: what is pushed next begins another.
    pub fn close(&mut self) {
        let Some((start, count)) = self.open.take() else {
            return;
        };
        // Entries and frames are bounded far below 4 GiB.
        let length = (self.out.len() - start - LENGTH_BYTES) as u32;
        if let Some(head) = self.out.get_mut(start..start + HEAD_BYTES) {
            head[..LENGTH_BYTES].copy_from_slice(&length.to_be_bytes());
            head[HEAD_BYTES - 2..].copy_from_slice(&count.to_be_bytes());
        }
    }

    /// Whether nothing was written.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.out.is_empty()
    }

    /// The octets that were written so far.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.out.len()
    }

    /// Hands over all frames, whole, in place of what `out` holds, whose memory is used for the next ones.
    pub fn take_into(&mut self, out: &mut Vec<u8>) {
        self.close();
        out.clear();
        std::mem::swap(&mut self.out, out);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::entry::{Answer, Kind, Outcome, Query};

    fn query(id: u32, value: &str) -> Query<'_> {
        Query {
            id,
            kind: Kind::Imsi,
            service: b"lte-hss",
            value: value.as_bytes(),
        }
    }

    fn written(fill: impl FnOnce(&mut Bundle)) -> Vec<u8> {
        let (mut bundle, mut out) = (Bundle::default(), Vec::new());
        fill(&mut bundle);
        bundle.take_into(&mut out);
        out
    }

    #[test]
    fn queries_are_bundled_up_to_the_bound() {
        let bytes = written(|bundle| (0..300).for_each(|id| bundle.push(&query(id, "001010000000001"))));
        let (mut rest, mut counts, mut ids) = (&bytes[..], Vec::new(), Vec::new());
        while let Some((frame, length)) = Frame::<Query<'_>>::split(rest).unwrap() {
            counts.push(frame.count());
            frame.each(|query| ids.push(query.id)).unwrap();
            rest = &rest[length..];
        }
        assert_eq!((counts, rest.len()), (vec![256, 44], 0));
        assert_eq!(ids, (0..300).collect::<Vec<_>>());
    }

    #[test]
    fn the_longest_entries_fit_a_frame() {
        let (service, value) = ([b's'; crate::MOST_SERVICE_BYTES], [b'v'; 255]);
        let bytes = written(|bundle| {
            for id in 0..256 {
                bundle.push(&Query {
                    id,
                    kind: Kind::Name,
                    service: &service,
                    value: &value,
                });
            }
        });
        let (frame, length) = Frame::<Query<'_>>::split(&bytes).unwrap().unwrap();
        assert_eq!((frame.count(), length), (256, bytes.len()));
    }

    #[test]
    fn what_is_not_a_frame_is_refused_with_its_first_octets() {
        let refused = |bytes: &[u8]| Frame::<Query<'_>>::split(bytes).unwrap_err();
        assert_eq!(refused(b"GET / HTTP/1.1"), Malformed::Length(0x4745_5420));
        assert_eq!(refused(&[0, 0, 0, 3]), Malformed::Length(3));
        assert_eq!(refused(&[0, 0, 0, 9, 2, 1, 0, 1]), Malformed::Version(2));
        assert_eq!(refused(&[0, 0, 0, 9, 1, 2, 0, 1]), Malformed::Code(2));
        assert_eq!(refused(&[0, 0, 0, 9, 1, 1, 1, 1]), Malformed::Count(257));
        let mut bytes = written(|bundle| bundle.push(&query(7, "001")));
        // The kind of the entry.
        bytes[HEAD_BYTES + 4] = 9;
        let (frame, _) = Frame::<Query<'_>>::split(&bytes).unwrap().unwrap();
        assert_eq!(frame.each(|_| ()), Err(Malformed::Entry(0)));
        // One octet more than the entries have.
        let mut bytes = written(|bundle| bundle.push(&query(7, "001")));
        bytes.push(0);
        bytes[3] += 1;
        let (frame, _) = Frame::<Query<'_>>::split(&bytes).unwrap().unwrap();
        assert_eq!(frame.each(|_| ()), Err(Malformed::Entry(1)));
    }

    #[test]
    fn a_probe_is_a_frame_without_entries() {
        let bytes = written(Bundle::probe::<Answer<'_>>);
        assert_eq!(bytes, [0, 0, 0, 4, VERSION, 2, 0, 0]);
        let (frame, length) = Frame::<Answer<'_>>::split(&bytes).unwrap().unwrap();
        assert_eq!((frame.count(), length), (0, 8));
    }

    proptest! {
        #[test]
        fn answers_read_back_however_they_are_cut(
            rows in prop::collection::vec((any::<u32>(), 0_usize..6, "[a-z.]{1,40}"), 1..40),
            cut in 0_usize..4_000,
        ) {
            let answers: Vec<Answer<'_>> = rows
                .iter()
                .map(|(id, at, text)| {
                    let outcome = Outcome::ALL[*at];
                    let destination = if outcome.has_destination() { text.as_bytes() } else { b"" };
                    Answer { id: *id, outcome, destination }
                })
                .collect();
            let bytes = written(|bundle| answers.iter().for_each(|answer| bundle.push(answer)));
            if let Some(part) = bytes.get(..cut) {
                prop_assert!(Frame::<Answer<'_>>::split(part).unwrap().is_none());
            }
            let (frame, _) = Frame::split(&bytes).unwrap().unwrap();
            let mut read: Vec<Answer<'_>> = Vec::new();
            frame.each(|answer| read.push(answer)).unwrap();
            prop_assert_eq!(read, answers);
        }
    }
}
