//! Sessions that a PCRF has begun and whose clients have got a failure instead of its answer: it could not be written, or gets too
//! long by other names. The router ends them at the PCRF in the name of the client, within a second, and again when that fails; what is
//! owed outlives it. A client that begins the session again there keeps it.

use diameter_proto::{Message, known};
use dsr_app::session::{has_ended, is_failure_of_router, termination, termination_again, termination_from};
use dsr_app::{Answered, Flow, Lost, Memo, On, Resumed};

use crate::events::Event;
use crate::facts::Facts;
use crate::note::{Note, Rule, Stage};
use crate::{Kind, Pdra};

impl Pdra {
    /// The answer to a request that begins a session is a failure of the router in place of that of its PCRF: the session ends. One
    /// that comes again may be of a session that its client has.
    pub(crate) fn end_refused(&self, on: &On<'_, Self>, note: Note, answered: &Answered<'_>) {
        let begins = matches!(note.stage, Stage::Begins | Stage::Found);
        if begins && is_failure_of_router(answered) {
            self.end_failed(on, note, answered.request);
        }
    }

    /// A session could not be written in time: its client gets a failure, and the session ends.
    pub(crate) fn end_unwritten(&self, on: &On<'_, Self>, note: Note, resumed: &Resumed<'_>) {
        if let Resumed::Answer(answered) = resumed {
            self.end_failed(on, note, answered.request);
        }
    }

    /// The session of a request could not be written. One that comes again is of a session that its client has.
    pub(crate) fn end_failed(&self, on: &On<'_, Self>, note: Note, request: &Message) {
        let begins = matches!(Kind::of(request), Kind::Begins | Kind::Finds);
        if !begins || note.rule == Rule::Repeated {
            return;
        }
        let session = request.get(known::SESSION_ID).ok().flatten();
        let server = request.get(known::DESTINATION_HOST).ok().flatten();
        let (session, server) = (session.unwrap_or_default(), server.unwrap_or_default());
        let is_owed = termination(request).is_some_and(|end| {
            let opened = &self.shared.opened;
            opened.owe(session.as_bytes(), server, end.as_bytes(), on.now)
        });
        if !is_owed {
            on.count(Event::LeftAtPcrf);
        }
    }

    /// A second has passed: sends what is due.
    pub(crate) fn send_owed(&self, on: &mut On<'_, Self>) {
        let due = self.shared.opened.due(on.now);
        on.counters.add(Event::LeftAtPcrf, due.left);
        for end in due.ends {
            let Some(request) = termination_from(&end.request, end.is_inherited) else {
                self.shared.opened.settle(end.id);
                continue;
            };
            let mut memo = Memo::default();
            let note = Note {
                stage: Stage::Owes,
                token: end.id,
                ..Note::default()
            };
            note.write(&mut memo);
            on.out.send(request, memo);
        }
    }

    /// The PCRF has answered: it has the session no more, unless that is transient.
    pub(crate) fn owed_answered<'a>(
        &'a self,
        on: &mut On<'_, Self>,
        note: Note,
        answered: &Answered<'_>,
    ) -> Flow<'a> {
        if !has_ended(answered.answer) {
            self.owe_again(on, note, answered.request, false);
            return Flow::Next;
        }
        on.count(Event::EndedForClient);
        let is_its = self.shared.opened.settle(note.token);
        // It may have been written all the same; else the client has begun it again behind its end.
        match Facts::of_session(answered.request) {
            Ok(facts) if is_its => self.remove_ended(on, Stage::Ends, facts, answered),
            _ => Flow::Next,
        }
    }

    /// The PCRF has not answered.
    pub(crate) fn owed_lost(&self, on: &On<'_, Self>, note: Note, lost: &Lost<'_>) {
        self.owe_again(on, note, lost.request, true);
    }

    fn owe_again(&self, on: &On<'_, Self>, note: Note, request: &Message, is_lost: bool) {
        let again = termination_again(request, is_lost);
        let again = again.as_ref().map(Message::as_bytes);
        if !self.shared.opened.owe_again(note.token, again, on.now) {
            on.count(Event::LeftAtPcrf);
        }
    }
}
