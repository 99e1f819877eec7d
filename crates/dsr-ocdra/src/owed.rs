//! Sessions that an OCS has begun and whose clients have got a failure instead of its answer: it could not be written, or gets too long
//! by other names. The OCS would keep quota for them. The router ends them there in the name of the client (RFC 8506 §5.4), within a
//! second, and again when that fails; what is owed outlives it. A client that begins the session again there keeps it.

use diameter_proto::Message;
use dsr_app::session::{has_ended, termination, termination_again, termination_from};
use dsr_app::{Answered, Flow, Lost, Memo, On, Resumed};

use crate::events::Event;
use crate::facts::Facts;
use crate::note::{Note, Stage};
use crate::{Kind, Ocdra};

impl Ocdra {
    /// A session could not be written in time: its client gets a failure, and the session ends.
    pub(crate) fn end_unwritten(&self, on: &On<'_, Self>, note: Note, resumed: &Resumed<'_>) {
        if let Resumed::Answer(answered) = resumed {
            self.end_failed(on, note, answered.request);
        }
    }

    /// The client of a request that begins a session has got a failure. One that comes again may be of a session that its client has.
    pub(crate) fn end_failed(&self, on: &On<'_, Self>, note: Note, request: &Message) {
        if Kind::of(request) != Kind::Begins || note.is_kept {
            return;
        }
        let is_owed = match (Facts::read(request), termination(request)) {
            (Ok(facts), Some(end)) => {
                let opened = &self.shared.opened;
                opened.owe(&facts.session, &facts.destination.host, end.as_bytes(), on.now)
            }
            _ => false,
        };
        if !is_owed {
            on.count(Event::LeftAtOcs);
        }
    }

    /// A request that begins a session goes to this OCS. One that shares its sessions with the others of its pool gets no end of it by
    /// way of another.
    pub(crate) fn begins_again(&self, facts: &Facts, server: &str, is_shared: bool) {
        let server = (!is_shared).then_some(server.as_bytes());
        self.shared.opened.begins_again(&facts.session, server);
    }

    /// A second has passed: sends what is due.
    pub(crate) fn send_owed(&self, on: &mut On<'_, Self>) {
        let due = self.shared.opened.due(on.now);
        on.counters.add(Event::LeftAtOcs, due.left);
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

    /// The OCS has answered: it has the session no more, unless that is transient.
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
        match Facts::read(answered.request) {
            Ok(facts) if is_its => self.end_for_client(on, &facts),
            _ => Flow::Next,
        }
    }

    /// The OCS has not answered.
    pub(crate) fn owed_lost(&self, on: &On<'_, Self>, note: Note, lost: &Lost<'_>) {
        self.owe_again(on, note, lost.request, true);
    }

    fn owe_again(&self, on: &On<'_, Self>, note: Note, request: &Message, is_lost: bool) {
        let again = termination_again(request, is_lost);
        let again = again.as_ref().map(Message::as_bytes);
        if !self.shared.opened.owe_again(note.token, again, on.now) {
            on.count(Event::LeftAtOcs);
        }
    }
}
