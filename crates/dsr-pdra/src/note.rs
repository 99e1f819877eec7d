//! What the application keeps with a transaction.

use dsr_app::{Fields, Memo, Ticket};

/// How far a transaction is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Stage {
    /// It is not of interest.
    #[default]
    None = 0,
    /// It waits at the desk.
    Waits = 1,
    /// It chooses, and asks the repository.
    Looks = 2,
    /// It begins a session, and was sent.
    Begins = 3,
    /// It asks the repository for the session of its subscriber.
    Searches = 4,
    /// It begins a session at the PCRF of its subscriber, and was sent.
    Found = 5,
    /// It asks the repository for its session.
    Recalls = 6,
    /// It is of a session, and was sent.
    Within = 7,
    /// It ends a session, and was sent.
    Ends = 8,
    /// Its session is being written.
    Writes = 9,
    /// It reports addresses of a session, and was sent.
    Reports = 10,
    /// It waits for the answer that its PCRF has sent before it.
    Follows = 11,
    /// The application asks about a session itself.
    Asks = 12,
    /// It begins a session of its PCRF at a TDF, and was sent.
    Opens = 13,
    /// Its session has ended, and is being removed.
    Removes = 14,
    /// The application ends a session at its PCRF itself.
    Owes = 15,
}

impl Stage {
    /// Whether the answer to a request that was sent comes before what its sender sends next in the session.
    pub(crate) const fn comes_first(self) -> bool {
        matches!(
            self,
            Self::Begins | Self::Found | Self::Reports | Self::Writes | Self::Opens
        )
    }
}

/// By which rule a session has its PCRF.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Rule {
    /// By weight, in its pool.
    #[default]
    Weight = 0,
    /// The request named it.
    Named = 1,
    /// Another session of the subscriber has it.
    Bound = 2,
    /// Another request of the subscriber, in flight, has chosen it.
    Early = 3,
    /// The request came again.
    Repeated = 4,
    /// The one of the subscriber failed.
    Rebound = 5,
    /// The first choice failed.
    Further = 6,
    /// By these keys of an AF's request.
    Ipv6 = 7,
    Ipv4 = 8,
    Msisdn = 9,
    Imsi = 10,
    /// The PCRF has begun the session.
    Opened = 11,
}

const STAGES: [Stage; 16] = [
    Stage::None,
    Stage::Waits,
    Stage::Looks,
    Stage::Begins,
    Stage::Searches,
    Stage::Found,
    Stage::Recalls,
    Stage::Within,
    Stage::Ends,
    Stage::Writes,
    Stage::Reports,
    Stage::Follows,
    Stage::Asks,
    Stage::Opens,
    Stage::Removes,
    Stage::Owes,
];

const RULES: [(Rule, &str); 12] = [
    (Rule::Weight, "chosen by weight"),
    (Rule::Named, "named by the request"),
    (Rule::Bound, "bound by another session"),
    (Rule::Early, "chosen by another request in flight"),
    (Rule::Repeated, "request repeated"),
    (Rule::Rebound, "rebound: the PCRF before failed"),
    (Rule::Further, "chosen after another PCRF failed"),
    (Rule::Ipv6, "found by ipv6"),
    (Rule::Ipv4, "found by ipv4"),
    (Rule::Msisdn, "found by msisdn"),
    (Rule::Imsi, "found by imsi"),
    (Rule::Opened, "begun by the PCRF"),
];

impl Rule {
    /// The rule in words.
    pub(crate) fn as_str(self) -> &'static str {
        RULES.get(self as usize).map_or("", |(_, words)| words)
    }
}

/// A memo with names.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Note {
    pub(crate) stage: Stage,
    pub(crate) rule: Rule,
    /// How often it was sent.
    pub(crate) sent: u8,
    /// At the desk; of what the application ends itself, the number of the end.
    pub(crate) token: u64,
    /// PCRFs of the pool that were tried, bits by position.
    pub(crate) tried: u64,
    /// Under which it waits at the desk.
    pub(crate) ticket: Ticket,
}

impl Note {
    pub(crate) fn read(memo: &Memo) -> Self {
        let fields = Fields::read(memo);
        let ([stage, rule, sent, ..], [token, tried]) = (fields.bytes, fields.numbers);
        Self {
            stage: STAGES.get(usize::from(stage)).copied().unwrap_or_default(),
            rule: RULES
                .get(usize::from(rule))
                .map(|(rule, _)| *rule)
                .unwrap_or_default(),
            sent,
            token,
            tried,
            ticket: fields.ticket,
        }
    }

    pub(crate) fn write(self, memo: &mut Memo) {
        let fields = Fields {
            bytes: [self.stage as u8, self.rule as u8, self.sent, 0, 0, 0],
            numbers: [self.token, self.tried],
            ticket: self.ticket,
        };
        fields.write(memo);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_note_is_read_as_it_was_written() {
        for (stage, (rule, _)) in STAGES.into_iter().chain([Stage::Writes]).zip(RULES) {
            let note = Note {
                stage,
                rule,
                sent: 3,
                token: u64::MAX - 1,
                tried: 1 << 63,
                ticket: Ticket {
                    worker: 513,
                    number: 7 << 40,
                },
            };
            let mut memo = Memo::default();
            note.write(&mut memo);
            assert_eq!(Note::read(&memo), note);
        }
        assert_eq!(Note::read(&Memo::default()), Note::default());
        assert_eq!(Note::read(&[255; 32]).stage, Stage::None);
    }
}
