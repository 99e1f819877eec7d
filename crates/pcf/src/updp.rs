//! What a UE answers to a UE policy: messages of the UE policy delivery service (TS 24.501 annex D).

use crate::association::ue_policy::SectionResult;

/// Message types (TS 24.501 §D.6.1).
const COMPLETE: u8 = 2;
const REJECT: u8 = 3;
/// Refused sections that are kept of one answer.
const MOST_RESULTS: usize = 32;

/// A message of a UE.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Message {
    /// MANAGE UE POLICY COMPLETE (§D.5.2).
    Complete,
    /// MANAGE UE POLICY COMMAND REJECT (§D.5.3), with the sections that the UE could not store.
    Reject(Vec<SectionResult>),
    /// A message of another type, such as UE STATE INDICATION.
    Other(u8),
}

/// The procedure transaction identity and the message. `None`: the octets are none.
pub(crate) fn read(octets: &[u8]) -> Option<(u8, Message)> {
    let [pti, kind, rest @ ..] = octets else {
        return None;
    };
    let message = match *kind {
        COMPLETE => Message::Complete,
        REJECT => Message::Reject(results(rest)?),
        other => Message::Other(other),
    };
    Some((*pti, message))
}

/// The UE policy section management result (§D.6.3): for each PLMN the number of results, MCC and MNC, the results.
fn results(octets: &[u8]) -> Option<Vec<SectionResult>> {
    let (length, rest) = octets.split_first_chunk::<2>()?;
    let mut rest = rest.get(..usize::from(u16::from_be_bytes(*length)))?;
    let mut results = Vec::new();
    while let Some((count, after)) = rest.split_first() {
        let size = usize::from(*count) * 5;
        let entries = after.get(3..3 + size)?;
        for entry in entries.chunks_exact(5) {
            let [a, b, c, d, cause] = *entry else { return None };
            if results.len() < MOST_RESULTS {
                results.push(SectionResult {
                    upsc: u16::from_be_bytes([a, b]),
                    instruction: u16::from_be_bytes([c, d]),
                    cause,
                });
            }
        }
        rest = &after[3 + size..];
    }
    Some(results)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_read() {
        assert_eq!(read(&[0x80, 2]), Some((0x80, Message::Complete)));
        assert_eq!(read(&[1, 4, 0, 0]), Some((1, Message::Other(4))));
        let reject = [0x81, 3, 0, 9, 1, 0x00, 0xf1, 0x10, 0, 1, 0, 2, 111];
        let result = SectionResult {
            upsc: 1,
            instruction: 2,
            cause: 111,
        };
        assert_eq!(read(&reject), Some((0x81, Message::Reject(vec![result]))));
        for end in [0, 1, 3, 5, 8, 12] {
            assert_eq!(read(&reject[..end]), None, "cut at {end}");
        }
    }

    #[test]
    fn an_answer_with_many_results_is_bounded() {
        let mut reject = vec![0x81, 3];
        let subresult = [&[255, 0x00, 0xf1, 0x10][..], &[0; 5 * 255]].concat();
        reject.extend_from_slice(&u16::try_from(2 * subresult.len()).unwrap().to_be_bytes());
        reject.extend_from_slice(&subresult);
        reject.extend_from_slice(&subresult);
        let Some((_, Message::Reject(results))) = read(&reject) else {
            panic!("a reject")
        };
        assert_eq!(results.len(), MOST_RESULTS);
    }
}
