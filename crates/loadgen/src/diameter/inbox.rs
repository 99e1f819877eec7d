//! Messages of a stream, parsed in place: only a message that spans two reads is copied.

use diameter_proto::{HEADER_LEN, Message, MessageRef};

/// Longer messages end the connection; no answer to the lab is as long.
const LONGEST: usize = 1 << 20;
/// Bytes that hold the length of a message.
const LENGTH_KNOWN: usize = 4;

/// The stream does not consist of Diameter messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Broken;

/// Holds the beginning of a message whose rest has not arrived.
#[derive(Debug, Default)]
pub struct Inbox {
    held: Vec<u8>,
}

impl Inbox {
    /// Discards the held bytes: a new stream follows.
    pub fn clear(&mut self) {
        self.held.clear();
    }

    /// Whether a message is incomplete.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.held.is_empty()
    }

    /// Takes the bytes of a read, and gives every complete message to `each`.
    ///
    /// # Errors
    /// When the stream does not consist of Diameter messages.
    pub fn feed(&mut self, mut input: &[u8], mut each: impl FnMut(MessageRef<'_>)) -> Result<(), Broken> {
        while !self.held.is_empty() {
            let known = length(&self.held)?;
            if known == Some(self.held.len()) {
                each(Message::parse(&self.held[..]).map_err(|_| Broken)?);
                self.held.clear();
                break;
            }
            let wanted = known.unwrap_or(LENGTH_KNOWN);
            let more = input.len().min(wanted - self.held.len());
            if more == 0 {
                return Ok(());
            }
            self.held.extend_from_slice(&input[..more]);
            input = &input[more..];
        }
        while let Some(length) = length(input)? {
            if input.len() < length {
                break;
            }
            let (message, rest) = input.split_at(length);
            each(Message::parse(message).map_err(|_| Broken)?);
            input = rest;
        }
        self.held.extend_from_slice(input);
        Ok(())
    }
}

/// The length of the message that begins here; `None` while its first bytes are missing.
fn length(bytes: &[u8]) -> Result<Option<usize>, Broken> {
    let Some([version, l0, l1, l2]) = bytes.first_chunk::<4>() else {
        return Ok(None);
    };
    let length = u32::from_be_bytes([0, *l0, *l1, *l2]) as usize;
    if *version != 1 || !(HEADER_LEN..=LONGEST).contains(&length) {
        return Err(Broken);
    }
    Ok(Some(length))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn message(length: usize, mark: u8) -> Vec<u8> {
        let mut bytes = vec![mark; length];
        bytes[..4].copy_from_slice(&(length as u32).to_be_bytes());
        bytes[0] = 1;
        bytes
    }

    proptest! {
        #[test]
        fn messages_are_whole_however_the_stream_is_cut(
            lengths in prop::collection::vec(5_usize..80, 1..20),
            pieces in prop::collection::vec(1_usize..150, 1..200),
        ) {
            let stream: Vec<u8> = lengths
                .iter()
                .enumerate()
                .flat_map(|(at, words)| message(words * 4, at as u8))
                .collect();
            let (mut inbox, mut got) = (Inbox::default(), Vec::new());
            let mut rest = &stream[..];
            for piece in pieces.iter().copied().chain(std::iter::repeat(64)) {
                let (now, later) = rest.split_at(piece.min(rest.len()));
                inbox.feed(now, |m| got.push((m.as_bytes().len(), m.as_bytes()[4]))).unwrap();
                rest = later;
                if rest.is_empty() {
                    break;
                }
            }
            let expected: Vec<_> = lengths.iter().enumerate().map(|(at, w)| (w * 4, at as u8)).collect();
            prop_assert_eq!(got, expected);
            prop_assert!(inbox.is_empty());
        }
    }

    #[test]
    fn other_protocols_are_refused() {
        for wrong in [&b"GET / HTTP/1.1"[..], &[1, 0, 0, 16, 0], &[1, 255, 255, 252, 0]] {
            assert_eq!(Inbox::default().feed(wrong, |_| ()), Err(Broken));
        }
        // The same, received byte by byte.
        let mut inbox = Inbox::default();
        let outcome = [1, 0, 0, 2, 0]
            .iter()
            .try_for_each(|byte| inbox.feed(&[*byte], |_| ()));
        assert_eq!(outcome, Err(Broken));
    }
}
