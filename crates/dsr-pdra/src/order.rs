//! The order of an answer and of what its PCRF sends next: a request of a PCRF in a session whose answer is not with the client yet
//! waits for that, on whichever worker it comes. Else it would overtake an answer that waits for the disk, and its client
//! would not know the session, or not its addresses.

use std::time::{Duration, Instant};

use diameter_proto::{Message, known};
use dsr_app::{Flow, On, Resumed, Ticket};
use sbr::Shards;

use crate::events::Event;
use crate::note::{Note, Stage};
use crate::{Found, Pdra};

/// Requests that wait for one answer; further ones do not wait.
const MOST_WAITING: usize = 16;

/// Sessions with requests in flight whose answers come first.
#[derive(Debug)]
pub(crate) struct Answers {
    sessions: Shards<Awaited>,
    /// Time after which an answer is not waited for any more: what became of it was not reported.
    hold: Duration,
}

#[derive(Debug)]
struct Awaited {
    answers: usize,
    waiting: Vec<Ticket>,
    until: Instant,
}

impl Answers {
    pub(crate) fn new(hold: Duration) -> Self {
        Self {
            sessions: Shards::default(),
            hold,
        }
    }

    /// A request of this session is sent.
    fn await_answer(&self, session: &[u8], now: Instant) {
        let mut shard = self.sessions.lock(session);
        let until = now + self.hold;
        if let Some(awaited) = shard.get_mut(session) {
            (awaited.answers, awaited.until) = (awaited.answers + 1, until);
            return;
        }
        let awaited = Awaited {
            answers: 1,
            waiting: Vec::new(),
            until,
        };
        shard.insert(session.to_vec(), awaited);
    }

    /// Has a request of the PCRF wait; whether there is something to wait for.
    fn wait(&self, session: &[u8], ticket: Ticket, now: Instant) -> bool {
        let mut shard = self.sessions.lock(session);
        let awaited = shard.get_mut(session);
        match awaited.filter(|awaited| now < awaited.until && awaited.waiting.len() < MOST_WAITING) {
            Some(awaited) => {
                awaited.waiting.push(ticket);
                true
            }
            None => false,
        }
    }

    /// An answer goes on, or there is none. Returns what has waited for it.
    fn end(&self, session: &[u8]) -> Vec<Ticket> {
        let mut shard = self.sessions.lock(session);
        let Some(awaited) = shard.get_mut(session) else {
            return Vec::new();
        };
        awaited.answers = awaited.answers.saturating_sub(1);
        if awaited.answers > 0 {
            return Vec::new();
        }
        let ended = shard.remove(session);
        ended.map(|awaited| awaited.waiting).unwrap_or_default()
    }

    /// Removes what is void.
    pub(crate) fn purge(&self, now: Instant) {
        self.sessions.retain(|awaited| now < awaited.until);
    }
}

impl Pdra {
    /// Parks a request of a PCRF until the answer before it has gone on. `None`: no answer of its session is outstanding.
    pub(crate) fn behind_answer<'a>(&'a self, on: &mut On<'_, Self>, session: &[u8]) -> Option<Flow<'a>> {
        if !self.shared.answers.wait(session, on.ticket, on.now) {
            return None;
        }
        on.count(Event::Ordered);
        let note = Note {
            stage: Stage::Follows,
            ..Note::default()
        };
        note.write(on.memo);
        Some(Flow::Later(self.settings.wait.duration()))
    }

    /// A transaction that was parked at this stage goes on by this verdict.
    pub(crate) fn goes_on(&self, on: &On<'_, Self>, before: Stage, resumed: &Resumed<'_>, flow: &Flow<'_>) {
        match resumed {
            Resumed::Request(request) => self.is_sent(on, request.message, flow),
            Resumed::Answer(answered) => self.has_come(on, before, answered.request, flow),
            Resumed::Lost(lost) => self.has_come(on, before, lost.request, flow),
        }
    }

    /// A request goes on by this verdict: where it is sent, its answer comes before what the PCRF sends next.
    pub(crate) fn is_sent<B: AsRef<[u8]>>(&self, on: &On<'_, Self>, request: &Message<B>, flow: &Flow<'_>) {
        let is_sent = matches!(flow, Flow::Next | Flow::To(_) | Flow::Changed(_));
        if is_sent
            && Note::read(on.memo).stage.comes_first()
            && let Ok(Some(session)) = request.get(known::SESSION_ID)
        {
            self.shared.answers.await_answer(session.as_bytes(), on.now);
        }
    }

    /// What came of a request that was at this stage goes on by this verdict: where it is over, what has waited for it goes on
    /// behind it.
    pub(crate) fn has_come<B: AsRef<[u8]>>(
        &self,
        on: &On<'_, Self>,
        before: Stage,
        request: &Message<B>,
        flow: &Flow<'_>,
    ) {
        let is_over = !matches!(flow, Flow::To(_) | Flow::Changed(_) | Flow::Later(_));
        if is_over
            && before.comes_first()
            && let Ok(Some(session)) = request.get(known::SESSION_ID)
        {
            // In a later turn of its worker: the answer is on its connection then.
            for ticket in self.shared.answers.end(session.as_bytes()) {
                on.worker.resume.resume(ticket, Found::Ordered);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_waits_goes_on_after_the_last_answer() {
        let (answers, now) = (Answers::new(Duration::from_secs(60)), Instant::now());
        let ticket = |number| Ticket { worker: 1, number };
        assert!(!answers.wait(b"a", ticket(1), now));
        answers.await_answer(b"a", now);
        answers.await_answer(b"a", now);
        assert!(answers.wait(b"a", ticket(2), now) && !answers.wait(b"b", ticket(3), now));
        assert_eq!(answers.end(b"a"), []);
        assert_eq!(answers.end(b"a"), [ticket(2)]);
        assert_eq!(answers.end(b"a"), []);
    }

    #[test]
    fn requests_that_wait_are_bounded_in_number_and_time() {
        let (answers, now) = (Answers::new(Duration::from_secs(60)), Instant::now());
        answers.await_answer(b"a", now);
        for number in 0..=MOST_WAITING {
            let waits = answers.wait(
                b"a",
                Ticket {
                    worker: 0,
                    number: number as u64,
                },
                now,
            );
            assert_eq!(waits, number < MOST_WAITING);
        }
        let later = now + Duration::from_secs(60);
        answers.await_answer(b"b", now);
        assert!(!answers.wait(b"b", Ticket::default(), later));
        answers.purge(later);
        assert!(answers.sessions.is_empty());
    }
}
