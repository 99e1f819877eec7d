//! Answers and losses on their way back through the applications that follow their request: on the worker that showed them
//! the request, in the reverse order.

use std::rc::Rc;

use bytes::Bytes;
use diameter::proto::overload::priority;
use diameter::proto::{CommandFlags, MessageMut, Routing};
use diameter::{Connection, ConnectionId, Kept};
use dsr_app::{Answered, Flow, Loss, Lost, Memo, Out, View};
use smallvec::SmallVec;

use super::mailbox::Packet;
use super::parked::{Parking, Stage};
use super::request::Decision;
use super::{Core, Link, Origin, RequestFlags, Transit};
use crate::config::Exception;
use crate::edit::readdress;
use crate::events::Event;

/// Bytes beyond which an answer may get longer than a message can be (16 MB, RFC 6733 §3): a name gets 255 bytes at most.
const MAY_GET_TOO_LONG: usize = 65_536;

/// Bound on how often applications send one request once more.
const MAX_ROUNDS: u8 = 8;

/// The applications that follow a request.
#[derive(Debug, Default)]
pub(super) struct Followed {
    /// In the order of the chain.
    visits: SmallVec<[Visit; 2]>,
    rounds: u8,
}

#[derive(Debug)]
struct Visit {
    application: u32,
    memo: Memo,
}

/// What came of a request.
#[derive(Debug)]
pub(crate) enum Came {
    Answer(MessageMut),
    Lost(Exception),
    /// A rule or an application has dropped it.
    Dropped,
}

impl Came {
    /// What an application learns of a request without an answer.
    pub(super) fn loss(&self) -> Loss {
        match self {
            Self::Lost(why) => (*why).into(),
            Self::Answer(_) | Self::Dropped => Loss::Dropped,
        }
    }
}

impl From<Exception> for Loss {
    fn from(why: Exception) -> Self {
        match why {
            Exception::NoAnswer => Self::Timeout,
            Exception::ConnectionFailure => Self::Disconnected,
            Exception::Exhausted => Self::Full,
            Exception::NoRoute | Exception::LoopDetected => Self::NoPeer,
        }
    }
}

impl Transit {
    /// An application follows the request from now on.
    #[cold]
    pub(super) fn follow(&mut self, application: u32, memo: Memo) {
        let followed = self.followed.get_or_insert_default();
        followed.visits.retain(|visit| visit.application != application);
        followed.visits.push(Visit { application, memo });
    }
}

impl Core {
    /// Ends a request that no peer answers.
    pub(super) fn fail(&self, mut transit: Transit, kept: Kept, why: Exception) {
        let kept = transit.original.take().map_or(kept, |original| *original);
        if transit.followed.is_some() {
            // What was sent and lost before may have been carried out, whatever ended the last attempt.
            let why = match why {
                Exception::NoRoute | Exception::Exhausted if transit.origin.flags.has(RequestFlags::LOST) => {
                    Exception::ConnectionFailure
                }
                _ => why,
            };
            return self.hand_back(kept, Came::Lost(why), transit);
        }
        self.except(transit.origin, kept.message(), why);
    }

    /// Takes an answer or a loss back to the worker that showed the request to applications.
    #[cold]
    pub(super) fn hand_back(&self, kept: Kept, came: Came, transit: Transit) {
        let worker = usize::from(transit.origin.worker);
        if worker == self.worker {
            return self.take_back(kept, came, transit);
        }
        self.count(Event::HandedOver);
        let packet = Packet::Back { kept, came, transit };
        if self.post.send(worker, packet).is_err() {
            self.count(Event::AnswerLost);
        }
    }

    /// What came of a request is back on the worker that showed it to applications. They are shown an answer that gets too long
    /// without our names as the refusal that its client gets: what they keep of it begins with an answer that arrives.
    pub(super) fn take_back(&self, kept: Kept, came: Came, transit: Transit) {
        let came = match came {
            Came::Answer(answer) if answer.as_bytes().len() > MAY_GET_TOO_LONG => {
                let connection = self.connection_of(transit.origin);
                let refusal = connection.and_then(|to| self.refused_for_length(&to, transit.origin, &answer));
                Came::Answer(refusal.unwrap_or(answer))
            }
            other => other,
        };
        self.show_back(kept, came, transit);
    }

    /// The connection on which a request of this worker came.
    fn connection_of(&self, origin: Origin) -> Option<Rc<Connection<Link>>> {
        let node = self.nodes.borrow().get(usize::from(origin.node)).cloned();
        node?.connection(origin.connection)
    }

    /// Shows what came of a request to the applications that follow it, the last one first.
    pub(super) fn show_back(&self, kept: Kept, came: Came, mut transit: Transit) {
        let local = self.snapshot();
        let visit = transit.followed.as_mut().and_then(|all| all.visits.pop());
        let Some(Visit {
            application,
            mut memo,
        }) = visit
        else {
            return match came {
                Came::Answer(message) => self.deliver(transit.origin, message),
                Came::Lost(why) => self.except(transit.origin, kept.message(), why),
                Came::Dropped => self.drop_request(&transit),
            };
        };
        let mut out = Out::default();
        let flow = local.place_of(application).map_or(Flow::Next, |place| {
            let turn = self.turn(&mut memo, &mut out);
            let (request, names) = (kept.message(), self.names(transit.origin.node));
            match &came {
                Came::Answer(answer) => {
                    let answered = Answered {
                        request,
                        answer,
                        names,
                    };
                    place.seat.answer(turn, &answered)
                }
                Came::Lost(_) | Came::Dropped => {
                    let lost = Lost {
                        request,
                        why: came.loss(),
                        names,
                    };
                    place.seat.lost(turn, &lost)
                }
            }
        });
        self.send_own(application, out);
        self.go_back(application, memo, flow, kept, came, transit);
    }

    /// Does with an answer or a loss what an application wants.
    #[allow(clippy::too_many_arguments)]
    pub(super) fn go_back(
        &self,
        application: u32,
        memo: Memo,
        flow: Flow<'_>,
        kept: Kept,
        came: Came,
        mut transit: Transit,
    ) {
        let is_over = matches!(flow, Flow::Answer(_) | Flow::Reply(_) | Flow::Drop);
        if is_over && transit.origin.flags.has(RequestFlags::OWN) {
            return;
        }
        match flow {
            Flow::Next => self.show_back(kept, came, transit),
            Flow::To(to) => match readdress(kept.message(), &to.realm, &to.host) {
                Ok(message) => {
                    let kept = Kept::new(message.freeze(), kept.appended().to_vec().into());
                    transit.follow(application, memo);
                    self.once_more(kept, transit);
                }
                Err(_) => self.show_back(kept, Came::Lost(Exception::Exhausted), transit),
            },
            Flow::Changed(message) => match came {
                Came::Answer(_) => self.show_back(kept, Came::Answer(message), transit),
                Came::Lost(_) | Came::Dropped => {
                    let kept = Kept::new(message.freeze(), kept.appended().to_vec().into());
                    transit.follow(application, memo);
                    self.once_more(kept, transit);
                }
            },
            Flow::Answer(fault) => {
                let answer = self.refusal(transit.origin, kept.message(), &fault);
                self.show_back(kept, Came::Answer(answer), transit);
            }
            Flow::Reply(reply) => {
                self.served(&transit, kept.message().command(), &reply);
                self.show_back(kept, Came::Answer(reply.message), transit);
            }
            Flow::Drop => self.show_back(kept, Came::Dropped, transit),
            Flow::Later(wait) => {
                let parking = Parking {
                    application,
                    memo,
                    wait,
                    rest: SmallVec::new(),
                };
                self.park(parking, transit, Stage::Back { kept, came });
            }
        }
    }

    /// Ends a request that was not sent, before the applications that follow it.
    #[cold]
    pub(super) fn end_followed(
        &self,
        decision: Decision,
        message: MessageMut,
        transit: Transit,
        append: &Bytes,
    ) {
        let came = match decision {
            Decision::Refuse(fault) => Came::Answer(self.refusal(transit.origin, &message, &fault)),
            Decision::Reply(reply) => {
                self.served(&transit, message.command(), &reply);
                Came::Answer(reply.message)
            }
            Decision::Except(why) => Came::Lost(why),
            Decision::Send(..) | Decision::Park(_) | Decision::Abandon | Decision::Discard => Came::Dropped,
        };
        self.hand_back(Kept::new(message.freeze(), append.clone()), came, transit);
    }

    /// Sends the requests of applications' own.
    pub(super) fn originate_all(&self) {
        let own = std::mem::take(&mut *self.own.borrow_mut());
        for (application, message, memo) in own {
            self.originate(application, message, memo);
        }
    }

    /// Sends a request of an application's own, which follows it.
    fn originate(&self, follower: u32, mut message: MessageMut, memo: Memo) {
        static NOTHING: Bytes = Bytes::new();
        let (local, now) = (self.snapshot(), self.now());
        let node = self.nodes.borrow().first().cloned();
        if let Some(node) = node.filter(|_| message.end_to_end() == 0) {
            message.set_end_to_end(node.end_to_end());
        }
        let mut flags = RequestFlags::default();
        flags.set(RequestFlags::OWN, true);
        let application = message.application();
        let table = local.table(&local.profile(""), application);
        let mut transit = Transit {
            origin: Origin {
                worker: self.worker as u16,
                node: 0,
                connection: ConnectionId::default(),
                hop_by_hop: 0,
                flags,
                trace: 0,
                scope: 0,
            },
            since: now,
            until: now + local.lifetime,
            tried: SmallVec::new(),
            sent: 0,
            table: table.map(|table| table as u16),
            version: local.version,
            application,
            from: None,
            priority: priority::DEFAULT,
            original: None,
            copy: None,
            followed: None,
        };
        transit.follow(follower, memo);
        let decision = match Routing::scan_as(&message, |_| false) {
            Ok(routing) => {
                transit.priority = routing.priority.unwrap_or(priority::DEFAULT);
                let view = View::new(application, message.command(), transit.priority, &routing);
                self.route(&local, &view, &transit)
            }
            Err(_) => Decision::Except(Exception::Exhausted),
        };
        let Decision::Send(target, _, renamed) = decision else {
            return self.end_followed(decision, message, transit, &NOTHING);
        };
        if let Some(renamed) = renamed.and_then(|host| super::again::renamed(&message, &host)) {
            message = renamed;
        }
        self.count(Event::Originated);
        self.count(Event::Message);
        transit.tried.push(target.hop);
        self.dispatch(target, message, &NOTHING, transit);
    }

    /// Drops a request of this worker.
    fn drop_request(&self, transit: &Transit) {
        let origin = transit.origin;
        if origin.flags.has(RequestFlags::OWN) {
            return;
        }
        let connection = self.connection_of(origin);
        if let Some(link) = connection.as_ref().and_then(|connection| connection.state()) {
            link.dropped();
        }
        self.count(Event::Abandoned);
    }

    /// Sends a request once more, for the application that follows it last. Where it cannot be sent, that one learns so, and
    /// may try again within the bound of rounds; beyond, it is not asked again.
    fn once_more(&self, kept: Kept, mut transit: Transit) {
        let followed = transit.followed.get_or_insert_default();
        followed.rounds += 1;
        let is_bound = followed.rounds > MAX_ROUNDS;
        // Its attempts begin again: it is another destination.
        transit.sent = 0;
        transit.tried.clear();
        let sent = match is_bound {
            true => Err((kept, transit)),
            false => self.try_again(kept, CommandFlags::default(), transit),
        };
        if let Err((kept, mut transit)) = sent {
            if is_bound {
                transit.followed.get_or_insert_default().visits.pop();
            }
            self.show_back(kept, Came::Lost(Exception::NoRoute), transit);
        }
    }
}
