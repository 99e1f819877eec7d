//! The two requests of a producer, Metadata and Produce, in versions that every broker from Kafka 2.1 on speaks, Kafka 4
//! included; so none has to be negotiated.

use crate::config::{Acks, Compression};
use crate::feed::pump::Record;

/// Bytes of the length, which comes first in every message.
pub(super) const LENGTH: usize = 4;
/// Names itself to brokers.
const CLIENT: &str = "signalbox-scp";

const PRODUCE: i16 = 0;
const PRODUCE_VERSION: i16 = 7;
const METADATA: i16 = 3;
const METADATA_VERSION: i16 = 4;

/// Brokers, and leaders of partitions, that an answer may name.
const MOST: i32 = 100_000;

/// The brokers, and what they have of a topic.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Metadata {
    /// Node id, host and port.
    pub(super) brokers: Vec<(i32, String, u16)>,
    /// The leader of each partition, in the order of partitions; `None` where there is none now.
    pub(super) leaders: Vec<Option<i32>>,
}

/// Why a broker refuses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Code(pub(super) i16);

impl Code {
    /// Whether the broker has not taken the batch because it cannot lead the partition now: another one may.
    pub(super) fn is_not_taken(self) -> bool {
        // UNKNOWN_TOPIC_OR_PARTITION, LEADER_NOT_AVAILABLE, NOT_LEADER_OR_FOLLOWER, NOT_ENOUGH_REPLICAS,
        // FENCED_LEADER_EPOCH.
        matches!(self.0, 3 | 5 | 6 | 19 | 74)
    }
}

impl std::fmt::Display for Code {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let name = match self.0 {
            2 => "CORRUPT_MESSAGE",
            3 => "UNKNOWN_TOPIC_OR_PARTITION",
            5 => "LEADER_NOT_AVAILABLE",
            6 => "NOT_LEADER_OR_FOLLOWER",
            7 => "REQUEST_TIMED_OUT",
            10 => "MESSAGE_TOO_LARGE",
            17 => "INVALID_TOPIC_EXCEPTION",
            18 => "RECORD_LIST_TOO_LARGE",
            19 => "NOT_ENOUGH_REPLICAS",
            20 => "NOT_ENOUGH_REPLICAS_AFTER_APPEND",
            29 => "TOPIC_AUTHORIZATION_FAILED",
            35 => "UNSUPPORTED_VERSION",
            43 => "UNSUPPORTED_FOR_MESSAGE_FORMAT",
            56 => "KAFKA_STORAGE_ERROR",
            74 => "FENCED_LEADER_EPOCH",
            76 => "UNSUPPORTED_COMPRESSION_TYPE",
            87 => "INVALID_RECORD",
            other => return write!(f, "error {other}"),
        };
        f.write_str(name)
    }
}

/// Asks for the brokers and for the leaders of a topic, which is not made where it does not exist.
pub(super) fn metadata(topic: &str) -> Vec<u8> {
    let mut out = begin(METADATA, METADATA_VERSION);
    out.extend_from_slice(&1_i32.to_be_bytes());
    text(&mut out, topic);
    out.push(0);
    end(out)
}

/// Where records go, and how.
pub(super) struct Produce<'a> {
    pub(super) topic: &'a str,
    pub(super) partition: i32,
    pub(super) acks: Acks,
    /// How long the broker may wait for its replicas.
    pub(super) timeout_ms: i32,
    pub(super) compression: Compression,
}

/// Delivers records to a partition.
///
/// # Errors
/// When they are more than the protocol can say.
pub(super) fn produce(to: &Produce<'_>, records: &[Record]) -> Result<Vec<u8>, std::io::Error> {
    let mut out = begin(PRODUCE, PRODUCE_VERSION);
    // No transaction.
    out.extend_from_slice(&(-1_i16).to_be_bytes());
    let acks: i16 = match to.acks {
        Acks::All => -1,
        Acks::Leader => 1,
        Acks::None => 0,
    };
    out.extend_from_slice(&acks.to_be_bytes());
    out.extend_from_slice(&to.timeout_ms.to_be_bytes());
    out.extend_from_slice(&1_i32.to_be_bytes());
    text(&mut out, to.topic);
    out.extend_from_slice(&1_i32.to_be_bytes());
    out.extend_from_slice(&to.partition.to_be_bytes());
    let at = out.len();
    out.extend_from_slice(&[0; LENGTH]);
    super::batch::append(&mut out, records, to.compression)?;
    let length = i32::try_from(out.len() - at - LENGTH).map_err(std::io::Error::other)?;
    out[at..at + LENGTH].copy_from_slice(&length.to_be_bytes());
    i32::try_from(out.len()).map_err(std::io::Error::other)?;
    Ok(end(out))
}

fn begin(key: i16, version: i16) -> Vec<u8> {
    let mut out = vec![0; LENGTH];
    out.extend_from_slice(&key.to_be_bytes());
    out.extend_from_slice(&version.to_be_bytes());
    // The number is given where the request is sent.
    out.extend_from_slice(&[0; 4]);
    text(&mut out, CLIENT);
    out
}

/// Numbers a request; its answer has the same number.
pub(super) fn number(request: &mut [u8], number: i32) {
    // Behind the length, the key and the version.
    if let Some(place) = request.get_mut(8..12) {
        place.copy_from_slice(&number.to_be_bytes());
    }
}

fn end(mut out: Vec<u8>) -> Vec<u8> {
    // A produce request is checked before; others are short.
    let length = (out.len() - LENGTH) as i32;
    out[..LENGTH].copy_from_slice(&length.to_be_bytes());
    out
}

fn text(out: &mut Vec<u8>, text: &str) {
    // Topics are checked with the settings.
    let length = i16::try_from(text.len()).unwrap_or(i16::MAX);
    out.extend_from_slice(&length.to_be_bytes());
    out.extend_from_slice(&text.as_bytes()[..length as usize]);
}

/// What an answer to Metadata says of a topic; its error where it has one. `None`: it is none.
pub(super) fn metadata_answer(answer: &[u8], topic: &str) -> Option<Result<Metadata, Code>> {
    let mut from = Reader(answer);
    let mut found = Metadata::default();
    from.skip(4)?;
    for _ in 0..from.count()? {
        let (node, host, port) = (from.i32()?, from.text()?, from.i32()?);
        from.nullable_text()?;
        if let (Some(host), Ok(port)) = (host, u16::try_from(port)) {
            found.brokers.push((node, host.to_owned(), port));
        }
    }
    from.nullable_text()?;
    from.skip(4)?;
    let mut outcome = None;
    for _ in 0..from.count()? {
        let code = from.i16()?;
        let is_sought = from.text()? == Some(topic);
        from.skip(1)?;
        let mut leaders = Vec::new();
        for _ in 0..from.count()? {
            let (code, partition, leader) = (from.i16()?, from.i32()?, from.i32()?);
            for _ in 0..2 {
                let replicas = from.count()?;
                from.skip(usize::try_from(replicas).ok()?.checked_mul(4)?)?;
            }
            leaders.push((partition, (code == 0 && leader >= 0).then_some(leader)));
        }
        if is_sought && code == 0 {
            leaders.sort_unstable_by_key(|(partition, _)| *partition);
            let dense = leaders
                .iter()
                .enumerate()
                .all(|(at, (partition, _))| i32::try_from(at) == Ok(*partition));
            if !dense {
                return None;
            }
            found.leaders = leaders.into_iter().map(|(_, leader)| leader).collect();
            outcome = Some(Ok(()));
        } else if is_sought {
            outcome = Some(Err(Code(code)));
        }
    }
    Some(outcome?.map(|()| found))
}

/// What a broker made of a batch. `None`: the answer is none.
pub(super) fn produce_answer(answer: &[u8]) -> Option<Result<(), Code>> {
    let mut from = Reader(answer);
    if from.count()? != 1 {
        return None;
    }
    from.text()?;
    if from.count()? != 1 {
        return None;
    }
    from.skip(4)?;
    match from.i16()? {
        0 => Some(Ok(())),
        code => Some(Err(Code(code))),
    }
}

/// Reads what a broker has sent.
struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn take(&mut self, count: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(taken)
    }

    fn skip(&mut self, count: usize) -> Option<()> {
        self.take(count).map(|_| ())
    }

    fn i16(&mut self) -> Option<i16> {
        Some(i16::from_be_bytes(self.take(2)?.try_into().ok()?))
    }

    fn i32(&mut self) -> Option<i32> {
        Some(i32::from_be_bytes(self.take(4)?.try_into().ok()?))
    }

    /// The length of a list; one that is absent is empty.
    fn count(&mut self) -> Option<i32> {
        let count = self.i32()?;
        (count <= MOST).then_some(count.max(0))
    }

    fn nullable_text(&mut self) -> Option<()> {
        self.text().map(|_| ())
    }

    /// A text; `Some(None)` where it is null.
    #[expect(
        clippy::option_option,
        reason = "a text that is absent is not one that cannot be read"
    )]
    fn text(&mut self) -> Option<Option<&'a str>> {
        let length = self.i16()?;
        match usize::try_from(length) {
            Ok(length) => Some(Some(std::str::from_utf8(self.take(length)?).ok()?)),
            Err(_) => Some(None),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer() -> Vec<u8> {
        let mut out = 0_i32.to_be_bytes().to_vec();
        out.extend(2_i32.to_be_bytes());
        for (node, port) in [(1_i32, 9_092_i32), (2, 9_094)] {
            out.extend(node.to_be_bytes());
            text(&mut out, "kafka");
            out.extend(port.to_be_bytes());
            out.extend((-1_i16).to_be_bytes());
        }
        text(&mut out, "cluster");
        out.extend(1_i32.to_be_bytes());
        out.extend(1_i32.to_be_bytes());
        out.extend(0_i16.to_be_bytes());
        text(&mut out, "SCP");
        out.push(0);
        out.extend(2_i32.to_be_bytes());
        // The second before the first; the first has no leader.
        for (code, partition, leader) in [(0_i16, 1_i32, 2_i32), (5, 0, -1)] {
            out.extend(code.to_be_bytes());
            out.extend(partition.to_be_bytes());
            out.extend(leader.to_be_bytes());
            for _ in 0..2 {
                out.extend(1_i32.to_be_bytes());
                out.extend(2_i32.to_be_bytes());
            }
        }
        out
    }

    #[test]
    fn brokers_and_leaders_are_read() {
        let found = metadata_answer(&answer(), "SCP").unwrap().unwrap();
        assert_eq!(found.leaders, [None, Some(2)]);
        assert_eq!(found.brokers[1], (2, "kafka".to_owned(), 9_094));
        assert_eq!(metadata_answer(&answer(), "other"), None);
    }

    #[test]
    fn answers_that_are_cut_or_claim_too_much_are_none() {
        let whole = answer();
        for length in 0..whole.len() {
            assert_eq!(metadata_answer(&whole[..length], "SCP"), None, "{length}");
        }
        let mut endless = whole;
        endless[4..8].copy_from_slice(&i32::MAX.to_be_bytes());
        assert_eq!(metadata_answer(&endless, "SCP"), None);
        for length in 0..20 {
            assert_eq!(produce_answer(&vec![0; length]), None);
        }
    }

    #[test]
    fn what_became_of_a_batch_is_read() {
        let answer = |code: i16| {
            let mut out = 1_i32.to_be_bytes().to_vec();
            text(&mut out, "SCP");
            out.extend(1_i32.to_be_bytes());
            out.extend(0_i32.to_be_bytes());
            out.extend(code.to_be_bytes());
            out
        };
        assert_eq!(produce_answer(&answer(0)), Some(Ok(())));
        assert_eq!(produce_answer(&answer(6)), Some(Err(Code(6))));
        assert!(Code(6).is_not_taken() && !Code(10).is_not_taken());
        assert_eq!(Code(10).to_string(), "MESSAGE_TOO_LARGE");
        assert_eq!(Code(99).to_string(), "error 99");
    }
}
