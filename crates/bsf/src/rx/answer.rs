//! The way back: answers, requests that got none, and what becomes of the session.

use diameter::proto::{Fault, Message, MessageBuilder, MessageMut, ResultCode, known};
use diameter::{ConnectionId, Node, PeerId};
use store::{Batch, Clock, Condition, Conflict, Error};

use super::kept::KeptPath;
use super::post::Packet;
use super::{Agent, Link};
use crate::events::Event;

/// Who waits for an answer.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sender {
    /// The worker that it is connected to.
    pub(super) worker: usize,
    pub(super) connection: ConnectionId,
    /// Should the connection be gone, its peer may have made another.
    pub(super) peer: Option<PeerId>,
    pub(super) hop_by_hop: u32,
}

/// What a good answer does to the session.
#[derive(Clone, Debug)]
pub(super) enum Effect {
    None,
    /// It begins, between these two.
    Begins {
        af: Box<str>,
        pcf: Box<str>,
    },
    Ends,
}

/// A request that has been passed on.
#[derive(Debug)]
pub(crate) struct Transit {
    pub(super) sender: Sender,
    /// Header and Session-Id of the request, for an answer of our own.
    pub(super) request: Message,
    pub(super) effect: Effect,
}

impl Transit {
    fn session(&self) -> Option<&str> {
        self.request.require(known::SESSION_ID).ok()
    }
}

/// What an answer says of the session.
enum Outcome {
    Good,
    /// There is no such session.
    None,
    /// It could not be delivered, or is to be tried again.
    Unknown,
}

fn outcome(message: &MessageMut) -> Outcome {
    match message.get(known::RESULT_CODE).ok().flatten() {
        Some(2000..3000) => Outcome::Good,
        Some(5000..6000) => Outcome::None,
        Some(_) => Outcome::Unknown,
        // Experimental-Result: of the application, which has said no.
        None => Outcome::None,
    }
}

impl Agent {
    /// An answer, or what stands for one, on its way to who waits for it.
    pub(super) fn deliver(&self, node: &Node<Self>, transit: Transit, message: MessageMut) {
        let ended = matches!(
            (&transit.effect, outcome(&message)),
            (Effect::Ends, Outcome::Good | Outcome::None) | (Effect::Begins { .. }, Outcome::None)
        );
        if ended && let Some(session) = transit.session() {
            self.sessions.borrow_mut().remove(session.as_bytes());
        }
        if transit.sender.worker == self.worker {
            return self.deliver_here(node, transit, message);
        }
        let home = transit.sender.worker;
        if self.post.send(home, Packet::Answer(transit, message)).is_err() {
            self.front.count(Event::RxAnswerDropped);
        }
    }

    /// An answer for a peer of this worker; one that begins a session waits until the path is durable.
    fn deliver_here(&self, node: &Node<Self>, transit: Transit, message: MessageMut) {
        let keeps = self.front.current().config().rx.keep_sessions;
        match (&transit.effect, outcome(&message)) {
            (Effect::Begins { af, pcf }, Outcome::Good) if keeps => {
                let now = Clock::default().micros();
                let path = transit
                    .session()
                    .and_then(|session| KeptPath::new(session.as_bytes(), af, pcf, now));
                if let Some(path) = path {
                    return self.keep(node, transit, message, path);
                }
                self.front.count(Event::RxSessionNotKept);
            }
            (Effect::Ends, Outcome::Good | Outcome::None) if keeps => {
                return self.forget(node, transit, message);
            }
            _ => {}
        }
        self.give(node, &transit, message);
    }

    fn give(&self, node: &Node<Self>, transit: &Transit, message: MessageMut) {
        let given = self
            .origin_of(node, transit)
            .is_some_and(|link| node.answer(&link, message, transit.sender.hop_by_hop));
        if !given {
            self.front.count(Event::RxAnswerDropped);
        }
    }

    /// Where an answer goes: the connection its request came on, or the one that peer has made since.
    fn origin_of(&self, node: &Node<Self>, transit: &Transit) -> Option<Link> {
        let same = node.connection(transit.sender.connection);
        same.or_else(|| node.open_connection(transit.sender.peer?))
    }

    fn keep(&self, node: &Node<Self>, transit: Transit, message: MessageMut, path: KeptPath) {
        let repository = self.front.repository().clone();
        let most = self.front.current().config().rx.max_sessions;
        // The oldest are forgotten a little later; whoever is faster than that is not kept.
        if repository.paths_held.get() >= most.saturating_add(most / 8) {
            self.front.count(Event::RxSessionNotKept);
            return self.give(node, &transit, message);
        }
        repository.paths_held.add(1);
        let mut batch = Batch::default();
        batch.insert(&repository.paths, &path);
        let receipt = repository.store().commit(batch);
        let node = node.clone();
        tokio::task::spawn_local(async move {
            let agent = node.app();
            let kept = match receipt.await {
                // The AF begins a session anew that it has not ended.
                Err(Error::Conflict { .. }) => {
                    repository.paths_held.sub(1);
                    let mut batch = Batch::default();
                    batch.put(&repository.paths, &path, Condition::Always);
                    repository.store().commit(batch).await
                }
                Err(error) => {
                    repository.paths_held.sub(1);
                    Err(error)
                }
                kept => kept,
            };
            match kept {
                Ok(_) => agent.front.count(Event::RxSessionKept),
                Err(error) => {
                    // The session lives; only a restart would lose its path.
                    tracing::warn!(%error, "the path of an Rx session could not be kept");
                    agent.front.count(Event::RxSessionNotKept);
                }
            }
            node.refresh();
            agent.give(&node, &transit, message);
        });
    }

    /// The end of a session is told when its path is gone: a later request of it must not find it again.
    fn forget(&self, node: &Node<Self>, transit: Transit, message: MessageMut) {
        let repository = self.front.repository().clone();
        let mut batch = Batch::default();
        let session = transit.session().unwrap_or_default();
        batch.delete(&repository.paths, session.as_bytes(), Condition::Present);
        let receipt = repository.store().commit(batch);
        let node = node.clone();
        tokio::task::spawn_local(async move {
            match receipt.await {
                Ok(_) => repository.paths_held.sub(1),
                Err(Error::Conflict {
                    conflict: Conflict::Absent,
                    ..
                }) => {}
                // What is left behind ends with its lifetime.
                Err(error) => tracing::warn!(%error, "the path of an Rx session could not be forgotten"),
            }
            node.refresh();
            node.app().give(&node, &transit, message);
        });
    }

    pub(super) fn lost(&self, node: &Node<Self>, transit: Transit) {
        self.front.count(Event::RxUnanswered);
        let fault = Fault::new(ResultCode::UNABLE_TO_DELIVER, "the next hop did not answer");
        let answer = MessageBuilder::error_answer(&transit.request, &self.origin, &fault);
        self.deliver(node, transit, answer);
    }
}
