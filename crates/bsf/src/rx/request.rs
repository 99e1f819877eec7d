//! The way of a request: may it come in, is it in order, where does it go.

use bytes::{Bytes, BytesMut};
use diameter::proto::known::{self, application, command};
use diameter::proto::{Fault, MessageBuilder, MessageMut, ResultCode, Routing};
use diameter::{Forward, Node};

use super::answer::{Effect, Sender, Transit};
use super::post::{Crossing, Packet};
use super::sessions::Path;
use super::{Agent, Link, check, identity, redirect};
use crate::binding::{Query, Selection, select};
use crate::config::RxMode;
use crate::events::Event;
use crate::service::{State, Worker};

/// DIAMETER_UNKNOWN_SESSION_ID (RFC 6733 §7.1.5).
const UNKNOWN_SESSION_ID: ResultCode = ResultCode(5002);
/// Rx-Request-Type (TS 29.214 §5.3.31), and its value for a session that exists.
const RX_REQUEST_TYPE: u32 = 533;
const UPDATE_REQUEST: [u8; 4] = [0, 0, 0, 1];

/// A request on its way.
pub(super) struct Request {
    pub(super) from: Link,
    pub(super) hop_by_hop: u32,
    pub(super) message: MessageMut,
    session: Option<Bytes>,
    has_destination: bool,
}

/// What a request asks for, once its AVPs are read.
enum Step {
    /// To this host.
    To(String),
    /// By the bindings.
    Find(Query),
    /// By the path that the store may have; if it has none, this.
    Recall(Box<Step>),
    /// Nowhere.
    Refuse(Fault),
}

impl Agent {
    pub(super) fn received(&self, node: &Node<Self>, from: &Link, message: MessageMut) {
        self.front.count(Event::RxRequest);
        let worker = self.front.current();
        let (step, session, has_destination) = match Routing::scan(&message, self.origin.host.as_bytes()) {
            Ok(routing) => (
                self.step(&worker, from, &message, &routing),
                routing.session_id.map(Bytes::copy_from_slice),
                routing.destination_host.is_some(),
            ),
            Err(error) => (Step::Refuse(error.into()), None, false),
        };
        let request = Request {
            from: from.clone(),
            hop_by_hop: message.hop_by_hop(),
            message,
            session,
            has_destination,
        };
        self.take(node, request, step);
    }

    fn take(&self, node: &Node<Self>, request: Request, step: Step) {
        match step {
            Step::To(host) => self.send(node, request, &host, false),
            Step::Refuse(fault) => self.refuse(node, &request, &fault),
            Step::Find(_) | Step::Recall(_) => {
                let Some(place) = self.lookups.take(self.front.current().config().rx.max_lookups) else {
                    let fault = Fault::new(ResultCode::TOO_BUSY, "too many requests wait for the bindings");
                    return self.refuse(node, &request, &fault);
                };
                let node = node.clone();
                tokio::task::spawn_local(async move {
                    let agent = node.app();
                    match step {
                        Step::Find(query) => agent.initial(&node, request, query).await,
                        Step::Recall(otherwise) => agent.recall(&node, request, *otherwise).await,
                        _ => {}
                    }
                    drop(place);
                });
            }
        }
    }

    /// In order, for us to pass on, open for it, then by name, by session, by binding.
    fn step(&self, worker: &Worker, from: &Link, message: &MessageMut, routing: &Routing<'_>) -> Step {
        let refuse = |code, why: &'static str| Step::Refuse(Fault::new(code, why));
        let settings = &worker.config().rx;
        if !from.state().is_none_or(|state| state.admits(settings.peer_rate)) {
            self.front.count(Event::RxPeerLimited);
            return refuse(
                ResultCode::TOO_BUSY,
                "this peer sends more than it may (peerRate)",
            );
        }
        if routing.loops {
            return refuse(ResultCode::LOOP_DETECTED, "been here before");
        }
        if message.application() != application::RX {
            return refuse(ResultCode::APPLICATION_UNSUPPORTED, "this agent serves Rx");
        }
        let by_af = match message.command() {
            command::AA | command::SESSION_TERMINATION => true,
            command::RE_AUTH | command::ABORT_SESSION => false,
            _ => return refuse(ResultCode::COMMAND_UNSUPPORTED, "not a command of Rx"),
        };
        let in_order = check::addressed(routing).and_then(|()| {
            match settings.check_mandatory && settings.mode == RxMode::Proxy {
                true => check::understood(message),
                false => Ok(()),
            }
        });
        if let Err(fault) = in_order {
            return Step::Refuse(fault);
        }
        if worker.switches().state() == State::Complete {
            return refuse(ResultCode::TOO_BUSY, "this BSF is shut down");
        }
        let session = routing.session_id.unwrap_or_default();
        let path = self.sessions.borrow_mut().get(session);
        let kept = settings.keep_sessions && settings.mode == RxMode::Proxy;
        let recall = |otherwise: Step| match kept {
            true => Step::Recall(Box::new(otherwise)),
            false => otherwise,
        };
        let destination = routing
            .destination_host
            .filter(|host| !host.eq_ignore_ascii_case(self.origin.host.as_bytes()))
            .map(|host| std::str::from_utf8(host).map(str::to_owned));
        match (destination, path) {
            (Some(Err(_)), _) => refuse(ResultCode::UNABLE_TO_DELIVER, "Destination-Host is no name"),
            // An AF behind an agent is reached by the way its session came.
            (Some(Ok(_)), Some(path)) if !by_af => Step::To(path.af.to_string()),
            (Some(Ok(host)), None) if !by_af && self.places.home(&host).is_none() => recall(Step::To(host)),
            (Some(Ok(host)), _) => Step::To(host),
            (None, Some(path)) if by_af => Step::To(path.pcf.to_string()),
            (None, Some(path)) => Step::To(path.af.to_string()),
            (None, None) if message.command() == command::AA => {
                let first = self.begins(worker, message, routing);
                match &first {
                    Step::Find(_) if !is_update(message) => first,
                    Step::Find(_) => recall(first),
                    // Without an address only a session that exists can be meant.
                    _ => recall(first),
                }
            }
            (None, None) => recall(refuse(UNKNOWN_SESSION_ID, "no path of this session is known")),
        }
    }

    /// What becomes of an AAR of a session that nobody knows.
    fn begins(&self, worker: &Worker, message: &MessageMut, routing: &Routing<'_>) -> Step {
        let refuse = |code, why: &'static str| Step::Refuse(Fault::new(code, why));
        if worker.switches().state() != State::Serving {
            return refuse(ResultCode::TOO_BUSY, "this BSF takes no new sessions");
        }
        if worker.shedder().discards(routing.priority) {
            self.front.count(Event::RxDiscarded);
            return refuse(ResultCode::TOO_BUSY, "discarded under overload");
        }
        match identity::of(message, routing) {
            Ok(query) => Step::Find(query),
            Err(fault) => Step::Refuse(fault),
        }
    }

    pub(super) fn refuse(&self, node: &Node<Self>, request: &Request, fault: &Fault) {
        self.front.count(Event::RxRefused);
        let answer = MessageBuilder::error_answer(&request.message, &self.origin, fault);
        node.answer(&request.from, answer, request.hop_by_hop);
    }

    /// An initial AAR: asks the bindings.
    async fn initial(&self, node: &Node<Self>, request: Request, query: Query) {
        let matching = match self.front.repository().matching(&query).await {
            Ok(matching) => matching,
            Err(error) => {
                tracing::warn!(%error, "an AAR could not be routed");
                let fault = Fault::new(ResultCode::TOO_BUSY, "bindings cannot be read");
                return self.refuse(node, &request, &fault);
            }
        };
        node.refresh();
        let worker = self.front.current();
        let settings = &worker.config().rx;
        let no_binding = |why| redirect::no_binding(self, node, &request, settings.no_binding, why);
        let binding = match select(&matching, &query) {
            Selection::One(binding) => binding,
            Selection::None => return no_binding("no binding of this UE"),
            Selection::Ambiguous => {
                return no_binding("several sessions match; IP-Domain-Id or Called-Station-Id would tell");
            }
        };
        let Some(host) = binding.0.text_of("pcfDiamHost") else {
            return no_binding("the PCF of this session has no Diameter name");
        };
        if settings.mode == RxMode::Redirect {
            return redirect::redirect(self, node, &request, settings, host);
        }
        if let (Some(session), Some(af)) = (&request.session, request.from.peer()) {
            let path = Path::new(&af.remote.origin.host, host);
            self.sessions.borrow_mut().insert(session, path);
        }
        self.send(node, request, host, true);
    }

    /// A request of a session that this worker does not know: another run, worker or instance may have kept it.
    async fn recall(&self, node: &Node<Self>, request: Request, otherwise: Step) {
        let Some(session) = request.session.clone() else {
            return self.take(node, request, otherwise);
        };
        let found = self.front.repository().paths.get(&session).await;
        node.refresh();
        match found {
            Ok(Some(stored)) => {
                self.front.count(Event::RxSessionRecalled);
                let path = Path::new(&stored.record.af, &stored.record.pcf);
                self.sessions.borrow_mut().insert(&session, path);
                let by_af = matches!(
                    request.message.command(),
                    command::AA | command::SESSION_TERMINATION
                );
                let host = if by_af {
                    &stored.record.pcf
                } else {
                    &stored.record.af
                };
                self.send(node, request, host, false);
            }
            Ok(None) => self.take(node, request, otherwise),
            Err(error) => {
                tracing::warn!(%error, "the path of an Rx session could not be read");
                let fault = Fault::new(ResultCode::TOO_BUSY, "paths of sessions cannot be read");
                self.refuse(node, &request, &fault);
            }
        }
    }

    /// Sends a request to a host, or to a relay when the host is not connected, on whatever worker they are.
    fn send(&self, node: &Node<Self>, request: Request, host: &str, begins: bool) {
        let worker = self.front.current();
        let settings = &worker.config().rx;
        let relays = settings.relays.iter().map(String::as_str);
        let next = std::iter::once(host)
            .chain(relays)
            .find_map(|hop| self.places.home(hop).map(|home| (hop, home)));
        let Some((hop, home)) = next else {
            let why = format!("{host} is not connected, nor is a relay");
            return self.refuse(node, &request, &Fault::new(ResultCode::UNABLE_TO_DELIVER, why));
        };
        let mut append = BytesMut::from(&request.from.route_record()[..]);
        if !request.has_destination {
            // Behind a relay, only its name leads to the PCF (RFC 6733 §6.1.4).
            append.extend_from_slice(&diameter::proto::build::encode_one(known::DESTINATION_HOST, host));
        }
        let mut own = MessageBuilder::new(request.message.header());
        if let Ok(Some(session)) = request.message.avps().find(known::SESSION_ID) {
            own.copy(&session);
        }
        let Ok(own) = own.finish() else { return };
        let effect = match request.message.command() {
            command::SESSION_TERMINATION => Effect::Ends,
            command::AA if begins => Effect::Begins {
                af: request
                    .from
                    .peer()
                    .map(|up| up.remote.origin.host.as_str().into())
                    .unwrap_or_default(),
                pcf: host.into(),
            },
            _ => Effect::None,
        };
        let transit = Transit {
            sender: Sender {
                worker: self.worker,
                connection: request.from.id(),
                peer: request.from.peer().map(|up| up.id),
                hop_by_hop: request.hop_by_hop,
            },
            request: own.freeze(),
            effect,
        };
        let crossing = Crossing {
            hop: hop.into(),
            message: request.message,
            append: append.freeze(),
            transit,
        };
        if home == self.worker {
            self.send_here(node, crossing);
        } else if let Err(Packet::Request(crossing)) = self.post.send(home, Packet::Request(crossing)) {
            let fault = Fault::new(ResultCode::TOO_BUSY, "too many requests wait for a worker");
            self.fail(node, crossing.transit, &fault);
        }
    }

    /// Sends a request to a peer that lives here.
    pub(super) fn send_here(&self, node: &Node<Self>, crossing: Crossing) {
        let Crossing {
            hop,
            message,
            append,
            transit,
        } = crossing;
        let link = node
            .peer(&hop)
            .and_then(|peer| node.open_connection(peer))
            .filter(|link| link.is_available());
        let Some(link) = link else {
            let why = format!("{hop} is not connected any more");
            return self.fail(node, transit, &Fault::new(ResultCode::UNABLE_TO_DELIVER, why));
        };
        // Both workers of a session know its path.
        if transit.sender.worker != self.worker
            && let Effect::Begins { af, pcf } = &transit.effect
            && let Ok(session) = transit.request.require(known::SESSION_ID)
        {
            let session = Bytes::copy_from_slice(session.as_bytes());
            self.sessions.borrow_mut().insert(&session, Path::new(af, pcf));
        }
        let how = Forward {
            deadline: node.now() + self.front.current().config().rx.timeout.duration(),
            append: &append,
            keep: false,
        };
        match node.forward(&link, message, how, transit) {
            Ok(()) => self.front.count(Event::RxForwarded),
            Err(refused) => {
                let fault = Fault::new(ResultCode::TOO_BUSY, refused.why.to_string());
                self.fail(node, refused.context, &fault);
            }
        }
    }

    /// A request that came from anywhere goes nowhere.
    fn fail(&self, node: &Node<Self>, transit: Transit, fault: &Fault) {
        self.front.count(Event::RxRefused);
        let answer = MessageBuilder::error_answer(&transit.request, &self.origin, fault);
        self.deliver(node, transit, answer);
    }
}

/// Whether an AAR says that its session exists.
fn is_update(message: &MessageMut) -> bool {
    message.avps().map_while(Result::ok).any(|avp| {
        avp.vendor == known::VENDOR_3GPP && avp.code == RX_REQUEST_TYPE && avp.data == UPDATE_REQUEST
    })
}
