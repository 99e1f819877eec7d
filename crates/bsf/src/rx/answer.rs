//! The way back: answers, requests that got none, and what becomes of the session.

use std::time::Instant;

use bytes::Bytes;
use diameter::proto::{Message, MessageMut, known};
use diameter::{ConnectionId, Node, PeerId};
use store::{Batch, Clock, Condition, Conflict, Error};

use super::post::Packet;
use super::sessions::Path;
use super::{Agent, Link};
use crate::binding::RxSession;
use crate::events::Event;
use crate::flights::Flight;

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
        /// Empty: the realm is all that is known of it before it answers.
        pcf: Box<str>,
        /// Its set, where another PCF of it may take the session.
        set: Option<Box<str>>,
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
    /// When it came.
    pub(super) begun: Instant,
    /// When it is given up.
    pub(super) deadline: Instant,
    /// How often it was sent.
    pub(super) sent: usize,
    /// The session begins at another PCF than was thought when the request was sent.
    pub(super) moved: bool,
    /// This agent has answered it in place of the next hop.
    pub(super) failed: bool,
    /// This agent asks for overload reports with it; its sender does not.
    pub(super) asked: bool,
    /// It is in flight until it is given.
    pub(super) _flight: Flight,
}

impl Transit {
    fn session(&self) -> Option<&str> {
        self.request.require(known::SESSION_ID).ok()
    }
}

/// What an answer says of the session.
enum Outcome {
    Good,
    /// The session does not exist.
    None,
    /// It could not be delivered, or is to be tried again.
    Unknown,
}

/// NO_STATE_MAINTAINED (RFC 6733 §8.11).
const NO_STATE: i32 = 1;

fn outcome(message: &MessageMut) -> Outcome {
    match message.get(known::RESULT_CODE).ok().flatten() {
        // A request that makes no session, as that for P-CSCF restoration (TS 29.214 §4.4.7).
        Some(2000..3000) if message.get(known::AUTH_SESSION_STATE) == Ok(Some(NO_STATE)) => Outcome::None,
        Some(2000..3000) => Outcome::Good,
        Some(5000..6000) => Outcome::None,
        Some(_) => Outcome::Unknown,
        // Experimental-Result: of the application, which has said no.
        None => Outcome::None,
    }
}

impl Agent {
    /// An answer, or what stands for one, on its way to who waits for it.
    pub(super) fn deliver(&self, node: &Node<Self>, mut transit: Transit, message: MessageMut) {
        self.learn_pcf(&mut transit, &message);
        let ended = matches!(
            (&transit.effect, outcome(&message)),
            // A session that has not begun is looked for again: its binding may name another PCF by then.
            (Effect::Ends, Outcome::Good | Outcome::None)
                | (Effect::Begins { .. }, Outcome::None | Outcome::Unknown)
        );
        if ended {
            self.forget_path(&transit);
        }
        if transit.sender.worker == self.worker {
            return self.deliver_here(node, transit, message);
        }
        let home = transit.sender.worker;
        if self.post.send(home, Packet::Answer(transit, message)).is_err() {
            self.counters.count(Event::RxAnswerDropped);
        }
    }

    /// A PCF that was chosen by its realm is known by its answer; the path of a session that another PCF has taken is
    /// another one.
    fn learn_pcf(&self, transit: &mut Transit, message: &MessageMut) {
        let Effect::Begins { af, pcf, .. } = &mut transit.effect else {
            return;
        };
        if !matches!(outcome(message), Outcome::Good) {
            return;
        }
        if pcf.is_empty()
            && let Ok(Some(host)) = message.get(known::ORIGIN_HOST)
        {
            *pcf = host.into();
            transit.moved = true;
        }
        if transit.moved {
            let path = Path::new(af, pcf, Clock::default().micros());
            if let Some(session) = transit.session() {
                let session = Bytes::copy_from_slice(session.as_bytes());
                self.sessions.borrow_mut().insert(&session, path);
            }
        }
    }

    /// The session is on no path any more.
    fn forget_path(&self, transit: &Transit) {
        if let Some(session) = transit.session() {
            self.sessions.borrow_mut().remove(session.as_bytes());
        }
    }

    /// An answer for a peer of this worker; one that begins a session waits until the path is durable.
    fn deliver_here(&self, node: &Node<Self>, transit: Transit, message: MessageMut) {
        let keeps = self.front.worker().config().rx.keep_sessions;
        match (&transit.effect, outcome(&message)) {
            (Effect::Begins { af, pcf, .. }, Outcome::Good) if keeps => {
                let now = Clock::default().micros();
                let path = transit
                    .session()
                    .and_then(|session| RxSession::new(session.as_bytes(), af, pcf, now));
                if let Some(path) = path {
                    return self.keep(node, transit, message, path);
                }
                self.counters.count(Event::RxSessionNotKept);
            }
            (Effect::Ends, Outcome::Good | Outcome::None) if keeps => {
                return self.forget(node, transit, message);
            }
            _ => {}
        }
        self.give(node, &transit, message);
    }

    fn give(&self, node: &Node<Self>, transit: &Transit, message: MessageMut) {
        self.answered(node.now(), transit, transit.failed);
        let given = self
            .origin_of(node, transit)
            .is_some_and(|link| node.answer(&link, message, transit.sender.hop_by_hop));
        if !given {
            self.counters.count(Event::RxAnswerDropped);
        }
    }

    /// Where an answer goes: the connection its request came on, or the one that peer has made since.
    fn origin_of(&self, node: &Node<Self>, transit: &Transit) -> Option<Link> {
        let same = node.connection(transit.sender.connection);
        same.or_else(|| node.open_connection(transit.sender.peer?))
    }

    fn keep(&self, node: &Node<Self>, transit: Transit, message: MessageMut, path: RxSession) {
        let repository = self.repository.clone();
        let most = self.front.worker().config().rx.max_sessions;
        let is_full = move |held: usize| held >= most.saturating_add(most / 8);
        let node = node.clone();
        tokio::task::spawn_local(async move {
            let agent = node.app();
            // Sessions that other instances have ended since the last count leave room.
            if is_full(repository.paths_held.get())
                && let Err(error) = repository.recount_paths().await
            {
                tracing::warn!(%error, "failed to count the paths of Rx sessions");
            }
            // The oldest are forgotten a little later; a session that begins meanwhile is not kept.
            if is_full(repository.paths_held.get()) {
                agent.counters.count(Event::RxSessionNotKept);
                node.refresh();
                return agent.give(&node, &transit, message);
            }
            repository.paths_held.add(1);
            let mut batch = Batch::default();
            batch.insert(&repository.paths, &path);
            let receipt = repository.store().commit(batch);
            let kept = match receipt.await {
                // The AF begins a session again that it has not ended.
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
                Ok(_) => agent.counters.count(Event::RxSessionKept),
                Err(error) => {
                    // The session lives; only a restart would lose its path.
                    tracing::warn!(%error, "the path of an Rx session could not be kept");
                    agent.counters.count(Event::RxSessionNotKept);
                }
            }
            node.refresh();
            agent.give(&node, &transit, message);
        });
    }

    /// The end of a session is answered when its path is gone: a later request of it must not find it again.
    fn forget(&self, node: &Node<Self>, transit: Transit, message: MessageMut) {
        let repository = self.repository.clone();
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
}
