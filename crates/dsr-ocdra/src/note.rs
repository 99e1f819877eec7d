//! What the application keeps with a transaction.

use dsr_app::{Fields, Memo, Ticket};
use sbr::Party;
use sbr::pool::position;

use crate::config::Pool;

/// How far a transaction is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Stage {
    /// It is not of interest.
    #[default]
    None,
    /// It waits for another request with its Session-Id.
    Waits,
    /// It begins a session, and looks for one with its Session-Id.
    Looks,
    /// It begins a session, and was sent.
    Begins,
    /// It is a one-time event, and was sent.
    Event,
    /// It looks for its session.
    Recalls,
    /// It is of a session, and was sent to the OCS.
    Within,
    /// It ends a session, and was sent to the OCS.
    Ends,
    /// It is of a session, and was sent to the client.
    OfServer,
    /// Its session is being written.
    Writes,
    /// Its session has ended, and is being removed.
    Removes,
    /// The application ends a session at its OCS itself.
    Owes,
}

const STAGES: [Stage; 12] = [
    Stage::None,
    Stage::Waits,
    Stage::Looks,
    Stage::Begins,
    Stage::Event,
    Stage::Recalls,
    Stage::Within,
    Stage::Ends,
    Stage::OfServer,
    Stage::Writes,
    Stage::Removes,
    Stage::Owes,
];

/// By which rule a session has its OCS.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Rule {
    /// By weight, in its pool.
    #[default]
    Weight,
    /// The request named it.
    Named,
    /// The first choice failed.
    Further,
    /// The request came again.
    Repeated,
    /// The OCS before failed.
    Moved,
}

const RULES: [(Rule, &str); 5] = [
    (Rule::Weight, "chosen by weight"),
    (Rule::Named, "named by the request"),
    (Rule::Further, "chosen after another OCS failed"),
    (Rule::Repeated, "request repeated"),
    (Rule::Moved, "moved: the OCS before failed"),
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
    /// The position of its pool; beyond all of them: it has none.
    pub(crate) pool: u8,
    /// Its session exists, or an OCS may have it from an earlier request.
    pub(crate) has_session: bool,
    /// Its session was kept before it came: its client has it.
    pub(crate) is_kept: bool,
    /// Another OCS may take its session over.
    pub(crate) has_failover: bool,
    /// An OCS may have got it and did not answer.
    pub(crate) is_doubtful: bool,
    /// Under which others with its Session-Id wait for it; of what the application sends itself, the number of the end.
    pub(crate) token: u64,
    /// OCSs of the pool that were tried, bits by position.
    pub(crate) tried: u64,
    /// Under which it waits for another.
    pub(crate) ticket: Ticket,
}

impl Note {
    pub(crate) fn read(memo: &Memo) -> Self {
        let fields = Fields::read(memo);
        let ([stage, rule, sent, pool, flags, _], [token, tried]) = (fields.bytes, fields.numbers);
        let has = |bit: u8| flags & bit != 0;
        Self {
            stage: STAGES.get(usize::from(stage)).copied().unwrap_or_default(),
            rule: RULES
                .get(usize::from(rule))
                .map(|(rule, _)| *rule)
                .unwrap_or_default(),
            sent,
            pool,
            has_session: has(1),
            has_failover: has(2),
            is_doubtful: has(4),
            is_kept: has(8),
            token,
            tried,
            ticket: fields.ticket,
        }
    }

    /// It with a pool, of which this server was tried.
    pub(crate) fn in_pool(self, pool: Option<(u8, &Pool)>, server: &Party) -> Self {
        let tried = pool.and_then(|(_, pool)| position(&pool.servers, &server.host));
        Self {
            pool: pool.map_or(u8::MAX, |(at, _)| at),
            tried: tried.map_or(0, |at| 1 << at),
            ..self
        }
    }

    pub(crate) fn write(self, memo: &mut Memo) {
        let flags = [
            self.has_session,
            self.has_failover,
            self.is_doubtful,
            self.is_kept,
        ];
        let flags = flags
            .into_iter()
            .rev()
            .fold(0, |all, flag| all << 1 | u8::from(flag));
        let fields = Fields {
            bytes: [self.stage as u8, self.rule as u8, self.sent, self.pool, flags, 0],
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
        for (position, stage) in STAGES.into_iter().enumerate() {
            assert_eq!(stage as usize, position);
            let (rule, words) = RULES[position % RULES.len()];
            let note = Note {
                stage,
                rule,
                sent: 3,
                pool: 249,
                has_session: position % 2 == 0,
                has_failover: position % 3 == 0,
                is_doubtful: position % 5 == 0,
                is_kept: position % 7 == 0,
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
            assert_eq!(rule.as_str(), words);
        }
        assert_eq!(Note::read(&Memo::default()), Note::default());
        assert_eq!(Note::read(&[255; 32]).stage, Stage::None);
    }
}
