//! Sessions that a PCRF has begun and whose clients have got a failure instead of its answer: it could not be written, or gets too
//! long by other names. The router ends them at the PCRF in the name of the client, at once, and again when that fails.

use std::collections::VecDeque;

use diameter_proto::{CommandFlags, Message, MessageMut, ResultCode, known};
use dsr_app::session::{result, retransmission, termination};
use dsr_app::{Answered, Flow, Lost, Memo, On, Resumed};

use crate::events::Event;
use crate::facts::Facts;
use crate::note::{Note, Rule, Stage};
use crate::{Kind, Pdra};

/// Requests of a worker that wait for their next attempt; further ones are not sent again.
const MOST: usize = 1_024;
/// Requests that are sent again in a second.
const MOST_AT_ONCE: usize = 64;
/// How often a session is ended at most, about once in a second.
const ATTEMPTS: u8 = 10;

/// Requests of a worker that end sessions, before their next attempt.
#[derive(Debug, Default)]
pub(crate) struct Owed(VecDeque<(MessageMut, u8)>);

impl Owed {
    /// Keeps a request that was sent this often. Whether it is sent again.
    fn put(&mut self, request: MessageMut, sent: u8) -> bool {
        let has_room = sent < ATTEMPTS && self.0.len() < MOST;
        if has_room {
            self.0.push_back((request, sent));
        }
        has_room
    }

    /// Drops what would end a session that begins again.
    pub(crate) fn forget<B: AsRef<[u8]>>(&mut self, begins: &Message<B>) {
        if !self.0.is_empty()
            && let Ok(Some(id)) = begins.get(known::SESSION_ID)
        {
            self.0
                .retain(|(request, _)| request.get(known::SESSION_ID) != Ok(Some(id)));
        }
    }

    fn take(&mut self) -> impl Iterator<Item = (MessageMut, u8)> + '_ {
        let count = self.0.len().min(MOST_AT_ONCE);
        self.0.drain(..count)
    }
}

impl Pdra {
    /// The answer to a request that begins a session is a failure of the router in place of that of its PCRF: the session ends. One
    /// that comes again may be of a session that its client has.
    pub(crate) fn end_refused(on: &mut On<'_, Self>, note: Note, answered: &Answered<'_>) {
        let by = answered.answer.get(known::ORIGIN_HOST).ok().flatten();
        let is_ours = by.is_some_and(|by| by.eq_ignore_ascii_case(&answered.names.host));
        let begins = matches!(note.stage, Stage::Begins | Stage::Found) && note.rule != Rule::Repeated;
        if begins && is_ours && result(answered.answer) == Some(ResultCode::UNABLE_TO_COMPLY) {
            Self::end_at_pcrf(on, answered.request);
        }
    }

    /// A session could not be written in time: its client gets a failure, and the session ends.
    pub(crate) fn end_unwritten(on: &mut On<'_, Self>, note: Note, resumed: &Resumed<'_>) {
        if let Resumed::Answer(answered) = resumed {
            Self::end_failed(on, note, answered.request);
        }
    }

    /// The session of a request could not be written. One that comes again is of a session that its client has.
    pub(crate) fn end_failed(on: &mut On<'_, Self>, note: Note, request: &Message) {
        if note.rule != Rule::Repeated {
            Self::end_at_pcrf(on, request);
        }
    }

    /// Ends the session of a request at the PCRF that got it.
    fn end_at_pcrf(on: &mut On<'_, Self>, request: &Message) {
        if matches!(Kind::of(request), Kind::Begins | Kind::Finds) {
            match termination(request) {
                Some(end) => Self::send_end(on, end, 0),
                None => on.count(Event::LeftAtPcrf),
            }
        }
    }

    fn send_end(on: &mut On<'_, Self>, request: MessageMut, sent: u8) {
        let mut memo = Memo::default();
        let note = Note {
            stage: Stage::Owes,
            sent: sent + 1,
            ..Note::default()
        };
        note.write(&mut memo);
        on.out.send(request, memo);
    }

    /// A second has passed: sends again what has failed.
    pub(crate) fn end_again(on: &mut On<'_, Self>) {
        let due: Vec<_> = on.worker.owed.take().collect();
        for (request, sent) in due {
            Self::send_end(on, request, sent);
        }
    }

    /// The PCRF has answered: it has the session no more, unless that is transient.
    pub(crate) fn owed_answered<'a>(
        &'a self,
        on: &mut On<'_, Self>,
        note: Note,
        answered: &Answered<'_>,
    ) -> Flow<'a> {
        let has_ended = result(answered.answer).is_some_and(|result| matches!(result.0 / 1000, 2 | 5));
        if !has_ended {
            Self::owe(on, note, answered.request, false);
            return Flow::Next;
        }
        on.count(Event::EndedForClient);
        // It may have been written all the same.
        match Facts::of_session(answered.request) {
            Ok(facts) => self.remove_ended(on, Stage::Ends, facts, answered),
            Err(_) => Flow::Next,
        }
    }

    /// The PCRF has not answered.
    pub(crate) fn owed_lost(on: &mut On<'_, Self>, note: Note, lost: &Lost<'_>) {
        Self::owe(on, note, lost.request, true);
    }

    /// With the T flag where the PCRF may have got it (RFC 6733 §5.5.4), and not behind its answer (§3).
    fn owe(on: &mut On<'_, Self>, note: Note, request: &Message, is_lost: bool) {
        let host = request.get(known::DESTINATION_HOST).ok().flatten();
        let again = retransmission(request, "", host.unwrap_or_default()).map(|mut again| {
            if !is_lost {
                again.set_flags(again.flags().without(CommandFlags::RETRANSMITTED));
            }
            again
        });
        if !again.is_some_and(|again| on.worker.owed.put(again, note.sent)) {
            on.count(Event::LeftAtPcrf);
        }
    }
}

#[cfg(test)]
mod tests {
    use diameter_proto::MessageBuilder;
    use diameter_proto::known::{application, command};

    use super::*;

    #[test]
    fn what_is_owed_is_bounded_in_number_and_attempts() {
        let request = || {
            MessageBuilder::request(command::CREDIT_CONTROL, application::GX)
                .finish()
                .unwrap()
        };
        let mut owed = Owed::default();
        assert!(!owed.put(request(), ATTEMPTS));
        for number in 0..=MOST {
            assert_eq!(owed.put(request(), 1), number < MOST);
        }
        assert_eq!(owed.take().count(), MOST_AT_ONCE);
        assert!(owed.put(request(), ATTEMPTS - 1));
    }
}
