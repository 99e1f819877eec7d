//! Messages in a stream of octets: M3UA over TCP has no boundaries but the length of the common header. A message of SCTP is one
//! of M3UA or M2PA (RFC 4666 §7.1, RFC 4165 §2.1), and may come in pieces.

use ss7_proto::m3ua::{ErrorCode, Fault, HEADER_LEN};

/// The longest message: an MSU of 4,095 octets (Q.2210) in an ERR or with many parameters is far shorter.
pub(super) const LONGEST: usize = 16 * 1024;

const TOO_LONG: Fault = Fault::new(
    ErrorCode::ProtocolError,
    "the message length is below 8 or above 16,384",
);

/// Received octets that are not handled yet.
#[derive(Default)]
pub(super) struct Framing {
    pub(super) octets: Vec<u8>,
    /// The stream of SCTP by which they came; none over TCP.
    pub(super) stream: Option<u16>,
    /// Whether they are a whole message of SCTP; none over TCP.
    pub(super) is_whole: Option<bool>,
    /// Octets of padding that the length of the last message did not count and that may follow.
    padding: usize,
}

impl Framing {
    /// Calls `handle` for each whole message, until it returns `false`: the next call goes on behind that message. Returns whether
    /// all were handled.
    ///
    /// # Errors
    /// When the next message cannot be found any more; `handle` has got its beginning, so that ERR is written.
    pub(super) fn each(&mut self, mut handle: impl FnMut(&[u8]) -> bool) -> Result<bool, Fault> {
        if let Some(is_whole) = self.is_whole {
            return self.one(is_whole, handle);
        }
        let mut at = 0;
        let outcome = loop {
            at += self.skip_padding(at);
            let rest = self.octets.get(at..).unwrap_or_default();
            match length(rest) {
                Err(fault) => {
                    handle(rest.get(..HEADER_LEN).unwrap_or(rest));
                    break Err(fault);
                }
                Ok(Some(length)) if length <= rest.len() => {
                    let goes_on = handle(rest.get(..length).unwrap_or_default());
                    at += length;
                    self.padding = length.next_multiple_of(4) - length;
                    if !goes_on {
                        break Ok(false);
                    }
                }
                Ok(_) => break Ok(true),
            }
        };
        self.consume(at);
        outcome
    }

    /// Calls `handle` for a message of SCTP, whatever length it says that it has: those behind it do not depend on that.
    fn one(&mut self, is_whole: bool, mut handle: impl FnMut(&[u8]) -> bool) -> Result<bool, Fault> {
        if self.octets.len() > LONGEST {
            handle(self.octets.get(..HEADER_LEN).unwrap_or_default());
            return Err(TOO_LONG);
        }
        if is_whole && !self.octets.is_empty() {
            let goes_on = handle(&self.octets);
            self.consume(self.octets.len());
            return Ok(goes_on);
        }
        Ok(true)
    }

    /// Removes what was handled.
    pub(super) fn consume(&mut self, octets: usize) {
        self.octets.drain(..octets.min(self.octets.len()));
        // A peer that has sent a lot once needs no buffer for ever.
        if self.octets.is_empty() && self.octets.capacity() > 4 * LONGEST {
            self.octets = Vec::new();
        }
    }

    /// Padding is 0, and a message begins with its version, 1.
    fn skip_padding(&mut self, at: usize) -> usize {
        let rest = self.octets.get(at..).unwrap_or_default();
        let zeros = rest
            .iter()
            .take(self.padding)
            .take_while(|octet| **octet == 0)
            .count();
        self.padding = if zeros < rest.len() {
            0
        } else {
            self.padding - zeros
        };
        zeros
    }
}

/// The length of the message that begins here, once it is known.
fn length(octets: &[u8]) -> Result<Option<usize>, Fault> {
    if octets.first().is_some_and(|version| *version != 1) {
        return Err(Fault::new(ErrorCode::InvalidVersion, "the version is not 1"));
    }
    let Some([_, _, _, _, length @ ..]) = octets.first_chunk::<HEADER_LEN>() else {
        return Ok(None);
    };
    let length = u32::from_be_bytes(*length) as usize;
    match length {
        HEADER_LEN..=LONGEST => Ok(Some(length)),
        _ => Err(TOO_LONG),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn framed(parts: &[&[u8]]) -> (Vec<Vec<u8>>, bool) {
        let mut framing = Framing::default();
        let mut found = Vec::new();
        for part in parts {
            framing.octets.extend_from_slice(part);
            let mut handle = |octets: &[u8]| {
                found.push(octets.to_vec());
                // By turns the rest waits for another call.
                found.len().is_multiple_of(2)
            };
            loop {
                match framing.each(&mut handle) {
                    Err(_) => return (found, false),
                    Ok(true) => break,
                    Ok(false) => {}
                }
            }
        }
        (found, true)
    }

    #[test]
    fn messages_in_any_pieces_with_or_without_counted_padding() {
        // BEAT with one octet of data: length 13 without its padding.
        let uncounted = [1, 0, 3, 3, 0, 0, 0, 13, 0, 9, 0, 5, 7, 0, 0, 0];
        let aspup = [1, 0, 3, 1, 0, 0, 0, 8];
        let all = [&uncounted[..], &aspup[..], &uncounted[..13], &aspup[..]].concat();
        let wanted = [&uncounted[..13], &aspup[..], &uncounted[..13], &aspup[..]];
        for cut in 0..all.len() {
            let (found, whole) = framed(&[&all[..cut], &all[cut..]]);
            assert!(whole && found == wanted, "{cut}");
        }
        let each: Vec<&[u8]> = all.chunks(1).collect();
        assert_eq!(framed(&each).0, wanted);
    }

    /// Each message of SCTP is one, in one piece or several; what its length says counts for itself alone.
    #[test]
    fn messages_of_sctp_have_boundaries_of_their_own() {
        let aspup = [1, 0, 3, 1, 0, 0, 0, 8];
        let long = [1, 0, 3, 1, 0, 0, 0, 80];
        let short = [1, 0, 3, 3, 0, 0, 0, 8, 0, 9, 0, 5, 7, 0, 0, 0];
        let mut framing = Framing::default();
        let mut found = Vec::new();
        for (octets, is_whole) in [
            (&long[..], true),
            (&aspup, true),
            (&short, true),
            (b"GET", true),
            (&aspup[..3], false),
            (&aspup[3..], true),
        ] {
            framing.octets.extend_from_slice(octets);
            framing.is_whole = Some(is_whole);
            let goes_on = framing.each(|octets| {
                found.push(octets.to_vec());
                false
            });
            assert_eq!(goes_on, Ok(!is_whole));
            // The next turn has nothing left.
            assert_eq!(framing.each(|_| panic!("twice")), Ok(true));
        }
        assert_eq!(found, [&long[..], &aspup, &short, b"GET", &aspup]);
        framing.octets.extend([1; LONGEST + 1]);
        assert!(framing.each(|_| true).is_err());
    }

    #[test]
    fn lengths_that_lie_end_the_stream() {
        for length in [0_u32, 7, 16_385, u32::MAX] {
            let mut octets = vec![1, 0, 3, 1];
            octets.extend(length.to_be_bytes());
            assert_eq!(framed(&[&octets]), (vec![octets.clone()], false));
        }
        assert!(!framed(&[b"GET / HTTP/1.1\r\n"]).1);
    }
}
